/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_DRIVER_OFFLOAD_H
#define MILLRACE_EXPERIMENTAL_DRIVER_OFFLOAD_H

#include <stdint.h>

#include <millrace/experimental/offload.h>
#include <millrace/experimental/parcel.h>

MR_BEGIN_DECLS

/**
 * @file
 * For authors of drivers that support rules; <millrace/experimental/offload.h>
 * has the contracts. lib/port checks arguments, and gives each rule its id.
 */

/** Head of a driver's own struct for a set. lib/port fills it before open(). */
struct mr_rules {
	const struct mr_rules_ops *ops;
	struct mr_ctx *ctx;
	struct mr_port **ports;
	uint32_t n_ports;
	uint32_t n_max;
	uint32_t matches; /**< what mr_offload_caps.matches of all ports has */
	struct mr_rule *rules; /**< by mr_rule_slot(): n_max of them */
	uint32_t *free_ids;    /**< private to lib/port, as the next two: */
	uint32_t first_free;   /**< a ring, so that a slot rests */
	uint32_t n_free;
	int fd; /**< for mr_rules_fd(); initially -1 */
	/* Of MR_RULE_FLOW. */
	uint32_t n_hops;
	uint32_t magic; /**< of tickets */
	uint16_t first_id, id_step;
	uint32_t hands_over; /**< as in mr_rules_config */
	struct mr_flow_way (*ways)[MR_FLOW_WAYS]; /**< the driver's, by slot */
	struct mr_flow_old_id *old_ids; /**< the driver's, MR_FLOW_IDS */
};

/** What a driver does with rules; mr_driver.rules points to it. */
struct mr_rules_ops {
	size_t rules_bytes; /**< of its struct, which begins with mr_rules */
	/** Contract of mr_port_offload_caps(). */
	int (*caps)(const struct mr_port *port, struct mr_offload_caps *caps,
		    struct mr_reason *reterr_reason);
	/** Contract of mr_rules_open(). On failure, undo everything. */
	int (*open)(struct mr_rules *rules, struct mr_reason *reterr_reason);
	/** Contract of mr_rules_close(); lib/port then frees @p rules. */
	void (*close)(struct mr_rules *rules);
	/** Contract of mr_rules_stop(). close() follows sooner or later. */
	void (*stop)(struct mr_rules *rules);
	/**
	 * Add the rule in the slot of each id, inactive.
	 * @return how many, first ones first
	 */
	uint32_t (*add)(struct mr_rules *rules, const uint32_t *ids,
			uint32_t n);
	/** Contracts of the functions of these names. */
	void (*remove)(struct mr_rules *rules, const uint32_t *ids, uint32_t n);
	void (*set)(struct mr_rules *rules, uint32_t id, uint32_t to,
		    bool is_active);
	void (*read)(const struct mr_rules *rules, const uint32_t *ids,
		     uint32_t n, struct mr_rule_stats *ret_stats);
	void (*link)(struct mr_rules *rules, uint32_t i,
		     const struct mr_rules_link *link);
	void (*hop)(struct mr_rules *rules, uint32_t hop, uint64_t mac,
		    uint64_t until_ns);
	void (*flush)(struct mr_rules *rules);
	uint32_t (*poll)(struct mr_rules *rules);
	void (*sent)(struct mr_rules *rules, uint32_t i,
		     struct mr_rules_sent *sent);
	/**
	 * Like offer() and take() of struct mr_hand_over_ops, for a set; take()
	 * instead of open(). NULL: it cannot be handed over.
	 */
	int (*offer)(struct mr_rules *rules, struct mr_parcel *parcel,
		     struct mr_reason *reterr_reason);
	int (*take)(struct mr_rules *rules, struct mr_parcel *parcel,
		    struct mr_reason *reterr_reason);
};

MR_END_DECLS

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_OFFLOAD_H
#define MILLRACE_EXPERIMENTAL_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/experimental/flow_way.h>
#include <millrace/port.h>

MR_BEGIN_DECLS

/**
 * @file
 * Rules: frames that a port's driver handles itself, below user space.
 *
 *     device --> rule? --yes--> rewrite, send from another port, or drop
 *                  |
 *                  no --> rx queue --> application
 *
 * A set of rules belongs to a group of ports of one driver. The application
 * stays the only authority: it adds a rule for what it has decided, and
 * receives every frame that no active rule matches. Closing the set, or the end
 * of the process, removes all rules, and frames arrive in the queues again.
 *
 * The invariant of an rx queue's counters still holds: <millrace/port.h>.
 */

struct mr_rules;

/** What a rule matches. */
enum mr_rule_match {
	/** Each frame received on mr_rule.port. */
	MR_RULE_ANY = 1,
	/**
	 * A learning bridge's entry: the station mr_rule.mac is behind
	 * mr_rule.to. A frame is forwarded if its source and its destination
	 * both have an active rule, and that of its source names the port that
	 * it arrived on. It is dropped if its destination is behind that port,
	 * too. Frames to group addresses go to the application. A rule
	 * MR_RULE_ANY of the port, active or not, takes precedence over these.
	 */
	MR_RULE_STATION = 2,
	/**
	 * A UDP or TCP flow over IPv4, in both directions: frames that arrive
	 * on mr_rule.port with the ends mr_rule.from leave from mr_rule.to
	 * with the ends mr_rule.as, and replies the other way round. A frame
	 * must be addressed to the MAC address of mr_rules_link(), lie in one
	 * buffer, have valid lengths and a valid header checksum, and no IP
	 * options. It leaves with the next hop's MAC address, its TTL
	 * decremented and its checksums updated. A TCP segment must be where
	 * its receiver expects it, without SYN, FIN or RST. The application
	 * receives all other frames, with a ticket if they belong to the flow.
	 */
	MR_RULE_FLOW = 3,
};

/** What happens to a matching frame. */
enum mr_rule_action {
	MR_RULE_FORWARD, /**< send it from the port mr_rule.to */
	MR_RULE_DROP,    /**< drop it, counted as MR_RX_DROP_RULE */
};

/** Source and destination of a packet; network order. */
struct mr_flow_ends {
	uint32_t src, dst;
	uint16_t sport, dport;
};

/** One rule. Ports are indices of mr_rules_config.ports. */
struct mr_rule {
	uint16_t match;  /**< enum mr_rule_match */
	uint16_t action; /**< enum mr_rule_action; of MR_RULE_ANY only */
	uint16_t port;   /**< not of MR_RULE_STATION: the port it arrives on */
	uint16_t to;
	uint8_t mac[6]; /**< of MR_RULE_STATION */
	uint8_t proto;  /**< of MR_RULE_FLOW: IPPROTO_UDP or IPPROTO_TCP */
	uint8_t reserved;
	struct mr_flow_ends from; /**< of MR_RULE_FLOW, and the next one */
	struct mr_flow_ends as;
};

/** How to open a set of rules. Zero is the default of n_max. */
struct mr_rules_config {
	uint32_t size;    /**< sizeof(struct mr_rules_config) */
	uint32_t n_ports; /**< 1 to 64, all different */
	struct mr_port *const *ports;
	uint32_t n_max;  /**< maximum number of rules; 0: 8192 */
	uint32_t n_hops; /**< next hops of MR_RULE_FLOW; 0: no such rules */
	/** IP ids for MR_FLOW_NEW_ID: rx queue q, counted over the set, has
	 * the ids first_id + q + k * id_step. A set of another process keeps
	 * its first_id. */
	uint16_t first_id, id_step;
	/** 1: the program puts the ids of its rules into its state when it
	 * hands over its data plane (hand_over.h), or takes them from there.
	 * Then the set goes along, and rules forward meanwhile. 0: ports with
	 * such a set cannot be handed over. */
	uint32_t hands_over;
};

enum { MR_RULE_SLOT_BITS = 24 };

/**
 * The place of a rule in a set. The bits above it are a generation: an id of a
 * rule that was removed differs from that of the next one in its place.
 *
 * @return 0 to n_max - 1. Thread: any.
 */
static inline uint32_t mr_rule_slot(uint32_t id)
{
	return id & ((1u << MR_RULE_SLOT_BITS) - 1);
}

/** How frames of MR_RULE_FLOW look on a port. */
struct mr_rules_link {
	uint8_t mac[6];     /**< ours */
	uint16_t vlan;      /**< tag, host order; 0: none */
	uint32_t mtu_bytes; /**< longest packet sent */
};

/** What a port's driver and device can do with rules. */
struct mr_offload_caps {
	uint32_t size;        /**< sizeof(struct mr_offload_caps) */
	uint32_t matches;     /**< bit m: enum mr_rule_match m */
	uint32_t n_max_rules; /**< of a set */
	uint32_t can_send;    /**< 1: it can be mr_rule.to, once it is up */
	uint32_t is_advised;  /**< 1: faster than user space, without loss */
	uint32_t reserved;
	char why[256]; /**< why not can_send or is_advised, with the
			*   remedy; "" if both */
};

/** The state of a rule of MR_RULE_STATION; others have zeros. */
struct mr_rule_stats {
	uint64_t seen_ns; /**< when its station last sent: CLOCK_MONOTONIC, to
			   *   a tick of the kernel (1 to 10 ms); 0: never */
	uint64_t held_ns; /**< when the application last received a frame
			   *   because the rule is inactive; 0: never */
};

/** Frames that rules sent from one port. */
struct mr_rules_sent {
	uint32_t size; /**< sizeof(struct mr_rules_sent), set by the caller */
	uint32_t can_send;  /**< 1: its rules are in force now */
	uint32_t has_drops; /**< 0: the driver cannot tell what was lost */
	uint32_t reserved;
	uint64_t attempted; /**< frames that rules gave it */
	uint64_t drops;     /**< of those, lost later: a full ring, a link
			     *   that went down */
	uint64_t bytes;     /**< of the attempted frames; 0: unknown */
};

/**
 * What rules can do on @p port.
 *
 * @return 0, or
 *   -EINVAL   caps->size is 0
 *   -ENOTSUP  the driver has no rules, or not for this port; with the reason
 *
 * Thread: any. Cost: system calls.
 */
MR_API int mr_port_offload_caps(const struct mr_port *port,
				struct mr_offload_caps *caps,
				struct mr_reason *reterr_reason);

/**
 * Open an empty set of rules for a group of ports.
 *
 * @return 0, or
 *   -EINVAL  size is 0, n_ports or n_max is out of range, a port is listed
 *            twice, or the ports have different drivers
 *   -EBUSY   a port already has a set
 *   -ENOTSUP as mr_port_offload_caps(), for any of the ports; or n_hops is
 *            not 0 and a port has no MR_RULE_FLOW
 *   -ENOMEM  no memory
 *   -EPERM   a capability is missing; the reason names it
 *   -EIO     a system call failed in another way; the reason has it
 *
 * Owner:  the caller, of the set; close it before its ports.
 * Thread: as mr_port_open(), while no other thread uses the set's ports.
 * Cost:   loads a program into the kernel for each port: milliseconds.
 */
MR_API int mr_rules_open(const struct mr_rules_config *config,
			 struct mr_rules **ret_rules,
			 struct mr_reason *reterr_reason);

/**
 * Stop all rules permanently, before a last report: frames reach the
 * application again, and counters of rules are final.
 *
 * Thread: as mr_rules_add(). Cost: waits for running programs, milliseconds.
 */
MR_API void mr_rules_stop(struct mr_rules *rules);

/**
 * Remove all rules and close the set. Its counts stay in the counters of the
 * queues. NULL is allowed.
 *
 * Owner:  none; the set is freed.
 * Thread: one at a time per context, while no other thread uses the set's ports
 *         or reads their counters.
 */
MR_API void mr_rules_close(struct mr_rules *rules);

/**
 * Add rules. They match nothing until mr_rules_set() makes them active, so that
 * frames which the application still holds are not overtaken.
 *
 * @param[out] ret_ids  ids of the added rules, in order
 *
 * @return how many were added: fewer than @p n if the set is full, or if the
 *         next rule is invalid, is in the set already, has a match that
 *         mr_offload_caps.matches of some port lacks, or is refused by the
 *         device, which is logged
 *
 * Thread: one at a time, of all calls but mr_rules_set() and mr_rules_read().
 * Cost:   a system call for each rule of MR_RULE_STATION.
 */
MR_API uint32_t mr_rules_add(struct mr_rules *rules,
			     const struct mr_rule *new_rules, uint32_t n,
			     uint32_t *ret_ids);

/**
 * Remove rules. Frames that match them reach the application again. Each id
 * must be of a rule in the set, and is invalid afterwards.
 *
 * Thread: as mr_rules_add(). Cost: as mr_rules_add().
 */
MR_API void mr_rules_remove(struct mr_rules *rules, const uint32_t *ids,
			    uint32_t n);

/**
 * Change where a rule sends to (but not one of MR_RULE_FLOW), and whether it is
 * active. Takes effect with the next frame; if the device itself runs the rules
 * (dpdk:), with the next mr_rules_poll(), and mr_rules_fd() becomes readable. A
 * device may refuse the change then: this is logged, and the rule stays
 * inactive. Does nothing if the rule was removed.
 *
 * Thread: any, also during bursts; sequentially consistent.
 * Cost:   a compare-and-swap; on dpdk:, also a system call.
 */
MR_API void mr_rules_set(struct mr_rules *rules, uint32_t id, uint32_t to,
			 bool is_active);

/**
 * Read the state of rules.
 *
 * @param[out] ret_stats  one per id
 *
 * Thread: any. Cost: some loads per rule; no system call.
 */
MR_API void mr_rules_read(const struct mr_rules *rules, const uint32_t *ids,
			  uint32_t n, struct mr_rule_stats *ret_stats);

/**
 * The two directions of a rule of MR_RULE_FLOW.
 *
 * @return an array of MR_FLOW_WAYS, valid until mr_rules_close(); after the
 *         rule was removed it may be another rule's
 *
 * Owner: the set. Thread: any; <millrace/experimental/flow_way.h> says who may
 *        write what.
 */
MR_API struct mr_flow_way *mr_rules_ways(const struct mr_rules *rules,
					 uint32_t id);

/**
 * Return the IP ids that MR_FLOW_NEW_ID replaced. The index is the new id, in
 * host order.
 *
 * @return an array of MR_FLOW_IDS entries, valid until mr_rules_close(); NULL
 *         if the set has no rules of MR_RULE_FLOW
 *
 * Owner: the set; the driver writes it. Thread: any.
 */
MR_API const struct mr_flow_old_id *
mr_rules_old_ids(const struct mr_rules *rules);

/**
 * Describe port @p i for rules of MR_RULE_FLOW. Until then, they match no frame
 * that arrives there.
 *
 * Thread: as mr_rules_add(). Cost: some stores.
 */
MR_API void mr_rules_link(struct mr_rules *rules, uint32_t i,
			  const struct mr_rules_link *link);

/**
 * Set how to reach a next hop, mr_flow_way.hop.
 *
 * @param hop       a number below mr_rules_config.n_hops and, from bit
 *                  MR_FLOW_HOP_BITS up, a generation: frames of flows that name
 *                  another generation go to the application
 * @param mac       its MAC address, in memory order from the least significant
 *                  byte up
 * @param until_ns  CLOCK_MONOTONIC: valid until then; 0: not valid. Later,
 *                  frames are still sent there, but one in 10 ms goes to the
 *                  application, so that it asks again
 *
 * Thread: any. Cost: two stores.
 */
MR_API void mr_rules_hop(struct mr_rules *rules, uint32_t hop, uint64_t mac,
			 uint64_t until_ns);

/**
 * Disable all present rules of MR_RULE_FLOW at once, with one store per port.
 * Remove them afterwards. Rules added later match as usual.
 *
 * Thread: as mr_rules_add(). Cost: some stores.
 */
MR_API void mr_rules_flush(struct mr_rules *rules);

/**
 * Take the ticket of a frame, as received: @p data is its first byte, with
 * sizeof(struct mr_flow_ticket) bytes of its buffer before it.
 *
 * @return whether it has one; *ret_ticket is set if so
 *
 * Thread: the frame's. Cost: some loads from the line before its first one.
 */
MR_API bool mr_rules_ticket(const struct mr_rules *rules, uint8_t *data,
			   struct mr_flow_ticket *ret_ticket);

/**
 * Confirm that the frame of a ticket, and all frames before it, have left. If it
 * is the last number of this direction, the driver forwards frames again. Does
 * nothing if the rule was removed.
 *
 * Thread: one per flow. Cost: a store.
 */
MR_API void mr_rules_confirm(struct mr_rules *rules,
			     const struct mr_flow_ticket *ticket);

/**
 * Handle changes of the ports: a rule is not applied while the port that it
 * sends from is down, gone, or unable to send frames of other ports. Also
 * applies the changes of mr_rules_set() to a device. Call it when mr_rules_fd()
 * is readable, and after mr_port_poll() of each port.
 *
 * @return how many ports changed
 *
 * Thread: as mr_rules_add(). Cost: system calls only when something changed.
 */
MR_API uint32_t mr_rules_poll(struct mr_rules *rules);

/** @return an fd that is readable when mr_rules_poll() has something to do; -1:
 * there is none. Owner: the set. Thread: any. */
MR_API int mr_rules_fd(const struct mr_rules *rules);

/**
 * Frames that rules sent from port @p i of the set.
 *
 * @return 0, or -EINVAL: sent->size is 0, or no such port
 *
 * Thread: as mr_rules_add(). Cost: system calls.
 */
MR_API int mr_rules_sent(struct mr_rules *rules, uint32_t i,
			 struct mr_rules_sent *sent);

MR_END_DECLS

#endif

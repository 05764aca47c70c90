/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subscribers: inside addresses with mappings. Each has limits, an external
 * address and blocks of ports. The record lasts as long as it has any of these.
 */
#ifndef NAT_SUBSCRIBER_H
#define NAT_SUBSCRIBER_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>

#include <millrace/flow.h>
#include <millrace/millrace.h>

#include "config/config.h"
#include "external.h"

struct nat_subscriber {
	uint32_t addr; /* network order; the key, with realm */
	uint32_t realm;
	uint32_t n_mappings; /* counted by its limit */
	uint32_t n_static;
	uint32_t n_sessions;         /* beyond the first of each mapping */
	uint32_t ordinal;            /* see nat_subscriber_ordinal() */
	uint32_t external;           /* 1 + index of its paired address */
	uint32_t blocks[NAT_PROTOS]; /* 1 + number of the newest; ports.h */
	uint16_t n_blocks[NAT_PROTOS];
	bool has_logged;   /* a refusal... */
	uint32_t logged_s; /* ...when last */
	uint32_t reserved;
};

/* The caller owns the table. */
int nat_subscribers_create(struct mr_ctx *ctx, uint32_t n_max, uint64_t seed,
			   struct mr_flow_table **ret_table,
			   struct mr_reason *reterr_why);

/* The number of a subscriber, created if necessary; MR_FLOW_NONE: no room. */
uint32_t nat_subscriber_get(struct mr_flow_table *table, uint32_t addr,
			    uint8_t realm);

/* Remove it if it has nothing left. */
void nat_subscriber_put(struct mr_flow_table *table, uint32_t id);

static inline struct nat_subscriber *
nat_subscriber_at(const struct mr_flow_table *table, uint32_t id)
{
	return mr_flow_record(table, id);
}

enum { NAT_NO_ORDINAL = NAT_EXTERNAL_NONE };

/*
 * Its index among all addresses of the inside networks, in configuration order,
 * from which deterministic ports are computed (RFC 7422). NAT_NO_ORDINAL: in
 * none of them, spoofed. addr in network order. ordinals: from
 * nat_ordinals_init(); 0 or -ENOMEM; free with nat_externals_fini().
 */
static inline uint32_t
nat_subscriber_ordinal(const struct nat_externals *ordinals, uint32_t addr)
{
	return nat_external_index(ordinals, ntohl(addr));
}
int nat_ordinals_init(struct nat_externals *ordinals,
		      const struct nat_config *config);

/* The number of addresses in the inside networks. */
uint64_t nat_subscriber_count(const struct nat_config *config);

#endif

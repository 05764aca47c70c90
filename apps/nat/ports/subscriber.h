/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Subscribers: inside addresses with mappings. Each has limits, an external
 * address and blocks of ports. The record lasts as long as it has any of these.
 */
#ifndef NAT_SUBSCRIBER_H
#define NAT_SUBSCRIBER_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/flow.h>
#include <millrace/millrace.h>

#include "config/config.h"
#include "external.h"

struct nat_subscriber {
	uint32_t addr;       /* network order; the key */
	uint32_t n_mappings; /* counted by its limit */
	uint32_t n_static;
	uint32_t n_sessions;         /* beyond the first of each mapping */
	uint32_t ordinal;            /* see nat_subscriber_ordinal() */
	uint32_t external;           /* 1 + index of its paired address */
	uint32_t blocks[NAT_PROTOS]; /* 1 + number of the newest; ports.h */
	uint16_t n_blocks[NAT_PROTOS];
	bool has_logged;   /* a refusal... */
	uint32_t logged_s; /* ...when last */
};

enum { NAT_SUBSCRIBER_KEY = offsetof(struct nat_subscriber, n_mappings) };

/* The number of a subscriber, created if necessary; MR_FLOW_NONE: no room. */
uint32_t nat_subscriber_get(struct mr_flow_table *table, uint32_t addr);

/* Remove it if it has nothing left. ports.c */
void nat_subscriber_put(struct mr_flow_table *table, uint32_t id);

static inline struct nat_subscriber *
nat_subscriber_at(const struct mr_flow_table *table, uint32_t id)
{
	return mr_flow_record(table, id);
}

enum { NAT_NO_ORDINAL = NAT_EXTERNAL_NONE };

/* Its index among the ordinals of nat_ordinals_init(). NAT_NO_ORDINAL: in none
 * of them, spoofed. addr in network order. */
static inline uint32_t
nat_subscriber_ordinal(const struct nat_externals *ordinals, uint32_t addr)
{
	return nat_external_index(ordinals, ntohl(addr));
}

#endif

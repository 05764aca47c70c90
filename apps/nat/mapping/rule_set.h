/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's rules, shared by rule.c and rule_set.c. */
#ifndef NAT_RULE_SET_H
#define NAT_RULE_SET_H

#include <netinet/in.h>

#include "rule.h"
#include "session.h"

enum nat_rule_state {
	NAT_RULE_ASKED,   /* in a batch */
	NAT_RULE_UNASKED, /* in a batch, but its session has ended */
	NAT_RULE_HELD,    /* in the set */
	NAT_RULE_DEAD,    /* to be removed from it */
};

struct nat_rule_key {
	uint32_t map_id;
	uint32_t addr; /* of the remote end; network order */
	uint16_t port; /* 0 if sessions are by address */
	uint16_t inside_port;
	uint8_t proto;
	uint8_t reserved[3];
};

/* The record outlives the session. */
struct nat_rule {
	struct nat_rule_key key;
	uint32_t id;
	uint32_t next, prev;    /* 1 + number; same mapping, or dead rules */
	uint32_t after, before; /* 1 + number; order of examination */
	/* 0: the mapping's first session; 1 + number of a further one; or
	 * NAT_NO_SESSION. */
	uint32_t session;
	uint32_t n_frames[2]; /* of its directions, when last taken */
	uint32_t since_s;     /* when added to the set */
	uint16_t remote_port;
	uint8_t state;
	bool is_active;
};

enum { NAT_NO_SESSION = UINT32_MAX };

_Static_assert(sizeof(struct nat_rule_key) == 16 &&
		       sizeof(struct nat_rule) == 56,
	       "keys have no padding, records are multiples of 8");

struct nat_rules {
	struct mr_rules *set;
	struct mr_flow_table *table; /* struct nat_rule */
	uint32_t *of_maps; /* per mapping: 1 + number of its newest rule */
	int sent_fd;
	uint32_t min_frames;
	uint32_t n_others; /* frames of sessions without counters */
	uint32_t dead;     /* 1 + number of the first dead rule */
	uint32_t next_s;   /* request no rule before */
	uint32_t filling;  /* the batch being filled */
	/* A list of live rules, 1 + number: the first is examined next. */
	uint32_t first, last, n_in_line;
	uint32_t needs_room;          /* atomic: end idle rules... */
	uint32_t n_to_sweep;          /* ...among this many */
	struct nat_rules_stats stats; /* atomic */
	struct nat_rules_batch batches[2];
};

static inline struct nat_rule *nat_rule_at(const struct nat_rules *rules,
					   uint32_t number)
{
	return mr_flow_record(rules->table, number);
}

/* A TCP rule whose windows we know. */
static inline bool nat_rule_is_tracked(const struct nat_rule *rule)
{
	return rule->key.proto == IPPROTO_TCP &&
	       rule->session != NAT_NO_SESSION;
}

static inline void nat_later(uint32_t *last_s, uint32_t s)
{
	if ((int32_t)(s - *last_s) > 0)
		*last_s = s;
}

/* rule_set.c: add a rule to its mapping's list, or remove it. */
void nat_rule_attach(struct nat_maps *maps, uint32_t number);
void nat_rule_detach(struct nat_maps *maps, const struct nat_rule *rule);
void nat_rule_bury(struct nat_rules *rules, uint32_t number);
/* rule.c: end a rule that is requested or in the set. */
void nat_rule_stop(struct nat_maps *maps, uint32_t number);

#endif

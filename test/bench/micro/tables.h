/* SPDX-License-Identifier: BSD-3-Clause */
/* Our flow table and its peer, rte_hash, with the same keys. */
#ifndef TABLES_H
#define TABLES_H

#include <millrace/flow.h>

#include "bench.h"

enum {
	KEY_BYTES = 16,
	RECORD_BYTES = 64,
	MAX_BURST = 256,
	N_DRAWS = 1 << 20, /* a power of two */
};

struct rte_hash;

struct key {
	uint32_t addrs[2];
	uint16_t ports[2];
	uint32_t protocol;
};

struct record {
	struct key key;
	uint64_t words[6];
};

enum draw { DRAW_UNIFORM, DRAW_ZIPF, DRAW_MISS };

/* One of the tables with keys 0 .. n_records - 1, and the keys to look up. */
struct table {
	struct mr_flow_table *ours;
	struct rte_hash *peer;
	uint32_t n_records;
	uint64_t next;          /* next draw; next key to add */
	uint32_t *ids;          /* ours: ids, by key modulo n_records */
	struct record *records; /* the peer's, which points to them */
	uint32_t *draws;
};

/* Parameters for table_set_up(), in variant.param. */
enum { P_RECORDS, P_BURST, P_DRAW, P_IS_EMPTY, P_IS_READ };

int table_set_up(struct variant *variant, struct mr_reason *why);
void table_count(struct variant *variant, struct counts *counts);
void table_tear_down(struct variant *variant);

/* False: it failed. */
bool table_add(struct table *table, uint64_t i);
bool table_remove(struct table *table, uint64_t i);

/* The i-th of all different keys: clients of one server. */
static inline void key_of(uint64_t i, struct key *ret)
{
	*ret = (struct key){ .addrs = { 0x0a000000 + (uint32_t)i, 0xc6336401 },
			     .ports = { (uint16_t)(i * 40503), 443 },
			     .protocol = 17 };
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by tests of flow tables. */
#ifndef SUPPORT_FLOW_UNIT_H
#define SUPPORT_FLOW_UNIT_H

#include <sys/mman.h>

#include "support/unit_ctx.h"

#include "base/hash.h"
#include "flow/flow.h"

enum { SEED = 12345 };

/* A key of 16 bytes, and a program's data. */
struct flow {
	uint64_t key[2];
	uint64_t value[6];
};

/* A table of such records. */
static inline struct mr_flow_table *flow_table(uint32_t n_max, uint32_t n_start)
{
	const struct mr_flow_config config = {
		.size = sizeof(config),
		.key_bytes = sizeof(((struct flow *)0)->key),
		.record_bytes = sizeof(struct flow),
		.n_max = n_max,
		.n_start = n_start,
		.seed = SEED
	};
	struct mr_flow_table *table = NULL;

	assert_int_equal(mr_flow_create(ctx, &config, &table, NULL), 0);
	return table;
}

static inline uint32_t flow_add(struct mr_flow_table *table, uint64_t a,
				uint64_t b)
{
	const uint64_t key[2] = { a, b };
	uint32_t id = MR_FLOW_NONE;

	assert_int_equal(mr_flow_add(table, key, &id), 0);
	return id;
}

static inline uint32_t flow_find(const struct mr_flow_table *table, uint64_t a,
				 uint64_t b)
{
	const uint64_t key[2] = { a, b };

	return mr_flow_find(table, key);
}

/* Bytes of a range's OS pages that are in memory. */
static inline uint64_t resident_bytes(uint8_t *base, uint64_t n_bytes)
{
	const uint64_t n_pages = n_bytes / 4096;
	unsigned char *pages = malloc(n_pages);
	uint64_t n = 0;

	assert_non_null(pages);
	assert_int_equal(mincore(base, n_bytes, pages), 0);
	for (uint64_t i = 0; i < n_pages; i++)
		n += (pages[i] & 1) * UINT64_C(4096);
	free(pages);
	return n;
}

/* A table's resident memory, without its own small struct. */
static inline uint64_t flow_resident_bytes(const struct mr_flow_table *table)
{
	const struct mri_space *const spaces[] = { &table->bucket_space,
						   &table->overflows.space,
						   &table->records.space };
	uint64_t n = 0;

	for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
		n += resident_bytes(spaces[i]->base, spaces[i]->max_bytes);
	return n;
}

static inline struct mr_flow_stats flow_stats(const struct mr_flow_table *table)
{
	struct mr_flow_stats s = { .size = sizeof(s) };

	assert_int_equal(mr_flow_stats(table, &s), 0);
	return s;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/flow/bulk.c: lookups by burst say what single ones say. */
#include "support/flow_unit.h"

enum { N = 5000, MAX = MR_FLOW_BURST_MAX };

/* Bursts of all lengths, of keys that are there and keys that are not. */
static void assert_bulk_is_single(const struct mr_flow_table *table,
				  const uint8_t *keys, uint32_t n_keys,
				  uint32_t key_bytes)
{
	uint64_t random = 1;

	for (uint32_t n = 0; n <= MAX; n++) {
		uint8_t burst[MAX * MR_FLOW_KEY_MAX + 1] = { 0 };
		uint32_t ids[MAX + 1], n_found = 0;

		for (uint32_t i = 0; i < n; i++)
			memcpy(burst + 1 + i * key_bytes,
			       keys + test_random_u64(&random) % n_keys *
					      key_bytes,
			       key_bytes);
		memset(ids, 0x55, sizeof(ids));
		n_found = mr_flow_find_bulk(table, burst + 1, n, ids);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(
				ids[i],
				mr_flow_find(table, burst + 1 + i * key_bytes));
			n_found -= ids[i] != MR_FLOW_NONE;
		}
		assert_int_equal(n_found, 0);
		assert_int_equal(ids[n], 0x55555555);
	}
}

TEST_CTX(bulk_lookups_agree_with_single_ones)
{
	uint8_t *keys = malloc(N * MR_FLOW_KEY_MAX);

	assert_non_null(keys);
	for (uint32_t n_bytes = 4; n_bytes <= MR_FLOW_KEY_MAX; n_bytes += 4) {
		const struct mr_flow_config config = {
			.size = sizeof(config),
			.key_bytes = n_bytes,
			.record_bytes = 64,
			.n_max = N,
		};
		struct mr_flow_table *table = NULL;
		uint64_t random = n_bytes;
		uint32_t id;

		assert_int_equal(mr_flow_create(ctx, &config, &table, NULL), 0);
		for (uint32_t i = 0; i < N * n_bytes; i++)
			keys[i] = (uint8_t)test_random_u64(&random);
		/* In the middle of a round: chains are longest then. */
		for (uint32_t i = 0; i < N * 3 / 4; i++)
			assert_int_equal(
				mr_flow_add(table, keys + i * n_bytes, &id), 0);
		assert_true(table->overflows.n > 0);
		assert_bulk_is_single(table, keys, N, n_bytes);
		mr_flow_destroy(table);
	}
	free(keys);
}

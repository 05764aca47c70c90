/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/flow/split.c: how tables grow and shrink. test/fuzz/flow_fuzz.c
 * looks at each chain.
 */
#include "support/flow_unit.h"

enum { N = 100000 };

static bool has_no_memory;

int __real_mprotect(void *at, size_t n, int prot);
int __wrap_mprotect(void *at, size_t n, int prot);

int __wrap_mprotect(void *at, size_t n, int prot)
{
	return has_no_memory ? -1 : __real_mprotect(at, n, prot);
}

TEST_CTX(buckets_are_added_and_removed_one_by_one)
{
	struct mr_flow_table *table = flow_table(N, 0);
	uint32_t *ids = malloc(N * sizeof(ids[0]));

	assert_non_null(ids);
	for (uint32_t i = 0; i < N; i++) {
		const uint32_t n = table->n_buckets;

		ids[i] = flow_add(table, i, ~i);
		assert_true(table->n_buckets - n <= 1);
		assert_true(table->n_buckets >= (i + 1) * 2 / 7);
	}
	assert_int_equal(table->n_buckets, (N * 2 + 6) / 7);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(flow_find(table, i, ~i), ids[i]);
	for (uint32_t i = 0; i < N; i++) {
		const uint32_t n = table->n_buckets;

		mr_flow_remove(table, ids[i]);
		assert_true(n - table->n_buckets <= 1);
		assert_true(table->n_buckets <= 9 + (N - i) * 4 / 7 ||
			    table->n_buckets > n - 1);
	}
	assert_int_equal(table->n_buckets, MRI_MIN_BUCKETS);
	free(ids);
	mr_flow_destroy(table);
}

TEST_CTX(without_memory_chains_get_longer)
{
	struct mr_flow_table *table = flow_table(N, 0);
	uint64_t key[2] = { 0 };
	uint32_t n_buckets, n, id;
	int err = 0;

	/* All three parts have their first 2 MiB, the buckets 32768. */
	for (n = 0; table->overflows.n == 0; n++)
		flow_add(table, n, 0);
	for (; table->n_buckets < 100; n++)
		flow_add(table, n, 0);
	has_no_memory = true;
	for (; n < N && err == 0; n++) {
		key[0] = n;
		err = mr_flow_add(table, key, &id);
	}
	/* 32768 records of 64 bytes are 2 MiB. */
	assert_int_equal(err, -ENOMEM);
	assert_int_equal(table->records.n, 32768);
	assert_int_equal(mr_flow_find(table, key), MR_FLOW_NONE);
	has_no_memory = false;
	assert_int_equal(mr_flow_add(table, key, &id), 0);
	mr_flow_destroy(table);

	/* Buckets that could not be split are split later. */
	table = flow_table(N, 0);
	for (n = 0; table->overflows.n == 0; n++)
		flow_add(table, n, 0);
	n_buckets = table->n_buckets;
	table->bucket_space.ready_bytes = 0;
	has_no_memory = true;
	for (; n < 1000; n++)
		flow_add(table, n, 0);
	assert_int_equal(table->n_buckets, n_buckets);
	has_no_memory = false;
	for (; n < 2000; n++)
		flow_add(table, n, 0);
	assert_int_equal(table->n_buckets, (2000 * 2 + 6) / 7);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(flow_find(table, i, 0), i);
	mr_flow_destroy(table);
}

TEST_CTX(unused_memory_of_buckets_is_returned)
{
	enum { N_MANY = 1 << 20, N_FEW = N_MANY / 8 };
	struct mr_flow_table *table = flow_table(N_MANY, 0);
	const uint64_t n_bytes = table->bucket_space.max_bytes;
	const uint64_t step = MRI_SPACE_STEP;

	for (uint32_t i = 0; i < N_MANY; i++)
		assert_int_equal(flow_add(table, i, 0), i);
	assert_true(resident_bytes(table->bucket_space.base, n_bytes) >=
		    N_MANY * UINT64_C(64) * 2 / 7);
	for (uint32_t i = N_FEW; i < N_MANY; i++)
		mr_flow_remove(table, i);
	assert_true(resident_bytes(table->bucket_space.base, n_bytes) <=
		    N_FEW * UINT64_C(64) * 4 / 7 + 2 * step);
	for (uint32_t i = 0; i < N_FEW; i++)
		assert_int_equal(flow_find(table, i, 0), i);
	for (uint32_t i = 0; i < N_FEW; i++)
		mr_flow_remove(table, i);
	/* Those in use, and a step more at most. */
	assert_true(resident_bytes(table->bucket_space.base, n_bytes) <=
		    2 * MRI_SMALL_STEP);
	/* What is there again is empty. */
	for (uint32_t i = 0; i < 1 << 16; i++)
		flow_add(table, i, 1);
	mr_flow_destroy(table);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/flow/table.c; a model of it is in test/fuzz/flow_fuzz.c. */
#include "support/flow_unit.h"

static const struct mr_flow_config good = { .size = sizeof(good),
					    .key_bytes = 16,
					    .record_bytes = 64,
					    .n_max = 1000,
					    .seed = SEED };

TEST_CTX(wrong_configs_are_refused)
{
	static const struct {
		uint32_t key, record, n_max, n_start, reserved;
		const char *says;
	} wrong[] = {
		{ 0, 64, 10, 0, 0, "keys of 0 bytes" },
		{ 18, 64, 10, 0, 0, "keys of 18 bytes" },
		{ 68, 128, 10, 0, 0, "keys of 68 bytes" },
		{ 16, 8, 10, 0, 0, "records of 8 bytes" },
		{ 16, 20, 10, 0, 0, "records of 20 bytes" },
		{ 16, 4104, 10, 0, 0, "records of 4104 bytes" },
		{ 16, 64, 0, 0, 0, "at most 0 records" },
		{ 16, 64, 1u << 31, 0, 0, "at most 2147483648 records" },
		{ 16, 64, 10, 11, 0, "11 initial records: more than n_max" },
		{ 16, 64, 10, 0, 1, "reserved is 1" },
	};
	struct mr_flow_table *table = NULL;
	struct mr_flow_config config = good;
	struct mr_reason why;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		config.key_bytes = wrong[i].key;
		config.record_bytes = wrong[i].record;
		config.n_max = wrong[i].n_max;
		config.n_start = wrong[i].n_start;
		config.reserved = wrong[i].reserved;
		assert_int_equal(mr_flow_create(ctx, &config, &table, &why),
				 -EINVAL);
		assert_reason_has(&why, wrong[i].says);
		assert_int_equal(mr_flow_create(ctx, &config, &table, NULL),
				 -EINVAL);
	}
	config = good;
	config.size = 0;
	assert_int_equal(mr_flow_create(ctx, &config, &table, &why), -EINVAL);
	assert_reason_has(&why, "mr_flow_config.size is 0");
	assert_null(table);
	mr_flow_destroy(NULL);
}

TEST_CTX(without_memory_there_is_no_table)
{
	struct mr_flow_table *table = NULL;
	struct mr_reason why;

	for (uint32_t i = 1; i <= 3; i++) {
		allocator.fail_at = allocator.n_calls + i;
		assert_int_equal(mr_flow_create(ctx, &good, &table, &why),
				 -ENOMEM);
		assert_reason_has(&why, "no memory for 0 records of 64 bytes");
	}
	assert_null(table);
}

TEST_CTX(the_largest_table_uses_addresses_not_memory)
{
	struct mr_flow_config config = good;
	struct mr_flow_table *table = NULL;
	uint32_t id;

	config.n_max = INT32_MAX;
	assert_int_equal(mr_flow_create(ctx, &config, &table, NULL), 0);
	id = flow_add(table, 1, 2);
	assert_int_equal(flow_find(table, 1, 2), id);
	assert_true(flow_stats(table).bytes < 64 << 10);
	assert_true(flow_resident_bytes(table) <= flow_stats(table).bytes);
	assert_int_equal(mr_flow_next(table, id), MR_FLOW_NONE);
	mr_flow_destroy(table);
}

/* Each byte of a key counts, at each length, aligned or not. */
TEST_CTX(all_bytes_of_a_key_are_compared)
{
	for (uint32_t n = 4; n <= MR_FLOW_KEY_MAX; n += 4) {
		struct mr_flow_config config = good;
		uint8_t bytes[MR_FLOW_KEY_MAX + 1] = { 0 };
		struct mr_flow_table *table = NULL;
		uint32_t id;

		config.key_bytes = n;
		config.seed = 0; /* drawn */
		assert_int_equal(mr_flow_create(ctx, &config, &table, NULL), 0);
		assert_int_equal(mr_flow_add(table, bytes + 1, &id), 0);
		for (uint32_t i = 1; i <= n; i++) {
			bytes[i] = 1;
			assert_int_equal(mr_flow_find(table, bytes + 1),
					 MR_FLOW_NONE);
			assert_int_equal(mr_flow_add(table, bytes + 1, &id), 0);
			assert_int_equal(mr_flow_find(table, bytes + 1), id);
			bytes[i] = 0;
		}
		assert_int_equal(flow_stats(table).n, n + 1);
		mr_flow_destroy(table);
	}
}

/* How the hash changes with a bit of the key. */
static uint32_t difference(const uint64_t keys[4], uint32_t bit)
{
	uint64_t key[2] = { 0x0a000001, 80 };
	const uint32_t before = mri_hash(keys, key, sizeof(key));

	key[bit / 64] ^= UINT64_C(1) << bit % 64;
	return before ^ mri_hash(keys, key, sizeof(key));
}

TEST(the_seed_decides_which_keys_collide)
{
	uint64_t keys[4], other_keys[4];
	uint32_t n_flipped = 0, n_same = 0;

	mri_hash_init(keys, 1);
	mri_hash_init(other_keys, 2);
	for (uint32_t i = 0; i < 128; i++) {
		const uint32_t bits = difference(keys, i);

		n_flipped += (uint32_t)__builtin_popcount(bits);
		/* A linear hash has one difference under all seeds. */
		n_same += bits == difference(other_keys, i);
	}
	assert_int_equal(n_same, 0);
	assert_in_range(n_flipped, 128 * 14, 128 * 18);
}

TEST_CTX(lists_are_in_order)
{
	enum { N = 40000 };
	struct mr_flow_table *table = flow_table(N, 0);
	uint32_t id, n = 0;

	assert_int_equal(mr_flow_next(table, MR_FLOW_NONE), MR_FLOW_NONE);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(flow_add(table, i, i), i);
	for (uint32_t i = 0; i < N; i++)
		if (i % 3 != 0)
			mr_flow_remove(table, i);
	for (id = mr_flow_next(table, MR_FLOW_NONE); id != MR_FLOW_NONE;
	     id = mr_flow_next(table, id))
		assert_int_equal(id, 3 * n++);
	assert_int_equal(n, (N + 2) / 3);
	/* Removed while it is listed. */
	n = 0;
	for (id = mr_flow_next(table, MR_FLOW_NONE); id != MR_FLOW_NONE;
	     id = mr_flow_next(table, id)) {
		mr_flow_remove(table, id);
		n++;
	}
	assert_int_equal(n, (N + 2) / 3);
	assert_int_equal(flow_stats(table).n, 0);
	assert_int_equal(mr_flow_next(table, 5), MR_FLOW_NONE);
	assert_int_equal(mr_flow_next(table, N), MR_FLOW_NONE);
	mr_flow_destroy(table);
}

TEST_CTX(memory_follows_the_number_of_flows)
{
	enum { N = 300000 };
	struct mr_flow_table *table = flow_table(N, 0);
	const struct mr_flow_stats before = flow_stats(table);
	struct mr_flow_stats s;

	assert_int_equal(before.n_max, N);
	assert_int_equal(before.n_buckets, 8);
	assert_true(before.bytes <= 8192);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N; i++)
			flow_add(table, i, round);
		s = flow_stats(table);
		assert_int_equal(s.n, N);
		assert_true(s.n_overflows > 0 && s.n_overflows < N / 20);
		assert_true(flow_resident_bytes(table) <= s.bytes);
		assert_true(s.bytes > N * UINT64_C(64) + N / 7 * 2 * 64);
		assert_true(s.bytes < N * UINT64_C(110));
		for (uint32_t i = 0; i < N; i++)
			mr_flow_remove(table, i);
		s = flow_stats(table);
		assert_int_equal(s.n, 0);
		assert_int_equal(s.n_overflows, 0);
		assert_int_equal(s.n_buckets, before.n_buckets);
		/* A small step of each part is not worth a system call. */
		assert_true(s.bytes <= before.bytes + 4 * MRI_SMALL_STEP);
		assert_true(flow_resident_bytes(table) <= s.bytes);
	}
	s.size = 0;
	assert_int_equal(mr_flow_stats(table, &s), -EINVAL);
	mr_flow_destroy(table);
}

TEST_CTX(expected_flows_need_no_more_memory)
{
	enum { N = 60000 };
	struct mr_flow_table *table = flow_table(2 * N, N);
	const uint64_t n_bytes = flow_stats(table).bytes;
	const uint32_t n_buckets = flow_stats(table).n_buckets;
	const uint64_t in_memory =
		flow_resident_bytes(table) -
		resident_bytes(table->overflows.space.base,
			       table->overflows.space.max_bytes);

	assert_true(in_memory >= N * UINT64_C(64));
	for (uint32_t i = 0; i < N; i++)
		flow_add(table, i, 0);
	assert_int_equal(flow_stats(table).n_buckets, n_buckets);
	assert_int_equal(
		flow_resident_bytes(table) -
			resident_bytes(table->overflows.space.base,
				       table->overflows.space.max_bytes),
		in_memory);
	for (uint32_t i = 0; i < N; i++)
		mr_flow_remove(table, i);
	assert_int_equal(flow_stats(table).n_buckets, n_buckets);
	assert_in_range(flow_stats(table).bytes, n_bytes,
			n_bytes + MRI_SMALL_STEP);
	mr_flow_destroy(table);
}

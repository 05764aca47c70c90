/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/flow/hand_over.c and of wheels in parcels: what was taken and
 * what was put go on alike.
 */
#include "support/flow_unit.h"

#include <millrace/experimental/flow_hand_over.h>

#include "support/carry.h"

enum { N_MAX = 100000, N_KEYS = 150000, RECORD_BYTES = 24, KEY_BYTES = 8 };

static uint64_t random_of(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return *state >> 33;
}

static struct mr_flow_table *make_table(uint32_t n_start)
{
	const struct mr_flow_config config = { .size = sizeof(config),
					       .key_bytes = KEY_BYTES,
					       .record_bytes = RECORD_BYTES,
					       .n_max = N_MAX,
					       .n_start = n_start };
	struct mr_flow_table *table = NULL;

	assert_int_equal(mr_flow_create(ctx, &config, &table, NULL), 0);
	return table;
}

/* Add or remove one of the keys, in both, with the same outcome. */
static void change(struct mr_flow_table *a, struct mr_flow_table *b,
		   uint64_t key, bool adds)
{
	uint32_t of_a = mr_flow_find(a, &key), of_b = of_a;

	if (b != NULL)
		assert_int_equal(mr_flow_find(b, &key), of_a);
	if (!adds) {
		mr_flow_remove(a, of_a);
		if (b != NULL)
			mr_flow_remove(b, of_a);
		return;
	}
	if (mr_flow_add(a, &key, &of_a) == 0)
		((uint64_t *)mr_flow_record(a, of_a))[1] = ~key;
	if (b == NULL)
		return;
	if (mr_flow_add(b, &key, &of_b) == 0)
		((uint64_t *)mr_flow_record(b, of_b))[1] = ~key;
	assert_int_equal(of_a, of_b);
}

static struct mr_flow_table *carry_table(const struct mr_flow_table *table,
					 struct mr_flow_table *taken)
{
	struct mr_parcel *parcel = mri_parcel_create(ctx);
	struct mr_reason why = { "" };

	mr_flow_put(table, parcel, "t");
	parcel = carry(ctx, parcel);
	if (mr_flow_take(ctx, parcel, "t", KEY_BYTES, RECORD_BYTES, &taken,
			 &why) < 0)
		fail_msg("%s", why.text);
	mri_parcel_destroy(parcel);
	return taken;
}

static void check_same(const struct mr_flow_table *a,
		       const struct mr_flow_table *b)
{
	struct mr_flow_stats of_a = { .size = sizeof(of_a) }, of_b = of_a;
	uint32_t id = MR_FLOW_NONE;

	mr_flow_stats(a, &of_a);
	mr_flow_stats(b, &of_b);
	of_a.bytes = of_b.bytes = 0; /* what shrank may be kept */
	assert_memory_equal(&of_a, &of_b, sizeof(of_a));
	while ((id = mr_flow_next(a, id)) != MR_FLOW_NONE)
		assert_memory_equal(mr_flow_record(a, id),
				    mr_flow_record(b, id), RECORD_BYTES);
}

TEST_CTX(a_table_goes_on_in_its_copy)
{
	static const uint32_t sizes[] = { 0, 1, 50, 3000, 90000, 100000 };
	uint64_t seed = 1;

	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct mr_flow_table *a = make_table(100), *b, *spare = NULL;

		if (i % 2 == 1) /* has memory for fewer, as many or more */
			spare = make_table(3000);
		for (uint32_t k = 0; k < sizes[i]; k++)
			change(a, NULL, random_of(&seed) % N_KEYS, true);
		for (uint32_t k = 0; k < sizes[i]; k++)
			change(a, NULL, random_of(&seed) % N_KEYS,
			       random_of(&seed) % 4 != 0);
		b = carry_table(a, spare);
		if (spare != NULL)
			assert_ptr_equal(b, spare);
		check_same(a, b);
		for (uint32_t k = 0; k < 50000; k++)
			change(a, b, random_of(&seed) % N_KEYS,
			       random_of(&seed) % 2 != 0);
		check_same(a, b);
		/* Empty both: chunks and buckets go back alike. */
		for (uint64_t key = 0; key < N_KEYS; key++)
			change(a, b, key, false);
		check_same(a, b);
		mr_flow_destroy(a);
		mr_flow_destroy(b);
	}
}

TEST_CTX(a_table_of_other_sizes_is_refused)
{
	struct mr_parcel *parcel = mri_parcel_create(ctx);
	struct mr_flow_table *table = make_table(100), *taken = NULL;
	struct mr_reason why = { "" };

	mr_flow_put(table, parcel, "t");
	parcel = carry(ctx, parcel);
	assert_int_equal(mr_flow_take(ctx, parcel, "t", KEY_BYTES,
				      RECORD_BYTES + 8, &taken, &why),
			 -EPROTO);
	assert_reason_has(&why, "the table t of the state is damaged");
	assert_int_equal(mr_flow_take(ctx, parcel, "u", KEY_BYTES,
				      RECORD_BYTES, &taken, &why),
			 -ENOENT);
	for (uint32_t i = 1; i <= 3; i++) {
		allocator.fail_at = allocator.n_calls + i;
		assert_int_equal(mr_flow_take(ctx, parcel, "t", KEY_BYTES,
					      RECORD_BYTES, &taken, &why),
				 -ENOMEM);
	}
	mri_parcel_destroy(parcel);
	mr_flow_destroy(table);
}

TEST_CTX(a_wheel_goes_on_in_its_copy)
{
	enum { N_IDS = 5000, N_SLOTS = 64, N_TICKS = 400 };
	struct mr_parcel *parcel = mri_parcel_create(ctx);
	struct mr_wheel *a = NULL, *b = NULL;
	struct mr_reason why = { "" };
	uint64_t seed = 1;
	uint32_t begin = UINT32_MAX - 100;

	assert_int_equal(mr_wheel_create(ctx, N_IDS, N_SLOTS, begin, &a, &why),
			 0);
	for (uint32_t i = 0; i < N_IDS - 3; i += 2)
		mr_wheel_set(a, i,
			     begin + (uint32_t)random_of(&seed) % N_TICKS);
	mr_wheel_put(a, parcel, "w");
	parcel = carry(ctx, parcel);
	/* One that has memory is used. */
	assert_int_equal(mr_wheel_create(ctx, N_IDS, N_SLOTS, 5, &b, &why), 0);
	mr_wheel_set(b, N_IDS - 1, 7);
	if (mr_wheel_take(ctx, parcel, "w", &b, &why) < 0)
		fail_msg("%s", why.text);
	mri_parcel_destroy(parcel);
	for (uint32_t tick = begin; tick != begin + N_TICKS; tick++) {
		uint32_t of_a[32], of_b[32], n;

		do {
			n = mr_wheel_expire(a, tick, of_a, 32);
			assert_int_equal(mr_wheel_expire(b, tick, of_b, 32),
					 n);
			assert_memory_equal(of_a, of_b, n * sizeof(of_a[0]));
		} while (n > 0);
		mr_wheel_set(a, tick % N_IDS, tick + 3);
		mr_wheel_set(b, tick % N_IDS, tick + 3);
	}
	assert_int_equal(mr_wheel_n(a), mr_wheel_n(b));
	mr_wheel_destroy(a);
	mr_wheel_destroy(b);
}

TEST_CTX(a_wheel_with_other_bytes_is_refused)
{
	static const uint32_t damaged[] = { 100, 64, 0, 50, 200, 0 };
	struct mr_parcel *parcel = mri_parcel_create(ctx);
	struct mr_wheel *wheel = NULL;
	struct mr_reason why = { "" };

	mr_parcel_put(parcel, "w", 1, damaged, sizeof(damaged));
	parcel = carry(ctx, parcel);
	assert_int_equal(mr_wheel_take(ctx, parcel, "w", &wheel, &why),
			 -EPROTO);
	assert_reason_has(&why, "the wheel w of the state is damaged");
	mri_parcel_destroy(parcel);
}

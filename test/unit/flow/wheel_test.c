/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/flow/wheel.c; a model of it is in test/fuzz/flow_fuzz.c. */
#include "support/flow_unit.h"

enum { N_IDS = 300, N_SLOTS = 16, BURST = 8 };

/* Where ticks wrap, and where they do not. */
static const uint32_t starts[] = { 0,           1,
				   N_SLOTS - 1, INT32_MAX - 3,
				   INT32_MAX,   UINT32_MAX - N_SLOTS,
				   UINT32_MAX };

static uint64_t n_given_back; /* bytes */

int __real_madvise(void *at, size_t n, int advice);
int __wrap_madvise(void *at, size_t n, int advice);

int __wrap_madvise(void *at, size_t n, int advice)
{
	if (advice == MADV_DONTNEED)
		n_given_back += n;
	return __real_madvise(at, n, advice);
}

static struct mr_wheel *wheel_at(uint32_t tick)
{
	struct mr_wheel *wheel = NULL;

	assert_int_equal(
		mr_wheel_create(ctx, N_IDS, N_SLOTS, tick, &wheel, NULL), 0);
	return wheel;
}

TEST_CTX(wrong_sizes_are_refused)
{
	static const struct {
		uint32_t n_max, n_slots;
		const char *says;
	} wrong[] = {
		{ 0, 16, "0 ids: must be 1 to 2147483647" },
		{ 1u << 31, 16, "2147483648 ids" },
		{ 10, 0, "0 slots: must be a power of two, 2 to 1048576" },
		{ 10, 1, "1 slots" },
		{ 10, 24, "24 slots" },
		{ 10, 1 << 21, "2097152 slots" },
	};
	struct mr_wheel *wheel = NULL;
	struct mr_reason why;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(mr_wheel_create(ctx, wrong[i].n_max,
						 wrong[i].n_slots, 0, &wheel,
						 &why),
				 -EINVAL);
		assert_reason_has(&why, wrong[i].says);
	}
	for (uint32_t i = 1; i <= 2; i++) {
		allocator.fail_at = allocator.n_calls + i;
		assert_int_equal(mr_wheel_create(ctx, 10, 16, 0, &wheel, &why),
				 -ENOMEM);
		assert_reason_has(&why, "no memory for a wheel of 16 slots");
	}
	assert_null(wheel);
	mr_wheel_destroy(NULL);
}

TEST_CTX(ids_expire_when_they_are_due)
{
	uint32_t ids[BURST];

	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		const uint32_t t = starts[s];
		struct mr_wheel *wheel = wheel_at(t);

		mr_wheel_set(wheel, 0, t);     /* now */
		mr_wheel_set(wheel, 1, t - 5); /* long ago */
		mr_wheel_set(wheel, 2, t + 1);
		mr_wheel_set(wheel, 3, t + 15); /* the horizon */
		mr_wheel_set(wheel, 4, t + 16); /* behind it */
		mr_wheel_set(wheel, 5, t + 100);
		assert_int_equal(mr_wheel_n(wheel), 6);
		assert_int_equal(mr_wheel_expire(wheel, t, ids, BURST), 2);
		assert_int_equal(ids[0] + ids[1], 1);
		/* Due in the tick that is being looked at, again. */
		mr_wheel_set(wheel, 0, t);
		assert_int_equal(mr_wheel_expire(wheel, t, ids, BURST), 1);
		assert_int_equal(ids[0], 0);
		assert_int_equal(mr_wheel_expire(wheel, t - 1, ids, BURST), 0);
		assert_int_equal(mr_wheel_expire(wheel, t + 1, ids, BURST), 1);
		assert_int_equal(ids[0], 2);
		assert_int_equal(mr_wheel_expire(wheel, t + 14, ids, BURST), 0);
		assert_int_equal(mr_wheel_expire(wheel, t + 16, ids, BURST), 2);
		assert_int_equal(ids[0] + ids[1], 7);
		assert_int_equal(mr_wheel_expire(wheel, t + 99, ids, BURST), 0);
		assert_int_equal(mr_wheel_expire(wheel, t + 5000, ids, BURST),
				 1);
		assert_int_equal(ids[0], 5);
		assert_int_equal(mr_wheel_n(wheel), 0);
		mr_wheel_destroy(wheel);
	}
}

TEST_CTX(set_moves_a_timer_and_cancel_removes_it)
{
	struct mr_wheel *wheel = wheel_at(7);
	uint32_t ids[BURST];

	mr_wheel_cancel(wheel, 3); /* nothing */
	for (uint32_t i = 0; i < 5; i++)
		mr_wheel_set(wheel, i, 9);
	mr_wheel_set(wheel, 2, 12);
	assert_int_equal(mr_wheel_n(wheel), 5);
	mr_wheel_cancel(wheel, 0); /* the last one of its slot */
	mr_wheel_cancel(wheel, 4); /* the first one */
	mr_wheel_cancel(wheel, 4);
	assert_int_equal(mr_wheel_n(wheel), 3);
	assert_int_equal(mr_wheel_expire(wheel, 9, ids, BURST), 2);
	assert_int_equal(ids[0] + ids[1], 4);
	assert_int_equal(mr_wheel_expire(wheel, 12, ids, BURST), 1);
	assert_int_equal(ids[0], 2);
	mr_wheel_destroy(wheel);
}

TEST_CTX(a_call_is_bounded)
{
	struct mr_wheel *wheel = wheel_at(0);
	uint32_t ids[BURST], n_calls = 1, n;

	for (uint32_t i = 0; i < N_IDS; i++)
		mr_wheel_set(wheel, i, i > 0 ? 100 : 15);
	/* 299 that are far are looked at before the one that is due. */
	while ((n = mr_wheel_expire(wheel, 15, ids, BURST)) == 0)
		n_calls++;
	assert_int_equal(n, 1);
	assert_int_equal(ids[0], 0);
	assert_int_equal(n_calls, (N_IDS - 1) / (BURST + 128) + 1);
	/* As many as were asked for, and the rest after that. */
	for (uint32_t i = 0; i < N_IDS; i += n) {
		n = mr_wheel_expire(wheel, 100, ids, BURST);
		if (i + n < N_IDS - 1)
			assert_int_equal(n, BURST);
		if (n == 0)
			break;
	}
	assert_int_equal(mr_wheel_n(wheel), 0);
	mr_wheel_destroy(wheel);
}

TEST_CTX(an_empty_wheel_has_no_memory)
{
	enum { N = 100000 };
	struct mr_wheel *wheel = NULL;
	uint32_t ids[BURST], n, n_out = 0;

	assert_int_equal(mr_wheel_create(ctx, N, N_SLOTS, 0, &wheel, NULL), 0);
	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < N; i++)
			mr_wheel_set(wheel, i, 3 + i % 5);
		do {
			n = mr_wheel_expire(wheel, 10, ids, BURST);
			n_out += n;
		} while (n == BURST);
		assert_in_range(n_given_back, N * 12, N * 12 + 4095);
		/* For so little it is not worth a system call. */
		mr_wheel_set(wheel, 1, 0);
		mr_wheel_cancel(wheel, 1);
		assert_true(n_given_back < N * 12 + 4096);
		n_given_back = 0;
	}
	/* By cancelling, too. */
	mr_wheel_set(wheel, N - 1, 0);
	mr_wheel_cancel(wheel, N - 1);
	assert_in_range(n_given_back, N * 12, N * 12 + 4095);
	assert_int_equal(n_out, 2 * N);
	mr_wheel_destroy(wheel);
}

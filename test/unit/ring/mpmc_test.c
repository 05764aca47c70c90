/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/ring/mpmc.c by one thread; ring_mt_test.c has several. */
#include "support/unit.h"

#include "ring/ring.h"

enum { CAPACITY = 8 };

/* The wrap at 2^32: see spsc_test.c. */
static const uint32_t starts[] = {
	0, 1, CAPACITY - 1, UINT32_MAX - CAPACITY, UINT32_MAX - 2, UINT32_MAX
};

static struct mr_ring_mpmc *ring_at(struct mr_ctx *ctx, uint32_t n_entries,
				    uint32_t start)
{
	struct mr_ring_mpmc *ring = NULL;

	assert_int_equal(mr_ring_mpmc_create(ctx, n_entries, &ring, NULL), 0);
	mri_ring_mpmc_start_at(ring, start);
	return ring;
}

static void fill(struct mr_frame *frames, uint32_t n, uint64_t first)
{
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ first + i, (uint32_t)first + i,
					       ~(uint32_t)(first + i) };
}

TEST(only_powers_of_two_are_sizes)
{
	static const uint32_t wrong[] = { 0,        1,       3,
					  6,        1000,    (1u << 20) + 1,
					  1u << 21, 1u << 31 };
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	struct mr_ring_mpmc *ring = NULL;
	struct mr_reason why = { "" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(
			mr_ring_mpmc_create(ctx, wrong[i], &ring, &why),
			-EINVAL);
		assert_reason_has(&why, "power of two, 2 to 1048576");
		assert_null(ring);
	}
	for (uint32_t n = 2; n <= 1u << 20; n *= 4) {
		assert_int_equal(mr_ring_mpmc_create(ctx, n, &ring, NULL), 0);
		mr_ring_mpmc_destroy(ring);
	}
	a.fail_at = a.n_calls + 1;
	ring = NULL;
	assert_int_equal(mr_ring_mpmc_create(ctx, 2, &ring, &why), -ENOMEM);
	assert_reason_has(&why, "no memory for a ring of 2 entries");
	assert_null(ring);
	mr_ring_mpmc_destroy(NULL);
	mr_ctx_destroy(ctx);
	assert_int_equal(a.n_out, 0);
}

TEST(order_and_capacity_hold)
{
	struct mr_frame in[CAPACITY + 4], out[CAPACITY + 4];
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);

	fill(in, CAPACITY + 4, 100);
	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		/* 2 is the least: full and empty are one turn apart there. */
		for (uint32_t n = 2; n <= CAPACITY; n *= 2) {
			struct mr_ring_mpmc *ring = ring_at(ctx, n, starts[s]);

			for (int round = 0; round < 3; round++) {
				assert_int_equal(mr_ring_mpmc_dequeue_burst(
							 ring, out, 1),
						 0);
				assert_int_equal(
					mr_ring_mpmc_enqueue_burst(ring, in, 0),
					0);
				assert_int_equal(mr_ring_mpmc_enqueue_burst(
							 ring, in, n + 4),
						 n);
				assert_int_equal(
					mr_ring_mpmc_enqueue_burst(ring, in, 1),
					0);
				assert_int_equal(mr_ring_mpmc_dequeue_burst(
							 ring, out, 0),
						 0);
				assert_int_equal(mr_ring_mpmc_dequeue_burst(
							 ring, out, n + 4),
						 n);
				assert_memory_equal(out, in, n * sizeof(in[0]));
			}
			mr_ring_mpmc_destroy(ring);
		}
	}
	mr_ctx_destroy(ctx);
	assert_int_equal(a.n_out, 0);
}

TEST(bursts_of_every_length_keep_order)
{
	struct mr_frame in[CAPACITY + 1], out[CAPACITY + 1], want[CAPACITY + 1];
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);

	for (uint32_t n_in = 1; n_in <= CAPACITY + 1; n_in++) {
		for (uint32_t n_out = 1; n_out <= CAPACITY + 1; n_out++) {
			struct mr_ring_mpmc *ring =
				ring_at(ctx, CAPACITY, UINT32_MAX - 40);
			uint64_t next_in = 0, next_out = 0;

			while (next_out < 200) {
				uint32_t k;

				fill(in, n_in, next_in);
				next_in += mr_ring_mpmc_enqueue_burst(ring, in,
								      n_in);
				k = mr_ring_mpmc_dequeue_burst(ring, out,
							       n_out);
				fill(want, k, next_out);
				assert_memory_equal(out, want,
						    k * sizeof(out[0]));
				next_out += k;
				assert_true(next_in - next_out <= CAPACITY);
			}
			mr_ring_mpmc_destroy(ring);
		}
	}
	mr_ctx_destroy(ctx);
}

/*
 * A producer that is stopped between its swap and its last store: consumers
 * take what is before it and get 0 at its entry; nobody waits.
 */
TEST(stopped_producer_delays_nobody_before_it)
{
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	struct mr_ring_mpmc *ring = ring_at(ctx, CAPACITY, UINT32_MAX);
	struct mr_frame in[4], out[4];

	fill(in, 4, 1);
	assert_int_equal(mr_ring_mpmc_enqueue_burst(ring, in, 2), 2);
	ring->head++; /* it has claimed a place, and stands */
	assert_int_equal(mr_ring_mpmc_enqueue_burst(ring, in + 3, 1), 1);
	assert_int_equal(mr_ring_mpmc_dequeue_burst(ring, out, 4), 2);
	assert_int_equal(mr_ring_mpmc_dequeue_burst(ring, out, 4), 0);
	ring->places[1].frame = in[2]; /* it goes on */
	__atomic_store_n(&ring->places[1].turn, 2, __ATOMIC_RELEASE);
	assert_int_equal(mr_ring_mpmc_dequeue_burst(ring, out, 4), 2);
	assert_memory_equal(out, in + 2, 2 * sizeof(in[0]));
	mr_ring_mpmc_destroy(ring);
	mr_ctx_destroy(ctx);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/ring/spsc.c by one thread; ring_mt_test.c has several. */
#include "support/unit.h"

#include "ring/ring.h"

enum { CAPACITY = 8 };

/*
 * The counters run freely and wrap at 2^32. Full and empty must stay apart
 * there too: comparing counters with < instead of subtracting them passes
 * every test that starts from 0.
 */
static const uint32_t starts[] = {
	0, 1, CAPACITY - 1, UINT32_MAX - CAPACITY, UINT32_MAX - 2, UINT32_MAX
};

struct fixture {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mr_ring_spsc *ring;
};

static void open_at(struct fixture *f, uint32_t start)
{
	memset(f, 0, sizeof(*f));
	f->ctx = test_ctx(&f->allocator);
	assert_int_equal(mr_ring_spsc_create(f->ctx, CAPACITY, &f->ring, NULL),
			 0);
	mri_ring_spsc_start_at(f->ring, start);
}

static void close_it(struct fixture *f)
{
	mr_ring_spsc_destroy(f->ring);
	mr_ctx_destroy(f->ctx);
	assert_int_equal(f->allocator.n_out, 0);
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
	struct mr_ring_spsc *ring = NULL;
	struct mr_reason why = { "" };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(
			mr_ring_spsc_create(ctx, wrong[i], &ring, &why),
			-EINVAL);
		assert_reason_has(&why, "power of two, 2 to 1048576");
		assert_null(ring);
	}
	for (uint32_t n = 2; n <= 1u << 20; n *= 4) {
		assert_int_equal(mr_ring_spsc_create(ctx, n, &ring, NULL), 0);
		mr_ring_spsc_destroy(ring);
	}
	a.fail_at = a.n_calls + 1;
	ring = NULL;
	assert_int_equal(mr_ring_spsc_create(ctx, 2, &ring, &why), -ENOMEM);
	assert_reason_has(&why, "no memory for a ring of 2 entries");
	assert_null(ring);
	mr_ring_spsc_destroy(NULL);
	mr_ctx_destroy(ctx);
	assert_int_equal(a.n_out, 0);
}

TEST(order_and_capacity_hold)
{
	struct mr_frame in[CAPACITY + 4], out[CAPACITY + 4];

	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		struct fixture f;

		open_at(&f, starts[s]);
		fill(in, CAPACITY + 4, 100);
		assert_int_equal(mr_ring_spsc_dequeue_burst(f.ring, out, 1), 0);
		assert_int_equal(mr_ring_spsc_enqueue_burst(f.ring, in, 0), 0);
		assert_int_equal(
			mr_ring_spsc_enqueue_burst(f.ring, in, CAPACITY + 4),
			CAPACITY);
		assert_int_equal(mr_ring_spsc_count(f.ring), CAPACITY);
		assert_int_equal(mr_ring_spsc_enqueue_burst(f.ring, in, 1), 0);
		assert_int_equal(mr_ring_spsc_dequeue_burst(f.ring, out, 0), 0);
		assert_int_equal(
			mr_ring_spsc_dequeue_burst(f.ring, out, CAPACITY + 4),
			CAPACITY);
		assert_memory_equal(out, in, CAPACITY * sizeof(in[0]));
		assert_int_equal(mr_ring_spsc_dequeue_burst(f.ring, out, 1), 0);
		assert_int_equal(mr_ring_spsc_count(f.ring), 0);
		close_it(&f);
	}
}

/* Every pair of burst lengths, long enough to go round several times. */
TEST(bursts_of_every_length_keep_order)
{
	struct mr_frame in[CAPACITY + 1], out[CAPACITY + 1], want[CAPACITY + 1];

	for (uint32_t n_in = 1; n_in <= CAPACITY + 1; n_in++) {
		for (uint32_t n_out = 1; n_out <= CAPACITY + 1; n_out++) {
			uint64_t next_in = 0, next_out = 0;
			struct fixture f;

			open_at(&f, UINT32_MAX - 40);
			while (next_out < 200) {
				uint32_t k;

				fill(in, n_in, next_in);
				next_in += mr_ring_spsc_enqueue_burst(f.ring,
								      in, n_in);
				k = mr_ring_spsc_dequeue_burst(f.ring, out,
							       n_out);
				fill(want, k, next_out);
				assert_memory_equal(out, want,
						    k * sizeof(out[0]));
				next_out += k;
				assert_int_equal(mr_ring_spsc_count(f.ring),
						 next_in - next_out);
				assert_true(next_in - next_out <= CAPACITY);
			}
			close_it(&f);
		}
	}
}

TEST(peek_takes_nothing_until_release)
{
	struct mr_frame in[6], out[6];

	for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++) {
		struct fixture f;

		open_at(&f, starts[s]);
		fill(in, 6, 7);
		assert_int_equal(mr_ring_spsc_peek_burst(f.ring, out, 6), 0);
		mr_ring_spsc_enqueue_burst(f.ring, in, 6);
		assert_int_equal(mr_ring_spsc_peek_burst(f.ring, out, 4), 4);
		assert_memory_equal(out, in, 4 * sizeof(in[0]));
		assert_int_equal(mr_ring_spsc_count(f.ring), 6);
		assert_int_equal(mr_ring_spsc_peek_burst(f.ring, out, 6), 6);
		mr_ring_spsc_release(f.ring, 0);
		mr_ring_spsc_release(f.ring, 2);
		assert_int_equal(mr_ring_spsc_count(f.ring), 4);
		assert_int_equal(mr_ring_spsc_dequeue_burst(f.ring, out, 6), 4);
		assert_memory_equal(out, in + 2, 4 * sizeof(in[0]));
		close_it(&f);
	}
}

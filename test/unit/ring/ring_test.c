/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/ring/spsc.c and mpmc.c by one thread; ring_mt_test.c has
 * several. What both promise is tested of both.
 */
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

enum { N_STARTS = sizeof(starts) / sizeof(starts[0]) };
enum kind { SPSC, MPMC, N_KINDS };

struct fixture {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	/* One of them. */
	struct mr_ring_spsc *spsc;
	struct mr_ring_mpmc *mpmc;
};

static int create(struct fixture *f, enum kind kind, uint32_t n_entries,
		  struct mr_reason *why)
{
	return kind == SPSC ?
		       mr_ring_spsc_create(f->ctx, n_entries, &f->spsc, why) :
		       mr_ring_mpmc_create(f->ctx, n_entries, &f->mpmc, why);
}

/* No ring is none to destroy. */
static void destroy(struct fixture *f)
{
	mr_ring_spsc_destroy(f->spsc);
	mr_ring_mpmc_destroy(f->mpmc);
	f->spsc = NULL;
	f->mpmc = NULL;
}

static void open_at(struct fixture *f, enum kind kind, uint32_t n_entries,
		    uint32_t start)
{
	memset(f, 0, sizeof(*f));
	f->ctx = test_ctx(&f->allocator);
	assert_int_equal(create(f, kind, n_entries, NULL), 0);
	if (kind == SPSC)
		mri_ring_spsc_start_at(f->spsc, start);
	else
		mri_ring_mpmc_start_at(f->mpmc, start);
}

static void close_it(struct fixture *f)
{
	destroy(f);
	mr_ctx_destroy(f->ctx);
	assert_int_equal(f->allocator.n_out, 0);
}

static uint32_t enqueue(struct fixture *f, const struct mr_frame *frames,
			uint32_t n)
{
	return f->spsc != NULL ?
		       mr_ring_spsc_enqueue_burst(f->spsc, frames, n) :
		       mr_ring_mpmc_enqueue_burst(f->mpmc, frames, n);
}

static uint32_t dequeue(struct fixture *f, struct mr_frame *frames, uint32_t n)
{
	return f->spsc != NULL ?
		       mr_ring_spsc_dequeue_burst(f->spsc, frames, n) :
		       mr_ring_mpmc_dequeue_burst(f->mpmc, frames, n);
}

/* Only one of them can tell. */
static void assert_count(const struct fixture *f, uint64_t n)
{
	if (f->spsc != NULL)
		assert_int_equal(mr_ring_spsc_count(f->spsc), n);
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
	struct mr_reason why = { "" };

	for (enum kind kind = 0; kind < N_KINDS; kind++) {
		struct fixture f = { .spsc = NULL };

		f.ctx = test_ctx(&f.allocator);
		for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
			assert_int_equal(create(&f, kind, wrong[i], &why),
					 -EINVAL);
			assert_reason_has(&why, "power of two, 2 to 1048576");
			assert_true(f.spsc == NULL && f.mpmc == NULL);
		}
		for (uint32_t n = 2; n <= 1u << 20; n *= 4) {
			assert_int_equal(create(&f, kind, n, NULL), 0);
			destroy(&f);
		}
		f.allocator.fail_at = f.allocator.n_calls + 1;
		assert_int_equal(create(&f, kind, 2, &why), -ENOMEM);
		assert_reason_has(&why, "no memory for a ring of 2 entries");
		assert_true(f.spsc == NULL && f.mpmc == NULL);
		close_it(&f);
	}
}

static void check_order(enum kind kind, uint32_t n, uint32_t start)
{
	struct mr_frame in[CAPACITY + 4], out[CAPACITY + 4];
	struct fixture f;

	open_at(&f, kind, n, start);
	fill(in, CAPACITY + 4, 100);
	for (int round = 0; round < 3; round++) {
		assert_int_equal(dequeue(&f, out, 1), 0);
		assert_int_equal(enqueue(&f, in, 0), 0);
		assert_int_equal(enqueue(&f, in, n + 4), n);
		assert_count(&f, n);
		assert_int_equal(enqueue(&f, in, 1), 0);
		assert_int_equal(dequeue(&f, out, 0), 0);
		assert_int_equal(dequeue(&f, out, n + 4), n);
		assert_memory_equal(out, in, n * sizeof(in[0]));
		assert_int_equal(dequeue(&f, out, 1), 0);
		assert_count(&f, 0);
	}
	close_it(&f);
}

TEST(order_and_capacity_hold)
{
	for (size_t s = 0; s < N_STARTS; s++)
		/* 2 is the least: full and empty are one turn apart there. */
		for (uint32_t n = 2; n <= CAPACITY; n *= 2)
			for (enum kind kind = 0; kind < N_KINDS; kind++)
				check_order(kind, n, starts[s]);
}

static void check_lengths(enum kind kind, uint32_t n_in, uint32_t n_out)
{
	struct mr_frame in[CAPACITY + 1], out[CAPACITY + 1], want[CAPACITY + 1];
	uint64_t next_in = 0, next_out = 0;
	struct fixture f;

	open_at(&f, kind, CAPACITY, UINT32_MAX - 40);
	while (next_out < 200) {
		uint32_t n = CAPACITY - (uint32_t)(next_in - next_out), k;

		fill(in, n_in, next_in);
		k = enqueue(&f, in, n_in);
		assert_int_equal(k, mri_min_u32(n_in, n));
		next_in += k;
		n = (uint32_t)(next_in - next_out);
		k = dequeue(&f, out, n_out);
		assert_int_equal(k, mri_min_u32(n_out, n));
		fill(want, k, next_out);
		assert_memory_equal(out, want, k * sizeof(out[0]));
		next_out += k;
		assert_count(&f, next_in - next_out);
		assert_true(next_in - next_out <= CAPACITY);
	}
	close_it(&f);
}

/* Every pair of burst lengths, long enough to go round several times. */
TEST(bursts_of_every_length_keep_order)
{
	for (uint32_t n_in = 1; n_in <= CAPACITY + 1; n_in++)
		for (uint32_t n_out = 1; n_out <= CAPACITY + 1; n_out++)
			for (enum kind kind = 0; kind < N_KINDS; kind++)
				check_lengths(kind, n_in, n_out);
}

TEST(peek_takes_nothing_until_release)
{
	struct mr_frame in[6], out[6];

	for (size_t s = 0; s < N_STARTS; s++) {
		struct fixture f;

		open_at(&f, SPSC, CAPACITY, starts[s]);
		fill(in, 6, 7);
		assert_int_equal(mr_ring_spsc_peek_burst(f.spsc, out, 6), 0);
		mr_ring_spsc_enqueue_burst(f.spsc, in, 6);
		assert_int_equal(mr_ring_spsc_peek_burst(f.spsc, out, 4), 4);
		assert_memory_equal(out, in, 4 * sizeof(in[0]));
		assert_count(&f, 6);
		assert_int_equal(mr_ring_spsc_peek_burst(f.spsc, out, 6), 6);
		mr_ring_spsc_release(f.spsc, 0);
		mr_ring_spsc_release(f.spsc, 2);
		assert_count(&f, 4);
		assert_int_equal(dequeue(&f, out, 6), 4);
		assert_memory_equal(out, in + 2, 4 * sizeof(in[0]));
		close_it(&f);
	}
}

/*
 * A producer that is stopped between its swap and its last store: consumers
 * take what is before it and get 0 at its entry; nobody waits.
 */
TEST(stopped_producer_delays_nobody_before_it)
{
	struct mr_frame in[4], out[4];
	struct fixture f;

	open_at(&f, MPMC, CAPACITY, UINT32_MAX);
	fill(in, 4, 1);
	assert_int_equal(enqueue(&f, in, 2), 2);
	f.mpmc->head++; /* it has claimed a place, and stands */
	assert_int_equal(enqueue(&f, in + 3, 1), 1);
	assert_int_equal(dequeue(&f, out, 4), 2);
	assert_int_equal(dequeue(&f, out, 4), 0);
	f.mpmc->places[1].frame = in[2]; /* it goes on */
	__atomic_store_n(&f.mpmc->places[1].turn, 2, __ATOMIC_RELEASE);
	assert_int_equal(dequeue(&f, out, 4), 2);
	assert_memory_equal(out, in + 2, 2 * sizeof(in[0]));
	close_it(&f);
}

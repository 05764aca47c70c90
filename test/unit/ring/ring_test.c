/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/ring/spsc.c by one thread; ring_mt_test.c has two. */
#include "support/unit.h"

#include "ring/ring.h"

enum { CAPACITY = 8 };

/*
 * A ring, against a queue that is too simple to be wrong: the addresses of the
 * entries in it are first, first + 1, ..., next - 1.
 */
enum { MODEL_BURST = 31 };

struct ring_model {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mr_ring_spsc *spsc;
	uint32_t n_entries;
	uint64_t first, next;
};

/* No ring is none to destroy. */
static void ring_destroy(struct ring_model *m)
{
	mr_ring_spsc_destroy(m->spsc);
	m->spsc = NULL;
}

/* start: of its counters, which wrap at 2^32. */
static void ring_open(struct ring_model *m, uint32_t n_entries, uint32_t start)
{
	memset(m, 0, sizeof(*m));
	m->n_entries = n_entries;
	m->ctx = test_ctx(&m->allocator);
	assert_int_equal(mr_ring_spsc_create(m->ctx, n_entries, &m->spsc, NULL),
			 0);
	mri_ring_spsc_start_at(m->spsc, start);
}

static void ring_close(struct ring_model *m)
{
	ring_destroy(m);
	mr_ctx_destroy(m->ctx);
	assert_int_equal(m->allocator.n_out, 0);
}

static struct mr_frame ring_entry(uint64_t number)
{
	return (struct mr_frame){ number, (uint32_t)number + 1,
				  ~(uint32_t)number };
}

static void ring_enqueue(struct ring_model *m, uint32_t n)
{
	const uint32_t n_room = m->n_entries - (uint32_t)(m->next - m->first);
	struct mr_frame frames[MODEL_BURST];
	uint32_t n_in;

	for (uint32_t i = 0; i < n; i++)
		frames[i] = ring_entry(m->next + i);
	n_in = mr_ring_spsc_enqueue_burst(m->spsc, frames, n);
	assert_int_equal(n_in, mri_min_u32(n, n_room));
	m->next += n_in;
}

/* is_peek: look at them, and take half of them. */
static void ring_dequeue(struct ring_model *m, uint32_t n, bool is_peek)
{
	const uint32_t n_there = (uint32_t)(m->next - m->first);
	struct mr_frame frames[MODEL_BURST];
	uint32_t n_out;

	n_out = is_peek ? mr_ring_spsc_peek_burst(m->spsc, frames, n) :
			  mr_ring_spsc_dequeue_burst(m->spsc, frames, n);
	assert_int_equal(n_out, mri_min_u32(n, n_there));
	for (uint32_t i = 0; i < n_out; i++) {
		const struct mr_frame want = ring_entry(m->first + i);

		assert_memory_equal(&frames[i], &want, sizeof(want));
	}
	if (is_peek)
		mr_ring_spsc_release(m->spsc, n_out /= 2);
	m->first += n_out;
}

/* A byte is a call: which one, and how many entries. */
static void ring_step(struct ring_model *m, uint8_t call)
{
	const uint32_t n = call & 31;

	if (call & 0x80)
		ring_dequeue(m, n, call & 0x40);
	else
		ring_enqueue(m, n);
	assert_int_equal(mr_ring_spsc_count(m->spsc), m->next - m->first);
}

TEST(only_powers_of_two_are_sizes)
{
	static const uint32_t wrong[] = { 0,        1,       3,
					  6,        1000,    (1u << 20) + 1,
					  1u << 21, 1u << 31 };
	struct mr_reason why = { "" };
	struct ring_model m = { .spsc = NULL };

	m.ctx = test_ctx(&m.allocator);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(
			mr_ring_spsc_create(m.ctx, wrong[i], &m.spsc, &why),
			-EINVAL);
		assert_reason_has(&why, "power of two, 2 to 1048576");
		assert_null(m.spsc);
	}
	for (uint32_t n = 2; n <= 1u << 20; n *= 4) {
		assert_int_equal(mr_ring_spsc_create(m.ctx, n, &m.spsc, NULL),
				 0);
		ring_destroy(&m);
	}
	m.allocator.fail_at = m.allocator.n_calls + 1;
	assert_int_equal(mr_ring_spsc_create(m.ctx, 2, &m.spsc, &why), -ENOMEM);
	assert_reason_has(&why, "no memory for a ring of 2 entries");
	assert_null(m.spsc);
	ring_close(&m);
}

/*
 * The counters run freely and wrap at 2^32. Full and empty must stay apart
 * there, too: comparing counters with < instead of subtracting them passes
 * every test that starts from 0.
 */
TEST(rings_are_queues)
{
	static const uint32_t starts[] = { 0,
					   1,
					   CAPACITY - 1,
					   UINT32_MAX - CAPACITY,
					   UINT32_MAX - 2,
					   UINT32_MAX };
	uint64_t random = UINT64_C(0x9e3779b97f4a7c15);

	/* 2 is the least: full and empty are one turn apart there. */
	for (uint32_t n = 2; n <= 4 * CAPACITY; n *= 2)
		for (uint32_t i = 0; i < 6; i++) {
			struct ring_model m;

			ring_open(&m, n, starts[i]);
			for (uint32_t k = 0; k < 3000; k++)
				ring_step(&m, (uint8_t)test_random(&random,
								   256));
			ring_close(&m);
		}
}

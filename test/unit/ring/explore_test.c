/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/ring/mpmc.c and spsc.c under all schedules with a few
 * preemptions; and that faults put there on purpose are found.
 */
#define mr_ring_mpmc_create stepped_mpmc_create
#define mr_ring_mpmc_destroy stepped_mpmc_destroy
#define mr_ring_mpmc_enqueue_burst stepped_mpmc_enqueue
#define mr_ring_mpmc_dequeue_burst stepped_mpmc_dequeue
#define mri_ring_mpmc_start_at stepped_mpmc_start_at
#define mr_ring_spsc_create stepped_spsc_create
#define mr_ring_spsc_destroy stepped_spsc_destroy
#define mr_ring_spsc_enqueue_burst stepped_spsc_enqueue
#define mr_ring_spsc_dequeue_burst stepped_spsc_dequeue
#define mr_ring_spsc_peek_burst stepped_spsc_peek
#define mr_ring_spsc_release stepped_spsc_release
#define mr_ring_spsc_count stepped_spsc_count
#define mri_ring_spsc_start_at stepped_spsc_start_at

#include "support/explore.h"
#include "support/unit.h"

#include "ring/ring.h"

#include "support/stepped.h"

#include "ring/mpmc.c"

#include "ring/spsc.c"

enum { CAPACITY = 2, MAX_ENTRIES = 16 };

static struct rings {
	bool is_early; /* the fault: entries published ahead of being written */
	uint32_t n_in, n_out, n_consumers;
	uint64_t out[MAX_ENTRIES];
	bool is_in[MAX_ENTRIES];
	_Alignas(MRI_CACHE_LINE) struct mr_ring_mpmc mpmc;
	struct mri_ring_place places[CAPACITY];
	_Alignas(MRI_CACHE_LINE) struct mr_ring_spsc spsc;
	struct mr_frame entries[CAPACITY];
} rings;

static struct mr_frame entry_of(uint64_t number)
{
	return (struct mr_frame){ number, (uint32_t)number + 1,
				  ~(uint32_t)number };
}

static void begin_rings(void *shared)
{
	struct rings *r = shared;
	const bool is_early = r->is_early;

	memset(r, 0, sizeof(*r));
	r->is_early = is_early;
	r->mpmc.n_entries = r->spsc.n_entries = CAPACITY;
	stepped_mpmc_start_at(&r->mpmc, UINT32_MAX);
	stepped_spsc_start_at(&r->spsc, UINT32_MAX);
}

/* As mr_ring_mpmc_enqueue_burst() must not be. */
static uint32_t enqueue_early(struct mr_ring_mpmc *ring,
			      const struct mr_frame *frames, uint32_t n)
{
	uint32_t first;

	n = claim(ring, &ring->head, 0, n, &first);
	for (uint32_t i = 0; i < n; i++) {
		struct mri_ring_place *place = place_at(ring, first + i);

		__atomic_store_n(&place->turn, first + i + 1, __ATOMIC_RELEASE);
		atomic_step();
		place->frame = frames[i];
	}
	return n;
}

static void enqueue(struct rings *r, uint64_t first, uint32_t n)
{
	const struct mr_frame frames[] = { entry_of(first),
					   entry_of(first + 1) };
	const uint32_t n_in = r->is_early ?
				      enqueue_early(&r->mpmc, frames, n) :
				      stepped_mpmc_enqueue(&r->mpmc, frames, n);

	explore_check(n_in <= n);
	for (uint32_t i = 0; i < n_in; i++)
		r->is_in[first + i] = true;
	r->n_in += n_in;
}

static void take(struct rings *r, const struct mr_frame *frames, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct mr_frame want = entry_of(frames[i].addr);

		explore_check(memcmp(&frames[i], &want, sizeof(want)) == 0);
		explore_check(r->n_out < MAX_ENTRIES);
		if (r->n_out < MAX_ENTRIES)
			r->out[r->n_out++] = frames[i].addr;
	}
}

static void dequeue(struct rings *r, uint32_t n)
{
	struct mr_frame frames[CAPACITY] = { 0 };

	take(r, frames, stepped_mpmc_dequeue(&r->mpmc, frames, n));
}

/* All that went in came out, once; each producer's in order. */
static void end_mpmc(void *shared)
{
	struct rings *r = shared;
	uint64_t last[2] = { 0, 0 };

	dequeue(r, CAPACITY);
	explore_check(r->n_out == r->n_in);
	for (uint32_t i = 0; i < r->n_out; i++) {
		const uint64_t number = r->out[i];

		explore_check(number < 8 && r->is_in[number]);
		if (number >= 8)
			return;
		r->is_in[number] = false;
		/* Two consumers may note what they took in another order. */
		explore_check(r->n_consumers > 1 || number > last[number / 4]);
		last[number / 4] = number;
	}
	/* As good as new. */
	enqueue(r, 14, 2);
	explore_check(r->n_in == r->n_out + CAPACITY);
}

static void enqueues_two_and_one(void *shared)
{
	enqueue(shared, 1, 2);
	enqueue(shared, 3, 1);
}

static void enqueues_one_and_two(void *shared)
{
	enqueue(shared, 5, 1);
	enqueue(shared, 6, 2);
}

static void dequeues_two_and_one(void *shared)
{
	dequeue(shared, 2);
	dequeue(shared, 1);
}

static void dequeues_one(void *shared)
{
	struct rings *r = shared;

	r->n_consumers = 2;
	dequeue(shared, 1);
}

static struct explore explore_mpmc(bool is_early, bool is_blind,
				   void (*a)(void *), void (*b)(void *),
				   void (*c)(void *), uint32_t max_preemptions)
{
	struct explore e = { .begin = begin_rings,
			     .threads = { a, b, c },
			     .end = end_mpmc,
			     .shared = &rings,
			     .n_threads = c != NULL ? 3 : 2,
			     .max_preemptions = max_preemptions };

	rings.is_early = is_early;
	stepped_fault.is_blind = is_blind;
	explore_all(&e);
	stepped_fault.is_blind = false;
	rings.is_early = false;
	return e;
}

TEST(mpmc_is_right)
{
	struct explore e;

	e = explore_mpmc(false, false, enqueues_two_and_one,
			 enqueues_one_and_two, NULL, 6);
	explore_assert_right(&e, 1000, 100);
	e = explore_mpmc(false, false, enqueues_two_and_one,
			 dequeues_two_and_one, NULL, 6);
	explore_assert_right(&e, 1000, 100);
	e = explore_mpmc(false, false, enqueues_two_and_one,
			 dequeues_two_and_one, dequeues_one, 3);
	explore_assert_right(&e, 1000, 100);
	e = explore_mpmc(false, false, enqueues_two_and_one,
			 enqueues_one_and_two, dequeues_two_and_one, 3);
	explore_assert_right(&e, 1000, 100);
}

TEST(faults_of_mpmc_are_found)
{
	struct explore e;

	e = explore_mpmc(true, false, enqueues_two_and_one,
			 dequeues_two_and_one, NULL, 2);
	assert_true(e.n_failures > 0);
	e = explore_mpmc(false, true, enqueues_two_and_one,
			 enqueues_one_and_two, NULL, 2);
	assert_true(e.n_failures > 0);
}

static void produces(void *shared)
{
	struct rings *r = shared;
	struct mr_frame frames[CAPACITY];

	for (uint32_t i = 0; i < 3; i++) {
		frames[0] = entry_of(r->n_in);
		frames[1] = entry_of(r->n_in + 1);
		r->n_in += stepped_spsc_enqueue(&r->spsc, frames, 1 + i % 2);
		explore_check(stepped_spsc_count(&r->spsc) <= CAPACITY);
	}
}

static void consumes(void *shared)
{
	struct rings *r = shared;
	struct mr_frame frames[CAPACITY];

	take(r, frames, stepped_spsc_dequeue(&r->spsc, frames, 1));
	take(r, frames, stepped_spsc_dequeue(&r->spsc, frames, 2));
	take(r, frames, stepped_spsc_dequeue(&r->spsc, frames, 2));
}

static void end_spsc(void *shared)
{
	struct rings *r = shared;

	explore_check(stepped_spsc_count(&r->spsc) == r->n_in - r->n_out);
	consumes(r);
	explore_check(r->n_out == r->n_in);
	for (uint32_t i = 0; i < r->n_out; i++)
		explore_check(r->out[i] == i);
}

TEST(spsc_is_right)
{
	struct explore e = { .begin = begin_rings,
			     .threads = { produces, consumes },
			     .end = end_spsc,
			     .shared = &rings,
			     .n_threads = 2,
			     .max_preemptions = 4 };

	explore_all(&e);
	explore_assert_right(&e, 1000, 100);
}

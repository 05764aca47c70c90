/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/ring/spsc.c under all schedules with a few
 * preemptions; and that faults put there on purpose are found.
 */
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

#include "ring/spsc.c"

enum { CAPACITY = 2, MAX_ENTRIES = 16 };

static struct rings {
	uint32_t n_in, n_out;
	uint64_t out[MAX_ENTRIES];
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

	memset(r, 0, sizeof(*r));
	r->spsc.n_entries = CAPACITY;
	stepped_spsc_start_at(&r->spsc, UINT32_MAX);
}

static void take_frames(struct rings *r, const struct mr_frame *frames,
			uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct mr_frame want = entry_of(frames[i].addr);

		explore_check(memcmp(&frames[i], &want, sizeof(want)) == 0);
		explore_check(r->n_out < MAX_ENTRIES);
		if (r->n_out < MAX_ENTRIES)
			r->out[r->n_out++] = frames[i].addr;
	}
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

	take_frames(r, frames, stepped_spsc_dequeue(&r->spsc, frames, 1));
	take_frames(r, frames, stepped_spsc_dequeue(&r->spsc, frames, 2));
	take_frames(r, frames, stepped_spsc_dequeue(&r->spsc, frames, 2));
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

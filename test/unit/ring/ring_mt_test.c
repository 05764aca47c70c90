/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/ring/spsc.c by two threads. */
#include "support/unit_ctx.h"

#include "support/mt.h"

#include "ring/ring.h"

enum { MAX_BURST = 40, CAPACITY = 64 };

struct shared {
	struct mr_ring_spsc *spsc;
	uint64_t n_entries;
};

/* All members follow from the number, so that a torn entry shows. */
static struct mr_frame entry_of(uint64_t number)
{
	return (struct mr_frame){ number, (uint32_t)(number * 2654435761u),
				  ~(uint32_t)number };
}

static bool is_entry(const struct mr_frame *frame)
{
	const struct mr_frame want = entry_of(frame->addr);

	return memcmp(frame, &want, sizeof(want)) == 0;
}

/* In bursts of random length, as fast as they fit. */
static void produce(struct mt_thread *thread)
{
	struct shared *shared = thread->run->shared;
	const uint64_t n = shared->n_entries;
	struct mr_frame burst[MAX_BURST];
	uint64_t n_done = 0;

	while (n_done < n && !mt_failed(thread->run)) {
		uint32_t k = 1 + mt_random(thread, MAX_BURST), n_in;

		if (k > n - n_done)
			k = (uint32_t)(n - n_done);
		for (uint32_t i = 0; i < k; i++)
			burst[i] = entry_of(n_done + i);
		n_in = mr_ring_spsc_enqueue_burst(shared->spsc, burst, k);
		mt_check(thread->run, n_in <= k);
		n_done += n_in;
		if (n_in == 0)
			sched_yield();
		mt_maybe_yield(thread, 100);
	}
}

/* One producer and one consumer: all entries, in order, none torn. */
static void spsc_body(struct mt_thread *thread)
{
	struct mt_run *run = thread->run;
	struct shared *shared = run->shared;
	struct mr_frame burst[MAX_BURST];
	uint64_t next = 0;

	if (thread->id == 1) {
		produce(thread);
		return;
	}
	while (next < shared->n_entries && !mt_failed(run)) {
		const uint32_t n = 1 + mt_random(thread, MAX_BURST);
		uint32_t k;

		/* Seldom: it orders what the calls below must order alone. */
		if (mt_random(thread, 1000) == 0)
			mt_check(run,
				 mr_ring_spsc_count(shared->spsc) <= CAPACITY);
		if (mt_random(thread, 2) == 0) {
			k = mr_ring_spsc_dequeue_burst(shared->spsc, burst, n);
		} else {
			k = mr_ring_spsc_peek_burst(shared->spsc, burst, n);
			k = mt_random(thread, k + 1);
			mr_ring_spsc_release(shared->spsc, k);
		}
		for (uint32_t i = 0; i < k; i++)
			if (!mt_check(run, burst[i].addr == next + i) ||
			    !mt_check(run, is_entry(&burst[i])))
				return;
		next += k;
		if (k == 0)
			sched_yield();
		mt_maybe_yield(thread, 100);
	}
	mt_check(run, mr_ring_spsc_count(shared->spsc) == 0);
}

TEST_CTX(spsc_keeps_order_under_load)
{
	struct shared shared = { .n_entries = mt_n_ops(2000000) };
	struct mt_run run = { .body = spsc_body,
			      .shared = &shared,
			      .n_threads = 2 };

	assert_int_equal(mr_ring_spsc_create(ctx, CAPACITY, &shared.spsc, NULL),
			 0);
	mri_ring_spsc_start_at(shared.spsc, UINT32_MAX - 10000);
	assert_int_equal(mt_run(&run), 0);
	mr_ring_spsc_destroy(shared.spsc);
}

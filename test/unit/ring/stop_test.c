/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/ring/mpmc.c while one of its users is stopped, ahead of each of
 * its atomic operations in turn: the others' calls return in a bounded number
 * of steps, what they get is right, and afterwards nothing is missing.
 */
#define mr_ring_mpmc_create stepped_create
#define mr_ring_mpmc_destroy stepped_destroy
#define mr_ring_mpmc_enqueue_burst stepped_enqueue
#define mr_ring_mpmc_dequeue_burst stepped_dequeue
#define mri_ring_mpmc_start_at stepped_start_at

#include "support/stop.h"

#include "ring/ring.h"

#include "support/stepped.h"

#include "ring/mpmc.c"

enum { CAPACITY = 8, N_OWN = 2, N_CHILD = 3 };

struct shared {
	uint32_t n_done; /* by the child, when it was at its end */
	struct mr_frame frames[CAPACITY];
	_Alignas(MRI_CACHE_LINE) struct mr_ring_mpmc ring;
	struct mri_ring_place places[CAPACITY];
};

/* Places and turns once at most per round, two rounds, one swap per round. */
static const uint64_t max_steps = 2 * (CAPACITY + 3) + CAPACITY;

static struct mr_frame entry_of(uint64_t number)
{
	return (struct mr_frame){ number, (uint32_t)number + 1,
				  ~(uint32_t)number };
}

static uint32_t enqueue(struct shared *s, uint64_t first, uint32_t n)
{
	struct mr_frame frames[CAPACITY];
	uint32_t n_in;

	for (uint32_t i = 0; i < n; i++)
		frames[i] = entry_of(first + i);
	assert_steps(max_steps, n_in = stepped_enqueue(&s->ring, frames, n));
	return n_in;
}

/* Append what is to be had to numbers[], of which there are *n. */
static void dequeue(struct shared *s, uint64_t *numbers, uint32_t *n)
{
	struct mr_frame frames[CAPACITY];
	uint32_t n_out;

	assert_steps(max_steps,
		     n_out = stepped_dequeue(&s->ring, frames, CAPACITY));
	for (uint32_t i = 0; i < n_out; i++) {
		const struct mr_frame want = entry_of(frames[i].addr);

		assert_memory_equal(&frames[i], &want, sizeof(want));
		numbers[(*n)++] = frames[i].addr;
	}
}

/* As good as new: it takes CAPACITY entries and gives them back in order. */
static void assert_usable(struct shared *s)
{
	for (uint32_t round = 0; round < 3; round++) {
		uint64_t numbers[CAPACITY];
		uint32_t n = 0;

		assert_int_equal(enqueue(s, 50, CAPACITY), CAPACITY);
		assert_int_equal(enqueue(s, 90, 1), 0);
		dequeue(s, numbers, &n);
		assert_int_equal(n, CAPACITY);
		for (uint32_t i = 0; i < CAPACITY; i++)
			assert_int_equal(numbers[i], 50 + i);
		dequeue(s, numbers, &n);
		assert_int_equal(n, CAPACITY);
	}
}

static struct shared *open_ring(uint32_t start)
{
	struct shared *s = stop_share(sizeof(*s));

	s->ring.n_entries = CAPACITY;
	stepped_start_at(&s->ring, start);
	return s;
}

/* 20, 21, 22. */
static void child_enqueues(void *opaque)
{
	struct shared *s = opaque;
	struct mr_frame frames[N_CHILD];

	for (uint32_t i = 0; i < N_CHILD; i++)
		frames[i] = entry_of(20 + i);
	s->n_done = stepped_enqueue(&s->ring, frames, N_CHILD);
}

static void child_dequeues(void *opaque)
{
	struct shared *s = opaque;

	s->n_done = stepped_dequeue(&s->ring, s->frames, N_CHILD);
}

/*
 * The order that may be seen: 10, 11 were there before; 20.. are the child's,
 * 30, 31 went in while it was stopped: they are before all of the child's, if
 * it had not reserved, and else behind them.
 */
static void assert_order(const uint64_t *numbers, uint32_t n)
{
	static const uint64_t reserved[] = { 10, 11, 20, 21, 22, 30, 31 };
	static const uint64_t not_yet[] = { 10, 11, 30, 31, 20, 21, 22 };
	const uint64_t *want = n > 2 && numbers[2] == 30 ? not_yet : reserved;

	assert_true(n <= N_OWN + N_CHILD + 2);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(numbers[i], want[i]);
}

TEST(stopped_producer)
{
	uint32_t n_reserved = 0, n_stops = 0;
	pid_t pid;

	for (uint64_t k = 1;; k++) {
		struct shared *s = open_ring(UINT32_MAX - 3);
		uint64_t numbers[2 * CAPACITY];
		uint32_t n = 0, n_while_stopped;
		bool is_stopped;

		assert_int_equal(enqueue(s, 10, N_OWN), N_OWN);
		is_stopped = stop_start(child_enqueues, s, k, &pid);
		assert_int_equal(enqueue(s, 30, 2), 2);
		dequeue(s, numbers, &n);
		dequeue(s, numbers, &n); /* nothing more, however often */
		n_while_stopped = n;
		assert_true(n >= N_OWN);
		if (is_stopped)
			stop_go_on(pid);
		assert_int_equal(s->n_done, N_CHILD);
		dequeue(s, numbers, &n);
		assert_int_equal(n, N_OWN + N_CHILD + 2);
		assert_order(numbers, n);
		assert_usable(s);
		/* Reserved, not published: those behind it wait for it. */
		n_reserved += n_while_stopped < N_OWN + 2;
		n_stops += is_stopped;
		munmap(s, sizeof(*s));
		if (!is_stopped)
			break;
	}
	/* It stopped in each window: before, and ahead of each turn. */
	assert_true(n_stops > N_CHILD + 1);
	assert_int_equal(n_reserved, 2);
}

TEST(stopped_consumer)
{
	uint32_t n_reserved = 0, n_stops = 0;
	pid_t pid;

	for (uint64_t k = 1;; k++) {
		struct shared *s = open_ring(UINT32_MAX - 3);
		uint64_t numbers[3 * CAPACITY];
		uint32_t n = 0, n_in, n_left;
		bool is_stopped;

		assert_int_equal(enqueue(s, 0, CAPACITY), CAPACITY);
		is_stopped = stop_start(child_dequeues, s, k, &pid);
		/* Places that it has not given back are not to be had. */
		n_in = enqueue(s, CAPACITY, CAPACITY);
		assert_true(n_in <= N_CHILD);
		assert_int_equal(n_in < N_CHILD ? enqueue(s, 90, 1) : 0, 0);
		dequeue(s, numbers, &n);
		n_left = n;
		assert_true(n == CAPACITY + n_in ||
			    n == CAPACITY - N_CHILD + n_in);
		if (is_stopped)
			stop_go_on(pid);
		/* Reserved before it stopped, or too late for any. */
		assert_true(s->n_done == 0 || s->n_done == N_CHILD);
		for (uint32_t i = 0; i < s->n_done; i++)
			assert_int_equal(s->frames[i].addr, i);
		n_in += enqueue(s, CAPACITY + n_in, CAPACITY);
		dequeue(s, numbers, &n);
		assert_int_equal(n + s->n_done, CAPACITY + n_in);
		for (uint32_t i = 0; i < n; i++)
			assert_int_equal(numbers[i], i + s->n_done);
		assert_usable(s);
		n_reserved += is_stopped && n_left < CAPACITY;
		n_stops += is_stopped;
		munmap(s, sizeof(*s));
		if (!is_stopped)
			break;
	}
	assert_true(n_stops > N_CHILD + 1);
	assert_int_equal(n_reserved, N_CHILD);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/worker/idle.c and adapt.c, on one thread and with a clock that
 * the test moves: what a worker does at the end of a round.
 */
#include <unistd.h>

#include "fixture.h"

static uint64_t now_ns;
static uint32_t n_clock_reads;
/* Its clock moves on between the two readings around poll(). */
static const struct mri_worker *sleeper;
static uint64_t sleeper_wakes_ns;
static uint32_t n_reads_asleep;

static uint64_t test_clock(void *opaque)
{
	(void)opaque;
	n_clock_reads++;
	if (sleeper == NULL || !sleeper->is_asleep)
		n_reads_asleep = 0;
	else if (++n_reads_asleep == 2 && now_ns < sleeper_wakes_ns)
		now_ns = sleeper_wakes_ns;
	return now_ns;
}

static struct mr_worker_stats stats_of(const struct mr_worker *worker)
{
	struct mr_worker_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_worker_stats(worker, &stats), 0);
	return stats;
}

/* One round that took some time by the test's clock. */
static void round_of(struct mr_worker *worker, uint32_t n_moved, uint64_t ns)
{
	now_ns += ns;
	assert_int_equal(mr_worker_wait(worker, n_moved), 1);
}

static struct mr_worker *begin_worker(enum mr_idle_mode idle)
{
	struct mr_worker *worker;

	now_ns = 1000;
	fixture_open(test_clock, 1, idle);
	worker = mr_workers_get(fixture.workers, 0);
	mri_idle_begin(mri_worker_of(worker));
	return worker;
}

FIXTURE_TEST(busy_and_idle_time_add_up)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_POLL);
	struct mr_worker_stats stats;

	round_of(worker, 0, 100); /* the first: idle, but for its beginning */
	round_of(worker, 0, 100);
	round_of(worker, 5, 700);
	round_of(worker, 0, 50);
	round_of(worker, 9, 300);
	round_of(worker, 9, 300);
	round_of(worker, 0, 0);
	stats = stats_of(worker);
	assert_int_equal(stats.rounds, 7);
	assert_int_equal(stats.empty_rounds, 4);
	assert_int_equal(stats.busy_ns + stats.idle_ns, 1550);
	/* A change to idle is seen at the end of the first empty round: its
	 * time counts as busy, 100 and 50 here. */
	assert_int_equal(stats.busy_ns, 100 + 700 + 50 + 600);
	assert_int_equal(stats.sleeps, 0);
}

FIXTURE_TEST(the_clock_is_not_read_at_full_load)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_ADAPTIVE);

	n_clock_reads = 0;
	for (uint32_t i = 0; i < 2560; i++)
		round_of(worker, 256, 1000);
	assert_true(n_clock_reads <= 10);
	assert_int_equal(stats_of(worker).busy_ns, 2560 * 1000);
}

FIXTURE_TEST(polling_never_sleeps)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_POLL);

	for (uint32_t i = 0; i < 1000; i++)
		round_of(worker, 0, 1000000);
	assert_int_equal(stats_of(worker).sleeps, 0);
}

FIXTURE_TEST(gaps_and_wake_up_cost_decide_whether_to_sleep)
{
	static const struct {
		uint64_t gap_us, wake_us;
		bool sleeps;
	} rows[] = {
		{ 1, 0, false },      { 100, 0, false },
		{ 100, 1000, false }, { 1000, 10, true },
		{ 1000, 50, true },   { 1000, 200, false },
		{ 10000, 10, true },  { 10000, 5000, true },
	};

	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		const uint64_t gap_ns = rows[r].gap_us * 1000;
		struct mri_adapt a;

		mri_adapt_begin(&a);
		for (uint32_t i = 0; i < 50; i++)
			mri_adapt_wake(&a, rows[r].wake_us * 1000);
		assert_in_range(a.limit_ns, 200000, 2000000);
		for (uint32_t i = 0; i < 1000; i++)
			mri_adapt_gap(&a, gap_ns, 0);
		assert_int_equal(a.limit_ns < gap_ns, rows[r].sleeps);
	}
}

/*
 * A frame each gap_ns, and rounds of 1 us until all n were forwarded. A sleep
 * ends wake_ns after the next frame came. Returns how many sleeps there were.
 */
static uint64_t forward_frames(struct mr_worker *worker, uint64_t gap_ns,
			       uint64_t wake_ns, uint32_t n)
{
	const uint64_t one = 1, n_before = stats_of(worker).sleeps;
	uint64_t due_ns = now_ns + gap_ns;

	sleeper = mri_worker_of(worker);
	while (n > 0) {
		uint32_t n_due = 0;

		sleeper_wakes_ns = due_ns + wake_ns;
		/* A sleep of the test takes no time: its poll() returns. */
		assert_int_equal(write(sleeper->wake_fd, &one, sizeof(one)),
				 sizeof(one));
		while (n > n_due && due_ns <= now_ns) {
			due_ns += gap_ns;
			n_due++;
		}
		round_of(worker, n_due, 1000);
		n -= n_due;
	}
	sleeper = NULL;
	return stats_of(worker).sleeps - n_before;
}

FIXTURE_TEST(adaptive_learns_when_to_sleep)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_ADAPTIVE);

	assert_int_equal(forward_frames(worker, 100000, 60000, 5000), 0);
	forward_frames(worker, 10000000, 60000, 100);
	assert_int_equal(forward_frames(worker, 10000000, 60000, 100), 100);
	/* 10,000 frames/s again, now with wake-ups that take 7 gaps. */
	forward_frames(worker, 100000, 700000, 1000);
	assert_int_equal(forward_frames(worker, 100000, 700000, 5000), 0);
}

FIXTURE_TEST(interrupt_sleeps_at_once_and_longer_each_time)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_INTERRUPT);

	sleeper = mri_worker_of(worker);
	for (uint32_t i = 0; i < 4; i++) {
		sleeper_wakes_ns = now_ns + 1000 + (1000000u << i);
		round_of(worker, 0, 1000);
	}
	assert_int_equal(stats_of(worker).sleeps, 4);
	assert_int_equal(sleeper->tick_ms, 16);
	round_of(worker, 1, 1000);
	sleeper_wakes_ns = now_ns + 1000 + 1000000;
	round_of(worker, 0, 1000);
	sleeper = NULL;
	assert_int_equal(mri_worker_of(worker)->tick_ms, 2);
}

/* A frame in an rx queue: arming says so, and there is no sleep. */
FIXTURE_TEST(the_mode_changes_with_the_next_round)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_POLL);

	round_of(worker, 0, 1000);
	assert_int_equal(stats_of(worker).sleeps, 0);
	assert_int_equal(
		mr_workers_set_idle(worker->workers, MR_IDLE_INTERRUPT), 0);
	round_of(worker, 0, 1000); /* it was woken */
	round_of(worker, 0, 1000);
	assert_int_equal(stats_of(worker).sleeps, 1);
	assert_int_equal(mr_workers_set_idle(worker->workers, MR_IDLE_POLL), 0);
	for (uint32_t i = 0; i < 10; i++)
		round_of(worker, 0, 1000);
	assert_int_equal(stats_of(worker).sleeps, 1);
	assert_int_equal(
		mr_workers_set_idle(worker->workers, (enum mr_idle_mode)3),
		-EINVAL);
}

FIXTURE_TEST(work_that_came_before_the_sleep_prevents_it)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_INTERRUPT);
	struct mr_frame frame;

	fixture_frames(fixture.cache, &frame, 1);
	assert_int_equal(mr_tx_burst(mr_port_txq(fixture.far[1], 0),
				     fixture.cache, &frame, 1),
			 1);
	round_of(worker, 0, 1000);
	assert_int_equal(stats_of(worker).sleeps, 0);
}

FIXTURE_TEST(a_call_prevents_one_sleep)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_INTERRUPT);

	mr_worker_wake(worker);
	mr_worker_wake(worker);
	round_of(worker, 0, 1000);
	assert_int_equal(stats_of(worker).sleeps, 0);
	/* The call was heard; what it was about has had its round. */
	round_of(worker, 0, 1000);
	assert_int_equal(stats_of(worker).sleeps, 1);
}

FIXTURE_TEST(stop_prevents_a_sleep_and_ends_the_loop)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_INTERRUPT);

	mr_workers_stop(fixture.workers);
	assert_int_equal(mr_worker_wait(worker, 0), 0);
	assert_int_equal(mr_worker_wait(worker, 1), 0);
	assert_int_equal(stats_of(worker).sleeps, 0);
	/* Without a thread of the library's, it can run again. */
	assert_int_equal(mr_workers_start(fixture.workers, NULL, NULL, NULL),
			 0);
	assert_int_equal(mr_worker_wait(worker, 1), 1);
	assert_int_equal(mr_workers_join(fixture.workers, 0, NULL), 0);
}

/* Whether a worker's epoll set wakes whoever waits for it. */
static bool is_due(struct mr_worker *worker)
{
	struct pollfd fd = { .fd = mr_worker_fd(worker, NULL),
			     .events = POLLIN };

	assert_true(fd.fd >= 0);
	return poll(&fd, 1, 0) == 1;
}

FIXTURE_TEST(a_pausing_worker_wakes_another_loop)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_INTERRUPT);
	struct mr_frame frame, frames[MR_BURST_MAX];

	/* Frames. */
	assert_int_equal(mr_worker_pause(worker, 0), 1);
	assert_false(is_due(worker));
	fixture_frames(fixture.cache, &frame, 1);
	assert_int_equal(mr_tx_burst(mr_port_txq(fixture.far[1], 0),
				     fixture.cache, &frame, 1),
			 1);
	assert_true(is_due(worker));
	now_ns += 500000;
	mr_worker_resume(worker);
	assert_int_equal(stats_of(worker).sleeps, 1);
	assert_int_equal(stats_of(worker).asleep_ns, 500000);
	assert_int_equal(mr_rx_burst(mr_port_rxq(fixture.near[1], 0),
				     worker->cache, frames, MR_BURST_MAX),
			 1);
	mr_frame_free_bulk(worker->cache, frames, 1);
	assert_int_equal(mr_worker_pause(worker, 1), 0);

	/* A call. */
	assert_int_equal(mr_worker_pause(worker, 0), 1);
	mr_worker_wake(worker);
	assert_true(is_due(worker));
	mr_worker_resume(worker);
	assert_int_equal(mr_worker_pause(worker, 0), 0); /* it was heard */
	assert_int_equal(mr_worker_pause(worker, 0), 1);
	assert_false(is_due(worker));

	/* An event that is not the worker's. */
	now_ns += 1000;
	mr_worker_resume(worker);
	assert_int_equal(mr_worker_pause(worker, 0), 1);

	/* Nothing: the next wait may be longer. */
	now_ns += 1000000;
	mr_worker_resume(worker);
	assert_int_equal(mr_worker_pause(worker, 0), 2);

	/* The end. */
	mr_workers_stop(fixture.workers);
	assert_true(is_due(worker));
	mr_worker_resume(worker);
	assert_int_equal(mr_worker_pause(worker, 0), -ECANCELED);
}

FIXTURE_TEST(a_pause_is_refused_where_a_wait_is_refused)
{
	struct mr_worker *worker = begin_worker(MR_IDLE_POLL);

	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(mr_worker_pause(worker, 0), 0);
	assert_int_equal(stats_of(worker).empty_rounds, 100);
	assert_int_equal(stats_of(worker).sleeps, 0);
}

static bool is_readable(int fd)
{
	uint64_t count;

	return read(fd, &count, sizeof(count)) == sizeof(count);
}

/*
 * Both orders of the hand-off's two exchanges. A producer that comes second
 * finds the sleeper; a sleeper that comes second finds the frames.
 */
FIXTURE_TEST(a_worker_does_not_sleep_with_handed_off_frames)
{
	struct mr_worker *from, *owner;
	struct mri_worker *inside;
	struct mr_frame frame;
	uint32_t port;

	from = fixture_open_handoff(test_clock, MR_IDLE_INTERRUPT, &port);
	owner = mr_workers_get(fixture.workers, from->routes[port].owner_idx);
	inside = mri_worker_of(owner);

	/* The producer is second. */
	inside->is_asleep = 1;
	fixture_frames(from->cache, &frame, 1);
	assert_int_equal(mr_worker_send(from, port, &frame, 1), 1);
	assert_int_equal(inside->is_asleep, 0);
	assert_true(is_readable(inside->wake_fd));

	/* The sleeper is second: the frame is still in the ring. */
	round_of(owner, 0, 1000);
	assert_int_equal(stats_of(owner).sleeps, 0);

	/* An awake owner costs the producer no system call. */
	fixture_frames(from->cache, &frame, 1);
	assert_int_equal(mr_worker_send(from, port, &frame, 1), 1);
	assert_false(is_readable(inside->wake_fd));
}

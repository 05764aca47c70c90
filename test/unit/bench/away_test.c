/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of away.c: stalls that the test causes, and how they are reported. */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "net/away.h"
#include "net/tester.h"
#include "support/test.h"

#define MS 1000000ull

TEST(lateness_is_divided_among_its_causes)
{
	/* Threads were away at 100..200, half of it waiting, and 300..400; and
	 * the other one at 150..250. */
	static const struct away sender = {
		.spans = { .n = 2,
			   .all = { { 100, 200, 50, 0, false },
				    { 300, 400, 0, 0, true } } },
	};
	static const struct away receiver = {
		.spans = { .n = 1, .all = { { 150, 250, 100, 0, false } } },
	};
	static const struct {
		struct span late;
		bool is_one; /* thread */
		uint64_t waited, still, called;
	} rows[] = {
		{ { 0, 100, 0, 0, 0 }, false, 0, 0, 0 },
		{ { 0, 500, 0, 0, 0 }, false, 100, 50, 100 },
		{ { 0, 500, 0, 0, 0 }, true, 50, 50, 100 },
		{ { 120, 140, 0, 0, 0 }, false, 10, 10, 0 },
		{ { 180, 260, 0, 0, 0 }, false, 60, 10, 0 },
		{ { 260, 310, 0, 0, 0 }, false, 0, 0, 10 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct trial_tail tail = { 0 };

		tail_add(&tail, &rows[i].late, &sender,
			 rows[i].is_one ? &sender : &receiver);
		assert_int_equal(tail.late_ns,
				 rows[i].late.end_ns - rows[i].late.start_ns);
		assert_int_equal(tail.waited_ns, rows[i].waited);
		assert_int_equal(tail.still_ns, rows[i].still);
		assert_int_equal(tail.called_ns, rows[i].called);
	}
}

TEST(the_longest_spans_are_kept)
{
	static struct spans spans = { .least_ns = 10 };

	for (uint64_t i = 0; i < 10 * MAX_SPANS; i++) {
		const uint64_t ns = i % 1000 == 0 ? 1000000 : i % 100;
		const struct span span = { .start_ns = 1000000 * i,
					   .end_ns = 1000000 * i + ns };

		spans_add(&spans, &span);
	}
	assert_true(spans.n < MAX_SPANS);
	for (uint64_t i = 0, n = 0; n < 10 * MAX_SPANS; i++) {
		if (spans.all[i].end_ns - spans.all[i].start_ns < 1000000)
			continue;
		assert_int_equal(spans.all[i].start_ns, 1000000 * n);
		n += 1000;
	}
}

/* More stalls of one length than there is room for: the last ones stay, and
 * frames that were late before these are not counted as unexplained. */
TEST(half_of_too_many_equal_spans_are_kept)
{
	static struct away away = { .spans = { .least_ns = AWAY_NS } };
	struct trial_tail tail = { 0 };

	for (uint64_t i = 0; i < 10 * MAX_SPANS; i++) {
		const struct span span = { .start_ns = 10 * MS * i,
					   .end_ns = 10 * MS * i + 4 * MS };

		spans_add(&away.spans, &span);
	}
	assert_in_range(away.spans.n, MAX_SPANS / 2, MAX_SPANS);
	for (uint64_t i = 0; i < 10 * MAX_SPANS; i++) {
		const struct span late = { .start_ns = 10 * MS * i,
					   .end_ns = 10 * MS * i + 4 * MS };

		tail_add(&tail, &late, &away, NULL);
	}
	assert_true(tail.late_ns >= MAX_SPANS / 2 * 4 * MS);
	assert_int_equal(tail.still_ns, tail.late_ns);
}

/* The kernel's count of the time that a thread waited for its core. */
static void say_waited(int fd, uint64_t ns)
{
	char text[64];
	const int n = snprintf(text, sizeof(text), "1 %llu 1\n",
			       (unsigned long long)ns);

	assert_int_equal(pwrite(fd, text, (size_t)n, 0), n);
}

TEST(waits_of_short_rounds_do_not_explain_a_long_one)
{
	static struct away away;
	uint64_t now = 1, waited = 0;

	away_begin(&away, 0, 0);
	assert_int_equal(close(away.schedstat_fd), 0);
	away.schedstat_fd = memfd_create("schedstat", MFD_CLOEXEC);
	assert_true(away.schedstat_fd >= 0);
	/* A second of rounds in which the thread waits half of the time. */
	for (uint32_t i = 0; i < 100000; i++, now += 10000) {
		waited += 5000;
		say_waited(away.schedstat_fd, waited);
		away_round(&away, now, now + 10000, false, false);
	}
	/* Then one that the host stops. */
	away_round(&away, now, now + 100 * MS, false, false);
	assert_int_equal(away.spans.n, 1);
	assert_true(away.spans.all[0].waited_ns <= AWAY_READ_NS);
	assert_true(away.still_ns >= 100 * MS - AWAY_READ_NS);
	away_end(&away);
}

enum stall { STALL_HOG, STALL_STOP };

/* A child that keeps the core busy, or stops its parent again and again. */
static pid_t stall(enum stall how, uint32_t core)
{
	const struct timespec pause = { .tv_nsec = 3 * MS };
	const pid_t parent = getpid(), pid = fork();
	cpu_set_t set;

	if (pid != 0)
		return pid;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	if (how == STALL_HOG && sched_setaffinity(0, sizeof(set), &set) < 0)
		_exit(1);
	while (getppid() == parent) {
		if (how == STALL_HOG)
			continue;
		nanosleep(&pause, NULL);
		kill(parent, SIGSTOP);
		nanosleep(&pause, NULL);
		kill(parent, SIGCONT);
	}
	_exit(0);
}

/*
 * Frames over memory, so that all latency is the tester's: at least 90 % of the
 * latency of late frames is explained.
 */
TEST(stalls_are_attributed)
{
	static const char *const ports[] = { "pair:a" };
	static const struct {
		enum stall how;
		uint32_t n_workers;
	} rows[] = { { STALL_HOG, 1 }, { STALL_STOP, 1 }, { STALL_HOG, 2 } };
	static struct trial_result result;
	const struct trial_config trial = { .pps = 20000,
					    .duration_ns = 500 * MS,
					    .max_lag_ns = 1000 * MS };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct tester_config config = {
			.tx = ports,
			.n_tx = 1,
			.rx = ports,
			.n_rx = 1,
			.plane = { .program = "away-test",
				   .log_level = MR_LOG_ERROR,
				   .n_workers = rows[i].n_workers },
		};
		const struct trial_tail *tail = &result.tail;
		struct tester *tester = NULL;
		uint64_t known_ns, cause_ns;
		struct mr_reason why;
		uint32_t core;
		int status;
		pid_t pid;

		if (sysconf(_SC_NPROCESSORS_ONLN) < rows[i].n_workers)
			continue;
		assert_int_equal(tester_open(&config, &tester, &why), 0);
		tester_cores(tester, &core, 1);
		pid = stall(rows[i].how, core);
		assert_true(pid > 0);
		assert_int_equal(tester_run(tester, &trial, &result, &why), 0);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);

		known_ns = tail->waited_ns + tail->still_ns + tail->called_ns;
		cause_ns = rows[i].how == STALL_HOG ? tail->all_waited_ns :
						      tail->all_still_ns;
		if (known_ns * 10 < tail->late_ns * 9)
			fail_msg("row %zu: %llu of %llu us", i,
				 (unsigned long long)known_ns / 1000,
				 (unsigned long long)tail->late_ns / 1000);
		assert_true(tail->late_ns >= hist_at(&result.latency, 99.9));
		assert_true(hist_at(&result.latency, 99.9) >= 2 * MS);
		assert_true(tail->tx_away_ns >= 2 * MS);
		assert_true(cause_ns >= 2 * MS);
		trial_result_free(&result);
		assert_int_equal(tester_close(tester), 0);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing leave nothing behind. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "suite.h"

enum { BURST = 32 };

static void send_some(struct harness *harness, uint32_t n)
{
	struct mr_frame frames[BURST];

	for (uint32_t i = 0; i < n; i++)
		harness_make_frame(harness, &frames[i], 1, 128, 60, i);
	harness_tx(harness, frames, n);
}

static void receive_some(struct harness *harness)
{
	struct mr_frame frames[BURST];
	const uint32_t n_rx = harness_rx(harness, frames, BURST);

	assert_true(n_rx > 0);
	harness_free(harness, frames, n_rx);
}

HARNESS_TEST(closed_and_reopened_it_works_again)
{
	const struct wish wish = wish_frames(200);
	struct harness *harness = harness_make(&wish);

	for (uint32_t round = 0; round < harness->fixture->n_reopens; round++) {
		/* Some received, some in progress in both directions. */
		receive_some(harness);
		send_some(harness, 1 + round % BURST);
		harness_close(harness);
		if (harness->fixture->traits & FIXTURE_KEEPS)
			harness_collect_last(harness, 1 + round % BURST, 0);
		harness_open(harness);
	}
	harness_end(harness);
}

/*
 * Closed before another port on its pool, it leaves nothing behind: that port
 * and the pool go, and it works again on the next pool, elsewhere in memory.
 */
HARNESS_TEST(closed_first_it_opens_on_the_next_pool)
{
	const struct wish wish = wish_frames(200);
	const char *spec = harness_fixture()->sink_spec;
	struct mr_reason why;
	struct harness *harness;

	harness_lack(FIXTURE_SAME_POOL, "its far side has the pool");
	harness = harness_make(&wish);
	for (uint32_t round = 0; round < harness->fixture->n_reopens; round++) {
		const struct mr_port_config config = { .size = sizeof(config),
						       .pool = harness->pool };
		struct mr_port *sink;

		if (mr_port_open(harness->ctx, spec != NULL ? spec : "null:",
				 &config, &sink, &why) < 0)
			fail_msg("%s", why.text);
		receive_some(harness);
		send_some(harness, BURST);
		harness_close(harness);
		if (harness->fixture->traits & FIXTURE_KEEPS)
			harness_collect_rest(harness);
		mr_port_close(sink);
		harness_renew_pool(harness);
		harness_open(harness);
	}
	harness_end(harness);
}

/* One opening in which allocation k fails. True: there were fewer than k. */
static bool open_with_failure(struct harness *harness, int64_t k)
{
	struct mr_port *const mark = (struct mr_port *)harness;
	const int64_t n_blocks = harness->n_blocks;
	const uint32_t n_fds = harness_count_fds();
	struct mr_pool_stats before = harness_pool_stats(harness), after;
	struct mr_reason why = { .text = "" };
	int err;

	harness->port = mark;
	harness->n_until_refused = k;
	err = harness_try_open(harness, &why);
	if (harness->n_until_refused > 0) {
		/* No allocation failed. */
		harness->n_until_refused = 0;
		if (err < 0)
			fail_msg("%s", why.text);
		harness_close(harness);
		return true;
	}
	assert_int_equal(err, -ENOMEM);
	assert_true(strlen(why.text) > 0);
	assert_ptr_equal(harness->port, mark);
	harness->port = NULL;
	after = harness_pool_stats(harness);
	assert_int_equal(after.n_free, before.n_free);
	assert_int_equal(after.n_committed, before.n_committed);
	assert_int_equal(harness->n_blocks, n_blocks);
	harness_await_fds(n_fds);
	return false;
}

HARNESS_TEST(open_fails_cleanly_at_every_allocation)
{
	const struct wish wish = { .is_closed = true };
	struct harness *harness = harness_make(&wish);
	int64_t k;

	for (k = 1; !open_with_failure(harness, k); k++)
		assert_true(k < 1000);
	/* There is at least the port itself. */
	assert_true(k > 1);
	/* Again without a peer. */
	harness_tear_down(harness);
	if ((harness->fixture->traits & (FIXTURE_LIVE | FIXTURE_LED)) ==
	    FIXTURE_LIVE)
		for (k = 1; !open_with_failure(harness, k); k++)
			assert_true(k < 1000);
	harness_end(harness);
}

enum { MAX_FDS = 256 };

/* Find the fds below MAX_FDS that are open without FD_CLOEXEC. */
static void find_inheritable(bool *ret_is)
{
	for (int fd = 0; fd < MAX_FDS; fd++) {
		const int flags = fcntl(fd, F_GETFD);

		ret_is[fd] = flags >= 0 && !(flags & FD_CLOEXEC);
	}
}

HARNESS_TEST(every_fd_is_closed_on_exec)
{
	const struct wish wish = wish_frames(10);
	bool before[MAX_FDS], after[MAX_FDS];
	struct harness *harness;

	harness_lack(FIXTURE_FOREIGN_FDS, "its fds are another library's");
	find_inheritable(before); /* left open by the runner of this test */
	harness = harness_make(&wish);
	find_inheritable(after);
	assert_memory_equal(after, before, sizeof(after));
	harness_end(harness);
}

/* How long it takes to reopen a port that was just closed. */
static uint64_t reopen_ns(struct harness *harness)
{
	uint64_t t_ns;

	harness_close(harness);
	t_ns = harness_now_ns();
	harness_open(harness);
	return harness_now_ns() - t_ns;
}

/* Returns when the child is out of fork(), which closes its copies. */
static pid_t fork_sleeper(void)
{
	int fds[2];
	pid_t pid;
	char byte;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	close(fds[pid == 0 ? 0 : 1]);
	if (pid > 0) {
		assert_int_equal(read(fds[0], &byte, 1), 0);
		close(fds[0]);
		return pid;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(fds[1]);
	for (;;)
		pause();
}

/*
 * The child has copies of all fds and sleeps; we continue without it. Opening
 * takes as long as without a child. One of four rounds must show that: on a
 * busy machine any of them may be late, but a held queue delays all.
 */
HARNESS_TEST(forked_child_does_not_hold_the_queue)
{
	enum { MORE_NS = 1000000000, N_ROUNDS = 4 };
	const struct wish wish = wish_frames(200);
	bool is_held = true;
	struct harness *harness;

	harness_lack(FIXTURE_FORK_HOLDS, "its files are another library's");
	harness = harness_make(&wish);
	receive_some(harness);
	for (int round = 0; is_held && round < N_ROUNDS; round++) {
		const uint64_t alone_ns = reopen_ns(harness);
		const pid_t pid = fork_sleeper();

		is_held = reopen_ns(harness) >= alone_ns + MORE_NS;
		receive_some(harness);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	assert_false(is_held);
	harness_end(harness);
}

HARNESS_TEST(pool_is_not_destroyed_under_a_port)
{
	const struct wish wish = wish_frames(10);
	struct harness *harness = harness_make(&wish);
	struct mr_reason why;

	assert_int_equal(mr_pool_destroy(harness->pool, &why), -EBUSY);
	assert_non_null(strstr(why.text, "port"));
	harness_end(harness);
}

/* A segment registered by a device is not freed. */
HARNESS_TEST(registered_segment_is_pinned)
{
	const struct wish wish = { .is_closed = true };
	struct mr_segment_info info;
	struct mr_pool *second;
	struct mr_port_info port;
	struct mr_reason why;
	struct harness *harness;

	harness_need(FIXTURE_REGISTERS, "no device has its memory registered");
	harness = harness_make(&wish);
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 64,
					       .region = harness->region };

	assert_int_equal(mr_pool_create(harness->ctx, &config, &second, NULL),
			 0);
	harness_open(harness);
	for (uint32_t i = 0; mr_region_segment(harness->region, i, &info) == 0;
	     i++)
		assert_true(info.n_pins > 0);
	port.size = sizeof(port);
	mr_port_info(harness->port, &port);
	/* No port or cache uses the second pool, only the device. */
	assert_int_equal(mr_pool_destroy(second, &why), -EBUSY);
	assert_non_null(strstr(why.text, port.name));
	harness_close(harness);
	for (uint32_t i = 0; mr_region_segment(harness->region, i, &info) == 0;
	     i++)
		assert_int_equal(info.n_pins, 0);
	if (mr_pool_destroy(second, &why) < 0)
		fail_msg("%s", why.text);
	harness_end(harness);
}

/* A bad spec: check the error and the word, and that nothing is left behind. */
static void check_refused_spec(struct harness *harness, const char *spec,
			       int error, const char *word)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = harness->pool };
	struct mr_port *const mark = (struct mr_port *)harness;
	const int64_t n_blocks = harness->n_blocks;
	const uint32_t n_fds = harness_count_fds();
	const uint64_t n_free = harness_pool_stats(harness).n_free;
	struct mr_reason why = { .text = "" };
	struct mr_port *port = mark;
	const int err = mr_port_open(harness->ctx, spec, &config, &port, &why);

	if (err != error || strstr(why.text, word) == NULL ||
	    strchr(why.text, '\n') != NULL)
		fail_msg("'%s': error %d instead of %d, reason '%s' instead "
			 "of one line with '%s'",
			 spec, err, error, why.text, word);
	assert_ptr_equal(port, mark);
	assert_int_equal(harness->n_blocks, n_blocks);
	harness_await_fds(n_fds);
	assert_int_equal(harness_pool_stats(harness).n_free, n_free);
}

HARNESS_TEST(refused_spec_names_its_reason)
{
	const struct wish wish = { .is_closed = true };
	struct harness *harness = harness_make(&wish);
	char spec[300];

	for (const struct bad_spec *bad = harness->fixture->bad_specs;
	     bad->spec != NULL; bad++)
		check_refused_spec(harness, bad->spec, bad->error, bad->word);

	snprintf(spec, sizeof(spec), "%s,nonsense=1", harness->spec);
	check_refused_spec(harness, spec, -EINVAL, "nonsense");
	snprintf(spec, sizeof(spec), "%s,", harness->spec);
	check_refused_spec(harness, spec, -EINVAL, "option");
	check_refused_spec(harness, "nosuch:x", -ENODEV, "nosuch");
	check_refused_spec(harness, "", -EINVAL, "empty");
	harness_end(harness);
}

HARNESS_TEST(same_port_twice_is_refused)
{
	const struct wish wish = wish_frames(10);
	struct harness *harness;

	harness_need(FIXTURE_EXCLUSIVE, "there is any number of it");
	harness = harness_make(&wish);
	check_refused_spec(harness, harness->spec, -EBUSY, "");
	harness_end(harness);
}

HARNESS_TEST(pool_too_small_is_refused_with_the_number)
{
	const struct wish wish = { .is_closed = true, .n_pages = 2048 };
	struct harness *harness = harness_make(&wish);
	const char *const spec = harness->spec;
	const struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						    .n_pages = 100,
						    .region = harness->region };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why = { .text = "" };
	struct mr_port *port = NULL;
	struct mr_pool_config need = { .size = sizeof(need) };
	char number[16];

	assert_int_equal(
		mr_pool_create(harness->ctx, &pool_config, &config.pool, NULL),
		0);
	assert_int_equal(mr_pool_size_for(harness->ctx, &spec, 1, 1, 0, &need,
					  NULL),
			 0);
	assert_int_equal(
		mr_port_open(harness->ctx, harness->spec, &config, &port, &why),
		-ENOMEM);
	snprintf(number, sizeof(number), "%u", need.n_pages);
	assert_non_null(strstr(why.text, number));
	assert_int_equal(mr_pool_destroy(config.pool, NULL), 0);
	harness_end(harness);
}

HARNESS_TEST(info_says_what_the_port_is)
{
	const struct wish wish = wish_frames(10);
	struct harness *harness = harness_make(&wish);
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_port_info none = { .size = 0 };

	assert_int_equal(mr_port_info(harness->port, &none), -EINVAL);
	assert_int_equal(mr_port_info(harness->port, &info), 0);
	assert_true(info.n_rxqs >= 1 && info.n_txqs >= 1);
	assert_int_equal(strncmp(info.name, harness->fixture->driver,
				 strlen(harness->fixture->driver)),
			 0);
	assert_true(strlen(info.mode) > 0);
	assert_null(mr_port_rxq(harness->port, info.n_rxqs));
	assert_null(mr_port_txq(harness->port, info.n_txqs));
	assert_true(info.has_sg <= 1);
	(void)mr_port_poll(harness->port);
	harness_end(harness);
}

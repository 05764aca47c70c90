/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening, closing, and what is left behind: nothing. */
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

static struct wish some(uint32_t n)
{
	return (struct wish){
		.n_in = bed_rig()->traits & RIG_IN ? n : 0,
	};
}

static void send_some(struct bed *bed, uint32_t n)
{
	struct mr_frame frames[BURST];

	for (uint32_t i = 0; i < n; i++)
		bed_make_frame(bed, &frames[i], 1, 128, 60, i);
	bed_tx(bed, frames, n);
}

static void receive_some(struct bed *bed)
{
	struct mr_frame frames[BURST];
	const uint32_t n_rx = bed_rx(bed, frames, BURST);

	assert_true(n_rx > 0);
	bed_free(bed, frames, n_rx);
}

BED_TEST(closed_and_reopened_it_works_again)
{
	const struct wish wish = some(200);
	struct bed *bed = bed_make(&wish);

	for (uint32_t round = 0; round < bed->rig->n_reopens; round++) {
		/* Some received, some on their way in both directions. */
		receive_some(bed);
		send_some(bed, 1 + round % BURST);
		bed_close(bed);
		if (bed->rig->traits & RIG_KEEPS)
			bed_collect_last(bed, 1 + round % BURST, 0);
		bed_open(bed);
	}
	bed_end(bed);
}

/*
 * Closed before another port on its pool, it leaves nothing behind: that port
 * and the pool go, and on the next pool, elsewhere in memory, it works again.
 */
BED_TEST(closed_first_it_opens_on_the_next_pool)
{
	const struct wish wish = some(200);
	const char *spec = bed_rig()->sink_spec;
	struct mr_reason why;
	struct bed *bed;

	bed_lack(RIG_SAME_POOL, "its far side has the pool");
	bed = bed_make(&wish);
	for (uint32_t round = 0; round < bed->rig->n_reopens; round++) {
		const struct mr_port_config config = { .size = sizeof(config),
						       .pool = bed->pool };
		struct mr_port *sink;

		if (mr_port_open(bed->ctx, spec != NULL ? spec : "null:",
				 &config, &sink, &why) < 0)
			fail_msg("%s", why.text);
		receive_some(bed);
		send_some(bed, BURST);
		bed_close(bed);
		if (bed->rig->traits & RIG_KEEPS)
			bed_collect_rest(bed);
		mr_port_close(sink);
		bed_renew_pool(bed);
		bed_open(bed);
	}
	bed_end(bed);
}

/* One opening in which allocation k fails. True: there were fewer than k. */
static bool open_with_failure(struct bed *bed, int64_t k)
{
	struct mr_port *const mark = (struct mr_port *)bed;
	const int64_t n_blocks = bed->n_blocks;
	const uint32_t n_fds = bed_count_fds();
	struct mr_pool_stats before = bed_pool_stats(bed), after;
	struct mr_reason why = { .text = "" };
	int err;

	bed->port = mark;
	bed->n_until_refused = k;
	err = bed_try_open(bed, &why);
	if (bed->n_until_refused > 0) {
		/* It was never refused anything. */
		bed->n_until_refused = 0;
		assert_int_equal(err, 0);
		bed_close(bed);
		return true;
	}
	assert_int_equal(err, -ENOMEM);
	assert_true(strlen(why.text) > 0);
	assert_ptr_equal(bed->port, mark);
	bed->port = NULL;
	after = bed_pool_stats(bed);
	assert_int_equal(after.n_free, before.n_free);
	assert_int_equal(after.n_committed, before.n_committed);
	assert_int_equal(bed->n_blocks, n_blocks);
	assert_int_equal(bed_count_fds(), n_fds);
	return false;
}

BED_TEST(open_fails_cleanly_at_every_allocation)
{
	const struct wish wish = { .is_closed = true };
	struct bed *bed = bed_make(&wish);
	int64_t k;

	for (k = 1; !open_with_failure(bed, k); k++)
		assert_true(k < 1000);
	/* There is at least the port itself. */
	assert_true(k > 1);
	/* And once more where nobody is at the far side. */
	bed->rig->teardown(bed);
	if (bed->rig->traits & RIG_LIVE)
		for (k = 1; !open_with_failure(bed, k); k++)
			assert_true(k < 1000);
	bed_end(bed);
}

enum { MAX_FDS = 256 };

/* Which of the fds below MAX_FDS are open without FD_CLOEXEC. */
static void find_inheritable(bool *ret_is)
{
	for (int fd = 0; fd < MAX_FDS; fd++) {
		const int flags = fcntl(fd, F_GETFD);

		ret_is[fd] = flags >= 0 && !(flags & FD_CLOEXEC);
	}
}

BED_TEST(every_fd_is_closed_on_exec)
{
	const struct wish wish = some(10);
	bool before[MAX_FDS], after[MAX_FDS];
	struct bed *bed;

	bed_lack(RIG_FOREIGN_FDS, "its fds are another library's");
	find_inheritable(before); /* what the runner of this test left open */
	bed = bed_make(&wish);
	find_inheritable(after);
	assert_memory_equal(after, before, sizeof(after));
	bed_end(bed);
}

/* How long it takes to open a port that was just closed. */
static uint64_t reopen_ns(struct bed *bed)
{
	uint64_t t_ns;

	bed_close(bed);
	t_ns = bed_now_ns();
	bed_open(bed);
	return bed_now_ns() - t_ns;
}

static pid_t fork_sleeper(void)
{
	const pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		pause();
}

/*
 * The child has copies of all fds and sleeps; we go on without it. Opening
 * takes as long as without a child. One of four rounds has to show that: on a
 * busy machine any of them may be late, and a queue that is held is in each.
 */
BED_TEST(forked_child_does_not_hold_the_queue)
{
	enum { MORE_NS = 1000000000, N_ROUNDS = 4 };
	const struct wish wish = some(200);
	bool is_held = true;
	struct bed *bed;

	bed_lack(RIG_FORK_HOLDS, "its files are another library's");
	bed = bed_make(&wish);
	receive_some(bed);
	for (int round = 0; is_held && round < N_ROUNDS; round++) {
		const uint64_t alone_ns = reopen_ns(bed);
		const pid_t pid = fork_sleeper();

		is_held = reopen_ns(bed) >= alone_ns + MORE_NS;
		receive_some(bed);
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	assert_false(is_held);
	bed_end(bed);
}

BED_TEST(pool_is_not_destroyed_under_a_port)
{
	const struct wish wish = some(10);
	struct bed *bed = bed_make(&wish);
	struct mr_reason why;

	assert_int_equal(mr_pool_destroy(bed->pool, &why), -EBUSY);
	assert_non_null(strstr(why.text, "port"));
	bed_end(bed);
}

/* A segment that is in the device's hands is not given back. */
BED_TEST(registered_segment_is_pinned)
{
	const struct wish wish = { .is_closed = true };
	struct mr_segment_info info;
	struct mr_pool *second;
	struct mr_port_info port;
	struct mr_reason why;
	struct bed *bed;

	bed_need(RIG_REGISTERS, "no device has its memory registered");
	bed = bed_make(&wish);
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 64,
					       .region = bed->region };

	assert_int_equal(mr_pool_create(bed->ctx, &config, &second, NULL), 0);
	bed_open(bed);
	for (uint32_t i = 0; mr_region_segment(bed->region, i, &info) == 0; i++)
		assert_true(info.n_pins > 0);
	port.size = sizeof(port);
	mr_port_info(bed->port, &port);
	/* No port and no cache uses the second pool, only the device. */
	assert_int_equal(mr_pool_destroy(second, &why), -EBUSY);
	assert_non_null(strstr(why.text, port.name));
	bed_close(bed);
	for (uint32_t i = 0; mr_region_segment(bed->region, i, &info) == 0; i++)
		assert_int_equal(info.n_pins, 0);
	if (mr_pool_destroy(second, &why) < 0)
		fail_msg("%s", why.text);
	bed_end(bed);
}

/* One spec that is wrong: the error, the word, and nothing left behind. */
static void refuse(struct bed *bed, const char *spec, int error,
		   const char *word)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = bed->pool };
	struct mr_port *const mark = (struct mr_port *)bed;
	const int64_t n_blocks = bed->n_blocks;
	const uint32_t n_fds = bed_count_fds();
	const uint64_t n_free = bed_pool_stats(bed).n_free;
	struct mr_reason why = { .text = "" };
	struct mr_port *port = mark;
	const int err = mr_port_open(bed->ctx, spec, &config, &port, &why);

	if (err != error || strstr(why.text, word) == NULL ||
	    strchr(why.text, '\n') != NULL)
		fail_msg("'%s': error %d instead of %d, reason '%s' instead "
			 "of one line with '%s'",
			 spec, err, error, why.text, word);
	assert_ptr_equal(port, mark);
	assert_int_equal(bed->n_blocks, n_blocks);
	assert_int_equal(bed_count_fds(), n_fds);
	assert_int_equal(bed_pool_stats(bed).n_free, n_free);
}

BED_TEST(refused_spec_names_its_reason)
{
	const struct wish wish = { .is_closed = true };
	struct bed *bed = bed_make(&wish);
	char spec[300];

	for (const struct bad_spec *bad = bed->rig->bad_specs;
	     bad->spec != NULL; bad++)
		refuse(bed, bad->spec, bad->error, bad->word);

	snprintf(spec, sizeof(spec), "%s,nonsense=1", bed->spec);
	refuse(bed, spec, -EINVAL, "nonsense");
	snprintf(spec, sizeof(spec), "%s,", bed->spec);
	refuse(bed, spec, -EINVAL, "option");
	refuse(bed, "nosuch:x", -ENODEV, "nosuch");
	refuse(bed, "", -EINVAL, "empty");
	bed_end(bed);
}

BED_TEST(same_port_twice_is_refused)
{
	const struct wish wish = some(10);
	struct bed *bed;

	bed_need(RIG_EXCLUSIVE, "there is any number of it");
	bed = bed_make(&wish);
	refuse(bed, bed->spec, -EBUSY, "");
	bed_end(bed);
}

BED_TEST(pool_too_small_is_refused_with_the_number)
{
	const struct wish wish = { .is_closed = true, .n_pages = 2048 };
	struct bed *bed = bed_make(&wish);
	const struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						    .n_pages = 100,
						    .region = bed->region };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why = { .text = "" };
	struct mr_port *port = NULL;
	uint32_t n_need = 0;
	char number[16];

	assert_int_equal(
		mr_pool_create(bed->ctx, &pool_config, &config.pool, NULL), 0);
	assert_int_equal(
		mr_port_need_pages(bed->ctx, bed->spec, 4096, &n_need, NULL),
		0);
	assert_int_equal(
		mr_port_open(bed->ctx, bed->spec, &config, &port, &why),
		-ENOMEM);
	/* A burst for the one worker, besides what the port holds. */
	snprintf(number, sizeof(number), "%u", n_need + MR_BURST_MAX);
	assert_non_null(strstr(why.text, number));
	assert_int_equal(mr_pool_destroy(config.pool, NULL), 0);
	bed_end(bed);
}

BED_TEST(info_says_what_the_port_is)
{
	const struct wish wish = some(10);
	struct bed *bed = bed_make(&wish);
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_port_info none = { .size = 0 };

	assert_int_equal(mr_port_info(bed->port, &none), -EINVAL);
	assert_int_equal(mr_port_info(bed->port, &info), 0);
	assert_true(info.n_rxqs >= 1 && info.n_txqs >= 1);
	assert_int_equal(
		strncmp(info.name, bed->rig->driver, strlen(bed->rig->driver)),
		0);
	assert_true(strlen(info.mode) > 0);
	assert_null(mr_port_rxq(bed->port, info.n_rxqs));
	assert_null(mr_port_txq(bed->port, info.n_txqs));
	assert_true(info.has_sg <= 1);
	assert_true(mr_port_poll(bed->port) >= 0);
	bed_end(bed);
}

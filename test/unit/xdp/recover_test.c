/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/xdp/socket/recover.c: a process that forwards is killed after
 * each of its instructions, and the rings still tell what the kernel has.
 *
 * A trap after every instruction counts them, and leaves the burst at one of
 * them. What the process had in its own memory is not looked at any more: the
 * queues get another pool.
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "model/fake_kernel.h"
#include "socket/socket.h"
#include "support/mt.h"

enum { N_FRAMES = 5, STRIDE = 10 };

static uint64_t n_steps, n_steps_most;
static sigjmp_buf killed;

static void count_step(int sig)
{
	(void)sig;
	if (!fake.is_in_kernel && ++n_steps == n_steps_most)
		siglongjmp(killed, 1);
}

#ifdef __x86_64__
/* Set the trap flag; the 128 bytes below the stack pointer may be in use. */
static void begin_steps(void)
{
	__asm__("sub $128, %%rsp; pushfq; orq $0x100, (%%rsp);"
			 "popfq; add $128, %%rsp" ::: "memory", "cc");
}

static void end_steps(void)
{
	__asm__("sub $128, %%rsp; pushfq; andq $~0x100, (%%rsp);"
			 "popfq; add $128, %%rsp" ::: "memory", "cc");
}

static const bool has_steps = true;
#else
static void begin_steps(void) { }
static void end_steps(void) { }
static const bool has_steps = false;
#endif

/* What a forwarder does: its tx burst also frees what was sent before. */
static void forward(void)
{
	struct mr_frame frames[MR_BURST_MAX];
	const uint32_t n = mr_rx_burst(&fake.rxq->base, fake.cache, frames,
				       MR_BURST_MAX);

	transmit(frames, n);
}

/* The kernel holds what it is given, and has completed some of it, not in
 * order. */
static void begin(bool knows_all)
{
	fake_open((struct fake_config){ 0 });
	fake.port->rxqs = fake.rxq;
	fake.port->txqs = fake.txq;
	fake.txq->tx.map = fake.txq->tx.entries;
	for (uint32_t i = 0; i < 16; i++)
		fake.answers[i] = (struct fake_answer){ .n_held = 64 };
	fake.n_answers = 16;
	for (uint32_t i = 0; i < N_FRAMES; i++)
		fake_receive(60, 0);
	forward();
	fake_complete(3);
	if (!knows_all)
		fake_complete_addr(77 << 12);
	for (uint32_t i = 0; i < N_FRAMES; i++)
		fake_receive(60, 0);
}

/* Forward, and end after so many instructions. False: it came to its end. */
static bool is_killed_after(uint64_t n)
{
	struct sigaction action = { .sa_handler = count_step };

	sigaction(SIGTRAP, &action, NULL);
	n_steps = 0;
	n_steps_most = n;
	if (sigsetjmp(killed, 1) != 0)
		return true;
	begin_steps();
	forward();
	end_steps();
	return false;
}

/* Each buffer that the rings show is marked, and no other one. */
static void check_marks(void)
{
	const struct xring *rx = &fake.rxq->rx, *fill = &fake.rxq->fill;
	uint32_t n_marked = 0, n_shown = 0;

	for (uint32_t page = 0; page < FAKE_PAGES; page++)
		n_marked += fake.rxq->posted[page];
	for (uint32_t at = *rx->consumer; at != *rx->producer; at++, n_shown++)
		assert_int_equal(
			fake.rxq->posted[xring_frame_at(rx, at)->addr >> 12],
			1);
	for (uint32_t at = *fill->consumer; at != *fill->producer;
	     at++, n_shown++)
		assert_int_equal(
			fake.rxq->posted[((uint64_t *)fill->entries)
						 [at & fill->mask] >>
					 12],
			1);
	assert_int_equal(n_marked, FAKE_RING);
	assert_int_equal(n_shown, FAKE_RING);
}

static uint64_t n_free(struct mr_pool *pool)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	mr_pool_stats(pool, &stats);
	return stats.n_free;
}

/* In the next process: all pages that the kernel does not have are free, and it
 * receives and sends on. */
static void check_recovery(void)
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = FAKE_PAGES };
	struct mr_reason why = { "" };

	assert_int_equal(mr_pool_create(fake.ctx, &config, &fake.pool, NULL),
			 0);
	fake.port->base.pool = fake.pool;
	fake.txq->base.stats = (struct mr_tx_stats){ 0 };
	fake.rxq->base.stats = (struct mr_rx_stats){ 0 };
	if (mri_xdp_recover_queue(fake.port, 0, &why) < 0)
		fail_msg("%s", why.text);
	check_marks();
	assert_int_equal(n_free(fake.pool),
			 FAKE_PAGES - FAKE_RING -
				 (fake.txq->tx.cached - fake.txq->n_reaped));
	assert_int_equal(mr_cache_create(fake.pool, &fake.cache, NULL), 0);
	fake.n_answers = 0; /* the kernel completes what it takes */
	fake_complete(64);
	forward();
	forward();
	assert_int_equal(mri_xdp_tx_wait(fake.txq, fake.now_ns + 1000000), 0);
	check_marks();
	mr_cache_destroy(fake.cache);
	assert_int_equal(n_free(fake.pool), FAKE_PAGES - FAKE_RING);
	assert_int_equal(fake_tx_stats().pending, 0);
}

/* In a process of its own, whose memory is in a state that nobody can clean.
 * Returns its exit status. */
static int status_of(int (*work)(uint64_t), uint64_t n)
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(work(n));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

enum { RECOVERED, CAME_TO_ITS_END };

static int recover_after(uint64_t n)
{
	if (!is_killed_after(n))
		return CAME_TO_ITS_END;
	check_recovery();
	return RECOVERED;
}

/* The first step of each test run differs, so that all are tested in time. */
static void kill_everywhere(bool knows_all)
{
	const uint64_t stride = STRIDE / mt_n_ops(1) + 1;
	uint64_t n = 1 + (uint64_t)getpid() % stride;
	int status = RECOVERED;

	if (!has_steps)
		skip();
	begin(knows_all);
	for (; status == RECOVERED; n += stride)
		status = status_of(recover_after, n);
	assert_true(n > 300);
	if (status != CAME_TO_ITS_END)
		fail_msg("killed after %llu instructions",
			 (unsigned long long)(n - stride));
	fake_close();
}

TEST(killed_after_any_instruction)
{
	kill_everywhere(true);
}

TEST(killed_after_a_completion_of_no_frame)
{
	kill_everywhere(false);
}

/* Rings that no process of ours can have left. */
static int refuse(uint64_t n)
{
	const uint64_t *entries = fake.rxq->fill.entries;
	uint8_t *mark =
		&fake.rxq->posted[entries[*fake.rxq->fill.consumer] >> 12];
	struct mr_reason why = { "" };

	(void)n;
	*mark = 0;
	assert_int_equal(mri_xdp_recover_queue(fake.port, 0, &why), -EPROTO);
	assert_non_null(strstr(why.text, "contradict"));
	*mark = 1;
	*fake.rxq->rx.consumer -= 1000;
	assert_int_equal(mri_xdp_recover_queue(fake.port, 0, NULL), -EPROTO);
	*fake.rxq->rx.consumer += 1000;
	*fake.txq->comp.consumer += 1000;
	assert_int_equal(mri_xdp_recover_queue(fake.port, 0, NULL), -EPROTO);
	return 0;
}

TEST(what_cannot_be_is_refused)
{
	begin(true);
	assert_int_equal(status_of(refuse, 0), 0);
	fake_close();
}

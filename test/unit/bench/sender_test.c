/* SPDX-License-Identifier: BSD-3-Clause */
/* A sender after its end: what the queue accepted has to leave. */
#include <millrace/driver.h>

#include "net/tester.h"
#include "support/test.h"

static uint32_t n_calls, n_offered;

static uint32_t burst(struct mr_txq *txq, struct mr_cache *cache,
		      const struct mr_frame *frames, const struct mr_meta *meta,
		      uint32_t n)
{
	(void)txq;
	(void)cache;
	(void)frames;
	(void)meta;
	n_calls++;
	n_offered += n;
	return n;
}

static struct mr_txq queue = { .burst = burst };
static struct sender sender;

/* A driver that stopped at a full device goes on with the next call only. */
TEST(its_queue_is_called_after_the_last_frame)
{
	/* No frame at all: it is done at once. */
	struct send_orders orders = { .end_ns = UINT64_MAX, .n_senders = 1 };
	struct clock clock;

	clock_open(&clock, true);
	clock_move(&clock, 2000);
	orders.clock = &clock;
	sender.config.txq = &queue;
	sender.config.burst = 32;
	sender_begin(&sender, &orders, NULL, NULL);
	sender_step(&sender, 2000);
	assert_true(sender.is_done);
	n_calls = 0;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(sender_step(&sender, 2000), 0);
	assert_in_range(n_calls, 10, 100);
	assert_int_equal(n_offered, 0);
	assert_true(sender.is_done);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* A sender behind its end: what the queue took has to leave; and one whose
 * device sends by itself when frames are due. */
#include <time.h>

#include <millrace/driver.h>

#include "net/tester_parts.h"
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
TEST(its_queue_is_called_behind_the_end)
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

/* A queue whose device holds frames back: what it was told, and when. */
static struct {
	const struct tester *tester;
	uint32_t (*burst)(struct mr_txq *txq, struct mr_cache *cache,
			  const struct mr_frame *frames,
			  const struct mr_meta *meta, uint32_t n);
	uint64_t n, n_without, n_wrong, most_ahead_ns;
} launcher;

static uint32_t launch_burst(struct mr_txq *txq, struct mr_cache *cache,
			     const struct mr_frame *frames,
			     const struct mr_meta *meta, uint32_t n)
{
	const uint64_t now = clock_now(&launcher.tester->clock);

	n = launcher.burst(txq, cache, frames, NULL, n);
	for (uint32_t i = 0; i < n; i++, launcher.n++) {
		if (meta == NULL || meta[i].valid != MR_META_LAUNCH_TIME ||
		    meta[i].launch_clock != CLOCK_MONOTONIC) {
			launcher.n_without++;
			continue;
		}
		/* A frame each microsecond. */
		launcher.n_wrong += meta[i].launch_ns != launcher.n * 1000;
		if (meta[i].launch_ns - now > launcher.most_ahead_ns &&
		    meta[i].launch_ns > now)
			launcher.most_ahead_ns = meta[i].launch_ns - now;
	}
	return n;
}

/* It has them ahead of their time, and is told when that is; another one is
 * told nothing. */
TEST(a_device_that_launches_frames_is_told_when)
{
	const char *spec = "pair:a";
	const struct tester_config config = {
		.tx = &spec,
		.n_tx = 1,
		.rx = &spec,
		.n_rx = 1,
		.is_virtual = true,
		.plane = { .program = "sender-test",
			   .log_level = MR_LOG_ERROR },
	};
	const struct trial_config full = { .n_frames = 1000 };
	const struct trial_config paced = { .pps = 1e6, .n_frames = 100000 };
	static struct trial_result result;
	struct mr_reason why;
	struct tester *tester;
	struct sender *first;
	struct mr_port *port;

	assert_int_equal(tester_open(&config, &tester, &why), 0);
	first = &tester->senders[0];
	port = first->config.txq->queue.port;
	port->info->offloads |= MR_OFFLOAD_LAUNCH_TIME;
	port->info->launch_clock = CLOCK_MONOTONIC;
	launcher.tester = tester;
	launcher.burst = first->config.txq->burst;
	first->config.txq->burst = launch_burst;
	first->config.launch_lead_ns = 50000;
	assert_int_equal(tester_run(tester, &paced, &result, &why), 0);
	assert_int_equal(launcher.n, 100000);
	assert_int_equal(launcher.n_without + launcher.n_wrong, 0);
	assert_int_equal(launcher.most_ahead_ns, 50000);
	assert_int_equal(result.lateness.max, 0);
	assert_int_equal(result.sent, 100000);
	assert_int_equal(result.lost, 0);
	/* The last one is due a microsecond before the tenth of a second. */
	assert_int_equal(result.sending_ns, 99999000);
	trial_result_free(&result);
	first->config.launch_lead_ns = 0;
	assert_int_equal(tester_run(tester, &full, &result, &why), 0);
	assert_int_equal(launcher.n_without, 1000);
	trial_result_free(&result);
	assert_int_equal(tester_close(tester), 0);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench/net/directions.c: what each way lost, beside the known
 * device that lost it.
 */
#include "support/unit.h"

#include "net/device.h"
#include "net/tester_parts.h"

static struct trial_result result; /* large: two histograms */

static struct tester *open_with(uint32_t n, const char *const *tx,
				const char *const *rx,
				const struct device_config *device)
{
	const struct tester_config config = {
		.tx = tx,
		.n_tx = n,
		.rx = rx,
		.n_rx = n,
		.device = device,
		.is_virtual = true,
		.plane = { .program = "directions-test",
			   .log_level = MR_LOG_ERROR },
	};
	struct tester *tester = NULL;
	struct mr_reason why;

	if (tester_open(&config, &tester, &why) != 0)
		fail_msg("%s", why.text);
	return tester;
}

/* Sum by sum, all directions are the whole. */
static void run(struct tester *tester, uint64_t n_frames)
{
	const struct trial_config config = { .pps = 1e6, .n_frames = n_frames };
	uint64_t sent = 0, unsent = 0, unique = 0, lost = 0, n_latencies = 0;
	struct mr_reason why;

	if (tester_run(tester, &config, &result, &why) != 0)
		fail_msg("%s", why.text);
	for (uint32_t i = 0; i < result.n_directions; i++) {
		const struct trial_direction *d = &result.directions[i];

		assert_int_equal(d->sum.sent, d->sum.unique + d->sum.lost);
		sent += d->sum.sent;
		unsent += d->unsent;
		unique += d->sum.unique;
		lost += d->sum.lost;
		n_latencies += d->n_latencies;
	}
	if (result.n_directions == 0)
		return;
	assert_int_equal(sent, result.sent);
	assert_int_equal(unsent, result.unsent);
	assert_int_equal(unique, result.unique);
	assert_int_equal(lost, result.lost);
	assert_int_equal(n_latencies, result.latency.n);
}

static void end(struct tester *tester)
{
	trial_result_free(&result);
	assert_int_equal(tester_close(tester), 0);
}

/* The device loses each 501st of a direction, which but one of them has. */
TEST(each_way_has_its_own_losses)
{
	static const char *const tx[] = { "pair:a", "pair:b" };
	static const char *const rx[] = { "pair:b", "pair:a" };
	struct tester *tester =
		open_with(2, tx, rx,
			  &(struct device_config){ .loss_every = 501,
						   .delay_ns = 20000 });

	run(tester, 1001);
	assert_int_equal(result.n_directions, 2);
	assert_int_equal(result.lost, 1);
	for (uint32_t i = 0; i < 2; i++) {
		const struct trial_direction *d = &result.directions[i];
		struct device_counts counts;

		assert_true(tester_device_counts(tester, i, &counts));
		assert_string_equal(d->from, tx[i]);
		assert_string_equal(d->to, rx[i]);
		assert_int_equal(d->sum.sent, i == 0 ? 501 : 500);
		assert_int_equal(d->sum.sent, counts.received);
		assert_int_equal(d->sum.lost, counts.lost);
		assert_int_equal(d->sum.unique, counts.forwarded);
		assert_int_equal(d->n_latencies, counts.forwarded);
		assert_in_range(d->latency_p50_ns, 20000, 21000);
		assert_int_equal(d->latency_max_ns, 20000);
	}
	end(tester);
}

/* Two cables beside each other; the odd frame is the first one's. */
TEST(each_pair_has_its_own_frames)
{
	static const char *const ports[] = { "pair:a", "pair:b" };
	struct tester *tester = open_with(2, ports, ports, NULL);

	run(tester, 1001);
	assert_int_equal(result.n_directions, 2);
	assert_string_equal(result.directions[1].to, "pair:b");
	assert_int_equal(result.directions[0].sum.unique, 501);
	assert_int_equal(result.directions[1].sum.unique, 500);
	end(tester);
}

TEST(one_direction_is_the_whole)
{
	static const char *const tx[] = { "pair:a" };
	struct tester *tester = open_with(1, tx, tx, NULL);

	run(tester, 100);
	assert_int_equal(result.unique, 100);
	assert_int_equal(result.n_directions, 0);
	end(tester);
}

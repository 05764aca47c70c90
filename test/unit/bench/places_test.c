/* SPDX-License-Identifier: BSD-3-Clause */
/* Places to send to that are not ports, as a part of the tester. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "live/live.h"
#include "net/tester.h"
#include "stream/compiled.h"
#include "support/test.h"

#define SECOND 1000000000ull

static struct trial_result result;

/* A place to send to that only counts: 1000 frames, a fifth of them given up.
 */
struct place {
	const struct send_orders *orders;
	struct send_orders copy;
	uint32_t n_streams;
	uint64_t n_sent;
	uint32_t is_stopped;
	bool is_failing;
};

static struct place the_place;

static int place_open(struct mr_ctx *ctx, const char *spec, struct place **ret,
		      struct mr_reason *why)
{
	(void)ctx;
	(void)spec;
	(void)why;
	the_place = (struct place){ 0 };
	*ret = &the_place;
	return 0;
}

static void place_close(struct place *place)
{
	place->orders = NULL;
}

static int place_begin(struct place *place, const struct streams *streams,
		       const struct send_orders *orders, struct mr_reason *why)
{
	(void)why;
	place->n_streams = streams->n;
	place->copy = *orders;
	place->orders = &place->copy;
	place->n_sent = 0;
	return 0;
}

static int place_run(struct place *place, struct mr_reason *why)
{
	if (place->is_failing) {
		snprintf(why->text, sizeof(why->text), "out of order");
		return -EIO;
	}
	while (clock_now(place->orders->clock) < place->orders->start_ns)
		;
	for (int i = 0; i < 800; i++)
		__atomic_add_fetch(&place->n_sent, 1, __ATOMIC_RELAXED);
	while (place->orders->end_ns == UINT64_MAX &&
	       !__atomic_load_n(&place->is_stopped, __ATOMIC_RELAXED))
		;
	return 0;
}

static void place_stop(struct place *place)
{
	__atomic_store_n(&place->is_stopped, 1, __ATOMIC_RELAXED);
}

static void place_counts(const struct place *place, struct send_counts *ret,
			 struct hist *lateness)
{
	const uint64_t n = __atomic_load_n(&place->n_sent, __ATOMIC_RELAXED);

	*ret = (struct send_counts){ .sent = n,
				     .unsent = n / 4,
				     .bytes = 60 * n };
	for (uint64_t i = 0; lateness != NULL && i < n; i++)
		hist_add(lateness, 7);
}

static uint64_t place_n_sent(const struct place *place, uint32_t stream)
{
	return stream == 0 ? place->n_sent : 0;
}

static int place_info(const struct place *place, struct mr_port_info *ret)
{
	(void)place;
	*ret = (struct mr_port_info){ .size = sizeof(*ret),
				      .mode = "counting",
				      .name = "counting:one" };
	return 0;
}

static int place_link(const struct place *place, struct mr_link *ret)
{
	(void)place;
	*ret = (struct mr_link){ .is_up = 1 };
	return 0;
}

static uint32_t place_drops(const struct place *place,
			    struct mr_named_count *ret, uint32_t room)
{
	(void)place;
	if (room > 0)
		ret[0] = (struct mr_named_count){ "refused", 5 };
	return 1;
}

/* In place of the one that the library has. */
const struct place_ops live_place = {
	.prefix = "counting:",
	.open = place_open,
	.close = place_close,
	.begin = place_begin,
	.run = place_run,
	.stop = place_stop,
	.counts = place_counts,
	.n_sent = place_n_sent,
	.info = place_info,
	.link = place_link,
	.drops = place_drops,
};

/* Beside a port, and alone. */
TEST(a_place_sends_like_a_port)
{
	static const char *const specs[] = { "counting:one", "null:" };
	const struct trial_config trial = {
		.pps = 1e5,
		.duration_ns = SECOND / 50,
	};

	for (uint32_t n_tx = 1; n_tx <= 2; n_tx++) {
		const struct tester_config config = {
			.tx = specs,
			.n_tx = n_tx,
			.plane = { .program = "tester-test",
				   .log_level = MR_LOG_ERROR },
		};
		struct tester *tester = NULL;
		struct mr_port_info info;
		struct mr_link link;
		struct mr_reason why;

		assert_int_equal(tester_open(&config, &tester, &why), 0);
		assert_int_equal(tester_n_ports(tester), n_tx);
		/* The kernel's times are not compared with a counter's. */
		assert_string_equal(clock_source(&tester->clock),
				    "CLOCK_MONOTONIC");
		tester_port(tester, n_tx - 1, &info, &link);
		assert_string_equal(info.mode, "counting");
		assert_int_equal(tester_run(tester, &trial, &result, &why), 0);
		assert_int_equal(the_place.copy.n_senders, n_tx);
		assert_int_equal(the_place.copy.sender, n_tx - 1);
		assert_int_equal(the_place.n_streams, 1);
		assert_int_equal(result.due, result.sent + result.unsent);
		assert_int_equal(result.n_streams, 1);
		assert_int_equal(result.streams[0].sent, result.sent);
		/* Half the rate for 20 ms, of the port. */
		assert_int_equal(result.due, 1000 + (n_tx - 1) * 1000);
		assert_in_range(result.lateness.n, 800, 1800);
		assert_int_equal(result.n_drops, 1);
		assert_string_equal(result.drops[0].name, "refused");
		assert_string_equal(result.drops[0].port, "counting:one");
		trial_result_free(&result);
		assert_int_equal(tester_close(tester), 0);
		assert_null(the_place.orders);
	}
}

/* It ends before the first frame is due: no time has passed. */
TEST(a_place_that_fails_ends_the_trial_and_says_why)
{
	static const char *const specs[] = { "counting:one", "null:" };
	const struct tester_config config = {
		.tx = specs,
		.n_tx = 2,
		.plane = { .program = "tester-test",
			   .log_level = MR_LOG_ERROR },
	};
	const struct trial_config trial = {
		.pps = 1e5,
		.duration_ns = 100 * SECOND,
	};
	struct tester *tester = NULL;
	struct mr_reason why;

	assert_int_equal(tester_open(&config, &tester, &why), 0);
	the_place.is_failing = true;
	assert_int_equal(tester_run(tester, &trial, &result, &why), 0);
	assert_true(result.is_cut_short);
	assert_string_equal(result.why_stopped, "out of order");
	assert_true(result.whole_ns < 50 * SECOND);
	assert_true(result.sending_ns <= result.whole_ns);
	trial_result_free(&result);
	assert_int_equal(tester_close(tester), 0);
}

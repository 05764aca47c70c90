/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The line behind a trial: who is to blame, by whose counter. Results are made
 * up; the tester has the ports that they name.
 */
#include <stdio.h>
#include <string.h>

#include "net/tester_parts.h"
#include "support/test.h"

#define SECOND 1000000000ull

static struct trial_result result;
static char line[400];

static struct tester *open_tester(const char *tx, const char *rx,
				  bool is_unstamped)
{
	const struct tester_config config = {
		.tx = &tx,
		.n_tx = tx != NULL,
		.rx = &rx,
		.n_rx = rx != NULL,
		.is_unstamped = is_unstamped,
		.plane = { .program = "explain-test",
			   .n_workers = 1,
			   .log_level = MR_LOG_ERROR },
	};
	struct tester *tester = NULL;
	struct mr_reason why;
	const int status = tester_open(&config, &tester, &why);

	if (status != 0)
		print_error("%s\n", why.text);
	assert_int_equal(status, 0);
	memset(&result, 0, sizeof(result));
	return tester;
}

/* The line of a result that lost n_lost of a million, n of them by drop. */
static const char *said(const struct tester *tester, uint64_t n_lost,
			const struct trial_drop *drop)
{
	struct trial_drop row = *drop;

	result = (struct trial_result){ .due = 1000000,
					.sent = 1000000,
					.received = 1000000 - n_lost,
					.unique = 1000000 - n_lost,
					.lost = n_lost,
					.drops = &row,
					.n_drops = 1 };
	line[0] = '\0';
	if (!tester_explain(tester, &result, line, sizeof(line)))
		return "";
	assert_true(line[0] != '\0');
	return line;
}

TEST(the_receiver_is_blamed_for_what_it_dropped)
{
	struct tester *tester = open_tester("pair:a", "pair:a", false);
	const struct trial_drop drops[] = {
		{ "xdp:t1", "rx", "ring_full", 600, true },
		{ "xdp:t1", "dev", "rx_missed", 600, true },
	};

	for (int i = 0; i < 2; i++) {
		const char *text = said(tester, 1000, &drops[i]);

		assert_non_null(strstr(text, "the receiver was slower than the "
					     "sender: xdp:t1 dropped 600 "
					     "frames ("));
		assert_non_null(strstr(text, drops[i].name));
	}
	assert_int_equal(tester_close(tester), 0);
}

/* Nor for what the sending port lost, nor for one frame where a thousand are
 * missing, nor where none is. */
TEST(the_receiver_is_not_blamed_for_more)
{
	struct tester *tester = open_tester("pair:a", "pair:a", false);
	const struct trial_drop one = { "xdp:t1", "dev", "rx_missed", 1, true };
	/* A ring of the sending port, that nobody reads. */
	const struct trial_drop other = { "xdp:t0", "rx", "ring_full", 999,
					  false };
	const struct trial_drop none = { "xdp:t1", "dev", "rx_missed", 5000,
					 true };
	const struct trial_drop sent = { "xdp:t0", "dev", "tx_dropped", 999,
					 false };
	const struct trial_drop refused = { "live:t0", "tx", "no_xdp_xmit", 700,
					    false };

	assert_string_equal(said(tester, 1000, &one), "");
	assert_string_equal(said(tester, 1000, &other), "");
	assert_string_equal(said(tester, 0, &none), "");
	assert_string_equal(said(tester, 1000, &sent),
			    "xdp:t0: 999 frames did not leave (tx_dropped)");
	assert_string_equal(said(tester, 1000, &refused),
			    "live:t0: 700 frames did not leave (no_xdp_xmit)");
	assert_int_equal(tester_close(tester), 0);
}

/* As said(), of two counters. */
static const char *said_of_two(const struct tester *tester, uint64_t n_lost,
			       const struct trial_drop *drops)
{
	struct trial_drop rows[] = { drops[0], drops[1] };

	result = (struct trial_result){ .due = 1010000,
					.sent = 1000000,
					.unsent = 10000,
					.received = 1000000 - n_lost,
					.unique = 1000000 - n_lost,
					.lost = n_lost,
					.drops = rows,
					.n_drops = 2 };
	return tester_explain(tester, &result, line, sizeof(line)) ? line : "";
}

/* What never left is not among the lost, and what nobody receives is nobody's
 * loss: neither hides the counter that tells. */
TEST(a_larger_counter_does_not_hide_the_cause)
{
	const struct trial_drop paused[] = {
		{ "live:t0", "tx", "kernel_set_up", 10000, false },
		{ "xdp:t1", "rx", "ring_full", 500, true },
	};
	const struct trial_drop aside[] = {
		{ "xdp:t0", "rx", "ring_full", 9000, false },
		{ "xdp:t0", "tx", "device", 5000, false },
	};
	struct tester *tester = open_tester("pair:a", "pair:a", false);

	assert_non_null(strstr(said_of_two(tester, 500, paused),
			       "xdp:t1 dropped 500 frames (ring_full)"));
	assert_string_equal(said_of_two(tester, 500, aside),
			    "xdp:t0: 5000 frames did not leave (device)");
	assert_int_equal(tester_close(tester), 0);
	/* Where nobody receives it is a line of its own. */
	tester = open_tester("null:", NULL, false);
	assert_string_equal(
		said_of_two(tester, 0, paused),
		"live:t0: 10000 frames did not leave (kernel_set_up)");
	assert_int_equal(tester_close(tester), 0);
}

/* Where the sender is another program nobody knows how many are missing. */
TEST(a_share_is_worth_a_line_where_losses_are_not_known)
{
	struct tester *tester = open_tester(NULL, "null:", false);
	const struct trial_drop few = { "null:", "rx", "ring_full", 999, true };
	const struct trial_drop many = { "null:", "rx", "ring_full", 1000,
					 true };

	assert_string_equal(said(tester, 0, &few), "");
	/* Of a million sent, and a million that came. */
	assert_string_equal(said(tester, 0, &many), "");
	assert_non_null(strstr(said(tester, 1000000, &many),
			       "the receiver was slower than the sender"));
	assert_int_equal(tester_close(tester), 0);
}

TEST(frames_without_our_stamp_are_told)
{
	struct tester *tester = open_tester("pair:a", "pair:a", false);

	result.due = result.sent = result.lost = 100;
	result.received = result.foreign = 51;
	assert_true(tester_is_silent(tester, &result));
	assert_true(tester_explain(tester, &result, line, sizeof(line)));
	assert_non_null(strstr(line, "none of the 100 frames came back as "
				     "sent, but pair:a received 51 without our "
				     "stamp"));
	/* A few are somebody else's. */
	result.received = result.foreign = 50;
	assert_true(tester_explain(tester, &result, line, sizeof(line)));
	assert_non_null(strstr(line, "100 frames left pair:a and none reached "
				     "pair:a, which counts no loss"));
	assert_int_equal(tester_close(tester), 0);
}

/* What the queue took stays in its ring, as nobody takes it out. */
TEST(a_device_that_does_not_transmit_is_told)
{
	struct tester *tester = open_tester("pair:a", "pair:a", false);
	struct mr_cache *cache = tester->senders[0].config.cache;
	struct mr_frame frame = { .len = 60 };

	assert_int_equal(mr_frag_alloc_bulk(cache, &frame.addr, 1, 256), 1);
	frame.addr += 128;
	memset((uint8_t *)tester->base + frame.addr, 0, 60);
	assert_int_equal(
		mr_tx_burst(tester->senders[0].config.txq, cache, &frame, 1),
		1);
	result.due = result.sent = result.lost = 1;
	assert_true(tester_explain(tester, &result, line, sizeof(line)));
	assert_string_equal(line, "pair:a took 1 frames and sent none: the "
				  "device does not transmit");
	assert_int_equal(
		mr_rx_burst(tester->receivers[0].rxq, cache, &frame, 1), 1);
	mr_frame_free_bulk(cache, &frame, 1);
	assert_int_equal(tester_close(tester), 0);
}

TEST(silence_is_told)
{
	struct tester *tester = open_tester(NULL, "null:", false);

	result.whole_ns = SECOND;
	assert_true(tester_is_silent(tester, &result));
	assert_true(tester_explain(tester, &result, line, sizeof(line)));
	assert_non_null(strstr(line, "null: received nothing in 1 s: is the "
				     "sender running"));
	result.received = result.foreign = 1;
	assert_false(tester_is_silent(tester, &result));
	assert_false(tester_explain(tester, &result, line, sizeof(line)));
	assert_int_equal(tester_close(tester), 0);
	/* Frames as they are: all that comes is foreign, and has come. */
	tester = open_tester("pair:a", "pair:a", true);
	result.due = result.sent = 100;
	assert_true(tester_is_silent(tester, &result));
	assert_true(tester_explain(tester, &result, line, sizeof(line)));
	result.received = result.foreign = 100;
	assert_false(tester_is_silent(tester, &result));
	assert_false(tester_explain(tester, &result, line, sizeof(line)));
	/* Who has sent nothing waits for nothing. */
	result.sent = result.received = result.foreign = 0;
	assert_false(tester_is_silent(tester, &result));
	assert_int_equal(tester_close(tester), 0);
	/* Who receives nowhere waits for nothing either. */
	tester = open_tester("null:", NULL, false);
	result.due = result.sent = 100;
	assert_false(tester_is_silent(tester, &result));
	assert_false(tester_explain(tester, &result, line, sizeof(line)));
	assert_int_equal(tester_close(tester), 0);
}

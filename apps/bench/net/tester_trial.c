/* SPDX-License-Identifier: BSD-3-Clause */
/* One trial: from its streams to its result. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/mac.h"
#include "net/tester_parts.h"
#include "stream/stream.h"
#include "support/signals.h"

enum {
	/* Threads run before the first frame is due, and take away what is
	 * left of an earlier trial. */
	START_MS = 20,
	PLACE_START_MS = 100, /* the kernel's set-up takes up to 30 ms */
	MOST_POISSON_PPS = 20000000,
};

#define MS 1000000ull

/*
 * Signals that end the program. They arrive by fd, so that nothing is ever
 * interrupted half-way; the second one ends it at once. They are the process's,
 * and so is this.
 */
static int signal_fd = -1;
static bool is_ending;

int ending_open(struct mr_reason *ret_why)
{
	if (signal_fd < 0)
		signal_fd = signals_open(ret_why);
	return signal_fd;
}

bool tester_is_ending(void)
{
	sigset_t set;

	if (is_ending || signal_fd < 0 ||
	    signals_take(signal_fd) != SIGNALS_END)
		return is_ending;
	is_ending = true;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return true;
}

static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x >> 32;
}

/*
 * Numbers of different trials are not to be mixed up. Where only one side is
 * here the other has to know the magic, too: what tells runs apart is a number
 * of their own then.
 */
static void choose_magic(struct tester *tester)
{
	const uint64_t now = ((uint64_t)tester->n_trials << 32) +
			     clock_monotonic_ns() / 1000;
	const bool has_both = tester->n_tx > 0 && tester->n_rx > 0;

	tester->magic =
		(uint32_t)mix(tester->config.seed + (has_both ? now : 0));
	tester->run = has_both || tester->n_tx == 0 ?
			      0 :
			      (uint16_t)(1 + mix(now) % UINT16_MAX);
}

static int choose_orders(struct tester *tester,
			 const struct trial_config *config,
			 struct mr_reason *why)
{
	const double mean = streams_mean_bytes(tester->streams[0]);
	const double line = tester_line_bps(tester) / (8 * (mean + WIRE_BYTES));
	double pps = config->pps;

	/* Each gap costs a logarithm, also of frames that nobody takes. */
	if (config->pace == PACE_POISSON &&
	    pps > (double)MOST_POISSON_PPS * tester->n_sources)
		return fail_with(why, 2,
				 "--pace poisson: %.3g frames per second are "
				 "more than %u queues are paced for (%d each)",
				 pps, tester->n_sources, MOST_POISSON_PPS);
	if (pps == 0 && tester->config.is_virtual)
		pps = line;
	tester->orders = (struct send_orders){
		.clock = &tester->clock,
		.pace = config->pace,
		.pps = pps,
		.burst_frames = config->burst_frames > 0 ?
					config->burst_frames :
					DEFAULT_PACE_FRAMES,
		.start_ns = tester->config.is_virtual ? 0 :
			    tester->n_places > 0      ? PLACE_START_MS * MS :
							START_MS * MS,
		.end_ns = UINT64_MAX,
		.n_frames =
			config->n_frames > 0 ? config->n_frames : UINT64_MAX,
		.max_lag_ns = config->max_lag_ns > 0 ? config->max_lag_ns :
						       DEFAULT_LAG_MS * MS,
		.n_senders = tester->n_sources,
		.seed = tester->config.seed,
	};
	if (config->duration_ns > 0)
		tester->orders.end_ns =
			tester->orders.start_ns + config->duration_ns;
	return 0;
}

static int make_senders(struct tester *tester, struct mr_reason *why)
{
	for (uint32_t i = 0; i < tester->n_senders; i++) {
		struct sender *sender = &tester->senders[i];
		struct streams *streams =
			tester->streams[tester->sender_port[i]];
		struct send_orders orders = tester->orders;
		struct mr_reason said;

		tester->lateness[i] = calloc(1, sizeof(struct hist));
		if (tester->lateness[i] == NULL)
			return fail_with(why, 1, "no memory for a histogram");
		if (builder_open(streams, i, tester->n_sources,
				 tester->config.seed, &tester->builders[i],
				 &said) < 0)
			return fail_with(why, 1, "%s", said.text);
		/* With 64 a line stays the frame's alone. */
		sender->config.buffer_bytes =
			tester->headroom_bytes +
			(streams_max_bytes(streams) + 63) / 64 * 64;
		if (sender->config.buffer_bytes > tester->page_bytes)
			sender->config.buffer_bytes = tester->page_bytes;
		orders.sender = i;
		tester_choose_macs(tester, tester->sender_port[i],
				   sender->macs);
		for (uint32_t m = 0; m < 2; m++)
			if (sender->macs[m] != NULL)
				sender->had_macs[m] = mac_get(sender->macs[m]);
		sender_begin(sender, &orders, tester->builders[i],
			     tester->lateness[i]);
	}
	return 0;
}

static int make_receivers(struct tester *tester, struct mr_reason *why)
{
	tester->n_lanes =
		tester->n_sources > 0 ?
			streams_n(tester->streams[0]) * tester->n_sources :
			STAMP_LANES;
	if (tester->n_sources == 0 && tester->n_receivers > 0) {
		tester->runs = runs_new();
		if (tester->runs == NULL)
			return fail_with(why, 1, "no memory for runs");
	}
	if (tracker_open(&tester->tracker, tester->n_lanes,
			 tester->n_receivers > 1) < 0)
		return fail_with(why, 1, "no memory for %u lanes",
				 tester->n_lanes);
	for (uint32_t i = 0; i < tester->n_receivers; i++) {
		struct receiver *receiver = &tester->receivers[i];

		receiver->tracks =
			calloc(tester->n_lanes, sizeof(receiver->tracks[0]));
		tester->latency[i] = calloc(1, sizeof(struct hist));
		if (receiver->tracks == NULL || tester->latency[i] == NULL)
			return fail_with(why, 1, "no memory for %u lanes",
					 tester->n_lanes);
		receiver->tracker = &tester->tracker;
		receiver->magic = tester->magic;
		receiver->runs = tester->runs;
		receiver->run_at = 0;
		/* Another program's clock began at another time. */
		receiver->latency =
			tester->n_sources > 0 ? tester->latency[i] : NULL;
		receiver->late = NULL;
		if (receiver->latency != NULL && !tester->config.is_virtual) {
			receiver->late = calloc(1, sizeof(*receiver->late));
			if (receiver->late == NULL)
				return fail_with(why, 1,
						 "no memory for late frames");
			receiver->late->least_ns = LATE_NS;
		}
		receiver->n_received = receiver->n_foreign = 0;
		receiver->n_lanes = 0;
		receiver->device_clock.is_known = false;
		receiver->device_clock.error_ns = 0;
		receiver->first_ns = UINT64_MAX;
		receiver->last_ns = 0;
	}
	return 0;
}

static void free_trial(struct tester *tester)
{
	for (uint32_t i = 0; i < tester->n_senders; i++) {
		builder_free(tester->builders[i]);
		free(tester->lateness[i]);
		tester->builders[i] = NULL;
		tester->lateness[i] = NULL;
	}
	for (uint32_t i = 0; i < tester->n_receivers; i++) {
		free(tester->receivers[i].tracks);
		free(tester->receivers[i].late);
		tester->receivers[i].late = NULL;
		free(tester->latency[i]);
		tester->receivers[i].tracks = NULL;
		tester->latency[i] = NULL;
	}
	tracker_close(&tester->tracker);
	runs_free(tester->runs);
	tester->runs = NULL;
	tester->n_lanes = 0;
}

static void reset_devices(struct tester *tester)
{
	struct mr_cache *cache =
		mr_workers_get(tester->plane.workers, 0)->cache;

	for (uint32_t i = 0; i < tester->n_crossings; i++)
		device_reset(tester->crossings[i].device, cache);
}

static int prepare(struct tester *tester, const struct trial_config *config,
		   struct mr_reason *why)
{
	const uint32_t frame_bytes = config->frame_bytes > 0 ?
					     config->frame_bytes :
					     tester->config.frame_bytes;
	int status;

	tester_read_macs(tester);
	choose_magic(tester);
	tester->n_trials++;
	status = tester_set_streams(tester, frame_bytes,
				    !tester->config.is_unstamped, why);
	if (status == 0)
		status = choose_orders(tester, config, why);
	if (status == 0)
		status = make_senders(tester, why);
	if (status == 0)
		status = make_receivers(tester, why);
	return status;
}

/* Of the receiver that knows its device's clock the least. */
static uint64_t device_clock_error(const struct tester *tester)
{
	uint64_t most = 0;

	for (uint32_t i = 0; i < tester->n_receivers; i++)
		if (tester->receivers[i].device_clock.error_ns > most)
			most = tester->receivers[i].device_clock.error_ns;
	return most;
}

static void check_clock(const struct tester *tester, struct trial_result *ret)
{
	const uint64_t drift = clock_drift_ns(&tester->clock);

	ret->clock_error_ns = clock_error_ns(&tester->clock) + drift +
			      device_clock_error(tester);
	if (clock_is_stable(&tester->clock, ret->whole_ns, drift))
		return;
	ret->is_cut_short = true;
	snprintf(ret->why_stopped, sizeof(ret->why_stopped),
		 "clock unstable: the %s came %.1f us away from "
		 "CLOCK_MONOTONIC in %.3f s",
		 clock_source(&tester->clock), (double)drift / 1e3,
		 (double)ret->whole_ns / 1e9);
}

int tester_run(struct tester *tester, const struct trial_config *config,
	       struct trial_result *ret, struct mr_reason *why)
{
	int status = prepare(tester, config, why);

	memset(ret, 0, sizeof(*ret));
	/* Twice: the first time, which may take long, prepares; the second has
	 * the clock that counts. */
	if (status == 0)
		status = places_begin(tester, why);
	if (status == 0) {
		reset_devices(tester);
		tester_count_before(tester);
		clock_start(&tester->clock);
		status = places_begin(tester, why);
	}
	if (status == 0) {
		tester->is_stopping = tester->is_cut = 0;
		tester->is_ended = false;
		if (tester->config.is_virtual)
			tester_run_virtual(tester, config, ret);
		else
			status = tester_run_threads(tester, config, ret, why);
	}
	if (tester->is_hung)
		return status;
	if (status == 0)
		check_clock(tester, ret);
	if (status == 0 && tester_count_all(tester, ret) < 0)
		status = fail_with(why, 1, "no memory for the result");
	if (status != 0)
		trial_result_free(ret);
	free_trial(tester);
	return status;
}

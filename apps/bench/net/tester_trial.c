/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a trial, from its streams to its result, on threads by the real clock,
 * or on the calling thread by the virtual clock. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/mac.h"
#include "net/tester.h"
#include "stream/compiled.h"
#include "support/counter.h"

enum {
	/* Threads run before the first frame is due, and discard frames of an
	 * earlier trial. */
	START_MS = 20,
	PLACE_START_MS = 100, /* the kernel's set-up takes up to 30 ms */
	MOST_POISSON_PPS = 20000000,
	DEFAULT_SETTLE_MS = 100,
	/* Settling ends this long after the last frame has arrived. */
	ALL_HERE_MS = 20,
	MOST_SETTLES = 10, /* while frames arrive */
	LOOK_MS = 5,       /* how often the calling thread looks */
	PROGRESS_MS = 100,
	VIRTUAL_ROUNDS = 1024, /* between two looks at signals */
	WAIT_NS = 1000,
};

#define MS 1000000ull

static uint64_t mix_bits(uint64_t x)
{
	x += 0x9e3779b97f4a7c15ull;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
	x = (x ^ x >> 27) * 0x94d049bb133111ebull;
	return x >> 32;
}

/* Frames of different trials must differ. If the other side is another program,
 * it has to know the magic, too, so runs differ by a number of their own. */
static void choose_magic(struct tester *tester)
{
	const uint64_t now = ((uint64_t)tester->n_trials << 32) +
			     clock_monotonic_ns() / 1000;
	const bool has_both = tester->n_tx > 0 && tester->n_rx > 0;

	tester->magic =
		(uint32_t)mix_bits(tester->config.seed + (has_both ? now : 0));
	tester->run = has_both || tester->n_tx == 0 ?
			      0 :
			      (uint16_t)(1 + mix_bits(now) % UINT16_MAX);
}

static int choose_orders(struct tester *tester,
			 const struct trial_config *config,
			 struct mr_reason *why)
{
	const double mean = tester->streams[0]->mean_bytes;
	const double line = tester_line_bps(tester) / (8 * (mean + WIRE_BYTES));
	double pps = config->pps;

	/* Each gap costs a logarithm, even of frames that are given up. */
	if (config->pace == PACE_POISSON &&
	    pps > (double)MOST_POISSON_PPS * tester->n_sources)
		return fail_with(why, 2,
				 "--pace poisson: %.3g frames per second are "
				 "too many for %u queues (at most %d each)",
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
		/* A multiple of 64: no two frames share a cache line. */
		sender->config.buffer_bytes =
			tester->headroom_bytes +
			(streams->max_bytes + 63) / 64 * 64;
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
	tester->n_lanes = tester->n_sources > 0 ?
				  tester->streams[0]->n * tester->n_sources :
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
		/* The clock of another program started at another time. */
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

static int prepare_trial(struct tester *tester,
			 const struct trial_config *config,
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

/* The largest error of a receiver's device clock. */
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

	ret->clock_error_ns =
		tester->clock.error_ns + drift + device_clock_error(tester);
	if (clock_is_stable(&tester->clock, ret->whole_ns, drift))
		return;
	ret->is_cut_short = true;
	snprintf(ret->why_stopped, sizeof(ret->why_stopped),
		 "clock unstable: the %s came %.1f us away from "
		 "CLOCK_MONOTONIC in %.3f s",
		 clock_source(&tester->clock), (double)drift / 1e3,
		 (double)ret->whole_ns / 1e9);
}

static int begin_places(struct tester *tester, struct mr_reason *why)
{
	for (uint32_t i = 0; i < tester->n_places; i++) {
		struct sending_place *at = &tester->places[i];
		struct send_orders orders = tester->orders;
		struct mr_reason said;
		int err;

		at->is_done = 0;
		at->err = 0;
		orders.sender = tester->n_senders + i;
		err = at->ops->begin(at->place, tester->streams[at->t], &orders,
				     &said);
		if (err < 0)
			return fail_with(why, err == -EINVAL ? 2 : 1, "%s",
					 said.text);
	}
	return 0;
}

static void stop_places(struct tester *tester)
{
	for (uint32_t i = 0; i < tester->n_places; i++)
		if (!__atomic_load_n(&tester->places[i].is_done,
				     __ATOMIC_ACQUIRE))
			tester->places[i].ops->stop(tester->places[i].place);
}

static void check_places(const struct tester *tester, struct trial_result *ret)
{
	for (uint32_t i = 0; i < tester->n_places; i++) {
		const struct sending_place *at = &tester->places[i];

		if (!__atomic_load_n(&at->is_done, __ATOMIC_ACQUIRE) ||
		    at->err >= 0)
			continue;
		snprintf(ret->why_stopped, sizeof(ret->why_stopped), "%s",
			 at->why.text);
	}
}

/* Set why_stopped if a port is down or gone. */
static void look_at_ports(struct tester *tester, struct trial_result *ret)
{
	for (uint32_t p = 0; p < tester_n_ports(tester); p++) {
		struct mr_port_info info;
		struct mr_link link;

		if (p < tester->n_ports)
			mr_port_poll(tester->plane.ports[p]);
		tester_port(tester, p, &info, &link);
		if (link.is_up && !link.is_gone)
			continue;
		snprintf(ret->why_stopped, sizeof(ret->why_stopped), "%s %s",
			 info.name,
			 link.is_gone ? "is gone: its device was deleted" :
					"has lost its link");
	}
}

static void show_progress(struct tester *tester, uint64_t now, bool is_sending)
{
	struct trial_result *so_far = tester->so_far;
	const uint64_t start = tester->orders.start_ns;

	if (tester->progress == NULL || now <= start)
		return;
	so_far->whole_ns = now - start;
	if (is_sending)
		so_far->sending_ns = now - start;
	tester_count_so_far(tester, so_far);
	tester->progress(tester->progress_opaque, so_far);
}

static uint64_t last_arrival(const struct tester *tester)
{
	uint64_t last = 0;

	for (uint32_t i = 0; i < tester->n_receivers; i++) {
		const uint64_t at = __atomic_load_n(
			&tester->receivers[i].last_ns, __ATOMIC_RELAXED);

		last = at > last ? at : last;
	}
	return last;
}

/* When to stop waiting for late frames: sooner if all have arrived, later while
 * they still arrive, within bounds. */
static uint64_t settled_at(const struct tester *tester, uint64_t sent_at,
			   uint64_t settle_ns, uint64_t *all_here_at,
			   uint64_t now)
{
	const uint64_t last = last_arrival(tester);
	uint64_t end = (last > sent_at ? last : sent_at) + settle_ns;

	if (tester->n_receivers == 0)
		return sent_at;
	if (*all_here_at == 0 &&
	    tester_n_unique(tester) == tester_n_sent(tester))
		*all_here_at = now;
	if (*all_here_at > 0 && *all_here_at + ALL_HERE_MS * MS < end)
		end = *all_here_at + ALL_HERE_MS * MS;
	if (end > sent_at + MOST_SETTLES * settle_ns)
		end = sent_at + MOST_SETTLES * settle_ns;
	return end;
}

/* A program that only receives ends after a time or a number of frames. */
static bool is_enough(const struct tester *tester, uint64_t now)
{
	uint64_t n_received = 0;

	for (uint32_t i = 0; i < tester->n_receivers; i++)
		n_received += counter_get(&tester->receivers[i].n_received);
	return now >= tester->orders.end_ns ||
	       n_received >= tester->orders.n_frames;
}

static uint64_t settle_of(const struct trial_config *config)
{
	return config->settle_ns > 0 ? config->settle_ns :
				       DEFAULT_SETTLE_MS * MS;
}

/* 0: a trial may end before its first frame is due. */
static uint64_t since_start(const struct tester *tester, uint64_t at)
{
	const uint64_t start = tester->orders.start_ns;

	return at > start ? at - start : 0;
}

/* End sending early if a signal or a port requires it. Frames on their way are
 * still awaited, so that they do not count as lost. */
static void cut_if_asked(struct tester *tester, struct trial_result *ret)
{
	if (ret->is_cut_short)
		return;
	check_places(tester, ret);
	if (!tester_is_ending() && !tester->is_ended &&
	    ret->why_stopped[0] == '\0')
		return;
	ret->is_cut_short = true;
	__atomic_store_n(&tester->is_cut, 1, __ATOMIC_RELAXED);
	stop_places(tester);
}

/* The calling thread's part: check the ports, report progress, and decide when
 * the trial is over. */
static void watch_trial(struct tester *tester,
			const struct trial_config *config,
			struct trial_result *ret)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000 };
	uint64_t sent_at = 0, all_here_at = 0, next_show = 0, cut_at = 0;

	for (;;) {
		const bool is_sending = tester->n_sources > 0 ?
						tester_is_sending(tester) :
						sent_at == 0;
		const uint64_t now = clock_now(&tester->clock);

		if (sent_at == 0 && !is_sending)
			sent_at = now;
		if (sent_at == 0 && tester->n_sources == 0 &&
		    (is_enough(tester, now) || cut_at > 0))
			sent_at = now;
		if (sent_at > 0 &&
		    now >= settled_at(tester, sent_at, settle_of(config),
				      &all_here_at, now))
			break;
		/* dataplane_join() reports a thread that hangs. */
		if (cut_at > 0 && sent_at == 0 &&
		    now > cut_at + DATAPLANE_JOIN_MS * MS)
			break;
		if (now >= next_show) {
			look_at_ports(tester, ret);
			show_progress(tester, now, is_sending);
			next_show = now + PROGRESS_MS * MS;
		}
		cut_if_asked(tester, ret);
		if (cut_at == 0 && ret->is_cut_short)
			cut_at = now;
		nanosleep(&pause, NULL);
	}
	ret->whole_ns = since_start(tester, clock_now(&tester->clock));
	ret->sending_ns =
		sent_at > 0 ? since_start(tester, sent_at) : ret->whole_ns;
}

/* A trial of a given duration lasted that long; one of a number of frames
 * lasted until the last of them left. */
static void correct_length(const struct tester *tester,
			   struct trial_result *ret)
{
	const struct send_orders *orders = &tester->orders;
	const uint64_t asked = orders->end_ns - orders->start_ns;
	uint64_t last = 0;

	for (uint32_t i = 0; i < tester->n_senders; i++)
		if (tester->senders[i].last_ns > last)
			last = tester->senders[i].last_ns;
	if (places_counts(tester).last_ns > last)
		last = places_counts(tester).last_ns;
	if (orders->end_ns != UINT64_MAX && ret->sending_ns > asked)
		ret->sending_ns = asked;
	else if (last > orders->start_ns &&
		 ret->sending_ns > last - orders->start_ns)
		ret->sending_ns = last - orders->start_ns;
}

static int run_threads(struct tester *tester, const struct trial_config *config,
		       struct trial_result *ret, struct mr_reason *why)
{
	struct mr_workers *workers = tester->plane.workers;
	struct mr_reason said;
	int err;

	if (mr_workers_start(workers, tester_sit, tester, &said) < 0)
		return fail_with(why, 1, "%s", said.text);
	watch_trial(tester, config, ret);
	__atomic_store_n(&tester->is_stopping, 1, __ATOMIC_RELAXED);
	stop_places(tester);
	err = dataplane_join(&tester->plane, &said);
	tester->is_hung = err == -ETIMEDOUT;
	if (err < 0)
		return fail_with(why, 1, "%s", said.text);
	check_places(tester, ret);
	if (ret->why_stopped[0] != '\0')
		ret->is_cut_short = true;
	correct_length(tester, ret);
	return 0;
}

/* The time of the next event. */
static uint64_t next_event(const struct tester *tester)
{
	uint64_t next = UINT64_MAX;

	for (uint32_t i = 0; i < tester->n_senders; i++) {
		const uint64_t at = tester->senders[i].is_done ?
					    UINT64_MAX :
					    sender_next_ns(&tester->senders[i]);

		next = at < next ? at : next;
	}
	for (uint32_t i = 0; i < tester->n_crossings; i++) {
		const uint64_t at = device_next_ns(tester->crossings[i].device);

		next = at < next ? at : next;
	}
	return next;
}

static void run_virtual(struct tester *tester,
			const struct trial_config *config,
			struct trial_result *ret)
{
	struct seat *seat = &tester->seats[0];
	struct mr_cache *cache =
		mr_workers_get(tester->plane.workers, 0)->cache;
	uint64_t now = 0, sent_at = 0;
	bool is_sending = true;

	for (uint64_t n_rounds = 0;; n_rounds++) {
		const uint32_t n = seat_step(seat, cache, now);
		uint64_t next;

		if (is_sending && !tester_is_sending(tester)) {
			is_sending = false;
			sent_at = now;
		}
		if (n_rounds % VIRTUAL_ROUNDS == 0 && !ret->is_cut_short &&
		    tester_is_ending()) {
			ret->is_cut_short = true;
			seat_end_senders(seat, now);
		}
		if (n > 0)
			continue;
		next = next_event(tester);
		if (next == UINT64_MAX && !is_sending)
			break;
		/* A frame is due that cannot leave now. */
		clock_move(&tester->clock, next > now ? next : now + WAIT_NS);
		now = clock_now(&tester->clock);
		if (!is_sending && now > sent_at + settle_of(config))
			break;
	}
	seat_await_completions(seat);
	ret->whole_ns = now;
	ret->sending_ns = sent_at;
	if (tester->orders.end_ns != UINT64_MAX && !ret->is_cut_short)
		ret->sending_ns = tester->orders.end_ns;
}

int tester_run(struct tester *tester, const struct trial_config *config,
	       struct trial_result *ret, struct mr_reason *why)
{
	int status = prepare_trial(tester, config, why);

	memset(ret, 0, sizeof(*ret));
	/* Begin twice: the first time prepares, which may take long, and the
	 * second has the clock of the trial. */
	if (status == 0)
		status = begin_places(tester, why);
	if (status == 0) {
		reset_devices(tester);
		tester_count_before(tester);
		clock_start(&tester->clock);
		status = begin_places(tester, why);
	}
	if (status == 0) {
		tester->is_stopping = tester->is_cut = 0;
		tester->is_ended = false;
		if (tester->config.is_virtual)
			run_virtual(tester, config, ret);
		else
			status = run_threads(tester, config, ret, why);
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

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rounds of a trial: on the workers' threads by the real clock, or on the
 * calling thread by the virtual one.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "net/tester_parts.h"
#include "support/counter.h"

enum {
	DEFAULT_SETTLE_MS = 100,
	/* Settling ends so soon after every frame has come. */
	ALL_HERE_MS = 20,
	MOST_SETTLES = 10, /* as long as frames come */
	LOOK_MS = 5,       /* how often the calling thread looks */
	PROGRESS_MS = 100,
	VIRTUAL_ROUNDS = 1024, /* between two looks at signals */
	WAIT_NS = 1000,
	LAST_BURSTS = 1024, /* more than any ring holds */
	COMPLETIONS_MS = 20,
};

#define MS 1000000ull

static uint32_t cross(struct tester *tester, struct mr_cache *cache,
		      uint64_t now)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < tester->n_crossings; i++) {
		struct crossing *crossing = &tester->crossings[i];

		n += device_step(crossing->device, crossing->from, crossing->to,
				 cache, now);
	}
	return n;
}

/* A round of all that a thread has to do. Returns what it moved. */
static uint32_t round_of(struct seat *seat, struct mr_cache *cache,
			 uint64_t now)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < seat->n_senders; i++)
		n += sender_step(seat->senders[i], now);
	if (seat->has_device)
		n += cross(seat->tester, cache, now);
	for (uint32_t i = 0; i < seat->n_receivers; i++)
		n += receiver_step(seat->receivers[i]);
	return n;
}

/* What was due and has not gone by now never goes. */
static void end_senders(struct seat *seat, uint64_t now)
{
	for (uint32_t i = 0; i < seat->n_senders; i++)
		if (!seat->senders[i]->is_done)
			sender_end(seat->senders[i], now);
}

/* A queue that drops frames counts them when it gives them back, which some
 * devices do late. */
static void await_completions(struct seat *seat)
{
	const uint64_t until_ns = clock_monotonic_ns() + COMPLETIONS_MS * MS;
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	for (uint32_t i = 0; i < seat->n_senders; i++) {
		const struct sender_config *config = &seat->senders[i]->config;

		do {
			mr_tx_burst(config->txq, config->cache, NULL, 0);
			mr_txq_stats(config->txq, &stats);
		} while (stats.pending > 0 && clock_monotonic_ns() < until_ns);
	}
}

/* What had come before it was time to end is counted, too. */
static void take_the_rest(struct seat *seat)
{
	for (uint32_t i = 0; i < seat->n_receivers; i++)
		for (uint32_t n = 0; n < LAST_BURSTS; n++)
			if (receiver_step(seat->receivers[i]) == 0)
				break;
}

static uint64_t ns_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_usec * 1000;
}

/* CPU time of the calling thread since the last call. */
static void count_usage(struct seat *seat)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	seat->user_ns = ns_of(&usage.ru_utime) - seat->user_ns;
	seat->system_ns = ns_of(&usage.ru_stime) - seat->system_ns;
}

static bool is_behind(const struct seat *seat, uint64_t before_ns)
{
	for (uint32_t i = 0; i < seat->n_senders; i++)
		if (sender_is_behind(seat->senders[i], before_ns))
			return true;
	return false;
}

static int sit(struct mr_worker *worker, void *opaque)
{
	struct tester *tester = opaque;
	struct seat *seat = &tester->seats[worker->idx];
	bool has_begun = false;
	uint64_t now;

	now = clock_now(&tester->clock);
	seat->busy_ns = seat->all_ns = seat->user_ns = seat->system_ns = 0;
	if (seat->place != NULL) {
		places_run(seat->place);
		seat->busy_ns = seat->all_ns = clock_now(&tester->clock) - now;
		count_usage(seat);
		return 0;
	}
	away_begin(&seat->away, tester->orders.start_ns, now);
	while (!__atomic_load_n(&tester->is_stopping, __ATOMIC_RELAXED)) {
		const uint32_t n = round_of(seat, worker->cache, now);
		const uint64_t then = now;

		if (__atomic_load_n(&tester->is_cut, __ATOMIC_RELAXED))
			end_senders(seat, now);
		now = clock_now(&tester->clock);
		seat->all_ns += now - then;
		if (n > 0)
			seat->busy_ns += now - then;
		if (!has_begun && now >= tester->orders.start_ns) {
			has_begun = true;
			count_usage(seat);
		}
		if (has_begun)
			away_round(&seat->away, then, now, n > 0,
				   is_behind(seat, then));
	}
	away_end(&seat->away);
	count_usage(seat);
	end_senders(seat, now);
	take_the_rest(seat);
	await_completions(seat);
	return 0;
}

/* Set why_stopped if a port cannot go on. */
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

/* Until when to wait for late frames: sooner if all are here, and longer while
 * they still come, within bounds. */
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

/* A program that only receives ends by time or by number. */
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

/* It may be over before it has begun. */
static uint64_t since_start(const struct tester *tester, uint64_t at)
{
	const uint64_t start = tester->orders.start_ns;

	return at > start ? at - start : 0;
}

/*
 * End sending before its time, if a signal or a port says so; what is on its
 * way is waited for as ever, so that it is not taken for lost.
 */
static void cut_if_asked(struct tester *tester, struct trial_result *ret)
{
	if (ret->is_cut_short)
		return;
	places_look(tester, ret);
	if (!tester_is_ending() && !tester->is_ended &&
	    ret->why_stopped[0] == '\0')
		return;
	ret->is_cut_short = true;
	__atomic_store_n(&tester->is_cut, 1, __ATOMIC_RELAXED);
	places_stop(tester);
}

/* The calling thread's part: look, tell, and say when it is over. */
static void watch(struct tester *tester, const struct trial_config *config,
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
		/* A thread that hangs is the join's to tell. */
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

/* A trial of a given length lasted that long; one of a given number of frames
 * until the last of them left. */
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

int tester_run_threads(struct tester *tester, const struct trial_config *config,
		       struct trial_result *ret, struct mr_reason *why)
{
	struct mr_workers *workers = tester->plane.workers;
	struct mr_reason said;
	int err;

	if (mr_workers_start(workers, sit, tester, &said) < 0)
		return fail_with(why, 1, "%s", said.text);
	watch(tester, config, ret);
	__atomic_store_n(&tester->is_stopping, 1, __ATOMIC_RELAXED);
	places_stop(tester);
	err = dataplane_join(&tester->plane, &said);
	tester->is_hung = err == -ETIMEDOUT;
	if (err < 0)
		return fail_with(why, 1, "%s", said.text);
	places_look(tester, ret);
	if (ret->why_stopped[0] != '\0')
		ret->is_cut_short = true;
	correct_length(tester, ret);
	return 0;
}

/* When something will happen next, nothing else happening before. */
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

void tester_run_virtual(struct tester *tester,
			const struct trial_config *config,
			struct trial_result *ret)
{
	struct seat *seat = &tester->seats[0];
	struct mr_cache *cache =
		mr_workers_get(tester->plane.workers, 0)->cache;
	uint64_t now = 0, sent_at = 0;
	bool is_sending = true;

	for (uint64_t n_rounds = 0;; n_rounds++) {
		const uint32_t n = round_of(seat, cache, now);
		uint64_t next;

		if (is_sending && !tester_is_sending(tester)) {
			is_sending = false;
			sent_at = now;
		}
		if (n_rounds % VIRTUAL_ROUNDS == 0 && !ret->is_cut_short &&
		    tester_is_ending()) {
			ret->is_cut_short = true;
			end_senders(seat, now);
		}
		if (n > 0)
			continue;
		next = next_event(tester);
		if (next == UINT64_MAX && !is_sending)
			break;
		/* What is due and cannot go has to wait. */
		clock_move(&tester->clock, next > now ? next : now + WAIT_NS);
		now = clock_now(&tester->clock);
		if (!is_sending && now > sent_at + settle_of(config))
			break;
	}
	await_completions(seat);
	ret->whole_ns = now;
	ret->sending_ns = sent_at;
	if (tester->orders.end_ns != UINT64_MAX && !ret->is_cut_short)
		ret->sending_ns = tester->orders.end_ns;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of a tester: what they do in a trial, and which part of the
 * latencies they caused. */
#include <sys/resource.h>

#include "net/tester.h"

enum {
	LAST_BURSTS = 1024, /* more than any ring holds */
	COMPLETIONS_MS = 20,
};

#define MS 1000000ull

static uint32_t cross_devices(struct tester *tester, struct mr_cache *cache,
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

uint32_t seat_step(struct seat *seat, struct mr_cache *cache, uint64_t now)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < seat->n_senders; i++)
		n += sender_step(seat->senders[i], now);
	if (seat->has_device)
		n += cross_devices(seat->tester, cache, now);
	for (uint32_t i = 0; i < seat->n_receivers; i++)
		n += receiver_step(seat->receivers[i]);
	return n;
}

void seat_end_senders(struct seat *seat, uint64_t now)
{
	for (uint32_t i = 0; i < seat->n_senders; i++)
		if (!seat->senders[i]->is_done)
			sender_end(seat->senders[i], now);
}

void seat_await_completions(struct seat *seat)
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

/* Count the frames that arrived before the end. */
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

/* The CPU time of the calling thread since the last call. */
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

static void run_place(struct sending_place *at)
{
	at->err = at->ops->run(at->place, &at->why);
	__atomic_store_n(&at->is_done, 1, __ATOMIC_RELEASE);
}

int tester_sit(struct mr_worker *worker, void *opaque)
{
	struct tester *tester = opaque;
	struct seat *seat = &tester->seats[worker->idx];
	bool has_begun = false;
	uint64_t now;

	now = clock_now(&tester->clock);
	seat->busy_ns = seat->all_ns = seat->user_ns = seat->system_ns = 0;
	if (seat->place != NULL) {
		run_place(seat->place);
		seat->busy_ns = seat->all_ns = clock_now(&tester->clock) - now;
		count_usage(seat);
		return 0;
	}
	away_begin(&seat->away, tester->orders.start_ns, now);
	while (!__atomic_load_n(&tester->is_stopping, __ATOMIC_RELAXED)) {
		const uint32_t n = seat_step(seat, worker->cache, now);
		const uint64_t then = now;

		if (__atomic_load_n(&tester->is_cut, __ATOMIC_RELAXED))
			seat_end_senders(seat, now);
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
	seat_end_senders(seat, now);
	take_the_rest(seat);
	seat_await_completions(seat);
	return 0;
}

static const struct away *sender_away(const struct tester *tester, uint32_t i)
{
	for (uint32_t w = 0; w < tester->plane.n_workers; w++)
		for (uint32_t k = 0; k < tester->seats[w].n_senders; k++)
			if (tester->seats[w].senders[k] == &tester->senders[i])
				return &tester->seats[w].away;
	return NULL; /* it is a place */
}

static void explain_receiver(const struct tester *tester,
			     const struct away *away,
			     const struct receiver *receiver, uint64_t least_ns,
			     struct trial_tail *ret)
{
	const struct spans *late = receiver->late;

	if (late != NULL && late->least_ns > least_ns &&
	    late->least_ns > ret->least_ns)
		ret->least_ns = late->least_ns;
	for (uint32_t i = 0; late != NULL && i < late->n; i++) {
		const struct span *span = &late->all[i];

		if (span->end_ns - span->start_ns >= least_ns)
			tail_add(ret, span,
				 sender_away(tester,
					     span->lane % tester->n_sources),
				 away);
	}
}

void tester_explain_tail(const struct tester *tester, struct trial_result *ret)
{
	const uint64_t least_ns = hist_at(&ret->latency, 99.9);

	for (uint32_t w = 0; w < tester->plane.n_workers; w++) {
		const struct seat *seat = &tester->seats[w];
		const struct away *away = &seat->away;

		for (uint32_t i = 0; i < seat->n_receivers; i++)
			explain_receiver(tester, away, seat->receivers[i],
					 least_ns, &ret->tail);
		if (seat->n_senders > 0 &&
		    away->longest_ns > ret->tail.tx_away_ns)
			ret->tail.tx_away_ns = away->longest_ns;
		if (seat->n_receivers > 0 &&
		    away->longest_ns > ret->tail.rx_away_ns)
			ret->tail.rx_away_ns = away->longest_ns;
		ret->tail.all_waited_ns += away->waited_ns;
		ret->tail.all_still_ns += away->still_ns;
	}
}

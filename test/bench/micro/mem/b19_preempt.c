/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B19: more threads than cores, so that some are stopped where it hurts. Each
 * takes 1024 objects from the shared pool in bursts of 32, then gives them back
 * in bursts of 32: more than any cache holds, so all share what is behind.
 * Another thread that was stopped in there must not make one wait.
 *
 * What single bursts take comes from a run of its own, with a clock around
 * each.
 */
#include <stdio.h>

#include "latency.h"
#include "takers.h"
#include "workloads.h"

enum { THREADS, MAGAZINE, IS_TIMED }; /* of player.param */

enum { BURST = 32, KEEP = 1024, PER_THREAD = 4096 };

struct crowd {
	void *pool;
	uint32_t n;
	struct latency latencies[]; /* by thread */
};

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct pool_wish wish = {
		.n_objects = (uint32_t)player->param[THREADS] * PER_THREAD,
		.n_threads = (uint32_t)player->param[THREADS],
		.kind = player->param[MAGAZINE],
	};
	struct crowd *crowd = calloc(
		1, sizeof(*crowd) + wish.n_threads * sizeof(struct latency));

	if (crowd == NULL)
		return -1;
	crowd->n = wish.n_threads;
	crowd->pool = taker_pool_make(player->side, player->bench, &wish,
				      player->opaque, why);
	if (crowd->pool == NULL) {
		free(crowd);
		return -1;
	}
	player->state = crowd;
	return 0;
}

static void tear_down(struct player *player)
{
	struct crowd *crowd = player->state;

	taker_pool_free(player->side, crowd->pool);
	free(crowd);
}

static ALWAYS_INLINE bool round_of(struct crowd *crowd, uint32_t thread,
				   bool is_dpdk, struct latency *latency,
				   const struct taker taker)
{
	word words[KEEP];
	uint32_t n;

	for (n = 0; n < KEEP && !bench_is_ending(); n += BURST) {
		const uint64_t start = latency != NULL ? latency_now() : 0;

		if (!taker.take(crowd->pool, thread, words + n, BURST))
			break;
		if (latency != NULL)
			latency_add(latency, latency_now() - start);
	}
	keep(words);
	/* DPDK's pools forget what is not given back; rings may take long. */
	if (is_dpdk && bench_is_ending())
		return true;
	for (uint32_t i = 0; i < n; i += BURST) {
		const uint64_t start = latency != NULL ? latency_now() : 0;

		taker.give(crowd->pool, thread, words + i, BURST);
		if (latency != NULL)
			latency_add(latency, latency_now() - start);
	}
	return n == KEEP;
}

static ALWAYS_INLINE uint64_t run(struct player *player, uint32_t thread,
				  uint64_t n, const struct taker taker)
{
	struct crowd *crowd = player->state;
	struct latency *latency = &crowd->latencies[thread];
	const bool is_dpdk = player->side == SIDE_DPDK;
	uint64_t done, start = 0;

	n = n_of_run(n, KEEP);
	for (done = 0; done < n && !bench_is_ending() && !is_too_long(&start);
	     done += KEEP)
		if (player->param[IS_TIMED] != 0 ?
			    !round_of(crowd, thread, is_dpdk, latency, taker) :
			    !round_of(crowd, thread, is_dpdk, NULL, taker))
			return 0;
	return done;
}

static void count(struct player *player, struct counts *counts)
{
	struct crowd *crowd = player->state;

	player->param[IS_TIMED] = 1;
	bench_run_again(player, 4000000);
	player->param[IS_TIMED] = 0;
	latency_count(crowd->latencies, crowd->n, counts);
	taker_pool_count(crowd->pool, player, counts);
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, OURS_TAKER);
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, DPDK_TAKER);
}
#else
#define run_dpdk NULL
#endif

static void row_of(struct bench *bench, const char *name, uint32_t n_threads)
{
	struct player players[MAX_PLAYERS];
	struct row row = { .name = name,
			   .unit = "page",
			   .n_threads = n_threads,
			   .is_per_thread = true,
			   .plot = "threads",
			   .x_name = "threads",
			   .x = n_threads,
			   .players = players };
	struct player player = { .setup = set_up,
				 .count = count,
				 .teardown = tear_down,
				 .param = { n_threads } };

	takers_add_ours(bench, &row, &player, MAGAZINE, run_ours);
	takers_add_dpdk(bench, &row, &player, run_dpdk);
	bench_row(bench, &row);
}

/* Fewer threads than cores, as many, and more. */
static void rows(struct bench *bench)
{
	const uint32_t n_cores = bench_n_cores(bench);
	char name[64];

	for (uint32_t n = 1; n < n_cores; n *= 2) {
		snprintf(name, sizeof(name), "threads=%u", n);
		row_of(bench, name, n);
	}
	for (uint32_t n = 1; n <= 4 && n * n_cores <= MAX_THREADS; n *= 2) {
		snprintf(name, sizeof(name), "threads_per_core=%u", n);
		row_of(bench, name, n * n_cores);
	}
}

const struct workload b19_preempt = {
	.name = "B19",
	.title = "preempt",
	.what = "more threads than cores share a pool",
	.source = "DPDK, test_ring_stress: over committed",
	.rows = rows,
};

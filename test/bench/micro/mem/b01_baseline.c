/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B01: what this machine's basic moves cost. Other figures are compared with
 * published ones only as ratios to these.
 */
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "workloads.h"

static uint64_t run_loop(struct player *player, uint32_t thread, uint64_t n)
{
	(void)player;
	(void)thread;
	for (uint64_t i = 0; i < n; i++)
		keep(NULL);
	return n;
}

static uint64_t run_atomic(struct player *player, uint32_t thread, uint64_t n)
{
	alignas(64) uint32_t word = 0;

	(void)player;
	(void)thread;
	for (uint64_t i = 0; i < n; i++)
		__atomic_add_fetch(&word, 1, __ATOMIC_ACQ_REL);
	keep(&word);
	return n;
}

static uint64_t run_lock(struct player *player, uint32_t thread, uint64_t n)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

	(void)player;
	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	return n;
}

static uint64_t run_memcpy(struct player *player, uint32_t thread, uint64_t n)
{
	alignas(64) char from[256] = "x", to[256];

	(void)player;
	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		keep(from);
		memcpy(to, from, sizeof(to));
		keep(to);
	}
	return n;
}

/* A line that two cores hand to each other: it holds whose turn it is. */
static int set_up_line(struct player *player, struct mr_reason *why)
{
	(void)why;
	player->state = aligned_alloc(64, 64);
	if (player->state == NULL)
		return -1;
	memset(player->state, 0, 64);
	return 0;
}

static uint64_t run_ping_pong(struct player *player, uint32_t thread,
			      uint64_t n)
{
	uint64_t *turn = player->state;
	const uint64_t start = player->n_done; /* even: two moves each round */

	for (uint64_t i = 0; i < n; i++) {
		uint32_t n_spins = 0;

		while (__atomic_load_n(turn, __ATOMIC_ACQUIRE) !=
		       start + 2 * i + thread)
			if (++n_spins > 10000) /* one core, or it is busy */
				sched_yield();
		__atomic_store_n(turn, start + 2 * i + thread + 1,
				 __ATOMIC_RELEASE);
	}
	return n;
}

static void free_state(struct player *player)
{
	free(player->state);
}

static void rows(struct bench *bench)
{
	static const struct {
		const char *name;
		uint64_t (*run)(struct player *, uint32_t, uint64_t);
	} singles[] = {
		{ "for_loop", run_loop },
		{ "atomic_inc, private", run_atomic },
		{ "mutex lock + unlock", run_lock },
		{ "memcpy of 256 bytes", run_memcpy },
	};
	struct player players[MAX_PLAYERS];
	struct row row = { .name = "1 core",
			   .unit = "step",
			   .players = players };

	for (uint32_t i = 0; i < 4; i++)
		bench_add(bench, players, &row.n_players,
			  &(struct player){ .name = singles[i].name,
					    .side = SIDE_PLAIN,
					    .run = singles[i].run });
	bench_row(bench, &row);

	row = (struct row){ .name = "2 threads",
			    .unit = "move of a line",
			    .n_threads = 2,
			    .players = players };
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "ping-pong",
				    .side = SIDE_PLAIN,
				    .setup = set_up_line,
				    .run = run_ping_pong,
				    .teardown = free_state });
	bench_row(bench, &row);
}

const struct workload b01_baseline = {
	.name = "B01",
	.title = "baseline",
	.what = "loop, atomic, lock, memcpy, a line between two cores",
	.source = "prototype-kernel, bench_page_pool_simple",
	.rows = rows,
};

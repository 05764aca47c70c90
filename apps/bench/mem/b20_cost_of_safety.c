/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B20: what each level of checks costs. One core takes bursts of 32 and drops
 * them (as B08), or sends them to another one that frees them (as B14). The
 * first level is what all the others are compared with.
 */
#include <stdio.h>

#include "pipe.h"
#include "workloads.h"

enum { THREADS, SAFETY }; /* of player.param */

enum { N_PAGES = 16384, RING = 1024 };

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct pool_wish wish = {
		.n_objects = N_PAGES,
		.n_threads = (uint32_t)player->param[THREADS],
		.safety = (enum mr_safety)player->param[SAFETY],
	};

	return pipe_make(player, &wish, RING, false, why);
}

static uint64_t drop(struct pipe *pipe, uint64_t n)
{
	word words[PIPE_BURST];

	for (uint64_t done = 0; done < n; done += PIPE_BURST) {
		if (!ours_take(pipe->pool, 0, words, PIPE_BURST))
			return 0;
		keep(words);
		ours_give(pipe->pool, 0, words, PIPE_BURST);
	}
	return n;
}

static uint64_t run(struct player *player, uint32_t thread, uint64_t n)
{
	struct pipe *pipe = player->state;
	struct patience patience = { 0 };
	word words[PIPE_BURST];

	n = n_of_run(n, PIPE_BURST);
	if (player->param[THREADS] == 1)
		return drop(pipe, n);
	if (thread == 0)
		return pipe_produce(pipe, n, OURS_TAKER);
	for (uint64_t done = 0; done < n;) {
		const uint32_t got = hop_get(pipe->hop, words, PIPE_BURST);

		ours_give(pipe->pool, 1, words, got);
		done += got;
		if (got > 0)
			patience = (struct patience){ 0 };
		else if (pipe_is_dead(pipe, &patience))
			break;
	}
	ours_idle(pipe->pool, 1);
	return 0;
}

static void rows(struct bench *bench)
{
	static const char *const levels[] = { "0 counts", "1 states",
					      "2 poison", "3 guard" };

	for (uint32_t n_threads = 1; n_threads <= 2; n_threads++) {
		struct player players[MAX_PLAYERS];
		struct row row = { .name = n_threads == 1 ? "drop" : "pipeline",
				   .unit = "page",
				   .n_threads = n_threads,
				   .players = players };

		for (uint32_t i = MR_SAFETY_COUNTS; i <= MR_SAFETY_GUARD; i++)
			bench_add(
				bench, players, &row.n_players,
				&(struct player){ .name = levels[i],
						  .side = SIDE_OURS,
						  .setup = set_up,
						  .run = run,
						  .count = pipe_count,
						  .teardown = pipe_free,
						  .param = { n_threads, i } });
		bench_row(bench, &row);
	}
}

const struct workload b20_cost_of_safety = {
	.name = "B20",
	.title = "cost_of_safety",
	.what = "drop and pipeline at each level of checks",
	.source = "DPDK 203dcc9cfe",
	.rows = rows,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B20: what each level of checks costs. One core takes bursts of 32 and drops
 * them (as B08), or sends them to another one that frees them (as B14). The
 * first level is what all the others are compared with. Pages are of 4096
 * bytes, the smallest that can be guarded; guards have OS pages of that size,
 * the other levels huge ones. Statistics are on in all: they cannot be
 * switched off.
 */
#include <stdlib.h>
#include <string.h>

#include "pipe.h"
#include "workloads.h"

enum { THREADS, SAFETY }; /* of player.param */

enum { N_PAGES = 8192, PAGE_BYTES = 4096, RING = 1024 };

/* A pool of larger pages than takers.c makes, in a pipe that is the same. */
static int set_up(struct player *player, struct mr_reason *why)
{
	const struct mr_pool_config config = {
		.n_pages = N_PAGES,
		.page_bytes = PAGE_BYTES,
		.safety = (enum mr_safety)player->param[SAFETY],
	};
	struct pipe *pipe = aligned_alloc(64, sizeof(*pipe));
	struct our_pool *our = calloc(1, sizeof(*our));
	struct hop *hop = hop_make(RING);

	if (pipe == NULL || our == NULL || hop == NULL ||
	    ours_make(&our->ours, player->bench, &config,
		      (uint32_t)player->param[THREADS], why) < 0) {
		free(pipe);
		free(our);
		free(hop);
		return -1;
	}
	our->base = mr_region_base(mr_pool_region(our->ours.pool));
	memset(pipe, 0, sizeof(*pipe));
	pipe->pool = our;
	pipe->hop = hop;
	player->state = pipe;
	return 0;
}

static ALWAYS_INLINE bool take(void *pool, uint32_t thread, word *words,
			       uint32_t n)
{
	struct mr_cache *cache = ((struct our_pool *)pool)->ours.caches[thread];
	const uint32_t got =
		mr_frag_alloc_bulk(cache, (uint64_t *)words, n, PAGE_BYTES);

	if (got == n)
		return true;
	mr_frag_free_bulk(cache, (const uint64_t *)words, got);
	return false;
}

static uint64_t drop(struct pipe *pipe, uint64_t n)
{
	word words[PIPE_BURST];

	for (uint64_t done = 0; done < n; done += PIPE_BURST) {
		if (!take(pipe->pool, 0, words, PIPE_BURST))
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
		return pipe_produce(pipe, n,
				    (struct taker){ take, ours_give, ours_data,
						    ours_idle });
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

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B08: receive and drop. Here by address and pointer alone, which is what the
 * pools cost; as a driver and an application do it: b08_frames.c. And the
 * ladder of a forward: b08_ladder.c.
 */
#include <stdio.h>

#include "bench.h"
#include "drop.h"
#include "ours.h"
#include "peer_dpdk.h"
#include "usual.h"
#include "workloads.h"

static uint32_t take_ours(struct player *player, uint64_t *pages, uint32_t n)
{
	struct ours *ours = player->state;

	return mr_frag_alloc_bulk(ours->caches[0], pages, n, DROP_BYTES);
}

static void give_ours(struct player *player, uint64_t *pages, uint32_t n)
{
	struct ours *ours = player->state;

	mr_frag_free_bulk(ours->caches[0], pages, n);
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return drop_run(player, n, take_ours, give_ours);
}

#ifdef BENCH_DPDK
static uint32_t take_dpdk(struct player *player, uint64_t *pages, uint32_t n)
{
	struct dpdk_pool *pool = player->state;

	return rte_mempool_get_bulk(pool->mp, (void **)pages, n) == 0 ? n : 0;
}

static void give_dpdk(struct player *player, uint64_t *pages, uint32_t n)
{
	struct dpdk_pool *pool = player->state;

	rte_mempool_put_bulk(pool->mp, (void *const *)pages, n);
}

static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return drop_run(player, n, take_dpdk, give_dpdk);
}
#else
static player_run_fn *const run_dpdk;
#endif

static uint32_t take_model(struct player *player, uint64_t *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		pages[i] = model_alloc(player->state, true);
		if (pages[i] == MODEL_NONE)
			return i;
	}
	return n;
}

/* XDP_DROP: directly, in the poll loop. */
static void give_model(struct player *player, uint64_t *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		model_put_direct(player->state, (uint32_t)pages[i]);
}

static uint64_t run_model(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return drop_run(player, n, take_model, give_model);
}

static void row_of(struct bench *bench, uint32_t burst)
{
	struct player players[MAX_PLAYERS];
	char name[32];
	struct row row = { .name = name,
			   .unit = "frame",
			   .plot = "drop",
			   .x_name = "frames in a burst",
			   .x = burst,
			   .players = players };

	snprintf(name, sizeof(name), "drop burst=%u", burst);
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "addresses",
				    .side = SIDE_OURS,
				    .setup = ours_set_up,
				    .run = run_ours,
				    .count = ours_player_count,
				    .teardown = ours_tear_down,
				    .param = { burst } });
	dpdk_add_all(bench, &row, C_ALL,
		     &(struct player){ .run = run_dpdk, .param = { burst } });
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "model of page_pool",
				    .side = SIDE_KERNEL,
				    .setup = model_set_up,
				    .run = run_model,
				    .teardown = model_tear_down,
				    .param = { burst } });
	bench_row(bench, &row);
}

static void rows(struct bench *bench)
{
	for (uint32_t burst = 8; burst <= DROP_MAX_BURST; burst *= 2)
		row_of(bench, burst);
	b08_rows_of_frames(bench);
	b08_rows_of_ladder(bench);
}

const struct workload b08_xdp_drop = {
	.name = "B08",
	.title = "xdp_drop",
	.what = "receive and drop; recycling on and off in a forward",
	.source = "founding documents 2, 3 and 5",
	.rows = rows,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B08: receive and drop: bursts from an rx ring of 1024 buffers, all dropped,
 * and the ring refilled 64 at a time. The ring is an array: a device that is
 * never the bottleneck.
 * And the ladder of a forward: b08_ladder.c.
 */
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ours.h"
#include "peer_dpdk.h"
#include "usual.h"
#include "workloads.h"

enum {
	N_RING = 1024,
	REFILL = 64,
	MAX_BURST = 256,
	N_PAGES = 16384,
	PAGE_BYTES = 2048,
};

enum { BURST }; /* of player.param */

/* What take and give are for a pool; inlined into the loop of each player. */
typedef uint32_t take_fn(struct player *player, uint64_t *pages, uint32_t n);
typedef void give_fn(struct player *player, const uint64_t *pages, uint32_t n);

/*
 * The rx ring: what is posted lies between tail and head. It begins full, and
 * ends empty, so that all pages are at home after each sample.
 */
static inline __attribute__((always_inline)) uint64_t
receive_and_drop(struct player *player, uint64_t n, take_fn *take,
		 give_fn *give)
{
	const uint32_t burst = (uint32_t)player->param[BURST];
	uint64_t ring[N_RING];
	uint32_t head = 0, tail = 0;
	uint64_t done;

	while (head < N_RING)
		if (take(player, ring + head, REFILL) == REFILL)
			head += REFILL;
		else
			break;
	for (done = 0; done < n && head - tail >= burst; done += burst) {
		give(player, ring + tail % N_RING, burst);
		tail += burst;
		while (N_RING - (head - tail) >= REFILL &&
		       take(player, ring + head % N_RING, REFILL) == REFILL)
			head += REFILL;
	}
	for (; tail != head; tail += REFILL / 8)
		give(player, ring + tail % N_RING, REFILL / 8);
	return done;
}

static uint32_t take_ours(struct player *player, uint64_t *pages, uint32_t n)
{
	struct ours *ours = player->state;

	return mr_frag_alloc_bulk(ours->caches[0], pages, n, PAGE_BYTES);
}

static void give_ours(struct player *player, const uint64_t *pages, uint32_t n)
{
	struct ours *ours = player->state;

	mr_frag_free_bulk(ours->caches[0], pages, n);
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return receive_and_drop(player, n, take_ours, give_ours);
}

static void give_frames(struct player *player, const uint64_t *pages,
			uint32_t n)
{
	struct ours *ours = player->state;
	struct mr_frame frames[MAX_BURST];

	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ .addr = pages[i], .len = 64 };
	keep(frames);
	mr_frame_free_bulk(ours->caches[0], frames, n);
}

static uint64_t run_frames(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return receive_and_drop(player, n, take_ours, give_frames);
}

#ifdef BENCH_DPDK
static uint32_t take_dpdk(struct player *player, uint64_t *pages, uint32_t n)
{
	struct dpdk_pool *pool = player->state;

	return rte_mempool_get_bulk(pool->mp, (void **)pages, n) == 0 ? n : 0;
}

static void give_dpdk(struct player *player, const uint64_t *pages, uint32_t n)
{
	struct dpdk_pool *pool = player->state;

	rte_mempool_put_bulk(pool->mp, (void *const *)pages, n);
}

static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return receive_and_drop(player, n, take_dpdk, give_dpdk);
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
static void give_model(struct player *player, const uint64_t *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		model_put_direct(player->state, (uint32_t)pages[i]);
}

static uint64_t run_model(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return receive_and_drop(player, n, take_model, give_model);
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
	struct player ours = { .name = "addresses",
			       .side = SIDE_OURS,
			       .setup = ours_set_up,
			       .run = run_ours,
			       .count = ours_player_count,
			       .teardown = ours_tear_down,
			       .param = { burst } };

	snprintf(name, sizeof(name), "drop burst=%u", burst);
	bench_add(bench, players, &row.n_players, &ours);
	ours.name = "frames";
	ours.run = run_frames;
	bench_add(bench, players, &row.n_players, &ours);
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
	for (uint32_t burst = 8; burst <= MAX_BURST; burst *= 2)
		row_of(bench, burst);
	b08_rows_of_ladder(bench);
}

const struct workload b08_xdp_drop = {
	.name = "B08",
	.title = "xdp_drop",
	.what = "receive and drop; recycling on and off in a forward",
	.source = "founding documents 2, 3 and 5",
	.rows = rows,
};

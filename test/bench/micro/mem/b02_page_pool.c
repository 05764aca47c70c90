/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B02 to B04: one page at a time, as bench_page_pool_simple does with a pool of
 * 1024 pages and 64 of them in the cache: taken and given back
 *
 *     fast  to the same cache
 *     ring  through what threads share: with a cache for each direction
 *     slow  to the backing store, with no cache in between
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "ours.h"
#include "peer_dpdk.h"
#include "usual.h"
#include "workloads.h"

enum { N_PAGES = 1024, PREFILL = 64, PAGE_BYTES = 2048 };

enum { TO }; /* of player.param: the cache that gets pages back */

/* The kernel's prefills its cache so that the first round is fast, too. */
static int set_up_ours(struct player *player, struct mr_reason *why)
{
	uint64_t addrs[PREFILL];
	struct ours *ours;

	if (ours_set_up(player, why) < 0)
		return -1;
	ours = player->state;
	mr_frag_free_bulk(ours->caches[0], addrs,
			  mr_frag_alloc_bulk(ours->caches[0], addrs, PREFILL,
					     PAGE_BYTES));
	return 0;
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	struct ours *ours = player->state;
	struct mr_cache *from = ours->caches[0];
	struct mr_cache *to = ours->caches[player->param[TO]];

	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		const uint64_t addr = mr_frag_alloc(from, PAGE_BYTES);

		if (addr == MR_ADDR_NONE)
			return 0;
		keep((const void *)(uintptr_t)addr);
		mr_frag_free(to, addr);
	}
	return n;
}

/* The same by the calls for many: what inlining is worth. */
static uint64_t run_outlined(struct player *player, uint32_t thread, uint64_t n)
{
	struct ours *ours = player->state;
	struct mr_cache *from = ours->caches[0];
	struct mr_cache *to = ours->caches[player->param[TO]];
	uint64_t addr;

	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		if (mr_frag_alloc_bulk(from, &addr, 1, PAGE_BYTES) != 1)
			return 0;
		keep(&addr);
		mr_frag_free_bulk(to, &addr, 1);
	}
	return n;
}

static uint64_t run_pages(struct player *player, uint32_t thread, uint64_t n)
{
	struct ours *ours = player->state;
	uint64_t addr;

	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		if (mr_page_alloc_bulk(ours->pool, 0, &addr, 1) != 1)
			return 0;
		mr_page_free_bulk(ours->pool, 0, &addr, 1);
	}
	return n;
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	struct dpdk_pool *pool = player->state;
	const uint32_t one = variable_one();
	void *objects[ONE_OF];

	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		if (rte_mempool_get_bulk(pool->mp, objects, one) < 0)
			return 0;
		keep(objects);
		rte_mempool_put_bulk(pool->mp, objects, one);
	}
	return n;
}

static uint64_t run_dpdk_ring(struct player *player, uint32_t thread,
			      uint64_t n)
{
	struct dpdk_pool *pool = player->state;
	const uint32_t one = variable_one();
	void *objects[ONE_OF];

	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		if (rte_mempool_generic_get(pool->mp, objects, one, pool->a) <
		    0)
			return 0;
		keep(objects);
		rte_mempool_generic_put(pool->mp, objects, one, pool->b);
	}
	return n;
}
#else
static player_run_fn *const run_dpdk, *const run_dpdk_ring;
#endif

static uint64_t run_model_fast(struct player *player, uint32_t thread,
			       uint64_t n)
{
	struct model_page_pool *pool = player->state;

	(void)thread;
	for (uint64_t i = 0; i < n; i++)
		model_put_direct(pool, model_alloc(pool, true));
	return n;
}

static uint64_t run_model_ring(struct player *player, uint32_t thread,
			       uint64_t n)
{
	struct model_page_pool *pool = player->state;

	(void)thread;
	for (uint64_t i = 0; i < n; i++)
		model_put_ring(pool, model_alloc(pool, true));
	return n;
}

static uint64_t run_model_slow(struct player *player, uint32_t thread,
			       uint64_t n)
{
	struct model_page_pool *pool = player->state;
	uint32_t page;

	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		if (model_buddy_alloc(pool, &page, 1) != 1)
			return 0;
		model_buddy_free(pool, &page, 1);
	}
	return n;
}

static uint64_t run_plain(struct player *player, uint32_t thread, uint64_t n)
{
	uint32_t number;

	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		plain_pop(player->state, &number, 1);
		keep(&number);
		plain_push(player->state, &number, 1);
	}
	return n;
}

static uint64_t run_malloc(struct player *player, uint32_t thread, uint64_t n)
{
	(void)player;
	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		void *page = malloc(PAGE_BYTES);

		keep(page);
		free(page);
	}
	return n;
}

/* The row of one path. more: caches of ours, and of DPDK's, beyond one. */
static void row_of(struct bench *bench, player_run_fn *ours,
		   player_run_fn *model, player_run_fn *dpdk, uint32_t kinds,
		   bool is_ring)
{
	struct player players[MAX_PLAYERS];
	struct row row = { .name = "1 page at a time",
			   .unit = "page",
			   .players = players };
	struct player player = {
		.name = "millrace",
		.side = SIDE_OURS,
		.setup = set_up_ours,
		.run = ours,
		.count = ours_player_count,
		.teardown = ours_tear_down,
		.param = { is_ring, [P_PAGES] = N_PAGES, [P_MORE] = is_ring }
	};

	bench_add(bench, players, &row.n_players, &player);
	player.name = "millrace, outlined";
	player.run = run_outlined;
	if (ours == run_ours)
		bench_add(bench, players, &row.n_players, &player);
	dpdk_add_all(
		bench, &row, kinds,
		&(struct player){ .run = dpdk,
				  .param = { [P_PAGES] = N_PAGES,
					     [P_MORE] = is_ring ? 2 : 0 } });
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "model of page_pool",
				    .side = SIDE_KERNEL,
				    .setup = model_set_up,
				    .run = model,
				    .teardown = model_tear_down,
				    .param = { [P_PAGES] = N_PAGES } });
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "plain stack",
				    .side = SIDE_PLAIN,
				    .setup = plain_set_up,
				    .run = run_plain,
				    .teardown = plain_tear_down,
				    .param = { [P_PAGES] = N_PAGES } });
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "malloc",
				    .side = SIDE_MALLOC,
				    .run = run_malloc });
	bench_row(bench, &row);
}

static void rows_fast(struct bench *bench)
{
	row_of(bench, run_ours, run_model_fast, run_dpdk, C512 | C256, false);
}

static void rows_ring(struct bench *bench)
{
	row_of(bench, run_ours, run_model_ring, run_dpdk_ring, C512 | C256,
	       true);
}

static void rows_slow(struct bench *bench)
{
	row_of(bench, run_pages, run_model_slow, run_dpdk, C0, false);
}

const struct workload b02_pp_fast = {
	.name = "B02",
	.title = "pp_fast",
	.what = "one page, back to the same cache",
	.source = "prototype-kernel, bench_page_pool_simple 01",
	.rows = rows_fast,
};

const struct workload b03_pp_ring = {
	.name = "B03",
	.title = "pp_ring",
	.what = "one page, back through what threads share",
	.source = "prototype-kernel, bench_page_pool_simple 02",
	.rows = rows_ring,
};

const struct workload b04_pp_slow = {
	.name = "B04",
	.title = "pp_slow",
	.what = "one page, from and to the backing store",
	.source = "prototype-kernel, bench_page_pool_simple 03",
	.rows = rows_slow,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B06: single against array against list. A round takes as many pages as the
 * bulk has and gives them back; where from is:
 *
 *     cache   one cache takes and gets back: its two magazines
 *     depot   one cache takes, another one gets back, both this thread's: every
 *             64 pages a magazine goes through the depot each way
 *     pages   the page allocator, with no cache: also as a list
 *     fresh   the same, but every page of the pool is taken once before any
 *             comes back, so that each call cuts segments that are whole. The
 *             pool has been through that before: its memory is there
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "ours.h"
#include "peer_dpdk.h"
#include "usual.h"
#include "workloads.h"

enum { N_PAGES = 16384, PAGE_BYTES = 2048, MAX_BULK = 128 };

enum { BULK, IS_DEPOT }; /* of player.param */

static const uint32_t bulks[] = { 1, 2, 3, 4, 8, 16, 32, 64, 128 };

static uint64_t run_array(struct player *player, uint32_t thread, uint64_t n)
{
	struct ours *ours = player->state;
	struct mr_cache *to = ours->caches[player->param[IS_DEPOT]];
	const uint32_t bulk = (uint32_t)player->param[BULK];
	uint64_t addrs[MAX_BULK], done;

	(void)thread;
	for (done = 0; done < n; done += bulk) {
		const uint32_t got = mr_frag_alloc_bulk(ours->caches[0], addrs,
							bulk, PAGE_BYTES);

		keep(addrs);
		mr_frag_free_bulk(to, addrs, got);
		if (got != bulk)
			return 0;
	}
	return done;
}

static uint64_t run_single(struct player *player, uint32_t thread, uint64_t n)
{
	struct ours *ours = player->state;
	struct mr_cache *to = ours->caches[player->param[IS_DEPOT]];
	const uint32_t bulk = (uint32_t)player->param[BULK];
	uint64_t addrs[MAX_BULK], done;

	(void)thread;
	for (done = 0; done < n; done += bulk) {
		for (uint32_t i = 0; i < bulk; i++) {
			addrs[i] = mr_frag_alloc(ours->caches[0], PAGE_BYTES);
			if (addrs[i] == MR_ADDR_NONE)
				return 0;
		}
		keep(addrs);
		for (uint32_t i = 0; i < bulk; i++)
			mr_frag_free(to, addrs[i]);
	}
	return done;
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	struct dpdk_pool *pool = player->state;
	const uint32_t bulk = (uint32_t)player->param[BULK];
	void *objects[MAX_BULK];
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += bulk) {
		if (rte_mempool_get_bulk(pool->mp, objects, bulk) < 0)
			return 0;
		keep(objects);
		rte_mempool_put_bulk(pool->mp, objects, bulk);
	}
	return done;
}

static uint64_t run_dpdk_depot(struct player *player, uint32_t thread,
			       uint64_t n)
{
	struct dpdk_pool *pool = player->state;
	const uint32_t bulk = (uint32_t)player->param[BULK];
	void *objects[MAX_BULK];
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += bulk) {
		if (rte_mempool_generic_get(pool->mp, objects, bulk, pool->a) <
		    0)
			return 0;
		keep(objects);
		rte_mempool_generic_put(pool->mp, objects, bulk, pool->b);
	}
	return done;
}
#else
static player_run_fn *const run_dpdk, *const run_dpdk_depot;
#endif

/* Blocks of order 0, straight from the page allocator. */
static uint64_t run_pages(struct player *player, uint32_t thread, uint64_t n)
{
	struct ours *ours = player->state;
	const uint32_t bulk = (uint32_t)player->param[BULK];
	uint64_t addrs[MAX_BULK], done;

	(void)thread;
	for (done = 0; done < n; done += bulk) {
		if (mr_page_alloc_bulk(ours->pool, 0, addrs, bulk) != bulk)
			return 0;
		keep(addrs);
		mr_page_free_bulk(ours->pool, 0, addrs, bulk);
	}
	return done;
}

static uint64_t run_pages_single(struct player *player, uint32_t thread,
				 uint64_t n)
{
	struct ours *ours = player->state;
	const uint32_t bulk = (uint32_t)player->param[BULK];
	uint64_t addrs[MAX_BULK], done;

	(void)thread;
	for (done = 0; done < n; done += bulk) {
		for (uint32_t i = 0; i < bulk; i++)
			if (mr_page_alloc_bulk(ours->pool, 0, &addrs[i], 1) !=
			    1)
				return 0;
		keep(addrs);
		for (uint32_t i = 0; i < bulk; i++)
			mr_page_free_bulk(ours->pool, 0, &addrs[i], 1);
	}
	return done;
}

/* As a program uses a list: it takes each page off it. */
static uint64_t run_pages_list(struct player *player, uint32_t thread,
			       uint64_t n)
{
	struct ours *ours = player->state;
	const uint32_t bulk = (uint32_t)player->param[BULK];
	uint64_t addrs[MAX_BULK], done;

	(void)thread;
	for (done = 0; done < n; done += bulk) {
		struct mr_page_list list = { 0 };

		if (mr_page_alloc_list(ours->pool, 0, bulk, &list) != bulk)
			return 0;
		for (uint32_t i = 0; i < bulk; i++)
			mr_page_list_pop(ours->pool, &list, &addrs[i]);
		keep(addrs);
		mr_page_free_bulk(ours->pool, 0, addrs, bulk);
	}
	return done;
}

/* Every page of the pool by bulk, then all back: n is rounded up to pools. */
static uint64_t run_fresh(struct player *player, uint32_t thread, uint64_t n)
{
	static uint64_t addrs[N_PAGES];
	struct ours *ours = player->state;
	const uint32_t bulk = (uint32_t)player->param[BULK];
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += N_PAGES) {
		uint32_t got = 0;

		for (uint32_t k = 1; got < N_PAGES && k > 0; got += k) {
			const uint32_t left = N_PAGES - got;

			k = mr_page_alloc_bulk(ours->pool, 0, addrs + got,
					       left < bulk ? left : bulk);
		}
		for (uint32_t i = 0; i < got; i += bulk)
			mr_page_free_bulk(ours->pool, 0, addrs + i,
					  got - i < bulk ? got - i : bulk);
		if (got < N_PAGES)
			return 0;
	}
	return done;
}

static uint64_t run_plain(struct player *player, uint32_t thread, uint64_t n)
{
	struct plain *plain = player->state;
	const uint32_t bulk = (uint32_t)player->param[BULK];
	uint32_t numbers[MAX_BULK];
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += bulk) {
		plain_pop(plain, numbers, bulk);
		keep(numbers);
		plain_push(plain, numbers, bulk);
	}
	return done;
}

static uint64_t run_malloc(struct player *player, uint32_t thread, uint64_t n)
{
	const uint32_t bulk = (uint32_t)player->param[BULK];
	void *objects[MAX_BULK];
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += bulk) {
		for (uint32_t i = 0; i < bulk; i++)
			objects[i] = malloc(PAGE_BYTES);
		keep(objects);
		for (uint32_t i = 0; i < bulk; i++)
			free(objects[i]);
	}
	return done;
}

static void row_of(struct bench *bench, uint32_t bulk, bool is_depot)
{
	struct player players[MAX_PLAYERS];
	char name[64], plot[32];
	struct row row = { .name = name,
			   .unit = "page",
			   .plot = plot,
			   .x_name = "pages per call",
			   .x = bulk,
			   .players = players };
	struct player ours = { .side = SIDE_OURS,
			       .setup = ours_set_up,
			       .count = ours_player_count,
			       .teardown = ours_tear_down,
			       .param = { bulk, is_depot, [P_MORE] = 1 } };

	snprintf(plot, sizeof(plot), "from=%s", is_depot ? "depot" : "cache");
	snprintf(name, sizeof(name), "%s bulk=%u", plot, bulk);
	ours.name = "array";
	ours.run = run_array;
	bench_add(bench, players, &row.n_players, &ours);
	ours.name = "single";
	ours.run = run_single;
	bench_add(bench, players, &row.n_players, &ours);
	/* For the depot: caches of the caller's, one for each direction. */
	dpdk_add_all(bench, &row, C_ALL,
		     &(struct player){
			     .run = is_depot ? run_dpdk_depot : run_dpdk,
			     .param = { bulk, [P_MORE] = is_depot ? 2 : 0 } });
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "plain stack",
				    .side = SIDE_PLAIN,
				    .setup = plain_set_up,
				    .run = run_plain,
				    .teardown = plain_tear_down,
				    .param = { bulk } });
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "malloc",
				    .side = SIDE_MALLOC,
				    .run = run_malloc,
				    .param = { bulk } });
	bench_row(bench, &row);
}

/* The page allocator beside malloc and the handlers without a cache. */
static void row_of_pages(struct bench *bench, uint32_t bulk, bool is_fresh)
{
	struct player players[MAX_PLAYERS];
	char name[64], plot[32];
	struct row row = { .name = name,
			   .unit = "page",
			   .plot = plot,
			   .x_name = "pages per call",
			   .x = bulk,
			   .players = players };
	struct player ours = { .name = "array",
			       .side = SIDE_OURS,
			       .setup = ours_set_up,
			       .run = is_fresh ? run_fresh : run_pages,
			       .count = ours_player_count,
			       .teardown = ours_tear_down,
			       .param = { bulk } };

	snprintf(plot, sizeof(plot), "from=%s", is_fresh ? "fresh" : "pages");
	snprintf(name, sizeof(name), "%s bulk=%u", plot, bulk);
	bench_add(bench, players, &row.n_players, &ours);
	if (!is_fresh) {
		ours.name = "list";
		ours.run = run_pages_list;
		bench_add(bench, players, &row.n_players, &ours);
		ours.name = "single";
		ours.run = run_pages_single;
		bench_add(bench, players, &row.n_players, &ours);
		dpdk_add_all(
			bench, &row, C0,
			&(struct player){ .run = run_dpdk, .param = { bulk } });
		bench_add(bench, players, &row.n_players,
			  &(struct player){ .name = "malloc",
					    .side = SIDE_MALLOC,
					    .run = run_malloc,
					    .param = { bulk } });
	}
	bench_row(bench, &row);
}

static void rows(struct bench *bench)
{
	const uint32_t n_bulks = sizeof(bulks) / sizeof(*bulks);

	for (uint32_t is_fresh = 0; is_fresh < 2; is_fresh++)
		for (uint32_t i = 0; i < n_bulks; i++)
			row_of_pages(bench, bulks[i], is_fresh != 0);
	for (uint32_t is_depot = 0; is_depot < 2; is_depot++)
		for (uint32_t i = 0; i < sizeof(bulks) / sizeof(*bulks); i++)
			row_of(bench, bulks[i], is_depot != 0);
}

const struct workload b06_bulk = {
	.name = "B06",
	.title = "bulk",
	.what = "single, array and list of 1 to 128 pages",
	.source = "prototype-kernel, page_bench04_bulk",
	.rows = rows,
};

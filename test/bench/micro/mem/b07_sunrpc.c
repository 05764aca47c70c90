/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B07: svc_alloc_arg() of the kernel's SUNRPC: an array of 259 slots (1 MiB of
 * payload in 4 KiB pages, and 3) of which a random number is filled already;
 * the holes are filled, by single pages, from a list, or by one call that looks
 * for the holes itself. One operation is one such call.
 */
#include <stdio.h>
#include <stdlib.h>

#include "takers.h"
#include "usual.h"
#include "workloads.h"

enum { SLOTS = 259, N_PAGES = 4096 };

struct rpc {
	void *pool;
	uint64_t seed;
	uint64_t slots[SLOTS];
};

/* 0 to 259 slots stay filled; the same series for each player. */
static inline uint32_t next_filled(struct rpc *rpc)
{
	rpc->seed = rpc->seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((rpc->seed >> 33) % (SLOTS + 1));
}

/* Which slots are emptied is spread over the array: i by an odd step. */
static inline uint32_t hole(uint32_t i)
{
	return i * 100 % SLOTS; /* 259 = 7 * 37, and 100 has neither */
}

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct pool_wish wish = { .n_objects = N_PAGES, .n_threads = 1 };
	struct rpc *rpc = calloc(1, sizeof(*rpc));

	if (rpc == NULL)
		return -1;
	rpc->pool = taker_pool_make(player->side, player->bench, &wish,
				    player->opaque, why);
	if (rpc->pool == NULL) {
		free(rpc);
		return -1;
	}
	for (uint32_t i = 0; i < SLOTS; i++)
		rpc->slots[i] = MR_ADDR_NONE;
	rpc->seed = 1;
	player->state = rpc;
	return 0;
}

static struct mr_pool *our_pages(const struct rpc *rpc)
{
	return ((struct our_pool *)rpc->pool)->ours.pool;
}

static void tear_down(struct player *player)
{
	struct rpc *rpc = player->state;

	for (uint32_t i = 0; i < SLOTS && player->side == SIDE_OURS; i++)
		if (rpc->slots[i] != MR_ADDR_NONE)
			mr_page_free_bulk(our_pages(rpc), 0, &rpc->slots[i], 1);
	taker_pool_free(player->side, rpc->pool);
	free(rpc);
}

static void count(struct player *player, struct counts *counts)
{
	struct rpc *rpc = player->state;

	taker_pool_count(rpc->pool, player, counts);
}

/* Fill, then empty all but some: a call's work. */
static inline void empty_ours(struct rpc *rpc)
{
	const uint32_t n = SLOTS - next_filled(rpc);
	uint64_t addrs[SLOTS];

	for (uint32_t i = 0; i < n; i++) {
		addrs[i] = rpc->slots[hole(i)];
		rpc->slots[hole(i)] = MR_ADDR_NONE;
	}
	mr_page_free_bulk(our_pages(rpc), 0, addrs, n);
}

static uint64_t run_array(struct player *player, uint32_t thread, uint64_t n)
{
	struct rpc *rpc = player->state;

	(void)thread;
	for (uint64_t k = 0; k < n; k++) {
		if (mr_page_alloc_bulk_slots(our_pages(rpc), 0, rpc->slots,
					     SLOTS) != SLOTS)
			return 0;
		empty_ours(rpc);
	}
	return n;
}

static uint64_t run_list(struct player *player, uint32_t thread, uint64_t n)
{
	struct rpc *rpc = player->state;
	struct mr_pool *pool = our_pages(rpc);

	(void)thread;
	for (uint64_t k = 0; k < n; k++) {
		struct mr_page_list list = { 0 };
		uint32_t n_holes = 0;

		for (uint32_t i = 0; i < SLOTS; i++)
			n_holes += rpc->slots[i] == MR_ADDR_NONE;
		mr_page_alloc_list(pool, 0, n_holes, &list);
		for (uint32_t i = 0; i < SLOTS; i++)
			if (rpc->slots[i] == MR_ADDR_NONE &&
			    !mr_page_list_pop(pool, &list, &rpc->slots[i]))
				return 0;
		empty_ours(rpc);
	}
	return n;
}

static uint64_t run_single(struct player *player, uint32_t thread, uint64_t n)
{
	struct rpc *rpc = player->state;

	(void)thread;
	for (uint64_t k = 0; k < n; k++) {
		for (uint32_t i = 0; i < SLOTS; i++)
			if (rpc->slots[i] == MR_ADDR_NONE &&
			    mr_page_alloc_bulk(our_pages(rpc), 0,
					       &rpc->slots[i], 1) != 1)
				return 0;
		empty_ours(rpc);
	}
	return n;
}

/* What a program of ours would do: from its cache, in one call. */
static uint64_t run_cache(struct player *player, uint32_t thread, uint64_t n)
{
	struct rpc *rpc = player->state;
	struct mr_cache *cache = ((struct our_pool *)rpc->pool)->ours.caches[0];
	uint64_t addrs[SLOTS];

	(void)thread;
	for (uint64_t k = 0; k < n; k++) {
		uint32_t n_holes = 0;

		for (uint32_t i = 0; i < SLOTS; i++)
			n_holes += rpc->slots[i] == MR_ADDR_NONE;
		if (mr_frag_alloc_bulk(cache, addrs, n_holes, OBJECT_BYTES) !=
		    n_holes)
			return 0;
		for (uint32_t i = 0; i < SLOTS; i++)
			if (rpc->slots[i] == MR_ADDR_NONE)
				rpc->slots[i] = addrs[--n_holes];
		n_holes = SLOTS - next_filled(rpc);
		for (uint32_t i = 0; i < n_holes; i++) {
			addrs[i] = rpc->slots[hole(i)];
			rpc->slots[hole(i)] = MR_ADDR_NONE;
		}
		mr_frag_free_bulk(cache, addrs, n_holes);
	}
	return n;
}

/* The kernel's: single pages under a lock each, or all under one. */
static uint64_t run_model(struct player *player, uint32_t thread, uint64_t n)
{
	struct rpc *rpc = player->state;
	const uint32_t step = player->opaque != NULL ? SLOTS : 1;
	uint32_t pages[SLOTS];

	(void)thread;
	for (uint64_t k = 0; k < n; k++) {
		uint32_t n_holes = 0, got;

		for (uint32_t i = 0; i < SLOTS; i++)
			n_holes += rpc->slots[i] == MR_ADDR_NONE;
		for (uint32_t i = 0; i < n_holes; i += got) {
			got = n_holes - i < step ? n_holes - i : step;
			if (model_buddy_alloc(rpc->pool, pages + i, got) != got)
				return 0;
		}
		for (uint32_t i = 0; i < SLOTS; i++)
			if (rpc->slots[i] == MR_ADDR_NONE)
				rpc->slots[i] = pages[--n_holes];
		n_holes = SLOTS - next_filled(rpc);
		for (uint32_t i = 0; i < n_holes; i++) {
			pages[i] = (uint32_t)rpc->slots[hole(i)];
			rpc->slots[hole(i)] = MR_ADDR_NONE;
		}
		model_buddy_free(rpc->pool, pages, n_holes);
	}
	return n;
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	struct rpc *rpc = player->state;
	struct rte_mempool *mp = ((struct dpdk_pool *)rpc->pool)->mp;
	void *objects[SLOTS];

	(void)thread;
	for (uint64_t k = 0; k < n; k++) {
		uint32_t n_holes = 0;

		for (uint32_t i = 0; i < SLOTS; i++)
			n_holes += rpc->slots[i] == MR_ADDR_NONE;
		/* Its ring calls 0 objects a failure. */
		if (n_holes > 0 &&
		    rte_mempool_get_bulk(mp, objects, n_holes) < 0)
			return 0;
		for (uint32_t i = 0; i < SLOTS; i++)
			if (rpc->slots[i] == MR_ADDR_NONE)
				rpc->slots[i] = (uintptr_t)objects[--n_holes];
		n_holes = SLOTS - next_filled(rpc);
		for (uint32_t i = 0; i < n_holes; i++) {
			objects[i] = (void *)(uintptr_t)rpc->slots[hole(i)];
			rpc->slots[hole(i)] = MR_ADDR_NONE;
		}
		rte_mempool_put_bulk(mp, objects, n_holes);
	}
	return n;
}

#else
#define run_dpdk NULL
#endif

static void rows(struct bench *bench)
{
	static const struct {
		const char *name;
		player_run_fn *run;
	} ours[] = {
		{ "array", run_array },
		{ "list", run_list },
		{ "single", run_single },
		{ "cache", run_cache },
	};
	struct player players[MAX_PLAYERS];
	struct row row = { .name = "259 slots",
			   .unit = "call",
			   .players = players };
	struct player player = { .setup = set_up,
				 .count = count,
				 .teardown = tear_down };

	for (uint32_t i = 0; i < 4; i++) {
		player.name = ours[i].name;
		player.side = SIDE_OURS;
		player.run = ours[i].run;
		bench_add(bench, players, &row.n_players, &player);
	}
	takers_add_dpdk(bench, &row, &player, run_dpdk);
	for (uint32_t is_bulk = 0; is_bulk < 2; is_bulk++) {
		player.name = is_bulk ? "model of buddy, array" :
					"model of buddy, single";
		player.side = SIDE_KERNEL;
		player.run = run_model;
		player.opaque = is_bulk ? "bulk" : NULL;
		bench_add(bench, players, &row.n_players, &player);
	}
	bench_row(bench, &row);
}

const struct workload b07_sunrpc = {
	.name = "B07",
	.title = "sunrpc",
	.what = "fill the holes of an array of 259 slots",
	.source = "founding document 2, svc_alloc_arg()",
	.rows = rows,
};

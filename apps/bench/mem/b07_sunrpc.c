/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B07: svc_alloc_arg() of the kernel's SUNRPC: an array of 259 slots (1 MiB of
 * payload in 4 KiB pages, and 3) of which a random number is filled already;
 * the holes are filled, by single pages, from a list, or by one call that looks
 * for the holes itself. One operation is one such call.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "model_page_pool.h"
#include "ours.h"
#include "peer_dpdk.h"
#include "workloads.h"

enum { SLOTS = 259, N_PAGES = 4096, PAGE_BYTES = 2048 };

struct rpc {
	struct ours ours;
	struct model_page_pool *model;
#ifdef BENCH_DPDK
	struct dpdk_pool dpdk;
#endif
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

static struct rpc *make(struct player *player)
{
	struct rpc *rpc = calloc(1, sizeof(*rpc));

	if (rpc == NULL)
		return NULL;
	for (uint32_t i = 0; i < SLOTS; i++)
		rpc->slots[i] = MR_ADDR_NONE;
	rpc->seed = 1;
	player->state = rpc;
	return rpc;
}

static int set_up_ours(struct player *player, struct mr_reason *why)
{
	const struct mr_pool_config config = { .n_pages = N_PAGES,
					       .page_bytes = PAGE_BYTES };
	struct rpc *rpc = make(player);

	if (rpc != NULL &&
	    ours_make(&rpc->ours, player->bench, &config, 1, why) == 0)
		return 0;
	free(rpc);
	return -1;
}

static void tear_down_ours(struct player *player)
{
	struct rpc *rpc = player->state;

	for (uint32_t i = 0; i < SLOTS; i++)
		if (rpc->slots[i] != MR_ADDR_NONE)
			mr_page_free_bulk(rpc->ours.pool, 0, &rpc->slots[i], 1);
	ours_free(&rpc->ours);
	free(rpc);
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
	mr_page_free_bulk(rpc->ours.pool, 0, addrs, n);
}

static uint64_t run_array(struct player *player, uint32_t thread, uint64_t n)
{
	struct rpc *rpc = player->state;

	(void)thread;
	for (uint64_t k = 0; k < n; k++) {
		if (mr_page_alloc_bulk_slots(rpc->ours.pool, 0, rpc->slots,
					     SLOTS) != SLOTS)
			return 0;
		empty_ours(rpc);
	}
	return n;
}

static uint64_t run_list(struct player *player, uint32_t thread, uint64_t n)
{
	struct rpc *rpc = player->state;
	struct mr_pool *pool = rpc->ours.pool;

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
			    mr_page_alloc_bulk(rpc->ours.pool, 0,
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
	struct mr_cache *cache = rpc->ours.caches[0];
	uint64_t addrs[SLOTS];

	(void)thread;
	for (uint64_t k = 0; k < n; k++) {
		uint32_t n_holes = 0;

		for (uint32_t i = 0; i < SLOTS; i++)
			n_holes += rpc->slots[i] == MR_ADDR_NONE;
		if (mr_frag_alloc_bulk(cache, addrs, n_holes, PAGE_BYTES) !=
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

static int set_up_model(struct player *player, struct mr_reason *why)
{
	struct rpc *rpc = make(player);

	(void)why;
	if (rpc == NULL)
		return -1;
	rpc->model = model_make(N_PAGES, 1024);
	if (rpc->model != NULL)
		return 0;
	free(rpc);
	return -1;
}

static void tear_down_model(struct player *player)
{
	struct rpc *rpc = player->state;

	model_free(rpc->model);
	free(rpc);
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
			if (model_buddy_alloc(rpc->model, pages + i, got) !=
			    got)
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
		model_buddy_free(rpc->model, pages, n_holes);
	}
	return n;
}

#ifdef BENCH_DPDK
static int set_up_dpdk(struct player *player, struct mr_reason *why)
{
	struct rpc *rpc = make(player);

	if (rpc != NULL && dpdk_pool_make(&rpc->dpdk, player->opaque, N_PAGES,
					  PAGE_BYTES, 0, why) == 0)
		return 0;
	free(rpc);
	return -1;
}

static void tear_down_dpdk(struct player *player)
{
	struct rpc *rpc = player->state;

	dpdk_pool_free(&rpc->dpdk);
	free(rpc);
}

static void count_dpdk(struct player *player, struct counts *counts)
{
	struct rpc *rpc = player->state;

	dpdk_pool_count(&rpc->dpdk, player, counts);
}

static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	struct rpc *rpc = player->state;
	void *objects[SLOTS];

	(void)thread;
	for (uint64_t k = 0; k < n; k++) {
		uint32_t n_holes = 0;

		for (uint32_t i = 0; i < SLOTS; i++)
			n_holes += rpc->slots[i] == MR_ADDR_NONE;
		/* Its ring calls 0 objects a failure. */
		if (n_holes > 0 &&
		    rte_mempool_get_bulk(rpc->dpdk.mp, objects, n_holes) < 0)
			return 0;
		for (uint32_t i = 0; i < SLOTS; i++)
			if (rpc->slots[i] == MR_ADDR_NONE)
				rpc->slots[i] = (uintptr_t)objects[--n_holes];
		n_holes = SLOTS - next_filled(rpc);
		for (uint32_t i = 0; i < n_holes; i++) {
			objects[i] = (void *)(uintptr_t)rpc->slots[hole(i)];
			rpc->slots[hole(i)] = MR_ADDR_NONE;
		}
		rte_mempool_put_bulk(rpc->dpdk.mp, objects, n_holes);
	}
	return n;
}

static void add_dpdk(struct bench *bench, struct row *row)
{
	for (uint32_t i = 0; i < DPDK_KINDS; i++)
		bench_add(bench, row->players, &row->n_players,
			  &(struct player){ .name = dpdk_kinds[i].name,
					    .side = SIDE_DPDK,
					    .setup = set_up_dpdk,
					    .run = run_dpdk,
					    .count = count_dpdk,
					    .teardown = tear_down_dpdk,
					    .opaque = &dpdk_kinds[i] });
}
#else
static void add_dpdk(struct bench *bench, struct row *row)
{
	(void)bench;
	(void)row;
}
#endif

static void count_ours(struct player *player, struct counts *counts)
{
	const struct rpc *rpc = player->state;

	ours_count(&rpc->ours, player, counts);
}

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

	for (uint32_t i = 0; i < 4; i++)
		bench_add(bench, players, &row.n_players,
			  &(struct player){ .name = ours[i].name,
					    .side = SIDE_OURS,
					    .setup = set_up_ours,
					    .run = ours[i].run,
					    .count = count_ours,
					    .teardown = tear_down_ours });
	add_dpdk(bench, &row);
	for (uint32_t is_bulk = 0; is_bulk < 2; is_bulk++)
		bench_add(bench, players, &row.n_players,
			  &(struct player){
				  .name = is_bulk ? "model of buddy, array" :
						    "model of buddy, single",
				  .side = SIDE_KERNEL,
				  .setup = set_up_model,
				  .run = run_model,
				  .teardown = tear_down_model,
				  .opaque = is_bulk ? "bulk" : NULL });
	bench_row(bench, &row);
}

const struct workload b07_sunrpc = {
	.name = "B07",
	.title = "sunrpc",
	.what = "fill the holes of an array of 259 slots",
	.source = "founding document 2, svc_alloc_arg()",
	.rows = rows,
};

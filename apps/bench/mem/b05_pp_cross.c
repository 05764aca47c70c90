/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B05: one core takes pages and deals them round-robin to the others, which
 * give them back; bench_page_pool_cross_cpu. A ring of 1024 leads to each. If
 * it is full the page goes straight back where it came from, and is counted;
 * so are the polls of an empty ring.
 */
#include <sched.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "lane.h"
#include "model_page_pool.h"
#include "ours.h"
#include "peer_dpdk.h"
#include "workloads.h"

enum { N_PAGES = 32000, PAGE_BYTES = 2048, BURST = 32 };

enum { BULK }; /* of player.param: pages in one call of a returner */

struct cross {
	struct ours ours; /* first: for ours_player_count() */
	struct model_page_pool *model;
	struct lane *lanes; /* [0] unused: that thread deals */
	uint64_t n_full, n_empty;
#ifdef BENCH_DPDK
	struct dpdk_pool dpdk;
#endif
};

static struct cross *make(struct player *player)
{
	const uint32_t n = player->row->n_threads;
	struct cross *cross = calloc(1, sizeof(*cross));

	if (cross == NULL)
		return NULL;
	cross->lanes = aligned_alloc(64, n * sizeof(*cross->lanes));
	if (cross->lanes == NULL) {
		free(cross);
		return NULL;
	}
	memset(cross->lanes, 0, n * sizeof(*cross->lanes));
	player->state = cross;
	return cross;
}

static void drop(struct cross *cross)
{
	free(cross->lanes);
	free(cross);
}

static void count_ring(const struct player *player, struct counts *counts)
{
	const struct cross *cross = player->state;
	const double by =
		player->n_done > 0 ? (double)player->n_done / 1000 : 1;

	count_add(counts, "queue_full_per_1000", (double)cross->n_full / by);
	count_add(counts, "empty_polls_per_1000", (double)cross->n_empty / by);
}

/* What deals and what gives back, inlined for each kind of pool. */
typedef bool take_fn(struct cross *cross, uint32_t thread, uint64_t *page);
typedef void give_fn(struct cross *cross, uint32_t thread,
		     const uint64_t *pages, uint32_t n);

static inline __attribute__((always_inline)) uint64_t
deal(struct player *player, uint64_t n, take_fn *take, give_fn *give)
{
	struct cross *cross = player->state;
	const uint32_t n_lanes = player->row->n_threads - 1;
	uint64_t page, n_full = 0;

	/* Each returner is to get n: whatever was full is dealt again. */
	for (uint32_t l = 1; l <= n_lanes; l++)
		cross->lanes[l].n_dealt = 0;
	for (uint64_t left = n * n_lanes; left > 0;) {
		for (uint32_t l = 1; l <= n_lanes; l++) {
			struct lane *lane = &cross->lanes[l];

			if (lane->n_dealt == n)
				continue;
			if (!take(cross, 0, &page)) {
				sched_yield(); /* all are with returners */
				continue;
			}
			if (lane_put(lane, &page, 1) == 1) {
				lane->n_dealt++;
				left--;
				continue;
			}
			give(cross, 0, &page, 1);
			if (++n_full % 1024 == 0)
				sched_yield();
		}
	}
	cross->n_full += n_full;
	return 0;
}

static inline __attribute__((always_inline)) uint64_t
give_back(struct player *player, uint32_t thread, uint64_t n, give_fn *give)
{
	struct cross *cross = player->state;
	struct lane *lane = &cross->lanes[thread];
	const uint32_t bulk = (uint32_t)player->param[BULK];
	uint64_t pages[BURST], n_empty = 0;

	for (uint64_t left = n; left > 0;) {
		const uint32_t got = lane_take(
			lane, pages, left < bulk ? (uint32_t)left : bulk);

		if (got == 0) {
			if (++n_empty % 10000 == 0)
				sched_yield();
			continue;
		}
		give(cross, thread, pages, got);
		left -= got;
	}
	__atomic_add_fetch(&cross->n_empty, n_empty, __ATOMIC_RELAXED);
	return n;
}

static int set_up_ours(struct player *player, struct mr_reason *why)
{
	const struct mr_pool_config config = {
		.n_pages = N_PAGES,
		.page_bytes = PAGE_BYTES,
		.returns = player->opaque != NULL ? MR_RETURN_HOME :
						    MR_RETURN_LOCAL,
	};
	struct cross *cross = make(player);

	if (cross == NULL)
		return -1;
	if (ours_make(&cross->ours, player->bench, &config,
		      player->row->n_threads, why) == 0)
		return 0;
	drop(cross);
	return -1;
}

static void tear_down_ours(struct player *player)
{
	struct cross *cross = player->state;

	ours_free(&cross->ours);
	drop(cross);
}

static void count_ours(struct player *player, struct counts *counts)
{
	count_ring(player, counts);
	ours_player_count(player, counts);
}

static bool take_ours(struct cross *cross, uint32_t thread, uint64_t *page)
{
	return mr_frag_alloc_bulk(cross->ours.caches[thread], page, 1,
				  PAGE_BYTES) == 1;
}

static void give_ours(struct cross *cross, uint32_t thread,
		      const uint64_t *pages, uint32_t n)
{
	mr_frag_free_bulk(cross->ours.caches[thread], pages, n);
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	if (thread == 0)
		return deal(player, n, take_ours, give_ours);
	return give_back(player, thread, n, give_ours);
}

static int set_up_model(struct player *player, struct mr_reason *why)
{
	struct cross *cross = make(player);

	(void)why;
	if (cross == NULL)
		return -1;
	cross->model = model_make(N_PAGES, 1024);
	if (cross->model != NULL)
		return 0;
	drop(cross);
	return -1;
}

static void tear_down_model(struct player *player)
{
	struct cross *cross = player->state;

	model_free(cross->model);
	drop(cross);
}

static void count_model(struct player *player, struct counts *counts)
{
	const struct cross *cross = player->state;
	const double by =
		player->n_done > 0 ? (double)player->n_done / 1000 : 1;

	count_ring(player, counts);
	count_add(counts, "slow_per_1000", (double)cross->model->n_slow / by);
	count_add(counts, "ring_full_per_1000",
		  (double)cross->model->n_ring_full / by);
}

static bool take_model(struct cross *cross, uint32_t thread, uint64_t *page)
{
	(void)thread;
	*page = model_alloc(cross->model, true);
	return *page != MODEL_NONE;
}

static void give_model(struct cross *cross, uint32_t thread,
		       const uint64_t *pages, uint32_t n)
{
	uint32_t numbers[BURST];

	if (thread == 0) {
		model_put_direct(cross->model, (uint32_t)pages[0]);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		numbers[i] = (uint32_t)pages[i];
	if (n == 1)
		model_put_ring(cross->model, numbers[0]);
	else
		model_put_ring_bulk(cross->model, numbers, n);
}

static uint64_t run_model(struct player *player, uint32_t thread, uint64_t n)
{
	if (thread == 0)
		return deal(player, n, take_model, give_model);
	return give_back(player, thread, n, give_model);
}

#ifdef BENCH_DPDK
static int set_up_dpdk(struct player *player, struct mr_reason *why)
{
	struct cross *cross = make(player);

	if (cross == NULL)
		return -1;
	if (dpdk_pool_make(&cross->dpdk, player->opaque, N_PAGES, PAGE_BYTES, 0,
			   why) == 0)
		return 0;
	drop(cross);
	return -1;
}

static void tear_down_dpdk(struct player *player)
{
	struct cross *cross = player->state;

	dpdk_pool_free(&cross->dpdk);
	drop(cross);
}

static void count_dpdk(struct player *player, struct counts *counts)
{
	struct cross *cross = player->state;

	count_ring(player, counts);
	dpdk_pool_count(&cross->dpdk, player, counts);
}

static bool take_dpdk(struct cross *cross, uint32_t thread, uint64_t *page)
{
	void *object;

	(void)thread;
	if (rte_mempool_get(cross->dpdk.mp, &object) < 0)
		return false;
	*page = (uintptr_t)object;
	return true;
}

static void give_dpdk(struct cross *cross, uint32_t thread,
		      const uint64_t *pages, uint32_t n)
{
	void *objects[BURST];

	(void)thread;
	for (uint32_t i = 0; i < n; i++)
		objects[i] = (void *)(uintptr_t)pages[i];
	rte_mempool_put_bulk(cross->dpdk.mp, objects, n);
}

static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	if (thread == 0)
		return deal(player, n, take_dpdk, give_dpdk);
	return give_back(player, thread, n, give_dpdk);
}

static void add_dpdk(struct bench *bench, struct row *row, uint32_t bulk)
{
	/* 72 MB each: the handlers with the largest cache. */
	for (uint32_t i = 0; i < DPDK_KINDS; i++)
		if (dpdk_kinds[i].cache == 512)
			bench_add(bench, row->players, &row->n_players,
				  &(struct player){ .name = dpdk_kinds[i].name,
						    .side = SIDE_DPDK,
						    .setup = set_up_dpdk,
						    .run = run_dpdk,
						    .count = count_dpdk,
						    .teardown = tear_down_dpdk,
						    .param = { bulk },
						    .opaque = &dpdk_kinds[i] });
}
#else
static void add_dpdk(struct bench *bench, struct row *row, uint32_t bulk)
{
	(void)bench;
	(void)row;
	(void)bulk;
}
#endif

static void row_of(struct bench *bench, uint32_t n_returners, uint32_t bulk)
{
	struct player players[MAX_PLAYERS];
	char name[64], plot[32];
	struct row row = { .name = name,
			   .unit = "page",
			   .n_threads = n_returners + 1,
			   .plot = plot,
			   .x_name = "returners",
			   .x = n_returners,
			   .players = players };
	struct player ours = { .name = "millrace return=local",
			       .side = SIDE_OURS,
			       .setup = set_up_ours,
			       .run = run_ours,
			       .count = count_ours,
			       .teardown = tear_down_ours,
			       .param = { bulk } };

	snprintf(plot, sizeof(plot), "bulk=%u", bulk);
	snprintf(name, sizeof(name), "returners=%u %s", n_returners, plot);
	bench_add(bench, players, &row.n_players, &ours);
	ours.name = "millrace return=home";
	ours.opaque = "home";
	bench_add(bench, players, &row.n_players, &ours);
	add_dpdk(bench, &row, bulk);
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "model of page_pool",
				    .side = SIDE_KERNEL,
				    .setup = set_up_model,
				    .run = run_model,
				    .count = count_model,
				    .teardown = tear_down_model,
				    .param = { bulk } });
	bench_row(bench, &row);
}

/* The original has two returners; more where there are cores for them. */
static void rows(struct bench *bench)
{
	const uint32_t n_cores = bench_n_cores(bench);

	for (uint32_t bulk = 1; bulk <= BURST; bulk *= BURST)
		for (uint32_t n = 1; n == 1 || n < n_cores; n *= 2)
			row_of(bench, n, bulk);
}

const struct workload b05_pp_cross = {
	.name = "B05",
	.title = "pp_cross",
	.what = "one core takes, others give back, 1 and 32 at a time",
	.source = "prototype-kernel, bench_page_pool_cross_cpu",
	.rows = rows,
};

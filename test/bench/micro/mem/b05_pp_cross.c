/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B05: one core takes pages and deals them round-robin to the others, which
 * give them back; bench_page_pool_cross_cpu. A ring of 1024 leads to each. If
 * it is full the page goes straight back where it came from, and is counted;
 * so are the polls of an empty ring.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "takers.h"
#include "usual.h"
#include "workloads.h"

enum { N_PAGES = 32000, RING = 1024, BURST = 32 };

enum { BULK, MAGAZINE }; /* of player.param: BULK pages in a returner's call */

struct cross {
	void *pool;
	uint64_t n_full, n_empty;
	uint64_t n_dealt[MAX_THREADS]; /* by returner, in this run */
	struct hop *hops[MAX_THREADS]; /* [0] unused: that thread deals */
};

static void free_cross(enum side side, struct cross *cross)
{
	for (uint32_t i = 0; i < MAX_THREADS; i++)
		free(cross->hops[i]);
	taker_pool_free(side, cross->pool);
	free(cross);
}

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct pool_wish wish = {
		.n_objects = N_PAGES,
		.n_threads = player->row->n_threads,
		.kind = player->param[MAGAZINE],
	};
	struct cross *cross = calloc(1, sizeof(*cross));
	bool is_whole = true;

	if (cross == NULL)
		return -1;
	for (uint32_t i = 1; i < wish.n_threads; i++) {
		cross->hops[i] = hop_make(RING);
		is_whole = is_whole && cross->hops[i] != NULL;
	}
	cross->pool = taker_pool_make(player->side, player->bench, &wish,
				      player->opaque, why);
	if (!is_whole || cross->pool == NULL) {
		free_cross(player->side, cross);
		return -1;
	}
	player->state = cross;
	return 0;
}

static void tear_down(struct player *player)
{
	free_cross(player->side, player->state);
}

static void count(struct player *player, struct counts *counts)
{
	struct cross *cross = player->state;

	count_per_1000(counts, "queue_full_per_1000", cross->n_full, player);
	count_per_1000(counts, "empty_polls_per_1000", cross->n_empty, player);
	taker_pool_count(cross->pool, player, counts);
}

/* Each returner is to get n: whatever was full is dealt again. */
static ALWAYS_INLINE uint64_t deal(struct player *player, uint64_t n,
				   const struct taker taker)
{
	struct cross *cross = player->state;
	const uint32_t n_returners = player->row->n_threads - 1;
	const uint32_t one = variable_one();
	uint64_t n_full = 0;
	word page[ONE_OF];

	memset(cross->n_dealt, 0, sizeof(cross->n_dealt));
	for (uint64_t left = n * n_returners; left > 0;) {
		for (uint32_t i = 1; i <= n_returners; i++) {
			if (cross->n_dealt[i] == n)
				continue;
			if (!taker.take(cross->pool, 0, page, one)) {
				sched_yield(); /* all are with returners */
				continue;
			}
			if (hop_put(cross->hops[i], page, 1)) {
				cross->n_dealt[i]++;
				left--;
				continue;
			}
			taker.give(cross->pool, 0, page, one);
			if (++n_full % 1024 == 0)
				sched_yield();
		}
	}
	cross->n_full += n_full;
	return 0;
}

static ALWAYS_INLINE uint64_t give_back(struct player *player, uint32_t thread,
					uint64_t n, const struct taker taker)
{
	struct cross *cross = player->state;
	const uint32_t bulk = (uint32_t)player->param[BULK];
	uint64_t n_empty = 0;
	word pages[BURST];

	for (uint64_t left = n; left > 0;) {
		const uint32_t got =
			hop_get(cross->hops[thread], pages,
				left < bulk ? (uint32_t)left : bulk);

		if (got == 0) {
			if (++n_empty % 10000 == 0)
				sched_yield();
			continue;
		}
		taker.give(cross->pool, thread, pages, got);
		left -= got;
	}
	__atomic_add_fetch(&cross->n_empty, n_empty, __ATOMIC_RELAXED);
	return n;
}

static ALWAYS_INLINE uint64_t run(struct player *player, uint32_t thread,
				  uint64_t n, const struct taker taker)
{
	if (thread == 0)
		return deal(player, n, taker);
	return give_back(player, thread, n, taker);
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, OURS_TAKER);
}

/* The model of page_pool: one page at a time is taken, by thread 0. */
static ALWAYS_INLINE bool model_take(void *pool, uint32_t thread, word *words,
				     uint32_t n)
{
	(void)thread;
	(void)n;
	*words = model_alloc(pool, true);
	return *words != MODEL_NONE;
}

static ALWAYS_INLINE void model_give(void *pool, uint32_t thread,
				     const word *words, uint32_t n)
{
	uint32_t numbers[BURST];

	if (thread == 0) {
		model_put_direct(pool, (uint32_t)words[0]);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		numbers[i] = (uint32_t)words[i];
	if (n == 1)
		model_put_ring(pool, numbers[0]);
	else
		model_put_ring_bulk(pool, numbers, n);
}

static uint64_t run_model(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n,
		   (struct taker){ model_take, model_give, NULL, no_idle });
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, DPDK_TAKER);
}
#else
#define run_dpdk NULL
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
	struct player player = { .setup = set_up,
				 .count = count,
				 .teardown = tear_down,
				 .param = { bulk } };

	snprintf(plot, sizeof(plot), "bulk=%u", bulk);
	snprintf(name, sizeof(name), "returners=%u %s", n_returners, plot);
	takers_add_ours(bench, &row, &player, MAGAZINE, run_ours);
	takers_add_dpdk(bench, &row, &player, run_dpdk);
	player.name = "model of page_pool";
	player.side = SIDE_KERNEL;
	player.run = run_model;
	bench_add(bench, players, &row.n_players, &player);
	bench_row(bench, &row);
}

/* The original has two returners; more where there are cores for them. */
static void rows(struct bench *bench)
{
	const uint32_t n_cores = bench_n_cores(bench);
	const uint32_t most = n_cores > 2 ? n_cores - 1 : 1;

	for (uint32_t bulk = 1; bulk <= BURST; bulk *= BURST)
		for (uint32_t n = 1; n <= most; n = next_n_threads(n, most))
			row_of(bench, n, bulk);
}

const struct workload b05_pp_cross = {
	.name = "B05",
	.title = "pp_cross",
	.what = "one core takes, others give back, 1 and 32 at a time",
	.source = "prototype-kernel, bench_page_pool_cross_cpu",
	.rows = rows,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B16: threads forward from one pool: each takes bursts of 32 and gives them
 * back, but of each hundred bursts some go to the next thread, which gives them
 * back where it runs:
 *
 *     thread 0: take -+-> give        thread 1: take -+-> give
 *                     +-- ring --> give               +-- ring --> give (0)
 */
#include <stdio.h>

#include "takers.h"
#include "workloads.h"

enum { PERCENT, MAGAZINE, THREADS }; /* of player.param */

enum { BURST = 32, RING = 1024, N_PAGES = 32768 };

/* One thread's part; lines of its own. */
struct lane {
	struct hop *in;             /* from the thread before */
	alignas(64) uint64_t n_own; /* bursts that the ring had no room for */
	uint32_t is_done;           /* it sends no more */
	uint32_t percent_due;
};

struct mesh {
	void *pool;
	uint32_t n;
	uint32_t is_dead;
	struct lane lanes[MAX_THREADS];
};

static void free_mesh(enum side side, struct mesh *mesh)
{
	taker_pool_free(side, mesh->pool);
	for (uint32_t i = 0; i < mesh->n; i++)
		free(mesh->lanes[i].in);
	free(mesh);
}

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct pool_wish wish = {
		.n_objects = N_PAGES,
		.n_threads = (uint32_t)player->param[THREADS],
		.kind = player->param[MAGAZINE],
	};
	struct mesh *mesh = aligned_alloc(64, sizeof(*mesh));
	bool is_whole = true;

	if (mesh == NULL)
		return -1;
	memset(mesh, 0, sizeof(*mesh));
	mesh->n = wish.n_threads;
	for (uint32_t i = 0; i < mesh->n; i++) {
		mesh->lanes[i].in = hop_make(RING);
		is_whole = is_whole && mesh->lanes[i].in != NULL;
	}
	mesh->pool = taker_pool_make(player->side, player->bench, &wish,
				     player->opaque, why);
	if (!is_whole || mesh->pool == NULL) {
		free_mesh(player->side, mesh);
		return -1;
	}
	player->state = mesh;
	return 0;
}

static void tear_down(struct player *player)
{
	struct mesh *mesh = player->state;
	word object;

	for (uint32_t i = 0; i < mesh->n; i++)
		while (hop_get(mesh->lanes[i].in, &object, 1) == 1)
			if (player->side == SIDE_OURS)
				ours_give(mesh->pool, i, &object, 1);
	free_mesh(player->side, mesh);
}

static void count(struct player *player, struct counts *counts)
{
	struct mesh *mesh = player->state;
	uint64_t n_own = 0;

	for (uint32_t i = 0; i < mesh->n; i++)
		n_own += mesh->lanes[i].n_own;
	count_add(counts, "ring_full_per_1000",
		  1000.0 * BURST * (double)n_own / (double)player->n_done);
	taker_pool_count(mesh->pool, player, counts);
}

/* Give back what came from the thread before; return whether there was any. */
static ALWAYS_INLINE bool drain(struct mesh *mesh, uint32_t thread,
				const struct taker taker)
{
	word words[BURST];
	const uint32_t n = hop_get(mesh->lanes[thread].in, words, BURST);

	taker.give(mesh->pool, thread, words, n);
	return n > 0;
}

/* Until the thread before is done and its ring is empty. */
static ALWAYS_INLINE void drain_all(struct mesh *mesh, uint32_t thread,
				    const struct taker taker)
{
	struct lane *before = &mesh->lanes[(thread + mesh->n - 1) % mesh->n];
	struct patience patience = { 0 };

	/* What is left at a signal is for tear_down(). */
	while (!bench_is_ending()) {
		const bool is_last = __atomic_load_n(&before->is_done,
						     __ATOMIC_ACQUIRE) != 0;

		if (drain(mesh, thread, taker))
			patience = (struct patience){ 0 };
		else if (is_last)
			break;
		else if (patience_ends(&patience))
			break;
	}
	/* For the next run; nobody looks at it any more in this one. */
	__atomic_store_n(&before->is_done, 0, __ATOMIC_RELEASE);
	taker.idle(mesh->pool, thread);
}

static ALWAYS_INLINE uint64_t run(struct player *player, uint32_t thread,
				  uint64_t n, const struct taker taker)
{
	struct mesh *mesh = player->state;
	struct lane *lane = &mesh->lanes[thread];
	struct hop *out = mesh->lanes[(thread + 1) % mesh->n].in;
	struct patience patience = { 0 };
	word words[BURST];
	uint64_t done = 0, start = 0;

	n = n_of_run(n, BURST);
	while (done < n && !bench_is_ending() &&
	       (done % 4096 != 0 || !is_too_long(&start))) {
		const bool had = drain(mesh, thread, taker);

		if (!taker.take(mesh->pool, thread, words, BURST)) {
			if (!had && patience_ends(&patience))
				break;
			continue;
		}
		keep(words);
		lane->percent_due += (uint32_t)player->param[PERCENT];
		if (lane->percent_due < 100) {
			taker.give(mesh->pool, thread, words, BURST);
		} else {
			lane->percent_due -= 100;
			if (!hop_put(out, words, BURST)) {
				lane->n_own++;
				taker.give(mesh->pool, thread, words, BURST);
			}
		}
		done += BURST;
	}
	__atomic_store_n(&lane->is_done, 1, __ATOMIC_RELEASE);
	drain_all(mesh, thread, taker);
	return done;
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, OURS_TAKER);
}

static uint64_t run_malloc(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, MALLOC_TAKER);
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, DPDK_TAKER);
}
#else
#define run_dpdk NULL
#endif

static void row_of(struct bench *bench, uint32_t n_threads, uint32_t percent)
{
	struct player players[MAX_PLAYERS];
	char name[64], plot[32];
	struct row row = { .name = name,
			   .unit = "page",
			   .n_threads = n_threads,
			   .is_per_thread = true,
			   .plot = plot,
			   .x_name = "percent freed on the next thread",
			   .x = percent,
			   .players = players };
	struct player player = { .setup = set_up,
				 .count = count,
				 .teardown = tear_down,
				 .param = { percent, 0, n_threads } };

	snprintf(plot, sizeof(plot), "threads=%u", n_threads);
	snprintf(name, sizeof(name), "%s away=%u%%", plot, percent);
	takers_add_ours(bench, &row, &player, MAGAZINE, run_ours);
	takers_add_dpdk(bench, &row, &player, run_dpdk);
	player.name = "malloc";
	player.side = SIDE_MALLOC;
	player.run = run_malloc;
	bench_add(bench, players, &row.n_players, &player);
	bench_row(bench, &row);
}

static void rows(struct bench *bench)
{
	static const uint32_t percents[] = { 0, 10, 50, 100 };

	for (uint32_t n_threads = 2; n_threads <= 8; n_threads *= 2)
		for (uint32_t i = 0; i < 4; i++)
			row_of(bench, n_threads, percents[i]);
}

const struct workload b16_fwd_shared = {
	.name = "B16",
	.title = "fwd_shared",
	.what = "threads take from one pool, and free in part for each other",
	.source = "netdev, qmempool: flows that share a pool",
	.rows = rows,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B17: what a core does with the frames that a device has sent. Pairs of
 * threads: one takes pages from 1, 2 or 4 pools by turns and sends them in
 * bursts, the other one completes them with its own cache, whatever pool they
 * are from. With owners=mixed each eighth page has a second owner, the sender,
 * who lets go of it at about the same time.
 *
 * Ours are bare addresses that are completed as frames; DPDK's are mbufs with
 * their headers, and with pools=1 owners=1 also the bare objects ("raw").
 *
 * The time is that of both threads. What completing takes comes from a run of
 * its own, with a clock around each call:
 *
 *     p50_ns .. max_ns       of a call
 *     shared_path_percent    of the time of all calls: what those that moved a
 *                            magazine took longer than the others
 *     depot_ops_per_32       on both sides, by 32 pages
 */
#include <stdio.h>

#include "latency.h"
#include "txcompl.h"
#include "workloads.h"

static struct lane *lane_of(const struct player *player, uint32_t thread)
{
	struct txcompl *tx = player->state;

	return &tx->lanes[thread / 2];
}

/* One page, of the pool whose turn it is; the stocks are taken by 32. */
static ALWAYS_INLINE bool next_page(struct txcompl *tx, struct lane *lane,
				    uint32_t thread, word *ret,
				    const struct completer by)
{
	const uint32_t pool = lane->turn % tx->n_pools;
	struct stock *stock = &lane->stocks[pool];

	if (stock->n == 0) {
		if (!by.take(tx, thread, pool, stock->words, STOCK))
			return false;
		stock->n = STOCK;
	}
	*ret = stock->words[--stock->n];
	lane->turn++;
	return true;
}

/* Wait until there is one, and give up after a while without. */
static ALWAYS_INLINE bool wait_page(struct txcompl *tx, struct lane *lane,
				    uint32_t thread, word *ret,
				    const struct completer by)
{
	struct patience patience = { 0 };

	while (!next_page(tx, lane, thread, ret, by))
		if (patience_ends(&patience))
			return false;
	return true;
}

/* Send bursts until n pages are sent, and let go of what is ours, too. */
static ALWAYS_INLINE uint64_t send(struct player *player, uint32_t thread,
				   uint64_t n, const struct completer by)
{
	const uint32_t burst = (uint32_t)player->param[BURST];
	struct txcompl *tx = player->state;
	struct lane *lane = lane_of(player, thread);
	uint64_t done, start = 0, n_checked = 0;

	for (done = 0; done < n; done += burst) {
		struct patience patience = { 0 };
		word words[MAX_BURST], ours[MAX_BURST];
		uint32_t n_ours = 0;

		if (done >= n_checked) {
			if (is_too_long(&start))
				break;
			n_checked += 4096;
		}
		for (uint32_t i = 0; i < burst; i++) {
			if (!wait_page(tx, lane, thread, &words[i], by)) {
				by.complete(tx, thread, words, i);
				return done;
			}
			if (player->param[IS_MIXED] != 0 && lane->turn % 8 == 0)
				ours[n_ours++] = words[i];
		}
		by.share(tx, thread, ours, n_ours);
		while (!hop_put(lane->hop, words, burst)) {
			if (!patience_ends(&patience))
				continue;
			by.complete(tx, thread, words, burst);
			break;
		}
		by.complete(tx, thread, ours, n_ours);
	}
	return done;
}

/* One completed burst, with a clock. */
static ALWAYS_INLINE void complete_timed(struct txcompl *tx, struct lane *lane,
					 uint32_t thread, const word *words,
					 uint32_t n, const struct completer by)
{
	const uint64_t held = by.held(tx, thread);
	const uint64_t start = latency_now();
	uint64_t took;

	by.complete(tx, thread, words, n);
	took = latency_now() - start;
	latency_add(&lane->latency, took);
	/* It holds fewer than it got: a magazine went. */
	if (held + n >= by.held(tx, thread) + MR_MAGAZINE_PAGES) {
		lane->n_shared++;
		lane->shared_cycles += took;
	} else {
		lane->n_private++;
		lane->private_cycles += took;
	}
}

static ALWAYS_INLINE void complete(struct player *player, uint32_t thread,
				   const struct completer by)
{
	const uint32_t burst = (uint32_t)player->param[BURST];
	struct txcompl *tx = player->state;
	struct lane *lane = lane_of(player, thread);
	struct patience patience = { 0 };
	word words[MAX_BURST];

	for (;;) {
		const bool is_last =
			__atomic_load_n(&lane->is_done, __ATOMIC_ACQUIRE) != 0;
		const uint32_t n = hop_get(lane->hop, words, burst);

		if (n > 0) {
			patience = (struct patience){ 0 };
			if (tx->is_timed)
				complete_timed(tx, lane, thread, words, n, by);
			else
				by.complete(tx, thread, words, n);
		} else if (is_last) {
			break;
		} else {
			by.idle(tx, thread);
			(void)patience_ends(&patience);
		}
	}
	lane->is_done = 0; /* for the next run */
	by.idle(tx, thread);
}

static ALWAYS_INLINE uint64_t run(struct player *player, uint32_t thread,
				  uint64_t n, const struct completer by)
{
	struct lane *lane = lane_of(player, thread);
	uint64_t done;

	if (thread % 2 != 0) {
		complete(player, thread, by);
		return 0;
	}
	done = send(player, thread, n, by);
	by.idle(player->state, thread);
	__atomic_store_n(&lane->is_done, 1, __ATOMIC_RELEASE);
	return done;
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, OURS_COMPLETER);
}

static uint64_t run_ours_pages(struct player *player, uint32_t thread,
			       uint64_t n)
{
	return run(player, thread, n, PAGES_COMPLETER);
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, DPDK_COMPLETER);
}

static uint64_t run_raw(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, RAW_COMPLETER);
}

static void add_raw(struct bench *bench, struct row *row,
		    const struct player *like)
{
	struct player player = *like;

	player.side = SIDE_DPDK;
	player.run = run_raw;
	for (uint32_t i = 0; i < DPDK_KINDS; i++) {
		if (dpdk_kinds[i].cache != 512)
			continue;
		player.name = dpdk_name(&dpdk_kinds[i], ", raw");
		player.opaque = &dpdk_kinds[i];
		bench_add(bench, row->players, &row->n_players, &player);
	}
}
#else
#define run_dpdk NULL

static void add_raw(struct bench *bench, struct row *row,
		    const struct player *like)
{
	(void)bench;
	(void)row;
	(void)like;
}
#endif

static void count_shared(const struct txcompl *tx, struct counts *counts)
{
	double shared = 0, private = 0, n_shared = 0, n_private = 0;

	for (uint32_t i = 0; i < tx->n_pairs; i++) {
		shared += (double)tx->lanes[i].shared_cycles;
		private += (double)tx->lanes[i].private_cycles;
		n_shared += (double)tx->lanes[i].n_shared;
		n_private += (double)tx->lanes[i].n_private;
	}
	if (n_private == 0 || n_shared == 0)
		return;
	count_add(counts, "shared_path_percent",
		  100 * (shared - n_shared * private / n_private) /
			  (shared + private));
}

static void count(struct player *player, struct counts *counts)
{
	struct txcompl *tx = player->state;
	struct latency *latencies = calloc(tx->n_pairs, sizeof(*latencies));

	if (player->side == SIDE_OURS)
		txcompl_count_ours(player, counts);
	tx->is_timed = true;
	bench_run_again(player, 4000000);
	tx->is_timed = false;
	if (latencies == NULL)
		return;
	for (uint32_t i = 0; i < tx->n_pairs; i++)
		latencies[i] = tx->lanes[i].latency;
	latency_count(latencies, tx->n_pairs, counts);
	free(latencies);
	if (player->side == SIDE_OURS)
		count_shared(tx, counts);
}

static void row_of(struct bench *bench, uint32_t threads_per_core,
		   uint32_t burst, uint32_t n_pools, bool is_mixed)
{
	struct player players[MAX_PLAYERS];
	char name[96], plot[80];
	struct row row = { .name = name,
			   .unit = "page",
			   .n_threads = 2 * threads_per_core,
			   .plot = plot,
			   .x_name = "pages per completion",
			   .x = burst,
			   .players = players };
	struct player player = { .setup = txcompl_make,
				 .count = count,
				 .teardown = txcompl_free,
				 .param = { burst, n_pools, is_mixed,
					    threads_per_core } };

	snprintf(plot, sizeof(plot), "pools=%u owners=%s threads_per_core=%u",
		 n_pools, is_mixed ? "mixed" : "1", threads_per_core);
	snprintf(name, sizeof(name), "burst=%u %s", burst, plot);
	takers_add_ours(bench, &row, &player, MAGAZINE, run_ours);
	player.param[IS_PAGES] = 1;
	player.name = "page allocator, locked";
	player.side = SIDE_OURS;
	player.run = run_ours_pages;
	if (n_pools == 1 && !is_mixed)
		bench_add(bench, players, &row.n_players, &player);
	takers_add_dpdk(bench, &row, &player, run_dpdk);
	if (n_pools == 1 && !is_mixed)
		add_raw(bench, &row, &player);
	bench_row(bench, &row);
}

static void rows(struct bench *bench)
{
	static const uint32_t bursts[] = { 1, 4, 16, 32, 64, 256 };

	for (uint32_t is_mixed = 0; is_mixed < 2; is_mixed++)
		for (uint32_t n_pools = 1; n_pools <= MAX_POOLS; n_pools *= 2)
			for (uint32_t i = 0; i < 6; i++)
				row_of(bench, 1, bursts[i], n_pools,
				       is_mixed != 0);
	for (uint32_t n_pools = 1; n_pools <= MAX_POOLS; n_pools *= 4)
		for (uint32_t i = 3; i < 6; i += 2)
			row_of(bench, 4, bursts[i], n_pools, n_pools > 1);
}

const struct workload b17_txcompl = {
	.name = "B17",
	.title = "txcompl",
	.what = "completed frames of several pools go back on another core",
	.source = "netdev, order-0 frees; page_pool_put_netmem_bulk",
	.rows = rows,
};

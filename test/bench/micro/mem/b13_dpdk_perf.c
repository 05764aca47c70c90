/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B13: rte_mempool's own workload, mempool_perf_autotest: take n_keep objects,
 * get_bulk at a time, then give them back, put_bulk at a time. In the version
 * of DPDK 22.11, and in that of 26.11-rc0, where the sizes of calls may be
 * random, too. Where get = put both have a run more, in which the compiler
 * knows the size.
 *
 * Ours with "owners on" looks at the owner of each page that it gives back, as
 * all pools do once a page had two. Frames of 2 pools alternate in each call.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "ours.h"
#include "peer_dpdk.h"
#include "plain.h"
#include "workloads.h"

enum {
	OLD_KEEP = 512,   /* largest of 22.11 */
	NEW_KEEP = 32768, /* largest of 26.11 */
	CACHE = 512,
	PAGE_BYTES = 2048,
};

enum { KEEP, GET, PUT, RANDOM }; /* of player.param; RANDOM: most, or 0 */

/* One slot per object that a thread keeps; main memory of no interest. */
static union {
	uint64_t addrs[NEW_KEEP];
	struct mr_frame frames[NEW_KEEP];
	void *objects[NEW_KEEP];
	uint32_t numbers[NEW_KEEP];
} * kept; /* by thread */

/* Sizes of calls: fixed, or as 26.11 draws them, never beyond what is left. */
struct sizes {
	uint32_t fixed, mask, r;
};

static inline uint32_t next_size(struct sizes *sizes, uint32_t n_left)
{
	uint32_t n = sizes->fixed, r;

	if (sizes->mask != 0) {
		r = sizes->r++;
		n = ((r ^ (r >> 2) ^ (r << 3)) & sizes->mask) + 1;
	}
	return n < n_left ? n : n_left;
}

static struct sizes sizes_of(const struct player *player, bool is_put)
{
	const uint64_t most = player->param[RANDOM];

	return (struct sizes){
		.fixed = (uint32_t)player->param[is_put ? PUT : GET],
		.mask = most > 0 ? (uint32_t)most - 1 : 0,
	};
}

static uint64_t run_addrs(struct player *player, uint32_t thread, uint64_t n)
{
	struct ours *ours = player->state;
	struct mr_cache *cache = ours->caches[thread];
	const uint32_t keep_n = (uint32_t)player->param[KEEP];
	struct sizes get = sizes_of(player, false);
	struct sizes put = sizes_of(player, true);
	uint64_t *addrs = kept[thread].addrs, done;

	for (done = 0; done < n; done += keep_n) {
		for (uint32_t i = 0, k; i < keep_n; i += k) {
			k = next_size(&get, keep_n - i);
			if (mr_frag_alloc_bulk(cache, addrs + i, k,
					       PAGE_BYTES) != k) {
				mr_frag_free_bulk(cache, addrs, i);
				return 0;
			}
		}
		for (uint32_t i = 0, k; i < keep_n; i += k) {
			k = next_size(&put, keep_n - i);
			mr_frag_free_bulk(cache, addrs + i, k);
		}
	}
	return done;
}

/* Take k pages of one pool as frames. */
static inline bool take_frames(struct mr_cache *cache, struct mr_frame *frames,
			       uint32_t k)
{
	uint64_t addrs[CACHE];
	const uint32_t got = mr_frag_alloc_bulk(cache, addrs, k, PAGE_BYTES);

	if (got != k) {
		mr_frag_free_bulk(cache, addrs, got);
		return false;
	}
	for (uint32_t j = 0; j < k; j++)
		frames[j] = (struct mr_frame){ .addr = addrs[j], .len = 64 };
	return true;
}

/* Take k pages as frames, of a and of b by turns. */
static inline bool take_mixed(struct mr_cache *a, struct mr_cache *b,
			      struct mr_frame *frames, uint32_t k)
{
	uint64_t addrs[2][CACHE / 2];
	const uint32_t of_a =
		mr_frag_alloc_bulk(a, addrs[0], (k + 1) / 2, PAGE_BYTES);
	const uint32_t of_b =
		k > 1 ? mr_frag_alloc_bulk(b, addrs[1], k / 2, PAGE_BYTES) : 0;

	if (of_a + of_b != k) {
		mr_frag_free_bulk(a, addrs[0], of_a);
		mr_frag_free_bulk(b, addrs[1], of_b);
		return false;
	}
	for (uint32_t j = 0; j < k; j++)
		frames[j] = (struct mr_frame){ .addr = addrs[j % 2][j / 2],
					       .len = 64 };
	return true;
}

/*
 * The same through frames, with their entries built. All go back through the
 * first cache, of whatever pool they are.
 */
static uint64_t run_frames(struct player *player, uint32_t thread, uint64_t n)
{
	struct ours *ours = player->state;
	struct mr_cache *caches[2];
	const uint32_t keep_n = (uint32_t)player->param[KEEP];
	const bool is_mixed = player->opaque != NULL;
	struct sizes get = sizes_of(player, false);
	struct sizes put = sizes_of(player, true);
	struct mr_frame *frames = kept[thread].frames;
	uint32_t turn = 0;
	uint64_t done;

	caches[0] = ours[0].caches[thread];
	caches[1] = is_mixed ? ours[1].caches[thread] : NULL;
	for (done = 0; done < n; done += keep_n) {
		for (uint32_t i = 0, k; i < keep_n; i += k, turn ^= 1) {
			k = next_size(&get, keep_n - i);
			if (is_mixed ? !take_mixed(caches[turn], caches[!turn],
						   frames + i, k) :
				       !take_frames(caches[0], frames + i, k)) {
				mr_frame_free_bulk(caches[0], frames, i);
				return 0;
			}
		}
		for (uint32_t i = 0, k; i < keep_n; i += k) {
			k = next_size(&put, keep_n - i);
			mr_frame_free_bulk(caches[0], frames + i, k);
		}
	}
	return done;
}

/* One page had two owners once: from now on the pool looks at them. */
static int use_owners(struct ours *ours, struct mr_reason *why)
{
	struct mr_frame frame;

	if (take_frames(ours->caches[0], &frame, 1)) {
		const int err = mr_frame_ref(ours->caches[0], &frame, 1);

		mr_frame_free_bulk(ours->caches[0], &frame, 1);
		if (err < 0)
			return err;
		mr_frame_free_bulk(ours->caches[0], &frame, 1);
		return 0;
	}
	snprintf(why->text, sizeof(why->text), "the pool is empty");
	return -1;
}

static int set_up_owners(struct player *player, struct mr_reason *why)
{
	if (ours_set_up(player, why) < 0)
		return -1;
	if (use_owners(player->state, why) == 0)
		return 0;
	ours_tear_down(player);
	return -1;
}

static void tear_down_two(struct player *player)
{
	struct ours *ours = player->state;

	/* The caches of both first: the one may hold pages of the other. */
	for (uint32_t i = 0; i < 2; i++) {
		while (ours[i].n_caches > 0)
			mr_cache_destroy(ours[i].caches[--ours[i].n_caches]);
	}
	ours_free(&ours[1]);
	ours_free(&ours[0]);
	free(ours);
}

/* Two pools in the region of the first, with owners on. */
static int set_up_two(struct player *player, struct mr_reason *why)
{
	struct mr_pool_config config = {
		.n_pages = (uint32_t)player->param[P_PAGES],
		.page_bytes = PAGE_BYTES,
	};
	struct ours *ours = calloc(2, sizeof(*ours));

	if (ours == NULL)
		return -1;
	player->state = ours;
	if (ours_make(&ours[0], player->bench, &config, player->row->n_threads,
		      why) < 0) {
		free(ours);
		return -1;
	}
	config.region = mr_pool_region(ours[0].pool);
	if (ours_make(&ours[1], player->bench, &config, player->row->n_threads,
		      why) < 0) {
		ours_free(&ours[0]);
		free(ours);
		return -1;
	}
	if (use_owners(&ours[0], why) == 0 && use_owners(&ours[1], why) == 0)
		return 0;
	tear_down_two(player);
	return -1;
}

/* What the first pool counts, and how much of all is the second one's. */
static void count_two(struct player *player, struct counts *counts)
{
	const struct ours *ours = player->state;
	struct mr_pool_stats s = { .size = sizeof(s) };

	ours_count(&ours[0], player, counts);
	mr_pool_stats(ours[1].pool, &s);
	count_per_1000(counts, "fast_of_pool_2_per_1000", s.alloc_fast, player);
}

#ifdef BENCH_DPDK
static inline __attribute__((always_inline)) uint64_t
dpdk_loop(struct player *player, uint32_t thread, uint64_t n,
	  struct rte_mempool_cache *cache, uint32_t constant)
{
	struct dpdk_pool *pool = player->state;
	const uint32_t keep_n = (uint32_t)player->param[KEEP];
	struct sizes get = sizes_of(player, false);
	struct sizes put = sizes_of(player, true);
	void **objects = kept[thread].objects;
	uint64_t done;

	for (done = 0; done < n; done += keep_n) {
		for (uint32_t i = 0, k; i < keep_n; i += k) {
			k = constant ? constant : next_size(&get, keep_n - i);
			if (rte_mempool_generic_get(pool->mp, objects + i, k,
						    cache) < 0) {
				rte_mempool_generic_put(pool->mp, objects, i,
							cache);
				return 0;
			}
		}
		for (uint32_t i = 0, k; i < keep_n; i += k) {
			k = constant ? constant : next_size(&put, keep_n - i);
			rte_mempool_generic_put(pool->mp, objects + i, k,
						cache);
		}
	}
	return done;
}

static struct rte_mempool_cache *cache_of(const struct player *player)
{
	struct dpdk_pool *pool = player->state;

	return pool->a != NULL ?
		       pool->a :
		       rte_mempool_default_cache(pool->mp, rte_lcore_id());
}

static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	return dpdk_loop(player, thread, n, cache_of(player), 0);
}

/* The compiler knows n and unrolls: +17 % by DPDK's own account. */
static uint64_t run_dpdk_constant(struct player *player, uint32_t thread,
				  uint64_t n)
{
	struct rte_mempool_cache *cache = cache_of(player);

	switch (player->param[GET]) {
	case 1:
		return dpdk_loop(player, thread, n, cache, 1);
	case 4:
		return dpdk_loop(player, thread, n, cache, 4);
	case 8:
		return dpdk_loop(player, thread, n, cache, 8);
	case 32:
		return dpdk_loop(player, thread, n, cache, 32);
	case 64:
		return dpdk_loop(player, thread, n, cache, 64);
	case 128:
		return dpdk_loop(player, thread, n, cache, 128);
	case 256:
		return dpdk_loop(player, thread, n, cache, 256);
	case 512:
		return dpdk_loop(player, thread, n, cache, 512);
	default:
		return 0;
	}
}
#else
static player_run_fn *const run_dpdk, *const run_dpdk_constant;
#endif

static int set_up_plain(struct player *player, struct mr_reason *why)
{
	struct plain **stacks = calloc(MAX_THREADS, sizeof(*stacks));

	(void)why;
	player->state = stacks;
	if (stacks == NULL)
		return -1;
	for (uint32_t i = 0; i < player->row->n_threads; i++)
		stacks[i] = plain_make((uint32_t)player->param[P_PAGES]);
	return 0;
}

static void tear_down_plain(struct player *player)
{
	struct plain **stacks = player->state;

	for (uint32_t i = 0; i < player->row->n_threads; i++)
		free(stacks[i]);
	free(stacks);
}

static uint64_t run_plain(struct player *player, uint32_t thread, uint64_t n)
{
	struct plain *plain = ((struct plain **)player->state)[thread];
	const uint32_t keep_n = (uint32_t)player->param[KEEP];
	struct sizes get = sizes_of(player, false);
	struct sizes put = sizes_of(player, true);
	uint32_t *numbers = kept[thread].numbers;
	uint64_t done;

	for (done = 0; done < n; done += keep_n) {
		for (uint32_t i = 0, k; i < keep_n; i += k) {
			k = next_size(&get, keep_n - i);
			if (plain_pop(plain, numbers + i, k) != k)
				return 0;
		}
		for (uint32_t i = 0, k; i < keep_n; i += k) {
			k = next_size(&put, keep_n - i);
			plain_push(plain, numbers + i, k);
		}
	}
	return done;
}

static void add_ours(struct bench *bench, struct row *row,
		     const struct player *like)
{
	const struct {
		const char *name;
		int (*setup)(struct player *player, struct mr_reason *why);
		player_run_fn *run;
	} ours[] = {
		{ "addresses", ours_set_up, run_addrs },
		{ "addresses, owners on", set_up_owners, run_addrs },
		{ "frames", ours_set_up, run_frames },
		{ "frames, owners on", set_up_owners, run_frames },
	};
	struct player player = *like;

	player.side = SIDE_OURS;
	player.count = ours_player_count;
	player.teardown = ours_tear_down;
	for (uint32_t i = 0; i < 4; i++) {
		player.name = ours[i].name;
		player.setup = ours[i].setup;
		player.run = ours[i].run;
		bench_add(bench, row->players, &row->n_players, &player);
	}
	/* As with DPDK's caches of 512: what is kept need not leave them. */
	player.param[P_MAGAZINE] = 512;
	player.name = "addresses, magazines of 512";
	player.setup = ours_set_up;
	player.run = run_addrs;
	bench_add(bench, row->players, &row->n_players, &player);
	player.param[P_MAGAZINE] = 0;
	player.name = "frames of 2 pools, owners on";
	player.run = run_frames;
	player.setup = set_up_two;
	player.count = count_two;
	player.teardown = tear_down_two;
	player.opaque = "two"; /* for run_frames() */
	bench_add(bench, row->players, &row->n_players, &player);
}

/* One row: what is common to its players is in like. */
static void row_of(struct bench *bench, const char *name, const char *plot,
		   uint32_t n_threads, const struct player *like,
		   uint32_t kinds, bool is_constant)
{
	struct player players[MAX_PLAYERS];
	struct row row = { .name = name,
			   .unit = "page",
			   .n_threads = n_threads,
			   .is_per_thread = true,
			   .plot = plot,
			   .x_name = "pages per call",
			   .x = (double)like->param[GET],
			   .players = players };
	struct player player = *like;

	add_ours(bench, &row, like);
	player.run = is_constant ? run_dpdk_constant : run_dpdk;
	dpdk_add_all(bench, &row, kinds, &player);
	if (n_threads == 1 && kinds == C_ALL) {
		const uint32_t before = row.n_players;

		player.param[P_MORE] = 1;
		dpdk_add_all(bench, &row, C512, &player);
		/* Ring only. */
		if (row.n_players > before) {
			row.n_players = before + 1;
			players[before].name = "rte_mempool ring c512, user's";
		}
	}
	player = *like;
	player.name = "plain stack";
	player.side = SIDE_PLAIN;
	player.setup = set_up_plain;
	player.run = run_plain;
	player.teardown = tear_down_plain;
	bench_add(bench, players, &row.n_players, &player);
	bench_row(bench, &row);
}

static void rows_22_11(struct bench *bench, uint32_t n_threads)
{
	static const uint32_t keeps[] = { 32, 128, 512 };
	static const uint32_t bulks[] = { 1, 4, 8, 32 };

	for (uint32_t i = 0; i < 3 * 4 * 4; i++) {
		const uint32_t keep_n = keeps[i / 16];
		const uint32_t get = bulks[i / 4 % 4], put = bulks[i % 4];
		const uint64_t pages =
			(uint64_t)n_threads * (OLD_KEEP + CACHE) - 1;
		const struct player like = {
			.param = { keep_n, get, put, [P_PAGES] = pages }
		};
		char name[96], plot[48];

		snprintf(name, sizeof(name),
			 "22.11 keep=%u get=%u put=%u threads=%u", keep_n, get,
			 put, n_threads);
		snprintf(plot, sizeof(plot), "22.11 keep=%u threads=%u", keep_n,
			 n_threads);
		row_of(bench, name, get == put ? plot : NULL, n_threads, &like,
		       C_ALL, false);
		if (get != put)
			continue;
		snprintf(name, sizeof(name),
			 "22.11 keep=%u constant=%u threads=%u", keep_n, get,
			 n_threads);
		snprintf(plot, sizeof(plot),
			 "22.11 keep=%u constant threads=%u", keep_n,
			 n_threads);
		row_of(bench, name, plot, n_threads, &like, C_ALL, true);
	}
}

static void rows_26_11(struct bench *bench, uint32_t n_threads)
{
	static const uint32_t keeps[] = { 32, 128, 512, 2048, 8192, 32768 };
	static const uint32_t bulks[] = { 1, 4, 8, 32, 64, 128, 256, 512 };
	const uint64_t pages = (uint64_t)n_threads * (NEW_KEEP + 2 * CACHE) - 1;

	for (uint32_t i = 0; i < 6 * 8 * 2; i++) {
		const uint32_t keep_n = keeps[i / 16], bulk = bulks[i / 2 % 8];
		const bool is_random = i % 2 != 0;
		const struct player like = {
			.param = { keep_n, bulk, bulk,
				   is_random ? bulk : 0, [P_PAGES] = pages }
		};
		char name[96], plot[64];

		if (bulk > keep_n || (is_random && bulk < 8))
			continue;
		snprintf(name, sizeof(name), "26.11 keep=%u %s=%u threads=%u",
			 keep_n, is_random ? "random" : "constant", bulk,
			 n_threads);
		snprintf(plot, sizeof(plot), "26.11 keep=%u %s threads=%u",
			 keep_n, is_random ? "random" : "constant", n_threads);
		/* The pools are large: not all kinds fit 600 MB. */
		row_of(bench, name, plot, n_threads, &like, C512, !is_random);
	}
}

static void rows(struct bench *bench)
{
	const uint32_t n_cores = bench_n_cores(bench);

	kept = calloc(n_cores, sizeof(*kept));
	if (kept == NULL)
		return;
	for (uint32_t n = 1; n <= n_cores; n *= 2) {
		rows_22_11(bench, n);
		rows_26_11(bench, n);
	}
	free(kept);
	kept = NULL;
}

const struct workload b13_dpdk_perf = {
	.name = "B13",
	.title = "dpdk_perf",
	.what = "the loops of DPDK's mempool_perf_autotest",
	.source = "DPDK, app/test/test_mempool_perf.c",
	.rows = rows,
};

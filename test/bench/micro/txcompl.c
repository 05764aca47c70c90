/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B17: completion of frames that a device has sent. In each pair of threads,
 * one allocates pages from 1, 2 or 4 pools in turn and sends them in bursts;
 * the other completes them with its own cache, whatever their pool. With
 * owners=mixed, every eighth page has a second owner, the sender, who frees it
 * at about the same time.
 *
 * Ours are bare addresses, completed as frames; DPDK's are mbufs with their
 * headers.
 *
 * The time is that of both threads. The time of a completion is from a run of
 * its own, with a clock around each call:
 *
 *     p50_ns .. max_ns       per call
 *     depot_ops_per_32       on both sides, per 32 pages
 */
#include <stdio.h>

#include "alloc.h"
#include "latency.h"

enum { P_BURST, P_IS_MIXED, P_IS_TIMED }; /* of variant.param */

enum { MAX_BURST = 256, STOCK = 32, TX_PAGES = 8192 };

/* Pages of one pool that were allocated and not sent yet. */
struct stock {
	uint32_t n;
	word words[STOCK];
};

/* What a pair of threads shares, beside the ring. */
struct pair {
	alignas(64) uint32_t is_done; /* nothing more is coming */
	uint32_t turn;                /* selects the pool */
	struct stock stocks[MAX_POOLS];
	/* Of the completing thread. */
	alignas(64) struct latency latency;
	uint64_t n_shared, shared_cycles, n_private, private_cycles;
};

struct completer {
	bool (*take)(void *pool, uint32_t thread, uint32_t p, word *words,
		     uint32_t n);
	give_fn *share; /* add an owner to each */
	give_fn *complete;
};

static struct pair *pair_of(struct harness *harness, uint32_t thread)
{
	return (struct pair *)(void *)harness->extra + thread / 2;
}

static ALWAYS_INLINE bool our_take(void *pool, uint32_t thread, uint32_t p,
				   word *words, uint32_t n)
{
	return cache_take(our_pool(pool)->caches[p][thread], thread, words, n);
}

static ALWAYS_INLINE void frames_of(struct mr_frame *frames, const word *words,
				    uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ .addr = words[i], .len = 64 };
}

static ALWAYS_INLINE void our_share(void *pool, uint32_t thread,
				    const word *words, uint32_t n)
{
	struct our_pool *our = pool;
	struct mr_frame frames[MAX_BURST];

	frames_of(frames, words, n);
	(void)mr_frame_ref(our->caches[0][thread], frames, n);
}

static ALWAYS_INLINE void our_complete(void *pool, uint32_t thread,
				       const word *words, uint32_t n)
{
	struct our_pool *our = pool;
	struct mr_frame frames[MAX_BURST];

	frames_of(frames, words, n);
	mr_frame_free_bulk(our->caches[0][thread], frames, n);
}

#define OUR_FRAMES ((struct completer){ our_take, our_share, our_complete })

#ifdef BENCH_DPDK
static ALWAYS_INLINE bool mbufs_take(void *pool, uint32_t thread, uint32_t p,
				     word *words, uint32_t n)
{
	(void)thread;
	return rte_pktmbuf_alloc_bulk(((struct dpdk_pool *)pool)->mps[p],
				      (dpdk_frame **)words, n) == 0;
}

GIVE_EACH(mbufs_share, rte_mbuf_refcnt_update(object, 1))
GIVE(mbufs_complete, rte_pktmbuf_free_bulk((dpdk_frame **)objects, n))

#define DPDK_FRAMES                                                            \
	((struct completer){ mbufs_take, mbufs_share, mbufs_complete })
#endif

/* Tell our cache that it is idle, so that it releases what others need. */
static void pause_of(struct variant *variant, uint32_t thread)
{
	struct harness *harness = variant->state;

	if (variant->side == SIDE_OURS)
		ours_idle(harness->pool, thread);
}

/* A page of the next pool; stocks are filled by 32. */
static ALWAYS_INLINE bool next_page(struct variant *variant, uint32_t thread,
				    word *ret, const struct completer by)
{
	struct harness *harness = variant->state;
	struct pair *pair = pair_of(harness, thread);
	const uint32_t p = pair->turn % variant->wish.n_pools;
	struct stock *stock = &pair->stocks[p];

	if (stock->n == 0) {
		if (!by.take(harness->pool, thread, p, stock->words, STOCK))
			return false;
		stock->n = STOCK;
	}
	*ret = stock->words[--stock->n];
	pair->turn++;
	return true;
}

/* Wait for a page, but not for ever. */
static ALWAYS_INLINE bool wait_page(struct variant *variant, uint32_t thread,
				    word *ret, const struct completer by)
{
	struct patience patience = { 0 };

	while (!next_page(variant, thread, ret, by))
		if (patience_ends(&patience))
			return false;
	return true;
}

/* Send bursts of n pages in all, and free our own references. */
static ALWAYS_INLINE uint64_t send_pages(struct variant *variant,
					 uint32_t thread, uint64_t n,
					 const struct completer by)
{
	const uint32_t burst = (uint32_t)variant->param[P_BURST];
	struct harness *harness = variant->state;
	struct pair *pair = pair_of(harness, thread);
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
			if (!wait_page(variant, thread, &words[i], by)) {
				by.complete(harness->pool, thread, words, i);
				return done;
			}
			if (variant->param[P_IS_MIXED] != 0 &&
			    pair->turn % 8 == 0)
				ours[n_ours++] = words[i];
		}
		by.share(harness->pool, thread, ours, n_ours);
		while (!hop_put(harness->hops[thread / 2], words, burst)) {
			if (!patience_ends(&patience))
				continue;
			by.complete(harness->pool, thread, words, burst);
			break;
		}
		by.complete(harness->pool, thread, ours, n_ours);
	}
	return done;
}

static ALWAYS_INLINE void complete_pages(struct variant *variant,
					 uint32_t thread,
					 const struct completer by)
{
	const uint32_t burst = (uint32_t)variant->param[P_BURST];
	const bool is_timed = variant->param[P_IS_TIMED] != 0;
	struct harness *harness = variant->state;
	struct pair *pair = pair_of(harness, thread);
	struct patience patience = { 0 };
	word words[MAX_BURST];

	for (;;) {
		const bool is_last =
			__atomic_load_n(&pair->is_done, __ATOMIC_ACQUIRE) != 0;
		const uint32_t n =
			hop_get(harness->hops[thread / 2], words, burst);

		if (n > 0) {
			const uint64_t begin = is_timed ? latency_now() : 0;

			by.complete(harness->pool, thread, words, n);
			if (is_timed)
				latency_add(&pair->latency,
					    latency_now() - begin);
			patience = (struct patience){ 0 };
		} else if (is_last) {
			break;
		} else {
			pause_of(variant, thread);
			(void)patience_ends(&patience);
		}
	}
	pair->is_done = 0; /* for the next run */
	pause_of(variant, thread);
}

static ALWAYS_INLINE uint64_t pairs(struct variant *variant, uint32_t thread,
				    uint64_t n, const struct completer by)
{
	struct pair *pair = pair_of(variant->state, thread);
	uint64_t done;

	if (thread % 2 != 0) {
		complete_pages(variant, thread, by);
		return 0;
	}
	done = send_pages(variant, thread, n, by);
	pause_of(variant, thread);
	__atomic_store_n(&pair->is_done, 1, __ATOMIC_RELEASE);
	return done;
}

RUN(pairs_ours, pairs, OUR_FRAMES)
RUN_DPDK(pairs_mbufs, pairs, DPDK_FRAMES)

/* Free the stocks; our first cache takes frames of any pool. */
static void end_pairs(struct variant *variant)
{
	struct harness *harness = variant->state;

	for (uint32_t t = 0; t < harness->n_threads; t += 2)
		for (uint32_t p = 0; p < variant->wish.n_pools; p++) {
			const struct stock *stock =
				&pair_of(harness, t)->stocks[p];

			if (variant->side == SIDE_OURS)
				our_complete(harness->pool, 0, stock->words,
					     stock->n);
		}
}

static void count_ours(struct variant *variant, struct counts *counts)
{
	const struct our_pool *our = ((struct harness *)variant->state)->pool;
	uint64_t n_depot = 0, n_failed = 0, n_ring = 0, n_full = 0;

	for (uint32_t p = 0; p < our->n_pools; p++) {
		struct mr_pool_stats s = { .size = sizeof(s) };

		mr_pool_stats(our->pools[p], &s);
		n_depot += s.alloc_refill + s.recycle_cache_full;
		n_failed += s.depot_cas_failed;
		n_ring += s.recycle_ring;
		n_full += s.recycle_ring_full;
	}
	count_add(counts, "depot_ops_per_32",
		  32 * (double)n_depot / (double)variant->n_done);
	count_per_1000(counts, "cas_failed_per_1000", n_failed, variant);
	count_per_1000(counts, "ring_per_1000", n_ring, variant);
	count_per_1000(counts, "ring_full_per_1000", n_full, variant);
	count_huge(our->pools[0], counts);
}

static void count_all(struct variant *variant, struct counts *counts)
{
	struct harness *harness = variant->state;
	const uint32_t n_pairs = harness->n_threads / 2;
	struct latency *latencies = calloc(n_pairs, sizeof(*latencies));

	if (variant->side == SIDE_OURS)
		count_ours(variant, counts);
	variant->param[P_IS_TIMED] = 1;
	bench_run_again(variant, 4000000);
	variant->param[P_IS_TIMED] = 0;
	if (latencies == NULL)
		return;
	for (uint32_t i = 0; i < n_pairs; i++)
		latencies[i] = pair_of(harness, 2 * i)->latency;
	latency_count(latencies, n_pairs, counts);
	free(latencies);
}

static void row_of(struct bench *bench, uint32_t per_core, uint32_t burst,
		   uint32_t n_pools, bool is_mixed)
{
	static const struct contestant list[] = {
		{ "ours", A_OURS, pairs_ours },
		{ "ours, magazines of 64", A_OURS, pairs_ours,
		  .magazine_pages = 64 },
		{ "", A_MBUFS, pairs_mbufs, C_ALL },
	};
	struct row row = { .unit = "page", .n_threads = 2 * per_core };
	const struct variant like = {
		.end = end_pairs,
		.count = count_all,
		.wish = { .n_objects = TX_PAGES * per_core,
			  .n_pools = n_pools,
			  .n_hops = per_core,
			  .hop_words = 1024,
			  .n_extra = per_core * sizeof(struct pair) },
		.param = { burst, is_mixed },
	};

	NAME(row.plot, "pools=%u owners=%s threads_per_core=%u", n_pools,
	     is_mixed ? "mixed" : "1", per_core);
	NAME(row.name, "burst=%u %s", burst, row.plot);
	bench_add_all(bench, &row, &like, list, N_OF(list));
	bench_row(bench, &row);
}

void rows_b17(struct bench *bench)
{
	static const uint32_t bursts[] = { 1, 4, 16, 32, 64, 256 };

	for (uint32_t is_mixed = 0; is_mixed < 2; is_mixed++)
		for (uint32_t n_pools = 1; n_pools <= MAX_POOLS; n_pools *= 2)
			for (uint32_t i = 0; i < N_OF(bursts); i++)
				row_of(bench, 1, bursts[i], n_pools,
				       is_mixed != 0);
	for (uint32_t n_pools = 1; n_pools <= MAX_POOLS; n_pools *= 4)
		for (uint32_t i = 3; i < 6; i += 2)
			row_of(bench, 4, bursts[i], n_pools, n_pools > 1);
}

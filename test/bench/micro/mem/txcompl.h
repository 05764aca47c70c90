/* SPDX-License-Identifier: BSD-3-Clause */
/* B17: pools whose frames are completed together. */
#ifndef TXCOMPL_H
#define TXCOMPL_H

#include "latency.h"
#include "takers.h"

enum { BURST, POOLS, IS_MIXED, PER_CORE, MAGAZINE, IS_PAGES }; /* .param */

enum {
	MAX_POOLS = 4,
	MAX_BURST = 256,
	STOCK = 32,
	TX_RING = 1024,
	TX_PAGES = 8192, /* of each pool, by pair of threads */
	MAX_PAIRS = MAX_THREADS / 2,
};

/* Pages of one pool that were taken and not sent yet. */
struct stock {
	uint32_t n;
	word words[STOCK];
};

/* From one thread to the other one of a pair. */
struct lane {
	struct hop *hop;
	uint32_t is_done; /* nothing follows */
	uint32_t turn;    /* of the pools */
	struct stock stocks[MAX_POOLS];
	/* The completing thread's. */
	alignas(64) struct latency latency;
	uint64_t n_shared, shared_cycles, n_private, private_cycles;
};

struct txcompl {
	uint32_t n_pools, n_pairs;
	bool is_timed;
	struct mr_region *region; /* of small pages; NULL: the first pool's */
	struct mr_pool *pools[MAX_POOLS];
	struct mr_cache *caches[MAX_POOLS][MAX_THREADS];
#ifdef BENCH_DPDK
	struct rte_mempool *dpdk_pools[MAX_POOLS];
#endif
	struct lane lanes[];
};

struct completer {
	bool (*take)(struct txcompl *tx, uint32_t thread, uint32_t pool,
		     word *words, uint32_t n);
	/* One owner more for each. */
	void (*share)(struct txcompl *tx, uint32_t thread, const word *words,
		      uint32_t n);
	void (*complete)(struct txcompl *tx, uint32_t thread, const word *words,
			 uint32_t n);
	void (*idle)(struct txcompl *tx, uint32_t thread);
	/* Pages that the thread's cache has; 0 if nobody can say. */
	uint64_t (*held)(struct txcompl *tx, uint32_t thread);
};

/* Members of a player. */
int txcompl_make(struct player *player, struct mr_reason *why);
void txcompl_free(struct player *player);
void txcompl_count_ours(struct player *player, struct counts *counts);

static ALWAYS_INLINE bool ours_tx_take(struct txcompl *tx, uint32_t thread,
				       uint32_t pool, word *words, uint32_t n)
{
	struct mr_cache *cache = tx->caches[pool][thread];
	const uint32_t got =
		mr_frag_alloc_bulk(cache, (uint64_t *)words, n, OBJECT_BYTES);

	if (got == n)
		return true;
	mr_frag_free_bulk(cache, (const uint64_t *)words, got);
	return false;
}

static ALWAYS_INLINE void frames_of(struct mr_frame *frames, const word *words,
				    uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ .addr = words[i], .len = 64 };
}

static ALWAYS_INLINE void ours_tx_share(struct txcompl *tx, uint32_t thread,
					const word *words, uint32_t n)
{
	struct mr_frame frames[MAX_BURST];

	frames_of(frames, words, n);
	(void)mr_frame_ref(tx->caches[0][thread], frames, n);
}

static ALWAYS_INLINE void ours_tx_complete(struct txcompl *tx, uint32_t thread,
					   const word *words, uint32_t n)
{
	struct mr_frame frames[MAX_BURST];

	frames_of(frames, words, n);
	mr_frame_free_bulk(tx->caches[0][thread], frames, n);
}

static inline void ours_tx_idle(struct txcompl *tx, uint32_t thread)
{
	mr_cache_idle(tx->caches[0][thread]);
}

static inline uint64_t ours_tx_held(struct txcompl *tx, uint32_t thread)
{
	struct mr_cache_stats stats = { .size = sizeof(stats) };

	mr_cache_stats(tx->caches[0][thread], &stats);
	return stats.n_pages + stats.n_open;
}

#define OURS_COMPLETER                                                         \
	((struct completer){ ours_tx_take, ours_tx_share, ours_tx_complete,    \
			     ours_tx_idle, ours_tx_held })

/* Past all caches, under the lock of the page allocator; of one pool only. */
static ALWAYS_INLINE bool pages_tx_take(struct txcompl *tx, uint32_t thread,
					uint32_t pool, word *words, uint32_t n)
{
	const uint32_t got =
		mr_page_alloc_bulk(tx->pools[pool], 0, (uint64_t *)words, n);

	(void)thread;
	if (got == n)
		return true;
	mr_page_free_bulk(tx->pools[pool], 0, (const uint64_t *)words, got);
	return false;
}

static ALWAYS_INLINE void pages_tx_complete(struct txcompl *tx, uint32_t thread,
					    const word *words, uint32_t n)
{
	(void)thread;
	mr_page_free_bulk(tx->pools[0], 0, (const uint64_t *)words, n);
}

static inline void no_tx_share(struct txcompl *tx, uint32_t thread,
			       const word *words, uint32_t n)
{
	(void)tx;
	(void)thread;
	(void)words;
	(void)n;
}

static inline void no_tx_idle(struct txcompl *tx, uint32_t thread)
{
	(void)tx;
	(void)thread;
}

static inline uint64_t no_tx_held(struct txcompl *tx, uint32_t thread)
{
	(void)tx;
	(void)thread;
	return 0;
}

#define PAGES_COMPLETER                                                        \
	((struct completer){ pages_tx_take, no_tx_share, pages_tx_complete,    \
			     no_tx_idle, no_tx_held })

#ifdef BENCH_DPDK
static ALWAYS_INLINE bool dpdk_tx_take(struct txcompl *tx, uint32_t thread,
				       uint32_t pool, word *words, uint32_t n)
{
	(void)thread;
	return rte_pktmbuf_alloc_bulk(tx->dpdk_pools[pool],
				      (dpdk_frame **)words, n) == 0;
}

static ALWAYS_INLINE void dpdk_tx_share(struct txcompl *tx, uint32_t thread,
					const word *words, uint32_t n)
{
	(void)tx;
	(void)thread;
	for (uint32_t i = 0; i < n; i++)
		rte_mbuf_refcnt_update((dpdk_frame *)(uintptr_t)words[i], 1);
}

static ALWAYS_INLINE void dpdk_tx_complete(struct txcompl *tx, uint32_t thread,
					   const word *words, uint32_t n)
{
	(void)tx;
	(void)thread;
	rte_pktmbuf_free_bulk((dpdk_frame **)(uintptr_t)words, n);
}

#define DPDK_COMPLETER                                                         \
	((struct completer){ dpdk_tx_take, dpdk_tx_share, dpdk_tx_complete,    \
			     no_tx_idle, no_tx_held })

/*
 * The objects as such, as ours takes and gives back addresses: no header is
 * filled in or looked at (a driver's "fast free"). Of one pool, of one owner.
 */
static ALWAYS_INLINE bool raw_tx_take(struct txcompl *tx, uint32_t thread,
				      uint32_t pool, word *words, uint32_t n)
{
	(void)thread;
	return rte_mempool_get_bulk(tx->dpdk_pools[pool], (void **)words, n) ==
	       0;
}

static ALWAYS_INLINE void raw_tx_complete(struct txcompl *tx, uint32_t thread,
					  const word *words, uint32_t n)
{
	(void)thread;
	rte_mempool_put_bulk(tx->dpdk_pools[0], (void *const *)words, n);
}

#define RAW_COMPLETER                                                          \
	((struct completer){ raw_tx_take, no_tx_share, raw_tx_complete,        \
			     no_tx_idle, no_tx_held })
#endif

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pools by one interface, for rows whose loops are the same for all of them.
 * The loops are always inlined with these functions as constant arguments, so
 * each player has a loop of its own, with rte_mempool's inline code in it.
 */
#ifndef TAKERS_H
#define TAKERS_H

#include <stdint.h>
#include <stdlib.h>

#include "bench.h"
#include "hop.h"
#include "ours.h"
#include "peer_dpdk.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { OBJECT_BYTES = 2048 };

/* n objects or none; for the thread with that number. */
typedef bool (*take_fn)(void *pool, uint32_t thread, word *words, uint32_t n);
typedef void (*give_fn)(void *pool, uint32_t thread, const word *words,
			uint32_t n);
typedef void *(*data_fn)(void *pool, word object);
/* Nothing to do for the thread, as where a receive burst comes back empty. */
typedef void (*idle_fn)(void *pool, uint32_t thread);

struct taker {
	take_fn take;
	give_fn give;
	data_fn data;
	idle_fn idle;
};

/* What can be asked of a pool. */
struct pool_wish {
	uint32_t n_objects;
	uint32_t n_threads;
	/* Ours: mr_pool_config.magazine_pages; of one player. */
	uint64_t kind;
	enum mr_safety safety;
	/* Ours: of what is taken; 0: OBJECT_BYTES. */
	uint32_t frag_bytes;
};

/* A pool of ours, and where its pages are. */
struct our_pool {
	struct ours ours;
	uint8_t *base;
	uint32_t frag_bytes;
};

static ALWAYS_INLINE bool ours_take(void *pool, uint32_t thread, word *words,
				    uint32_t n)
{
	struct our_pool *our = pool;
	struct mr_cache *cache = our->ours.caches[thread];
	const uint32_t got = mr_frag_alloc_bulk(cache, (uint64_t *)words, n,
						our->frag_bytes);

	if (got == n)
		return true;
	mr_frag_free_bulk(cache, (const uint64_t *)words, got);
	return false;
}

static ALWAYS_INLINE void ours_give(void *pool, uint32_t thread,
				    const word *words, uint32_t n)
{
	struct our_pool *our = pool;

	mr_frag_free_bulk(our->ours.caches[thread], (const uint64_t *)words, n);
}

static ALWAYS_INLINE void *ours_data(void *pool, word object)
{
	const struct our_pool *our = pool;

	return our->base + object;
}

static inline void ours_idle(void *pool, uint32_t thread)
{
	struct our_pool *our = pool;

	mr_cache_idle(our->ours.caches[thread]);
}

#define OURS_TAKER                                                             \
	((struct taker){ ours_take, ours_give, ours_data, ours_idle })

static ALWAYS_INLINE void *pointer_data(void *pool, word object)
{
	(void)pool;
	return (void *)(uintptr_t)object;
}

static inline void no_idle(void *pool, uint32_t thread)
{
	(void)pool;
	(void)thread;
}

static ALWAYS_INLINE bool malloc_take(void *pool, uint32_t thread, word *words,
				      uint32_t n)
{
	(void)pool;
	(void)thread;
	for (uint32_t i = 0; i < n; i++)
		words[i] = (uintptr_t)malloc(OBJECT_BYTES);
	return true;
}

static ALWAYS_INLINE void malloc_give(void *pool, uint32_t thread,
				      const word *words, uint32_t n)
{
	(void)pool;
	(void)thread;
	for (uint32_t i = 0; i < n; i++)
		free((void *)(uintptr_t)words[i]);
}

#define MALLOC_TAKER                                                           \
	((struct taker){ malloc_take, malloc_give, pointer_data, no_idle })

#ifdef BENCH_DPDK
_Static_assert(sizeof(void *) == sizeof(word), "libdpdk is of 64 bits here");

static ALWAYS_INLINE bool dpdk_take(void *pool, uint32_t thread, word *words,
				    uint32_t n)
{
	const struct dpdk_pool *dpdk = pool;

	(void)thread;
	return rte_mempool_get_bulk(dpdk->mp, (void **)words, n) == 0;
}

static ALWAYS_INLINE void dpdk_give(void *pool, uint32_t thread,
				    const word *words, uint32_t n)
{
	const struct dpdk_pool *dpdk = pool;

	(void)thread;
	rte_mempool_put_bulk(dpdk->mp, (void *const *)words, n);
}

#define DPDK_TAKER                                                             \
	((struct taker){ dpdk_take, dpdk_give, pointer_data, no_idle })
#endif

/* Make and free a pool of the player's side; kind: for SIDE_DPDK. */
void *taker_pool_make(enum side side, struct bench *bench,
		      const struct pool_wish *wish,
		      const struct dpdk_kind *kind, struct mr_reason *why);
void taker_pool_free(enum side side, void *pool);

/* What ours_count() or dpdk_pool_count() says. */
void taker_pool_count(void *pool, struct player *player, struct counts *counts);

/* Add player as ours: with magazines as by default, and with small ones. */
void takers_add_ours(struct bench *bench, struct row *row,
		     const struct player *player, uint32_t kind_param,
		     uint64_t (*run)(struct player *, uint32_t, uint64_t));

/* Add player once for each kind of rte_mempool. run: NULL without libdpdk. */
void takers_add_dpdk(struct bench *bench, struct row *row,
		     const struct player *player,
		     uint64_t (*run)(struct player *, uint32_t, uint64_t));

#endif

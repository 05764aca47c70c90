/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of allocators: what makes one, and what a loop does with it. Loops
 * are always inlined with a struct ops as a constant argument, so each player
 * has a loop of its own, with rte_mempool's inline code in it.
 */
#ifndef ALLOC_H
#define ALLOC_H

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "hop.h"
#include "kernel_frag.h"
#include "model_page_pool.h"
#include "model_qmempool.h"
#include "peer_dpdk.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { OBJECT_BYTES = 2048, MODEL_RING = 1024 };

/*
 * What the players of a row work on, made by bed_set_up() as player->wish says:
 * an allocator, rings between the threads, and what else the workload needs.
 */
struct bed {
	void *pool; /* the allocator's */
	uint32_t n_threads;
	uint32_t is_dead; /* someone waited in vain */
	struct hop *hops[MAX_THREADS];
	alignas(64) uint64_t n_full, n_empty; /* the producer's */
	alignas(64) uint64_t n_idle;          /* the consumers' */
	uint64_t sum;                         /* of what was read */
	alignas(64) uint8_t extra[]; /* the workload's, zero at first */
};

/* Give up, and let the others know. */
static inline bool bed_is_dead(struct bed *bed, struct patience *patience)
{
	if (__atomic_load_n(&bed->is_dead, __ATOMIC_RELAXED) != 0)
		return true;
	if (!patience_ends(patience))
		return false;
	__atomic_store_n(&bed->is_dead, 1, __ATOMIC_RELAXED);
	return true;
}

/* Statistics of the allocator, per 1000 operations; for workloads' count(). */
void bed_count(struct player *player, struct counts *counts);

/* Pools of ours with caches for each thread, all in one region. */
enum { MAX_POOLS = 4 };

struct our_pool {
	struct mr_region *region; /* NULL: the first pool's own */
	uint8_t *base;
	uint32_t n_pools, n_bytes; /* of what is taken */
	struct mr_pool *pools[MAX_POOLS];
	struct mr_cache *caches[MAX_POOLS][MAX_THREADS];
	struct mr_cache *others[MAX_THREADS]; /* further ones of pool 0 */
	struct mr_cache **to; /* what goes back: to caches[0] or others */
	struct mr_frag_cache *frags; /* of thread 0 */
};

int our_pool_make(struct our_pool *our, const struct player *player,
		  struct mr_reason *why);
void our_pool_free(struct our_pool *our);
void our_pool_count(const struct our_pool *our, const struct player *player,
		    struct counts *counts);

/* How much of the pool's region is on huge pages, as DPDK's pools may be. */
void count_huge(struct mr_pool *pool, struct counts *counts);

struct our_objects {
	struct mr_objpool *pool;
	struct mr_objcache *caches[MAX_THREADS];
};

/* A bare stack per thread: what nobody can be faster than; a floor. */
struct plain {
	uint32_t n;
	word words[];
};

/* A fixed round of objects whose lines spread: a floor without a pool. */
enum { ROUND_OBJECTS = 128, ROUND_STRIDE = OBJECT_BYTES + 64 };

struct round {
	uint8_t *bytes;
	word words[ROUND_OBJECTS]; /* where they are */
	uint32_t next;
};

struct heap {
	uint32_t n_bytes; /* of an object */
};

/* n objects or none; for the thread with that number. */
typedef bool take_fn(void *pool, uint32_t thread, word *words, uint32_t n);
typedef void give_fn(void *pool, uint32_t thread, const word *words,
		     uint32_t n);
typedef void *data_fn(void *pool, word object);
/* Nothing to do for the thread, as where a receive burst comes back empty. */
typedef void idle_fn(void *pool, uint32_t thread);

struct ops {
	take_fn *take;
	give_fn *give;
	data_fn *data;
	idle_fn *idle; /* or NULL */
	/*
	 * What to call take() and give() with in place of the pool, where a
	 * loop looks it up once and not in each round; or NULL.
	 */
	void *(*from)(void *pool, uint32_t thread);
	void *(*to)(void *pool, uint32_t thread);
};

/* Name a loop with its allocator: RUN(run_ours, loop, OURS) is a player's. */
#define RUN(name, loop, ...)                                                   \
	static uint64_t name(struct player *player, uint32_t thread,           \
			     uint64_t n)                                       \
	{                                                                      \
		return loop(player, thread, n, __VA_ARGS__);                   \
	}

/* DPDK's players are left out where it is not built in. */
#ifdef BENCH_DPDK
#define RUN_DPDK RUN
#else
#define RUN_DPDK(name, ...) RUN(name, run_nothing)

static inline uint64_t run_nothing(struct player *player, uint32_t thread,
				   uint64_t n)
{
	(void)player;
	(void)thread;
	return n - n;
}
#endif

static ALWAYS_INLINE void *pointer_data(void *pool, word object)
{
	(void)pool;
	return (void *)(uintptr_t)object;
}

static ALWAYS_INLINE bool ours_take(void *pool, uint32_t thread, word *words,
				    uint32_t n)
{
	struct our_pool *our = pool;
	struct mr_cache *cache = our->caches[0][thread];
	const uint32_t got =
		mr_frag_alloc_bulk(cache, (uint64_t *)words, n, our->n_bytes);

	if (got == n)
		return true;
	mr_frag_free_bulk(cache, (const uint64_t *)words, got);
	return false;
}

static ALWAYS_INLINE void ours_give(void *pool, uint32_t thread,
				    const word *words, uint32_t n)
{
	struct our_pool *our = pool;

	mr_frag_free_bulk(our->to[thread], (const uint64_t *)words, n);
}

static ALWAYS_INLINE void *ours_data(void *pool, word object)
{
	const struct our_pool *our = pool;

	return our->base + object;
}

static inline void ours_idle(void *pool, uint32_t thread)
{
	struct our_pool *our = pool;

	mr_cache_idle(our->caches[0][thread]);
}

/* In bulk; one by one, inlined; and straight from the page allocator. */
#define OURS ((struct ops){ ours_take, ours_give, ours_data, ours_idle })

static ALWAYS_INLINE bool single_take(void *pool, uint32_t thread, word *words,
				      uint32_t n)
{
	struct our_pool *our = pool;

	for (uint32_t i = 0; i < n; i++) {
		words[i] = mr_frag_alloc(our->caches[0][thread], OBJECT_BYTES);
		if (words[i] == MR_ADDR_NONE) {
			ours_give(pool, thread, words, i);
			return false;
		}
	}
	return true;
}

static ALWAYS_INLINE void single_give(void *pool, uint32_t thread,
				      const word *words, uint32_t n)
{
	struct our_pool *our = pool;

	for (uint32_t i = 0; i < n; i++)
		mr_frag_free(our->to[thread], words[i]);
}

#define OURS_SINGLE                                                            \
	((struct ops){ single_take, single_give, ours_data, ours_idle })

static ALWAYS_INLINE void pages_give(void *pool, uint32_t thread,
				     const word *words, uint32_t n)
{
	struct our_pool *our = pool;

	(void)thread;
	mr_page_free_bulk(our->pools[0], 0, (const uint64_t *)words, n);
}

static ALWAYS_INLINE bool pages_take(void *pool, uint32_t thread, word *words,
				     uint32_t n)
{
	struct our_pool *our = pool;
	const uint32_t got =
		mr_page_alloc_bulk(our->pools[0], 0, (uint64_t *)words, n);

	if (got == n)
		return true;
	pages_give(pool, thread, words, got);
	return false;
}

#define PAGES ((struct ops){ pages_take, pages_give, ours_data, NULL })

static ALWAYS_INLINE bool page_take(void *pool, uint32_t thread, word *words,
				    uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!pages_take(pool, thread, &words[i], 1)) {
			pages_give(pool, thread, words, i);
			return false;
		}
	return true;
}

static ALWAYS_INLINE void page_give(void *pool, uint32_t thread,
				    const word *words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pages_give(pool, thread, &words[i], 1);
}

#define PAGES_SINGLE ((struct ops){ page_take, page_give, ours_data, NULL })

/* As a program uses a list: it takes each page off it. */
static ALWAYS_INLINE bool list_take(void *pool, uint32_t thread, word *words,
				    uint32_t n)
{
	struct our_pool *our = pool;
	struct mr_page_list list = { 0 };
	const uint32_t got = mr_page_alloc_list(our->pools[0], 0, n, &list);

	for (uint32_t i = 0; i < got; i++)
		mr_page_list_pop(our->pools[0], &list, (uint64_t *)&words[i]);
	if (got == n)
		return true;
	pages_give(pool, thread, words, got);
	return false;
}

#define PAGES_LIST ((struct ops){ list_take, pages_give, ours_data, NULL })

static ALWAYS_INLINE bool objects_take(void *pool, uint32_t thread, word *words,
				       uint32_t n)
{
	struct our_objects *our = pool;
	struct mr_objcache *cache = our->caches[thread];
	const uint32_t got = mr_obj_alloc_bulk(cache, (void **)words, n);

	if (got == n)
		return true;
	mr_obj_free_bulk(cache, (void **)words, got);
	return false;
}

static ALWAYS_INLINE void objects_give(void *pool, uint32_t thread,
				       const word *words, uint32_t n)
{
	struct our_objects *our = pool;

	mr_obj_free_bulk(our->caches[thread], (void **)(uintptr_t)words, n);
}

#define OBJECTS ((struct ops){ objects_take, objects_give, pointer_data, NULL })

static ALWAYS_INLINE bool heap_take(void *pool, uint32_t thread, word *words,
				    uint32_t n)
{
	const struct heap *heap = pool;

	(void)thread;
	for (uint32_t i = 0; i < n; i++)
		words[i] = (uintptr_t)malloc(heap->n_bytes);
	return true;
}

static ALWAYS_INLINE void heap_give(void *pool, uint32_t thread,
				    const word *words, uint32_t n)
{
	(void)pool;
	(void)thread;
	for (uint32_t i = 0; i < n; i++)
		free((void *)(uintptr_t)words[i]);
}

#define HEAP ((struct ops){ heap_take, heap_give, pointer_data, NULL })

static ALWAYS_INLINE struct plain *plain_of(void *pool, uint32_t thread)
{
	return ((struct plain **)pool)[thread];
}

static ALWAYS_INLINE bool plain_take(void *pool, uint32_t thread, word *words,
				     uint32_t n)
{
	struct plain *plain = plain_of(pool, thread);

	if (n > plain->n)
		return false;
	plain->n -= n;
	memcpy(words, plain->words + plain->n, n * sizeof(*words));
	return true;
}

static ALWAYS_INLINE void plain_give(void *pool, uint32_t thread,
				     const word *words, uint32_t n)
{
	struct plain *plain = plain_of(pool, thread);

	memcpy(plain->words + plain->n, words, n * sizeof(*words));
	plain->n += n;
}

#define PLAIN ((struct ops){ plain_take, plain_give, pointer_data, NULL })

static ALWAYS_INLINE bool round_take(void *pool, uint32_t thread, word *words,
				     uint32_t n)
{
	struct round *round = pool;

	(void)thread;
	memcpy(words, round->words + round->next, n * sizeof(*words));
	round->next = (round->next + n) % ROUND_OBJECTS;
	return true;
}

static ALWAYS_INLINE void round_give(void *pool, uint32_t thread,
				     const word *words, uint32_t n)
{
	(void)pool;
	(void)thread;
	(void)words;
	(void)n;
}

#define ROUND ((struct ops){ round_take, round_give, pointer_data, NULL })

static ALWAYS_INLINE void *model_data(void *pool, word object)
{
	struct model_page_pool *model = pool;

	return model->bytes + (object - 1) * OBJECT_BYTES;
}

static ALWAYS_INLINE void buddy_give(void *pool, uint32_t thread,
				     const word *words, uint32_t n)
{
	(void)thread;
	model_buddy_free(pool, words, n);
}

static ALWAYS_INLINE bool buddy_take(void *pool, uint32_t thread, word *words,
				     uint32_t n)
{
	const uint32_t got = model_buddy_alloc(pool, words, n);

	if (got == n)
		return true;
	buddy_give(pool, thread, words, got);
	return false;
}

/* Under a lock for all of them, and for each. */
#define BUDDY ((struct ops){ buddy_take, buddy_give, model_data, NULL })

static ALWAYS_INLINE bool buddy_single_take(void *pool, uint32_t thread,
					    word *words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!buddy_take(pool, thread, &words[i], 1)) {
			buddy_give(pool, thread, words, i);
			return false;
		}
	return true;
}

#define BUDDY_SINGLE                                                           \
	((struct ops){ buddy_single_take, buddy_give, model_data, NULL })

/* One page at a time is taken, by thread 0. */
static ALWAYS_INLINE bool model_take(void *pool, uint32_t thread, word *words,
				     uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		words[i] = model_alloc(pool, true);
		if (words[i] == MODEL_NONE) {
			buddy_give(pool, thread, words, i);
			return false;
		}
	}
	return true;
}

/* XDP_DROP: directly, in the poll loop. */
static ALWAYS_INLINE void direct_give(void *pool, uint32_t thread,
				      const word *words, uint32_t n)
{
	(void)thread;
	for (uint32_t i = 0; i < n; i++)
		model_put_direct(pool, (uint32_t)words[i]);
}

#define MODEL_DIRECT ((struct ops){ model_take, direct_give, model_data, NULL })

static ALWAYS_INLINE void ring_give(void *pool, uint32_t thread,
				    const word *words, uint32_t n)
{
	(void)thread;
	if (n == 1)
		model_put_ring(pool, (uint32_t)words[0]);
	else
		model_put_ring_bulk(pool, words, n);
}

#define MODEL_RINGED ((struct ops){ model_take, ring_give, model_data, NULL })

/* The thread that takes is in the poll loop; the others are not. */
static ALWAYS_INLINE void either_give(void *pool, uint32_t thread,
				      const word *words, uint32_t n)
{
	if (thread == 0)
		direct_give(pool, thread, words, n);
	else
		ring_give(pool, thread, words, n);
}

#define MODEL ((struct ops){ model_take, either_give, model_data, NULL })

static ALWAYS_INLINE bool qm_take(void *pool, uint32_t thread, word *words,
				  uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		words[i] = (uintptr_t)qm_alloc(pool, thread);
	return true;
}

static ALWAYS_INLINE void qm_give(void *pool, uint32_t thread,
				  const word *words, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		qm_free(pool, thread, (void *)(uintptr_t)words[i]);
}

#define QMEMPOOL ((struct ops){ qm_take, qm_give, pointer_data, NULL })

#ifdef BENCH_DPDK
_Static_assert(sizeof(void *) == sizeof(word), "libdpdk is of 64 bits here");

static ALWAYS_INLINE bool dpdk_take(void *pool, uint32_t thread, word *words,
				    uint32_t n)
{
	const struct dpdk_pool *dpdk = pool;

	(void)thread;
	return rte_mempool_get_bulk(dpdk->mps[0], (void **)words, n) == 0;
}

static ALWAYS_INLINE void dpdk_give(void *pool, uint32_t thread,
				    const word *words, uint32_t n)
{
	const struct dpdk_pool *dpdk = pool;

	(void)thread;
	rte_mempool_put_bulk(dpdk->mps[0], (void *const *)words, n);
}

#define DPDK ((struct ops){ dpdk_take, dpdk_give, pointer_data, NULL })

/* Through caches of the caller's, or one that was looked up before. */
static ALWAYS_INLINE bool cached_take(void *pool, uint32_t thread, word *words,
				      uint32_t n)
{
	const struct dpdk_pool *dpdk = pool;

	return rte_mempool_generic_get(dpdk->mps[0], (void **)words, n,
				       dpdk->from[thread]) == 0;
}

static ALWAYS_INLINE void cached_give(void *pool, uint32_t thread,
				      const word *words, uint32_t n)
{
	const struct dpdk_pool *dpdk = pool;

	rte_mempool_generic_put(dpdk->mps[0], (void *const *)words, n,
				dpdk->to[thread]);
}

#define DPDK_CACHED                                                            \
	((struct ops){ cached_take, cached_give, pointer_data, NULL })

static ALWAYS_INLINE bool rte_ring_take(void *pool, uint32_t thread,
					word *words, uint32_t n)
{
	(void)thread;
	return rte_ring_dequeue_bulk(((struct dpdk_ring *)pool)->ring,
				     (void **)words, n, NULL) > 0;
}

static ALWAYS_INLINE void rte_ring_give(void *pool, uint32_t thread,
					const word *words, uint32_t n)
{
	(void)thread;
	rte_ring_enqueue_bulk(((struct dpdk_ring *)pool)->ring,
			      (void *const *)words, n, NULL);
}

#define RTE_RING                                                               \
	((struct ops){ rte_ring_take, rte_ring_give, pointer_data, NULL })
#endif

/* Pools of ours and of DPDK, the usual contestants; the loops differ. */
#define POOLS(ours, dpdk)                                                      \
	{ "ours", A_OURS, ours },                                              \
		{ "ours, magazines of 64", A_OURS, ours,                       \
		  .magazine_pages = 64 },                                      \
	{                                                                      \
		"", A_MEMPOOL, dpdk, C_ALL                                     \
	}

/* The thread has nothing to do. */
static ALWAYS_INLINE void idle(struct bed *bed, uint32_t thread,
			       const struct ops ops)
{
	if (ops.idle != NULL)
		ops.idle(bed->pool, thread);
}

#endif

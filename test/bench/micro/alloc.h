/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of allocators: how to make one, and which calls a loop uses. Loops
 * are always inlined with a struct ops as a constant argument, so each variant
 * has its own loop, which contains rte_mempool's inline code.
 */
#ifndef ALLOC_H
#define ALLOC_H

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/experimental/frag.h>
#include <millrace/experimental/objpool.h>
#include <millrace/experimental/page.h>

#include "bench.h"
#include "hop.h"
#include "kernel_frag.h"
#include "model_page_pool.h"
#include "model_qmempool.h"
#include "peer_dpdk.h"

#define ALWAYS_INLINE inline __attribute__((always_inline))

enum { OBJECT_BYTES = 2048, MODEL_RING = 1024 };

/*
 * What a variant works on, made as variant->wish says: an allocator, rings
 * between the threads, and the workload's own data.
 */
struct harness {
	void *pool; /* made by allocs[] */
	uint32_t n_threads;
	uint32_t is_dead; /* a thread waited too long */
	struct hop *hops[MAX_THREADS];
	alignas(64) uint64_t n_full, n_empty; /* of the producer */
	alignas(64) uint64_t n_idle;          /* of the consumers */
	alignas(64) uint8_t extra[];          /* of the workload; zeroed */
};

/* The memory that wish.n_extra asked for. */
static inline void *extra_of(const struct variant *variant)
{
	return ((struct harness *)variant->state)->extra;
}

/* Give up after waiting too long, and tell the other threads. */
static inline bool harness_is_dead(struct harness *harness,
				   struct patience *patience)
{
	if (__atomic_load_n(&harness->is_dead, __ATOMIC_RELAXED) != 0)
		return true;
	if (!patience_ends(patience))
		return false;
	__atomic_store_n(&harness->is_dead, 1, __ATOMIC_RELAXED);
	return true;
}

/* Add the allocator's statistics, per 1000 operations; for a count(). */
void harness_count(struct variant *variant, struct counts *counts);

/* Our pools, with a cache per thread, all in one region. */
enum { MAX_POOLS = 4 };

struct our_pool {
	struct mr_region *region; /* NULL: that of the first pool */
	uint8_t *base;
	uint32_t n_pools, n_bytes, align; /* of an allocation */
	struct mr_pool *pools[MAX_POOLS];
	struct mr_cache *caches[MAX_POOLS][MAX_THREADS];
	struct mr_cache *others[MAX_THREADS]; /* second caches, pool 0 */
	struct mr_cache **to;                 /* free by caches[0] or others */
	struct mr_frag_cache *frags;          /* of thread 0 */
};

/* Count how much of the region is on huge pages, as DPDK's pools may be. */
void count_huge(struct mr_pool *pool, struct counts *counts);

struct our_objects {
	struct mr_objpool *pool;
	struct mr_objcache *caches[MAX_THREADS];
};

/* A bare stack per thread: a floor that no allocator can beat. */
struct plain {
	uint32_t n;
	word words[];
};

/* A fixed cycle of objects at spread cache lines: a floor without a pool. */
enum { ROUND_OBJECTS = 128, ROUND_STRIDE = OBJECT_BYTES + 64 };

struct round {
	uint8_t *bytes;
	word words[ROUND_OBJECTS]; /* addresses of the objects */
	uint32_t next;
};

struct heap {
	uint32_t n_bytes;           /* of an object */
	uint32_t frag_bytes, align; /* of a frag */
};

/* All n objects or none, for this thread. */
typedef bool take_fn(void *pool, uint32_t thread, word *words, uint32_t n);
typedef void give_fn(void *pool, uint32_t thread, const word *words,
		     uint32_t n);
typedef void *data_fn(void *pool, word object);
/* The thread has nothing to do, as after an empty receive burst. */
typedef void idle_fn(void *pool, uint32_t thread);

struct ops {
	take_fn *take;
	give_fn *give;
	data_fn *data;
	idle_fn *idle; /* or NULL */
	/*
	 * Return what to pass to take() and give() instead of the pool, if a
	 * loop looks it up once and not in each round; or NULL.
	 */
	void *(*from)(void *pool, uint32_t thread);
	void *(*to)(void *pool, uint32_t thread);
};

/* Define a variant's run(): RUN(run_ours, loop, OURS). */
#define RUN(name, loop, ...)                                                   \
	static uint64_t name(struct variant *variant, uint32_t thread,         \
			     uint64_t n)                                       \
	{                                                                      \
		return loop(variant, thread, n, __VA_ARGS__);                  \
	}

#define UNUSED __attribute__((unused))

/* A build without DPDK leaves its variants out. */
#ifdef BENCH_DPDK
#define RUN_DPDK RUN
#else
#define RUN_DPDK(name, ...)                                                    \
	static uint64_t name(UNUSED struct variant *variant,                   \
			     UNUSED uint32_t thread, UNUSED uint64_t n)        \
	{                                                                      \
		return 0;                                                      \
	}
#endif

/*
 * Define a take_fn or give_fn by the call that it makes, which may use the
 * parameters; most allocators call the words addrs or objects.
 */
#define TAKE(name, call)                                                       \
	static ALWAYS_INLINE bool name(UNUSED void *pool,                      \
				       UNUSED uint32_t thread, word *words,    \
				       UNUSED uint32_t n)                      \
	{                                                                      \
		UNUSED uint64_t *addrs = (uint64_t *)words;                    \
		UNUSED void **objects = (void **)words;                        \
		return call;                                                   \
	}

/* For a call that may return fewer than n. */
#define TAKE_ALL(name, give, call)                                             \
	TAKE(name, all_or_none(call, pool, thread, words, n, give))

/* For a call that returns one object, or `none` if there are no more. */
#define TAKE_EACH(name, give, none, call)                                      \
	static ALWAYS_INLINE bool name(void *pool, uint32_t thread,            \
				       word *words, uint32_t n)                \
	{                                                                      \
		for (word *w = words; w != words + n; w++) {                   \
			*w = (word)(call);                                     \
			if (*w == (none)) {                                    \
				give(pool, thread, words,                      \
				     (uint32_t)(w - words));                   \
				return false;                                  \
			}                                                      \
		}                                                              \
		return true;                                                   \
	}

#define GIVE(name, call)                                                       \
	static ALWAYS_INLINE void name(UNUSED void *pool,                      \
				       UNUSED uint32_t thread,                 \
				       const word *words, UNUSED uint32_t n)   \
	{                                                                      \
		UNUSED const uint64_t *addrs = (const uint64_t *)words;        \
		UNUSED void **objects = (void **)(uintptr_t)words;             \
		call;                                                          \
	}

#define GIVE_EACH(name, call)                                                  \
	static ALWAYS_INLINE void name(UNUSED void *pool,                      \
				       UNUSED uint32_t thread,                 \
				       const word *words, uint32_t n)          \
	{                                                                      \
		for (const word *w = words; w != words + n; w++) {             \
			UNUSED void *object = (void *)(uintptr_t)*w;           \
			call;                                                  \
		}                                                              \
	}

static ALWAYS_INLINE bool all_or_none(uint32_t got, void *pool, uint32_t thread,
				      const word *words, uint32_t n,
				      give_fn *give)
{
	if (got == n)
		return true;
	give(pool, thread, words, got);
	return false;
}

static inline struct our_pool *our_pool(void *pool)
{
	return pool;
}

static ALWAYS_INLINE void *pointer_data(void *pool, word object)
{
	(void)pool;
	return (void *)(uintptr_t)object;
}

static ALWAYS_INLINE void *ours_data(void *pool, word object)
{
	return our_pool(pool)->base + object;
}

static inline void ours_idle(void *pool, uint32_t thread)
{
	mr_cache_idle(our_pool(pool)->caches[0][thread]);
}

/* In bulk, and one by one, inlined. */
GIVE(ours_give, mr_frag_free_bulk(our_pool(pool)->to[thread], addrs, n))
TAKE_ALL(ours_take, ours_give,
	 mr_frag_alloc_bulk(our_pool(pool)->caches[0][thread], addrs, n,
			    our_pool(pool)->n_bytes))
GIVE_EACH(single_give, mr_frag_free(our_pool(pool)->to[thread], *w))
TAKE_EACH(single_take, ours_give, MR_ADDR_NONE,
	  mr_frag_alloc(our_pool(pool)->caches[0][thread], OBJECT_BYTES))

#define OURS ((struct ops){ ours_take, ours_give, ours_data, ours_idle })
#define OURS_SINGLE                                                            \
	((struct ops){ single_take, single_give, ours_data, ours_idle })

/* The same for loops that look the caches up once, not in each call. */
static ALWAYS_INLINE void *cache_from(void *pool, uint32_t thread)
{
	return our_pool(pool)->caches[0][thread];
}

static ALWAYS_INLINE void *cache_to(void *pool, uint32_t thread)
{
	return our_pool(pool)->to[thread];
}

GIVE(cache_give, mr_frag_free_bulk(pool, addrs, n))
TAKE_ALL(cache_take, cache_give,
	 mr_frag_alloc_bulk(pool, addrs, n, OBJECT_BYTES))
GIVE_EACH(cache_single_give, mr_frag_free(pool, *w))
TAKE_EACH(cache_single_take, cache_give, MR_ADDR_NONE,
	  mr_frag_alloc(pool, OBJECT_BYTES))

#define CACHE                                                                  \
	((struct ops){ cache_take, cache_give, NULL, NULL, cache_from,         \
		       cache_to })
#define CACHE_SINGLE                                                           \
	((struct ops){ cache_single_take, cache_single_give, NULL, NULL,       \
		       cache_from, cache_to })

/* Frags from the frag cache of thread 0. */
static ALWAYS_INLINE uint32_t frags_cut(struct our_pool *our, uint64_t *addrs,
					uint32_t n)
{
	if (n > 1)
		return mr_frag_cache_alloc_bulk(our->frags, addrs, n,
						our->n_bytes, our->align);
	return mr_frag_cache_alloc(our->frags, our->n_bytes, our->align,
				   addrs) == 0;
}

TAKE_ALL(frags_take, ours_give, frags_cut(pool, addrs, n))

#define FRAGS ((struct ops){ frags_take, ours_give, NULL, NULL })

/* Directly from the page allocator: in bulk, one by one, and as a list. */
GIVE(pages_give, mr_page_free_bulk(our_pool(pool)->pools[0], 0, addrs, n))
TAKE_ALL(pages_take, pages_give,
	 mr_page_alloc_bulk(our_pool(pool)->pools[0], 0, addrs, n))
GIVE_EACH(page_give, pages_give(pool, thread, w, 1))
TAKE_EACH(page_take, pages_give, MR_ADDR_NONE,
	  pages_take(pool, thread, w, 1) ? *w : MR_ADDR_NONE)

/* A program pops each page off a list. */
static ALWAYS_INLINE uint32_t list_fill(void *pool, uint64_t *addrs, uint32_t n)
{
	struct mr_pool *pages = our_pool(pool)->pools[0];
	struct mr_page_list list = { 0 };
	const uint32_t got = mr_page_alloc_list(pages, 0, n, &list);

	for (uint32_t i = 0; i < got; i++)
		mr_page_list_pop(pages, &list, &addrs[i]);
	return got;
}

TAKE_ALL(list_take, pages_give, list_fill(pool, addrs, n))

#define PAGES ((struct ops){ pages_take, pages_give, ours_data, NULL })
#define PAGES_SINGLE ((struct ops){ page_take, page_give, ours_data, NULL })
#define PAGES_LIST ((struct ops){ list_take, pages_give, ours_data, NULL })

/* Like CACHE: the loop looks the cache up once. */
static ALWAYS_INLINE void *objcache_of(void *pool, uint32_t thread)
{
	return ((struct our_objects *)pool)->caches[thread];
}

GIVE(objects_give, mr_obj_free_bulk(pool, objects, n))
TAKE_ALL(objects_take, objects_give, mr_obj_alloc_bulk(pool, objects, n))

#define OBJECTS                                                                \
	((struct ops){ objects_take, objects_give, NULL, NULL, objcache_of,    \
		       objcache_of })

GIVE_EACH(heap_give, free(object))
TAKE_EACH(heap_take, heap_give, 0,
	  (uintptr_t)malloc(((struct heap *)pool)->n_bytes))

#define HEAP ((struct ops){ heap_take, heap_give, pointer_data, NULL })

static inline void *heap_cut(const struct heap *heap)
{
	const uint32_t rounded =
		(heap->frag_bytes + heap->align - 1) & -heap->align;

	return heap->align > 16 ? aligned_alloc(heap->align, rounded) :
				  malloc(heap->frag_bytes);
}

TAKE_EACH(heap_frags_take, heap_give, 0, (uintptr_t)heap_cut(pool))

#define HEAP_FRAGS ((struct ops){ heap_frags_take, heap_give, NULL, NULL })

GIVE_EACH(kernel_give, kernel_frag_free(pool, thread, object))
TAKE_EACH(kernel_take, kernel_give, 0, (uintptr_t)kernel_frag_alloc(pool))

#define KERNEL_FRAGS ((struct ops){ kernel_take, kernel_give, NULL, NULL })

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

static ALWAYS_INLINE bool round_next(struct round *round, word *words,
				     uint32_t n)
{
	memcpy(words, round->words + round->next, n * sizeof(*words));
	round->next = (round->next + n) % ROUND_OBJECTS;
	return true;
}

TAKE(round_take, round_next(pool, words, n))
GIVE(round_give, (void)words)

#define ROUND ((struct ops){ round_take, round_give, pointer_data, NULL })

static ALWAYS_INLINE void *model_data(void *pool, word object)
{
	const struct model_page_pool *model = pool;

	return model->bytes + (object - 1) * OBJECT_BYTES;
}

/* One lock for all n pages, or one for each. */
GIVE(buddy_give, model_buddy_free(pool, words, n))
TAKE_ALL(buddy_take, buddy_give, model_buddy_alloc(pool, words, n))
TAKE_EACH(buddy_single_take, buddy_give, MODEL_NONE,
	  buddy_take(pool, thread, w, 1) ? *w : MODEL_NONE)

/* Only thread 0 takes, one page at a time. */
TAKE_EACH(model_take, buddy_give, MODEL_NONE, model_alloc(pool))
/* Like XDP_DROP: directly, in the poll loop. */
GIVE_EACH(direct_give, model_put_direct(pool, (uint32_t)*w))
GIVE(ring_give, n == 1 ? model_put_ring(pool, (uint32_t)words[0]) :
			 model_put_ring_bulk(pool, words, n))
/* Only thread 0 is in the poll loop. */
GIVE(either_give, thread == 0 ? direct_give(pool, thread, words, n) :
				ring_give(pool, thread, words, n))

#define BUDDY ((struct ops){ buddy_take, buddy_give, model_data, NULL })
#define BUDDY_SINGLE ((struct ops){ buddy_single_take, buddy_give, NULL, NULL })
#define MODEL_DIRECT ((struct ops){ model_take, direct_give, NULL, NULL })
#define MODEL_RINGED ((struct ops){ model_take, ring_give, model_data, NULL })
#define MODEL ((struct ops){ model_take, either_give, NULL, NULL })

GIVE_EACH(qm_give, qm_free(pool, thread, object))
TAKE_EACH(qm_take, qm_give, 0, (uintptr_t)qm_alloc(pool, thread))

#define QMEMPOOL ((struct ops){ qm_take, qm_give, NULL, NULL })

#ifdef BENCH_DPDK
_Static_assert(sizeof(void *) == sizeof(word), "libdpdk is of 64 bits here");

static ALWAYS_INLINE struct rte_mempool *mempool_of(void *pool)
{
	return ((struct dpdk_pool *)pool)->mps[0];
}

static ALWAYS_INLINE void *mempool_once(void *pool, uint32_t thread)
{
	(void)thread;
	return mempool_of(pool);
}

TAKE(dpdk_take, rte_mempool_get_bulk(mempool_of(pool), objects, n) == 0)
GIVE(dpdk_give, rte_mempool_put_bulk(mempool_of(pool), objects, n))
/* The same for loops that look the rte_mempool up once. */
TAKE(mempool_take, rte_mempool_get_bulk(pool, objects, n) == 0)
GIVE(mempool_give, rte_mempool_put_bulk(pool, objects, n))
/* By the caller's caches, or by one that was looked up before. */
TAKE(cached_take,
     rte_mempool_generic_get(mempool_of(pool), objects, n,
			     ((struct dpdk_pool *)pool)->from[thread]) == 0)
GIVE(cached_give,
     rte_mempool_generic_put(mempool_of(pool), objects, n,
			     ((struct dpdk_pool *)pool)->to[thread]))

#define DPDK ((struct ops){ dpdk_take, dpdk_give, pointer_data, NULL })
#define MEMPOOL                                                                \
	((struct ops){ mempool_take, mempool_give, NULL, NULL, mempool_once,   \
		       mempool_once })
#define DPDK_CACHED                                                            \
	((struct ops){ cached_take, cached_give, pointer_data, NULL })
#endif

/* The usual contestants, our pools and DPDK's, with different loops. */
#define POOLS(ours, dpdk)                                                      \
	{ "ours", A_OURS, ours },                                              \
		{ "ours, magazines of 64", A_OURS, ours,                       \
		  .magazine_pages = 64 },                                      \
	{                                                                      \
		"", A_MEMPOOL, dpdk, C_ALL                                     \
	}

/* Tell the allocator that the thread has nothing to do. */
static ALWAYS_INLINE void idle(struct harness *harness, uint32_t thread,
			       const struct ops ops)
{
	if (ops.idle != NULL)
		ops.idle(harness->pool, thread);
}

#endif

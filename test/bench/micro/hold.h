/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of B12 and B13: n objects are taken, then given back. */
#ifndef HOLD_H
#define HOLD_H

#include "alloc.h"

enum { P_HOLD, P_GET, P_PUT, P_RANDOM }; /* of player.param; most, or 0 */

/* Ours and DPDK's by what is looked up once: caches, and rte_mempool itself. */
static ALWAYS_INLINE void *cache_from(void *pool, uint32_t thread)
{
	return ((struct our_pool *)pool)->caches[0][thread];
}

static ALWAYS_INLINE void *cache_to(void *pool, uint32_t thread)
{
	return ((struct our_pool *)pool)->to[thread];
}

static ALWAYS_INLINE bool cache_take(void *cache, uint32_t thread, word *words,
				     uint32_t n)
{
	const uint32_t got =
		mr_frag_alloc_bulk(cache, (uint64_t *)words, n, OBJECT_BYTES);

	(void)thread;
	if (got == n)
		return true;
	mr_frag_free_bulk(cache, (const uint64_t *)words, got);
	return false;
}

static ALWAYS_INLINE void cache_give(void *cache, uint32_t thread,
				     const word *words, uint32_t n)
{
	(void)thread;
	mr_frag_free_bulk(cache, (const uint64_t *)words, n);
}

#define CACHE                                                                  \
	((struct ops){ cache_take, cache_give, NULL, NULL, cache_from,         \
		       cache_to })

#ifdef BENCH_DPDK
static ALWAYS_INLINE void *mempool_of(void *pool, uint32_t thread)
{
	(void)thread;
	return ((struct dpdk_pool *)pool)->mps[0];
}

static ALWAYS_INLINE bool mempool_take(void *mp, uint32_t thread, word *words,
				       uint32_t n)
{
	(void)thread;
	return rte_mempool_get_bulk(mp, (void **)words, n) == 0;
}

static ALWAYS_INLINE void mempool_give(void *mp, uint32_t thread,
				       const word *words, uint32_t n)
{
	(void)thread;
	rte_mempool_put_bulk(mp, (void *const *)words, n);
}

#define MEMPOOL                                                                \
	((struct ops){ mempool_take, mempool_give, NULL, NULL, mempool_of,     \
		       mempool_of })
#endif

/* Bytes of what a thread holds, 16 each; no two threads write to one line. */
static inline size_t held_bytes(uint64_t n_held)
{
	return (n_held * 2 * sizeof(word) + 127) / 128 * 128;
}

static inline word *held_by(const struct player *player, uint32_t thread)
{
	struct bed *bed = player->state;

	return (word *)(void *)(bed->extra +
				held_bytes(player->param[P_HOLD]) * thread);
}

/* Sizes of calls: fixed, or as 26.11 draws them, never beyond what is left. */
struct sizes {
	uint32_t fixed, mask, r;
};

enum how_many { AS_ASKED, UP_TO_LEFT };

static ALWAYS_INLINE uint32_t next_size(struct sizes *sizes, uint32_t n_left,
					enum how_many how_many)
{
	uint32_t n = sizes->fixed, r;

	if (how_many == AS_ASKED)
		return n;
	if (sizes->mask != 0) {
		r = sizes->r++;
		n = ((r ^ (r >> 2) ^ (r << 3)) & sizes->mask) + 1;
	}
	return n < n_left ? n : n_left;
}

static inline struct sizes sizes_of(const struct player *player, uint32_t p)
{
	const uint64_t most = player->param[P_RANDOM];

	return (struct sizes){ .fixed = (uint32_t)player->param[p],
			       .mask = most > 0 ? (uint32_t)most - 1 : 0 };
}

/* Take what is held, get at a time, and give it back, put at a time. */
static ALWAYS_INLINE uint64_t hold(struct player *player, uint32_t thread,
				   uint64_t n, const struct ops ops,
				   const enum how_many how_many,
				   const uint32_t constant)
{
	void *pool = ((struct bed *)player->state)->pool;
	void *from = ops.from != NULL ? ops.from(pool, thread) : pool;
	void *to = ops.to != NULL ? ops.to(pool, thread) : pool;
	const uint32_t n_held = (uint32_t)player->param[P_HOLD];
	struct sizes get = sizes_of(player, P_GET);
	struct sizes put = sizes_of(player, P_PUT);
	word *words = held_by(player, thread);
	uint64_t done;

	for (done = 0; done < n; done += n_held) {
		for (uint32_t i = 0, k; i < n_held; i += k) {
			k = constant ? constant :
				       next_size(&get, n_held - i, how_many);
			if (!ops.take(from, thread, words + i, k)) {
				ops.give(to, thread, words, i);
				return 0;
			}
		}
		keep(words);
		for (uint32_t i = 0, k; i < n_held; i += k) {
			k = constant ? constant :
				       next_size(&put, n_held - i, how_many);
			ops.give(to, thread, words + i, k);
		}
	}
	return done;
}

#endif

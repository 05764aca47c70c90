/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libdpdk in this process, if it was found at build time (BENCH_DPDK).
 *
 * rte_mempool's fast path is inline, so its loops are in the workloads' files,
 * compiled with the same flags as ours.
 */
#ifndef PEER_DPDK_H
#define PEER_DPDK_H

#include <stdint.h>

#include "bench.h"

/*
 * Start EAL on one core, silent, until the program ends. Returns 0, or negative
 * with a reason.
 */
int dpdk_start(uint32_t core, struct mr_reason *why);

/* "DPDK 22.11.1, huge pages", or "no libdpdk in this build". */
const char *dpdk_version(void);

/* Whether EAL was started without huge pages. */
bool dpdk_has_small_pages(void);

/* A thread of a group calls these first and last; else it gets no cache. */
void dpdk_thread_begin(void);
void dpdk_thread_end(void);

/* A handler of rte_mempool, and the size of the cache in front of it. */
struct dpdk_kind {
	const char *name;     /* "rte_mempool ring c512" */
	const char *ops;      /* "ring_mp_mc" */
	uint32_t cache, size; /* objects; C512, C256 or C0 */
};

enum { DPDK_KINDS = 12 };
extern const struct dpdk_kind dpdk_kinds[DPDK_KINDS];

/* Functions for the table of allocators. */
int dpdk_pool_make(struct variant *variant, void **ret, struct mr_reason *why);
void dpdk_pool_free(void *pool);

#ifdef BENCH_DPDK
#include <rte_errno.h>
#include <rte_mbuf.h> /* from DPDK */
#include <rte_mempool.h>

typedef struct rte_mbuf dpdk_frame; /* from DPDK */

struct dpdk_pool {
	uint32_t n_pools;
	struct rte_mempool *mps[4];
	/* The caller's caches, if asked for; see dpdk_caches(). */
	struct rte_mempool_cache *a, *b;
	struct rte_mempool_cache *from[MAX_THREADS], *to[MAX_THREADS];
};

/* Each thread calls this first: it looks up caches that the caller lacks. */
static inline void dpdk_caches(struct dpdk_pool *pool, uint32_t thread)
{
	if (pool->a == NULL)
		pool->from[thread] = pool->to[thread] =
			rte_mempool_default_cache(pool->mps[0], rte_lcore_id());
}
#endif

#endif

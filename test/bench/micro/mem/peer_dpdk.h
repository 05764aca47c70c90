/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libdpdk in this process, where it was there at build time (BENCH_DPDK).
 *
 * rte_mempool's fast path is inline, so its loops stand in the files of the
 * workloads, compiled with the same flags as ours.
 */
#ifndef PEER_DPDK_H
#define PEER_DPDK_H

#include <stdint.h>

#include "bench.h"

/* EAL on one core, silent. 0, or negative and why. Ends with the program. */
int dpdk_start(uint32_t core, struct mr_reason *why);

/* "DPDK 22.11.1, huge pages", or "no libdpdk in this build". */
const char *dpdk_version(void);

/* Whether it was started, and got no huge pages. */
bool dpdk_has_small_pages(void);

/* What a thread of a team does first and last: without it, no cache. */
void dpdk_thread_begin(void);
void dpdk_thread_end(void);

/* One of rte_mempool's handlers, and the size of the cache in front of it. */
struct dpdk_kind {
	const char *name; /* "rte_mempool ring c512" */
	const char *ops;  /* "ring_mp_mc" */
	uint32_t cache;
};

enum { DPDK_KINDS = 12 };
extern const struct dpdk_kind dpdk_kinds[DPDK_KINDS];

/* Which kinds: by the size of their cache. */
enum { C512 = 1, C256 = 2, C0 = 4, C_ALL = 7 };

/*
 * Add a player like this one for each kind. Its name, side, setup, count and
 * teardown are filled in: state is a struct dpdk_pool of param[P_PAGES] objects
 * (0: 16 Ki) of param[P_BYTES] bytes (0: 2048), with param[P_MORE] caches that
 * are the caller's.
 */
void dpdk_add_all(struct bench *bench, struct row *row, uint32_t kinds,
		  const struct player *like);

/*
 * "rte_mempool ring c512" with words behind it. Valid until the next call for
 * this kind: for players of one row.
 */
const char *dpdk_name(const struct dpdk_kind *kind, const char *words);

/*
 * 1, which the compiler must not know. With the constant that rte_mempool_get()
 * passes, taking one object and giving it back takes twice as long in
 * B02, and half as long again in B12. The array has room for ONE_OF, of which
 * one is used.
 */
enum { ONE_OF = 128 };

static inline uint32_t variable_one(void)
{
	uint32_t one = 1;

	__asm__("" : "+r"(one));
	return one;
}

#ifdef BENCH_DPDK
#include <rte_mbuf.h> /* of DPDK */
#include <rte_mempool.h>

typedef struct rte_mbuf dpdk_frame; /* of DPDK */

struct dpdk_pool {
	struct rte_mempool *mp;
	struct rte_mempool_cache *a, *b; /* user-owned, if asked for */
	uint32_t n_objects;
};

/*
 * A pool of n objects. n_owned: how many caches of kind->cache it shall have
 * that belong to the caller: then none is by lcore.
 */
int dpdk_pool_make(struct dpdk_pool *pool, const struct dpdk_kind *kind,
		   uint32_t n_objects, uint32_t object_bytes, uint32_t n_owned,
		   struct mr_reason *why);

void dpdk_pool_free(struct dpdk_pool *pool);

/*
 * Run the player's work once more, untimed, with the pool's handler counted:
 * calls to it and objects, per 1000 operations; and what the caches hold.
 */
void dpdk_pool_count(struct dpdk_pool *pool, struct player *player,
		     struct counts *counts);

/* What dpdk_add_all() fills in. opaque: the struct dpdk_kind. */
int dpdk_set_up(struct player *player, struct mr_reason *why);
/* The same with a pool of DPDK's frames, of its usual 2176 bytes. */
int dpdk_frames_set_up(struct player *player, struct mr_reason *why);
void dpdk_player_count(struct player *player, struct counts *counts);
void dpdk_tear_down(struct player *player);
#endif

#endif

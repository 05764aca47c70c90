/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool of ours with a cache per thread, as most rows need it. */
#ifndef OURS_H
#define OURS_H

#include "bench.h"

struct ours {
	struct mr_region *region; /* NULL: the pool's own, or the caller's */
	struct mr_pool *pool;
	struct mr_cache *caches[MAX_THREADS];
	uint32_t n_caches;
};

/*
 * A pool with n_caches caches. config: or NULL for 16 Ki pages of 2 KiB. Sizes
 * of the structs need not be set. Where DPDK got no huge pages the pool gets
 * none: both sides are to miss the TLB alike.
 */
int ours_make(struct ours *ours, struct bench *bench,
	      const struct mr_pool_config *config, uint32_t n_caches,
	      struct mr_reason *why);

void ours_free(struct ours *ours);

/* A region of 4 KiB pages if that is what DPDK has; else NULL. */
int ours_small_region(struct bench *bench, struct mr_region **ret_region,
		      struct mr_reason *why);

/* The statistics of the pool, per 1000 operations of the player, and parked. */
void ours_count(const struct ours *ours, const struct player *player,
		struct counts *counts);

/* How much of the pool's region is on huge pages, as DPDK's pools may be. */
void count_huge(struct mr_pool *pool, struct counts *counts);

/*
 * The usual setup, count and teardown of a player whose state is a struct ours:
 * param[P_PAGES] pages of 2 KiB (0: 16 Ki), a cache per thread of the row, and
 * param[P_MORE] more; magazines of param[P_MAGAZINE] pages (0: the default).
 */
enum { P_PAGES = 4, P_MORE = 5, P_BYTES = 6, P_MAGAZINE = 7 };

uint32_t player_n_pages(const struct player *player);

int ours_set_up(struct player *player, struct mr_reason *why);
void ours_player_count(struct player *player, struct counts *counts);
void ours_tear_down(struct player *player);

#endif

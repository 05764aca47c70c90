/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>

#include "ours.h"
#include "peer_dpdk.h"
#include "support/text.h"

int ours_small_region(struct bench *bench, struct mr_region **ret_region,
		      struct mr_reason *why)
{
	const struct mr_region_config config = {
		.size = sizeof(config),
		.os_pages = MR_OS_PAGES_4K,
	};

	*ret_region = NULL;
	if (!dpdk_has_small_pages())
		return 0;
	return mr_region_create(bench_ctx(bench), &config, ret_region, why);
}

int ours_make(struct ours *ours, struct bench *bench,
	      const struct mr_pool_config *config, uint32_t n_caches,
	      struct mr_reason *why)
{
	struct mr_pool_config c = { .n_pages = 16384, .page_bytes = 2048 };

	if (config != NULL)
		c = *config;
	c.size = sizeof(c);
	*ours = (struct ours){ 0 };
	if (c.region == NULL &&
	    ours_small_region(bench, &ours->region, why) < 0)
		return -1;
	if (ours->region != NULL)
		c.region = ours->region;
	if (mr_pool_create(bench_ctx(bench), &c, &ours->pool, why) < 0) {
		mr_region_destroy(ours->region, NULL);
		return -1;
	}
	while (ours->n_caches < n_caches) {
		if (mr_cache_create(ours->pool, &ours->caches[ours->n_caches],
				    why) < 0) {
			ours_free(ours);
			return -1;
		}
		ours->n_caches++;
	}
	return 0;
}

void ours_free(struct ours *ours)
{
	struct mr_reason why = { .text = "" };

	for (uint32_t i = 0; i < ours->n_caches; i++)
		mr_cache_destroy(ours->caches[i]);
	/* Every benchmark is a test of conservation, too. */
	if (mr_pool_destroy(ours->pool, &why) < 0 ||
	    mr_region_destroy(ours->region, &why) < 0)
		print_error("mr-bench: %s", why.text);
}

void count_huge(struct mr_pool *pool, struct counts *counts)
{
	struct mr_region_stats s = { .size = sizeof(s) };

	if (mr_region_stats(mr_pool_region(pool), &s) == 0 && s.n_bytes > 0)
		count_add(counts, "huge_percent",
			  100.0 * (double)s.n_huge_bytes / (double)s.n_bytes);
}

void ours_count(const struct ours *ours, const struct player *player,
		struct counts *counts)
{
	struct mr_pool_stats s = { .size = sizeof(s) };

	mr_pool_stats(ours->pool, &s);
	count_per_1000(counts, "fast_per_1000", s.alloc_fast, player);
	count_per_1000(counts, "refill_per_1000", s.alloc_refill, player);
	count_per_1000(counts, "slow_per_1000", s.alloc_slow, player);
	count_per_1000(counts, "empty_per_1000", s.alloc_empty, player);
	count_per_1000(counts, "cached_per_1000", s.recycle_cached, player);
	count_per_1000(counts, "cache_full_per_1000", s.recycle_cache_full,
		       player);
	count_per_1000(counts, "ring_full_per_1000", s.recycle_ring_full,
		       player);
	count_per_1000(counts, "cas_failed_per_1000", s.depot_cas_failed,
		       player);
	count_add(counts, "parked", (double)(s.n_cached + s.n_open));
	count_huge(ours->pool, counts);
}

uint32_t player_n_pages(const struct player *player)
{
	return player->param[P_PAGES] > 0 ? (uint32_t)player->param[P_PAGES] :
					    16384;
}

int ours_set_up(struct player *player, struct mr_reason *why)
{
	const struct mr_pool_config config = {
		.n_pages = player_n_pages(player),
		.page_bytes = 2048,
		.magazine_pages = (uint32_t)player->param[P_MAGAZINE],
	};
	struct ours *ours = malloc(sizeof(*ours));

	if (ours == NULL)
		return -1;
	player->state = ours;
	if (ours_make(ours, player->bench, &config,
		      player->row->n_threads + (uint32_t)player->param[P_MORE],
		      why) == 0)
		return 0;
	free(ours);
	return -1;
}

void ours_player_count(struct player *player, struct counts *counts)
{
	ours_count(player->state, player, counts);
}

void ours_tear_down(struct player *player)
{
	ours_free(player->state);
	free(player->state);
}

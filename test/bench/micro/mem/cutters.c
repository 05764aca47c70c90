/* SPDX-License-Identifier: BSD-3-Clause */
#include "cutters.h"

static struct our_frags *make_ours(struct bench *bench, uint64_t n_bytes,
				   struct mr_reason *why)
{
	const struct mr_pool_config config = {
		.n_pages = (uint32_t)(n_bytes / 4096), .page_bytes = 4096
	};
	struct our_frags *ours = malloc(sizeof(*ours));
	struct ours *pool;

	if (ours == NULL)
		return NULL;
	pool = &ours->pool.ours;
	if (ours_make(pool, bench, &config, 2, why) < 0) {
		free(ours);
		return NULL;
	}
	if (mr_frag_cache_create(pool->caches[0], &ours->frags, why) < 0) {
		ours_free(pool);
		free(ours);
		return NULL;
	}
	ours->pool.base = mr_region_base(mr_pool_region(pool->pool));
	return ours;
}

void *cutter_make(struct player *player, uint64_t n_bytes,
		  struct mr_reason *why)
{
	const struct pool_wish wish = {
		.n_objects = (uint32_t)(n_bytes / OBJECT_BYTES), .n_threads = 2
	};

	if (player->side == SIDE_OURS)
		return make_ours(player->bench, n_bytes, why);
	if (player->side == SIDE_KERNEL)
		return kernel_frags_make((uint32_t)(n_bytes / 32768));
	return taker_pool_make(player->side, player->bench, &wish,
			       player->opaque, why);
}

void cutter_free(const struct player *player, void *state)
{
	struct our_frags *ours = state;

	if (player->side == SIDE_KERNEL) {
		kernel_frags_free(state);
		return;
	}
	if (player->side == SIDE_OURS)
		mr_frag_cache_destroy(ours->frags);
	taker_pool_free(player->side, state);
}

uint64_t cutter_pinned(const struct player *player, void *state)
{
	struct mr_pool_stats s = { .size = sizeof(s) };

	switch (player->side) {
	case SIDE_OURS:
		mr_pool_stats(((struct our_frags *)state)->pool.ours.pool, &s);
		return s.n_in_flight * s.page_bytes;
	case SIDE_KERNEL:
		return kernel_frags_pinned(state);
	default:
		return 0;
	}
}

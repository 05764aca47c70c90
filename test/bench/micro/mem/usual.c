/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>

#include "ours.h"
#include "usual.h"

int plain_set_up(struct player *player, struct mr_reason *why)
{
	(void)why;
	player->state = plain_make(player_n_pages(player));
	return player->state == NULL ? -1 : 0;
}

void plain_tear_down(struct player *player)
{
	free(player->state);
}

int model_set_up(struct player *player, struct mr_reason *why)
{
	(void)why;
	player->state = model_make(player_n_pages(player), MODEL_RING);
	return player->state == NULL ? -1 : 0;
}

void model_count(const struct model_page_pool *pool,
		 const struct player *player, struct counts *counts)
{
	count_per_1000(counts, "slow_per_1000", pool->n_slow, player);
	count_per_1000(counts, "ring_full_per_1000", pool->n_ring_full, player);
}

void model_tear_down(struct player *player)
{
	model_free(player->state);
}

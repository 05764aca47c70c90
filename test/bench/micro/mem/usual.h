/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The usual setup and teardown of players that are neither ours (ours.h) nor
 * DPDK's (peer_dpdk.h); param[P_PAGES] as there.
 */
#ifndef USUAL_H
#define USUAL_H

#include "model_page_pool.h"
#include "plain.h"

#include "bench.h"

enum { MODEL_RING = 1024 };

/* A struct plain as state. */
int plain_set_up(struct player *player, struct mr_reason *why);
void plain_tear_down(struct player *player);

/* A struct model_page_pool as state; what it counted. */
int model_set_up(struct player *player, struct mr_reason *why);
void model_count(const struct model_page_pool *pool,
		 const struct player *player, struct counts *counts);
void model_tear_down(struct player *player);

/* xorshift64: the same series for all players. */
static inline uint32_t random_u32(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (uint32_t)(*state >> 32);
}

enum { RANDOM_SEED = 88172645 };

#endif

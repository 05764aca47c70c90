/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "pipe.h"
#include "support/text.h"

static struct round *make_round(void)
{
	const size_t bytes = (size_t)ROUND_OBJECTS * ROUND_STRIDE;
	struct round *round = calloc(1, sizeof(*round));

	if (round == NULL)
		return NULL;
	round->bytes = aligned_alloc(64, bytes);
	if (round->bytes == NULL) {
		free(round);
		return NULL;
	}
	memset(round->bytes, 0, bytes);
	for (uint32_t i = 0; i < ROUND_OBJECTS; i++)
		round->words[i] = (uintptr_t)round->bytes + ROUND_STRIDE * i;
	return round;
}

static void free_round(struct round *round)
{
	if (round != NULL)
		free(round->bytes);
	free(round);
}

static void free_pipe(enum side side, struct pipe *pipe)
{
	if (side == SIDE_PLAIN)
		free_round(pipe->pool);
	else
		taker_pool_free(side, pipe->pool);
	free(pipe->hop);
	free(pipe->back);
	free(pipe);
}

int pipe_make(struct player *player, const struct pool_wish *wish,
	      uint32_t ring, bool has_back, struct mr_reason *why)
{
	struct pipe *pipe = aligned_alloc(64, sizeof(*pipe));

	if (pipe == NULL)
		return -1;
	memset(pipe, 0, sizeof(*pipe));
	pipe->hop = hop_make(ring);
	pipe->back = has_back ? hop_make(ring) : NULL;
	if (player->side == SIDE_PLAIN)
		pipe->pool = make_round();
	else
		pipe->pool = taker_pool_make(player->side, player->bench, wish,
					     player->opaque, why);
	if (pipe->pool == NULL || pipe->hop == NULL ||
	    (has_back && pipe->back == NULL)) {
		free_pipe(player->side, pipe);
		return -1;
	}
	player->state = pipe;
	return 0;
}

void pipe_count(struct player *player, struct counts *counts)
{
	const struct pipe *pipe = player->state;
	const struct hop *hop = pipe->hop;
	const double by =
		player->n_done > 0 ? (double)player->n_done / 1000 : 1;

	if (hop->n_looks > 0)
		count_add(counts, "in_flight",
			  (double)hop->n_waiting / (double)hop->n_looks);
	count_add(counts, "ring_full_waits_per_1000", pipe->n_full / by);
	if (player->side != SIDE_PLAIN)
		count_add(counts, "pool_empty_waits_per_1000",
			  pipe->n_empty / by);
	taker_pool_count(pipe->pool, player, counts);
}

/* What a run that gave up has left behind. */
static void drain(const struct player *player, struct hop *hop, void *pool)
{
	word object;

	while (hop != NULL && hop_get(hop, &object, 1) == 1)
		if (player->side == SIDE_OURS)
			ours_give(pool, 0, &object, 1);
}

void pipe_free(struct player *player)
{
	struct pipe *pipe = player->state;

	if (pipe->is_dead)
		print_error("mr-bench: %s: no progress for 2 s", player->name);
	drain(player, pipe->hop, pipe->pool);
	drain(player, pipe->back, pipe->pool);
	free_pipe(player->side, pipe);
}

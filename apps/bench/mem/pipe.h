/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool between two cores: what the rows of that kind have in common. */
#ifndef PIPE_H
#define PIPE_H

#include "takers.h"

/* A fixed round of objects, for the floor: no pool. Their lines spread. */
enum { ROUND_OBJECTS = 128, ROUND_STRIDE = OBJECT_BYTES + 64 };

struct round {
	uint8_t *bytes;
	uint32_t n, next;
};

struct pipe {
	void *pool;
	struct hop *hop;
	struct hop *back;            /* or NULL */
	uint32_t is_dead;            /* someone waited in vain */
	alignas(64) uint64_t n_full; /* the producer's */
	uint64_t n_empty;
	alignas(64) uint64_t sum; /* the consumer's: what it read */
	uint64_t n_fifo;
};

static inline bool pipe_is_dead(struct pipe *pipe, struct patience *patience)
{
	if (__atomic_load_n(&pipe->is_dead, __ATOMIC_RELAXED) != 0)
		return true;
	if (!patience_ends(patience))
		return false;
	__atomic_store_n(&pipe->is_dead, 1, __ATOMIC_RELAXED);
	return true;
}

/* Members of a player: state becomes a struct pipe. */
int pipe_make(struct player *player, const struct pool_wish *wish,
	      uint32_t ring, bool has_back, struct mr_reason *why);
void pipe_count(struct player *player, struct counts *counts);
void pipe_free(struct player *player);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* A pool between two cores: what the rows of that kind have in common. */
#ifndef PIPE_H
#define PIPE_H

#include "takers.h"

enum { PIPE_BURST = 32 };

/* A fixed round of objects, for the floor: no pool. Their lines spread. */
enum { ROUND_OBJECTS = 128, ROUND_STRIDE = OBJECT_BYTES + 64 };

struct round {
	uint8_t *bytes;
	word words[ROUND_OBJECTS]; /* where they are */
	uint32_t next;
};

struct pipe {
	void *pool;
	struct hop *hop;
	struct hop *back;            /* or NULL */
	void *extra;                 /* the workload's */
	uint32_t is_dead;            /* someone waited in vain */
	alignas(64) uint64_t n_full; /* the producer's */
	uint64_t n_empty;
	alignas(64) uint64_t sum; /* the consumer's: what it read */
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

/* Take n objects and send them on; give back what comes back. */
static ALWAYS_INLINE uint64_t pipe_produce(struct pipe *pipe, uint64_t n,
					   const struct taker taker)
{
	struct patience patience = { 0 };
	word words[PIPE_BURST], back[PIPE_BURST];
	uint64_t n_sent = 0, n_back = pipe->back == NULL ? n : 0;
	bool has = false; /* a burst in hand */

	while (n_sent < n || n_back < n) {
		bool is_idle = true;

		if (n_back < n) {
			const uint32_t got =
				hop_get(pipe->back, back, PIPE_BURST);

			taker.give(pipe->pool, 0, back, got);
			n_back += got;
			is_idle = got == 0;
		}
		if (n_sent < n && !has) {
			has = taker.take(pipe->pool, 0, words, PIPE_BURST);
			pipe->n_empty += !has;
		}
		if (has && hop_put(pipe->hop, words, PIPE_BURST)) {
			n_sent += PIPE_BURST;
			has = false;
			is_idle = false;
		}
		pipe->n_full += has;
		if (!is_idle)
			patience = (struct patience){ 0 };
		else if (pipe_is_dead(pipe, &patience))
			break;
	}
	if (has)
		taker.give(pipe->pool, 0, words, PIPE_BURST);
	return n_sent < n || n_back < n ? 0 : n;
}

/* Members of a player: state becomes a struct pipe. */
int pipe_make(struct player *player, const struct pool_wish *wish,
	      uint32_t ring, bool has_back, struct mr_reason *why);
void pipe_count(struct player *player, struct counts *counts);
void pipe_free(struct player *player);

#endif

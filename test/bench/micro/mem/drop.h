/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop of B08's first rows: bursts from an rx ring of 1024 buffers, all
 * dropped, and the ring refilled 64 at a time. The ring is an array: a device
 * that is never the bottleneck.
 */
#ifndef DROP_H
#define DROP_H

#include "bench.h"

enum {
	DROP_RING = 1024,
	DROP_REFILL = 64,
	DROP_MAX_BURST = 256,
	DROP_BYTES = 2048, /* of a buffer */
};

enum { DROP_BURST }; /* of player.param */

/*
 * Buffers from the pool of the player's, by address or pointer; how many. And
 * back to it. Both are inlined into the loop of each player.
 */
typedef uint32_t drop_take_fn(struct player *player, uint64_t *buffers,
			      uint32_t n);
typedef void drop_give_fn(struct player *player, uint64_t *buffers, uint32_t n);

/*
 * What is posted lies between tail and head. The ring begins full, and ends
 * empty, so that all buffers are at home after each sample.
 */
static inline __attribute__((always_inline)) uint64_t
drop_run(struct player *player, uint64_t n, drop_take_fn *take,
	 drop_give_fn *give)
{
	const uint32_t burst = (uint32_t)player->param[DROP_BURST];
	uint64_t ring[DROP_RING];
	uint32_t head = 0, tail = 0;
	uint64_t done;

	while (head < DROP_RING)
		if (take(player, ring + head, DROP_REFILL) == DROP_REFILL)
			head += DROP_REFILL;
		else
			break;
	for (done = 0; done < n && head - tail >= burst; done += burst) {
		give(player, ring + tail % DROP_RING, burst);
		tail += burst;
		while (DROP_RING - (head - tail) >= DROP_REFILL &&
		       take(player, ring + head % DROP_RING, DROP_REFILL) ==
			       DROP_REFILL)
			head += DROP_REFILL;
	}
	for (; tail != head; tail += DROP_REFILL / 8)
		give(player, ring + tail % DROP_RING, DROP_REFILL / 8);
	return done;
}

#endif

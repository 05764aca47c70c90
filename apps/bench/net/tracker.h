/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which sequence numbers have arrived: new ones, duplicates, and numbers out of
 * order.
 *
 * A lane has a window of numbers that all receivers share, so a frame that
 * arrives at two receivers is found, too. A word of the window holds 32 numbers
 * and the turn of the window that they belong to, so nothing needs to be
 * cleared as it moves on, and one compare-and-swap does everything.
 *
 * Each receiver sees the order of its own frames only: there is none between
 * two receivers.
 */
#ifndef NET_TRACKER_H
#define NET_TRACKER_H

#include <stdbool.h>
#include <stdint.h>

#include "support/counter.h"

/* A receiver's view of a lane. */
struct track {
	uint64_t next; /* one more than the highest number received */
	uint64_t unique, duplicates, reordered, too_old;
	uint64_t longest_gap;
	uint64_t reserved[2]; /* a cache line */
};

struct tracker {
	uint32_t n_lanes;
	uint32_t window_bits; /* log2 of the words of a lane */
	bool is_shared;       /* by receivers on several threads */
	uint64_t *words;      /* by lane */
};

/* Returns 0 or -ENOMEM. */
int tracker_open(struct tracker *tracker, uint32_t n_lanes, bool is_shared);
void tracker_close(struct tracker *tracker);

enum seen { SEEN_NEW, SEEN_BEFORE, SEEN_TOO_OLD };

enum { TRACKER_NUMBERS = 32, TRACKER_NUMBER_BITS = 5 }; /* in a word */

/* The word after a number of this turn arrived. */
static inline enum seen tracker_word(uint64_t word, uint32_t turn, uint32_t bit,
				     uint64_t *ret_word)
{
	const uint32_t has = (uint32_t)(word >> 32);

	*ret_word = word | bit;
	if (has == turn)
		return word & bit ? SEEN_BEFORE : SEEN_NEW;
	*ret_word = (uint64_t)turn << 32 | bit;
	return has < turn ? SEEN_NEW : SEEN_TOO_OLD;
}

static inline enum seen tracker_mark(struct tracker *tracker, uint32_t lane,
				     uint64_t seq)
{
	const uint64_t block = seq >> TRACKER_NUMBER_BITS;
	const uint64_t mask = (1u << tracker->window_bits) - 1;
	uint64_t *word =
		&tracker->words[((uint64_t)lane << tracker->window_bits) +
				(block & mask)];
	/* Turns begin at 1; a word of zeros belongs to none. */
	const uint32_t turn = (uint32_t)(block >> tracker->window_bits) + 1;
	const uint32_t bit = 1u << (seq % TRACKER_NUMBERS);
	uint64_t old = __atomic_load_n(word, __ATOMIC_RELAXED), to;
	enum seen seen = tracker_word(old, turn, bit, &to);

	if (!tracker->is_shared) {
		if (seen == SEEN_NEW)
			__atomic_store_n(word, to, __ATOMIC_RELAXED);
		return seen;
	}
	while (seen == SEEN_NEW &&
	       !__atomic_compare_exchange_n(word, &old, to, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		seen = tracker_word(old, turn, bit, &to);
	return seen;
}

/* Count a frame. One thread writes a track, others read it. */
static inline void track_see(struct track *track, struct tracker *tracker,
			     uint32_t lane, uint64_t seq)
{
	const enum seen seen = tracker_mark(tracker, lane, seq);

	if (seen != SEEN_NEW) {
		counter_add(seen == SEEN_BEFORE ? &track->duplicates :
						  &track->too_old,
			    1);
		return;
	}
	counter_add(&track->unique, 1);
	if (seq >= track->next) {
		if (seq - track->next > track->longest_gap)
			__atomic_store_n(&track->longest_gap, seq - track->next,
					 __ATOMIC_RELAXED);
		__atomic_store_n(&track->next, seq + 1, __ATOMIC_RELAXED);
	} else {
		counter_add(&track->reordered, 1);
	}
}

#endif

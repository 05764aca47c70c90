/* SPDX-License-Identifier: BSD-3-Clause */
/* The loop of B12 and B13: n objects are taken, then given back. */
#ifndef HOLD_H
#define HOLD_H

#include "alloc.h"

enum { P_HOLD, P_GET, P_PUT, P_RANDOM }; /* of variant.param; most, or 0 */

/*
 * Bytes of what a thread holds, 16 each; no two threads write to one page, or a
 * core would prefetch the other one's lines.
 */
static inline size_t held_bytes(uint64_t n_held)
{
	return (n_held * 2 * sizeof(word) + 127) / 128 * 128 + 4096;
}

static inline word *held_by(const struct variant *variant, uint32_t thread)
{
	struct harness *harness = variant->state;

	return (word *)(void *)(harness->extra +
				held_bytes(variant->param[P_HOLD]) * thread);
}

/* Sizes of calls: fixed, or as 26.11 draws them, never beyond what is left. */
struct sizes {
	uint32_t fixed, mask, r;
};

enum how_many { AS_ASKED, UP_TO_LEFT };

static ALWAYS_INLINE uint32_t next_size(struct sizes *sizes, uint32_t n_left,
					enum how_many how_many)
{
	uint32_t n = sizes->fixed, r;

	if (how_many == AS_ASKED)
		return n;
	if (sizes->mask != 0) {
		r = sizes->r++;
		n = ((r ^ (r >> 2) ^ (r << 3)) & sizes->mask) + 1;
	}
	return n < n_left ? n : n_left;
}

static inline struct sizes sizes_of(const struct variant *variant, uint32_t p)
{
	const uint64_t most = variant->param[P_RANDOM];

	return (struct sizes){ .fixed = (uint32_t)variant->param[p],
			       .mask = most > 0 ? (uint32_t)most - 1 : 0 };
}

/* Take what is held, get at a time, and give it back, put at a time. */
static ALWAYS_INLINE uint64_t hold(struct variant *variant, uint32_t thread,
				   uint64_t n, const struct ops ops,
				   const enum how_many how_many,
				   const uint32_t constant)
{
	void *pool = ((struct harness *)variant->state)->pool;
	void *from = ops.from != NULL ? ops.from(pool, thread) : pool;
	void *to = ops.to != NULL ? ops.to(pool, thread) : pool;
	const uint32_t n_held = (uint32_t)variant->param[P_HOLD];
	struct sizes get = sizes_of(variant, P_GET);
	struct sizes put = sizes_of(variant, P_PUT);
	word *words = held_by(variant, thread), *end = words + n_held;
	uint64_t done;
	uint32_t k;

	for (done = 0; done < n; done += n_held) {
		for (word *w = words; w < end; w += k) {
			k = constant ? constant :
				       next_size(&get, (uint32_t)(end - w),
						 how_many);
			if (!ops.take(from, thread, w, k)) {
				ops.give(to, thread, words,
					 (uint32_t)(w - words));
				return 0;
			}
		}
		keep(words);
		for (const word *w = words; w < end; w += k) {
			k = constant ? constant :
				       next_size(&put, (uint32_t)(end - w),
						 how_many);
			ops.give(to, thread, w, k);
		}
	}
	return done;
}

#endif

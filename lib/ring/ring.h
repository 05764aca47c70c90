/* SPDX-License-Identifier: BSD-3-Clause */
/* Internals of the rings, for lib/ring and its tests. */
#ifndef RING_RING_H
#define RING_RING_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/ring.h>

#include "base/base.h"

enum { MRI_RING_MAX_ENTRIES = 1u << 20 };

struct mr_ring_spsc {
	const struct mr_ctx *ctx;
	uint32_t n_entries;
	_Alignas(MRI_CACHE_LINE) uint32_t head; /* the producer's line */
	uint32_t seen_tail;
	_Alignas(MRI_CACHE_LINE) uint32_t tail; /* the consumer's line */
	uint32_t seen_head;
	_Alignas(MRI_CACHE_LINE) struct mr_frame entries[];
};

static inline bool mri_ring_is_size(uint32_t n_entries)
{
	return n_entries >= 2 && n_entries <= MRI_RING_MAX_ENTRIES &&
	       mri_is_power_of_two(n_entries);
}

/* For tests: start counting near the wrap, not at 0. */
void mri_ring_spsc_start_at(struct mr_ring_spsc *ring, uint32_t count);

#endif

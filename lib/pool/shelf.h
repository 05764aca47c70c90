/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shelf of a cache: magazines of the depot that this cache alone uses. It
 * begins with none, and gets some when the cache fetches from the depot what it
 * sent there a moment ago. See shelf.c.
 */
#ifndef POOL_SHELF_H
#define POOL_SHELF_H

#include <stdbool.h>
#include <stdint.h>

#include "pool/depot/magazine.h"

/* With the two of a cache, two of the largest size, of the smallest. */
enum { MRI_SHELF_MAX = 2 * MR_MAGAZINE_MAX_PAGES / MR_MAGAZINE_PAGES - 2 };

/* All shelves together have at most a half of the pool's pages. */
enum { MRI_SHELVES_SHARE = 2 };

struct mri_shelf {
	uint32_t n;        /* magazines; atomic, for statistics */
	uint32_t n_filled; /* the first of them; the others are empty; atomic */
	uint32_t n_run;    /* trips to the depot, in the same direction */
	uint32_t n_short;  /* runs that the largest shelf would have spared */
	uint32_t n_wait;   /* as many, and it asks for more magazines */
	uint32_t n_recalls; /* of the pool, as it last saw them */
	bool is_sending;    /* direction of the run */
	struct mri_magazine *magazines[MRI_SHELF_MAX];
};

/* lib/pool/shelf.c */
void mri_shelf_init(struct mri_shelf *shelf);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by unit tests of frag caches. */
#ifndef SUPPORT_FRAG_UNIT_H
#define SUPPORT_FRAG_UNIT_H

#include "support/pool_unit.h"

#include <millrace/experimental/frag.h>

struct frag_fixture {
	struct pool_fixture p;
	struct mr_cache *other; /* of the same pool */
	struct mr_frag_cache *frags;
	uint64_t n_over; /* the test frees too many on purpose */
};

static inline void open_frags(struct frag_fixture *f, uint32_t n_pages,
			      uint32_t page_bytes)
{
	fixture_open(&f->p, n_pages, page_bytes);
	f->n_over = 0;
	assert_int_equal(mr_cache_create(f->p.pool, &f->other, NULL), 0);
	assert_int_equal(mr_frag_cache_create(f->p.cache, &f->frags, NULL), 0);
}

static inline void close_frags(struct frag_fixture *f)
{
	mr_frag_cache_destroy(f->frags);
	mr_cache_destroy(f->other);
	assert_int_equal(pool_stats(f->p.pool).free_over, f->n_over);
	fixture_close(&f->p);
}

static inline uint64_t cut(struct frag_fixture *f, uint32_t n_bytes,
			   uint32_t align_bytes)
{
	uint64_t addr = UINT64_MAX;

	assert_int_equal(
		mr_frag_cache_alloc(f->frags, n_bytes, align_bytes, &addr), 0);
	return addr;
}

static inline void give_back(struct frag_fixture *f, uint64_t addr)
{
	mr_frag_free_bulk(f->p.cache, &addr, 1);
}

#endif

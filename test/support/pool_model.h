/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A model for long random sequences of calls on two pools. It records place,
 * references and content of each buffer in use, and the expected counters of
 * the pools.
 */
#ifndef SUPPORT_POOL_MODEL_H
#define SUPPORT_POOL_MODEL_H

#include "support/page_unit.h"

enum {
	MAX_LIVE = 500,
	N_CACHES = 3,
	N_POOLS = 2,
	MAX_N = 96,
	MAX_PAGES = 4096
};

struct buffer {
	uint64_t begin;
	uint32_t n_bytes, n_refs;
	uint32_t pool, order; /* order of the block; 0: a page */
	uint8_t stamp;        /* value of each byte */
	struct mr_frame view;
};

/* The model of a pool, and its expected counters. */
struct side {
	struct mr_pool *pool;
	bool has_quarantine;
	uint32_t n_out; /* pages */
	uint64_t n_invalid, n_double, n_released, n_ring, n_empty;
	uint8_t n_on[MAX_PAGES]; /* buffers on each page */
};

struct model {
	struct pool_fixture f;
	struct side sides[N_POOLS];
	struct mr_cache *caches[N_CACHES]; /* the last: of the other pool */
	uint64_t random;
	const uint8_t *bytes; /* a fuzzer's input; NULL: random choices */
	size_t n_bytes;       /* left of them */
	uint32_t n_checks;
	uint32_t n_live;
	struct buffer live[MAX_LIVE];
};

static inline uint32_t below(struct model *m, uint32_t n)
{
	uint32_t chosen = 0;

	if (m->bytes != NULL) {
		for (uint32_t most = n; most > 1 && m->n_bytes > 0;
		     most = (most + 255) / 256, m->n_bytes--)
			chosen = chosen << 8 | *m->bytes++;
		return n == 0 ? 0 : chosen % n;
	}
	return test_random(&m->random, n);
}

static inline uint32_t side_of(uint32_t cache)
{
	return cache == N_CACHES - 1;
}

/* Apply the frees of blocks that caches have deferred. */
static inline void flush_runs(struct model *m)
{
	for (uint32_t i = 0; i < N_CACHES; i++)
		mri_block_flush(m->caches[i]);
}

static inline void check(struct model *m)
{
	for (uint32_t i = 0; i < N_POOLS; i++) {
		const struct side *side = &m->sides[i];
		const struct mr_pool_stats s = pool_stats(side->pool);

		assert_int_equal(s.n_in_flight, side->n_out);
		assert_int_equal(s.n_free + s.n_in_flight, s.n_pages);
		assert_int_equal(s.free_invalid, side->n_invalid);
		assert_int_equal(s.free_double, side->n_double);
		assert_int_equal(s.free_over + s.poison_broken, 0);
		assert_int_equal(s.recycle_released_refcnt, side->n_released);
		if (m->n_checks % 16 == 0)
			assert_page_lists(&side->pool->page_alloc);
		assert_int_equal(s.recycle_ring, side->n_ring);
		assert_int_equal(s.alloc_empty, side->n_empty);
	}
	for (uint32_t i = 0; i < N_CACHES; i++) {
		const struct mr_cache_stats s = cache_stats(m->caches[i]);

		assert_true(s.n_pages + s.n_open <= s.max_pages);
	}
	flush_runs(m);
	m->n_checks++;
}

/* Pages available to a cache; N_CACHES: to calls without a cache. */
static inline uint64_t n_available(struct model *m, uint32_t s, uint32_t cache)
{
	const struct side *side = &m->sides[s];
	uint64_t n = side->pool->n_pages - side->n_out -
		     pool_stats(side->pool).n_open;

	for (uint32_t i = 0; i < N_CACHES; i++)
		if (i != cache && side_of(i) == s)
			n -= cache_stats(m->caches[i]).n_pages;
	return n;
}

/* Add a buffer to the counts of its pages, or subtract it. */
static inline void count_pages(struct model *m, const struct buffer *b,
			       bool is_on)
{
	struct side *side = &m->sides[b->pool];
	uint8_t *n_on = &side->n_on[mri_page_of(side->pool, b->begin)];

	for (uint32_t i = 0; i < 1u << b->order; i++) {
		side->n_out -= n_on[i] > 0;
		n_on[i] += is_on ? 1 : -1;
		side->n_out += n_on[i] > 0;
	}
}

static inline void look_at(struct model *m, const struct buffer *b)
{
	const uint8_t *bytes = m->f.base + b->begin;

	assert_int_equal(bytes[0], b->stamp);
	assert_int_equal(bytes[below(m, b->n_bytes)], b->stamp);
	assert_int_equal(bytes[b->n_bytes - 1], b->stamp);
}

/* Record the buffer of n_bytes that contains addr; it must overlap no other. */
static inline struct buffer *hold(struct model *m, uint32_t s, uint64_t addr,
				  uint32_t n_bytes, uint32_t order)
{
	const struct mr_pool *pool = m->sides[s].pool;
	const uint64_t begin = addr - (addr - pool->addr) % n_bytes;
	struct buffer *b = &m->live[m->n_live];

	assert_true(mri_pool_has(pool, begin));
	assert_true(mri_pool_has(pool, begin + n_bytes - 1));
	for (uint32_t i = 0; i < m->n_live; i++)
		assert_true(begin + n_bytes <= m->live[i].begin ||
			    begin >= m->live[i].begin + m->live[i].n_bytes);
	*b = (struct buffer){ begin, n_bytes, 1,
			      s,     order,   (uint8_t)below(m, 256),
			      { 0 } };
	b->view.addr = begin + below(m, n_bytes);
	b->view.len = 1 + below(m, (uint32_t)(begin + n_bytes - b->view.addr));
	memset(m->f.base + begin, b->stamp, n_bytes);
	count_pages(m, b, true);
	m->n_live++;
	return b;
}

/* Record that a call on pool `by` drops a reference. */
static inline void release(struct model *m, struct buffer *b, uint32_t by)
{
	if (--b->n_refs > 0) {
		/* Only page_free_bulk() counts references on blocks. */
		m->sides[by].n_released += b->order == 0;
		return;
	}
	m->sides[by].n_ring += by != b->pool && b->order == 0 &&
			       !m->sides[b->pool].has_quarantine;
	count_pages(m, b, false);
	*b = m->live[--m->n_live];
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compares frag caches with a model, for the fuzzer and for a test with fixed
 * seeds.
 *
 * The model records the frags in use, their blocks, and where the next frag
 * must begin. Each step is chosen by two bytes: the operation and its argument.
 * The user defines MODEL_CHECK(condition), which must not return if the
 * condition is false.
 */
#ifndef SUPPORT_FRAG_MODEL_H
#define SUPPORT_FRAG_MODEL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <millrace/experimental/frag.h>
#include <millrace/experimental/page.h>
#include <millrace/frame.h>

#include "pool/pool.h"

enum {
	MODEL_MAX_LIVE = 300,
	MODEL_N = 2, /* caches, each with a frag cache */
	MODEL_PAGES = 64
};

struct model_frag {
	uint64_t addr;
	uint32_t n_bytes;
	uint32_t n_refs;
	uint64_t begin; /* of the block or page that it was cut from */
	uint32_t block_bytes;
};

/* The state of one frag cache. */
struct model_cut {
	struct mr_frag_cache *frags;
	uint64_t begin, end;  /* the used part of its block */
	uint32_t block_bytes; /* 0: none */
	uint64_t last;        /* address of the last frag, or MR_ADDR_NONE */
	bool was_shared;
	bool is_prepared;
	struct mr_frag frag;
};

struct model {
	struct mr_pool *pool;
	uint32_t page_bytes;
	struct mr_cache *caches[MODEL_N];
	/* Another pool in the region, and its cache. */
	struct mr_pool *beside;
	struct mr_cache *foreign;
	struct model_cut cuts[MODEL_N];
	uint32_t n_live;
	struct model_frag live[MODEL_MAX_LIVE];
	uint32_t n_hoarded; /* pages kept from the frag caches */
	uint64_t hoard[MODEL_PAGES];
};

static inline void model_open(struct model *m, struct mr_pool *pool)
{
	const struct mr_pool_config beside = { .size = sizeof(beside),
					       .n_pages = 16,
					       .region = pool->region };

	memset(m, 0, sizeof(*m));
	MODEL_CHECK(mr_pool_create(pool->ctx, &beside, &m->beside, NULL) == 0);
	MODEL_CHECK(mr_cache_create(m->beside, &m->foreign, NULL) == 0);
	m->pool = pool;
	m->page_bytes = pool->page_bytes;
	for (int i = 0; i < MODEL_N; i++) {
		m->cuts[i].last = MR_ADDR_NONE;
		MODEL_CHECK(mr_cache_create(pool, &m->caches[i], NULL) == 0);
		MODEL_CHECK(mr_frag_cache_create(m->caches[i],
						 &m->cuts[i].frags, NULL) == 0);
	}
}

/* The number of references to frags in the n_bytes from begin. */
static inline uint32_t model_n_out(const struct model *m, uint64_t begin,
				   uint32_t n_bytes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < m->n_live; i++)
		if (m->live[i].addr - begin < n_bytes)
			n += m->live[i].n_refs;
	return n;
}

/* A page must be in flight exactly while a frag of its block is in use. */
static inline void model_check_pool(const struct model *m)
{
	struct mr_pool_stats s = { .size = sizeof(s) };
	uint64_t n_in_flight = m->n_hoarded;

	for (uint32_t i = 0; i < m->n_live; i++) {
		bool is_first = true;

		for (uint32_t k = 0; k < i; k++)
			is_first = is_first &&
				   m->live[k].begin != m->live[i].begin;
		if (is_first)
			n_in_flight += m->live[i].block_bytes / m->page_bytes;
	}
	MODEL_CHECK(mr_pool_stats(m->pool, &s) == 0);
	MODEL_CHECK(s.n_in_flight == n_in_flight);
	MODEL_CHECK(s.n_free + s.n_in_flight == s.n_pages);
	MODEL_CHECK(s.free_over == 0 && s.free_invalid == 0);
	MODEL_CHECK(mr_pool_stats(m->beside, &s) == 0);
	MODEL_CHECK(s.n_in_flight + s.free_over + s.free_invalid == 0);
}

/* Where a frag of n_bytes begins, if the last one ends at `end`. */
static inline uint64_t model_place(const struct model *m, uint64_t end,
				   uint32_t n_bytes, uint32_t align_bytes)
{
	uint64_t at = mri_round_up(end, align_bytes == 0 ? 1 : align_bytes);

	if (n_bytes <= m->page_bytes &&
	    at / m->page_bytes != (at + n_bytes - 1) / m->page_bytes)
		at = mri_round_up(at, m->page_bytes);
	return at;
}

/*
 * Check where a frag cache placed n_bytes: in the same block if they fit, else
 * at the start of a block without references.
 */
static inline void model_see_place(struct model *m, struct model_cut *c,
				   uint64_t addr, uint32_t n_bytes,
				   uint32_t align_bytes)
{
	const uint64_t at = model_place(m, c->end, n_bytes, align_bytes);

	if (c->block_bytes != 0 && at + n_bytes <= c->begin + c->block_bytes) {
		MODEL_CHECK(addr == at);
		return;
	}
	c->begin = c->end = addr;
	c->block_bytes = m->page_bytes << mri_block_of(m->pool, addr)->order;
	c->last = MR_ADDR_NONE;
	c->was_shared = c->is_prepared = false;
	MODEL_CHECK(addr % m->page_bytes == 0);
	MODEL_CHECK(c->block_bytes == m->page_bytes || c->block_bytes == 32768);
	MODEL_CHECK(n_bytes <= c->block_bytes);
	MODEL_CHECK(addr - m->pool->addr + c->block_bytes <=
		    (uint64_t)m->pool->n_pages * m->page_bytes);
	MODEL_CHECK((addr - m->pool->addr) % c->block_bytes == 0);
	MODEL_CHECK(model_n_out(m, addr, c->block_bytes) == 0);
}

/* Record a frag, which must not overlap another one. */
static inline void model_hold(struct model *m, struct model_cut *c,
			      uint64_t addr, uint32_t n_bytes)
{
	for (uint32_t i = 0; i < m->n_live; i++)
		MODEL_CHECK(addr + n_bytes <= m->live[i].addr ||
			    addr >= m->live[i].addr + m->live[i].n_bytes);
	m->live[m->n_live++] = (struct model_frag){ addr, n_bytes, 1, c->begin,
						    c->block_bytes };
	c->last = addr;
	c->end = addr + n_bytes;
	c->is_prepared = false;
}

static inline struct model_frag *model_find(struct model *m, uint64_t addr)
{
	for (uint32_t i = 0; i < m->n_live; i++)
		if (m->live[i].addr == addr)
			return &m->live[i];
	return NULL;
}

static inline void model_forget(struct model *m, struct model_frag *frag)
{
	if (--frag->n_refs == 0)
		*frag = m->live[--m->n_live];
}

static inline void model_alloc(struct model *m, struct model_cut *c,
			       uint32_t n_bytes, uint32_t align_bytes,
			       uint32_t n)
{
	uint64_t addrs[16];
	uint32_t n_got;

	if (n > MODEL_MAX_LIVE - m->n_live)
		return;
	if (n == 1)
		n_got = mr_frag_cache_alloc(c->frags, n_bytes, align_bytes,
					    addrs) == 0;
	else
		n_got = mr_frag_cache_alloc_bulk(c->frags, addrs, n, n_bytes,
						 align_bytes);
	for (uint32_t i = 0; i < n_got; i++) {
		model_see_place(m, c, addrs[i], n_bytes, align_bytes);
		model_hold(m, c, addrs[i], n_bytes);
	}
	if (n_got < n && c->block_bytes != 0)
		MODEL_CHECK(model_place(m, c->end, n_bytes, align_bytes) +
				    n_bytes >
			    c->begin + c->block_bytes);
}

/* Abort a frag, the last one or another one. */
static inline void model_abort(struct model *m, struct model_cut *c,
			       bool is_ref_only, uint64_t addr,
			       uint32_t n_bytes)
{
	struct model_frag *frag = model_find(m, addr);
	const bool is_last = c->last != MR_ADDR_NONE && addr == c->last &&
			     addr + n_bytes == c->end;
	const int err =
		is_ref_only ? mr_frag_cache_abort_ref(c->frags, addr, n_bytes) :
			      mr_frag_cache_abort(c->frags, addr, n_bytes);

	/* It cannot know that this is free while others of the block are not. */
	MODEL_CHECK(!is_last || frag != NULL || err < 0);
	MODEL_CHECK(err == (!is_last      ? -EINVAL :
			    c->was_shared ? -EBUSY :
			    frag == NULL  ? -EINVAL :
					    0));
	if (err < 0)
		return;
	model_forget(m, frag);
	c->last = MR_ADDR_NONE;
	c->is_prepared = false;
	if (!is_ref_only)
		c->end = addr;
}

static inline void model_prepare(struct model *m, struct model_cut *c,
				 uint32_t n_bytes, uint32_t align_bytes)
{
	struct mr_frag frag, probed;

	if (mr_frag_cache_prepare(c->frags, n_bytes, align_bytes, &frag) < 0) {
		MODEL_CHECK(!mr_frag_cache_probe(c->frags, n_bytes, align_bytes,
						 &probed));
		return;
	}
	model_see_place(m, c, frag.addr, n_bytes, align_bytes);
	MODEL_CHECK(frag.addr + frag.n_bytes == c->begin + c->block_bytes);
	MODEL_CHECK(
		mr_frag_cache_probe(c->frags, n_bytes, align_bytes, &probed));
	MODEL_CHECK(probed.addr == frag.addr &&
		    probed.n_bytes == frag.n_bytes &&
		    probed.generation == frag.generation);
	MODEL_CHECK(mr_frag_cache_alloc_prepare(c->frags, n_bytes, align_bytes,
						&probed) ==
		    m->pool->region->base + frag.addr);
	c->frag = frag;
	c->is_prepared = true;
}

static inline void model_commit(struct model *m, struct model_cut *c,
				bool is_noref, uint32_t n_bytes)
{
	const struct mr_frag frag = c->frag;
	struct model_frag *last = model_find(m, c->last);
	int expected = (int)(frag.addr + n_bytes - c->end), took;

	if (m->n_live == MODEL_MAX_LIVE)
		return;
	if (!c->is_prepared)
		expected = -ESTALE;
	else if (n_bytes == 0 || n_bytes > frag.n_bytes)
		expected = -EINVAL;
	else if (is_noref && (c->last == MR_ADDR_NONE || frag.addr != c->end))
		expected = -EINVAL;
	/* Extending a freed frag would be an error of the caller. */
	if (is_noref && c->is_prepared && last == NULL)
		return;
	took = is_noref ? mr_frag_cache_commit_noref(c->frags, &frag, n_bytes) :
			  mr_frag_cache_commit(c->frags, &frag, n_bytes);
	MODEL_CHECK(took == expected);
	if (took < 0)
		return;
	if (!is_noref) {
		model_hold(m, c, frag.addr, n_bytes);
		return;
	}
	last->n_bytes += n_bytes;
	c->end += n_bytes;
	c->is_prepared = false;
}

static inline void model_drain(struct model_cut *c)
{
	mr_frag_cache_drain(c->frags);
	c->block_bytes = 0;
	c->last = MR_ADDR_NONE;
	c->is_prepared = false;
}

/* Drop a reference to every step'th frag, n in all, from the last one on. */
static inline void model_free(struct model *m, struct mr_cache *cache,
			      uint32_t n, uint32_t step, uint32_t way)
{
	uint64_t addrs[64];
	uint32_t n_addrs = 0;

	for (uint32_t i = m->n_live; i-- > 0 && n_addrs < n;) {
		if (i % step != 0)
			continue;
		addrs[n_addrs++] = m->live[i].addr;
		model_forget(m, &m->live[i]);
	}
	switch (way % 6) {
	case 0:
		mr_pool_frag_free_bulk(m->pool, addrs, n_addrs);
		break;
	case 1:
		mr_frag_free_bulk(cache, addrs, n_addrs);
		break;
	case 2:
		mr_frag_free_bulk(m->foreign, addrs, n_addrs);
		break;
	case 3:
		mr_pool_frag_free_bulk(m->beside, addrs, n_addrs);
		break;
	default:
		for (uint32_t i = 0; i < n_addrs; i++) {
			const struct mr_frame frame = { addrs[i], 1, 0 };

			mr_frame_free_bulk(cache, &frame, 1);
		}
		break;
	}
}

static inline void model_ref(struct model *m, struct mr_cache *cache,
			     uint32_t i)
{
	struct model_frag *frag;
	struct mr_frame frame;

	if (m->n_live == 0)
		return;
	frag = &m->live[i % m->n_live];
	frame = (struct mr_frame){ frag->addr, frag->n_bytes, 0 };
	MODEL_CHECK(mr_frame_is_exclusive(cache, &frame) <=
		    (frag->n_refs == 1));
	MODEL_CHECK(mr_frame_ref(cache, &frame, 1) == 0);
	frag->n_refs++;
	MODEL_CHECK(!mr_frame_is_exclusive(cache, &frame));
	MODEL_CHECK(mr_frame_push(cache, &frame, 1) == -EROFS);
	for (int k = 0; k < MODEL_N; k++)
		if (m->cuts[k].block_bytes != 0 &&
		    m->cuts[k].begin == frag->begin)
			m->cuts[k].was_shared = true;
}

/* Take most pages or return them: without blocks, single pages are cut. */
static inline void model_hoard(struct model *m, struct mr_cache *cache)
{
	if (m->n_hoarded > 0) {
		mr_frag_free_bulk(cache, m->hoard, m->n_hoarded);
		m->n_hoarded = 0;
	} else {
		m->n_hoarded = mr_frag_alloc_bulk(cache, m->hoard, MODEL_PAGES,
						  m->page_bytes);
	}
}

/* Replace a cache and its frag cache. */
static inline void model_restart(struct model *m, uint32_t i)
{
	struct model_cut *c = &m->cuts[i];

	mr_frag_cache_destroy(c->frags);
	mr_cache_destroy(m->caches[i]);
	memset(c, 0, sizeof(*c));
	c->last = MR_ADDR_NONE;
	MODEL_CHECK(mr_cache_create(m->pool, &m->caches[i], NULL) == 0);
	MODEL_CHECK(mr_frag_cache_create(m->caches[i], &c->frags, NULL) == 0);
}

static inline void model_abort_last(struct model *m, struct model_cut *c,
				    uint32_t more)
{
	const uint32_t n_before = more == 12; /* wrong by one, at either end */

	if (c->last != MR_ADDR_NONE && model_find(m, c->last) != NULL)
		model_abort(m, c, more & 1, c->last - n_before,
			    (uint32_t)(c->end - c->last) + n_before +
				    (more == 14) - (more == 13));
}

static inline void model_abort_any(struct model *m, struct model_cut *c,
				   uint32_t more, uint32_t with)
{
	const struct model_frag *f;

	if (m->n_live == 0)
		return;
	f = &m->live[with % m->n_live];
	model_abort(m, c, more & 1, f->addr, f->n_bytes);
}

static inline void model_step(struct model *m, uint8_t what, uint8_t with)
{
	static const uint32_t sizes[] = {
		1,    12,   64,   75,   100,  333,  800,   1500,
		2048, 2049, 4000, 4096, 4097, 9000, 32768, 600,
	};
	const uint32_t which = with >> 7;
	struct model_cut *c = &m->cuts[which];
	struct mr_cache *cache = m->caches[which];
	const uint32_t n_bytes = sizes[with & 15];
	const uint32_t align_bytes = (1u << (with >> 4 & 7)) & ~1u;
	const uint32_t more = what >> 4;

	switch (what & 15) {
	case 0:
	case 1:
	case 2:
		model_alloc(m, c, n_bytes, align_bytes, 1);
		break;
	case 3:
		model_alloc(m, c, n_bytes, align_bytes, more + 1);
		break;
	case 4:
		model_abort_last(m, c, more);
		break;
	case 5:
		model_abort_any(m, c, more, with);
		break;
	case 6:
	case 7:
		model_prepare(m, c, n_bytes, align_bytes);
		break;
	case 8:
		model_commit(m, c, false, n_bytes);
		break;
	case 9:
		model_commit(m, c, true, n_bytes);
		break;
	case 10:
	case 11:
	case 12:
		model_free(m, cache, 1 + (with & (more == 0 ? 63 : 7)),
			   1 + more / 4, (more & 3) + (with & 1) * 2);
		break;
	case 13:
		model_ref(m, cache, with);
		break;
	case 14:
		if (more < 6)
			model_drain(c);
		else
			model_hoard(m, cache);
		break;
	default:
		if (more == 0)
			model_restart(m, which);
		break;
	}
}

static inline void model_close(struct model *m)
{
	while (m->n_live > 0)
		model_free(m, m->caches[0], 64, 1, 1 + m->n_live % 2);
	if (m->n_hoarded > 0)
		model_hoard(m, m->caches[1]);
	model_check_pool(m);
	for (int i = 0; i < MODEL_N; i++) {
		mr_frag_cache_destroy(m->cuts[i].frags);
		mr_cache_destroy(m->caches[i]);
	}
	mr_cache_destroy(m->foreign);
	MODEL_CHECK(mr_pool_destroy(m->beside, NULL) == 0);
}

#endif

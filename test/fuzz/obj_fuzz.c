/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: sequences of operations on an object pool and a page pool beside
 * it, against a model that knows what is out.
 *
 * Four bytes choose the pool, then each operation takes two: what, and with
 * which cache and how many.
 */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/millrace.h>
#include <millrace/objpool.h>

#include "region.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* Objects of 24 bytes: bursts of all lengths by two caches. */
	SEED("\x17\x00\x96\x00\x00\x3f\x00\x7f\x01\x3f\x08\x3f\x09\x7f"
	     "\x00\x1f\x01\x1f\x10\x3f\x11\x3f"),
	/* Caches that end with odd numbers left in them. */
	SEED("\x40\x01\xff\x00\x00\x25\x02\x00\x01\x13\x02\x00\x00\x3f"
	     "\x01\x07\x02\x40\x02\x80\x00\x3f\x01\x3f\x02\x00"),
	/* Memory of the caller's; addresses that are none. */
	SEED("\x40\x03\x50\x01\x01\x3f\x03\x05\x03\x85\x00\x3f\x0b\x3f"
	     "\x00\x3f\x00\x3f\x01\x7f"),
	/* Objects that have a page each. */
	SEED("\x3f\x02\x80\x00\x04\x3f\x04\x7f\x05\x1f\x04\x3f\x05\x9f"
	     "\x02\x00\x05\x3f\x05\x3f"),
	{ NULL, 0 },
};

static const uint64_t none = UINT64_MAX;

enum { N_CACHES = 3, MAX_OBJECTS = 600, MAX_UNITS = 4096, N_PAGES = 300 };

struct model {
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pages;
	struct mr_objpool *pool;
	struct mr_objcache *caches[N_CACHES];
	struct mr_cache *page_caches[N_CACHES];
	bool is_callers;
	uint32_t n_objects, stride;
	uint64_t n_invalid;
	/* What is out, the last one last; in memory of the caller's: all that
	 * is not in the pool. */
	uint32_t n_out;
	void *out[MAX_OBJECTS];
	uint64_t page_of[MAX_OBJECTS]; /* that goes with it; none: none */
	uint32_t n_pages_out;
};

static _Alignas(4096) char memory[1 << 20];

static void check_conservation(const struct model *m)
{
	struct mr_objpool_stats s = { .size = sizeof(s) };
	struct mr_pool_stats p = { .size = sizeof(p) };

	FUZZ_CHECK(mr_objpool_stats(m->pool, &s) == 0);
	FUZZ_CHECK(s.n_in_flight == m->n_out);
	FUZZ_CHECK(s.n_free + s.n_in_flight == s.n_objects);
	FUZZ_CHECK(s.n_cached <= s.n_free);
	FUZZ_CHECK(s.free_invalid == m->n_invalid);
	FUZZ_CHECK(s.object_bytes == m->stride);
	FUZZ_CHECK(mr_pool_stats(m->pages, &p) == 0);
	FUZZ_CHECK(p.n_in_flight == m->n_pages_out);
	FUZZ_CHECK(p.n_free + p.n_in_flight == p.n_pages);
}

static uint8_t mark_of(const void *object)
{
	return (uint8_t)((uintptr_t)object >> 3) | 1;
}

/* Objects that came out overlap nothing that is out. */
static void note(struct model *m, void *object, uint64_t page)
{
	for (uint32_t i = 0; i < m->n_out; i++) {
		FUZZ_CHECK((char *)m->out[i] + m->stride <= (char *)object ||
			   (char *)object + m->stride <= (char *)m->out[i]);
		FUZZ_CHECK(page == none || m->page_of[i] != page);
	}
	FUZZ_CHECK(m->n_out < m->n_objects);
	memset(object, mark_of(object), m->stride);
	m->page_of[m->n_out] = page;
	m->out[m->n_out++] = object;
}

static void do_alloc(struct model *m, uint32_t cache_idx, uint32_t n,
		     bool has_pages)
{
	const uint32_t n_free = m->n_objects - m->n_out;
	uint64_t pages[2 * 64] = { 0 };
	void *objects[2 * 64];
	uint32_t n_got;

	if (has_pages)
		n = mr_frag_alloc_bulk(m->page_caches[cache_idx], pages, n,
				       4096);
	n_got = mr_obj_alloc_bulk(m->caches[cache_idx], objects, n);
	FUZZ_CHECK(n_got <= n && n_got <= n_free);
	if (has_pages)
		mr_frag_free_bulk(m->page_caches[cache_idx], pages + n_got,
				  n - n_got);
	for (uint32_t i = 0; i < n_got; i++)
		note(m, objects[i], has_pages ? pages[i] : none);
	m->n_pages_out += has_pages ? n_got : 0;
}

/* The n that came out last, or every second of twice as many. */
static void do_free(struct model *m, uint32_t cache_idx, uint32_t n,
		    bool is_every_second, bool has_bad)
{
	void *objects[2 * 64 + 1];
	uint32_t n_taken = 0, n_kept, first;

	if (is_every_second)
		n *= 2;
	if (n > m->n_out)
		n = m->n_out;
	first = n_kept = m->n_out - n;
	if (has_bad) { /* one that is none, in front */
		objects[n_taken++] = (char *)m->out + 4;
		m->n_invalid++;
	}
	for (uint32_t i = first; i < m->n_out; i++) {
		if (is_every_second && i % 2 != 0) {
			m->page_of[n_kept] = m->page_of[i];
			m->out[n_kept++] = m->out[i];
			continue;
		}
		for (uint32_t b = 0; b < m->stride; b++)
			FUZZ_CHECK(((uint8_t *)m->out[i])[b] ==
				   mark_of(m->out[i]));
		if (m->page_of[i] != none) {
			mr_frag_free_bulk(m->page_caches[cache_idx],
					  &m->page_of[i], 1);
			m->n_pages_out--;
		}
		objects[n_taken++] = m->out[i];
	}
	m->n_out = n_kept;
	mr_obj_free_bulk(m->caches[cache_idx], objects, n_taken);
}

/* Addresses around those that are out: none of them is an object. */
static void do_bad(struct model *m, uint32_t cache_idx, uint32_t by)
{
	const uint32_t align_bytes = 8;
	void *bad;

	if (m->n_out == 0 || by % align_bytes == 0)
		return;
	bad = (char *)m->out[by % m->n_out] + by % m->stride;
	if ((uintptr_t)bad % align_bytes == 0)
		return;
	mr_obj_free_bulk(m->caches[cache_idx], &bad, 1);
	m->n_invalid++;
}

static void do_cache(struct model *m, uint32_t cache_idx)
{
	mr_objcache_destroy(m->caches[cache_idx]);
	FUZZ_CHECK(mr_objcache_create(m->pool, &m->caches[cache_idx], NULL) ==
		   0);
	mr_cache_destroy(m->page_caches[cache_idx]);
	FUZZ_CHECK(mr_cache_create(m->pages, &m->page_caches[cache_idx],
				   NULL) == 0);
}

static void step(struct model *m, uint8_t what, uint8_t with)
{
	const uint32_t cache_idx = (with >> 6) % N_CACHES;
	const uint32_t n = ((with & 63u) + 1) << (what >> 7);

	switch (what % 8) {
	case 0:
	case 6:
		do_alloc(m, cache_idx, n, false);
		break;
	case 1:
	case 5:
		do_free(m, cache_idx, (n + 1) / 2, what & 16, what & 8);
		break;
	case 2:
		do_cache(m, cache_idx);
		break;
	case 3:
		do_bad(m, cache_idx, n);
		break;
	case 4:
		do_alloc(m, cache_idx, n, true);
		break;
	default:
		check_conservation(m);
		break;
	}
}

static void open_pool(struct model *m, const uint8_t *shape)
{
	struct mr_objpool_config config = {
		.size = sizeof(config),
		.object_bytes = shape[0] + 1u,
		.align_bytes = 8u << shape[1] % 4,
		.n_objects = 1 + (shape[2] | (shape[3] & 1u) << 8),
		.max_caches = N_CACHES,
	};
	const struct mr_pool_config pages_config = {
		.size = sizeof(pages_config),
		.n_pages = N_PAGES,
		.region = m->region,
		.max_caches = N_CACHES,
	};

	m->is_callers = shape[3] & 2;
	m->n_objects = (uint32_t)config.n_objects;
	m->stride = (config.object_bytes + config.align_bytes - 1) /
		    config.align_bytes * config.align_bytes;
	m->n_out = m->n_pages_out = 0;
	m->n_invalid = 0;
	if (m->is_callers) {
		config.memory = memory;
		config.memory_bytes = sizeof(memory);
	}
	FUZZ_CHECK(mr_objpool_create(m->ctx, &config, &m->pool, NULL) == 0);
	FUZZ_CHECK(mr_pool_create(m->ctx, &pages_config, &m->pages, NULL) == 0);
	for (uint32_t c = 0; c < N_CACHES; c++) {
		FUZZ_CHECK(mr_objcache_create(m->pool, &m->caches[c], NULL) ==
			   0);
		FUZZ_CHECK(mr_cache_create(m->pages, &m->page_caches[c],
					   NULL) == 0);
	}
	/* The caller's objects are all out first, with a gap between them. */
	for (uint32_t i = 0; m->is_callers && i < m->n_objects; i++)
		note(m, memory + i * (m->stride + config.align_bytes), none);
}

static void close_pool(struct model *m)
{
	for (uint32_t i = 0; m->n_out > 0; i++)
		do_free(m, i % N_CACHES, 64, false, false);
	check_conservation(m);
	for (uint32_t c = 0; c < N_CACHES; c++) {
		mr_objcache_destroy(m->caches[c]);
		mr_cache_destroy(m->page_caches[c]);
	}
	/* With no other cache about, one has them all. */
	FUZZ_CHECK(mr_objcache_create(m->pool, &m->caches[0], NULL) == 0);
	while (m->n_out < m->n_objects) {
		const uint32_t n_before = m->n_out;

		do_alloc(m, 0, 64, false);
		FUZZ_CHECK(m->n_out > n_before);
		FUZZ_CHECK(m->n_out % 64 == 0 || m->n_out == m->n_objects);
	}
	while (m->n_out > 0)
		do_free(m, 0, 64, false, false);
	mr_objcache_destroy(m->caches[0]);
	FUZZ_CHECK(mr_objpool_destroy(m->pool, NULL) == 0);
	FUZZ_CHECK(mr_pool_destroy(m->pages, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct model m; /* context and region stay for the next input */

	fuzz_region(&m.ctx, &m.region);
	if (n_bytes < 4)
		return 0;
	open_pool(&m, data);
	for (size_t i = 4; i + 1 < n_bytes && i < 400; i += 2) {
		step(&m, data[i], data[i + 1]);
		if (i % 64 == 0)
			check_conservation(&m);
	}
	close_pool(&m);
	return 0;
}

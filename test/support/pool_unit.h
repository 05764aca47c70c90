/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by unit tests of pools. */
#ifndef SUPPORT_POOL_UNIT_H
#define SUPPORT_POOL_UNIT_H

#include "support/unit.h"

#include <stdbool.h>
#include <time.h>

#include <millrace/driver.h>
#include <millrace/frame.h>
#include <millrace/pool.h>

#include "mem/mem.h"
#include "pool/pool.h"
#include "support/invariants.h"

struct pool_fixture {
	struct test_allocator allocator; /* first: the hooks' opaque */
	uint64_t now_ns;                 /* the clock; 0: the real one */
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pool;
	struct mr_cache *cache;
	uint8_t *base;
};

static inline uint64_t fixture_clock(void *opaque)
{
	const struct pool_fixture *f = opaque;
	struct timespec now;

	if (f->now_ns != 0)
		return f->now_ns;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Create a pool with one cache, in a region of 4 KiB OS pages. */
static inline void fixture_open_at(struct pool_fixture *f, uint64_t now_ns,
				   struct mr_pool_config config)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config), .os_pages = MR_OS_PAGES_4K
	};

	config.size = sizeof(config);
	memset(f, 0, sizeof(*f));
	f->now_ns = now_ns;
	f->ctx = test_ctx_with(&f->allocator, fixture_clock);
	assert_int_equal(
		mr_region_create(f->ctx, &region_config, &f->region, NULL), 0);
	config.region = f->region;
	assert_int_equal(mr_pool_create(f->ctx, &config, &f->pool, NULL), 0);
	assert_int_equal(mr_cache_create(f->pool, &f->cache, NULL), 0);
	f->base = mr_region_base(f->region);
}

static inline void fixture_open_with(struct pool_fixture *f,
				     struct mr_pool_config config)
{
	fixture_open_at(f, 0, config);
}

static inline void fixture_open(struct pool_fixture *f, uint32_t n_pages,
				uint32_t page_bytes)
{
	fixture_open_with(
		f, (struct mr_pool_config){ .n_pages = n_pages,
					    .page_bytes = page_bytes });
}

static inline struct mr_pool_stats pool_stats(const struct mr_pool *pool)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_pool_stats(pool, &stats), 0);
	return stats;
}

/* Check conservation: exactly n pages are in flight. */
static inline void assert_in_flight(const struct mr_pool *pool, uint64_t n)
{
	const struct mr_pool_stats s = pool_stats(pool);

	assert_int_equal(s.n_in_flight, n);
	assert_int_equal(s.n_free + s.n_in_flight, s.n_pages);
}

/* Check that no magazine is lost, and that empty ones have no pages. */
static inline void assert_magazines(struct mr_pool *pool)
{
	uint64_t n_failed = 0;
	uint32_t n = 0;
	struct mri_depot *depot = &pool->depot;
	struct mri_magazine *magazine;

	while ((magazine = mri_depot_take(depot, &depot->filled, &n_failed)) !=
	       NULL) {
		assert_in_range(magazine->n, 1, depot->magazine_pages);
		n++;
	}
	while ((magazine = mri_depot_take(depot, &depot->empty, &n_failed)) !=
	       NULL) {
		assert_int_equal(magazine->n, 0);
		n++;
	}
	assert_int_equal(n, depot->n_magazines);
}

/* Check that all pages are free and exist once; destroy everything. */
static inline void fixture_close(struct pool_fixture *f)
{
	uint64_t *addrs;
	bool *is_seen;
	uint32_t n;

	mr_cache_destroy(f->cache);
	assert_in_flight(f->pool, 0);
	n = mri_page_alloc_max_pages(&f->pool->page_alloc);
	addrs = calloc(n + 1, sizeof(*addrs));
	is_seen = calloc(n, sizeof(*is_seen));
	assert_int_equal(mr_pool_frag_alloc_bulk(f->pool, addrs, n + 1),
			 n);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t page = mri_page_of(f->pool, addrs[i]);

		assert_true(page < n && !is_seen[page]);
		assert_int_equal(addrs[i] % f->pool->page_bytes, 0);
		is_seen[page] = true;
	}
	mr_pool_frag_free_bulk(f->pool, addrs, n);
	assert_magazines(f->pool);
	free(addrs);
	free(is_seen);
	assert_int_equal(mr_pool_destroy(f->pool, NULL), 0);
	assert_int_equal(mr_region_destroy(f->region, NULL), 0);
	mr_ctx_destroy(f->ctx);
	f->ctx = NULL;
	assert_int_equal(f->allocator.n_out, 0);
}

static inline struct mr_cache_stats cache_stats(const struct mr_cache *cache)
{
	struct mr_cache_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_cache_stats(cache, &stats), 0);
	return stats;
}

static inline uint64_t alloc_one(struct mr_cache *cache, uint32_t n_bytes)
{
	uint64_t addr = UINT64_MAX;

	assert_int_equal(mr_frag_alloc_bulk(cache, &addr, 1, n_bytes), 1);
	return addr;
}

/* Create another pool in the fixture's region. */
static inline struct mr_pool *pool_beside(struct pool_fixture *f,
					  uint32_t n_pages, uint32_t page_bytes)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = n_pages,
					       .page_bytes = page_bytes,
					       .region = f->region,
					       .name = "beside" };
	struct mr_pool *pool = NULL;

	assert_int_equal(mr_pool_create(f->ctx, &config, &pool, NULL), 0);
	return pool;
}

/* Read the counters of a tx queue, and check their invariants. */
static inline struct mr_tx_stats fixture_tx_stats(const struct mr_txq *txq)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_txq_stats(txq, &stats), 0);
	assert_true(invariants_of_tx_hold(&stats));
	return stats;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/outbox.c and free.c: pages of other pools on their way. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "support/pool_unit.h"

#include <millrace/experimental/frag.h>
#include <millrace/experimental/page.h>

enum { MAG = MR_MAGAZINE_PAGES, N_BESIDE = 5 };

/* Pools beside that of the fixture, in one region, each with a cache. */
static struct beside {
	struct pool_fixture f;
	struct mr_pool *pools[N_BESIDE];
	struct mr_cache *caches[N_BESIDE];
	uint64_t addrs[N_BESIDE][256]; /* all pages; those freed come first */
	uint32_t n_freed[N_BESIDE];
} b;

static void open_beside(void)
{
	memset(&b, 0, sizeof(b));
	fixture_open(&b.f, 256, 4096);
	for (int i = 0; i < N_BESIDE; i++) {
		b.pools[i] = pool_beside(&b.f, 256, 2048);
		assert_int_equal(
			mr_cache_create(b.pools[i], &b.caches[i], NULL), 0);
		assert_int_equal(
			mr_frag_alloc_bulk(b.caches[i], b.addrs[i], 256, 2048),
			256);
	}
}

static void close_beside(void)
{
	mr_cache_flush(b.f.cache);
	for (int i = 0; i < N_BESIDE; i++) {
		mr_frag_free_bulk(b.caches[i], b.addrs[i] + b.n_freed[i],
				  256 - b.n_freed[i]);
		assert_in_flight(b.pools[i], 0);
		mr_cache_destroy(b.caches[i]);
		assert_magazines(b.pools[i]);
		assert_int_equal(mr_pool_destroy(b.pools[i], NULL), 0);
	}
	fixture_close(&b.f);
}

/* The cache of the fixture frees n more pages of a pool, in one burst. */
static void free_pages(int i, uint32_t n)
{
	mr_frag_free_bulk(b.f.cache, b.addrs[i] + b.n_freed[i], n);
	b.n_freed[i] += n;
}

static void check_counts(int i, uint64_t n_open, uint64_t n_depot)
{
	const struct mr_pool_stats s = pool_stats(b.pools[i]);

	assert_int_equal(s.n_open, n_open);
	assert_int_equal(s.n_depot, n_depot);
	assert_int_equal(s.n_free + s.n_in_flight, s.n_pages);
}

/* Calls that free, but no page of another pool. */
static void free_own(uint32_t n_calls)
{
	for (uint32_t i = 0; i < n_calls; i++) {
		const uint64_t own = alloc_one(b.f.cache, 4096);

		mr_frag_free_bulk(b.f.cache, &own, 1);
	}
}

static void be_idle(uint32_t n_calls)
{
	while (n_calls-- > 0)
		mr_cache_idle(b.f.cache);
}

TEST(full_magazine_goes_to_the_depot_of_its_pool)
{
	open_beside();
	free_pages(0, MAG - 1);
	check_counts(0, MAG - 1, 0);
	assert_int_equal(cache_stats(b.f.cache).n_open, MAG - 1);
	free_pages(0, 1);
	check_counts(0, 0, MAG);
	assert_int_equal(cache_stats(b.f.cache).n_open, 0);
	free_pages(0, 192); /* more than one in a burst */
	check_counts(0, 0, 4 * MAG);
	assert_in_flight(b.pools[0], 0);
	assert_int_equal(pool_stats(b.f.pool).recycle_ring, 256);
	close_beside();
}

/* The magazine that was sent half full is used like any other. */
TEST(partial_magazine_is_fetched_and_counted)
{
	uint64_t again[256];

	open_beside();
	free_pages(0, 10);
	mr_cache_flush(b.f.cache);
	free_pages(0, 7);
	mr_cache_flush(b.f.cache);
	mr_cache_flush(b.f.cache); /* nothing is open */
	check_counts(0, 0, 17);
	assert_int_equal(mr_frag_alloc_bulk(b.caches[0], again, 16, 2048), 16);
	check_counts(0, 0, 0);
	assert_int_equal(pool_stats(b.pools[0]).n_cached, 1);
	mr_frag_free_bulk(b.caches[0], again, 16);
	/* Without a cache as well. */
	free_pages(0, 5);
	mr_cache_flush(b.f.cache);
	assert_int_equal(mr_pool_frag_alloc_bulk(b.pools[0], again, 256), 5);
	mr_pool_frag_free_bulk(b.pools[0], again, 5);
	close_beside();
}

/* The same with frags of a block, one at a time. */
static void free_frags(uint32_t n_calls)
{
	struct mr_frag_cache *frags;
	uint64_t addr;

	assert_int_equal(mr_frag_cache_create(b.f.cache, &frags, NULL), 0);
	for (uint32_t i = 0; i < n_calls; i++) {
		assert_int_equal(mr_frag_cache_alloc(frags, 100, 0, &addr), 0);
		mr_frag_free_bulk(b.f.cache, &addr, 1);
	}
	mr_frag_cache_destroy(frags);
}

/*
 * A core that is idle for a moment between bursts sends full magazines; one
 * that adds nothing sends what it has after two ticks, not before.
 */
TEST(pages_wait_for_more_but_not_for_ever)
{
	static void (*const calls[])(uint32_t n_calls) = { be_idle, free_own,
							   free_frags };

	for (int i = 0; i < 3; i++) {
		open_beside();
		calls[i](1); /* nothing is open */
		for (uint32_t n = 4; n < MAG; n += 4) {
			free_pages(0, 4);
			calls[i](1);
			check_counts(0, n, 0);
		}
		free_pages(0, 4);
		check_counts(0, 0, MAG);
		free_pages(0, 10);
		calls[i](32);
		check_counts(0, 10, MAG);
		calls[i](32);
		check_counts(0, 0, MAG + 10);
		/* A cache of its pool finds no page: at the next tick. */
		free_pages(1, 3);
		__atomic_store_n(&b.pools[1]->is_starving, 1, __ATOMIC_RELAXED);
		calls[i](32);
		check_counts(1, 0, 3);
		close_beside();
	}
}

/* A cache that finds no page says so, and gets what is open there, once. */
TEST(a_cache_without_pages_gets_those_of_open_magazines)
{
	uint64_t addr;

	open_beside();
	free_pages(0, 3);
	free_pages(1, 3);
	assert_int_equal(mr_frag_alloc_bulk(b.caches[0], &addr, 1, 2048), 0);
	free_own(32);
	check_counts(0, 0, 3);
	check_counts(1, 3, 0); /* nobody starves there */
	assert_int_equal(alloc_one(b.caches[0], 2048), b.addrs[0][2]);
	/* It was heard: what is open now stays. */
	b.n_freed[0] = 2;
	free_pages(0, 2);
	free_pages(0, 1);
	check_counts(0, 3, 0);
	close_beside();
}

/*
 * As many pools as there are places: each travels in whole magazines. One more:
 * what comes sends away what is there.
 */
TEST(places_are_for_four_pools)
{
	for (int n_pools = 4; n_pools <= N_BESIDE; n_pools++) {
		uint64_t n_open = 0;
		uint32_t n_pools_open = 0;

		open_beside();
		for (uint32_t k = 0; k < 255; k++)
			for (int i = 0; i < n_pools; i++) {
				free_pages(i, 1);
				assert_in_flight(b.pools[i], 255 - k);
			}
		for (int i = 0; i < n_pools; i++) {
			const struct mr_pool_stats s = pool_stats(b.pools[i]);

			assert_int_equal(s.n_open + s.n_depot, 255);
			if (n_pools == 4)
				check_counts(i, 63, 192);
			n_open += s.n_open;
			n_pools_open += s.n_open > 0;
		}
		assert_true(n_pools_open <= MR_OPEN_MAGAZINES);
		assert_int_equal(cache_stats(b.f.cache).n_open, n_open);
		close_beside();
	}
}

TEST(frees_are_counted_while_a_magazine_is_open)
{
	open_beside();
	assert_int_equal(b.f.cache->n_until_tick, 0);
	free_pages(0, 1);
	assert_int_not_equal(b.f.cache->n_until_tick, 0);
	assert_int_equal(b.f.cache->own_pages, 256);
	free_own(1);
	assert_in_flight(b.f.pool, 0);
	mr_cache_flush(b.f.cache);
	assert_int_equal(b.f.cache->n_until_tick, 0);
	close_beside();
}

TEST(destroyed_cache_sends_what_it_has_open)
{
	open_beside();
	for (int i = 0; i < N_BESIDE; i++)
		free_pages(i, 3);
	mr_cache_destroy(b.f.cache);
	for (int i = 0; i < N_BESIDE; i++)
		check_counts(i, 0, 3);
	mr_cache_create(b.f.pool, &b.f.cache, NULL);
	close_beside();
}

TEST(without_empty_magazines_pages_go_one_by_one)
{
	static int64_t places[10000];
	struct mri_stack *empty;
	uint64_t n_failed = 0;
	uint32_t n = 0;

	open_beside();
	empty = &b.pools[0]->depot.empty;
	while ((places[n] = mri_stack_pop(empty, &n_failed)) >= 0)
		n++;
	free_pages(0, 100);
	check_counts(0, 0, 0);
	assert_in_flight(b.pools[0], 156);
	assert_int_equal(pool_stats(b.f.pool).recycle_ring_full, 100);
	assert_int_equal(b.f.cache->n_until_tick, 0);
	while (n > 0)
		mri_stack_push(empty, (uint32_t)places[--n], &n_failed);
	close_beside();
}

/* A place of the region's list is found by what is there now. */
TEST(a_new_pool_in_an_old_place_is_found)
{
	struct mr_pool *late;
	uint64_t addr;

	open_beside();
	mr_frag_free_bulk(b.caches[1], b.addrs[1], 256);
	mr_cache_destroy(b.caches[1]);
	assert_int_equal(mr_pool_destroy(b.pools[1], NULL), 0);
	free_pages(1, 1); /* of no pool now */
	assert_int_equal(pool_stats(b.f.pool).free_invalid, 1);
	late = pool_beside(&b.f, 32, 32768);
	assert_int_equal(mr_pool_frag_alloc_bulk(late, &addr, 1), 1);
	mr_frag_free_bulk(b.f.cache, &addr, 1);
	assert_int_equal(pool_stats(late).n_open, 1);
	mr_cache_flush(b.f.cache);
	assert_int_equal(mr_pool_destroy(late, NULL), 0);
	b.pools[1] = pool_beside(&b.f, 256, 2048);
	mr_cache_create(b.pools[1], &b.caches[1], NULL);
	b.n_freed[1] = 256;
	close_beside();
}

/* Each flush sends a magazine of one page, until there are no empty ones. */
TEST(cache_is_made_from_a_depot_of_small_magazines)
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = 64,
					 .max_caches = 1 };
	struct pool_fixture f;
	struct mr_pool *small;
	struct mr_cache *cache;
	uint64_t addrs[64];

	fixture_open(&f, 256, 4096);
	config.region = f.region;
	assert_int_equal(mr_pool_create(f.ctx, &config, &small, NULL), 0);
	assert_int_equal(mr_pool_frag_alloc_bulk(small, addrs, 64), 64);
	assert_in_range(small->depot.n_magazines, 2, 63);
	for (int i = 0; i < 63; i++) {
		mr_frag_free_bulk(f.cache, &addrs[i], 1);
		mr_cache_flush(f.cache);
	}
	assert_in_flight(small, 1);
	assert_int_equal(mr_cache_create(small, &cache, NULL), 0);
	assert_in_flight(small, 1);
	assert_int_equal(mr_frag_alloc_bulk(cache, addrs, 64, 4096), 63);
	assert_in_flight(small, 64);
	mr_frag_free_bulk(cache, addrs, 64);
	mr_cache_destroy(cache);
	assert_in_flight(small, 0);
	assert_magazines(small);
	assert_int_equal(mr_pool_destroy(small, NULL), 0);
	fixture_close(&f);
}

/* What one thread frees one by one, while another wants the pool gone. */
struct leaving {
	struct mr_cache *cache;
	uint64_t addrs[128];
	uint32_t n;
	uint32_t is_begun; /* atomic */
};

static void *free_all(void *opaque)
{
	struct leaving *l = (struct leaving *)opaque;

	__atomic_store_n(&l->is_begun, 1, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < l->n; i++) {
		/* Before a full magazine goes, and before the last page. */
		if (i + 2 >= l->n)
			for (uint32_t k = 0; k < 5000; k++)
				__atomic_load_n(&l->is_begun, __ATOMIC_ACQUIRE);
		mr_frag_free_bulk(l->cache, &l->addrs[i], 1);
	}
	mr_cache_flush(l->cache);
	return NULL;
}

/* Not before the last page is where it belongs, nor while it is on its way. */
TEST(pool_is_destroyed_when_its_pages_are_back)
{
	struct pool_fixture f;
	struct leaving l;

	fixture_open(&f, 256, 4096);
	l.cache = f.cache;
	for (uint32_t round = 0; round < 200; round++) {
		const uint32_t order = round % 4 == 3 ? 3 : 0;
		const uint32_t n = order == 0 ? MAG + 1 : 16;
		struct mr_pool *pool = pool_beside(&f, 256, 4096);
		pthread_t thread;

		l.is_begun = 0;
		l.n = mr_page_alloc_bulk(pool, order, l.addrs, n);
		assert_int_equal(l.n, n);
		assert_int_equal(pthread_create(&thread, NULL, free_all, &l),
				 0);
		while (__atomic_load_n(&l.is_begun, __ATOMIC_RELAXED) == 0)
			sched_yield();
		while (mr_pool_destroy(pool, NULL) == -EBUSY)
			;
		pthread_join(thread, NULL);
	}
	assert_int_equal(pool_stats(f.pool).free_invalid, 0);
	fixture_close(&f);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/outbox.c and free.c: pages of other pools on their way. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>

#include "support/pool_unit.h"

#include <millrace/page.h>

enum { MAG = MR_MAGAZINE_PAGES, N_BESIDE = 5 };

/* Pools beside that of the fixture, in one region, each with a cache. */
struct beside {
	struct pool_fixture f;
	struct mr_pool *pools[N_BESIDE];
	struct mr_cache *caches[N_BESIDE];
	uint64_t addrs[N_BESIDE][256];
};

static void open_beside(struct beside *b)
{
	fixture_open(&b->f, 256, 4096, 4096);
	for (int i = 0; i < N_BESIDE; i++) {
		b->pools[i] = pool_beside(&b->f, 256, 2048);
		assert_int_equal(
			mr_cache_create(b->pools[i], &b->caches[i], NULL), 0);
		assert_int_equal(mr_frag_alloc_bulk(b->caches[i], b->addrs[i],
						    256, 2048),
				 256);
	}
}

/* The first n_back[i] pages are back, or open in the first cache. */
static void close_beside(struct beside *b, const uint32_t n_back[N_BESIDE])
{
	mr_cache_flush(b->f.cache);
	for (int i = 0; i < N_BESIDE; i++) {
		mr_frag_free_bulk(b->caches[i], b->addrs[i] + n_back[i],
				  256 - n_back[i]);
		assert_in_flight(b->pools[i], 0);
		mr_cache_destroy(b->caches[i]);
		assert_magazines(b->pools[i]);
		assert_int_equal(mr_pool_destroy(b->pools[i], NULL), 0);
	}
	fixture_close(&b->f);
}

static void expect(const struct beside *b, int i, uint64_t n_open,
		   uint64_t n_depot)
{
	const struct mr_pool_stats s = pool_stats(b->pools[i]);

	assert_int_equal(s.n_open, n_open);
	assert_int_equal(s.n_depot, n_depot);
	assert_int_equal(s.n_free + s.n_in_flight, s.n_pages);
}

TEST(full_magazine_goes_to_the_depot_of_its_pool)
{
	static struct beside b;

	open_beside(&b);
	mr_frag_free_bulk(b.f.cache, b.addrs[0], MAG - 1);
	expect(&b, 0, MAG - 1, 0);
	assert_int_equal(cache_stats(b.f.cache).n_open, MAG - 1);
	mr_frag_free_bulk(b.f.cache, b.addrs[0] + MAG - 1, 1);
	expect(&b, 0, 0, MAG);
	assert_int_equal(cache_stats(b.f.cache).n_open, 0);
	/* More than one in a burst. */
	mr_frag_free_bulk(b.f.cache, b.addrs[0] + MAG, 192);
	expect(&b, 0, 0, 4 * MAG);
	assert_in_flight(b.pools[0], 0);
	assert_int_equal(pool_stats(b.f.pool).recycle_ring, 256);
	close_beside(&b, (const uint32_t[N_BESIDE]){ 256 });
}

/* The magazine that was sent half full is used like any other. */
TEST(partial_magazine_is_fetched_and_counted)
{
	static struct beside b;
	uint64_t again[256];

	open_beside(&b);
	mr_frag_free_bulk(b.f.cache, b.addrs[0], 10);
	mr_cache_flush(b.f.cache);
	mr_frag_free_bulk(b.f.cache, b.addrs[0] + 10, 7);
	mr_cache_flush(b.f.cache);
	mr_cache_flush(b.f.cache); /* nothing is open */
	expect(&b, 0, 0, 17);
	assert_int_equal(mr_frag_alloc_bulk(b.caches[0], again, 16, 2048), 16);
	expect(&b, 0, 0, 0);
	assert_int_equal(pool_stats(b.pools[0]).n_cached, 1);
	mr_frag_free_bulk(b.caches[0], again, 16);
	/* Without a cache as well. */
	mr_frag_free_bulk(b.f.cache, b.addrs[0] + 17, 5);
	mr_cache_flush(b.f.cache);
	assert_int_equal(
		mr_pool_frag_alloc_bulk(b.pools[0], again, 256, 2048), 5);
	mr_pool_frag_free_bulk(b.pools[0], again, 5);
	close_beside(&b, (const uint32_t[N_BESIDE]){ 22 });
}

static uint64_t n_idle_calls_until_sent(struct beside *b)
{
	uint64_t n = 0;

	while (cache_stats(b->f.cache).n_open != 0 && n < 1000) {
		mr_cache_idle(b->f.cache);
		n++;
	}
	return n;
}

/* A core that is idle for a moment between bursts sends full magazines. */
TEST(idle_calls_wait_for_more_but_not_for_ever)
{
	static struct beside b;

	open_beside(&b);
	mr_cache_idle(b.f.cache); /* nothing is open */
	for (uint32_t i = 0; i < MAG; i += 4) {
		expect(&b, 0, i, 0);
		mr_frag_free_bulk(b.f.cache, b.addrs[0] + i, 4);
		mr_cache_idle(b.f.cache);
	}
	expect(&b, 0, 0, MAG);
	mr_frag_free_bulk(b.f.cache, b.addrs[0] + MAG, 10);
	assert_in_range(n_idle_calls_until_sent(&b), 32, 64);
	expect(&b, 0, 0, MAG + 10);
	/* Somebody starves: at once. */
	mr_frag_free_bulk(b.f.cache, b.addrs[1], 3);
	__atomic_store_n(&b.pools[1]->is_starving, 1, __ATOMIC_RELAXED);
	assert_int_equal(n_idle_calls_until_sent(&b), 1);
	expect(&b, 1, 0, 3);
	close_beside(&b, (const uint32_t[N_BESIDE]){ MAG + 10, 3 });
}

/* One more than there are places: what comes sends away what is there. */
TEST(five_pools_pass_through_four_places)
{
	static struct beside b;
	uint64_t burst[N_BESIDE], n_open = 0;
	uint32_t n_pools_open = 0;

	open_beside(&b);
	for (int k = 0; k < 256; k++) {
		for (int i = 0; i < N_BESIDE; i++)
			burst[i] = b.addrs[i][k];
		mr_frag_free_bulk(b.f.cache, burst, N_BESIDE);
		for (int i = 0; i < N_BESIDE; i++)
			assert_in_flight(b.pools[i], 255 - (uint64_t)k);
	}
	for (int i = 0; i < N_BESIDE; i++) {
		const struct mr_pool_stats s = pool_stats(b.pools[i]);

		assert_int_equal(s.n_open + s.n_depot, 256);
		n_open += s.n_open;
		n_pools_open += s.n_open > 0;
	}
	assert_true(n_pools_open <= MR_OPEN_MAGAZINES);
	assert_int_equal(cache_stats(b.f.cache).n_open, n_open);
	close_beside(&b, (const uint32_t[N_BESIDE]){ 256, 256, 256, 256, 256 });
}

/* As many as there are places: each travels in whole magazines. */
TEST(four_pools_do_not_meet)
{
	static struct beside b;

	open_beside(&b);
	for (int k = 0; k < 256; k++)
		for (int i = 0; i < N_BESIDE; i++)
			if (i != 2)
				mr_frag_free_bulk(b.f.cache, &b.addrs[i][k], 1);
	for (int i = 0; i < N_BESIDE; i++)
		expect(&b, i, 0, i == 2 ? 0 : 256);
	for (int i = 0; i < N_BESIDE; i++) {
		uint64_t again[64];

		if (i == 2)
			continue;
		mr_frag_alloc_bulk(b.caches[i], again, 64, 2048);
		assert_int_equal(pool_stats(b.pools[i]).alloc_refill, 1);
		assert_int_equal(pool_stats(b.pools[i]).n_depot, 192);
		mr_frag_free_bulk(b.caches[i], again, 64);
	}
	close_beside(&b, (const uint32_t[N_BESIDE]){ 256, 256, 0, 256, 256 });
}

TEST(every_call_is_simple_again_when_nothing_is_open)
{
	static struct beside b;
	uint64_t own[32];

	open_beside(&b);
	assert_int_equal(b.f.cache->fast_pages, 256);
	mr_frag_free_bulk(b.f.cache, b.addrs[0], 1);
	assert_int_equal(b.f.cache->fast_pages, 0);
	mr_frag_alloc_bulk(b.f.cache, own, 32, 4096);
	mr_frag_free_bulk(b.f.cache, own, 32);
	assert_in_flight(b.f.pool, 0);
	mr_cache_flush(b.f.cache);
	assert_int_equal(b.f.cache->fast_pages, 256);
	close_beside(&b, (const uint32_t[N_BESIDE]){ 1 });
}

/* Free calls that add nothing send it away after two ticks, not before. */
TEST(what_stays_the_same_is_sent_after_two_ticks)
{
	static struct beside b;
	uint64_t own;
	int n_calls = 0;

	open_beside(&b);
	mr_frag_free_bulk(b.f.cache, b.addrs[0], 3);
	while (pool_stats(b.pools[0]).n_open > 0) {
		own = alloc_one(b.f.cache, 4096);
		mr_frag_free_bulk(b.f.cache, &own, 1);
		assert_true(++n_calls <= 64);
	}
	assert_true(n_calls > 32);
	expect(&b, 0, 0, 3);
	/* What grows stays: 8 pages per tick come to whole magazines. */
	for (int k = 3; k < 3 + MAG; k++) {
		for (int i = 0; i < 4; i++) {
			own = alloc_one(b.f.cache, 4096);
			mr_frag_free_bulk(b.f.cache, &own, 1);
		}
		mr_frag_free_bulk(b.f.cache, &b.addrs[0][k], 1);
		expect(&b, 0, k == 2 + MAG ? 0 : (uint64_t)k - 2,
		       k == 2 + MAG ? 3 + MAG : 3);
	}
	close_beside(&b, (const uint32_t[N_BESIDE]){ 3 + MAG });
}

/* Who finds no page says so, and gets what is open with the next free call. */
TEST(starving_cache_is_heard)
{
	static struct beside b;
	uint64_t own = 0, addr;

	open_beside(&b);
	own = alloc_one(b.f.cache, 4096);
	mr_frag_free_bulk(b.f.cache, b.addrs[0], 3);
	mr_frag_free_bulk(b.f.cache, b.addrs[1], 3);
	assert_int_equal(mr_frag_alloc_bulk(b.caches[0], &addr, 1, 2048), 0);
	mr_frag_free_bulk(b.f.cache, &own, 1);
	expect(&b, 0, 0, 3);
	expect(&b, 1, 3, 0); /* nobody starves there */
	assert_int_equal(alloc_one(b.caches[0], 2048), b.addrs[0][2]);
	/* It was heard: what is open now stays. */
	mr_frag_free_bulk(b.f.cache, b.addrs[0] + 2, 2);
	mr_frag_free_bulk(b.f.cache, b.addrs[0] + 4, 1);
	expect(&b, 0, 3, 0);
	close_beside(&b, (const uint32_t[N_BESIDE]){ 5, 3 });
}

TEST(destroyed_cache_sends_what_it_has_open)
{
	static struct beside b;

	open_beside(&b);
	for (int i = 0; i < N_BESIDE; i++)
		mr_frag_free_bulk(b.f.cache, b.addrs[i], 3);
	mr_cache_destroy(b.f.cache);
	for (int i = 0; i < N_BESIDE; i++)
		expect(&b, i, 0, 3);
	mr_cache_create(b.f.pool, &b.f.cache, NULL);
	close_beside(&b, (const uint32_t[N_BESIDE]){ 3, 3, 3, 3, 3 });
}

TEST(without_empty_magazines_pages_go_one_by_one)
{
	static struct beside b;
	static int64_t places[10000];
	uint64_t n_failed = 0;
	uint32_t n = 0;

	open_beside(&b);
	while ((places[n] = mri_stack_pop(&b.pools[0]->depot.empty,
					  &n_failed)) >= 0)
		n++;
	mr_frag_free_bulk(b.f.cache, b.addrs[0], 100);
	expect(&b, 0, 0, 0);
	assert_in_flight(b.pools[0], 156);
	assert_int_equal(pool_stats(b.f.pool).recycle_ring_full, 100);
	assert_int_equal(b.f.cache->fast_pages, 256);
	while (n > 0)
		mri_stack_push(&b.pools[0]->depot.empty, (uint32_t)places[--n],
			       &n_failed);
	close_beside(&b, (const uint32_t[N_BESIDE]){ 100 });
}

/* A place of the region's list is found by what is there now. */
TEST(pools_are_found_after_others_have_gone)
{
	static struct beside b;
	struct mr_pool *late;
	uint64_t addr;

	open_beside(&b);
	for (int i = 0; i < N_BESIDE; i++)
		mr_frag_free_bulk(b.caches[i], b.addrs[i], 256);
	mr_cache_destroy(b.caches[1]);
	assert_int_equal(mr_pool_destroy(b.pools[1], NULL), 0);
	mr_frag_free_bulk(b.f.cache, b.addrs[1], 1); /* of no pool now */
	assert_int_equal(pool_stats(b.f.pool).free_invalid, 1);
	late = pool_beside(&b.f, 32, 32768);
	assert_int_equal(mr_pool_frag_alloc_bulk(late, &addr, 1, 32768), 1);
	mr_frag_free_bulk(b.f.cache, &addr, 1);
	assert_int_equal(pool_stats(late).n_open, 1);
	mr_cache_flush(b.f.cache);
	assert_int_equal(mr_pool_destroy(late, NULL), 0);
	b.pools[1] = pool_beside(&b.f, 256, 2048);
	mr_cache_create(b.pools[1], &b.caches[1], NULL);
	close_beside(&b, (const uint32_t[N_BESIDE]){ 256, 256, 256, 256, 256 });
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

	fixture_open(&f, 256, 4096, 4096);
	config.region = f.region;
	assert_int_equal(mr_pool_create(f.ctx, &config, &small, NULL), 0);
	assert_int_equal(mr_pool_frag_alloc_bulk(small, addrs, 64, 4096), 64);
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

	fixture_open(&f, 256, 4096, 4096);
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

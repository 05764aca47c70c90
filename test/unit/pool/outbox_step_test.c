/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool/outbox.c with somebody else who wants the pool gone, ahead
 * of each atomic operation in turn: he is refused until the last page is where
 * it belongs, and nothing touches the pool after that.
 */
#include "support/stepped_depot.h"

#define mr_cache_flush stepped_cache_flush
#define mr_cache_idle stepped_cache_idle
#define mri_outbox_put stepped_outbox_put
#define mri_outbox_tick stepped_outbox_tick
#define mri_outbox_add stepped_outbox_add

#include "support/pool_unit.h"

/* Who is asked to go ahead of step `at`; NULL: nobody. */
static struct {
	struct mr_pool *pool;
	uint32_t n_steps, at;
	int err; /* what it was told */
} leaving;

static void atomic_step(void)
{
	struct mr_pool *pool = leaving.pool;

	if (pool == NULL || ++leaving.n_steps != leaving.at)
		return;
	leaving.pool = NULL; /* what destroying does is no step */
	leaving.err = mr_pool_destroy(pool, NULL);
	leaving.pool = pool;
}

#include "support/stepped.h"

#include "pool/depot/depot.c"

#include "pool/outbox.c"

/* One more way to send n pages of a pool that has no other user. */
static uint32_t send_pages(struct pool_fixture *f, uint32_t n, uint32_t at)
{
	struct mr_pool *pool = pool_beside(f, 2 * MR_MAGAZINE_PAGES, 4096);
	uint64_t addrs[MR_MAGAZINE_PAGES];
	uint32_t n_steps;

	assert_int_equal(mr_pool_frag_alloc_bulk(pool, addrs, n), n);
	leaving.n_steps = 0;
	leaving.at = at;
	leaving.err = -EBUSY;
	leaving.pool = pool;
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t page = mri_page_of(pool, addrs[i]);

		stepped_outbox_put(f->cache, pool, &page, 1);
	}
	/* Where all are back he may go, and a flush has nothing to send. */
	if (f->cache->n_open > 0)
		stepped_cache_flush(f->cache);
	leaving.pool = NULL;
	n_steps = leaving.n_steps;
	if (leaving.err != -EBUSY)
		fail_msg("a pool of %u pages was destroyed ahead of step %u", n,
			 at);
	assert_in_flight(pool, 0);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
	return n_steps;
}

TEST(pool_is_kept_until_its_last_page_is_back)
{
	static const uint32_t counts[] = { 1, 2, MR_MAGAZINE_PAGES };
	struct pool_fixture f;

	fixture_open(&f, 64, 4096);
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t n_steps = send_pages(&f, counts[i], 0);

		/* The last one says that it is back: it comes after none. */
		assert_in_range(n_steps, 4, 1000);
		for (uint32_t at = 1; at <= n_steps; at++)
			assert_int_equal(send_pages(&f, counts[i], at),
					 n_steps);
	}
	fixture_close(&f);
}

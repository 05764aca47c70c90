/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/debug/site.c: who has what is out. */
#include "support/safety_unit.h"

#include "support/pool_test.h"

#include <millrace/experimental/frag.h>

__attribute__((noinline)) static void take_here(struct mr_cache *cache,
						uint64_t *addrs, uint32_t n)
{
	assert_int_equal(mr_frag_alloc_bulk(cache, addrs, n, 4096), n);
}

__attribute__((noinline)) static void take_there(struct mr_pool *pool,
						 uint64_t *addrs, uint32_t n)
{
	assert_int_equal(mr_pool_frag_alloc_bulk(pool, addrs, n), n);
}

TEST_POOL(leaks_have_place_and_age)
{
	struct mr_leak leaks[4];
	struct mr_reason reason;
	struct mr_pool *pool;
	uint64_t addrs[8];

	fixture_open_at(&f, 5000000000,
			(struct mr_pool_config){ .n_pages = 128,
						 .safety = MR_SAFETY_STATES });
	pool = f.pool;
	assert_int_equal(mr_pool_leaks(pool, leaks, 4), 0);
	take_here(f.cache, addrs, 2);
	take_there(pool, addrs + 2, 5);
	f.now_ns += 7000000000;

	/* Most pages first; those for which there is no room are counted. */
	assert_int_equal(mr_pool_leaks(pool, leaks, 1), 2);
	assert_int_equal(leaks[0].n_pages, 5);
	assert_int_equal(mr_pool_leaks(pool, NULL, 0), 2);
	assert_int_equal(mr_pool_leaks(pool, leaks, 4), 2);
	assert_int_equal(leaks[1].n_pages, 2);
	assert_int_equal(leaks[1].oldest_ns, 7000000000);
	assert_true(leaks[1].addr == addrs[0] || leaks[1].addr == addrs[1]);
	assert_true((uintptr_t)leaks[0].site > (uintptr_t)take_there &&
		    (uintptr_t)leaks[0].site < (uintptr_t)take_there + 400);

	/* Destroy names them, most first. */
	mr_cache_destroy(f.cache);
	assert_int_equal(mr_pool_destroy(pool, &reason), -EBUSY);
	assert_reason_has(&reason, "7 pages of pool are in flight");
	assert_names(reason.text, ": 5 taken by %s+0x",
		     program_invocation_short_name);
	assert_names(reason.text, ", 2 taken by %s+0x",
		     program_invocation_short_name);
	/* Whichever of them comes first in the table. */
	mr_pool_frag_free_bulk(pool, addrs + 2, 4);
	assert_int_equal(mr_pool_leaks(pool, leaks, 4), 2);
	assert_int_equal(leaks[0].n_pages, 2);
	assert_int_equal(leaks[1].n_pages, 1);
	mr_pool_frag_free_bulk(pool, addrs, 2);
	mr_pool_frag_free_bulk(pool, addrs + 6, 1);
	assert_int_equal(mr_pool_leaks(pool, leaks, 4), 0);
	assert_int_equal(mr_cache_create(pool, &f.cache, NULL), 0);
}

/* What the cutters below have out. */
static uint64_t cuts[6];
static uint32_t n_cuts;

__attribute__((noinline)) static void cut_one(struct mr_frag_cache *frags)
{
	assert_int_equal(mr_frag_cache_alloc(frags, 1000, 0, &cuts[n_cuts++]),
			 0);
}

__attribute__((noinline)) static void cut_many(struct mr_frag_cache *frags)
{
	assert_int_equal(
		mr_frag_cache_alloc_bulk(frags, cuts + n_cuts, 3, 1000, 0), 3);
	n_cuts += 3;
}

__attribute__((noinline)) static void prepare_one(struct mr_frag_cache *frags)
{
	struct mr_frag frag;

	assert_int_equal(mr_frag_cache_prepare(frags, 1000, 0, &frag), 0);
	assert_int_equal(mr_frag_cache_commit(frags, &frag, 1000), 1000);
	cuts[n_cuts++] = frag.addr;
}

__attribute__((noinline)) static void map_one(struct mr_frag_cache *frags)
{
	struct mr_frag frag;

	assert_non_null(mr_frag_cache_alloc_prepare(frags, 1000, 0, &frag));
	assert_int_equal(mr_frag_cache_commit(frags, &frag, 1000), 1000);
	cuts[n_cuts++] = frag.addr;
}

/* The call that took a block, whole or of one page, is the one that is named.
 */
TEST_POOL(frags_are_listed_under_the_place_that_cut_them)
{
	static void (*const cutters[])(struct mr_frag_cache *) = {
		cut_one,
		cut_many,
		prepare_one,
		map_one,
	};

	for (uint32_t i = 0; i < 8; i++) {
		const bool is_page = i % 2 == 1;
		const uintptr_t cutter = (uintptr_t)cutters[i / 2];
		struct mr_frag_cache *frags;
		struct mr_leak leaks[2];
		uint64_t addr;

		checked_open(&f, MR_SAFETY_STATES, is_page ? 7 : 64, 4096);
		assert_int_equal(mr_frag_cache_create(f.cache, &frags, NULL),
				 0);
		/* Somebody else before, who gave it back; then restarted. */
		assert_int_equal(mr_frag_cache_alloc(frags, 4000, 0, &addr), 0);
		frags->offset = frags->n_bytes;
		mr_frag_free_bulk(f.cache, &addr, 1);
		cutters[i / 2](frags);
		assert_int_equal(mr_pool_leaks(f.pool, leaks, 2), 1);
		assert_int_equal(leaks[0].n_pages, is_page ? 1 : 8);
		assert_in_range((uintptr_t)leaks[0].site, cutter, cutter + 200);
		/* And without a restart. */
		mr_frag_cache_drain(frags);
		cutters[i / 2](frags);
		assert_int_equal(mr_pool_leaks(f.pool, leaks, 2), 1);
		assert_int_equal(leaks[0].n_pages, is_page ? 2 : 16);
		mr_frag_cache_destroy(frags);
		mr_frag_free_bulk(f.cache, cuts, n_cuts);
		mr_cache_flush(f.cache);
		n_cuts = 0;
		assert_int_equal(mr_pool_leaks(f.pool, leaks, 2), 0);
		fixture_close(&f);
	}
}

TEST_POOL(unchecked_pools_list_no_leaks)
{
	struct mr_leak leak;
	uint64_t addr;

	fixture_open(&f, 64, 4096);
	addr = alloc_one(f.cache, 4096);
	assert_int_equal(mr_pool_leaks(f.pool, &leak, 1), 0);
	mr_frag_free_bulk(f.cache, &addr, 1);
}

/* More places than there is room for: each is found again, or is nobody. */
TEST(places_may_run_out)
{
	struct mri_safety *safety = calloc(1, sizeof(*safety));
	uint32_t n_nobody = 0;

	assert_int_equal(mri_site_find(safety, NULL), 0);
	for (uintptr_t i = 1; i <= 2 * MRI_SITES; i++) {
		const void *site = (const void *)(i * 37);
		const uint32_t place = mri_site_find(safety, site);

		assert_true(place < MRI_SITES);
		n_nobody += place == 0;
		assert_int_equal(mri_site_find(safety, site), place);
		if (place != 0)
			assert_int_equal(safety->sites[place].addr, i * 37);
	}
	assert_int_equal(safety->sites[0].addr, 0);
	assert_in_range(n_nobody, MRI_SITES, MRI_SITES + MRI_SITES / 2);
	free(safety);
}

TEST(places_without_a_symbol_are_printed)
{
	struct mri_safety *safety = calloc(1, sizeof(*safety));
	char text[MRI_SITE_TEXT];

	mri_site_say(safety, 0, text);
	assert_string_equal(text, "an unknown place");
	mri_site_say(safety, mri_site_find(safety, (const void *)16), text);
	assert_string_equal(text, "0x10");
	assert_true(mri_site_tell(safety, 3, MRI_TOLD_DOUBLE));
	assert_false(mri_site_tell(safety, 3, MRI_TOLD_DOUBLE));
	assert_true(mri_site_tell(safety, 3, MRI_TOLD_BROKEN));
	assert_true(mri_site_tell(safety, 4, MRI_TOLD_DOUBLE));
	free(safety);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool/block_refs.c, and of the counts of owners in pool.h, under
 * all schedules with a few preemptions: a block or a page comes back
 * once, when the last of its owners has freed it.
 */
#define mri_block_start stepped_block_start
#define mri_block_n_out stepped_block_n_out
#define mri_block_restart stepped_block_restart
#define mri_block_retire stepped_block_retire
#define mri_block_sub stepped_block_sub
#define mri_block_ref stepped_block_ref
#define mri_block_is_exclusive stepped_block_is_sole
#define mri_block_put stepped_block_put
#define mri_block_put_direct stepped_block_put_direct
#define mri_block_flush stepped_block_flush
#define mri_block_back noted_block_back /* the test's */

#include "support/explore.h"

#include <millrace/pool.h>

#include "support/stepped.h" /* the inline functions of pool.h, too */

#include "pool/cache.h"

#include "pool/block_refs.c"

/* One block of which an owner cut some frags, and who has them. */
static struct blocks {
	struct mr_pool pool;
	struct mr_cache owner, others[2];
	struct mri_block block;
	uint32_t n_issued;
	uint32_t n_out;  /* frags that nobody has begun to give back */
	uint32_t n_back; /* how often the block came back */
	bool is_retired;
} blocks;

void noted_block_back(struct mr_cache *cache, struct mr_pool *pool,
		      struct mri_block *block)
{
	(void)cache;
	explore_check(pool == &blocks.pool && block == &blocks.block);
	explore_check(blocks.n_out == 0);
	explore_check(blocks.is_retired);
	blocks.n_back++;
}

static void begin_blocks(void *shared)
{
	struct blocks *b = shared;

	memset(b, 0, sizeof(*b));
	b->owner.pool = b->others[0].pool = b->others[1].pool = &b->pool;
	b->pool.checks = &mri_no_checks;
	b->block.order = 1;
	stepped_block_start(&b->owner, &b->block);
	b->n_issued = b->n_out = 4;
}

/* n frags of the block come back by a cache, as mri_block_put() collects them.
 */
static void give_back_frags(struct blocks *b, struct mr_cache *cache,
			    uint32_t n)
{
	cache->run.pool = &b->pool;
	cache->run.block = &b->block;
	cache->run.n = n;
	b->n_out -= n;
	stepped_block_flush(cache);
}

static void frees_one_and_retires(void *shared)
{
	struct blocks *b = shared;

	give_back_frags(b, &b->owner, 1);
	b->is_retired = true;
	stepped_block_retire(&b->owner, &b->block, b->n_issued);
}

/* Its own last frag comes back after it has retired the block. */
static void retires_and_frees_one(void *shared)
{
	struct blocks *b = shared;

	b->is_retired = true;
	stepped_block_retire(&b->owner, &b->block, b->n_issued);
	give_back_frags(b, &b->owner, 1);
}

static void frees_two(void *shared)
{
	struct blocks *b = shared;

	give_back_frags(b, &b->others[0], 2);
}

static void refs_and_frees_twice(void *shared)
{
	struct blocks *b = shared;

	explore_check(stepped_block_ref(&b->block));
	b->n_out++;
	give_back_frags(b, &b->others[1], 1);
	give_back_frags(b, &b->others[1], 1);
}

static void end_blocks(void *shared)
{
	const struct blocks *b = shared;

	explore_check(b->n_out == 0);
	explore_check(b->n_back == 1);
	explore_check(b->block.shared == 0);
	explore_check(b->pool.counters.free_over == 0);
	explore_check(b->owner.counters.free_over == 0);
}

static struct explore explore_block(bool is_split, void (*owner)(void *))
{
	struct explore e = { .begin = begin_blocks,
			     .threads = { owner, frees_two,
					  refs_and_frees_twice },
			     .end = end_blocks,
			     .shared = &blocks,
			     .n_threads = 3,
			     .max_preemptions = 3 };

	stepped_fault.is_split = is_split;
	explore_all(&e);
	stepped_fault.is_split = false;
	return e;
}

TEST(a_block_is_released_once)
{
	struct explore e;

	e = explore_block(false, frees_one_and_retires);
	explore_assert_right(&e, 1000, 100);
	e = explore_block(false, retires_and_frees_one);
	explore_assert_right(&e, 1000, 100);
}

TEST(a_subtraction_in_two_steps_is_found)
{
	struct explore e;

	e = explore_block(true, frees_one_and_retires);
	assert_true(e.n_failures > 0);
	e = explore_block(true, retires_and_frees_one);
	assert_true(e.n_failures > 0);
}

/* A page with three owners, each of which a thread frees. */
static struct page {
	uint8_t count;
	uint32_t n_back;
} page;

static void begin_page(void *shared)
{
	(void)shared;
	page.count = 2; /* owners beyond the first */
	page.n_back = 0;
}

static void frees_page(void *shared)
{
	(void)shared;
	page.n_back += mri_owner_put(&page.count);
}

static void end_page(void *shared)
{
	(void)shared;
	explore_check(page.n_back == 1);
	explore_check(page.count == 0);
}

TEST(a_page_is_released_once)
{
	struct explore e = { .begin = begin_page,
			     .threads = { frees_page, frees_page, frees_page },
			     .end = end_page,
			     .n_threads = 3,
			     .max_preemptions = 4 };

	explore_all(&e);
	explore_assert_right(&e, 20, 3);
	stepped_fault.is_split = true;
	explore_all(&e);
	stepped_fault.is_split = false;
	assert_true(e.n_failures > 0);
}

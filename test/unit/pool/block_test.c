/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool/block.c and block_count.c: where blocks come from and go,
 * and who brings them back.
 */
#include "support/frag_unit.h"

#include <millrace/page.h>

enum { PAGES_4K = 8 }; /* of a block */

/* Fill the rest of the open block with one frag, and begin the next. */
static void leave_block(struct frag_fixture *f, uint64_t rest[2])
{
	const uint32_t n_left = f->frags->n_bytes - f->frags->offset;

	rest[0] = cut(f, n_left, 0);
	rest[1] = cut(f, 1, 0);
}

/* Local frees and the begin over again: shared is not written. */
TEST(owner_who_frees_all_cuts_the_same_block_again)
{
	struct frag_fixture f;
	const struct mri_block *block;
	uint64_t first, addr;

	open_frags(&f, 64, 4096, 4096);
	first = cut(&f, 2048, 0);
	mr_frag_free_bulk(f.p.cache, &first, 1);
	block = f.frags->block;
	for (int i = 1; i < 200; i++) {
		addr = cut(&f, 2048, 0);
		assert_ptr_equal(f.frags->block, block);
		assert_int_equal(addr, first + (uint64_t)(i % 16) * 2048);
		assert_int_equal(block->shared, MRI_BLOCK_BIAS);
		assert_in_flight(f.p.pool, PAGES_4K);
		mr_frag_free_bulk(f.p.cache, &addr, 1);
		assert_in_flight(f.p.pool, 0);
	}
	close_frags(&f);
}

/* One subtraction for all that comes back together, in however many calls. */
TEST(run_of_frees_is_one_subtraction)
{
	struct frag_fixture f;
	struct mri_block *block;
	uint64_t addrs[8], rest[2], page;

	open_frags(&f, 256, 4096, 4096);
	page = alloc_one(f.other, 4096);
	mr_frag_cache_alloc_bulk(f.frags, addrs, 8, 100, 0);
	block = f.frags->block;
	leave_block(&f, rest);
	assert_int_equal(block->shared, 9);
	for (int i = 0; i < 4; i++)
		mr_frag_free_bulk(f.other, &addrs[i], 1);
	mr_frag_free_bulk(f.other, &page, 1); /* no matter in between */
	mr_frag_free_bulk(f.other, addrs + 4, 4);
	assert_int_equal(block->shared, 9);
	assert_int_equal(f.other->run.n, 8);
	mr_frag_free_bulk(f.other, &rest[1], 1); /* of another one */
	assert_int_equal(block->shared, 1);
	assert_in_flight(f.p.pool, PAGES_4K);
	/* Not given to the block yet, but free. */
	mr_frag_free_bulk(f.other, &rest[0], 1);
	assert_int_equal(block->shared, 1);
	assert_in_flight(f.p.pool, 0);
	mri_block_flush(f.other);
	assert_int_equal(block->shared, 0);
	assert_in_flight(f.p.pool, 0);
	close_frags(&f);
}

TEST(more_frees_than_cuts_are_counted_and_break_nothing)
{
	struct frag_fixture f;
	struct mri_block *block;
	uint64_t addr, rest[2];

	open_frags(&f, 64, 4096, 4096);
	/* By the owner, who finds it when he begins again. */
	addr = cut(&f, 100, 0);
	block = f.frags->block;
	for (int i = 0; i < 3; i++)
		mr_frag_free_bulk(f.p.cache, &addr, 1);
	rest[0] = cut(&f, 32000, 0);
	mr_frag_free_bulk(f.p.cache, rest, 1);
	rest[0] = cut(&f, 32000, 0);
	assert_ptr_equal(f.frags->block, block);
	assert_int_equal(pool_stats(f.p.pool).free_over, 2);
	assert_int_equal(block->shared, MRI_BLOCK_BIAS);

	/* By another one, who crosses zero: still the block is back, once. */
	leave_block(&f, rest + 1 - 1);
	mr_frag_free_bulk(f.p.cache, &rest[1], 1);
	assert_int_equal(block->shared, 2);
	for (int i = 0; i < 5; i++)
		mr_frag_free_bulk(f.other, &rest[0], 1);
	mri_block_flush(f.other);
	assert_int_equal(pool_stats(f.p.pool).free_over, 2 + 3);
	assert_in_flight(f.p.pool, 0);
	/* And more when nothing is out any more, by any way. */
	mr_frag_free_bulk(f.other, &rest[0], 1);
	mri_block_flush(f.other);
	mr_pool_frag_free_bulk(f.p.pool, &rest[0], 1);
	assert_int_equal(pool_stats(f.p.pool).free_over, 5 + 2);
	assert_in_flight(f.p.pool, 0);

	/* Nor is it back twice if they were as many as they should be. */
	addr = cut(&f, 100, 0);
	leave_block(&f, rest);
	mr_frag_free_bulk(f.other, &addr, 1);
	mr_frag_free_bulk(f.other, rest, 2);
	mri_block_flush(f.other);
	assert_in_flight(f.p.pool, 0);
	mr_pool_frag_free_bulk(f.p.pool, &addr, 1);
	assert_int_equal(pool_stats(f.p.pool).free_over, 7 + 1);
	assert_in_flight(f.p.pool, 0);

	/* By the owner, who finds it when he retires the block. */
	addr = cut(&f, 100, 0);
	mr_frag_free_bulk(f.p.cache, &addr, 1);
	mr_frag_free_bulk(f.p.cache, &addr, 1);
	mri_block_flush(f.p.cache);
	mr_frag_cache_drain(f.frags);
	f.n_over = 8 + 1;
	assert_in_flight(f.p.pool, 0);
	close_frags(&f);
}

/* Without end: they cannot bring a block back that is still being cut. */
TEST(a_storm_of_frees_does_not_take_the_block_away)
{
	struct frag_fixture f;
	struct mri_block *block;
	uint64_t addr;

	open_frags(&f, 64, 4096, 4096);
	addr = cut(&f, 100, 0);
	block = f.frags->block;
	mr_frag_free_bulk(f.other, &addr, 1);
	f.other->run.n = MRI_BLOCK_BIAS + 7;
	mri_block_flush(f.other);
	assert_ptr_equal(block->owner, f.p.cache);
	assert_true(pool_stats(f.p.pool).free_over > 0);
	assert_int_equal(block->next, 0);
	mr_frag_cache_drain(f.frags);
	assert_in_flight(f.p.pool, 0);
	f.n_over = pool_stats(f.p.pool).free_over;
	close_frags(&f);
}

TEST(pages_are_had_from_blocks_that_lie_free)
{
	static uint64_t addrs[65];
	struct frag_fixture f;
	uint64_t cuts[6];
	uint32_t n;

	open_frags(&f, 64, 4096, 4096);
	/* All blocks: six are out, one is begun, one is fetched. */
	assert_int_equal(mr_frag_cache_alloc_bulk(f.frags, cuts, 6, 32768, 0),
			 6);
	assert_int_equal(pool_stats(f.p.pool).alloc_slow_high_order,
			 8 * PAGES_4K);
	assert_in_flight(f.p.pool, 6 * PAGES_4K);
	n = mr_frag_alloc_bulk(f.p.cache, addrs, 65, 4096);
	assert_int_equal(n, 2 * PAGES_4K); /* what this cache had fetched */
	mr_frag_free_bulk(f.other, cuts, 5);
	n += mr_frag_alloc_bulk(f.p.cache, addrs + n, 65 - n, 4096);
	assert_int_equal(n, 6 * PAGES_4K); /* the run is not given back yet */
	assert_in_flight(f.p.pool, 6 * PAGES_4K + PAGES_4K);
	mr_frag_free_bulk(f.p.cache, cuts + 5, 1);
	mr_frag_cache_drain(f.frags);
	mri_block_flush(f.other);
	n += mr_pool_frag_alloc_bulk(f.p.pool, addrs + n, 65 - n, 4096);
	assert_int_equal(n, 64);
	assert_in_flight(f.p.pool, 64);
	mr_frag_free_bulk(f.p.cache, addrs, 64);
	close_frags(&f);
}

/* Only its frags are freed, by the address of any of them. */
TEST(block_that_is_cut_is_no_block_of_pages)
{
	struct frag_fixture f;
	uint64_t addr;

	open_frags(&f, 64, 4096, 4096);
	addr = cut(&f, 1, 0);
	for (uint32_t order = 0; order <= 3; order++) {
		mr_page_free_bulk(f.p.pool, order, &addr, 1);
		assert_int_equal(pool_stats(f.p.pool).free_invalid, order + 1);
		assert_in_flight(f.p.pool, PAGES_4K);
	}
	mr_frag_free_bulk(f.p.cache, &addr, 1);
	close_frags(&f);
}

/* There is an end to owners, and nobody is added beyond it. */
TEST(too_many_owners_are_refused)
{
	struct frag_fixture f;
	struct mr_frame frame = { 0, 1, 0 };
	struct mri_block *block;
	int32_t n;

	open_frags(&f, 64, 4096, 4096);
	frame.addr = cut(&f, 1, 0);
	block = f.frags->block;
	for (int i = 0; i < 1000; i++) /* more than a byte could count */
		assert_int_equal(mr_frame_ref(f.p.cache, &frame, 1), 0);
	n = MRI_BLOCK_BIAS / 2 - 1001;
	block->shared += n;
	assert_int_equal(mr_frame_ref(f.p.cache, &frame, 1), 0);
	assert_int_equal(mr_frame_ref(f.p.cache, &frame, 1), -EOVERFLOW);
	block->shared -= n;
	for (int i = 0; i < 1002; i++)
		mr_frame_free_bulk(f.other, &frame, 1);
	assert_in_flight(f.p.pool, 0);
	assert_int_equal(pool_stats(f.p.pool).free_over, 0);
	close_frags(&f);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool/frag.c, block.c and block_refs.c: limits, frags as frames,
 * and how blocks come back. Where frags lie, and what prepare, commit and abort
 * do: frag_model_test.c.
 */
#include "support/frag_unit.h"

#include <millrace/experimental/page.h>

enum { PAGES_4K = 8 }; /* of a block */

static struct frag_fixture f;

static int tear_down(void **state)
{
	(void)state;
	if (f.p.ctx != NULL)
		close_frags(&f);
	return 0;
}

#define TEST_FRAGS(name) TEST_WITH(NULL, tear_down, name)

TEST_FRAGS(values_out_of_range_are_refused)
{
	static const struct {
		uint32_t n_bytes, align_bytes;
		int err;
	} cases[] = {
		{ 0, 0, -EINVAL },
		{ 32769, 0, -EINVAL },
		{ UINT32_MAX, 0, -EINVAL },
		{ 1, 3, -EINVAL },
		{ 1, 8192, -EINVAL },
		{ 1, UINT32_MAX, -EINVAL },
		{ 1, 1u << 31, -EINVAL },
		{ 1, 0, 0 },
		{ 1, 1, 0 },
		{ 1, 4096, 0 },
		{ 32768, 4096, 0 },
	};

	open_frags(&f, 256, 4096);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t n_bytes = cases[i].n_bytes;
		const uint32_t align_bytes = cases[i].align_bytes;
		struct mr_frag frag;
		uint64_t addr;

		assert_int_equal(mr_frag_cache_alloc(f.frags, n_bytes,
						     align_bytes, &addr),
				 cases[i].err);
		if (cases[i].err == 0)
			give_back(&f, addr);
		assert_int_equal(mr_frag_cache_alloc_bulk(f.frags, &addr, 1,
							  n_bytes, align_bytes),
				 cases[i].err == 0);
		if (cases[i].err == 0)
			give_back(&f, addr);
		assert_int_equal(mr_frag_cache_prepare(f.frags, n_bytes,
						       align_bytes, &frag),
				 cases[i].err);
		if (cases[i].err < 0) {
			assert_false(mr_frag_cache_probe(f.frags, n_bytes,
							 align_bytes, &frag));
			assert_null(mr_frag_cache_alloc_prepare(
				f.frags, n_bytes, align_bytes, &frag));
		}
	}
	assert_in_flight(f.p.pool, 0);
}

/* Until the last byte, then -ENOMEM; and all over when they are back. */
TEST_FRAGS(all_frags_of_a_pool_can_be_cut_and_freed)
{
	static const uint32_t shapes[][2] = {
		{ 7, 4096 },  { 64, 2048 }, { 67, 4096 },
		{ 41, 8192 }, { 9, 32768 }, { 1, 32768 },
	};
	static uint64_t addrs[40000];

	for (int i = 0; i < 6; i++) {
		uint64_t addr;

		open_frags(&f, shapes[i][0], shapes[i][1]);
		for (int round = 0; round < 3; round++) {
			const uint32_t n = mr_frag_cache_alloc_bulk(
				f.frags, addrs, 40000, 1000, 8);

			assert_int_equal(n, shapes[i][0] *
						    (shapes[i][1] / 1000));
			assert_int_equal(
				mr_frag_cache_alloc(f.frags, 1000, 0, &addr),
				-ENOMEM);
			assert_in_flight(f.p.pool, shapes[i][0]);
			mr_frag_free_bulk(f.p.cache, addrs, n);
			assert_in_flight(f.p.pool, 0);
		}
		close_frags(&f);
	}
}

TEST_FRAGS(no_memory_for_a_frag_cache)
{
	struct mr_frag_cache *frags = NULL;
	struct mr_reason reason;

	open_frags(&f, 64, 4096);
	f.p.allocator.fail_at = f.p.allocator.n_calls + 1;
	assert_int_equal(mr_frag_cache_create(f.p.cache, &frags, &reason),
			 -ENOMEM);
	assert_null(frags);
	assert_reason_has(&reason, "frag cache");
	mr_frag_cache_destroy(NULL);
}

/* One cache may have several, for sizes that should not pin each other. */
TEST_FRAGS(frag_caches_of_one_cache_do_not_mix)
{
	struct mr_frag_cache *frags[3];
	uint64_t addrs[3];

	open_frags(&f, 256, 4096);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			mr_frag_cache_create(f.p.cache, &frags[i], NULL), 0);
		mr_frag_cache_alloc(frags[i], 100, 0, &addrs[i]);
	}
	assert_in_flight(f.p.pool, 3 * 8);
	mr_frag_cache_destroy(frags[1]);
	assert_in_flight(f.p.pool, 3 * 8);
	give_back(&f, addrs[1]);
	assert_in_flight(f.p.pool, 2 * 8);
	mr_frag_cache_destroy(frags[2]);
	give_back(&f, addrs[2]);
	give_back(&f, addrs[0]);
	assert_in_flight(f.p.pool, 0);
	mr_frag_cache_destroy(frags[0]);
}

/* Its neighbours are other frames: there is no room around it to grow into. */
TEST_FRAGS(frag_as_a_frame)
{
	struct mr_frame frames[3];
	struct mr_pages pages;
	struct mr_room room;
	uint64_t a;

	open_frags(&f, 256, 4096);
	for (int i = 0; i < 3; i++) {
		frames[i] = (struct mr_frame){ cut(&f, 100, 0), 100, 0 };
		memset(f.p.base + frames[i].addr, 'a' + i, 100);
	}
	a = frames[1].addr;
	pages = mr_cache_pages(f.p.cache);
	assert_true(mr_frame_is_exclusive(f.p.cache, &frames[1]));
	assert_false(mr_pages_room(&pages, &frames[1], &room));
	assert_int_equal(mr_frame_room(f.p.cache, &frames[1], &room), 0);
	assert_int_equal(room.front_bytes, 0);
	assert_int_equal(room.back_bytes, 0);
	assert_int_equal(mr_frame_push(f.p.cache, &frames[1], 1), -ENOSPC);
	assert_int_equal(mr_frame_put(f.p.cache, &frames[1], 1), -ENOSPC);
	assert_int_equal(mr_frame_pull(&frames[1], 20), 0);
	assert_int_equal(mr_frame_push(f.p.cache, &frames[1], 20), -ENOSPC);
	assert_int_equal(mr_frame_trim(&frames[1], 20), 0);
	assert_int_equal(mr_frame_put(f.p.cache, &frames[1], 20), -ENOSPC);
	assert_int_equal(frames[1].addr, a + 20);
	assert_int_equal(frames[1].len, 60);
	assert_int_equal(mr_frame_unshare(f.p.cache, &frames[1], 1), 0);
	assert_int_equal(frames[1].addr, a + 20);
	/* Once one is shared, nobody can say of another that it is not. */
	assert_int_equal(mr_frame_ref(f.p.cache, &frames[1], 1), 0);
	for (int i = 0; i < 3; i++)
		assert_false(mr_frame_is_exclusive(f.p.cache, &frames[i]));
	assert_int_equal(mr_frame_put(f.p.cache, &frames[0], 1), -EROFS);
	assert_int_equal(mr_frame_unshare(f.p.cache, &frames[1], 1), 0);
	assert_true(frames[1].addr != a + 20);
	assert_int_equal(frames[1].len, 60);
	for (int i = 0; i < 60; i++)
		assert_int_equal(f.p.base[frames[1].addr + (uint64_t)i], 'b');
	assert_true(mr_frame_is_exclusive(f.p.cache, &frames[1]));
	mr_frame_free_bulk(f.p.cache, frames, 3);
	assert_in_flight(f.p.pool, 8);
	give_back(&f, a);
	assert_in_flight(f.p.pool, 0);
}

/* Longer than any buffer that a copy could go to. */
TEST_FRAGS(long_frag_is_unshared_only_if_it_is_not_shared)
{
	struct mr_frame frame = { 0, 5000, 0 };

	open_frags(&f, 256, 4096);
	frame.addr = cut(&f, 5000, 0);
	assert_int_equal(mr_frame_unshare(f.p.cache, &frame, 1), 0);
	mr_frame_ref(f.p.cache, &frame, 1);
	assert_int_equal(mr_frame_unshare(f.p.cache, &frame, 1), -ENOMEM);
	frame.len = 32769;
	assert_int_equal(mr_frame_unshare(f.p.cache, &frame, 1), -EINVAL);
	mr_frame_free_bulk(f.p.cache, &frame, 1);
	mr_frame_free_bulk(f.p.cache, &frame, 1);
	assert_in_flight(f.p.pool, 0);
}

/* What a frag cache may hold, no port may count on. */
TEST(a_frag_cache_commits_its_blocks)
{
	struct mr_frag_cache *frags;
	struct mr_reason why = { "" };
	struct pool_fixture p;
	uint64_t addr;

	fixture_open(&p, 256, 4096);
	assert_int_equal(mri_pool_commit(p.pool, "xdp:a", 97, 0, NULL), 0);
	assert_int_equal(mr_frag_cache_create(p.cache, &frags, &why), -ENOMEM);
	assert_reason_has(&why, "a frag cache may hold 32 pages");
	assert_reason_has(&why, "at least 257 pages and has 256");
	assert_int_equal(pool_stats(p.pool).n_committed, 128 + 97);
	mri_pool_uncommit(p.pool, 97);
	assert_int_equal(mri_pool_commit(p.pool, "xdp:a", 96, 0, NULL), 0);
	assert_int_equal(mr_frag_cache_create(p.cache, &frags, NULL), 0);
	assert_int_equal(pool_stats(p.pool).n_committed, 256);
	/* And no more than that. */
	assert_int_equal(mr_frag_cache_alloc(frags, 100, 0, &addr), 0);
	mr_frag_free_bulk(p.cache, &addr, 1);
	assert_int_equal(pool_stats(p.pool).n_cached, 32);
	mr_frag_cache_destroy(frags);
	assert_int_equal(pool_stats(p.pool).n_committed, 128 + 96);
	mri_pool_uncommit(p.pool, 96);
	fixture_close(&p);
	/* Where a page is as large as a block, nothing is fetched ahead. */
	fixture_open(&p, 256, 32768);
	assert_int_equal(mr_frag_cache_create(p.cache, &frags, NULL), 0);
	assert_int_equal(pool_stats(p.pool).n_committed, 128 + 1);
	mr_frag_cache_destroy(frags);
	fixture_close(&p);
}

/* The wrong order of two calls is told, and leaves nothing dangling. */
TEST_FRAGS(cache_that_ends_first_leaves_an_empty_frag_cache)
{
	struct mr_cache *cache;
	struct mr_frag_cache *frags;
	struct mr_frag frag;
	uint64_t addr, again;
	uint32_t n_lines;

	open_frags(&f, 256, 4096);
	assert_int_equal(mr_cache_create(f.p.pool, &cache, NULL), 0);
	assert_int_equal(mr_frag_cache_create(cache, &frags, NULL), 0);
	assert_int_equal(mr_frag_cache_alloc(frags, 100, 0, &addr), 0);
	n_lines = f.p.allocator.n_lines;
	mr_cache_destroy(cache);
	assert_int_equal(f.p.allocator.n_lines, n_lines + 1);
	assert_int_equal(mr_frag_cache_alloc(frags, 100, 0, &again), -ENOMEM);
	assert_null(mr_frag_cache_alloc_prepare(frags, 100, 0, &frag));
	mr_frag_cache_drain(frags);
	give_back(&f, addr);
	assert_in_flight(f.p.pool, 0);
	mr_frag_cache_destroy(frags);
}

/* What the caller wrote into the struct is not believed. */
TEST_FRAGS(forged_prepare_is_refused)
{
	struct mr_frag frag, forged;
	uint64_t addr;

	open_frags(&f, 256, 4096);
	addr = cut(&f, 100, 0);
	mr_frag_cache_prepare(f.frags, 1, 0, &frag);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 0), -EINVAL);
	assert_int_equal(mr_frag_cache_commit_noref(f.frags, &frag, 0),
			 -EINVAL);
	forged = frag;
	forged.addr--;
	assert_int_equal(mr_frag_cache_commit(f.frags, &forged, 1), -EINVAL);
	forged.addr = frag.addr + frag.n_bytes;
	assert_int_equal(mr_frag_cache_commit(f.frags, &forged, 1), -EINVAL);
	forged.addr = frag.addr + UINT64_C(0x100000000);
	assert_int_equal(mr_frag_cache_commit(f.frags, &forged, 1), -EINVAL);
	forged.addr = frag.addr;
	forged.n_bytes = UINT32_MAX;
	assert_int_equal(mr_frag_cache_commit(f.frags, &forged, UINT32_MAX),
			 -EINVAL);
	assert_int_equal(
		mr_frag_cache_commit(f.frags, &forged, frag.n_bytes + 1),
		-EINVAL);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 1), 1);
	give_back(&f, frag.addr);
	give_back(&f, addr);
	/* Nor is there anything to be lengthened once all of it is back. */
	mr_frag_cache_prepare(f.frags, 1, 0, &frag);
	assert_int_equal(mr_frag_cache_commit_noref(f.frags, &frag, 1),
			 -EINVAL);
	assert_in_flight(f.p.pool, 0);
}

/* Generations wrap; so do the counts of nothing else that lives long. */
TEST_FRAGS(generation_wraps)
{
	struct mr_frag frag;

	open_frags(&f, 64, 4096);
	f.frags->epoch = UINT32_MAX;
	assert_int_equal(mr_frag_cache_prepare(f.frags, 1, 0, &frag), 0);
	f.frags->epoch = UINT32_MAX;
	assert_int_equal(mr_frag_cache_prepare(f.frags, 1, 0, &frag), 0);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 1), 1);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 1), -ESTALE);
	give_back(&f, frag.addr);
}

/* Fill the rest of the open block with one frag, and begin the next. */
static void leave_block(uint64_t rest[2])
{
	const uint32_t n_left = f.frags->n_bytes - f.frags->offset;

	rest[0] = cut(&f, n_left, 0);
	rest[1] = cut(&f, 1, 0);
}

/* Local frees and the begin over again: shared is not written. */
TEST_FRAGS(owner_who_frees_all_cuts_the_same_block_again)
{
	const struct mri_block *block;
	uint64_t first, addr;

	open_frags(&f, 64, 4096);
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
}

/* Up to three, as many as a frag cache fetches ahead. */
TEST_FRAGS(blocks_freed_by_the_cache_that_cut_them_stay_there)
{
	uint64_t cuts[5];

	open_frags(&f, 64, 4096);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(mr_frag_cache_alloc_bulk(f.frags, cuts, 4,
							  32768, 0),
				 4);
		mr_frag_free_bulk(f.p.cache, cuts, 4);
		assert_in_flight(f.p.pool, 0);
	}
	assert_int_equal(pool_stats(f.p.pool).n_depot, 0);
	/* The fifth makes it fetch four more, so it has no room for these. */
	assert_int_equal(mr_frag_cache_alloc_bulk(f.frags, cuts, 5, 32768, 0),
			 5);
	mr_frag_free_bulk(f.p.cache, cuts, 5);
	mri_block_flush(f.p.cache);
	assert_int_equal(pool_stats(f.p.pool).n_depot, 4 * PAGES_4K);
	assert_int_equal(f.frags->n_fetched, MRI_BLOCK_BATCH - 1);
	/* None when it cuts no block. */
	mr_frag_cache_alloc_bulk(f.frags, cuts, 2, 32768, 0);
	mr_frag_cache_drain(f.frags);
	mr_frag_free_bulk(f.p.cache, cuts, 2);
	mri_block_flush(f.p.cache);
	assert_int_equal(f.frags->n_fetched, 0);
	assert_in_flight(f.p.pool, 0);
}

/* One subtraction for all that comes back together, in however many calls. */
TEST_FRAGS(run_of_frees_is_one_subtraction)
{
	struct mri_block *block;
	uint64_t addrs[8], rest[2], page;

	open_frags(&f, 256, 4096);
	page = alloc_one(f.other, 4096);
	mr_frag_cache_alloc_bulk(f.frags, addrs, 8, 100, 0);
	block = f.frags->block;
	leave_block(rest);
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
}

TEST_FRAGS(more_frees_than_cuts_are_counted_and_break_nothing)
{
	struct mri_block *block;
	uint64_t addr, rest[2];

	open_frags(&f, 64, 4096);
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
	leave_block(rest + 1 - 1);
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
	leave_block(rest);
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
}

/* Without end: they cannot bring a block back that is still being cut. */
TEST_FRAGS(too_many_frees_do_not_free_the_current_block)
{
	struct mri_block *block;
	uint64_t addr;

	open_frags(&f, 64, 4096);
	addr = cut(&f, 100, 0);
	block = f.frags->block;
	mr_frag_free_bulk(f.other, &addr, 1);
	f.other->run.n = MRI_BLOCK_BIAS + 7;
	mri_block_flush(f.other);
	assert_ptr_equal(block->owner, f.p.cache);
	assert_true(pool_stats(f.p.pool).free_over > 0);
	assert_int_equal(block->links[0], 0);
	mr_frag_cache_drain(f.frags);
	assert_in_flight(f.p.pool, 0);
	f.n_over = pool_stats(f.p.pool).free_over;
}

TEST_FRAGS(pages_are_allocated_from_free_blocks)
{
	static uint64_t addrs[65];
	uint64_t cuts[6];
	uint32_t n;

	open_frags(&f, 64, 4096);
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
	n += mr_pool_frag_alloc_bulk(f.p.pool, addrs + n, 65 - n);
	assert_int_equal(n, 64);
	assert_in_flight(f.p.pool, 64);
	mr_frag_free_bulk(f.p.cache, addrs, 64);
}

/* Only its frags are freed, by the address of any of them. */
TEST_FRAGS(a_cut_block_is_not_freed_as_pages)
{
	uint64_t addr;

	open_frags(&f, 64, 4096);
	addr = cut(&f, 1, 0);
	for (uint32_t order = 0; order <= 3; order++) {
		mr_page_free_bulk(f.p.pool, order, &addr, 1);
		assert_int_equal(pool_stats(f.p.pool).free_invalid, order + 1);
		assert_in_flight(f.p.pool, PAGES_4K);
	}
	mr_frag_free_bulk(f.p.cache, &addr, 1);
}

/* There is an end to owners, and nobody is added beyond it. */
TEST_FRAGS(too_many_owners_are_refused)
{
	struct mr_frame frame = { 0, 1, 0 };
	struct mri_block *block;
	int32_t n;

	open_frags(&f, 64, 4096);
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
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool/frag.c: limits, and frags as frames. Where frags lie, and
 * what prepare, commit and abort do: frag_model_test.c.
 */
#include "support/frag_unit.h"

TEST(values_out_of_range_are_refused)
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
	struct frag_fixture f;

	open_frags(&f, 256, 4096, 4096);
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
	close_frags(&f);
}

/* Until the last byte, then -ENOMEM; and all over when they are back. */
TEST(pool_is_cut_up_and_comes_back)
{
	static const uint32_t shapes[][3] = {
		{ 7, 4096, 4096 },  { 64, 2048, 2048 }, { 67, 4096, 4096 },
		{ 41, 8192, 2048 }, { 9, 32768, 4096 }, { 1, 32768, 2048 },
	};
	static uint64_t addrs[40000];

	for (int i = 0; i < 6; i++) {
		struct frag_fixture f;
		uint64_t addr;

		open_frags(&f, shapes[i][0], shapes[i][1], shapes[i][2]);
		for (int round = 0; round < 3; round++) {
			const uint32_t n = mr_frag_cache_alloc_bulk(
				f.frags, addrs, 40000, 1000, 8);
			const uint32_t n_per_chunk = shapes[i][2] / 1000;

			assert_int_equal(n,
					 shapes[i][0] * n_per_chunk *
						 (shapes[i][1] / shapes[i][2]));
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

TEST(no_memory_for_a_frag_cache)
{
	struct frag_fixture f;
	struct mr_frag_cache *frags = NULL;
	struct mr_reason reason;

	open_frags(&f, 64, 4096, 4096);
	f.p.allocator.fail_at = f.p.allocator.n_calls + 1;
	assert_int_equal(mr_frag_cache_create(f.p.cache, &frags, &reason),
			 -ENOMEM);
	assert_null(frags);
	assert_reason_has(&reason, "frag cache");
	mr_frag_cache_destroy(NULL);
	close_frags(&f);
}

/* One cache may have several, for sizes that should not pin each other. */
TEST(frag_caches_of_one_cache_do_not_mix)
{
	struct frag_fixture f;
	struct mr_frag_cache *frags[3];
	uint64_t addrs[3];

	open_frags(&f, 256, 4096, 4096);
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
	close_frags(&f);
}

/* Its neighbours are other frames: there is no room around it to grow into. */
TEST(frag_as_a_frame)
{
	struct frag_fixture f;
	struct mr_frame frames[3];
	struct mr_pages pages;
	struct mr_room room;
	uint64_t a;

	open_frags(&f, 256, 4096, 2048);
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
	close_frags(&f);
}

/* Longer than any buffer that a copy could go to. */
TEST(long_frag_is_unshared_only_if_it_is_not_shared)
{
	struct frag_fixture f;
	struct mr_frame frame = { 0, 5000, 0 };

	open_frags(&f, 256, 4096, 4096);
	frame.addr = cut(&f, 5000, 0);
	assert_int_equal(mr_frame_unshare(f.p.cache, &frame, 1), 0);
	mr_frame_ref(f.p.cache, &frame, 1);
	assert_int_equal(mr_frame_unshare(f.p.cache, &frame, 1), -ENOMEM);
	frame.len = 32769;
	assert_int_equal(mr_frame_unshare(f.p.cache, &frame, 1), -EINVAL);
	mr_frame_free_bulk(f.p.cache, &frame, 1);
	mr_frame_free_bulk(f.p.cache, &frame, 1);
	assert_in_flight(f.p.pool, 0);
	close_frags(&f);
}

/* What a frag cache may hold, no port may count on. */
TEST(a_frag_cache_is_promised_its_blocks)
{
	struct mr_frag_cache *frags;
	struct mr_reason why = { "" };
	struct pool_fixture f;
	uint64_t addr;

	fixture_open(&f, 256, 4096, 4096);
	assert_int_equal(mri_pool_commit(f.pool, "xdp:a", 97, NULL), 0);
	assert_int_equal(mr_frag_cache_create(f.cache, &frags, &why), -ENOMEM);
	assert_reason_has(&why, "a frag cache may hold 32 pages");
	assert_reason_has(&why, "at least 257 pages and has 256");
	assert_int_equal(pool_stats(f.pool).n_committed, 128 + 97);
	mri_pool_uncommit(f.pool, 97);
	assert_int_equal(mri_pool_commit(f.pool, "xdp:a", 96, NULL), 0);
	assert_int_equal(mr_frag_cache_create(f.cache, &frags, NULL), 0);
	assert_int_equal(pool_stats(f.pool).n_committed, 256);
	/* And no more than that. */
	assert_int_equal(mr_frag_cache_alloc(frags, 100, 0, &addr), 0);
	mr_frag_free_bulk(f.cache, &addr, 1);
	assert_int_equal(pool_stats(f.pool).n_cached, 32);
	mr_frag_cache_destroy(frags);
	assert_int_equal(pool_stats(f.pool).n_committed, 128 + 96);
	mri_pool_uncommit(f.pool, 96);
	fixture_close(&f);
	/* Where a page is as large as a block, nothing is fetched ahead. */
	fixture_open(&f, 256, 32768, 4096);
	assert_int_equal(mr_frag_cache_create(f.cache, &frags, NULL), 0);
	assert_int_equal(pool_stats(f.pool).n_committed, 129 + 1);
	mr_frag_cache_destroy(frags);
	fixture_close(&f);
}

/* The wrong order of two calls is told, and leaves nothing dangling. */
TEST(cache_that_ends_first_leaves_an_empty_frag_cache)
{
	struct frag_fixture f;
	struct mr_cache *cache;
	struct mr_frag_cache *frags;
	struct mr_frag frag;
	uint64_t addr, again;
	uint32_t n_lines;

	open_frags(&f, 256, 4096, 4096);
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
	close_frags(&f);
}

/* What the caller wrote into the struct is not believed. */
TEST(forged_prepare_is_refused)
{
	struct frag_fixture f;
	struct mr_frag frag, forged;
	uint64_t addr;

	open_frags(&f, 256, 4096, 4096);
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
	close_frags(&f);
}

/* Generations wrap; so do the counts of nothing else that lives long. */
TEST(generation_wraps)
{
	struct frag_fixture f;
	struct mr_frag frag;

	open_frags(&f, 64, 4096, 4096);
	f.frags->generation = UINT32_MAX;
	assert_int_equal(mr_frag_cache_prepare(f.frags, 1, 0, &frag), 0);
	f.frags->generation = UINT32_MAX;
	assert_int_equal(mr_frag_cache_prepare(f.frags, 1, 0, &frag), 0);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 1), 1);
	assert_int_equal(mr_frag_cache_commit(f.frags, &frag, 1), -ESTALE);
	give_back(&f, frag.addr);
	close_frags(&f);
}

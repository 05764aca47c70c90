/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/frame.c: one function per promise in <millrace/frame.h>. */
#include "support/pool_unit.h"

#include <millrace/page.h>

static struct mr_frame frame_at(uint64_t addr, uint32_t len)
{
	return (struct mr_frame){ .addr = addr, .len = len };
}

TEST(n_whole_leaves_out_the_frame_that_is_cut_off)
{
	static const struct {
		const char *more; /* 1: goes on in the next entry */
		uint32_t n_whole;
	} cases[] = { { "", 0 },     { "0", 1 },    { "1", 0 },
		      { "00", 2 },   { "01", 1 },   { "10", 2 },
		      { "0111", 1 }, { "0110", 4 }, { "111", 0 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_frame frames[8] = { { 0 } };
		const uint32_t n = (uint32_t)strlen(cases[i].more);

		for (uint32_t k = 0; k < n; k++)
			frames[k].flags =
				MR_FRAME_CSUM_VALID | (cases[i].more[k] == '1');
		assert_int_equal(mr_frame_n_whole(frames, n), cases[i].n_whole);
	}
}

static void assert_room(const struct pool_fixture *f,
			const struct mr_frame *frame, uint32_t front,
			uint32_t back, bool is_page)
{
	const struct mr_pages pages = mr_cache_pages(f->cache);
	struct mr_room room, fast;

	assert_int_equal(mr_frame_room(f->cache, frame, &room), 0);
	assert_int_equal(room.front_bytes, front);
	assert_int_equal(room.back_bytes, back);
	assert_int_equal(mr_pages_room(&pages, frame, &fast), is_page);
	if (is_page)
		assert_memory_equal(&fast, &room, sizeof(room));
}

/* Room before and behind the data, to the byte, in chunks and whole pages. */
TEST(room_ends_where_the_buffer_ends)
{
	static const struct {
		uint32_t page, chunk, buffer;
	} cases[] = { { 2048, 2048, 2048 },  { 4096, 4096, 4096 },
		      { 8192, 2048, 2048 },  { 8192, 4096, 8192 },
		      { 32768, 4096, 4096 }, { 32768, 2048, 32768 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t buffer = cases[i].buffer;
		struct pool_fixture f;
		struct mr_frame frame;
		uint64_t addrs[3];

		fixture_open(&f, 64, cases[i].page, cases[i].chunk);
		mr_frag_alloc_bulk(f.cache, addrs, 3, buffer);
		frame = frame_at(addrs[1] + 100, buffer - 150);
		assert_room(&f, &frame, 100, 50,
			    cases[i].page == cases[i].chunk);
		assert_int_equal(mr_frame_push(f.cache, &frame, 101), -ENOSPC);
		assert_int_equal(mr_frame_push(f.cache, &frame, UINT32_MAX),
				 -ENOSPC);
		assert_int_equal(mr_frame_put(f.cache, &frame, 51), -ENOSPC);
		assert_int_equal(mr_frame_put(f.cache, &frame, UINT32_MAX),
				 -ENOSPC);
		assert_int_equal(frame.addr, addrs[1] + 100);
		assert_int_equal(frame.len, buffer - 150);
		assert_int_equal(mr_frame_push(f.cache, &frame, 99), 0);
		assert_int_equal(mr_frame_put(f.cache, &frame, 49), 0);
		assert_int_equal(mr_frame_push(f.cache, &frame, 1), 0);
		assert_int_equal(mr_frame_put(f.cache, &frame, 1), 0);
		assert_int_equal(frame.addr, addrs[1]);
		assert_int_equal(frame.len, buffer);
		assert_room(&f, &frame, 0, 0, cases[i].page == cases[i].chunk);
		assert_int_equal(mr_frame_push(f.cache, &frame, 1), -ENOSPC);
		assert_int_equal(mr_frame_put(f.cache, &frame, 1), -ENOSPC);
		assert_int_equal(mr_frame_push(f.cache, &frame, 0), 0);
		assert_int_equal(mr_frame_put(f.cache, &frame, 0), 0);
		mr_frag_free_bulk(f.cache, addrs, 3);
		fixture_close(&f);
	}
}

TEST(pull_and_trim_leave_one_byte)
{
	struct mr_frame frame = frame_at(1000, 61), odd = frame;

	assert_int_equal(mr_frame_pull(&odd, 14), 0);
	assert_int_equal(odd.addr, 1014);
	assert_int_equal(odd.len, 47);
	frame.len = 60;
	assert_int_equal(mr_frame_pull(&frame, 60), -ENOSPC);
	assert_int_equal(mr_frame_trim(&frame, 60), -ENOSPC);
	assert_int_equal(mr_frame_pull(&frame, UINT32_MAX), -ENOSPC);
	assert_int_equal(mr_frame_trim(&frame, UINT32_MAX), -ENOSPC);
	assert_int_equal(frame.addr, 1000);
	assert_int_equal(frame.len, 60);
	assert_int_equal(mr_frame_pull(&frame, 14), 0);
	assert_int_equal(frame.addr, 1014);
	assert_int_equal(frame.len, 46);
	assert_int_equal(mr_frame_trim(&frame, 45), 0);
	assert_int_equal(frame.addr, 1014);
	assert_int_equal(frame.len, 1);
	assert_int_equal(mr_frame_pull(&frame, 0), 0);
	assert_int_equal(mr_frame_trim(&frame, 0), 0);
}

TEST(shared_frame_is_read_only)
{
	struct pool_fixture f;
	struct mr_frame frame;
	struct mr_pages pages;
	struct mr_room room;

	fixture_open(&f, 64, 4096, 4096);
	frame = frame_at(alloc_one(f.cache, 4096) + 128, 60);
	pages = mr_cache_pages(f.cache);
	assert_true(mr_frame_is_sole(f.cache, &frame));
	assert_true(mr_pages_room(&pages, &frame, &room));
	assert_int_equal(mr_frame_ref(f.cache, &frame, 1), 0);
	assert_false(mr_frame_is_sole(f.cache, &frame));
	assert_false(mr_pages_room(&pages, &frame, &room));
	assert_int_equal(mr_frame_room(f.cache, &frame, &room), -EROFS);
	assert_int_equal(room.front_bytes, 0);
	assert_int_equal(room.back_bytes, 0);
	assert_int_equal(mr_frame_push(f.cache, &frame, 1), -EROFS);
	assert_int_equal(mr_frame_put(f.cache, &frame, 1), -EROFS);
	assert_int_equal(mr_frame_pull(&frame, 1), 0); /* only this view */
	assert_int_equal(mr_frame_trim(&frame, 1), 0);
	mr_frame_free_bulk(f.cache, &frame, 1);
	assert_int_equal(pool_stats(f.pool).recycle_released_refcnt, 1);
	assert_in_flight(f.pool, 1);
	assert_true(mr_frame_is_sole(f.cache, &frame));
	assert_int_equal(mr_frame_push(f.cache, &frame, 1), 0);
	mr_frame_free_bulk(f.cache, &frame, 1);
	assert_int_equal(pool_stats(f.pool).recycle_released_refcnt, 1);
	fixture_close(&f);
}

/* Sharing one chunk of a page says nothing of its neighbours. */
TEST(chunks_of_a_page_have_owners_of_their_own)
{
	struct pool_fixture f;
	struct mr_frame frames[4];
	uint64_t addrs[4];

	fixture_open(&f, 64, 8192, 2048);
	mr_frag_alloc_bulk(f.cache, addrs, 4, 2048);
	for (int i = 0; i < 4; i++)
		frames[i] = frame_at(addrs[i] + 128, 60);
	assert_int_equal(mr_frame_ref(f.cache, &frames[2], 1), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(mr_frame_is_sole(f.cache, &frames[i]), i != 2);
	mr_frame_free_bulk(f.cache, frames, 4);
	assert_in_flight(f.pool, 1); /* one owner of one chunk is left */
	assert_int_equal(pool_stats(f.pool).recycle_released_refcnt, 1);
	assert_int_equal(mr_frame_push(f.cache, &frames[2], 8), 0);
	mr_frame_free_bulk(f.cache, &frames[2], 1);
	assert_in_flight(f.pool, 0);
	fixture_close(&f);
}

TEST(frames_of_no_pool_are_einval)
{
	struct pool_fixture f;
	struct mr_pool *beside;
	struct mr_cache *cache;
	struct mr_frame frame, before;
	struct mr_pages pages;
	struct mr_room room;

	fixture_open(&f, 64, 4096, 4096);
	frame = frame_at(64 * 4096 + 128, 60); /* the first byte behind it */
	before = frame;
	pages = mr_cache_pages(f.cache);
	assert_false(mr_pages_room(&pages, &frame, &room));
	assert_int_equal(mr_frame_room(f.cache, &frame, &room), -EINVAL);
	assert_int_equal(room.front_bytes, 0);
	assert_int_equal(mr_frame_push(f.cache, &frame, 1), -EINVAL);
	assert_int_equal(mr_frame_put(f.cache, &frame, 1), -EINVAL);
	assert_int_equal(mr_frame_ref(f.cache, &frame, 1), -EINVAL);
	assert_int_equal(mr_frame_unshare(f.cache, &frame, 1), -EINVAL);
	assert_false(mr_frame_is_sole(f.cache, &frame));
	assert_memory_equal(&frame, &before, sizeof(frame));

	beside = pool_beside(&f, 16, 4096);
	mr_cache_create(beside, &cache, NULL);
	frame.addr = alloc_one(cache, 4096) + 128;
	assert_int_equal(mr_frame_push(f.cache, &frame, 1), -EINVAL);
	assert_int_equal(mr_frame_put(f.cache, &frame, 1), -EINVAL);
	assert_int_equal(mr_frame_unshare(f.cache, &frame, 1), -EINVAL);
	assert_false(mr_frame_is_sole(f.cache, &frame));
	/* Flooding does not ask whose page it is. */
	assert_int_equal(mr_frame_ref(f.cache, &frame, 1), 0);
	assert_false(mr_frame_is_sole(cache, &frame));
	mr_frame_free_bulk(f.cache, &frame, 1);
	mr_frame_free_bulk(cache, &frame, 1);
	mr_cache_destroy(cache);
	assert_int_equal(mr_pool_destroy(beside, NULL), 0);
	fixture_close(&f);
}

TEST(owners_are_counted_to_255)
{
	struct pool_fixture f;
	struct mr_frame frames[3];
	uint64_t addrs[3];

	fixture_open(&f, 64, 4096, 4096);
	mr_frag_alloc_bulk(f.cache, addrs, 3, 4096);
	for (int i = 0; i < 3; i++)
		frames[i] = frame_at(addrs[i], 60);
	for (int i = 1; i < 255; i++)
		assert_int_equal(mr_frame_ref(f.cache, &frames[1], 1), 0);
	/* None is added, to those before the full one neither. */
	assert_int_equal(mr_frame_ref(f.cache, frames, 3), -EOVERFLOW);
	assert_true(mr_frame_is_sole(f.cache, &frames[0]));
	assert_true(mr_frame_is_sole(f.cache, &frames[2]));
	frames[1].addr = UINT64_MAX;
	assert_int_equal(mr_frame_ref(f.cache, frames, 3), -EINVAL);
	assert_true(mr_frame_is_sole(f.cache, &frames[0]));
	frames[1].addr = addrs[1] + 4095; /* any byte of it */
	for (int i = 1; i < 255; i++) {
		mr_frame_free_bulk(f.cache, &frames[1], 1);
		assert_in_flight(f.pool, 3);
	}
	assert_int_equal(mr_frame_ref(f.cache, frames, 0), 0);
	mr_frame_free_bulk(f.cache, frames, 3);
	assert_in_flight(f.pool, 0);
	fixture_close(&f);
}

TEST(unshare_of_a_sole_frame_does_nothing)
{
	struct pool_fixture f;
	struct mr_frame frame, before;

	fixture_open(&f, 64, 4096, 4096);
	frame = before = frame_at(alloc_one(f.cache, 4096) + 1, 60);
	assert_int_equal(mr_frame_unshare(f.cache, &frame, 1), 0);
	assert_memory_equal(&frame, &before, sizeof(frame));
	assert_int_equal(mr_frame_unshare(f.cache, &frame, 0), -EINVAL);
	assert_int_equal(mr_frame_unshare(f.cache, &frame, MR_MAX_SEGS + 1),
			 -EINVAL);
	frame.len = 4097; /* longer than a page */
	assert_int_equal(mr_frame_unshare(f.cache, &frame, 1), -EINVAL);
	mr_frame_free_bulk(f.cache, &frame, 1);
	fixture_close(&f);
}

/* Shared and unshared: copied to the byte, with the room that it had. */
static void check_unshare(struct pool_fixture *f, uint32_t buffer, uint32_t at,
			  uint32_t len)
{
	struct mr_frame frame = frame_at(alloc_one(f->cache, buffer) + at, len);
	struct mr_frame copy;
	struct mr_room room;

	frame.flags = MR_FRAME_CSUM_PARTIAL;
	for (uint32_t b = 0; b < len; b++)
		f->base[frame.addr + b] = (uint8_t)(b * 7 + len);
	assert_int_equal(mr_frame_ref(f->cache, &frame, 1), 0);
	copy = frame;
	assert_int_equal(mr_frame_unshare(f->cache, &copy, 1), 0);
	assert_int_not_equal(copy.addr, frame.addr);
	assert_int_equal(copy.len, len);
	assert_int_equal(copy.flags, frame.flags);
	assert_memory_equal(f->base + copy.addr, f->base + frame.addr, len);
	assert_int_equal(mr_frame_room(f->cache, &copy, &room), 0);
	assert_int_equal(room.front_bytes, at);
	assert_int_equal(room.back_bytes, buffer - at - len);
	assert_true(mr_frame_is_sole(f->cache, &frame));
	mr_frame_free_bulk(f->cache, &copy, 1);
	mr_frame_free_bulk(f->cache, &frame, 1);
	assert_in_flight(f->pool, 0);
}

/* Each length, at each end of chunks and pages of one and several of them. */
TEST(unshare_copies_and_keeps_room)
{
	static const uint32_t pages[] = { 2048, 4096, 8192, 32768 };

	for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++) {
		struct pool_fixture f;

		fixture_open(&f, 64, pages[i], 0);
		for (uint32_t n = 1; n <= pages[i]; n += 61) {
			const uint32_t chunk = f.pool->chunk_bytes;
			const uint32_t len = mri_min_u32(n, chunk);

			check_unshare(&f, pages[i], 0, n);
			check_unshare(&f, pages[i], pages[i] - n, n);
			check_unshare(&f, chunk, (chunk - len) / 2, len);
		}
		fixture_close(&f);
	}
}

/* A copy of as much room would take several pages. */
TEST(unshare_of_a_shared_block_is_enomem)
{
	struct pool_fixture f;
	struct mr_frame frame, before;
	uint64_t block;

	fixture_open(&f, 64, 4096, 4096);
	assert_int_equal(mr_page_alloc_bulk(f.pool, 1, &block, 1), 1);
	frame = before = frame_at(block + 128, 60);
	assert_int_equal(mr_frame_unshare(f.cache, &frame, 1), 0);
	assert_int_equal(mr_frame_ref(f.cache, &frame, 1), 0);
	assert_int_equal(mr_frame_unshare(f.cache, &frame, 1), -ENOMEM);
	assert_memory_equal(&frame, &before, sizeof(frame));
	mr_frame_free_bulk(f.cache, &frame, 1);
	mr_frame_free_bulk(f.cache, &frame, 1);
	assert_in_flight(f.pool, 0);
	fixture_close(&f);
}

TEST(unshare_takes_a_frame_of_18_entries)
{
	struct pool_fixture f;
	struct mr_frame frames[MR_MAX_SEGS], shared[MR_MAX_SEGS];
	uint64_t addrs[MR_MAX_SEGS];

	fixture_open(&f, 64, 2048, 2048);
	mr_frag_alloc_bulk(f.cache, addrs, MR_MAX_SEGS, 2048);
	for (int i = 0; i < MR_MAX_SEGS; i++) {
		frames[i] = frame_at(addrs[i] + 10, 1500);
		frames[i].flags = i + 1 < MR_MAX_SEGS ? MR_FRAME_MORE : 0;
		memset(f.base + frames[i].addr, i, 1500);
	}
	/* One shared entry makes the frame a shared one. */
	assert_int_equal(mr_frame_ref(f.cache, &frames[17], 1), 0);
	memcpy(shared, frames, sizeof(shared));
	assert_int_equal(mr_frame_unshare(f.cache, frames, MR_MAX_SEGS), 0);
	for (int i = 0; i < MR_MAX_SEGS; i++) {
		assert_int_equal(f.base[frames[i].addr], i);
		assert_int_equal(f.base[frames[i].addr + 1499], i);
		assert_int_equal(frames[i].flags, shared[i].flags);
		assert_true(mr_frame_is_sole(f.cache, &frames[i]));
	}
	assert_in_flight(f.pool, MR_MAX_SEGS + 1); /* the other owner's */
	mr_frame_free_bulk(f.cache, frames, MR_MAX_SEGS);
	mr_frame_free_bulk(f.cache, &shared[17], 1);
	fixture_close(&f);
}

TEST(unshare_without_a_page_changes_nothing)
{
	struct pool_fixture f;
	struct mr_frame frames[2], before[2];
	uint64_t addrs[8];

	fixture_open(&f, 3, 4096, 4096);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, 2, 4096), 2);
	for (int i = 0; i < 2; i++)
		frames[i] = frame_at(addrs[i], 4000);
	frames[0].flags = MR_FRAME_MORE;
	assert_int_equal(mr_frame_ref(f.cache, frames, 2), 0);
	memcpy(before, frames, sizeof(before));
	/* One page is free, two are needed. */
	assert_int_equal(mr_frame_unshare(f.cache, frames, 2), -ENOMEM);
	assert_memory_equal(frames, before, sizeof(before));
	assert_false(mr_frame_is_sole(f.cache, &frames[0]));
	assert_in_flight(f.pool, 2);
	mr_frame_free_bulk(f.cache, frames, 2);
	mr_frame_free_bulk(f.cache, frames, 2);
	fixture_close(&f);
}

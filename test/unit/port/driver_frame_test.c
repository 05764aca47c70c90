/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of the helpers for drivers in lib/port/driver_frame.c. */
#include "support/pool_unit.h"

enum { PAGES = 256, PAGE = 2048, MAX_BYTES = 9000, REACH_ALL = 1 << 30 };

static struct pool_fixture f;

static struct mr_port port_of_pool(void)
{
	return (struct mr_port){ .pool = f.pool,
				 .base = f.base,
				 .page_bytes = PAGE,
				 .headroom_bytes = 128 };
}

TEST(a_fault_of_a_frame_has_its_reason)
{
	struct mr_frame frames[MR_MAX_SEGS + 1];

	fixture_open(&f, PAGES, PAGE);
	for (uint32_t i = 0; i <= MR_MAX_SEGS; i++)
		frames[i] = (struct mr_frame){ i * PAGE, 100, MR_FRAME_MORE };
	assert_int_equal(
		mr_tx_find_fault(f.region, frames, MR_MAX_SEGS, 14, MAX_BYTES),
		-1);
	assert_int_equal(mr_tx_find_fault(f.region, frames, MR_MAX_SEGS + 1, 14,
					  MAX_BYTES),
			 MR_TX_DROP_TOO_LONG);
	assert_int_equal(mr_tx_find_fault(f.region, frames, 2, 14, 199),
			 MR_TX_DROP_TOO_LONG);
	assert_int_equal(mr_tx_find_fault(f.region, frames, 2, 201, MAX_BYTES),
			 MR_TX_DROP_INVALID);
	frames[1].len = 0;
	assert_int_equal(mr_tx_find_fault(f.region, frames, 2, 14, MAX_BYTES),
			 MR_TX_DROP_INVALID);
	frames[1] = (struct mr_frame){ UINT64_MAX - 50, 100, 0 };
	assert_int_equal(mr_tx_find_fault(f.region, frames, 2, 14, MAX_BYTES),
			 MR_TX_DROP_INVALID);
	fixture_close(&f);
}

/* Entries of 1 to 3 bytes with the bytes 0, 1, 2, ... */
TEST(bytes_are_copied_from_any_offset)
{
	uint8_t bytes[6];
	struct mr_frame frames[3];

	fixture_open(&f, PAGES, PAGE);
	for (uint32_t i = 0, next = 0; i < 3; i++) {
		frames[i] = (struct mr_frame){ i * PAGE, i + 1, 0 };
		for (uint32_t k = 0; k <= i; k++)
			mr_frame_data(f.base, &frames[i])[k] = (uint8_t)next++;
	}
	for (uint32_t at = 0; at < 6; at++) {
		mr_frame_copy_bytes(f.base, frames, at, bytes, 6 - at);
		for (uint32_t i = at; i < 6; i++)
			assert_int_equal(bytes[i - at], i);
	}
	fixture_close(&f);
}

TEST(a_copy_has_the_bytes_flags_and_room_of_a_frame)
{
	const struct mr_frame in = { 0, 5000, MR_FRAME_CSUM_PARTIAL };
	struct mr_frame out[MR_MAX_SEGS];
	struct mr_port port;
	uint32_t at = 0;

	fixture_open(&f, PAGES, PAGE);
	port = port_of_pool();
	for (uint32_t i = 0; i < in.len; i++)
		f.base[i] = (uint8_t)(i * 7);
	assert_int_equal(
		mr_port_copy_frame(&port, f.cache, &in, 1, REACH_ALL, out), 3);
	for (uint32_t i = 0; i < 3; at += out[i++].len) {
		assert_int_equal(out[i].addr % PAGE, 128);
		assert_true(out[i].len <= mr_port_room_bytes(&port));
		assert_int_equal(!!(out[i].flags & MR_FRAME_MORE), i < 2);
		assert_memory_equal(mr_frame_data(f.base, &out[i]), f.base + at,
				    out[i].len);
	}
	assert_int_equal(at, in.len);
	assert_true(out[0].flags & MR_FRAME_CSUM_PARTIAL);
	mr_frame_free_bulk(f.cache, out, 3);
	fixture_close(&f);
}

TEST(a_frame_beyond_reach_takes_no_pages)
{
	struct mr_frame out[MR_MAX_SEGS];
	struct mr_port port;

	fixture_open(&f, PAGES, PAGE);
	port = port_of_pool();
	assert_int_equal(mr_port_alloc_frame(&port, f.cache, MAX_BYTES, 0, out),
			 0);
	assert_int_equal(pool_stats(f.pool).n_in_flight, 0);
	fixture_close(&f);
}

TEST(buffers_beyond_reach_return_to_the_pool)
{
	uint64_t addrs[4];

	fixture_open(&f, PAGES, PAGE);
	assert_int_equal(mr_pool_frag_alloc_bulk(f.pool, addrs, 4), 4);
	assert_true(mr_addrs_are_below(addrs, 4, PAGES * PAGE));
	assert_false(mr_addrs_are_below(addrs, 4, addrs[2]));
	assert_int_equal(mr_pool_keep_below(f.pool, addrs, 4, PAGES * PAGE), 4);
	assert_int_equal(mr_pool_keep_below(f.pool, addrs, 4, 0), 0);
	assert_int_equal(pool_stats(f.pool).n_in_flight, 0);
	fixture_close(&f);
}

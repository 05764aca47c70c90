/* SPDX-License-Identifier: BSD-3-Clause */
/* Frags that are shorter than their page: where they begin. */
#include "support/pool_test.h"

enum { N_PAGES = 512, FRAME = 128 + 1518 };

/* Where frags begin in their page, by cache line. */
struct lines {
	uint32_t n[64];
};

static uint32_t n_used(const struct lines *lines)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < 64; i++)
		n += lines->n[i] > 0;
	return n;
}

/* All of a pool by bursts of n: frags of n_bytes, one per page. */
static struct lines take_all(uint32_t burst, uint32_t n_bytes)
{
	static uint64_t addrs[N_PAGES + 512];
	static bool is_seen[N_PAGES];
	const uint32_t page_bytes = f.pool->page_bytes;
	struct lines lines = { { 0 } };
	uint32_t n = 0, k;

	memset(is_seen, 0, sizeof(is_seen));
	while ((k = mr_frag_alloc_bulk(f.cache, addrs + n, burst, n_bytes)) >
	       0)
		n += k;
	assert_int_equal(n, N_PAGES);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t offset = addrs[i] - f.pool->addr;
		const uint64_t page = offset / page_bytes;
		const uint64_t first = offset % page_bytes;

		assert_true(page < n && !is_seen[page]);
		is_seen[page] = true;
		assert_int_equal(first % 64, 0);
		assert_true(first + n_bytes <= page_bytes);
		lines.n[first / 64]++;
	}
	for (uint32_t i = 0; i < n; i += k) {
		k = mri_min_u32(burst, n - i);
		mr_frag_free_bulk(f.cache, addrs + i, k);
	}
	assert_in_flight(f.pool, 0);
	assert_int_equal(pool_stats(f.pool).free_invalid, 0);
	return lines;
}

/* Whatever the burst, and by the loops of any CPU: all lines, evenly. */
TEST_POOL(short_frags_use_all_lines_that_are_left)
{
	static const uint32_t bursts[] = { 1, 7, 8, 32, 48, 64, 100, 512 };

	fixture_open(&f, N_PAGES, 2048);
	for (uint32_t i = 0; i < 16; i++) {
		struct lines lines;

		if (i == 8)
			f.pool->vector_bytes = 16;
		lines = take_all(bursts[i % 8], FRAME);
		assert_int_equal(n_used(&lines), 7); /* 402 bytes are left */
		for (uint32_t k = 0; k < 7; k++)
			assert_in_range(lines.n[k], N_PAGES / 14, N_PAGES / 4);
	}
}

/* Those that share sets of a first-level cache, and of a second-level one. */
TEST_POOL(pages_of_one_set_differ)
{
	static const uint32_t n_sets[] = { 2, 32 };
	static uint64_t addrs[N_PAGES];

	fixture_open(&f, N_PAGES, 2048);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, addrs, N_PAGES, FRAME),
			 N_PAGES);
	for (uint32_t i = 0; i < 2; i++) {
		struct lines lines = { { 0 } };

		for (uint32_t k = 0; k < N_PAGES; k++) {
			const uint64_t offset = addrs[k] - f.pool->addr;

			if (offset / 2048 % n_sets[i] == 1)
				lines.n[offset % 2048 / 64]++;
		}
		assert_in_range(n_used(&lines), 6, 7);
	}
	mr_frag_free_bulk(f.cache, addrs, N_PAGES);
}

TEST_POOL(whole_pages_are_aligned)
{
	struct lines lines;

	fixture_open(&f, N_PAGES, 4096);
	lines = take_all(32, 4096);
	assert_int_equal(lines.n[0], N_PAGES);
	/* Not a line is left. */
	lines = take_all(32, 4096 - 63);
	assert_int_equal(lines.n[0], N_PAGES);
	lines = take_all(32, 4096 - 64);
	assert_int_equal(n_used(&lines), 2);
}

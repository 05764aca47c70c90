/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/debug/poison.c: who uses what was given back is found. */
#include <sys/wait.h>
#include <unistd.h>

#include "support/safety_unit.h"

#include "support/pool_test.h"

enum { N_PAGES = 128 };

#ifdef __SANITIZE_ADDRESS__
enum { IS_ASAN = true };
#else
enum { IS_ASAN = false };
#endif

/* As a device would write, which AddressSanitizer does not see. */
__attribute__((no_sanitize("address"), noinline)) static void
write_at(uint64_t addr, uint8_t byte)
{
	__atomic_store_n(f.base + addr, byte, __ATOMIC_RELAXED);
}

TEST_POOL(freed_pages_are_filled)
{
	uint64_t addr;

	checked_open(&f, MR_SAFETY_POISON, N_PAGES, 4096);
	addr = alloc_one(f.cache, 4096);
	memset(f.base + addr, 1, 4096);
	mr_frag_free_bulk(f.cache, &addr, 1);
	mri_poison_allow(f.pool, addr, 4096);
	for (uint32_t i = 0; i < 4096; i++)
		assert_int_equal(f.base[addr + i], MRI_POISON);
}

/* Each byte counts. */
TEST_POOL(a_write_after_free_is_found)
{
	static const uint32_t places[] = { 0, 1, 7, 8, 2047, 4088, 4095 };
	uint64_t addrs[N_PAGES];
	uint64_t n_broken = 0;

	for (uint32_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		checked_open(&f, MR_SAFETY_POISON, N_PAGES, 4096);
		addrs[0] = alloc_one(f.cache, 4096);
		mr_frag_free_bulk(f.cache, addrs, 1);
		write_at(addrs[0] + places[i], 0x42);
		assert_int_equal(
			mr_frag_alloc_bulk(f.cache, addrs, N_PAGES, 4096),
			N_PAGES);
		n_broken += pool_stats(f.pool).poison_broken;
		assert_int_equal(n_broken, i + 1);
		assert_int_equal(f.allocator.n_lines, 1);
		assert_log_has(&f, "was written to while free");
		assert_names(f.allocator.last_line,
			     "is 0x42; it was freed by "
			     "%s+0x",
			     program_invocation_short_name);
		mr_frag_free_bulk(f.cache, addrs, N_PAGES);
		fixture_close(&f);
	}
}

/* Through a frame's address, with no cache. */
TEST_POOL(pages_are_filled_by_whoever_frees_them)
{
	uint64_t addrs[N_PAGES], first;

	checked_open(&f, MR_SAFETY_POISON, N_PAGES, 8192);
	first = alloc_one(f.cache, 8192);
	mr_cache_destroy(f.cache);
	addrs[0] = first + 128;
	mr_pool_frag_free_bulk(f.pool, addrs, 1);
	write_at(first + 5, 1);
	assert_in_flight(f.pool, 0);
	assert_int_equal(mr_pool_frag_alloc_bulk(f.pool, addrs, N_PAGES),
			 N_PAGES);
	assert_int_equal(pool_stats(f.pool).poison_broken, 1);
	assert_log_has(&f, ": byte 5 is 0x01");
	mr_pool_frag_free_bulk(f.pool, addrs, N_PAGES);
	/* And all of them again, unbroken. */
	assert_int_equal(mr_pool_frag_alloc_bulk(f.pool, addrs, N_PAGES),
			 N_PAGES);
	mr_pool_frag_free_bulk(f.pool, addrs, N_PAGES);
	assert_int_equal(pool_stats(f.pool).poison_broken, 1);
	assert_int_equal(mr_cache_create(f.pool, &f.cache, NULL), 0);
}

TEST_POOL(the_oldest_are_used_again_first)
{
	uint64_t order[3 * N_PAGES], all[N_PAGES];
	const uint32_t bound = N_PAGES / 4;

	checked_open(&f, MR_SAFETY_POISON, N_PAGES, 4096);
	/* Fresh pages first; then as they came back. */
	for (uint32_t i = 0; i < 3 * N_PAGES; i++) {
		order[i] = alloc_one(f.cache, 4096);
		mr_frag_free_bulk(f.cache, &order[i], 1);
		if (i > bound)
			assert_int_equal(order[i], order[i - bound - 1]);
		for (uint32_t j = i < bound ? 0 : i - bound; j < i; j++)
			assert_int_not_equal(order[j], order[i]);
	}
	assert_in_flight(f.pool, 0);
	/* No page is kept from who needs it. */
	assert_int_equal(mr_frag_alloc_bulk(f.cache, all, N_PAGES, 4096),
			 N_PAGES);
	assert_int_equal(pool_stats(f.pool).alloc_empty, 0);
	assert_int_equal(mr_frag_alloc_bulk(f.cache, all, 1, 4096), 0);
	assert_int_equal(pool_stats(f.pool).alloc_empty, 1);
	assert_in_flight(f.pool, N_PAGES);
	mr_frag_free_bulk(f.cache, all, N_PAGES);
	assert_in_flight(f.pool, 0);
}

/* The child's end; 0: it ended well. */
static int end_of_child(void (*body)(void))
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		(void)freopen("/dev/null", "w", stderr);
		body();
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return status;
}

/* A region is not there in a child: it makes its own. */
static void read_after_free(void)
{
	uint64_t addr;

	checked_open(&f, MR_SAFETY_POISON, N_PAGES, 4096);
	addr = alloc_one(f.cache, 4096);
	mr_frag_free_bulk(f.cache, &addr, 1);
	_exit(f.base[addr + 100] == MRI_POISON ? 0 : 77);
}

/* Page 0 again and again. */
static void write_before_free(void)
{
	uint64_t addr;

	checked_open(&f, MR_SAFETY_POISON, 2, 4096);
	for (uint32_t i = 0; i < 8; i++) {
		addr = alloc_one(f.cache, 4096);
		memset(f.base + addr, 1, 4096);
		mr_frag_free_bulk(f.cache, &addr, 1);
	}
}

TEST_POOL(asan_sees_a_read_after_free)
{
	int status;

	if (!IS_ASAN)
		skip();
	status = end_of_child(read_after_free);
	assert_false(WIFEXITED(status) &&
		     (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
	assert_int_equal(end_of_child(write_before_free), 0);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/debug/guard.c: who touches what is not his ends there. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/pool_test.h"

#include <millrace/experimental/frag.h>
#include <millrace/experimental/page.h>

enum { N_PAGES = 64 };

static void open_guarded(uint32_t page_bytes)
{
	fixture_open_with(
		&f, (struct mr_pool_config){ .n_pages = N_PAGES,
					    .page_bytes = page_bytes,
					    .safety = MR_SAFETY_GUARD });
}

__attribute__((no_sanitize("address"), noinline)) static void touch(uint8_t *at)
{
	__atomic_store_n(at, 1, __ATOMIC_RELAXED);
}

/* Byte `offset` of a page, out or given back, is written in a child. */
static bool is_fatal(uint32_t page_bytes, int64_t offset, bool is_freed)
{
	const pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (child == 0) {
		uint64_t addr;

		signal(SIGSEGV, SIG_DFL); /* sanitizers and cmocka have own */
		open_guarded(page_bytes);
		addr = alloc_one(f.cache, page_bytes);
		if (is_freed)
			mr_frag_free_bulk(f.cache, &addr, 1);
		touch(f.base + (int64_t)addr + offset);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status)) {
		assert_int_equal(WTERMSIG(status), SIGSEGV);
		return true;
	}
	assert_int_equal(WEXITSTATUS(status), 0);
	return false;
}

TEST(a_fault_ends_it)
{
	static const uint32_t sizes[] = { 4096, 8192, 32768 };

	for (uint32_t i = 0; i < 3; i++) {
		const int64_t last = sizes[i] - 1;

		assert_false(is_fatal(sizes[i], 0, false));
		assert_false(is_fatal(sizes[i], last, false));
		/* An overrun, up to a page long. */
		assert_true(is_fatal(sizes[i], last + 1, false));
		assert_true(is_fatal(sizes[i], 2 * last + 1, false));
		/* The page after that is free. */
		assert_true(is_fatal(sizes[i], 2 * last + 2, false));
		/* After it was given back. */
		assert_true(is_fatal(sizes[i], 0, true));
		assert_true(is_fatal(sizes[i], last, true));
	}
}

/* Whole pages are as in other pools: model_test.c. */
TEST_POOL(frags_are_cut_from_single_pages)
{
	struct mr_frag_cache *frags;
	uint64_t addr;

	open_guarded(4096);
	assert_int_equal(mr_frag_cache_create(f.cache, &frags, NULL), 0);
	assert_int_equal(mr_frag_cache_alloc(frags, 5000, 0, &addr), -ENOMEM);
	for (uint32_t i = 0; i < 20; i++) {
		assert_int_equal(mr_frag_cache_alloc(frags, 1500, 0, &addr), 0);
		memset(f.base + addr, 1, 1500);
		mr_frag_free_bulk(f.cache, &addr, 1);
	}
	mr_frag_cache_destroy(frags);
	assert_int_equal(pool_stats(f.pool).poison_broken, 0);
}

/* Such an address comes from counting too far. */
TEST_POOL(the_address_of_a_guard_is_refused)
{
	uint64_t addrs[2];

	open_guarded(4096);
	assert_int_equal(mr_page_alloc_bulk(f.pool, 0, addrs, 2), 2);
	for (uint32_t i = 0; i < 2; i++) {
		const uint64_t guard = addrs[i] + 4096;

		mr_page_free_bulk(f.pool, 0, &guard, 1);
		mr_frag_free_bulk(f.cache, &guard, 1);
		assert_int_equal(pool_stats(f.pool).free_invalid, 2 * i + 2);
		assert_in_flight(f.pool, 2);
	}
	mr_page_free_bulk(f.pool, 0, addrs, 2);
	assert_int_equal(pool_stats(f.pool).free_double, 0);
}

TEST_POOL(devices_cannot_register_it)
{
	open_guarded(4096);
	assert_int_equal(mr_region_pin(f.region, "xdp:eth0", 4096), -ENOTSUP);
	assert_int_equal(mr_region_pin(f.region, "xdp:eth0", 0), -ENOTSUP);
}

TEST_POOL(what_cannot_be_guarded)
{
	static const struct {
		struct mr_pool_config config;
		const char *words;
	} cases[] = {
		{ { .page_bytes = 2048 }, "cannot be guarded" },
		{ { .page_bytes = 8192, .chunk_bytes = 2048 },
		  "cannot be guarded" },
		{ { .n_pages = 20000 }, "pages cannot be guarded" },
	};
	struct mr_reason reason;
	struct mr_pool *pool;

	fixture_open(&f, N_PAGES, 4096, 4096);
	for (uint32_t i = 0; i < 3; i++) {
		struct mr_pool_config c = cases[i].config;

		c.size = sizeof(c);
		c.safety = MR_SAFETY_GUARD;
		assert_int_equal(mr_pool_create(f.ctx, &c, &pool, &reason),
				 -EINVAL);
		assert_reason_has(&reason, cases[i].words);
	}
}

TEST_POOL(where_nothing_can_be_guarded)
{
	struct mr_region_config region_config = { .size = sizeof(region_config),
						  .os_pages = MR_OS_PAGES_4K };
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = N_PAGES,
					 .safety = MR_SAFETY_GUARD };
	struct mr_region *region;
	struct mr_reason reason;
	struct mr_pool *pool;

	fixture_open(&f, N_PAGES, 4096, 4096);
	/* Beside what a device has registered; and then, where it has not. */
	config.region = f.region;
	assert_int_equal(mr_region_pin(f.region, "xdp:eth1", 4096), 0);
	assert_int_equal(mr_pool_create(f.ctx, &config, &pool, &reason),
			 -EBUSY);
	assert_reason_has(&reason, "xdp:eth1 registered the region");
	mr_region_unpin(f.region, "xdp:eth1", 4096);
	assert_int_equal(mr_pool_create(f.ctx, &config, &pool, NULL), 0);
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
	assert_int_equal(mr_region_pin(f.region, "xdp:eth1", 4096), 0);
	mr_region_unpin(f.region, "xdp:eth1", 4096);
	/* On OS pages that are larger. */
	region_config.os_pages = MR_OS_PAGES_AUTO;
	assert_int_equal(mr_region_create(f.ctx, &region_config, &region, NULL),
			 0);
	config.region = region;
	assert_int_equal(mr_pool_create(f.ctx, &config, &pool, &reason),
			 -EINVAL);
	assert_reason_has(&reason, "OS pages of 4 KiB");
	assert_int_equal(mr_region_destroy(region, NULL), 0);
}

/* Nor does another pool get it: safety_test.c. */
TEST_POOL(the_layout_stays)
{
	open_guarded(4096);
	mr_cache_destroy(f.cache);
	assert_int_equal(mr_pool_set_safety(f.pool, MR_SAFETY_POISON, NULL),
			 -EINVAL);
	assert_int_equal(mr_pool_set_safety(f.pool, MR_SAFETY_GUARD, NULL), 0);
	assert_int_equal(mr_cache_create(f.pool, &f.cache, NULL), 0);
}

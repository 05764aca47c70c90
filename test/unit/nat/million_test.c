/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many sessions are made, used and aged out, and memory is back where it was
 * (of apps/nat/ports/ports.c the trimming too). 10^5 of them; with
 * MR_TEST_OPS_FACTOR=10 the million.
 */
#include <unistd.h>

#include "fixture.h"

/* Of memory that was there once. */
#ifdef __SANITIZE_THREAD__
enum { TSAN_KEEPS_SHADOW = 1 };
#else
enum { TSAN_KEEPS_SHADOW = 0 };
#endif

enum { N = 100000, PER_HOST = 63 };

static uint32_t n_sessions(void)
{
	const char *factor = getenv("MR_TEST_OPS_FACTOR");
	uint32_t n = factor != NULL ? (uint32_t)strtoul(factor, NULL, 10) : 1;

	return N * (n == 0 ? 1 : n > 10 ? 10 : n);
}

/* What the kernel says that we have. */
static uint64_t resident_bytes(void)
{
	unsigned long n_all, n_resident = 0;
	FILE *statm = fopen("/proc/self/statm", "re");

	assert_non_null(statm);
	assert_int_equal(fscanf(statm, "%lu %lu", &n_all, &n_resident), 2);
	fclose(statm);
	return (uint64_t)n_resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void open_and_use(uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t id = fixture_map(UDP, INSIDE + i / PER_HOST,
					  (uint16_t)(1024 + i % PER_HOST));

		assert_int_equal(fixture_out(id, REMOTE, 53, 0), NAT_OK);
		assert_int_equal(fixture_in(id, REMOTE, 53, 0), NAT_OK);
	}
}

TEST_FIXTURE(memory_returns_to_what_it_was)
{
	uint32_t n = n_sessions();
	struct nat_maps_stats before, full, after;
	uint64_t resident_before, resident_full, resident_after;

	fixture.pool[0].last = POOL + 31;
	fixture_start();
	/* Two rounds: what the first one leaves, the second may not add to. */
	open_and_use(n / 10);
	fixture_at(1301);
	fixture_at(1501);
	before = fixture_stats();
	resident_before = resident_bytes();
	open_and_use(n);
	full = fixture_stats();
	resident_full = resident_bytes();
	assert_int_equal(full.n_mappings, n);
	assert_int_equal(full.n_subscribers, (n - 1) / PER_HOST + 1);
	assert_in_range(full.bytes - before.bytes, 68ull * n, 200ull * n);
	assert_int_equal(fixture_at(1801), 0);
	assert_int_equal(fixture_at(1802), n);
	assert_int_equal(fixture_stats().n_hold_down, n);
	fixture_at(1802 + 121);
	after = fixture_stats();
	resident_after = resident_bytes();
	assert_int_equal(after.n_mappings, 0);
	assert_int_equal(after.n_hold_down, 0);
	assert_int_equal(after.n_subscribers, 0);
	/* The least that tables keep. */
	assert_true(after.bytes < before.bytes + (64 << 10));
	/* The kernel may keep a huge page or two whole. */
	assert_true(resident_full > resident_before + 64ull * n);
	assert_true(TSAN_KEEPS_SHADOW ||
		    resident_after <
			    resident_before +
				    (resident_full - resident_before) / 4);
	fixture_check_ports();
}

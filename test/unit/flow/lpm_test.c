/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/flow/lpm.c; the model is a list of routes. */
#include <arpa/inet.h>
#include <pthread.h>

#include <millrace/lpm.h>

#include "support/flow_unit.h"

enum { N_ROUTES = 400, N_STEPS = 3000, N_ASKED = 150 };

static bool has_no_memory;

int __real_mprotect(void *at, size_t n, int prot);
int __wrap_mprotect(void *at, size_t n, int prot);

int __wrap_mprotect(void *at, size_t n, int prot)
{
	return has_no_memory ? -1 : __real_mprotect(at, n, prot);
}

static struct mr_lpm *table_of(uint32_t addr_bytes, uint32_t n_max)
{
	struct mr_lpm *lpm = NULL;

	assert_int_equal(mr_lpm_create(ctx, addr_bytes, n_max, &lpm, NULL), 0);
	return lpm;
}

struct addr {
	uint8_t bytes[16];
};

static struct addr addr_of(const char *text)
{
	struct addr addr = { { 0 } };

	assert_int_equal(inet_pton(strchr(text, ':') ? AF_INET6 : AF_INET, text,
				   addr.bytes),
			 1);
	return addr;
}

static int add(struct mr_lpm *lpm, const char *text, uint32_t n_bits,
	       uint32_t hop)
{
	return mr_lpm_add(lpm, addr_of(text).bytes, n_bits, hop);
}

static int take_away(struct mr_lpm *lpm, const char *text, uint32_t n_bits)
{
	return mr_lpm_remove(lpm, addr_of(text).bytes, n_bits);
}

/* By one call, which must say the same as a burst. */
static uint32_t find(const struct mr_lpm *lpm, const char *text)
{
	const struct addr addr = addr_of(text);
	uint32_t hop;

	mr_lpm_find_bulk(lpm, addr.bytes, 1, &hop);
	assert_int_equal(mr_lpm_find(lpm, addr.bytes), hop);
	return hop;
}

TEST_CTX(wrong_sizes_are_refused)
{
	static const struct {
		uint32_t addr_bytes, n_max;
	} wrong[] = {
		{ 0, 1 }, { 6, 1 }, { 4, 0 }, { 16, MR_LPM_ROUTES_MAX + 1 }
	};
	struct mr_lpm *lpm = NULL;
	struct mr_reason why;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(mr_lpm_create(ctx, wrong[i].addr_bytes,
					       wrong[i].n_max, &lpm, &why),
				 -EINVAL);
		assert_non_null(strstr(why.text, "must be 1 to 16777216"));
		assert_null(lpm);
	}
	mr_lpm_destroy(NULL);
}

TEST_CTX(longest_prefix_wins)
{
	struct mr_lpm *lpm = table_of(4, 100);

	assert_int_equal(find(lpm, "10.1.2.3"), MR_LPM_NONE);
	assert_int_equal(add(lpm, "0.0.0.0", 0, 0), 0);
	assert_int_equal(add(lpm, "10.1.2.128", 25, 3), 0);
	assert_int_equal(add(lpm, "10.1.0.0", 16, MR_LPM_HOP_MAX), 0);
	assert_int_equal(add(lpm, "10.1.2.200", 32, 65534), 0);
	assert_int_equal(add(lpm, "10.0.0.0", 8, 65533), 0);
	assert_int_equal(find(lpm, "11.0.0.0"), 0);
	assert_int_equal(find(lpm, "10.2.0.0"), 65533);
	assert_int_equal(find(lpm, "10.1.2.127"), MR_LPM_HOP_MAX);
	assert_int_equal(find(lpm, "10.1.3.127"), MR_LPM_HOP_MAX);
	assert_int_equal(find(lpm, "10.1.2.199"), 3);
	assert_int_equal(find(lpm, "10.1.2.200"), 65534);
	/* Bits after the prefix do not matter, and a hop can change. */
	assert_int_equal(add(lpm, "10.1.77.88", 16, 5), 0);
	assert_int_equal(find(lpm, "10.1.2.127"), 5);
	assert_int_equal(find(lpm, "10.1.2.199"), 3);
	mr_lpm_destroy(lpm);
}

TEST_CTX(shorter_route_takes_over_from_a_removed_one)
{
	struct mr_lpm *lpm = table_of(16, 100);

	assert_int_equal(add(lpm, "2001:db8::", 32, 1), 0);
	assert_int_equal(add(lpm, "2001:db8:1::", 48, 2), 0);
	assert_int_equal(add(lpm, "2001:db8:1:2:3:4:5:6", 128, 3), 0);
	assert_int_equal(add(lpm, "::", 0, 4), 0);
	assert_int_equal(find(lpm, "2001:db8:1:2:3:4:5:6"), 3);
	assert_int_equal(take_away(lpm, "2001:db8:1::", 48), 0);
	assert_int_equal(take_away(lpm, "2001:db8:1::", 48), -ENOENT);
	assert_int_equal(find(lpm, "2001:db8:1:2:3:4:5:6"), 3);
	assert_int_equal(find(lpm, "2001:db8:1:2:3:4:5:7"), 1);
	assert_int_equal(take_away(lpm, "2001:db8:1:2:3:4:5:6", 128), 0);
	assert_int_equal(find(lpm, "2001:db8:1:2:3:4:5:6"), 1);
	assert_int_equal(take_away(lpm, "2001:db8::", 32), 0);
	assert_int_equal(find(lpm, "2001:db8:1:2:3:4:5:6"), 4);
	assert_int_equal(take_away(lpm, "::", 0), 0);
	assert_int_equal(find(lpm, "2001:db8:1:2:3:4:5:6"), MR_LPM_NONE);
	mr_lpm_destroy(lpm);
}

TEST_CTX(what_cannot_be_added_changes_nothing)
{
	struct mr_lpm *lpm = table_of(4, 2);

	assert_int_equal(add(lpm, "10.0.0.0", 33, 1), -EINVAL);
	assert_int_equal(add(lpm, "10.0.0.0", 8, MR_LPM_HOP_MAX + 1), -EINVAL);
	assert_int_equal(take_away(lpm, "10.0.0.0", 33), -EINVAL);
	assert_int_equal(take_away(lpm, "10.0.0.0", 8), -ENOENT);
	assert_int_equal(add(lpm, "10.0.0.0", 8, 1), 0);
	has_no_memory = true;
	assert_int_equal(add(lpm, "10.1.1.1", 32, 2), -ENOMEM);
	has_no_memory = false;
	assert_int_equal(find(lpm, "10.1.1.1"), 1);
	assert_int_equal(add(lpm, "10.1.1.1", 32, 2), 0);
	assert_int_equal(add(lpm, "10.1.1.2", 32, 3), -ENOSPC);
	assert_int_equal(find(lpm, "10.1.1.2"), 1);
	assert_int_equal(add(lpm, "10.1.1.1", 32, 4), 0);
	assert_int_equal(find(lpm, "10.1.1.1"), 4);
	mr_lpm_destroy(lpm);
}

/* A table for one route has no memory for so many groups. */
TEST_CTX(trimmed_groups_are_used_again)
{
	const uint32_t n_groups = 16 - 3;
	struct mr_lpm *lpm = table_of(16, 1);
	struct addr addr = addr_of("2001:db8::1");

	for (uint32_t i = 0; i < 1000; i++) {
		memcpy(addr.bytes, &i, sizeof(i));
		assert_int_equal(mr_lpm_add(lpm, addr.bytes, 128, i), 0);
		assert_int_equal(mr_lpm_find(lpm, addr.bytes), i);
		assert_int_equal(mr_lpm_remove(lpm, addr.bytes, 128), 0);
		if (i % 100 != 99)
			continue;
		assert_int_equal(mr_lpm_trim(lpm), 100 * n_groups);
		assert_int_equal(mr_lpm_find(lpm, addr.bytes), MR_LPM_NONE);
	}
	mr_lpm_destroy(lpm);
}

/* More than there is memory for. */
TEST_CTX(routes_too_many_take_no_groups)
{
	struct mr_lpm *lpm = table_of(4, 1);

	assert_int_equal(add(lpm, "10.1.1.1", 32, 1), 0);
	for (uint32_t i = 0; i < 4096; i++) {
		const uint8_t addr[4] = { 20, (uint8_t)(i >> 8), (uint8_t)i };

		assert_int_equal(mr_lpm_add(lpm, addr, 32, 2), -ENOSPC);
	}
	assert_int_equal(mr_lpm_trim(lpm), 0);
	mr_lpm_destroy(lpm);
}

/* Routes close together, so that they cover each other. */
static struct addr some_addr(uint64_t *seed, uint32_t addr_bytes)
{
	struct addr addr = { { 0 } };

	for (uint32_t i = 0; i < addr_bytes; i++)
		addr.bytes[i] = (uint8_t)(test_random(seed, 4) << 6 |
					  test_random(seed, 2));
	return addr;
}

/* Short ones write much, so they are rare. */
static uint32_t some_length(uint64_t *seed, uint32_t max_bits)
{
	return test_random(seed, 100) == 0 ?
		       0 :
		       12 + test_random(seed, max_bits - 11);
}

struct model {
	struct addr addr;
	uint32_t n_bits; /* UINT32_MAX: none */
	uint32_t hop;
};

static bool covers(const struct model *route, const struct addr *addr)
{
	if (route->n_bits == UINT32_MAX)
		return false;
	for (uint32_t i = 0; i < route->n_bits; i++)
		if ((route->addr.bytes[i / 8] ^ addr->bytes[i / 8]) &
		    0x80 >> i % 8)
			return false;
	return true;
}

static uint32_t find_in_model(const struct model *routes,
			      const struct addr *addr)
{
	const struct model *best = NULL;

	for (uint32_t i = 0; i < N_ROUTES; i++)
		if (covers(&routes[i], addr) &&
		    (best == NULL || routes[i].n_bits > best->n_bits))
			best = &routes[i];
	return best == NULL ? MR_LPM_NONE : best->hop;
}

static void compare_with_model(const struct mr_lpm *lpm, uint32_t addr_bytes,
			       const struct model *routes, uint64_t *seed)
{
	uint8_t asked[N_ASKED][16];
	uint8_t packed[N_ASKED * 16];
	uint32_t hops[N_ASKED];
	struct addr addr;

	for (uint32_t i = 0; i < N_ASKED; i++) {
		addr = some_addr(seed, addr_bytes);
		memcpy(asked[i], addr.bytes, 16);
		memcpy(packed + i * addr_bytes, addr.bytes, addr_bytes);
	}
	mr_lpm_find_bulk(lpm, packed, N_ASKED, hops);
	for (uint32_t i = 0; i < N_ASKED; i++) {
		memcpy(addr.bytes, asked[i], 16);
		assert_int_equal(hops[i], find_in_model(routes, &addr));
		assert_int_equal(hops[i], mr_lpm_find(lpm, asked[i]));
	}
}

static void change_some_route(struct mr_lpm *lpm, uint32_t addr_bytes,
			      struct model *routes, uint64_t *seed)
{
	struct model *route = &routes[test_random(seed, N_ROUTES)];
	struct model next = { some_addr(seed, addr_bytes),
			      some_length(seed, 8 * addr_bytes),
			      test_random(seed, 1 << 17) };

	if (route->n_bits != UINT32_MAX) {
		assert_int_equal(
			mr_lpm_remove(lpm, route->addr.bytes, route->n_bits),
			0);
		route->n_bits = UINT32_MAX;
		return;
	}
	for (uint32_t i = 0; i < N_ROUTES; i++) /* the same prefix */
		if (routes[i].n_bits == next.n_bits &&
		    covers(&routes[i], &next.addr))
			route = &routes[i];
	assert_int_equal(
		mr_lpm_add(lpm, next.addr.bytes, next.n_bits, next.hop), 0);
	*route = next;
}

TEST_CTX(finds_what_a_list_of_routes_finds)
{
	static struct model routes[N_ROUTES];
	uint64_t seed = SEED;

	for (uint32_t addr_bytes = 4; addr_bytes <= 16; addr_bytes += 12) {
		/* The list has as many; trimming keeps them within bounds. */
		struct mr_lpm *lpm = table_of(addr_bytes, 4 * N_ROUTES);

		for (uint32_t i = 0; i < N_ROUTES; i++)
			routes[i].n_bits = UINT32_MAX;
		for (uint32_t i = 0; i < N_STEPS; i++) {
			change_some_route(lpm, addr_bytes, routes, &seed);
			if (i % 300 != 0)
				continue;
			compare_with_model(lpm, addr_bytes, routes, &seed);
			(void)mr_lpm_trim(lpm);
			compare_with_model(lpm, addr_bytes, routes, &seed);
		}
		mr_lpm_destroy(lpm);
	}
}

static bool is_over; /* atomic */

/* A reader sees the short route or the long one, and nothing else. */
static void *read_routes(void *opaque)
{
	const struct mr_lpm *lpm = opaque;
	const struct addr addr = addr_of("10.1.2.3");
	uintptr_t n_wrong = 0;

	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		const uint32_t hop = mr_lpm_find(lpm, addr.bytes);

		n_wrong += hop != 1 && hop != 2;
	}
	return (void *)n_wrong;
}

TEST_AS(ctx_set_up, ctx_tear_down, readers_need_no_lock, true)
{
	struct mr_lpm *lpm = table_of(4, 1000);
	void *n_wrong = NULL;
	pthread_t thread;
	uint8_t addr[4] = { 10, 1, 2, 0 };

	assert_int_equal(add(lpm, "10.0.0.0", 8, 1), 0);
	is_over = false;
	assert_int_equal(pthread_create(&thread, NULL, read_routes, lpm), 0);
	for (uint32_t i = 0; i < 20000; i++) {
		const uint32_t n_bits = 9 + i / 2 % 24;

		addr[3] = 3;
		assert_int_equal(i % 2 == 0 ? mr_lpm_add(lpm, addr, n_bits, 2) :
					      mr_lpm_remove(lpm, addr, n_bits),
				 0);
	}
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	assert_int_equal(pthread_join(thread, &n_wrong), 0);
	assert_ptr_equal(n_wrong, NULL);
	mr_lpm_destroy(lpm);
}

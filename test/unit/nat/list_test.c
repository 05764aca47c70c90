/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/list.c: what lists say, and taking it up again. */
#include "fixture.h"

enum { MAX = 400 };

/* All of it, by parts of n. */
static uint32_t list(struct nat_session *sessions, uint32_t n)
{
	uint32_t n_all = 0, n_here;
	uint64_t cursor = 0;

	do {
		n_here = nat_maps_list(fixture.maps, &cursor, fixture.now_s,
				       sessions + n_all, n);
		assert_true(n_here <= n && n_all + n_here <= MAX);
		n_all += n_here;
	} while (n_here > 0);
	return n_all;
}

static void fill(void)
{
	uint32_t id;

	for (uint16_t i = 0; i < 50; i++) {
		id = fixture_map(UDP, INSIDE + i, i);
		fixture_out(id, REMOTE, 53, 0);
		id = fixture_map(TCP, INSIDE + i, i);
		for (uint16_t k = 0; k <= i % 5; k++) {
			fixture_out(id, REMOTE, (uint16_t)(80 + k), SYN);
			fixture_in(id, REMOTE, (uint16_t)(80 + k), SYN);
		}
		fixture_map(ICMP, INSIDE + i, i);
	}
	id = fixture_map(GRE, INSIDE, 0);
	fixture_out(id, REMOTE, 0, 0);
}

static uint64_t number_of(struct nat_remote end)
{
	return (uint64_t)end.addr << 16 | end.port;
}

static int by_ends(const void *a, const void *b)
{
	const struct nat_session *x = a, *y = b;
	uint64_t p = number_of(x->outside), q = number_of(y->outside);
	int order = memcmp(&x->inside, &y->inside, sizeof(x->inside));

	if (order == 0 && p == q) {
		p = number_of(x->remote);
		q = number_of(y->remote);
	}
	return order != 0 ? order : (p > q) - (p < q);
}

TEST_FIXTURE(every_session_is_listed_once)
{
	static struct nat_session by_one[MAX], by_many[MAX];
	uint32_t n;

	memset(by_one, 0, sizeof(by_one));
	memset(by_many, 0, sizeof(by_many));
	fixture.config.passes_other_protocols = true;
	fixture.config.filtering[NAT_TCP] =
		NAT_FILTER_ADDRESS; /* permits are not */
	fixture_start();
	fill();
	n = list(by_one, 1);
	assert_int_equal(n, 3 * 50 + 100 + 1);
	assert_int_equal(list(by_many, 300), n);
	qsort(by_one, n, sizeof(by_one[0]), by_ends);
	for (uint32_t i = 1; i < n; i++)
		assert_true(by_ends(&by_one[i - 1], &by_one[i]) != 0);
}

static int restore(struct nat_session session)
{
	return nat_maps_restore(fixture.maps, &session, fixture.now_s);
}

/* Into another translator, as at a restart; in any order. */
TEST(what_was_listed_is_restored)
{
	static struct nat_session before[MAX], after[MAX];
	static const uint16_t blocks[] = { 0, 64 };

	for (uint32_t b = 0; b < 2; b++) {
		uint32_t n;

		fixture_init();
		fixture.config.passes_other_protocols = true;
		fixture.config.filtering[NAT_TCP] = NAT_FILTER_ADDRESS;
		fixture.config.ports.block = blocks[b];
		fixture.config.ports.max_blocks = 4;
		fixture_start();
		fill();
		fixture.now_s = 1030;
		n = list(before, 300);
		nat_maps_destroy(fixture.maps);
		fixture.now_s = 500000;
		fixture_start();
		for (uint32_t i = n; i-- > 0;)
			assert_int_equal(restore(before[i]), 0);
		assert_int_equal(list(after, 300), n);
		qsort(before, n, sizeof(before[0]), by_ends);
		qsort(after, n, sizeof(after[0]), by_ends);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(by_ends(&before[i], &after[i]), 0);
			assert_int_equal(before[i].tcp_state,
					 after[i].tcp_state);
			assert_int_equal(before[i].age_s, after[i].age_s);
			assert_int_equal(before[i].left_s, after[i].left_s);
			assert_int_equal(restore(before[i]), -EEXIST);
		}
		fixture_check_ports();
		assert_int_equal(fixture_at(500000 + 30), 0);
		assert_int_equal(fixture_at(500000 + 31), 50); /* ICMP */
		fixture_at(500000 + 8000);
		fixture_at(500000 + 9000);
		assert_int_equal(fixture_stats().n_mappings, 0);
		assert_int_equal(fixture_stats().n_sessions, 0);
		assert_int_equal(fixture_stats().n_subscribers, 0);
		fixture_end();
	}
}

TEST_FIXTURE(what_cannot_be_restored_is_refused)
{
	const struct nat_session good = {
		.inside = tuple(UDP, INSIDE + 1, 5),
		.outside = remote(POOL, 5000),
		.remote = remote(REMOTE, 53),
		.age_s = 10,
	};
	struct nat_session s;
	uint32_t n_subscribers;

	fixture.config.max_mappings = 2;
	fixture_start();
	s = good, s.inside.addr = htonl(0x0b000001);
	assert_int_equal(restore(s), -EINVAL);
	s = good, s.outside.addr = htonl(POOL + 1);
	assert_int_equal(restore(s), -EINVAL);
	s = good, s.outside.port = htons(1023);
	assert_int_equal(restore(s), -EINVAL);
	s = good, s.inside.proto = GRE;
	assert_int_equal(restore(s), -EINVAL);
	s = good, s.flags = NAT_MAP_STATIC;
	assert_int_equal(restore(s), -EINVAL);
	s = good, s.tcp_state = NAT_TCP_OPEN;
	assert_int_equal(restore(s), -EINVAL);
	s = good, s.inside.proto = TCP;
	assert_int_equal(restore(s), -EINVAL);
	s.tcp_state = NAT_TCP_STATES;
	assert_int_equal(restore(s), -EINVAL);
	s = good, s.age_s = UINT32_MAX;
	assert_int_equal(restore(s), -EINVAL);
	assert_int_equal(fixture_stats().n_subscribers, 0);
	assert_int_equal(restore(good), 0);
	assert_int_equal(restore(good), -EEXIST);
	n_subscribers = (uint32_t)fixture_stats().n_subscribers;
	s = good, s.inside.addr = htonl(INSIDE + 2);
	assert_int_equal(restore(s), -EADDRINUSE);
	s = good, s.outside.port = htons(5001);
	assert_int_equal(restore(s), -EADDRINUSE);
	assert_int_equal(fixture_stats().n_subscribers, n_subscribers);
	s.inside.port = htons(6);
	assert_int_equal(restore(s), 0);
	s.inside.port = htons(7);
	assert_int_equal(restore(s), -ENOSPC);
	fixture_check_ports();
}

TEST_FIXTURE(further_sessions_are_restored_within_limits)
{
	struct nat_session s = {
		.inside = tuple(TCP, INSIDE + 1, 5),
		.outside = remote(POOL, 5000),
		.remote = remote(REMOTE, 53),
		.tcp_state = NAT_TCP_OPEN,
	};

	fixture.config.max_sessions = 1;
	fixture_start();
	assert_int_equal(restore(s), 0);
	s.remote.port = htons(54);
	assert_int_equal(restore(s), 0);
	assert_int_equal(restore(s), -EEXIST);
	s.remote.port = htons(55);
	assert_int_equal(restore(s), -ENOSPC);
}

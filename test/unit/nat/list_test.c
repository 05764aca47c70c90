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

TEST_STARTED(a_list_says_how_old_and_how_long)
{
	struct nat_session sessions[MAX];
	uint32_t id;

	id = fixture_map(UDP, INSIDE + 3, 7);
	fixture_out(id, REMOTE, 53, 0);
	nat_map_at(fixture.maps, id)->n_out = 5;
	nat_map_at(fixture.maps, id)->n_in = 6;
	fixture.now_s = 1100;
	assert_int_equal(list(sessions, 10), 1);
	assert_int_equal(sessions[0].inside.addr, htonl(INSIDE + 3));
	assert_int_equal(sessions[0].outside.addr, htonl(POOL));
	assert_int_equal(sessions[0].outside.port, htons(fixture_port(id)));
	assert_int_equal(sessions[0].remote.addr, htonl(REMOTE));
	assert_int_equal(sessions[0].remote.port, htons(53));
	assert_int_equal(sessions[0].age_s, 100);
	assert_int_equal(sessions[0].left_s, 201);
	assert_int_equal(sessions[0].n_out, 5);
	assert_int_equal(sessions[0].n_in, 6);
	nat_maps_close(fixture.maps, id, 1100);
	id = fixture_map(TCP, INSIDE + 3, 7);
	fixture_out(id, REMOTE, 80, SYN);
	fixture_in(id, REMOTE, 80, SYN);
	fixture_out(id, REMOTE, 81, SYN);
	fixture.now_s = 1110;
	assert_int_equal(list(sessions, 10), 2);
	assert_int_equal(sessions[0].tcp_state, NAT_TCP_OPEN);
	assert_int_equal(sessions[0].left_s, 7431);
	assert_int_equal(sessions[1].tcp_state, NAT_TCP_OPENING);
	assert_int_equal(sessions[1].remote.port, htons(81));
	assert_int_equal(sessions[1].left_s, 231);
	/* When the first one has ended, the further one is left. */
	fixture_in(id, REMOTE, 81, SYN);
	fixture_in(id, REMOTE, 80, RST);
	fixture_at(1351);
	assert_int_equal(list(sessions, 10), 1);
	assert_int_equal(sessions[0].remote.port, htons(81));
}

/* Else it would be let in again behind a restart. */
TEST_FIXTURE(a_remote_end_that_is_forgotten_is_not_listed)
{
	struct nat_session sessions[MAX];
	uint32_t id;

	fixture.config.filtering[NAT_UDP] = NAT_FILTER_ADDRESS;
	fixture_start();
	id = fixture_map(UDP, INSIDE, 1);
	fixture_out(id, REMOTE, 53, 0);
	fixture_at(1200);
	fixture_out(id, REMOTE + 1, 53, 0);
	assert_int_equal(list(sessions, 10), 2);
	fixture_at(1301);
	assert_int_equal(list(sessions, 10), 2);
	assert_int_equal(sessions[0].remote.addr, 0);
	assert_int_equal(sessions[1].remote.addr, htonl(REMOTE + 1));
}

TEST_FIXTURE(static_ones_are_listed_without_a_time)
{
	struct nat_session sessions[MAX];
	uint32_t id;

	fixture.forwards[0] = (struct nat_forward){ POOL, INSIDE + 5,  80, 80,
						    80,   1 << NAT_TCP };
	fixture.config.n_forwards = 1;
	fixture_start();
	assert_int_equal(list(sessions, 10), 1);
	assert_int_equal(sessions[0].flags, NAT_MAP_STATIC);
	assert_int_equal(sessions[0].left_s, 0);
	assert_int_equal(sessions[0].remote.addr, 0);
	id = fixture_find_in(TCP, POOL, 80);
	fixture_out(id, REMOTE, 80, SYN | ACK);
	assert_int_equal(list(sessions, 10), 1);
	assert_int_equal(sessions[0].remote.addr, htonl(REMOTE));
	assert_int_equal(sessions[0].left_s, 241);
	fixture.now_s = 9000;
	assert_int_equal(list(sessions, 10), 1);
	assert_int_equal(sessions[0].remote.addr, 0);
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

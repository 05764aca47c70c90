/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/datapath/routes.c: which worker a frame belongs to. */
#include "fixture.h"

#include "config/addrs.h"
#include "datapath/steer.h"

enum { N_WORKERS = 4, RECEIVER = 3 };

static const uint32_t inside_host = 0x0a000005, external = 0xc0000201,
		      far = 0xcb007109, one_outside = 0xc0000207,
		      one_inside = 0x0a000007, forward_inside = 0x0a000009;

static struct nat_routes routes;

/* One of four workers, which knows all static mappings. */
static int set_up(void **state)
{
	fixture_set_up(state);
	fixture.pool[0] = (struct nat_range){ external, external };
	fixture.subscribers[0] = (struct nat_prefix){ INSIDE, 0xffffff00 };
	fixture.forwards[0] = (struct nat_forward){
		.outside_addr = external,
		.inside_addr = forward_inside,
		.outside_first = 8000,
		.outside_last = 8009,
		.inside_first = 80,
		.proto_mask = 1 << NAT_TCP,
	};
	fixture.one_to_ones[0] =
		(struct nat_one_to_one){ one_outside, one_inside };
	fixture.config.n_forwards = fixture.config.n_one_to_ones = 1;
	assert_int_equal(nat_addrs_create(&fixture.config), 0);
	assert_int_equal(fixture_try(RECEIVER, N_WORKERS, NULL), 0);
	routes = (struct nat_routes){ fixture.maps, fixture.config.addrs,
				      N_WORKERS };
	return 0;
}

static int tear_down(void **state)
{
	nat_addrs_destroy(fixture.config.addrs);
	return fixture_tear_down(state);
}

static void put16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

/* An IPv4 header with ports or an id behind it; returns its bytes. */
static uint32_t put_packet(uint8_t *at, uint8_t proto, uint32_t src,
			   uint32_t dst, uint16_t sport, uint16_t dport)
{
	memset(at, 0, 28);
	at[0] = 0x45;
	at[9] = proto;
	put16(at + 12, (uint16_t)(src >> 16));
	put16(at + 14, (uint16_t)src);
	put16(at + 16, (uint16_t)(dst >> 16));
	put16(at + 18, (uint16_t)dst);
	if (proto == 1) { /* an echo */
		at[20] = 8;
		put16(at + 24, sport);
	} else {
		put16(at + 20, sport);
		put16(at + 22, dport);
	}
	return 28;
}

static uint32_t put_frame(uint8_t *bytes, uint8_t proto, uint32_t src,
			  uint32_t dst, uint16_t sport, uint16_t dport)
{
	memset(bytes, 0, MR_ETH_BYTES);
	put16(bytes + 12, 0x0800);
	return MR_ETH_BYTES +
	       put_packet(bytes + MR_ETH_BYTES, proto, src, dst, sport, dport);
}

static uint32_t owner(enum nat_side from, const uint8_t *bytes, uint32_t n)
{
	enum nat_lane lane = (enum nat_lane)from;
	const uint32_t w =
		nat_routes_owner(&routes, from, bytes, n, RECEIVER, &lane);

	assert_true(w < N_WORKERS);
	return w;
}

static uint32_t owner_of_port(uint16_t port)
{
	return (port >> NAT_SLICE_BITS) % N_WORKERS;
}

TEST_WITH(set_up, tear_down, from_inside_by_the_source_alone)
{
	uint32_t n_seen[N_WORKERS] = { 0 };
	uint8_t bytes[128];

	for (uint32_t i = 0; i < 256; i++) {
		const uint32_t src = (inside_host & ~0xffu) + i;
		const uint32_t w = nat_steer_subscriber(htonl(src), N_WORKERS);

		n_seen[w]++;
		for (uint16_t port = 1; port < 1000; port += 77)
			assert_int_equal(
				owner(NAT_INSIDE, bytes,
				      put_frame(bytes, port % 2 ? 6 : 17, src,
						far + port, port, 53)),
				w);
	}
	/* 256 addresses next to each other: no worker has far too many. */
	for (uint32_t w = 0; w < N_WORKERS; w++)
		assert_in_range(n_seen[w], 40, 90);
}

TEST_WITH(set_up, tear_down, from_outside_by_the_slice_of_the_port)
{
	uint8_t bytes[128];

	for (uint32_t port = 1024; port < 65536; port += 61) {
		if (port / 10 == 800)
			continue; /* forwarded */
		assert_int_equal(owner(NAT_OUTSIDE, bytes,
				       put_frame(bytes, 17, far, external, 53,
						 (uint16_t)port)),
				 owner_of_port((uint16_t)port));
		assert_int_equal(owner(NAT_OUTSIDE, bytes,
				       put_frame(bytes, 1, far, external,
						 (uint16_t)port, 0)),
				 owner_of_port((uint16_t)port));
	}
	/* No ports: by the address. */
	assert_int_equal(owner(NAT_OUTSIDE, bytes,
			       put_frame(bytes, 47, far, external, 0, 0)),
			 nat_other_shard(external, N_WORKERS));
}

TEST_WITH(set_up, tear_down, fixed_ends_are_their_hosts)
{
	const uint32_t of_forward =
		nat_steer_subscriber(htonl(forward_inside), N_WORKERS);
	const uint32_t of_pair =
		nat_steer_subscriber(htonl(one_inside), N_WORKERS);
	uint8_t bytes[128];

	for (uint16_t port = 7999; port <= 8010; port++) {
		const bool is_forwarded = port >= 8000 && port <= 8009;

		assert_int_equal(
			owner(NAT_OUTSIDE, bytes,
			      put_frame(bytes, 6, far, external, 9999, port)),
			is_forwarded ? of_forward : owner_of_port(port));
		/* The forward is TCP's. */
		assert_int_equal(
			owner(NAT_OUTSIDE, bytes,
			      put_frame(bytes, 17, far, external, 9999, port)),
			owner_of_port(port));
		assert_int_equal(owner(NAT_OUTSIDE, bytes,
				       put_frame(bytes, 17, far, one_outside,
						 9999, port)),
				 of_pair);
	}
	/* An excluded destination answers to the address itself. */
	assert_int_equal(owner(NAT_OUTSIDE, bytes,
			       put_frame(bytes, 17, far, inside_host, 1, 2)),
			 nat_steer_subscriber(htonl(inside_host), N_WORKERS));
}

TEST_WITH(set_up, tear_down, icmp_errors_go_where_their_packet_came_from)
{
	uint8_t bytes[128];
	uint8_t *icmp = bytes + MR_ETH_BYTES + 20;
	uint32_t n;

	for (uint16_t port = 2000; port < 3000; port += 100) {
		/* A router outside, about what we sent from our port. */
		put_frame(bytes, 1, far + 7, external, 0, 0);
		memset(icmp, 0, 8);
		icmp[0] = 3;
		n = MR_ETH_BYTES + 28 +
		    put_packet(icmp + 8, 17, external, far, port, 53);
		assert_int_equal(owner(NAT_OUTSIDE, bytes, n),
				 owner_of_port(port));
	}
	/* A router inside, about what was sent to a subscriber. */
	put_frame(bytes, 1, 0x0a0000fe, far, 0, 0);
	memset(icmp, 0, 8);
	icmp[0] = 11;
	n = MR_ETH_BYTES + 28 +
	    put_packet(icmp + 8, 17, far, inside_host, 53, 2000);
	assert_int_equal(owner(NAT_INSIDE, bytes, n),
			 nat_steer_subscriber(htonl(inside_host), N_WORKERS));
}

TEST_WITH(set_up, tear_down, fragments_meet)
{
	enum nat_lane lane;
	uint32_t at[3];
	uint8_t bytes[128];

	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t n = put_frame(bytes, 17, far, external, 53,
					     (uint16_t)(2000 + 64 * i));

		put16(bytes + MR_ETH_BYTES + 4, 4711);
		put16(bytes + MR_ETH_BYTES + 6,
		      (uint16_t)(i == 2 ? 370 : 0x2000 | 185 * i));
		lane = NAT_LANE_OUTSIDE;
		at[i] = nat_routes_owner(&routes, NAT_OUTSIDE, bytes, n,
					 RECEIVER, &lane);
		assert_int_equal(lane, NAT_LANE_FRAGMENT);
	}
	assert_int_equal(at[0], at[1]);
	assert_int_equal(at[0], at[2]);
	/* Where they meet, the first one is looked at as any other. */
	put_frame(bytes, 17, far, external, 53, 2000);
	put16(bytes + MR_ETH_BYTES + 6, 0x2000);
	lane = NAT_LANE_FRAGMENT;
	assert_int_equal(nat_routes_owner(&routes, NAT_OUTSIDE, bytes, 42,
					  RECEIVER, &lane),
			 owner_of_port(2000));
	assert_int_equal(lane, NAT_LANE_OUTSIDE);
}

/* Each length, of a buffer of that size, so that ASan sees a byte too far. */
TEST_WITH(set_up, tear_down, what_is_cut_off_is_somebodys)
{
	uint8_t bytes[128];
	const uint32_t n_icmp = MR_ETH_BYTES + 56;

	put_frame(bytes, 1, far, external, 0, 0);
	bytes[MR_ETH_BYTES + 20] = 3;
	put_packet(bytes + MR_ETH_BYTES + 28, 17, external, far, 2000, 53);
	for (uint32_t n = 0; n <= n_icmp; n++) {
		uint8_t *copy = malloc(n + 1);

		assert_non_null(copy);
		memcpy(copy, bytes, n);
		owner(NAT_OUTSIDE, copy, n);
		owner(NAT_INSIDE, copy, n);
		free(copy);
	}
	/* Neither IPv4 nor a header that can be: the receiver drops it. */
	bytes[13] = 6;
	assert_int_equal(owner(NAT_OUTSIDE, bytes, n_icmp), RECEIVER);
	bytes[13] = 0;
	bytes[MR_ETH_BYTES] = 0x44;
	assert_int_equal(owner(NAT_OUTSIDE, bytes, n_icmp), RECEIVER);
}

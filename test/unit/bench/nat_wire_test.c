/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench/nat/nat_wire.c, with a NAT's translation between the two
 * sides.
 */
#include <arpa/inet.h>
#include <netinet/in.h>

#include "support/unit.h"

#include "nat/nat_wire.h"

enum { EXTERNAL = 0xc0000201, EXTERNAL_PORT = 77 };

static const struct nat_macs macs = { { 2, 0, 0, 0, 0, 1 },
				      { 2, 0, 0, 0, 0, 2 } };

static struct nat_plan plan_of(bool is_tcp)
{
	return (struct nat_plan){ .client = 0x0a000002,
				  .n_clients = 3,
				  .server = 0xc0000202,
				  .is_tcp = is_tcp,
				  .magic = 0xfffffff0 };
}

static struct mr_ipv4 *ip_of(uint8_t *frame)
{
	return (struct mr_ipv4 *)(frame + MR_ETH_BYTES);
}

static struct mr_udp *l4_of(uint8_t *frame)
{
	return (struct mr_udp *)(frame + MR_ETH_BYTES + sizeof(struct mr_ipv4));
}

/* Sums as the frame has them are good: headers and layer 4. */
static bool sums_are_good(uint8_t *frame)
{
	struct mr_net_view view;
	uint64_t sum;

	if (mr_net_parse(frame, NAT_FRAME_BYTES, NAT_FRAME_BYTES, &view) != 0)
		return false;
	sum = mr_csum_add(frame + view.l4_bytes, view.l4_len_bytes,
			  mr_csum_pseudo(frame, &view));
	return mr_csum_fold(sum) == 0xffff &&
	       mr_csum_fold(mr_csum_add((uint8_t *)ip_of(frame),
					sizeof(struct mr_ipv4), 0)) == 0xffff;
}

/* There through a NAT, and back to who asked; to another one it is none. */
TEST(an_answer_reaches_only_the_asker)
{
	for (uint32_t i = 0; i < 40; i++) {
		const struct nat_plan plan = plan_of(i % 2);
		uint8_t there[NAT_FRAME_BYTES], back[NAT_FRAME_BYTES];
		struct mr_ipv4 inside;
		struct nat_seen seen;
		uint16_t port;

		nat_wire_query(&plan, i, &macs, there);
		assert_true(sums_are_good(there));
		inside = *ip_of(there);
		port = l4_of(there)->src;
		ip_of(there)->src = htonl(EXTERNAL);
		l4_of(there)->src = htons(EXTERNAL_PORT);
		assert_int_equal(
			nat_wire_read(&plan, true, there, sizeof(there), &seen),
			NAT_QUERY);
		assert_int_equal(seen.number, i);
		nat_wire_answer(&plan, i, &seen.tuple, &macs, back);
		assert_true(sums_are_good(back));
		assert_int_equal(ip_of(back)->dst, htonl(EXTERNAL));
		assert_int_equal(l4_of(back)->dst, htons(EXTERNAL_PORT));
		ip_of(back)->dst = inside.src;
		l4_of(back)->dst = port;
		assert_int_equal(
			nat_wire_read(&plan, false, back, sizeof(back), &seen),
			NAT_ANSWER);
		assert_int_equal(seen.number, i);
		/* The entry is another's by now. */
		l4_of(back)->dst ^= htons(1);
		assert_int_equal(
			nat_wire_read(&plan, false, back, sizeof(back), &seen),
			NAT_OTHER);
		l4_of(back)->dst = port;
		ip_of(back)->dst ^= htonl(1);
		assert_int_equal(
			nat_wire_read(&plan, false, back, sizeof(back), &seen),
			NAT_OTHER);
	}
}

TEST(connections_differ_and_other_frames_are_ignored)
{
	struct nat_plan plan = plan_of(false);
	uint8_t a[NAT_FRAME_BYTES], b[NAT_FRAME_BYTES];
	struct nat_seen seen;

	/* The client first, then its ports, then the server's. */
	nat_wire_query(&plan, 1, &macs, a);
	assert_int_equal(ntohl(ip_of(a)->src), 0x0a000003);
	assert_int_equal(ntohs(l4_of(a)->src), NAT_FIRST_PORT);
	nat_wire_query(&plan, 4, &macs, b);
	assert_int_equal(ip_of(a)->src, ip_of(b)->src);
	assert_int_equal(ntohs(l4_of(b)->src), NAT_FIRST_PORT + 1);
	nat_wire_query(&plan, 3 * NAT_CLIENT_PORTS, &macs, b);
	assert_int_equal(ntohs(l4_of(b)->dst), NAT_SERVER_PORT + 1);
	/* Of another run, to another server, too short, of another protocol. */
	plan.magic++;
	assert_int_equal(nat_wire_read(&plan, true, a, sizeof(a), &seen),
			 NAT_OTHER);
	plan.magic--;
	assert_int_equal(nat_wire_read(&plan, true, a, 49, &seen), NAT_OTHER);
	assert_int_equal(nat_wire_read(&plan, true, a, 50, &seen), NAT_QUERY);
	plan.server++;
	assert_int_equal(nat_wire_read(&plan, true, a, sizeof(a), &seen),
			 NAT_OTHER);
	plan.server--;
	plan.is_tcp = true;
	assert_int_equal(nat_wire_read(&plan, true, a, sizeof(a), &seen),
			 NAT_OTHER);
}

TEST(arp_is_answered_only_for_our_addresses)
{
	struct nat_plan plan = plan_of(false);
	uint8_t frame[NAT_FRAME_BYTES];
	struct nat_seen seen;

	for (uint32_t i = 0; i < 5; i++) {
		const uint32_t asked = plan.client - 1 + i;

		nat_wire_arp(MR_ARP_REQUEST, 0x0a000001, asked, &macs, frame);
		assert_int_equal(nat_wire_read(&plan, false, frame,
					       sizeof(frame), &seen),
				 i >= 1 && i <= 3 ? NAT_ARP_REQUEST :
						    NAT_OTHER);
		assert_int_equal(seen.asked, asked);
		assert_int_equal(seen.asker, 0x0a000001);
		assert_memory_equal(seen.src_mac, macs.src, 6);
	}
	/* The gateway's announcement of itself is an answer, too. */
	plan.gateway = 0x0a0000fe;
	nat_wire_arp(MR_ARP_REQUEST, plan.gateway, plan.gateway, &macs, frame);
	assert_int_equal(
		nat_wire_read(&plan, false, frame, sizeof(frame), &seen),
		NAT_ARP_REPLY);
	nat_wire_arp(MR_ARP_REQUEST, EXTERNAL, plan.server, &macs, frame);
	assert_int_equal(
		nat_wire_read(&plan, true, frame, sizeof(frame), &seen),
		NAT_ARP_REQUEST);
	assert_int_equal(frame[0], 0xff);
	nat_wire_arp(MR_ARP_REPLY, EXTERNAL, plan.server, &macs, frame);
	assert_int_equal(
		nat_wire_read(&plan, true, frame, sizeof(frame), &seen),
		NAT_ARP_REPLY);
	assert_memory_equal(frame, macs.dst, 6);
}

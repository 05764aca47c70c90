/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of a flow's frames when a rule begins:
 * drivers/xdp/program/flow.bpf.h. */
#include <linux/types.h>

#include "nat/fixture.h"

#include "program/rules.h"
#include "simulated.h"

enum { FRAME_BYTES = 60, HOP = 0, BOOTED_S = 1000, SECOND_MS = 1000 };

static struct mr_rules *rules;
static uint32_t id;

/* A UDP packet to port 53 that arrives on port 0. */
static const uint8_t query[FRAME_BYTES] = {
	2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9, 8, 0,              /* Ethernet */
	0x45, 0, 0, 46, 0, 0, 0x40, 0, 64, 17, 0x06, 0x8a,     /* IPv4 */
	10, 0, 0, 1, 198, 51, 100, 1, 0x13, 0x88, 0, 53, 0, 26, /* UDP */
};

static void tick(uint32_t ms)
{
	simulated_tick(rules, (BOOTED_S * UINT64_C(1000) + ms) << 20);
}

/* Add an active rule of the flow, as the driver leaves it. */
static void add_rule(void)
{
	const struct mr_flow_ends ends = { htonl(INSIDE + 1), htonl(REMOTE),
					   htons(5000), htons(53) };
	const struct mr_rule rule = { .match = MR_RULE_FLOW,
				      .to = 1,
				      .proto = UDP,
				      .from = ends,
				      .as = ends };
	struct mr_rules_link link = { .mac = { 2, 0, 0, 0, 0, 1 },
				      .mtu_bytes = 1500 };
	struct mr_reason why = { "" };

	if (simulated_open(fixture.ctx, 1, 1, 0, 1, &rules, &why) < 0)
		fail_msg("%s", why.text);
	for (uint32_t i = 0; i < 2; i++)
		mr_rules_link(rules, i, &link);
	mr_rules_hop(rules, HOP, 0x070000000002, UINT64_MAX);
	assert_int_equal(mr_rules_add(rules, &rule, 1, &id), 1);
	mr_rules_ways(rules, id)[0].confirmed = XDP_FLOW_NEW;
	mr_rules_ways(rules, id)[0].hop = HOP;
	mr_rules_set(rules, id, 1, true);
	tick(0);
}

static bool is_forwarded(struct mr_flow_ticket *ret_ticket)
{
	uint8_t bytes[SIMULATED_FRAME];
	uint32_t n_bytes = FRAME_BYTES;
	enum simulated end;

	memcpy(bytes, query, FRAME_BYTES);
	end = simulated_run(rules, 0, bytes, &n_bytes, ret_ticket);
	assert_int_not_equal(end, SIMULATED_FAILED);
	return end == SIMULATED_SENT;
}

/* Frames that went up before there was a rule have no tickets. */
TEST_STARTED(first_frame_goes_up_and_holds_those_after_it)
{
	struct mr_flow_ticket first, second;

	add_rule();
	assert_false(is_forwarded(&first));
	assert_int_equal(first.number, 1);
	assert_false(is_forwarded(&second));
	mr_rules_confirm(rules, &first);
	assert_false(is_forwarded(&second));
	mr_rules_confirm(rules, &second);
	assert_true(is_forwarded(&second));
	simulated_close(rules);
}

TEST_STARTED(unconfirmed_frames_hold_a_flow_for_a_second)
{
	struct mr_flow_ticket ticket;

	add_rule();
	assert_false(is_forwarded(&ticket));
	tick(SECOND_MS - 1);
	assert_false(is_forwarded(&ticket));
	tick(SECOND_MS);
	assert_true(is_forwarded(&ticket));
	simulated_close(rules);
}

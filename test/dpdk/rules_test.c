/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules of the dpdk: driver, on devices with the rte_flow of flows.c: refused
 * rules, and when changes reach the device. test/conformance has the rest.
 *
 *     rules_test TEST
 */
#include <errno.h>
#include <poll.h>

#include <millrace/experimental/offload.h>

#include "fixture.h"
#include "model/flows.h"

static struct pair pair;
static struct mr_rules *rules;

static const struct mr_rule forward = { .match = MR_RULE_ANY, .to = 1 };
static const struct mr_rule drop = { .match = MR_RULE_ANY,
				     .action = MR_RULE_DROP };

static uint32_t is_up = 1;

int rte_eth_link_get_nowait(uint16_t id, struct rte_eth_link *ret_link)
{
	(void)id;
	*ret_link = (struct rte_eth_link){ .link_status = is_up & 1 };
	return 0;
}

static void open_ports(void)
{
	static const char *names[] = { "a", "b" };

	pair = make_pair(names, "");
}

static void open_rules(void)
{
	const struct mr_rules_config config = { .size = sizeof(config),
						.n_ports = 2,
						.ports = pair.ports };
	struct mr_reason why;

	open_ports();
	if (mr_rules_open(&config, &rules, &why) < 0)
		fail_msg("%s", why.text);
}

static void close_rules(void)
{
	mr_rules_close(rules);
	assert_int_equal(flows_count(), 0);
	end_pair(&pair);
}

static int get_caps(struct mr_offload_caps *caps, struct mr_reason *why)
{
	*caps = (struct mr_offload_caps){ .size = sizeof(*caps) };
	return mr_port_offload_caps(pair.ports[0], caps, why);
}

TEST(caps_are_in_the_devices_words)
{
	struct mr_offload_caps caps;
	struct mr_reason why;

	open_ports();
	assert_int_equal(get_caps(&caps, &why), 0);
	assert_int_equal(caps.matches, 1u << MR_RULE_ANY);
	assert_true(caps.can_send && caps.is_advised && caps.why[0] == '\0');
	flows_refusals.forward = "no embedded switch";
	assert_int_equal(get_caps(&caps, &why), 0);
	assert_int_equal(caps.matches, 1u << MR_RULE_ANY);
	assert_true(!caps.can_send && !caps.is_advised);
	assert_non_null(strstr(caps.why, "no embedded switch"));
	flows_refusals.drop = "no ingress table";
	assert_int_equal(get_caps(&caps, &why), -ENOTSUP);
	assert_non_null(strstr(why.text, "no embedded switch"));
	assert_non_null(strstr(why.text, "no ingress table"));
	flows_refusals.forward = NULL;
	assert_int_equal(get_caps(&caps, &why), 0);
	assert_true(caps.can_send);
	end_pair(&pair);
}

TEST(device_without_flows_has_no_rules)
{
	struct mr_port *port = open_port("dpdk:net_null0");
	struct mr_offload_caps caps = { .size = sizeof(caps) };
	struct mr_reason why;

	assert_int_equal(mr_port_offload_caps(port, &caps, &why), -ENOTSUP);
	assert_non_null(strstr(why.text, "net_null"));
	mr_port_close(port);
}

TEST(refused_rule_is_logged_in_the_devices_words)
{
	uint32_t id;

	open_rules();
	flows_refusals.forward = "table full";
	assert_int_equal(mr_rules_add(rules, &forward, 1, &id), 0);
	assert_non_null(strstr(log_text, "refuses a rule: table full"));
	assert_int_equal(mr_rules_add(rules, &drop, 1, &id), 1);
	close_rules();
}

TEST(poll_notifies_the_device)
{
	struct pollfd fd;
	uint32_t id;

	open_rules();
	fd = (struct pollfd){ .fd = mr_rules_fd(rules), .events = POLLIN };
	assert_int_equal(mr_rules_add(rules, &forward, 1, &id), 1);
	mr_rules_set(rules, id, 1, false); /* as it was */
	assert_int_equal(poll(&fd, 1, 0), 0);
	mr_rules_set(rules, id, 1, true);
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(flows_count(), 0);
	assert_int_equal(mr_rules_poll(rules), 0);
	assert_int_equal(poll(&fd, 1, 0), 0);
	assert_int_equal(flows_count(), 1);
	mr_rules_remove(rules, &id, 1);
	assert_int_equal(flows_count(), 0);
	close_rules();
}

/* A rule that the device refuses later is not retried until it changes. */
TEST(rule_that_is_refused_later_stays_inactive)
{
	const char *line;
	uint32_t id;

	open_rules();
	assert_int_equal(mr_rules_add(rules, &forward, 1, &id), 1);
	flows_refusals.create = "no counter left";
	mr_rules_set(rules, id, 1, true);
	mr_rules_poll(rules);
	line = strstr(log_text, "no counter left");
	assert_non_null(line);
	mr_rules_poll(rules);
	assert_null(strstr(line + 1, "no counter left"));
	assert_int_equal(flows_count(), 0);
	flows_refusals.create = NULL;
	mr_rules_set(rules, id, 1, false);
	mr_rules_poll(rules);
	mr_rules_set(rules, id, 1, true);
	mr_rules_poll(rules);
	assert_int_equal(flows_count(), 1);
	close_rules();
}

TEST(rule_is_applied_while_its_target_has_a_link)
{
	struct mr_rules_sent sent = { .size = sizeof(sent) };
	uint32_t id;

	open_rules();
	assert_int_equal(mr_rules_add(rules, &forward, 1, &id), 1);
	mr_rules_set(rules, id, 1, true);
	mr_rules_poll(rules);
	for (is_up = 0; is_up < 2; is_up++) {
		for (int i = 0; i < 2; i++)
			mr_port_poll(pair.ports[i]);
		assert_int_equal(mr_rules_poll(rules), 2);
		assert_int_equal(flows_count(), is_up);
		assert_int_equal(mr_rules_sent(rules, 1, &sent), 0);
		assert_int_equal(sent.can_send, is_up);
	}
	close_rules();
}

/* Counts of earlier flows survive these. */
TEST(counts_outlive_their_flows)
{
	struct mr_rules_sent sent = { .size = sizeof(sent) };
	struct mr_rx_stats stats = { .size = sizeof(stats) };
	uint32_t id;

	open_rules();
	assert_int_equal(mr_rules_add(rules, &forward, 1, &id), 1);
	for (uint32_t round = 0; round < 3; round++) {
		uint16_t port_id;

		assert_int_equal(
			rte_eth_dev_get_port_by_name("net_ring_a", &port_id),
			0);
		mr_rules_set(rules, id, round % 2, true);
		mr_rules_poll(rules);
		for (uint32_t i = 0; i < 10; i++)
			assert_true(flows_take(port_id, 60) >= 0);
	}
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(mr_rules_sent(rules, i, &sent), 0);
		assert_int_equal(sent.attempted, i == 0 ? 20 : 10);
		assert_int_equal(sent.bytes, 60 * sent.attempted);
		assert_int_equal(sent.has_drops, 0);
	}
	mr_rules_close(rules);
	rules = NULL;
	assert_int_equal(mr_rxq_stats(mr_port_rxq(pair.ports[0], 0), &stats),
			 0);
	assert_int_equal(stats.offloaded, 30);
	assert_int_equal(stats.received, 30);
	close_rules();
}

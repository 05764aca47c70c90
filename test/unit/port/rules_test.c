/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/port/rules.c, with a driver that keeps what it is given. */
#include <netinet/in.h>

#include "support/unit.h"

#include <millrace/driver.h>
#include <millrace/experimental/driver_offload.h>

enum { N_PORTS = 2, N_RULES = 4 };

static struct {
	int open_err, caps_err;
	uint32_t n_open, n_accepted; /* rules that it takes yet */
	uint32_t ids[N_RULES], n_ids;
	uint32_t links, hop, n_flushes;
	uint32_t matches;
} told;

static int fake_caps(const struct mr_port *port, struct mr_offload_caps *caps,
		     struct mr_reason *reason)
{
	(void)port;
	if (told.caps_err < 0)
		return mr_fail(reason, told.caps_err, "not today");
	caps->matches = told.matches;
	return 0;
}

static int fake_open(struct mr_rules *rules, struct mr_reason *reason)
{
	assert_int_equal(rules->n_ports, N_PORTS);
	if (told.open_err < 0)
		return mr_fail(reason, told.open_err, "no room");
	told.n_open++;
	return 0;
}

static void fake_close(struct mr_rules *rules)
{
	(void)rules;
	told.n_open--;
}

static uint32_t fake_add(struct mr_rules *rules, const uint32_t *ids,
			 uint32_t n)
{
	uint32_t n_added = n < told.n_accepted ? n : told.n_accepted;

	for (uint32_t i = 0; i < n_added; i++) {
		assert_true(mr_rule_slot(ids[i]) < rules->n_max);
		told.ids[told.n_ids++] = ids[i];
	}
	told.n_accepted -= n_added;
	return n_added;
}

static void fake_remove(struct mr_rules *rules, const uint32_t *ids, uint32_t n)
{
	(void)rules;
	for (uint32_t i = 0; i < n; i++)
		told.ids[--told.n_ids] = ids[i];
}

static void fake_sent(struct mr_rules *rules, uint32_t i,
		      struct mr_rules_sent *sent)
{
	(void)rules;
	sent->attempted = 10 + i;
}

static void fake_link(struct mr_rules *rules, uint32_t i,
		      const struct mr_rules_link *link)
{
	(void)rules;
	(void)link;
	told.links |= 1u << i;
}

static void fake_hop(struct mr_rules *rules, uint32_t hop, uint64_t mac,
		     uint64_t until_ns)
{
	(void)rules;
	(void)mac;
	(void)until_ns;
	told.hop = hop;
}

static void fake_flush(struct mr_rules *rules)
{
	(void)rules;
	told.n_flushes++;
}

static const struct mr_rules_ops ops = {
	.rules_bytes = sizeof(struct mr_rules),
	.caps = fake_caps,
	.open = fake_open,
	.close = fake_close,
	.add = fake_add,
	.remove = fake_remove,
	.sent = fake_sent,
	.link = fake_link,
	.hop = fake_hop,
	.flush = fake_flush,
};

static const struct mr_driver fake = { .name = "fake", .rules = &ops };
static const struct mr_driver other = { .name = "other", .rules = &ops };
static const struct mr_driver none = { .name = "none" };

static struct {
	struct mr_ctx *ctx;
	struct mr_port memory[N_PORTS];
	struct mr_port *ports[N_PORTS];
	struct mr_rules_config config;
	struct mr_rules *rules;
} bench;

static struct mr_port_info fake_info = { .name = "fake:dev" };

static int set_up(void **state)
{
	(void)state;
	memset(&told, 0, sizeof(told));
	told.n_accepted = N_RULES;
	told.matches =
		1u << MR_RULE_ANY | 1u << MR_RULE_STATION | 1u << MR_RULE_FLOW;
	assert_int_equal(mr_ctx_create(NULL, &bench.ctx, NULL), 0);
	for (int i = 0; i < N_PORTS; i++) {
		bench.memory[i] = (struct mr_port){
			.driver = &fake,
			.ctx = bench.ctx,
			.info = &fake_info,
		};
		bench.ports[i] = &bench.memory[i];
	}
	bench.config = (struct mr_rules_config){ .size = sizeof(bench.config),
						 .n_ports = N_PORTS,
						 .ports = bench.ports,
						 .n_max = N_RULES };
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	assert_int_equal(told.n_open, 0);
	mr_ctx_destroy(bench.ctx);
	return 0;
}

#define RULES_TEST(name) TEST_WITH(set_up, tear_down, name)

static void check_refused_rule(int err, const char *words)
{
	struct mr_reason why;

	assert_int_equal(mr_rules_open(&bench.config, &bench.rules, &why), err);
	assert_reason_has(&why, words);
}

RULES_TEST(wrong_sets_are_refused)
{
	struct mr_reason why;

	told.open_err = -EPERM;
	check_refused_rule(-EPERM, "no room");
	told.caps_err = -ENOTSUP;
	check_refused_rule(-ENOTSUP, "not today");
	told.caps_err = 0;
	bench.ports[1] = bench.ports[0];
	check_refused_rule(-EINVAL, "twice");
	bench.ports[1] = &bench.memory[1];
	bench.memory[1].driver = &other;
	check_refused_rule(-EINVAL, "one driver");
	bench.memory[1].driver = &none;
	check_refused_rule(-ENOTSUP, "driver none has no rules");
	bench.config.n_max = UINT32_MAX;
	check_refused_rule(-EINVAL, "n_max");
	bench.config.n_ports = 65;
	check_refused_rule(-EINVAL, "n_ports is 65");
	bench.config.n_ports = 0;
	check_refused_rule(-EINVAL, "n_ports is 0");
	bench.config.size = 0;
	assert_int_equal(mr_rules_open(&bench.config, &bench.rules, &why),
			 -EINVAL);
}

/* Of one port, and of one kind for all. */
RULES_TEST(a_set_accepts_only_matches_of_all_its_ports)
{
	const struct mr_rule station = { .match = MR_RULE_STATION, .to = 1 };
	struct mr_rules *rules;
	struct mr_reason why;
	uint32_t id;

	told.matches = 1u << MR_RULE_ANY;
	bench.config.n_hops = bench.config.id_step = 1;
	check_refused_rule(-ENOTSUP, "no rules for flows");
	bench.config.n_hops = 0;
	assert_int_equal(mr_rules_open(&bench.config, &rules, &why), 0);
	assert_int_equal(mr_rules_add(rules, &station, 1, &id), 0);
	check_refused_rule(-EBUSY, "has a set");
	mr_rules_close(rules);
	told.open_err = -EPERM;
	check_refused_rule(-EPERM, "no room");
	told.open_err = 0;
	assert_int_equal(mr_rules_open(&bench.config, &rules, &why), 0);
	mr_rules_close(rules);
}

RULES_TEST(capabilities_are_those_of_the_drivers)
{
	struct mr_offload_caps caps = { .size = sizeof(caps) };

	assert_int_equal(mr_port_offload_caps(bench.ports[0], &caps, NULL), 0);
	assert_int_equal(caps.matches, told.matches);
	assert_int_equal(caps.can_send, 1);
	assert_int_equal(caps.is_advised, 1);
	caps.size = 0;
	assert_int_equal(mr_port_offload_caps(bench.ports[0], &caps, NULL),
			 -EINVAL);
}

RULES_TEST(rules_get_ids_until_the_set_is_full)
{
	const struct mr_rule rule = { .match = MR_RULE_ANY, .to = 1 };
	struct mr_rule six[6] = { rule, rule, rule, rule, rule, rule };
	uint32_t ids[6];

	assert_int_equal(mr_rules_open(&bench.config, &bench.rules, NULL), 0);
	assert_int_equal(mr_rules_fd(bench.rules), -1);
	assert_int_equal(mr_rules_add(bench.rules, six, 6, ids), 4);
	assert_int_equal(mr_rules_add(bench.rules, six, 1, ids + 4), 0);
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < i; k++)
			assert_int_not_equal(ids[i], ids[k]);
	mr_rules_remove(bench.rules, ids, 4);
	/* The driver takes but two. */
	told.n_accepted = 2;
	assert_int_equal(mr_rules_add(bench.rules, six, 4, ids), 2);
	told.n_accepted = 2;
	assert_int_equal(mr_rules_add(bench.rules, six, 4, ids + 2), 2);
	/* The place of one that went is taken, but not by the same id. */
	mr_rules_remove(bench.rules, &ids[3], 1);
	told.n_accepted = 1;
	assert_int_equal(mr_rules_add(bench.rules, six, 1, &ids[4]), 1);
	assert_int_not_equal(ids[4], ids[3]);
	assert_int_equal(mr_rule_slot(ids[4]), mr_rule_slot(ids[3]));
	mr_rules_close(bench.rules);
}

RULES_TEST(invalid_rules_end_a_list)
{
	static const struct mr_rule wrong[] = {
		{ .match = 0 },
		{ .match = MR_RULE_ANY, .action = 2 },
		{ .match = MR_RULE_ANY, .port = N_PORTS },
		{ .match = MR_RULE_ANY, .to = N_PORTS },
		{ .match = MR_RULE_STATION, .mac = { 3 } },
		{ .match = MR_RULE_STATION, .action = MR_RULE_DROP },
		{ .match = 4 },
	};
	struct mr_rule two[2] = { { .match = MR_RULE_STATION, .to = 1 } };
	uint32_t ids[2];

	assert_int_equal(mr_rules_open(&bench.config, &bench.rules, NULL), 0);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(mr_rules_add(bench.rules, &wrong[i], 1, ids),
				 0);
		two[1] = wrong[i];
		assert_int_equal(mr_rules_add(bench.rules, two, 2, ids), 1);
		mr_rules_remove(bench.rules, ids, 1);
		told.n_accepted = N_RULES;
	}
	mr_rules_close(bench.rules);
}

static const struct mr_rule flow = { .match = MR_RULE_FLOW,
				     .to = 1,
				     .proto = IPPROTO_UDP };

static void open_for_flows(struct mr_flow_way (*ways)[MR_FLOW_WAYS])
{
	bench.config.n_hops = 8;
	bench.config.id_step = 2;
	assert_int_equal(mr_rules_open(&bench.config, &bench.rules, NULL), 0);
	bench.rules->ways = ways;
}

RULES_TEST(flows_need_next_hops_and_two_ports)
{
	struct mr_rule wrong = flow;
	uint32_t id;

	bench.config.n_hops = 8;
	check_refused_rule(-EINVAL, "id_step");
	bench.config.n_hops = 1u << MR_FLOW_HOP_BITS;
	check_refused_rule(-EINVAL, "n_hops");
	bench.config.n_hops = 0;
	assert_int_equal(mr_rules_open(&bench.config, &bench.rules, NULL), 0);
	assert_int_equal(mr_rules_add(bench.rules, &flow, 1, &id), 0);
	mr_rules_link(bench.rules, 0, &(struct mr_rules_link){ 0 });
	mr_rules_hop(bench.rules, 0, 0, 0);
	mr_rules_flush(bench.rules);
	assert_int_equal(told.links + told.n_flushes, 0);
	mr_rules_close(bench.rules);

	open_for_flows(NULL);
	wrong.to = wrong.port;
	assert_int_equal(mr_rules_add(bench.rules, &wrong, 1, &id), 0);
	wrong = flow;
	wrong.proto = IPPROTO_ICMP;
	assert_int_equal(mr_rules_add(bench.rules, &wrong, 1, &id), 0);
	assert_int_equal(mr_rules_add(bench.rules, &flow, 1, &id), 1);
	mr_rules_link(bench.rules, 1, &(struct mr_rules_link){ 0 });
	mr_rules_link(bench.rules, N_PORTS, &(struct mr_rules_link){ 0 });
	assert_int_equal(told.links, 1u << 1);
	mr_rules_hop(bench.rules, 7 | 3u << MR_FLOW_HOP_BITS, 1, 2);
	mr_rules_hop(bench.rules, 8, 1, 2);
	assert_int_equal(told.hop, 7 | 3u << MR_FLOW_HOP_BITS);
	mr_rules_flush(bench.rules);
	assert_int_equal(told.n_flushes, 1);
	mr_rules_close(bench.rules);
}

RULES_TEST(a_ticket_is_taken_once)
{
	struct mr_flow_ticket ticket = { .id = N_RULES - 1,
					 .way = 1,
					 .number = 7 };
	struct mr_flow_ticket wrong, got;
	uint8_t buffer[64] = { 0 };
	uint8_t *data = buffer + 32;

	open_for_flows(NULL);
	assert_false(mr_rules_ticket(bench.rules, data, &got));
	ticket.magic = bench.rules->magic;
	memcpy(data - sizeof(ticket), &ticket, sizeof(ticket));
	assert_true(mr_rules_ticket(bench.rules, data, &got));
	assert_memory_equal(&got, &ticket, sizeof(ticket));
	assert_false(mr_rules_ticket(bench.rules, data, &got));
	/* What no driver writes. */
	wrong = ticket;
	wrong.id = N_RULES;
	memcpy(data - sizeof(wrong), &wrong, sizeof(wrong));
	assert_false(mr_rules_ticket(bench.rules, data, &got));
	wrong = ticket;
	wrong.way = MR_FLOW_WAYS;
	memcpy(data - sizeof(wrong), &wrong, sizeof(wrong));
	assert_false(mr_rules_ticket(bench.rules, data, &got));
	mr_rules_close(bench.rules);
}

RULES_TEST(only_later_numbers_of_the_same_rule_are_confirmed)
{
	struct mr_flow_way ways[N_RULES][MR_FLOW_WAYS] = { 0 };
	struct mr_flow_way *way = &ways[2][1];
	struct mr_flow_ticket ticket = { .id = 2, .way = 1, .number = 5 };

	open_for_flows(ways);
	assert_ptr_equal(mr_rules_ways(bench.rules, 2), ways[2]);
	mr_rules_confirm(bench.rules, &ticket);
	assert_int_equal(way->confirmed, 5);
	ticket.number = 4;
	mr_rules_confirm(bench.rules, &ticket);
	assert_int_equal(way->confirmed, 5);
	/* The slot is another rule's. */
	way->word = 1u << MR_RULE_SLOT_BITS;
	ticket.number = 6;
	mr_rules_confirm(bench.rules, &ticket);
	assert_int_equal(way->confirmed, 5);
	ticket.id |= 1u << MR_RULE_SLOT_BITS;
	mr_rules_confirm(bench.rules, &ticket);
	assert_int_equal(way->confirmed, 6);
	mr_rules_close(bench.rules);
}

RULES_TEST(a_slot_is_not_reused_at_once)
{
	const struct mr_rule rule = { .match = MR_RULE_ANY, .to = 1 };
	uint32_t first, next;

	assert_int_equal(mr_rules_open(&bench.config, &bench.rules, NULL), 0);
	assert_int_equal(mr_rules_add(bench.rules, &rule, 1, &first), 1);
	mr_rules_remove(bench.rules, &first, 1);
	for (int i = 1; i < N_RULES; i++) {
		told.n_accepted = 1;
		assert_int_equal(mr_rules_add(bench.rules, &rule, 1, &next), 1);
		assert_int_not_equal(mr_rule_slot(next), mr_rule_slot(first));
	}
	mr_rules_close(bench.rules);
}

RULES_TEST(sent_counters_are_of_ports_of_the_set)
{
	struct mr_rules_sent sent = { .size = sizeof(sent) };

	assert_int_equal(mr_rules_open(&bench.config, &bench.rules, NULL), 0);
	assert_int_equal(mr_rules_sent(bench.rules, 1, &sent), 0);
	assert_int_equal(sent.attempted, 11);
	assert_int_equal(mr_rules_sent(bench.rules, N_PORTS, &sent), -EINVAL);
	sent.size = 0;
	assert_int_equal(mr_rules_sent(bench.rules, 0, &sent), -EINVAL);
	mr_rules_close(bench.rules);
	mr_rules_close(NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/brokerd/rules.c: who gets what, and lines of errors. */
#include "support/unit.h"

#include "rules.h"

static struct {
	struct mr_ctx *ctx;
	struct rules rules;
	struct mr_reason why;
} f;

static int setup(void **state)
{
	(void)state;
	memset(&f, 0, sizeof(f));
	return mr_ctx_create(NULL, &f.ctx, NULL);
}

static int teardown(void **state)
{
	(void)state;
	rules_free(&f.rules);
	mr_ctx_destroy(f.ctx);
	return 0;
}

static int parse_rules(const char *text)
{
	rules_free(&f.rules);
	return rules_parse(f.ctx, "r.yaml", text, strlen(text), &f.rules,
			   &f.why);
}

static const struct rule *find_rule(uid_t uid, gid_t gid, const char *interface)
{
	const struct peer peer = { .uid = uid,
				   .n_groups = 2,
				   .groups = { 7, gid } };

	return rules_find(&f.rules, &peer, interface, &f.why);
}

TEST_WITH(setup, teardown, first_rule_for_user_and_interface_decides)
{
	const char *text = "rules:\n"
			   "- {user: 1000, interface: eth0, memory: 1M}\n"
			   "- {user: [1000, 1001], interface: [eth*, veth?],"
			   " memory: 2G, transmit: yes}\n"
			   "- {group: 50, interface: eth0, memory: 3K}\n";

	assert_int_equal(parse_rules(text), 0);
	assert_ptr_equal(find_rule(1000, 1, "eth0"), &f.rules.rules[0]);
	assert_ptr_equal(find_rule(1000, 1, "eth1"), &f.rules.rules[1]);
	assert_ptr_equal(find_rule(1001, 50, "veth5"), &f.rules.rules[1]);
	assert_ptr_equal(find_rule(1002, 50, "eth0"), &f.rules.rules[2]);
	assert_ptr_equal(find_rule(1002, 50, "eth1"), NULL);
	assert_ptr_equal(find_rule(1001, 1, "veth55"), NULL);
	assert_reason_has(&f.why, "user 1001");
	assert_ptr_equal(find_rule(0, 0, "eth0"),
			 NULL); /* root is a user, too */
}

TEST_WITH(setup, teardown, only_written_rights_are_granted)
{
	struct xdp_grant grant;

	assert_int_equal(
		parse_rules("rules:\n- {user: 1, interface: a, memory: 5K}\n"),
		0);
	grant = rule_grant(&f.rules.rules[0], 4096);
	assert_false(grant.may_transmit || grant.may_set || grant.may_force ||
		     grant.may_rss || grant.may_steer);
	assert_int_equal(grant.first_queue, 0);
	assert_int_equal(grant.n_queues, 65536);
	assert_int_equal(grant.n_bytes_left, 1024);
	assert_null(grant.filter);
	assert_int_equal(rule_grant(&f.rules.rules[0], 6000).n_bytes_left, 0);
	assert_int_equal(
		parse_rules("rules:\n- user: root\n  interface: a\n"
			    "  memory: 3\n  queues: 2-5\n  filter: udp\n"
			    "  transmit: yes\n  settings: on\n"
			    "  force: true\n  rss: yes\n  steering: yes\n"),
		0);
	grant = rule_grant(&f.rules.rules[0], 0);
	assert_true(grant.may_transmit && grant.may_set && grant.may_force &&
		    grant.may_rss && grant.may_steer);
	assert_int_equal(grant.first_queue, 2);
	assert_int_equal(grant.n_queues, 4);
	assert_int_equal(grant.max_bytes, 3);
	assert_true(grant.filter->n > 3);
	assert_int_equal(f.rules.rules[0].users[0], 0);
}

TEST_WITH(setup, teardown, an_invalid_rule_is_reported_with_its_line)
{
#define RULE "rules:\n- user: 1\n  interface: a\n  memory: 1M\n"
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ "", "r.yaml:1: 'rules' is missing" },
		{ "rules: []\n", "r.yaml:1: rules: empty" },
		{ "rule:\n- x\n", "r.yaml:1: unknown key 'rule'" },
		{ "rules:\n- user: 1\n  memory: 1M\n",
		  "'interface' is missing" },
		{ "rules:\n- user: 1\n  interface: a\n",
		  "'memory' is missing" },
		{ "rules:\n- interface: a\n  memory: 1M\n",
		  "r.yaml:2: the rule names no user" },
		{ RULE "  memory: 2M\n", "r.yaml:5: 'memory' is given twice" },
		{ RULE "  queues: 5-2\n",
		  "r.yaml:5: queues: 5 is more than 2" },
		{ RULE "  queues: 1-\n", "r.yaml:5: queues:" },
		{ RULE "  queues: 70000\n", "r.yaml:5: queues:" },
		{ RULE "  transmit: perhaps\n",
		  "r.yaml:5: transmit: 'perhaps'" },
		{ RULE "  filter: udp prot 5\n", "r.yaml:5: rule: filter" },
		{ RULE "  group: no-such-group\n",
		  "r.yaml:5: group: no group 'no-such-group'" },
		{ "rules:\n- user: -1\n  interface: a\n  memory: 1M\n",
		  "r.yaml:2: user: no user '-1'" },
		{ "rules:\n- user: 4294967295\n  interface: a\n  memory: 1M\n",
		  "r.yaml:2: user:" },
		{ "rules:\n- user: 1\n  interface: a/b\n  memory: 1M\n",
		  "r.yaml:3: interface: 'a/b'" },
		{ "rules:\n- user: 1\n  interface: much-too-long-name\n",
		  "r.yaml:3: interface:" },
		{ "rules:\n- user: 1\n  interface: a\n  memory: -1\n",
		  "r.yaml:4: memory: '-1' is not a size" },
		{ "rules:\n- user: 1\n  interface: a\n  memory: 1T\n",
		  "r.yaml:4: memory:" },
		{ "rules:\n- user: 1\n  interface: a\n  memory: M\n",
		  "r.yaml:4: memory:" },
		{ "rules: {a: [\n", "r.yaml:2: not valid YAML" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse_rules(cases[i].text), -EINVAL);
		assert_reason_has(&f.why, cases[i].why);
		assert_null(strchr(f.why.text, '\n'));
	}
	assert_int_equal(rules_read(f.ctx, "/nonexistent", &f.rules, &f.why),
			 -ENOENT);
	assert_reason_has(&f.why, "/nonexistent: No such file");
}

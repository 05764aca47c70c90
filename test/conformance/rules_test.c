/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules between two ports, on each driver that has them.
 *
 *     peer 0 --> port 0 --rule--> port 1 --> peer 1
 *                   |
 *                   no rule --> mr_rx_burst()
 *
 * Drivers without rules refuse them with a reason, and the rest is skipped.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <millrace/experimental/offload.h>

#include "suite.h"

enum { N_PORTS = 2, N_RULES = 4, N = 32, N_BYTES = 60 };

static struct {
	struct harness *ports[N_PORTS];
	struct mr_rules *rules;
	uint32_t matches;
	/* Per port: */
	uint32_t n_fed[N_PORTS];
	uint32_t n_got[N_PORTS]; /* by the application, intact */
} set;

static int abandon(void **state)
{
	mr_rules_close(set.rules);
	set.rules = NULL;
	return harness_abandon(state);
}

#define RULES_TEST(name) TEST_WITH(NULL, abandon, name)

static struct mr_rules_config config_of(struct mr_port **ports)
{
	for (uint32_t i = 0; i < N_PORTS; i++)
		ports[i] = set.ports[i]->port;
	return (struct mr_rules_config){ .size = sizeof(struct mr_rules_config),
					 .n_ports = N_PORTS,
					 .ports = ports,
					 .n_max = N_RULES };
}

/* Open two ports, if they support this kind of rules. */
static void make_ports(enum mr_rule_match match)
{
	const struct wish wish = { .has_rules = true };
	struct mr_offload_caps caps = { .size = sizeof(caps) };
	struct mr_reason why = { "" };
	struct harness *first;
	int err;

	memset(&set, 0, sizeof(set));
	harness_lack(FIXTURE_ALONE, "it has one port");
	if (match == MR_RULE_STATION)
		harness_need(FIXTURE_IN, "its frames have no addresses");
	set.ports[0] = first = harness_make(&wish);
	err = mr_port_offload_caps(first->port, &caps, &why);
	if (err == 0 && !(caps.matches & 1u << match))
		snprintf(why.text, sizeof(why.text), "no rules of this kind");
	if (err < 0)
		assert_int_equal(err, -ENOTSUP);
	if (why.text[0] != '\0') {
		print_message("skipped: %s\n", why.text);
		harness_end(first);
		skip();
	}
	set.matches = caps.matches;
	set.ports[1] = harness_make_second(first);
}

static void make_set(enum mr_rule_match match)
{
	struct mr_port *ports[N_PORTS];
	struct mr_rules_config config;
	struct mr_reason why;

	make_ports(match);
	config = config_of(ports);
	if (mr_rules_open(&config, &set.rules, &why) < 0)
		fail_msg("%s", why.text);
}

static struct mr_rx_stats stats_of(uint32_t port)
{
	const struct mr_rx_stats stats = harness_rx_stats(set.ports[port]);

	assert_true(invariants_of_rx_hold(&stats));
	return stats;
}

static struct mr_rules_sent sent_from(uint32_t port)
{
	struct mr_rules_sent sent = { .size = sizeof(sent) };

	assert_int_equal(mr_rules_sent(set.rules, port, &sent), 0);
	assert_int_equal(sent.can_send, 1);
	return sent;
}

/* Receive a burst as the application. */
static uint32_t receive_burst(uint32_t port, uint32_t n)
{
	struct harness *harness = set.ports[port];
	struct mr_frame frames[N];
	uint32_t n_segs, n_bytes;

	n = mr_rx_burst(harness->rxq, harness->cache, frames, n);
	for (uint32_t i = 0; i < n; i++)
		if (harness->fixture->traits & FIXTURE_IN)
			assert_true(harness_check_frame(harness, frames + i,
							&n_segs,
							&n_bytes) >= 0);
	harness_free(harness, frames, n);
	set.n_got[port] += n;
	return n;
}

/* Send frame number id n times (at most N) from the port's peer, and wait until
 * the application or a rule has received all of them. */
static void inject_frames(uint32_t port, uint32_t id, uint32_t n)
{
	struct harness *harness = set.ports[port];
	const uint64_t until_ns = harness_deadline_ns();
	uint8_t bytes[N_BYTES];
	uint32_t n_sent = 0;

	traffic_make(bytes, sizeof(bytes), id);
	set.n_fed[port] += n;
	if (harness->fixture->traits & FIXTURE_ENDLESS) {
		receive_burst(port, n);
		assert_int_equal(stats_of(port).received, set.n_fed[port]);
		return;
	}
	while (n_sent < n || stats_of(port).received < set.n_fed[port]) {
		if (n_sent < n &&
		    harness->fixture->inject(harness, bytes, sizeof(bytes)))
			n_sent++;
		else if (receive_burst(port, N) == 0)
			harness_nap();
		if (harness_now_ns() > until_ns)
			fail_msg("frames do not arrive at port %u", port);
	}
	while (receive_burst(port, N) > 0)
		;
}

/* Check that the port's peer received frame number id n times, and no other. */
static void collect(uint32_t port, uint32_t id, uint32_t n)
{
	uint32_t n_bytes;

	if (!(set.ports[port]->fixture->traits & FIXTURE_OUT))
		return;
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(harness_collect(set.ports[port], &n_bytes),
				 id);
		assert_int_equal(n_bytes, N_BYTES);
	}
	assert_int_equal(harness_collect_rest(set.ports[port]), 0);
}

static uint32_t add_rule(const struct mr_rule *rule)
{
	uint32_t id;

	assert_int_equal(mr_rules_add(set.rules, rule, 1, &id), 1);
	return id;
}

static void check_refused_rule(const struct mr_rule *rule)
{
	uint32_t id;

	assert_int_equal(mr_rules_add(set.rules, rule, 1, &id), 0);
}

/* The fd becomes readable, and mr_rules_poll() applies the change to a device.
 */
static void change(uint32_t id, uint32_t to, uint32_t is_active)
{
	mr_rules_set(set.rules, id, to, is_active);
	mr_rules_poll(set.rules);
}

static void close_all(void)
{
	for (uint32_t i = 0; i < N_PORTS; i++)
		assert_int_equal(stats_of(i).delivered, set.n_got[i]);
	mr_rules_close(set.rules);
	set.rules = NULL;
	for (uint32_t i = 0; i < N_PORTS; i++) {
		const struct mr_tx_stats tx = harness_tx_stats(set.ports[i]);

		assert_int_equal(stats_of(i).received, set.n_fed[i]);
		/* Counts only the application's frames. */
		assert_int_equal(tx.accepted, 0);
		assert_true(invariants_of_tx_hold(&tx));
	}
	harness_end(set.ports[0]);
}

static const struct mr_rule any = { .match = MR_RULE_ANY, .to = 1 };

RULES_TEST(what_a_port_cannot_do_is_refused)
{
	static const uint16_t matches[] = { MR_RULE_ANY, MR_RULE_STATION,
					    MR_RULE_FLOW };
	struct mr_port *ports[N_PORTS];
	struct mr_rules_config config;
	struct mr_rules *other;
	struct mr_reason why;
	int err;

	make_set(MR_RULE_ANY);
	config = config_of(ports);
	assert_int_equal(mr_rules_open(&config, &other, &why), -EBUSY);
	for (uint32_t i = 0; i < 3; i++)
		if (!(set.matches & 1u << matches[i]))
			check_refused_rule(&(struct mr_rule){
				.match = matches[i], .to = 1 });
	mr_rules_close(set.rules);
	/* With next hops, the set supports flows, or it is refused. */
	config.n_hops = config.id_step = 1;
	err = mr_rules_open(&config, &set.rules, &why);
	assert_int_equal(err, set.matches & 1u << MR_RULE_FLOW ? 0 : -ENOTSUP);
	if (err < 0) {
		set.rules = NULL;
		assert_non_null(strstr(why.text, "flows"));
	}
	mr_rules_close(set.rules);
	set.rules = NULL;
	harness_end(set.ports[0]);
}

RULES_TEST(a_rule_forwards_while_it_is_active)
{
	uint32_t id;

	make_set(MR_RULE_ANY);
	inject_frames(0, 1, N);
	id = add_rule(&any);
	inject_frames(0, 2, N);
	assert_int_equal(set.n_got[0], 2 * N);
	change(id, 1, 1);
	for (uint32_t i = 3; i < 6; i++) {
		inject_frames(0, i, N);
		collect(1, i, N);
	}
	assert_int_equal(set.n_got[0], 2 * N);
	assert_int_equal(stats_of(0).offloaded, 3 * N);
	assert_int_equal(sent_from(1).attempted, 3 * N);
	assert_int_equal(sent_from(1).bytes, 3 * N * N_BYTES);
	assert_int_equal(sent_from(1).drops, 0);
	/* It does not match frames of the other port. */
	inject_frames(1, 6, N);
	assert_int_equal(set.n_got[1], N);
	change(id, 1, 0);
	inject_frames(0, 7, N);
	assert_int_equal(set.n_got[0], 3 * N);
	change(id, 1, 1);
	mr_rules_remove(set.rules, &id, 1);
	inject_frames(0, 8, N);
	assert_int_equal(set.n_got[0], 4 * N);
	assert_int_equal(stats_of(0).offloaded, 3 * N);
	collect(1, 0, 0);
	close_all();
}

RULES_TEST(a_rule_sends_where_it_was_set_to)
{
	struct mr_rule back = any;
	uint32_t id;

	make_set(MR_RULE_ANY);
	id = add_rule(&any);
	change(id, 0, 1);
	inject_frames(0, 1, N);
	collect(0, 1, N);
	change(id, 1, 1);
	inject_frames(0, 2, N);
	collect(1, 2, N);
	back.port = 1;
	back.to = 0;
	change(add_rule(&back), 0, 1);
	inject_frames(1, 3, N);
	inject_frames(0, 4, N);
	collect(0, 3, N);
	collect(1, 4, N);
	assert_int_equal(sent_from(0).attempted, 2 * N);
	assert_int_equal(sent_from(1).attempted, 2 * N);
	assert_int_equal(set.n_got[0] + set.n_got[1], 0);
	close_all();
}

RULES_TEST(a_rule_drops)
{
	struct mr_rule drop = any;
	uint32_t id;

	drop.action = MR_RULE_DROP;
	make_set(MR_RULE_ANY);
	id = add_rule(&drop);
	change(id, 1, 1);
	inject_frames(0, 1, N);
	assert_int_equal(stats_of(0).drops[MR_RX_DROP_RULE], N);
	change(id, 1, 0);
	inject_frames(0, 2, N);
	assert_int_equal(stats_of(0).drops[MR_RX_DROP_RULE], N);
	assert_int_equal(set.n_got[0], N);
	assert_int_equal(sent_from(1).attempted, 0);
	collect(1, 0, 0);
	close_all();
}

RULES_TEST(there_is_room_for_each_rule_once)
{
	struct mr_rule rules[N_RULES + 1];
	uint32_t ids[N_RULES + 1], again;

	make_set(MR_RULE_ANY);
	ids[0] = add_rule(&any);
	check_refused_rule(&any);
	mr_rules_remove(set.rules, ids, 1);
	again = add_rule(&any);
	assert_int_not_equal(again, ids[0]);
	/* As from a late thread. */
	change(ids[0], 1, 1);
	inject_frames(0, 1, N);
	assert_int_equal(set.n_got[0], N);
	mr_rules_remove(set.rules, &again, 1);
	if (set.matches & 1u << MR_RULE_STATION) {
		for (uint32_t i = 0; i <= N_RULES; i++)
			rules[i] = (struct mr_rule){ .match = MR_RULE_STATION,
						     .mac = { 2, [5] = i } };
		rules[1] = rules[0];
		assert_int_equal(mr_rules_add(set.rules, rules, 2, ids), 1);
		assert_int_equal(mr_rules_add(set.rules, rules + 2, N_RULES - 1,
					      ids + 1),
				 N_RULES - 1);
		check_refused_rule(&any);
		mr_rules_remove(set.rules, ids + 1, 1);
		(void)add_rule(&any);
	}
	close_all();
}

/* All frames of traffic.h go to station 1; frame id comes from station id. */
enum { HERE = 100, THERE = 1, STRANGER = 7, NEIGHBOUR = 8 };

static uint32_t add_station(uint32_t number, uint16_t port)
{
	const struct mr_rule rule = {
		.match = MR_RULE_STATION,
		.to = port,
		.mac = { 2, 0, 0, 0, 0, (uint8_t)number },
	};

	return add_rule(&rule);
}

static struct mr_rule_stats read_rule(uint32_t id)
{
	struct mr_rule_stats stats;

	mr_rules_read(set.rules, &id, 1, &stats);
	return stats;
}

RULES_TEST(a_bridge_forwards_between_stations_that_it_knows)
{
	uint32_t here, there;

	make_set(MR_RULE_STATION);
	here = add_station(HERE, 0);
	there = add_station(THERE, 1);
	assert_int_equal(read_rule(here).seen_ns, 0);
	inject_frames(0, HERE, N);
	assert_int_equal(set.n_got[0], N);
	assert_int_not_equal(read_rule(here).seen_ns, 0);
	assert_int_not_equal(read_rule(here).held_ns, 0);
	/* Both rules must be active. */
	change(here, 0, 1);
	inject_frames(0, HERE, N);
	assert_int_equal(set.n_got[0], 2 * N);
	assert_int_not_equal(read_rule(there).held_ns, 0);
	assert_int_equal(read_rule(there).seen_ns, 0);
	change(there, 1, 1);
	inject_frames(0, HERE, N);
	collect(1, HERE, N);
	assert_int_equal(stats_of(0).offloaded, N);
	inject_frames(0, STRANGER, N);
	assert_int_equal(set.n_got[0], 3 * N);
	/* The station has moved: the application must see the frame to learn
	 * it. */
	inject_frames(1, HERE, N);
	assert_int_equal(set.n_got[1], N);
	close_all();
}

RULES_TEST(a_bridge_drops_a_frame_for_the_port_it_came_from)
{
	make_set(MR_RULE_STATION);
	change(add_station(THERE, 1), 1, 1);
	change(add_station(NEIGHBOUR, 1), 1, 1);
	inject_frames(1, NEIGHBOUR, N);
	assert_int_equal(stats_of(1).drops[MR_RX_DROP_RULE], N);
	collect(1, 0, 0);
	close_all();
}

RULES_TEST(a_rule_for_all_frames_precedes_the_bridge)
{
	uint32_t id;

	make_set(MR_RULE_STATION);
	change(add_station(HERE, 0), 0, 1);
	change(add_station(THERE, 1), 1, 1);
	id = add_rule(&any);
	inject_frames(0, HERE, N);
	assert_int_equal(set.n_got[0], N);
	change(id, 0, 1);
	inject_frames(0, HERE, N);
	collect(0, HERE, N);
	mr_rules_remove(set.rules, &id, 1);
	inject_frames(0, HERE, N);
	collect(1, HERE, N);
	close_all();
}

/* A thread that feeds port 0 and collects at port 1's peer until told to end.
 */
static void *flood(void *is_over)
{
	while (!__atomic_load_n((bool *)is_over, __ATOMIC_RELAXED)) {
		const uint64_t before = stats_of(0).offloaded;

		inject_frames(0, 5, N);
		collect(1, 5, (uint32_t)(stats_of(0).offloaded - before));
	}
	return NULL;
}

static void await(const uint64_t *counter, struct mr_rx_stats *stats,
		  uint64_t n)
{
	const uint64_t until_ns = harness_deadline_ns();

	/* The counters need not balance meanwhile. */
	while (*stats = harness_rx_stats(set.ports[0]), *counter < n) {
		assert_true(harness_now_ns() < until_ns);
		harness_nap();
	}
}

TEST_AS(NULL, abandon, rules_end_under_traffic, true)
{
	struct mr_rx_stats stats;
	uint64_t n_offloaded;
	bool is_over = false;
	pthread_t thread;

	make_set(MR_RULE_ANY);
	change(add_rule(&any), 1, 1);
	assert_int_equal(pthread_create(&thread, NULL, flood, &is_over), 0);
	await(&stats.offloaded, &stats, 4 * N);
	mr_rules_stop(set.rules);
	n_offloaded = harness_rx_stats(set.ports[0]).offloaded;
	await(&stats.delivered, &stats, 4 * N);
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	assert_int_equal(stats_of(0).offloaded, n_offloaded);
	assert_int_equal(sent_from(1).attempted, n_offloaded);
	close_all();
}

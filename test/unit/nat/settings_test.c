/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/nat/config/settings.c, keys.c, yaml_keys.c and config_check.c:
 * what a configuration file sets, and each error with its line.
 */
#include "support/unit.h"

#include "config/settings.h"

/* Lines 1 to 6; what a test adds begins in line 7. */
#define SIDES                                                                  \
	"inside:\n"                                                            \
	"  port: eth1\n"                                                       \
	"  addresses: 10.0.0.1/24\n"                                           \
	"outside:\n"                                                           \
	"  port: eth0\n"                                                       \
	"  addresses: 192.0.2.1/24\n"

static int parse(const char *text, uint32_t n_workers,
		 struct nat_config *ret_config, struct mr_reason *ret_why)
{
	const size_t n = strlen(text);
	/* Of its size exactly, so that ASan sees a byte read too far. */
	char *copy = malloc(n + 1);
	int err;

	assert_non_null(copy);
	memcpy(copy, text, n);
	err = nat_settings_parse("f", copy, n, n_workers, ret_config, ret_why);
	free(copy);
	return err;
}

TEST(test_a_short_file_has_all_the_defaults)
{
	struct nat_config config;
	struct mr_reason why = { "" };

	if (parse(SIDES, 1, &config, &why) != 0)
		fail_msg("%s", why.text);
	assert_string_equal(config.sides[NAT_INSIDE].spec, "eth1");
	assert_int_equal(config.sides[NAT_OUTSIDE].addrs[0], 0xc0000201);
	assert_int_equal(config.n_pool, 1);
	assert_int_equal(config.n_subscribers, 1);
	assert_int_equal(config.timeouts.udp_s, 300);
	nat_config_free(&config);
}

static void check_all(const struct nat_config *c)
{
	const struct nat_side_config *in = &c->sides[NAT_INSIDE];

	assert_int_equal(in->n_addrs, 2);
	assert_int_equal(in->gateway, 0x0a0000fe);
	assert_int_equal(in->vlan, 7);
	assert_int_equal(in->mtu, 1400);
	assert_int_equal(in->n_neighbours, 1);
	assert_int_equal(in->neighbours[0].mac[5], 9);
	assert_int_equal(c->n_pool, 2);
	assert_int_equal(c->pool[1].last, 0xc63364fe);
	assert_int_equal(c->n_subscribers, 2);
	assert_int_equal(c->n_forwards, 2);
	assert_int_equal(c->forwards[0].proto_mask, 1 << NAT_TCP);
	assert_int_equal(c->forwards[0].inside_first, 8080);
	assert_int_equal(c->forwards[1].outside_last, 5009);
	assert_int_equal(c->forwards[1].inside_first, 5000);
	assert_int_equal(c->forwards[1].proto_mask,
			 1 << NAT_TCP | 1 << NAT_UDP);
	assert_int_equal(c->n_one_to_ones, 1);
	assert_int_equal(c->n_excludes, 2);
	assert_int_equal(c->excludes[0].proto, 17);
	assert_int_equal(c->excludes[0].first_port, 53);
	assert_int_equal(c->excludes[1].last_port, 65535);
	assert_int_equal(c->filtering[NAT_UDP], NAT_FILTER_NONE);
	assert_int_equal(c->filtering[NAT_TCP], NAT_FILTER_ADDRESS_PORT);
	assert_int_equal(c->timeouts.tcp_open_s, 10800);
	assert_int_equal(c->ports.first, 2048);
	assert_int_equal(c->ports.block, 256);
	assert_int_equal(c->ports.max_blocks, 2);
	assert_false(c->ports.keeps_parity);
	assert_int_equal(c->max_mappings, 1000);
	assert_int_equal(c->max_per_subscriber, 10);
	assert_int_equal(c->max_sessions_per_subscriber, 20);
	assert_false(c->is_paired || c->hairpins || c->answers_ping);
	assert_true(c->refreshes_inbound && c->passes_other_protocols);
	assert_int_equal(c->mss, 1);
	assert_string_equal(c->log_path, "/l");
	assert_true(c->logs_sessions);
	assert_string_equal(c->state_path, "/s");
}

TEST(test_every_key_sets_its_member)
{
	static const char text[] =
		"inside:\n"
		"  port: eth1\n"
		"  addresses: [10.0.0.1/24, 10.0.1.1/24]\n"
		"  gateway: 10.0.0.254\n"
		"  vlan: 7\n"
		"  mtu: 1400\n"
		"  neighbours: ['10.0.0.9 02:00:00:00:00:09']\n"
		"outside: {port: eth0, addresses: 192.0.2.1/24}\n"
		"pool: [192.0.2.1, 198.51.100.1-198.51.100.254]\n"
		"subscribers: [10.0.0.0/24, 10.0.1.0/24]\n"
		"forwards:\n"
		"  - {outside: '192.0.2.1:80', inside: '10.0.0.5:8080',"
		" protocols: tcp}\n"
		"  - {outside: '198.51.100.9:5000-5009', inside: 10.0.0.5}\n"
		"one_to_one: [{outside: 203.0.113.1, inside: 10.0.1.9}]\n"
		"exclude:\n"
		"  - {to: 172.16.0.0/12, protocol: udp, ports: 53}\n"
		"  - {to: 10.9.0.0/16}\n"
		"filtering: {tcp: address-port}\n"
		"timeouts: {tcp_open: 3h}\n"
		"ports: {range: 2048-4095, keep_parity: no, block: 256,"
		" max_blocks: 2}\n"
		"limits: {mappings: 1000, per_subscriber: 10, "
		"sessions_per_subscriber: 20}\n"
		"pairing: no\nhairpin: off\ninbound_refresh: yes\n"
		"other_protocols: on\nping: false\nmss: mtu\n"
		"log: {path: /l, sessions: true}\nstate: /s\n";
	struct nat_config config;
	struct mr_reason why = { "" };

	if (parse(text, 1, &config, &why) != 0)
		fail_msg("%s", why.text);
	check_all(&config);
	nat_config_free(&config);
}

static const struct {
	const char *added,
		*wanted; /* behind SIDES; the beginning of the line */
} wrong_values[] = {
	{ "tiemouts: {}\n",
	  "f:7: unknown key 'tiemouts'; did you mean 'timeouts'?" },
	{ "zzz: 1\n", "f:7: unknown key 'zzz'; valid: inside, outside" },
	{ "ping: perhaps\n", "f:7: ping: 'perhaps' is not yes or no" },
	{ "ping: [yes]\n", "f:7: ping: must be one value, not a list" },
	{ "timeouts:\n  udp: 5 min\n", "f:8: udp: '5 min' is not a time" },
	{ "timeouts: 5m\n", "f:7: must be a mapping" },
	{ "ping: no\nping: yes\n",
	  "f:8: 'ping' is given twice, first on line 7" },
	{ "limits: {mappings: 1e6}\n",
	  "f:7: mappings: '1e6' is not a whole number from 1 to" },
	{ "subscribers: 10.0.0.1/24\n",
	  "f:7: subscribers: '10.0.0.1/24' has bits set beyond its prefix "
	  "length; the network is 10.0.0.0/24" },
	{ "pool: []\n", "f:7: pool: empty; remove it" },
	{ "pool: {a: b}\n", "f:7: pool: must be one value, not a mapping" },
	{ "mss: 12\n", "f:7: mss: '12' is not one of no, mtu, or a number" },
	{ "filtering: strict\n", "f:7: filtering: 'strict' is not one of: "
				 "none, address, address-port" },
	{ "forwards: [{outside: '192.0.2.1:80'}]\n",
	  "f:7: 'inside' is missing" },
	{ "forwards: [{outside: '192.0.2.1:80', inside: '10.0.0.5:80-81'}]\n",
	  "f:7: inside: '10.0.0.5:80-81': give only the first port" },
	{ "forwards: [{outside: '192.0.2.1:80', inside: 10.0.0.5,"
	  " protocols: icmp}]\n",
	  "f:7: protocols: 'icmp' is not one of: udp, tcp" },
	{ "exclude: [{protocol: tcp}]\n", "f:7: 'to' is missing" },
	{ "exclude: [{to: 1.0.0.0/8, protocol: 256}]\n",
	  "f:7: protocol: '256' is not one of udp, tcp, icmp, or a number" },
	{ "state: ''\n", "f:7: state: empty, or longer than 255 bytes" },
	{ "ping: [\n", "f:8: not valid YAML: " },
	{ "\tping: no\n", "f:7: not valid YAML: " },
	{ "ping: \"\\0\"\n", "f:7: ping: contains a zero byte" },
	{ "&a ping: *b\n", "f:7: not valid YAML: " },
	{ "---\nping: no\n", "f:8: a second document begins here" },
	{ "...\n---\n[]\n...\n", "f:9: a second document begins here" },
	{ "...\n---\n[\n", "f:10: not valid YAML: " },
};

static const struct {
	const char *added, *wanted;
} wrong_together[] = {
	{ "pool: [192.0.2.5, 192.0.2.1-192.0.2.9]\n",
	  "f:7: pool: 192.0.2.1 overlaps entry 1 of the list" },
	{ "pool:\n- 198.51.100.1\n- 10.0.0.9\n",
	  "f:9: pool: 10.0.0.9 overlaps the subscribers of 10.0.0.0" },
	{ "pool: 127.0.0.1\n",
	  "f:7: pool: 127.0.0.1 is not a host address; remove it" },
	{ "pool: 192.0.2.0/24\n",
	  "f:7: pool: 192.0.2.0 includes the first or last address" },
	{ "pool: 198.18.0.0/19\n", "f:7: pool: more than 4096 external" },
	{ "subscribers: [10.0.0.0/24, 10.0.0.0/25]\n",
	  "f:7: subscribers: 10.0.0.0 overlaps entry 1" },
	{ "subscribers: 192.0.2.0/24\n",
	  "f:7: subscribers: 192.0.2.0 overlaps the network of 192.0.2.1 "
	  "outside; list networks inside" },
	{ "subscribers:\n- 10.0.0.0/24\n- 192.0.2.128/25\n",
	  "f:9: subscribers: 192.0.2.128 overlaps the network of 192.0.2.1" },
	{ "subscribers: 10.1.0.0/24\npool: 10.0.0.9\n",
	  "f:8: pool: 10.0.0.9 overlaps the network of 10.0.0.1 inside; an "
	  "address is either inside or outside" },
	{ "subscribers: 10.1.0.0/24\n"
	  "one_to_one: [{outside: 10.0.0.9, inside: 10.1.0.5}]\n",
	  "f:8: one_to_one: 10.0.0.9 cannot be an external address; "
	  "choose one that no other host has" },
	{ "forwards: [{outside: '192.0.2.2:80', inside: 10.0.0.5}]\n",
	  "f:7: forwards: 192.0.2.2 is not an address of mr-nat" },
	{ "forwards: [{outside: '192.0.2.1:80', inside: 10.0.1.5}]\n",
	  "f:7: forwards: 10.0.1.5 is not a subscriber" },
	{ "forwards:\n- {outside: '192.0.2.1:80-90', inside: 10.0.0.5}\n"
	  "- {outside: '192.0.2.1:90', inside: 10.0.0.6, protocols: tcp}\n",
	  "f:9: forwards: outside ports overlap entry 1 of the list" },
	{ "forwards:\n- {outside: '192.0.2.1:80', inside: 10.0.0.5}\n"
	  "- {outside: '192.0.2.1:81', inside: '10.0.0.5:80'}\n",
	  "f:9: forwards: inside ports overlap entry 1 of the list" },
	{ "forwards: [{outside: '192.0.2.1:1-2', inside: '10.0.0.5:65535'}]\n",
	  "f:7: forwards: ports 1-2 to 65535 and up: must be ascending" },
	{ "one_to_one: [{outside: 192.0.2.1, inside: 10.0.0.5}]\n",
	  "f:7: one_to_one: 192.0.2.1 is in the pool or an address" },
	{ "one_to_one: [{outside: 10.0.0.7, inside: 10.0.0.5}]\n",
	  "f:7: one_to_one: 10.0.0.7 cannot be an external address" },
	{ "one_to_one: [{outside: 192.0.2.7, inside: 10.0.1.5}]\n",
	  "f:7: one_to_one: 10.0.1.5 is not a subscriber" },
	{ "one_to_one:\n- {outside: 192.0.2.7, inside: 10.0.0.5}\n"
	  "- {outside: 192.0.2.8, inside: 10.0.0.5}\n",
	  "f:9: one_to_one: has an address of entry 1" },
	{ "one_to_one: [{outside: 192.0.2.7, inside: 10.0.0.5}]\n"
	  "forwards: [{outside: '192.0.2.1:80', inside: 10.0.0.5}]\n",
	  "f:8: forwards: one_to_one entry 1 already uses all" },
	{ "exclude: [{to: 1.0.0.0/8, ports: 53}]\n",
	  "f:7: exclude: ports: only tcp and udp have ports" },
	{ "exclude:\n- {to: 1.0.0.0/8}\n- {to: 192.0.2.0/24}\n",
	  "f:9: exclude: 192.0.2.0 contains the external address 192.0.2.1" },
	{ "pool: 198.51.100.1-198.51.100.9\n"
	  "exclude: [{to: 198.51.100.8/29}]\n",
	  "f:8: exclude: 198.51.100.8 contains the external address" },
	{ "pool: 198.51.100.1\nexclude: [{to: 192.0.2.1/32}]\n",
	  "f:8: exclude: 192.0.2.1 contains the external address 192.0.2.1" },
	{ "one_to_one: [{outside: 192.0.2.7, inside: 10.0.0.5}]\n"
	  "exclude: [{to: 192.0.2.4/30}]\n",
	  "f:8: exclude: 192.0.2.4 contains the external address 192.0.2.7" },
	{ "ports: {range: 1024-1080}\n",
	  "f:7: ports: range: 57 ports are too few for 2 workers" },
	{ "ports: {block: 100}\n", "f:7: ports: block: 100 is not a power of" },
	{ "ports: {block: 4}\n", "f:7: ports: block: 4 is not a power of two" },
	{ "ports: {block: 512}\n",
	  "f:7: ports: block: 256 subscribers need a block each, but the pool "
	  "has 126 of 512 ports; use smaller blocks, more addresses, or fewer "
	  "subscribers" },
	{ "ports: {block: 32768}\n",
	  "f:7: ports: block: 64512 ports are too few for 2 workers" },
	{ "ports: {deterministic: yes}\n",
	  "f:7: ports: deterministic: needs one worker, not 2" },
	{ "limits: {sessions: 5, sessions_per_subscriber: 6}\n",
	  "f:7: limits: sessions_per_subscriber: 6 is more than the limit" },
	{ "limits: {mappings: 5, per_subscriber: 6}\n",
	  "f:7: limits: per_subscriber: 6 is more than the limit of 5" },
	{ "log: {sessions: yes}\n", "f:7: log: sessions: needs a file" },
	{ "log: {path: /x}\nstate: /x\n", "f:8: state: /x is the log file" },
};

/* Whole files: what is wrong with the sides. */
static const struct {
	const char *text, *wanted;
} wrong_sides[] = {
	{ "", "f: empty; inside and outside are required" },
	{ "- a\n", "f:1: must be a mapping" },
	{ "ping: no\n", "f:1: inside: no port" },
	{ "inside:\n  port: a\noutside: {}\n", "f:2: inside: no address" },
	{ "inside: {port: a, addresses: 10.0.0.1/24}\n"
	  "outside: {port: 'xdp:a,queues=2', addresses: 192.0.2.1/24}\n",
	  "f:2: outside: port: a is also the inside port" },
	{ "inside: {port: a, addresses: 10.0.0.1/8}\n"
	  "outside: {port: b, addresses: [192.0.2.1/24, 10.1.0.1/16]}\n",
	  "f:2: outside: addresses: the network of 10.1.0.1 overlaps that of "
	  "10.0.0.1 inside" },
	{ "inside:\n  port: a\n  addresses:\n  - 10.0.0.1/24\n"
	  "  - 10.0.0.1/24\noutside: {}\n",
	  "f:5: inside: addresses: 10.0.0.1 is listed twice; remove one" },
	{ "inside: {port: a, addresses: 10.0.0.255/24}\noutside: {}\n",
	  "f:1: inside: addresses: 10.0.0.255 is not a host address" },
	{ "inside: {port: a, addresses: 10.0.0.1/24, gateway: 10.0.1.9}\n",
	  "f:1: inside: gateway: gateway 10.0.1.9 is not another host" },
	{ "inside: {port: a, addresses: 10.0.0.1}\n",
	  "f:1: addresses: '10.0.0.1' is not an address with a prefix" },
	{ "inside: {port: a, addresses: 10.0.0.1/24, mtu: 20}\n",
	  "f:1: mtu: '20' is not a whole number from 68" },
	{ "inside: {port: a, addresses: 10.0.0.1/24, neighbours: 10.0.0.2}\n",
	  "f:1: neighbours: must be an address and its" },
	{ "inside: {port: a, addresses: 10.0.0.1/24,"
	  " neighbours: 10.1.0.2 02:00:00:00:00:01}\n",
	  "f:1: inside: neighbours: neighbour 10.1.0.2 is not another host" },
	{ "inside: {port: a, addresses: 10.0.0.1/24,"
	  " neighbours: 10.0.0.2 01:00:00:00:00:01}\n",
	  "f:1: inside: neighbours: neighbour 10.0.0.2 has a multicast MAC "
	  "address; give a unicast one" },
};

static void refuse(const char *text, const char *wanted)
{
	struct nat_config config;
	struct mr_reason why = { "accepted" };

	if (parse(text, 2, &config, &why) == 0)
		nat_config_free(&config);
	if (strncmp(why.text, wanted, strlen(wanted)) != 0)
		fail_msg("'%s' is refused with '%s', not with '%s'", text,
			 why.text, wanted);
}

TEST(test_each_error_names_its_line)
{
	char text[1024];

	for (size_t i = 0; i < sizeof(wrong_values) / sizeof(wrong_values[0]);
	     i++) {
		snprintf(text, sizeof(text), "%s%s", SIDES,
			 wrong_values[i].added);
		refuse(text, wrong_values[i].wanted);
	}
	for (size_t i = 0;
	     i < sizeof(wrong_together) / sizeof(wrong_together[0]); i++) {
		snprintf(text, sizeof(text), "%s%s", SIDES,
			 wrong_together[i].added);
		refuse(text, wrong_together[i].wanted);
	}
	for (size_t i = 0; i < sizeof(wrong_sides) / sizeof(wrong_sides[0]);
	     i++)
		refuse(wrong_sides[i].text, wrong_sides[i].wanted);
}

TEST(test_deterministic_blocks_are_enough_for_all)
{
	struct nat_config config;
	struct mr_reason why;

	assert_int_equal(parse(SIDES
			       "ports: {deterministic: yes, block: 512}\n",
			       1, &config, &why),
			 -EINVAL);
	assert_string_equal(
		why.text, "f:7: ports: deterministic: 256 subscribers need a "
			  "block each, but the pool has 126 of 512 ports; use "
			  "smaller blocks, more addresses, or fewer "
			  "subscribers");
	assert_int_equal(
		parse(SIDES "ports: {deterministic: yes}\n", 1, &config, &why),
		0);
	nat_config_free(&config);
}

TEST(test_a_file_that_cannot_be_read)
{
	struct nat_config config;
	struct mr_reason why;

	assert_int_equal(nat_settings_read("/nowhere/x", 1, &config, &why),
			 -ENOENT);
	assert_string_equal(why.text, "/nowhere/x: No such file or directory");
	assert_int_equal(nat_settings_read("/", 1, &config, &why), -EISDIR);
}

TEST(test_a_file_that_is_too_large)
{
	const size_t n = (1 << 20) + 1;
	char *text = malloc(n);
	struct nat_config config;
	struct mr_reason why;

	assert_non_null(text);
	memset(text, '#', n);
	assert_int_equal(nat_settings_parse("f", text, n, 1, &config, &why),
			 -EINVAL);
	assert_string_equal(why.text, "f:1: the file is larger than 1 MiB");
	free(text);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All keys of the configuration file, in one table: how to read each, its range
 * and default, the least that an RFC recommends, and whether it can change at
 * run time.
 */
#include <stdio.h>
#include <string.h>

#include "keys.h"
#include "support/dataplane_keys.h"
#include "support/text.h"
#include "support/yaml_show.h"
#include "values.h"

enum { MAX_MTU = 65535, MAX_RECORDS = 1 << 26, MAX_PROTOCOLS = 8 };

#define READER(value_fn)                                                       \
	static bool read_##value_fn(const char *text, void *to,                \
				    struct mr_reason *why)                     \
	{                                                                      \
		return value_##value_fn(text, to, why);                        \
	}
READER(addr)
READER(duration)
READER(prefix)
READER(protocol)
READER(range)

/* uint16_t [2]: first and last */
static bool read_ports(const char *text, void *to, struct mr_reason *why)
{
	uint16_t *first = to;

	return value_ports(text, &first[0], &first[1], why);
}
_Static_assert(offsetof(struct nat_exclude, last_port) ==
		       offsetof(struct nat_exclude, first_port) + 2,
	       "read_ports");
_Static_assert(offsetof(struct nat_port_config, last) ==
		       offsetof(struct nat_port_config, first) + 2,
	       "read_ports");

static void write_duration(const void *from, char *ret_text, size_t n_bytes)
{
	value_write_duration(*(const uint32_t *)from, ret_text, n_bytes);
}

/* Those of excludes: 0-65535 is any. */
static void write_ports(const void *from, char *ret_text, size_t n_bytes)
{
	const uint16_t *ports = from;

	ret_text[0] = '\0';
	if (ports[0] == ports[1])
		snprintf(ret_text, n_bytes, "%u", ports[0]);
	else if (ports[0] != 0)
		snprintf(ret_text, n_bytes, "%u-%u", ports[0], ports[1]);
}

static bool read_address(const char *text, void *to, struct mr_reason *why)
{
	return nat_add_address(to, text, why);
}

bool nat_add_address(struct nat_side_config *side, const char *text,
		     struct mr_reason *why)
{
	const uint32_t i = side->n_addrs;

	if (i == NAT_MAX_ADDRS)
		return value_wrong(why, "more than %d addresses",
				   NAT_MAX_ADDRS);
	if (!value_host(text, &side->addrs[i], &side->nets[i], why))
		return false;
	side->n_addrs++;
	return true;
}

static json_t *show_addresses(const struct yaml_key *key, const void *from)
{
	const struct nat_side_config *side = from;
	json_t *list = side->n_addrs > 0 ? json_array() : NULL;

	(void)key;
	for (uint32_t i = 0; i < side->n_addrs; i++) {
		char addr[20];

		write_addr(&side->addrs[i], addr, sizeof(addr));
		json_array_append_new(
			list,
			json_sprintf("%s/%d", addr,
				     __builtin_popcount(side->nets[i].mask)));
	}
	return list;
}

/* "ADDRESS MAC" */
static bool read_neighbour(const char *text, void *to, struct mr_reason *why)
{
	struct nat_side_config *side = to;
	struct nat_fixed_neighbour *neighbour =
		&side->neighbours[side->n_neighbours];
	char addr[20], mac[20], more;

	if (side->n_neighbours == NAT_MAX_NEIGHBOURS)
		return value_wrong(why, "more than %d", NAT_MAX_NEIGHBOURS);
	if (sscanf(text, "%19s %19s %c", addr, mac, &more) != 2)
		return value_wrong(why,
				   "must be an address and its MAC address, "
				   "such as '10.0.0.9 02:00:00:00:00:09'");
	if (!value_addr(addr, &neighbour->addr, why) ||
	    !value_mac(mac, neighbour->mac, why))
		return false;
	side->n_neighbours++;
	return true;
}

static void write_neighbour(const void *from, char *ret_text, size_t n_bytes)
{
	const struct nat_fixed_neighbour *n = from;
	char addr[20];

	write_addr(&n->addr, addr, sizeof(addr));
	snprintf(ret_text, n_bytes, "%s %s", addr, text_of_mac(n->mac).text);
}

static json_t *show_neighbours(const struct yaml_key *key, const void *from)
{
	const struct nat_side_config *side = from;

	return yaml_show_list(key, side->neighbours,
			      sizeof(side->neighbours[0]), side->n_neighbours);
}

static bool read_mss(const char *text, void *to, struct mr_reason *why)
{
	uint16_t *mss = to;
	uint32_t value = 0;

	if (strcmp(text, "mtu") == 0)
		value = 1;
	else if (strcmp(text, "no") != 0 &&
		 !value_number(text, 88, MAX_MTU - 40, &value, why))
		return value_wrong(why,
				   "'%.20s' is not one of no, mtu, or a number "
				   "from 88 to 65495",
				   text);
	*mss = (uint16_t)value;
	return true;
}

static void write_mss(const void *from, char *ret_text, size_t n_bytes)
{
	const uint16_t mss = *(const uint16_t *)from;

	if (mss > 1)
		snprintf(ret_text, n_bytes, "%u", mss);
	else
		snprintf(ret_text, n_bytes, "%s", mss == 1 ? "mtu" : "no");
}

static const char *const local_words[] = { "nat", "kernel", NULL };
static const char *const error_words[] = { "lenient", "strict", NULL };
static const char *const filtering_words[] = { "none", "address",
					       "address-port", NULL };

static bool read_outside_end(const char *text, void *to, struct mr_reason *why)
{
	struct nat_port_forward *f = to;

	return value_end(text, &f->outside_addr, &f->outside_first,
			 &f->outside_last, why);
}

static void write_outside_end(const void *from, char *ret_text, size_t n_bytes)
{
	const struct nat_port_forward *f = from;
	char addr[20];

	write_addr(&f->outside_addr, addr, sizeof(addr));
	if (f->outside_first == f->outside_last)
		snprintf(ret_text, n_bytes, "%s:%u", addr, f->outside_first);
	else
		snprintf(ret_text, n_bytes, "%s:%u-%u", addr, f->outside_first,
			 f->outside_last);
}

static void write_inside_end(const void *from, char *ret_text, size_t n_bytes)
{
	const struct nat_port_forward *f = from;
	char addr[20];

	write_addr(&f->inside_addr, addr, sizeof(addr));
	snprintf(ret_text, n_bytes, "%s:%u", addr, f->inside_first);
}

/* Without a port, the outside port is used; see take_forward(). */
static bool read_inside_end(const char *text, void *to, struct mr_reason *why)
{
	struct nat_port_forward *f = to;
	uint16_t last;

	if (strchr(text, ':') == NULL)
		return value_addr(text, &f->inside_addr, why);
	if (!value_end(text, &f->inside_addr, &f->inside_first, &last, why))
		return false;
	return last == f->inside_first ||
	       value_wrong(why,
			   "'%s': give only the first port; the others follow "
			   "from those of outside",
			   text);
}

static const char *const forward_protocols[] = { "udp", "tcp", NULL };

static bool read_forward_proto(const char *text, void *to,
			       struct mr_reason *why)
{
	uint8_t *mask = to;
	uint32_t word;

	if (!value_word(text, forward_protocols, &word, why))
		return false;
	*mask |= (uint8_t)(1u << word);
	return true;
}

static json_t *show_forward_protos(const struct yaml_key *key, const void *from)
{
	const struct nat_port_forward *f = from;
	json_t *list = json_array();

	for (uint32_t i = 0; key->words[i] != NULL; i++)
		if (f->proto_mask & 1u << i)
			json_array_append_new(list, json_string(key->words[i]));
	return list;
}

/* One word for all protocols, or one for each. */
static int take_filtering(struct yaml_reader *reader,
			  const struct yaml_key *key, yaml_node_t *node,
			  void *to)
{
	int err = 0;

	if (node->type == YAML_MAPPING_NODE)
		return yaml_take_keys(reader, key->keys, node, to);
	for (uint32_t p = 0; p < NAT_PROTOS && err == 0; p++) {
		struct yaml_key one = key->keys[p];

		one.name = key->name;
		err = yaml_take_word(reader, &one, node, to);
	}
	return err;
}

static json_t *show_filtering(const struct yaml_key *key, const void *from)
{
	return yaml_show(key->keys, from);
}

static int take_forward(struct yaml_reader *reader, const struct yaml_key *key,
			yaml_node_t *node, void *to)
{
	struct nat_port_forward *f = to;
	const int err = yaml_take_keys(reader, key->keys, node, f);

	if (f->inside_first == 0)
		f->inside_first = f->outside_first;
	if (err == 0 && yaml_find(reader, node, "protocols") == NULL)
		f->proto_mask = 1u << NAT_TCP | 1u << NAT_UDP;
	return err;
}

static int take_exclude(struct yaml_reader *reader, const struct yaml_key *key,
			yaml_node_t *node, void *to)
{
	struct nat_exclude *e = to;

	e->last_port = 65535;
	return yaml_take_keys(reader, key->keys, node, e);
}

#define FLAG(key, member, default_, ...)                                       \
	YAML_BOOL(key, nat_config, member, .preset = default_, __VA_ARGS__)
#define TIME(key, member, default_, ...)                                       \
	YAML_VALUE(key, nat_config, member, read_duration, write_duration,     \
		   .preset = default_, __VA_ARGS__)
/* Items are read with read or, if mappings, with take_item. */
#define LIST(key, list, ...)                                                   \
	YAML_LIST(key, nat_config, list, NAT_MAX_ITEMS, __VA_ARGS__)
#define SECTION(key, place, keys_)                                             \
	{                                                                      \
		.name = key, .take = yaml_take_mapping, .offset = place,       \
		.keys = keys_                                                  \
	}
/* Ports, tables and queues depend on it. */
#define FIXED .is_fixed = true
#define RFC(least_, source_) .least = least_, .source = source_

static const struct yaml_key side_keys[] = {
	YAML_TEXT("port", nat_side_config, spec, FIXED),
	{ .name = "addresses",
	  .take = yaml_take_each,
	  .read = read_address,
	  .show = show_addresses },
	YAML_VALUE("gateway", nat_side_config, gateway, read_addr, write_addr),
	YAML_NUMBER("vlan", nat_side_config, vlan, 1, 4094, FIXED),
	YAML_NUMBER("mtu", nat_side_config, mtu, 68, MAX_MTU, FIXED),
	{ .name = "neighbours",
	  .take = yaml_take_each,
	  .read = read_neighbour,
	  .write = write_neighbour,
	  .show = show_neighbours },
	YAML_END,
};

static const struct yaml_key forward_keys[] = {
	{ .name = "outside",
	  .take = yaml_take_value,
	  .read = read_outside_end,
	  .write = write_outside_end,
	  .is_needed = true },
	{ .name = "inside",
	  .take = yaml_take_value,
	  .read = read_inside_end,
	  .write = write_inside_end,
	  .is_needed = true },
	{ .name = "protocols",
	  .take = yaml_take_each,
	  .read = read_forward_proto,
	  .words = forward_protocols,
	  .show = show_forward_protos,
	  .offset = offsetof(struct nat_port_forward, proto_mask) },
	YAML_END,
};

static const struct yaml_key one_to_one_keys[] = {
	YAML_VALUE("outside", nat_one_to_one, outside_addr, read_addr,
		   write_addr, .is_needed = true),
	YAML_VALUE("inside", nat_one_to_one, inside_addr, read_addr, write_addr,
		   .is_needed = true),
	YAML_END,
};

static const struct yaml_key exclude_keys[] = {
	YAML_VALUE("to", nat_exclude, to, read_prefix, write_prefix,
		   .is_needed = true),
	YAML_VALUE("protocol", nat_exclude, proto, read_protocol,
		   write_protocol),
	YAML_VALUE("ports", nat_exclude, first_port, read_ports, write_ports),
	YAML_END,
};

/* RFC 6888 REQ-7, RFC 4787 REQ-8: transparency first. */
static const struct yaml_key filtering_keys[] = {
	YAML_WORD("udp", nat_config, filtering[NAT_UDP], filtering_words,
		  .preset = "none"),
	YAML_WORD("tcp", nat_config, filtering[NAT_TCP], filtering_words,
		  .preset = "none"),
	YAML_WORD("icmp", nat_config, filtering[NAT_ICMP], filtering_words,
		  .preset = "none"),
	YAML_END,
};

static const struct yaml_key timeout_keys[] = {
	TIME("udp", timeouts.udp_s, "5m", RFC(120, "RFC 4787 REQ-5: MUST")),
	TIME("tcp_opening", timeouts.tcp_opening_s, "4m",
	     RFC(240, "RFC 7857 section 2.2: RECOMMENDED")),
	TIME("tcp_open", timeouts.tcp_open_s, "2h4m",
	     RFC(7440, "RFC 5382 REQ-5: MUST")),
	TIME("tcp_closing", timeouts.tcp_closing_s, "4m",
	     RFC(240, "RFC 7857 section 2.2: RECOMMENDED")),
	TIME("tcp_reset", timeouts.tcp_reset_s, "4m",
	     RFC(240, "RFC 7857 section 2.3: SHOULD")),
	TIME("tcp_unsolicited", timeouts.tcp_unsolicited_s, "6s",
	     RFC(6, "RFC 5382 REQ-4: MUST")),
	TIME("icmp", timeouts.icmp_s, "1m", RFC(60, "RFC 5508 REQ-2: MUST")),
	TIME("other", timeouts.other_s, "5m"),
	TIME("fragment", timeouts.fragment_s, "2s"),
	TIME("hold_down", timeouts.hold_down_s, "2m",
	     RFC(120, "RFC 6888 REQ-8: SHOULD")),
	YAML_END,
};

static const struct yaml_key port_keys[] = {
	YAML_VALUE("range", nat_config, ports.first, read_ports, write_ports,
		   .preset = "1024-65535"),
	FLAG("keep_port", ports.keeps_port, "yes"),
	FLAG("keep_parity", ports.keeps_parity, "yes"),
	FLAG("keep_class", ports.keeps_class, "yes"),
	YAML_NUMBER("block", nat_config, ports.block, 0, 32768, .preset = "0"),
	YAML_NUMBER("max_blocks", nat_config, ports.max_blocks, 1, 1024,
		    .preset = "8"),
	FLAG("deterministic", ports.is_deterministic, "no"),
	YAML_END,
};

static const struct yaml_key limit_keys[] = {
	YAML_NUMBER("mappings", nat_config, max_mappings, 1, MAX_RECORDS,
		    .preset = "1048576", FIXED),
	YAML_NUMBER("sessions", nat_config, max_sessions, 1, MAX_RECORDS,
		    .preset = "1048576", FIXED),
	YAML_NUMBER("per_subscriber", nat_config, max_mappings_per_subscriber,
		    0, MAX_RECORDS, .preset = "0"),
	YAML_NUMBER("sessions_per_subscriber", nat_config,
		    max_sessions_per_subscriber, 0, MAX_RECORDS, .preset = "0"),
	YAML_NUMBER("fragments", nat_config, max_fragments, 0, 16384,
		    .preset = "256", FIXED),
	YAML_END,
};

static const struct yaml_key log_keys[] = {
	YAML_TEXT("path", nat_config, log_path, FIXED),
	FLAG("sessions", logs_sessions, "no"),
	YAML_END,
};

const struct yaml_key nat_keys[] = {
	SECTION("inside", offsetof(struct nat_config, sides[NAT_INSIDE]),
		side_keys),
	SECTION("outside", offsetof(struct nat_config, sides[NAT_OUTSIDE]),
		side_keys),
	LIST("pool", pool, .read = read_range, .write = write_range),
	LIST("subscribers", subscribers, .read = read_prefix,
	     .write = write_prefix),
	LIST("forwards", forwards, .take_item = take_forward,
	     .keys = forward_keys),
	LIST("one_to_one", one_to_ones, .take_item = yaml_take_mapping,
	     .keys = one_to_one_keys),
	LIST("exclude", excludes, .take_item = take_exclude,
	     .keys = exclude_keys),
	{ .name = "filtering",
	  .take = take_filtering,
	  .show = show_filtering,
	  .words = filtering_words,
	  .keys = filtering_keys },
	SECTION("timeouts", 0, timeout_keys),
	SECTION("ports", 0, port_keys),
	SECTION("limits", 0, limit_keys),
	FLAG("hairpin", hairpins, "yes",
	     RFC(1, "RFC 4787 REQ-9 and RFC 5382 REQ-8: MUST")),
	FLAG("pairing", is_paired, "yes",
	     RFC(1, "RFC 6888 REQ-2: MUST be the default")),
	FLAG("inbound_refresh", refreshes_inbound, "no"),
	FLAG("other_protocols", passes_other_protocols, "no"),
	FLAG("ping", answers_ping, "yes"),
	YAML_WORD("local", nat_config, is_shared, local_words, .preset = "nat",
		  FIXED),
	FLAG("fill_options", fills_options, "yes"),
	YAML_WORD("icmp_errors", nat_config, checks_embedded_sums, error_words,
		  .preset = "lenient"),
	YAML_VALUE("mss", nat_config, mss, read_mss, write_mss, .preset = "no"),
	SECTION("log", 0, log_keys),
	YAML_TEXT("state", nat_config, state_path),
	TIME("state_interval", state_interval_s, "30s"),
	SECTION("dataplane", offsetof(struct nat_config, plane),
		dataplane_keys),
	YAML_VALUE("metrics", nat_config, plane.metrics, dataplane_read_metrics,
		   dataplane_write_metrics, FIXED),
	YAML_END,
};

bool nat_key_at(uint32_t i, struct nat_key *ret)
{
	for (const struct yaml_key *top = nat_keys; top->name != NULL; top++) {
		const bool is_section =
			top->keys != NULL && top->take != yaml_take_list;
		uint32_t n = 1;

		if (is_section)
			for (n = 0; top->keys[n].name != NULL;)
				n++;
		if (i >= n) {
			i -= n;
			continue;
		}
		ret->key = is_section ? &top->keys[i] : top;
		ret->offset = (is_section ? top->offset : 0) + ret->key->offset;
		snprintf(ret->name, sizeof(ret->name), "%s%s%s",
			 is_section ? top->name : "", is_section ? ": " : "",
			 ret->key->name);
		return true;
	}
	return false;
}

void nat_config_init(struct nat_config *config)
{
	struct nat_key key;

	*config = (struct nat_config){
		.plane = { .program = "mr-nat",
			   .n_ports = NAT_SIDES,
			   .burst = MR_BURST_MAX,
			   .page_bytes = 4096 },
	};
	for (uint32_t i = 0; nat_key_at(i, &key); i++)
		if (key.key->preset != NULL)
			yaml_take_preset(key.key, (char *)config + key.offset -
							  key.key->offset);
}

/* Explain a value below an RFC's recommendation. False: it is fine. */
static bool is_too_little(const struct nat_key *key,
			  const struct nat_config *config,
			  struct mr_reason *ret_advice)
{
	const char *const at = (const char *)config + key->offset;
	const bool is_flag = key->key->take == yaml_take_bool;
	uint32_t value = 0;
	bool flag;

	memcpy(&flag, at, sizeof(flag));
	if (is_flag)
		value = flag;
	else if (key->key->n_bytes == sizeof(value))
		memcpy(&value, at, sizeof(value));
	if (key->key->source == NULL || value >= key->key->least)
		return false;
	if (is_flag)
		return fail_with(ret_advice, true, "%s: off; %s", key->name,
				 key->key->source);
	return fail_with(ret_advice, true,
			 "%s: %u s is less than the %u s of %s", key->name,
			 value, key->key->least, key->key->source);
}

bool nat_config_advice(const struct nat_config *config, uint32_t i,
		       struct mr_reason *ret_advice)
{
	struct nat_key key;
	uint32_t n = 0;

	for (uint32_t k = 0; nat_key_at(k, &key); k++)
		if (is_too_little(&key, config, ret_advice) && n++ == i)
			return true;
	return fail_with(
		ret_advice, config->sides[NAT_OUTSIDE].gateway == 0 && n == i,
		"outside: no gateway; only hosts on its own networks are "
		"reachable");
}

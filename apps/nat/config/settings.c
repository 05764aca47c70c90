/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of the configuration file, and what they set. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rules.h"
#include "settings.h"
#include "support/yaml_keys.h"
#include "values.h"

enum { MAX_MTU = 65535 };

static const char *const proto_words[] = { "udp", "tcp", "icmp", NULL };
static const char *const filtering_words[] = { "none", "address",
					       "address-port", NULL };

/* yaml_read_fn: what a text becomes. */
static bool read_duration(const char *text, void *to, struct mr_reason *why)
{
	return value_duration(text, to, why);
}

static bool read_range(const char *text, void *to, struct mr_reason *why)
{
	return value_range(text, to, why);
}

/* "ADDRESS MAC" */
static bool read_neighbour(const char *text, void *to, struct mr_reason *why)
{
	struct nat_fixed_neighbour *neighbour = to;
	char addr[20], mac[20], more;

	if (sscanf(text, "%19s %19s %c", addr, mac, &more) != 2)
		return value_wrong(why,
				   "an address and its MAC address are wanted, "
				   "as '10.0.0.9 02:00:00:00:00:09'");
	return value_addr(addr, &neighbour->addr, why) &&
	       value_mac(mac, neighbour->mac, why);
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
				   "'%.20s' is none of: no, mtu, or a "
				   "number from 88 to 65495",
				   text);
	*mss = (uint16_t)value;
	return true;
}

/* The items of lists, whose key has the list's offset, not theirs. */
static int take_range(struct yaml_reader *reader, const struct yaml_key *key,
		      yaml_node_t *node, void *to)
{
	const struct yaml_key item = { .name = key->name, .read = read_range };

	return yaml_take_value(reader, &item, node, to);
}

static int take_prefix(struct yaml_reader *reader, const struct yaml_key *key,
		       yaml_node_t *node, void *to)
{
	const struct yaml_key item = { .name = key->name, .read = read_prefix };

	return yaml_take_value(reader, &item, node, to);
}

static int take_addresses(struct yaml_reader *reader,
			  const struct yaml_key *key, yaml_node_t *node,
			  void *to)
{
	struct nat_side_config *side = to;
	yaml_node_t *item;

	for (uint32_t i = 0; (item = yaml_item(reader, node, i)) != NULL; i++) {
		const char *text = yaml_text(reader, item, key->name);
		struct mr_reason why;

		if (text == NULL)
			return -EINVAL;
		if (i == NAT_MAX_ADDRS)
			return yaml_wrong(reader, item, "%s: more than %d",
					  key->name, NAT_MAX_ADDRS);
		if (!value_host(text, &side->addrs[i], &side->nets[i], &why))
			return yaml_wrong(reader, item, "%s: %s", key->name,
					  why.text);
		side->n_addrs = i + 1;
	}
	return 0;
}

static int take_neighbours(struct yaml_reader *reader,
			   const struct yaml_key *key, yaml_node_t *node,
			   void *to)
{
	struct nat_side_config *side = to;
	yaml_node_t *item;

	for (uint32_t i = 0; (item = yaml_item(reader, node, i)) != NULL; i++) {
		const char *text = yaml_text(reader, item, key->name);
		struct mr_reason why;

		if (text == NULL)
			return -EINVAL;
		if (i == NAT_MAX_NEIGHBOURS)
			return yaml_wrong(reader, item, "%s: more than %d",
					  key->name, NAT_MAX_NEIGHBOURS);
		if (!read_neighbour(text, &side->neighbours[i], &why))
			return yaml_wrong(reader, item, "%s: %s", key->name,
					  why.text);
		side->n_neighbours = i + 1;
	}
	return 0;
}

static const struct yaml_key side_keys[] = {
	{ .name = "port",
	  .take = yaml_take_text,
	  .offset = offsetof(struct nat_side_config, spec),
	  .max = sizeof(((struct nat_side_config *)0)->spec) },
	{ .name = "addresses", .take = take_addresses },
	{ .name = "gateway",
	  .take = yaml_take_value,
	  .read = read_addr,
	  .offset = offsetof(struct nat_side_config, gateway) },
	{ .name = "vlan",
	  .take = yaml_take_u16,
	  .offset = offsetof(struct nat_side_config, vlan),
	  .min = 1,
	  .max = 4094 },
	{ .name = "mtu",
	  .take = yaml_take_u16,
	  .offset = offsetof(struct nat_side_config, mtu),
	  .min = 68,
	  .max = MAX_MTU },
	{ .name = "neighbours", .take = take_neighbours },
	{ .name = NULL },
};

/* One word for all protocols, or one for each. */
static int take_filtering(struct yaml_reader *reader,
			  const struct yaml_key *key, yaml_node_t *node,
			  void *to)
{
	struct nat_config *config = to;

	if (node->type == YAML_MAPPING_NODE)
		return yaml_take_keys(reader, key->keys, node, to);
	for (uint32_t p = 0; p < NAT_PROTOS; p++) {
		const char *text = yaml_text(reader, node, key->name);
		struct mr_reason why;
		uint32_t word;

		if (text == NULL)
			return -EINVAL;
		if (!value_word(text, filtering_words, &word, &why))
			return yaml_wrong(reader, node, "%s: %s", key->name,
					  why.text);
		config->filtering[p] = (enum nat_filtering)word;
	}
	return 0;
}

static int take_one_filtering(struct yaml_reader *reader,
			      const struct yaml_key *key, yaml_node_t *node,
			      void *to)
{
	struct nat_config *config = to;
	const char *text = yaml_text(reader, node, key->name);
	struct mr_reason why;
	uint32_t word, proto = 0;

	while (strcmp(proto_words[proto], key->name) != 0)
		proto++;
	if (text == NULL)
		return -EINVAL;
	if (!value_word(text, filtering_words, &word, &why))
		return yaml_wrong(reader, node, "%s: %s", key->name, why.text);
	config->filtering[proto] = (enum nat_filtering)word;
	return 0;
}

static const struct yaml_key filtering_keys[] = {
	{ .name = "udp", .take = take_one_filtering },
	{ .name = "tcp", .take = take_one_filtering },
	{ .name = "icmp", .take = take_one_filtering },
	{ .name = NULL },
};

static const struct yaml_key timeout_keys[] = {
	{ .name = "udp",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, timeouts.udp_s) },
	{ .name = "tcp_opening",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, timeouts.tcp_opening_s) },
	{ .name = "tcp_open",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, timeouts.tcp_open_s) },
	{ .name = "tcp_closing",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, timeouts.tcp_closing_s) },
	{ .name = "tcp_reset",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, timeouts.tcp_reset_s) },
	{ .name = "tcp_unsolicited",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, timeouts.tcp_unsolicited_s) },
	{ .name = "icmp",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, timeouts.icmp_s) },
	{ .name = "other",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, timeouts.other_s) },
	{ .name = "fragment",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, timeouts.fragment_s) },
	{ .name = "quarantine",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, timeouts.quarantine_s) },
	{ .name = NULL },
};

static const struct yaml_key port_keys[] = {
	{ .name = "range",
	  .take = yaml_take_value,
	  .read = read_ports,
	  .offset = offsetof(struct nat_config, ports.first) },
	{ .name = "keep_port",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, ports.keeps_port) },
	{ .name = "keep_parity",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, ports.keeps_parity) },
	{ .name = "keep_class",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, ports.keeps_class) },
	{ .name = "block",
	  .take = yaml_take_u16,
	  .offset = offsetof(struct nat_config, ports.block),
	  .max = 32768 },
	{ .name = "max_blocks",
	  .take = yaml_take_u16,
	  .offset = offsetof(struct nat_config, ports.max_blocks),
	  .min = 1,
	  .max = 1024 },
	{ .name = "deterministic",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, ports.is_deterministic) },
	{ .name = NULL },
};

static const struct yaml_key limit_keys[] = {
	{ .name = "mappings",
	  .take = yaml_take_u32,
	  .offset = offsetof(struct nat_config, max_mappings),
	  .min = 1,
	  .max = 1 << 26 },
	{ .name = "sessions",
	  .take = yaml_take_u32,
	  .offset = offsetof(struct nat_config, max_sessions),
	  .min = 1,
	  .max = 1 << 26 },
	{ .name = "per_subscriber",
	  .take = yaml_take_u32,
	  .offset = offsetof(struct nat_config, max_per_subscriber),
	  .max = 1 << 26 },
	{ .name = "sessions_per_subscriber",
	  .take = yaml_take_u32,
	  .offset = offsetof(struct nat_config, max_sessions_per_subscriber),
	  .max = 1 << 26 },
	{ .name = "fragments",
	  .take = yaml_take_u16,
	  .offset = offsetof(struct nat_config, max_fragments),
	  .max = 16384 },
	{ .name = NULL },
};

static const struct yaml_key log_keys[] = {
	{ .name = "path",
	  .take = yaml_take_text,
	  .offset = offsetof(struct nat_config, log_path),
	  .max = sizeof(((struct nat_config *)0)->log_path) },
	{ .name = "sessions",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, logs_sessions) },
	{ .name = NULL },
};

static const struct yaml_key top_keys[] = {
	{ .name = "inside",
	  .take = yaml_take_mapping,
	  .offset = offsetof(struct nat_config, sides[NAT_INSIDE]),
	  .keys = side_keys },
	{ .name = "outside",
	  .take = yaml_take_mapping,
	  .offset = offsetof(struct nat_config, sides[NAT_OUTSIDE]),
	  .keys = side_keys },
	{ .name = "pool",
	  .take = yaml_take_list,
	  .max = NAT_MAX_ITEMS,
	  .offset = offsetof(struct nat_config, pool),
	  .take_item = take_range,
	  .n_bytes = sizeof(((struct nat_config *)0)->pool[0]),
	  .n_offset = offsetof(struct nat_config, n_pool) },
	{ .name = "subscribers",
	  .take = yaml_take_list,
	  .max = NAT_MAX_ITEMS,
	  .offset = offsetof(struct nat_config, subscribers),
	  .take_item = take_prefix,
	  .n_bytes = sizeof(((struct nat_config *)0)->subscribers[0]),
	  .n_offset = offsetof(struct nat_config, n_subscribers) },
	{ .name = "forwards",
	  .take = yaml_take_list,
	  .max = NAT_MAX_ITEMS,
	  .offset = offsetof(struct nat_config, forwards),
	  .take_item = take_forward,
	  .n_bytes = sizeof(((struct nat_config *)0)->forwards[0]),
	  .n_offset = offsetof(struct nat_config, n_forwards) },
	{ .name = "one_to_one",
	  .take = yaml_take_list,
	  .max = NAT_MAX_ITEMS,
	  .offset = offsetof(struct nat_config, one_to_ones),
	  .take_item = take_one_to_one,
	  .n_bytes = sizeof(((struct nat_config *)0)->one_to_ones[0]),
	  .n_offset = offsetof(struct nat_config, n_one_to_ones) },
	{ .name = "exclude",
	  .take = yaml_take_list,
	  .max = NAT_MAX_ITEMS,
	  .offset = offsetof(struct nat_config, excludes),
	  .take_item = take_exclude,
	  .n_bytes = sizeof(((struct nat_config *)0)->excludes[0]),
	  .n_offset = offsetof(struct nat_config, n_excludes) },
	{ .name = "filtering", .take = take_filtering, .keys = filtering_keys },
	{ .name = "timeouts", .take = yaml_take_mapping, .keys = timeout_keys },
	{ .name = "ports", .take = yaml_take_mapping, .keys = port_keys },
	{ .name = "limits", .take = yaml_take_mapping, .keys = limit_keys },
	{ .name = "pairing",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, is_paired) },
	{ .name = "hairpin",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, hairpins) },
	{ .name = "inbound_refresh",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, refreshes_inbound) },
	{ .name = "other_protocols",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, passes_other_protocols) },
	{ .name = "ping",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, answers_ping) },
	{ .name = "fill_options",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, fills_options) },
	{ .name = "source_routes",
	  .take = yaml_take_bool,
	  .offset = offsetof(struct nat_config, follows_source_routes) },
	{ .name = "mss",
	  .take = yaml_take_value,
	  .read = read_mss,
	  .offset = offsetof(struct nat_config, mss) },
	{ .name = "log", .take = yaml_take_mapping, .keys = log_keys },
	{ .name = "state",
	  .take = yaml_take_text,
	  .offset = offsetof(struct nat_config, state_path),
	  .max = sizeof(((struct nat_config *)0)->state_path) },
	{ .name = "state_interval",
	  .take = yaml_take_value,
	  .read = read_duration,
	  .offset = offsetof(struct nat_config, state_interval_s) },
	{ .name = NULL },
};

const struct yaml_key *nat_settings_keys(void)
{
	return top_keys;
}

/* An objection of the check, with the line that it is about. */
static int object(struct yaml_reader *reader,
		  const struct nat_objection *objection)
{
	yaml_node_t *node = yaml_root(reader), *found;

	found = yaml_find(reader, node, objection->section);
	if (found != NULL)
		node = found;
	if (objection->key != NULL) {
		found = yaml_find(reader, node, objection->key);
		if (found != NULL)
			node = found;
	}
	if (objection->idx != NAT_WHOLE) {
		found = yaml_item(reader, node, objection->idx);
		if (found != NULL)
			node = found;
	}
	return yaml_wrong(reader, node, "%s: %s%s%s", objection->section,
			  objection->key != NULL ? objection->key : "",
			  objection->key != NULL ? ": " : "",
			  objection->why.text);
}

static int fill(struct yaml_reader *reader, uint32_t n_workers,
		struct nat_config *config)
{
	yaml_node_t *root = yaml_root(reader);
	struct nat_objection objection;
	int err = 0;

	if (root == NULL) {
		snprintf(reader->why->text, sizeof(reader->why->text),
			 "%.120s: is empty; inside and outside are needed",
			 reader->name);
		return -EINVAL;
	}
	err = yaml_take_keys(reader, top_keys, root, config);
	if (err == 0)
		err = nat_config_complete(config);
	if (err == 0 && nat_config_check(config, n_workers, &objection) < 0)
		err = object(reader, &objection);
	if (err == -ENOMEM)
		snprintf(reader->why->text, sizeof(reader->why->text),
			 "%.120s: no memory", reader->name);
	return err;
}

int nat_settings_parse(const char *name, const char *bytes, size_t n_bytes,
		       uint32_t n_workers, struct nat_config *ret_config,
		       struct mr_reason *ret_why)
{
	struct yaml_reader reader;
	struct nat_config config;
	int err = yaml_open(&reader, name, bytes, n_bytes, ret_why);

	if (err < 0)
		return err;
	nat_config_init(&config);
	err = fill(&reader, n_workers, &config);
	yaml_close(&reader);
	if (err == 0)
		*ret_config = config;
	else
		nat_config_free(&config);
	return err;
}

static int fail_io(struct mr_reason *ret_why, const char *path)
{
	const int err = errno;

	snprintf(ret_why->text, sizeof(ret_why->text), "%s: %s", path,
		 strerror(err));
	return -err;
}

int nat_settings_read(const char *path, uint32_t n_workers,
		      struct nat_config *ret_config, struct mr_reason *ret_why)
{
	FILE *file = fopen(path, "re");
	char *bytes;
	size_t n;
	int err;

	if (file == NULL)
		return fail_io(ret_why, path);
	bytes = malloc(YAML_MAX_BYTES + 1);
	if (bytes == NULL) {
		fclose(file);
		return -ENOMEM;
	}
	/* One byte more than may be, so that it is noticed. */
	n = fread(bytes, 1, YAML_MAX_BYTES + 1, file);
	if (ferror(file))
		err = fail_io(ret_why, path);
	else
		err = nat_settings_parse(path, bytes, n, n_workers, ret_config,
					 ret_why);
	free(bytes);
	fclose(file);
	return err;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* What lists of rules hold: forwards, one-to-one pairs, exclusions. */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "rules.h"
#include "values.h"

bool read_addr(const char *text, void *to, struct mr_reason *why)
{
	return value_addr(text, to, why);
}

bool read_prefix(const char *text, void *to, struct mr_reason *why)
{
	return value_prefix(text, to, why);
}

bool read_ports(const char *text, void *to, struct mr_reason *why)
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

static bool read_outside_end(const char *text, void *to, struct mr_reason *why)
{
	struct nat_forward *f = to;

	return value_end(text, &f->outside_addr, &f->outside_first,
			 &f->outside_last, why);
}

/* Without a port it is the outside's; take_forward() knows it. */
static bool read_inside_end(const char *text, void *to, struct mr_reason *why)
{
	struct nat_forward *f = to;
	uint16_t last;

	if (strchr(text, ':') == NULL)
		return value_addr(text, &f->inside_addr, why);
	if (!value_end(text, &f->inside_addr, &f->inside_first, &last, why))
		return false;
	return last == f->inside_first ||
	       value_wrong(why,
			   "'%s': the first port alone; the others follow from "
			   "outside's",
			   text);
}

static bool read_protocol(const char *text, void *to, struct mr_reason *why)
{
	static const char *const words[] = { "udp", "tcp", "icmp", NULL };
	static const uint8_t numbers[] = { IPPROTO_UDP, IPPROTO_TCP,
					   IPPROTO_ICMP };
	uint8_t *proto = to;
	uint32_t value;

	if (value_number(text, 1, 255, &value, why)) {
		*proto = (uint8_t)value;
		return true;
	}
	if (!value_word(text, words, &value, why))
		return value_wrong(why,
				   "'%.20s' is none of: udp, tcp, icmp, "
				   "or a number from 1 to 255",
				   text);
	*proto = numbers[value];
	return true;
}

static int take_protocols(struct yaml_reader *reader,
			  const struct yaml_key *key, yaml_node_t *node,
			  void *to)
{
	static const char *const words[] = { "udp", "tcp", NULL };
	struct nat_forward *f = to;
	yaml_node_t *item;

	for (uint32_t i = 0; (item = yaml_item(reader, node, i)) != NULL; i++) {
		const char *text = yaml_text(reader, item, key->name);
		struct mr_reason why;
		uint32_t word;

		if (text == NULL)
			return -EINVAL;
		if (!value_word(text, words, &word, &why))
			return yaml_wrong(reader, item, "%s: %s", key->name,
					  why.text);
		f->proto_mask |= (uint8_t)(1u << word);
	}
	return 0;
}

static const struct yaml_key forward_keys[] = {
	{ .name = "outside",
	  .take = yaml_take_value,
	  .read = read_outside_end },
	{ .name = "inside", .take = yaml_take_value, .read = read_inside_end },
	{ .name = "protocols", .take = take_protocols },
	{ .name = NULL },
};

int take_forward(struct yaml_reader *reader, const struct yaml_key *key,
		 yaml_node_t *node, void *to)
{
	struct nat_forward *f = to;
	const int err = yaml_take_keys(reader, forward_keys, node, f);

	if (err < 0)
		return err;
	if (f->outside_addr == 0 || f->inside_addr == 0)
		return yaml_wrong(reader, node, "%s: needs outside and inside",
				  key->name);
	if (f->inside_first == 0)
		f->inside_first = f->outside_first;
	if (yaml_find(reader, node, "protocols") == NULL)
		f->proto_mask = 1u << NAT_TCP | 1u << NAT_UDP;
	return 0;
}

static const struct yaml_key one_to_one_keys[] = {
	{ .name = "outside",
	  .take = yaml_take_value,
	  .read = read_addr,
	  .offset = offsetof(struct nat_one_to_one, outside_addr) },
	{ .name = "inside",
	  .take = yaml_take_value,
	  .read = read_addr,
	  .offset = offsetof(struct nat_one_to_one, inside_addr) },
	{ .name = NULL },
};

int take_one_to_one(struct yaml_reader *reader, const struct yaml_key *key,
		    yaml_node_t *node, void *to)
{
	struct nat_one_to_one *o = to;
	const int err = yaml_take_keys(reader, one_to_one_keys, node, o);

	if (err < 0)
		return err;
	if (o->outside_addr == 0 || o->inside_addr == 0)
		return yaml_wrong(reader, node, "%s: needs outside and inside",
				  key->name);
	return 0;
}

static const struct yaml_key exclude_keys[] = {
	{ .name = "to",
	  .take = yaml_take_value,
	  .read = read_prefix,
	  .offset = offsetof(struct nat_exclude, to) },
	{ .name = "protocol",
	  .take = yaml_take_value,
	  .read = read_protocol,
	  .offset = offsetof(struct nat_exclude, proto) },
	{ .name = "ports",
	  .take = yaml_take_value,
	  .read = read_ports,
	  .offset = offsetof(struct nat_exclude, first_port) },
	{ .name = NULL },
};

int take_exclude(struct yaml_reader *reader, const struct yaml_key *key,
		 yaml_node_t *node, void *to)
{
	struct nat_exclude *e = to;

	e->last_port = 65535;
	if (node->type == YAML_MAPPING_NODE &&
	    yaml_find(reader, node, "to") == NULL)
		return yaml_wrong(reader, node,
				  "%s: needs to, the network that is not "
				  "translated",
				  key->name);
	return yaml_take_keys(reader, exclude_keys, node, e);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether settings are consistent: each address has one use. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/objections.h"
#include "values.h"

enum {
	MAX_POOL = 4096, /* external addresses; 1 MiB of memory each, if used */
	MIN_MTU = 68,    /* RFC 791 */
};

static struct nat_end_text show_addr(uint32_t addr)
{
	return nat_end_text(htonl(addr), 0);
}

static bool ranges_meet(struct nat_range a, struct nat_range b)
{
	return a.first <= b.last && b.first <= a.last;
}

static struct nat_range range_of(const struct nat_prefix *prefix)
{
	return (struct nat_range){ prefix->addr, prefix->addr | ~prefix->mask };
}

/* The first network that a range overlaps; n: none. */
static uint32_t find_overlap(struct nat_range range,
			     const struct nat_prefix *nets, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && !ranges_meet(range, range_of(&nets[i])))
		i++;
	return i;
}

/* RFC 6890: addresses that no host has. */
static bool is_no_host(uint32_t addr)
{
	return addr >> 24 == 0 || addr >> 24 == 127 || addr >> 28 >= 14;
}

/* The first and last address of a network, except in /31 (RFC 3021) and /32. */
static bool is_end_of_net(const struct nat_prefix *net, uint32_t addr)
{
	return ~net->mask > 1 &&
	       (addr == net->addr || addr == (net->addr | ~net->mask));
}

static bool is_on_link(const struct nat_side_config *side, uint32_t addr)
{
	return find_overlap((struct nat_range){ addr, addr }, side->nets,
			    side->n_addrs) < side->n_addrs;
}

/* Whether addr is the first or last address of a network on the link. */
static bool is_end_on_link(const struct nat_side_config *side, uint32_t addr)
{
	for (uint32_t i = 0; i < side->n_addrs; i++)
		if (is_end_of_net(&side->nets[i], addr))
			return true;
	return false;
}

static bool is_own(const struct nat_side_config *side, uint32_t addr)
{
	for (uint32_t i = 0; i < side->n_addrs; i++)
		if (side->addrs[i] == addr)
			return true;
	return false;
}

/* Whether another host on the link may have addr. */
static bool is_neighbour(const struct nat_side_config *side, uint32_t addr)
{
	return is_on_link(side, addr) && !is_end_on_link(side, addr) &&
	       !is_own(side, addr);
}

static bool is_in_pool(const struct nat_config *config, uint32_t addr)
{
	for (uint32_t i = 0; i < config->n_pool; i++)
		if (addr >= config->pool[i].first &&
		    addr <= config->pool[i].last)
			return true;
	return false;
}

static bool is_subscriber(const struct nat_config *config, uint32_t addr)
{
	return find_overlap((struct nat_range){ addr, addr },
			    config->subscribers,
			    config->n_subscribers) < config->n_subscribers;
}

/* Those of an entry of a list return 0, or -EINVAL after its first objection.
 */
static int check_neighbour(const struct nat_side_config *side, const char *name,
			   uint32_t i, struct objections *ret)
{
	const struct nat_fixed_neighbour *n = &side->neighbours[i];

	if (!is_neighbour(side, n->addr))
		return object(ret, name, "neighbours", i,
			      "neighbour %s is not another host on this link; "
			      "give an address of its network",
			      show_addr(n->addr).text);
	if (n->mac[0] & 1)
		return object(ret, name, "neighbours", i,
			      "neighbour %s has a multicast MAC address; give "
			      "a unicast one",
			      show_addr(n->addr).text);
	return 0;
}

static int check_address(const struct nat_side_config *side, const char *name,
			 uint32_t i, struct objections *ret)
{
	const uint32_t addr = side->addrs[i];

	if (is_no_host(addr) || is_end_of_net(&side->nets[i], addr))
		return object(ret, name, "addresses", i,
			      "%s is not a host address; choose one within its "
			      "network",
			      show_addr(addr).text);
	for (uint32_t j = 0; j < i; j++)
		if (side->addrs[j] == addr)
			return object(ret, name, "addresses", i,
				      "%s is listed twice; remove one",
				      show_addr(addr).text);
	return 0;
}

static int check_side(const struct nat_side_config *side, const char *name,
		      struct objections *ret)
{
	int err = 0;

	if (side->spec[0] == '\0')
		err = object(ret, name, NULL, OBJECTION_WHOLE,
			     "no port: name an interface or a port spec");
	if (side->n_addrs == 0)
		return object(
			ret, name, NULL, OBJECTION_WHOLE,
			"no address; give at least one, such as 10.0.0.1/24");
	for (uint32_t i = 0; i < side->n_addrs; i++)
		err |= check_address(side, name, i, ret);
	if (side->gateway != 0 && !is_neighbour(side, side->gateway))
		err = object(ret, name, "gateway", OBJECTION_WHOLE,
			     "gateway %s is not another host on this link; "
			     "give an address of its network",
			     show_addr(side->gateway).text);
	if (side->mtu != 0 && side->mtu < MIN_MTU)
		err = object(ret, name, "mtu", OBJECTION_WHOLE,
			     "mtu %u is less than %d (RFC 791)", side->mtu,
			     MIN_MTU);
	for (uint32_t i = 0; i < side->n_neighbours; i++)
		err |= check_neighbour(side, name, i, ret);
	return err;
}

/* The device of a spec, without driver and options. */
static const char *device_of(const char *spec, size_t *ret_n)
{
	/* A bare name is xdp:, a bare PCI address vfio:. With other drivers,
	 * two ports may have the same name. */
	if (strncmp(spec, "xdp:", 4) == 0)
		spec += 4;
	else if (strncmp(spec, "vfio:", 5) == 0)
		spec += 5;
	else if (strncmp(spec, "null:", 5) == 0)
		return NULL;
	*ret_n = strcspn(spec, ",");
	return spec;
}

static int check_both_sides(const struct nat_config *config,
			    struct objections *ret)
{
	const struct nat_side_config *in = &config->sides[NAT_INSIDE];
	const struct nat_side_config *out = &config->sides[NAT_OUTSIDE];
	size_t n_in = 0, n_out = 0;
	const char *in_device = device_of(in->spec, &n_in);
	const char *out_device = device_of(out->spec, &n_out);

	if (in_device != NULL && out_device != NULL && n_in == n_out &&
	    strncmp(in_device, out_device, n_in) == 0)
		return object(
			ret, "outside", "port", OBJECTION_WHOLE,
			"%.*s is also the inside port; each side needs its own",
			(int)n_in, in_device);
	for (uint32_t i = 0; i < out->n_addrs; i++) {
		const uint32_t j = find_overlap(range_of(&out->nets[i]),
						in->nets, in->n_addrs);

		if (j < in->n_addrs)
			return object(ret, "outside", "addresses", i,
				      "the network of %s overlaps that of %s "
				      "inside; renumber one side (RFC 4787 "
				      "REQ-7)",
				      show_addr(out->addrs[i]).text,
				      show_addr(in->addrs[j]).text);
	}
	return 0;
}

static int check_subscriber(const struct nat_config *config, uint32_t i,
			    struct objections *ret)
{
	const struct nat_side_config *out = &config->sides[NAT_OUTSIDE];
	const bool is_own = !config->is_inside_subscribed;
	const struct nat_range range = range_of(&config->subscribers[i]);
	uint32_t j = find_overlap(range, config->subscribers, i);

	if (j < i)
		return object(ret, is_own ? "subscribers" : "inside",
			      is_own ? NULL : "addresses", i,
			      "%s overlaps entry %u; remove one",
			      show_addr(range.first).text, j + 1);
	j = find_overlap(range, out->nets, out->n_addrs);
	if (j < out->n_addrs)
		return object(ret, "subscribers", NULL, i,
			      "%s overlaps the network of %s outside; list "
			      "networks inside",
			      show_addr(range.first).text,
			      show_addr(out->addrs[j]).text);
	return 0;
}

/* Subscribers may be behind a router, so the inside network is checked, too. */
static int check_pool_and_inside(const struct nat_config *config, uint32_t i,
				 struct objections *ret)
{
	const struct nat_side_config *in = &config->sides[NAT_INSIDE];
	const struct nat_range range = config->pool[i];
	uint32_t j =
		find_overlap(range, config->subscribers, config->n_subscribers);

	if (j < config->n_subscribers)
		return object(ret, "pool", NULL, i,
			      "%s overlaps the subscribers of %s; an address "
			      "is either inside or outside",
			      show_addr(range.first).text,
			      show_addr(config->subscribers[j].addr).text);
	j = find_overlap(range, in->nets, in->n_addrs);
	if (j < in->n_addrs)
		return object(ret, "pool", NULL, i,
			      "%s overlaps the network of %s inside; an "
			      "address is either inside or outside",
			      show_addr(range.first).text,
			      show_addr(in->addrs[j]).text);
	return 0;
}

static int check_range_of_pool(const struct nat_config *config, uint32_t i,
			       struct objections *ret)
{
	const struct nat_side_config *out = &config->sides[NAT_OUTSIDE];
	const struct nat_range range = config->pool[i];

	if (is_no_host(range.first) || is_no_host(range.last))
		return object(ret, "pool", NULL, i,
			      "%s is not a host address; remove it",
			      show_addr(is_no_host(range.first) ? range.first :
								  range.last)
				      .text);
	for (uint32_t j = 0; j < i; j++)
		if (ranges_meet(range, config->pool[j]))
			return object(
				ret, "pool", NULL, i,
				"%s overlaps entry %u of the list; remove one",
				show_addr(range.first).text, j + 1);
	if (out->gateway >= range.first && out->gateway <= range.last &&
	    out->gateway != 0)
		return object(ret, "pool", NULL, i,
			      "%s is the outside gateway; only mr-nat may have "
			      "an address of the pool",
			      show_addr(out->gateway).text);
	for (uint32_t j = 0; j < out->n_addrs; j++) {
		const struct nat_range net = range_of(&out->nets[j]);

		if (~out->nets[j].mask > 1 &&
		    ((net.first >= range.first && net.first <= range.last) ||
		     (net.last >= range.first && net.last <= range.last)))
			return object(ret, "pool", NULL, i,
				      "%s includes the first or last address "
				      "of the network of %s, which no host can "
				      "have; remove it",
				      show_addr(range.first).text,
				      show_addr(out->addrs[j]).text);
	}
	return check_pool_and_inside(config, i, ret);
}

static int check_pool(const struct nat_config *config, struct objections *ret)
{
	uint64_t n = 0;
	int err = 0;

	if (config->n_pool == 0)
		return object(ret, "pool", NULL, OBJECTION_WHOLE,
			      "no external address; list at least one");
	for (uint32_t i = 0; i < config->n_pool; i++) {
		err |= check_range_of_pool(config, i, ret);
		n += nat_range_n(&config->pool[i]);
		if (n > MAX_POOL)
			return object(
				ret, "pool", NULL, i,
				"more than %d external addresses; list fewer",
				MAX_POOL);
	}
	return err;
}

static int check_inside_host(const struct nat_config *config, const char *list,
			     uint32_t i, uint32_t addr, struct objections *ret)
{
	const struct nat_side_config *in = &config->sides[NAT_INSIDE];

	if (!is_subscriber(config, addr))
		return object(ret, list, NULL, i,
			      "%s is not a subscriber; add its network to "
			      "subscribers",
			      show_addr(addr).text);
	if (is_no_host(addr) || is_end_on_link(in, addr) || is_own(in, addr))
		return object(ret, list, NULL, i,
			      "no inside host can have %s: it is an address of "
			      "mr-nat, or the first or last of a network",
			      show_addr(addr).text);
	return 0;
}

static int check_one_to_one(const struct nat_config *config, uint32_t i,
			    struct objections *ret)
{
	const struct nat_one_to_one *a = &config->one_to_ones[i];
	const struct nat_side_config *out = &config->sides[NAT_OUTSIDE];
	const char *const s = "one_to_one";

	if (is_in_pool(config, a->outside_addr) || is_own(out, a->outside_addr))
		return object(ret, s, NULL, i,
			      "%s is in the pool or an address of mr-nat; all "
			      "of its ports go to one host, so remove it there",
			      show_addr(a->outside_addr).text);
	if (is_no_host(a->outside_addr) ||
	    is_subscriber(config, a->outside_addr) ||
	    is_on_link(&config->sides[NAT_INSIDE], a->outside_addr) ||
	    is_end_on_link(out, a->outside_addr) ||
	    a->outside_addr == out->gateway)
		return object(ret, s, NULL, i,
			      "%s cannot be an external address; choose one "
			      "that no other host has",
			      show_addr(a->outside_addr).text);
	if (check_inside_host(config, s, i, a->inside_addr, ret) < 0)
		return -EINVAL;
	for (uint32_t j = 0; j < i; j++)
		if (a->outside_addr == config->one_to_ones[j].outside_addr ||
		    a->inside_addr == config->one_to_ones[j].inside_addr)
			return object(ret, s, NULL, i,
				      "has an address of entry %u of the list; "
				      "remove one",
				      j + 1);
	return 0;
}

/* What two forwards both claim. */
static const char *find_clash(const struct nat_port_forward *a,
			      const struct nat_port_forward *b)
{
	const uint32_t n_a = a->outside_last - a->outside_first;
	const uint32_t n_b = b->outside_last - b->outside_first;

	if ((a->proto_mask & b->proto_mask) == 0)
		return NULL;
	if (a->outside_addr == b->outside_addr &&
	    a->outside_first <= b->outside_last &&
	    b->outside_first <= a->outside_last)
		return "outside ports";
	/* Endpoint-independent: an inside port has one external end. */
	if (a->inside_addr == b->inside_addr &&
	    a->inside_first <= b->inside_first + n_b &&
	    b->inside_first <= a->inside_first + n_a)
		return "inside ports";
	return NULL;
}

static int check_forward(const struct nat_config *config, uint32_t i,
			 struct objections *ret)
{
	const struct nat_port_forward *f = &config->forwards[i];

	for (uint32_t j = 0; j < config->n_one_to_ones; j++)
		if (config->one_to_ones[j].outside_addr == f->outside_addr ||
		    config->one_to_ones[j].inside_addr == f->inside_addr)
			return object(ret, "forwards", NULL, i,
				      "one_to_one entry %u already uses all "
				      "ports of this address",
				      j + 1);
	if (!is_in_pool(config, f->outside_addr) &&
	    !is_own(&config->sides[NAT_OUTSIDE], f->outside_addr))
		return object(ret, "forwards", NULL, i,
			      "%s is not an address of mr-nat; use an outside "
			      "address or one of the pool",
			      show_addr(f->outside_addr).text);
	if (check_inside_host(config, "forwards", i, f->inside_addr, ret) < 0)
		return -EINVAL;
	if (f->proto_mask == 0)
		return object(ret, "forwards", NULL, i,
			      "no protocol; give tcp, udp or both");
	if (f->outside_last < f->outside_first)
		return object(ret, "forwards", NULL, i,
			      "ports %u-%u: the first is above the last",
			      f->outside_first, f->outside_last);
	if (f->outside_first == 0 || f->inside_first == 0 ||
	    f->inside_first + (f->outside_last - f->outside_first) > 65535)
		return object(
			ret, "forwards", NULL, i,
			"ports %u-%u to %u-%u: ports are 1 to 65535",
			f->outside_first, f->outside_last, f->inside_first,
			f->inside_first + f->outside_last - f->outside_first);
	for (uint32_t j = 0; j < i; j++) {
		const char *what = find_clash(f, &config->forwards[j]);

		if (what != NULL)
			return object(ret, "forwards", NULL, i,
				      "%s overlap entry %u of the list; each "
				      "port maps to one other",
				      what, j + 1);
	}
	return 0;
}

/* An external address within prefix, or 0. */
static uint32_t external_in(const struct nat_config *config,
			    const struct nat_prefix *prefix)
{
	const struct nat_side_config *out = &config->sides[NAT_OUTSIDE];
	const struct nat_range range = range_of(prefix);

	for (uint32_t i = 0; i < config->n_pool; i++)
		if (ranges_meet(range, config->pool[i]))
			return config->pool[i].first > range.first ?
				       config->pool[i].first :
				       range.first;
	for (uint32_t i = 0; i < out->n_addrs; i++)
		if (nat_prefix_has(prefix, out->addrs[i]))
			return out->addrs[i];
	for (uint32_t i = 0; i < config->n_one_to_ones; i++)
		if (nat_prefix_has(prefix, config->one_to_ones[i].outside_addr))
			return config->one_to_ones[i].outside_addr;
	return 0;
}

static int check_exclude(const struct nat_config *config, uint32_t i,
			 struct objections *ret)
{
	const struct nat_exclude *e = &config->excludes[i];
	const bool has_ports = e->first_port > 0 || e->last_port < 65535;
	const uint32_t external = external_in(config, &e->to);

	if (e->first_port > e->last_port)
		return object(ret, "exclude", NULL, i,
			      "ports %u-%u: the first is above the last",
			      e->first_port, e->last_port);
	if (has_ports && e->proto != 6 && e->proto != 17)
		return object(ret, "exclude", NULL, i,
			      "ports: only tcp and udp have ports; add "
			      "protocol");
	/* It would leave untranslated, and never return. */
	if (external != 0)
		return object(ret, "exclude", NULL, i,
			      "%s contains the external address %s; list "
			      "networks without it",
			      show_addr(e->to.addr).text,
			      show_addr(external).text);
	return 0;
}

static int check_rest(const struct nat_config *config, struct objections *ret)
{
	int err = 0;

	if (config->max_mappings == 0)
		err = object(ret, "limits", "mappings", OBJECTION_WHOLE,
			     "is 0; nothing could be translated");
	if (config->max_mappings_per_subscriber > config->max_mappings)
		err = object(
			ret, "limits", "per_subscriber", OBJECTION_WHOLE,
			"%u is more than the limit of %u for all subscribers",
			config->max_mappings_per_subscriber,
			config->max_mappings);
	if (config->max_sessions_per_subscriber > config->max_sessions)
		err = object(
			ret, "limits", "sessions_per_subscriber",
			OBJECTION_WHOLE,
			"%u is more than the limit of %u for all subscribers",
			config->max_sessions_per_subscriber,
			config->max_sessions);
	if (config->state_interval_s == 0)
		err = object(ret, "state_interval", NULL, OBJECTION_WHOLE,
			     "is 0");
	if (config->logs_sessions && config->log_path[0] == '\0')
		err = object(ret, "log", "sessions", OBJECTION_WHOLE,
			     "needs a file; set path");
	if (config->log_path[0] != '\0' &&
	    strcmp(config->log_path, config->state_path) == 0)
		err = object(ret, "state", NULL, OBJECTION_WHOLE,
			     "%s is the log file; choose another",
			     config->state_path);
	return err;
}

int nat_config_check(const struct nat_config *config, uint32_t n_workers,
		     struct objections *ret)
{
	int err;

	ret->n = 0;
	err = check_side(&config->sides[NAT_INSIDE], "inside", ret) |
	      check_side(&config->sides[NAT_OUTSIDE], "outside", ret);
	if (err == 0)
		err = check_both_sides(config, ret);
	if (err < 0) /* objections to the rest would follow from these */
		return err;
	if (config->n_subscribers == 0)
		err = object(ret, "subscribers", NULL, OBJECTION_WHOLE,
			     "empty; list the networks inside");
	for (uint32_t i = 0; i < config->n_subscribers; i++)
		err |= check_subscriber(config, i, ret);
	err |= check_pool(config, ret);
	for (uint32_t i = 0; i < config->n_one_to_ones; i++)
		err |= check_one_to_one(config, i, ret);
	for (uint32_t i = 0; i < config->n_forwards; i++)
		err |= check_forward(config, i, ret);
	for (uint32_t i = 0; i < config->n_excludes; i++)
		err |= check_exclude(config, i, ret);
	err |= nat_config_check_ports(config, n_workers, ret);
	return err | check_rest(config, ret);
}

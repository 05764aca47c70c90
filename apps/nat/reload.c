/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another configuration for mappings that live on. First all is made that can
 * fail; then mappings end that are no longer allowed; then, where addresses or
 * ports changed, the others are entered anew; then limits and timers change.
 * Numbers of mappings stay what they are.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session.h"
#include "static.h"

/* What is on its way from one configuration to the other. */
struct change {
	const struct nat_config *config; /* the new one */
	struct nat_static_set given;
	struct nat_ports *ports; /* new ones; NULL: those there are fit */
	uint32_t now_s;
};

static bool is_kept_static(const struct change *change,
			   const struct nat_map *map)
{
	uint32_t id = mr_flow_find(change->given.by_inside, &map->inside);
	const struct nat_static *what;

	if (id == MR_FLOW_NONE)
		return false;
	what = nat_static_at(&change->given, id);
	return what->flags == map->flags &&
	       what->outside.addr == map->outside_addr &&
	       what->outside.port == map->outside_port;
}

/* Whether a static mapping of the new configuration is in the way of one. */
static bool is_in_the_way(const struct change *change,
			  const struct nat_map *map)
{
	const struct nat_tuple outside = { map->outside_addr, map->outside_port,
					   map->inside.proto,
					   map->inside.realm };
	const struct nat_tuple any = { .addr = map->inside.addr,
				       .realm = map->inside.realm };
	const struct nat_static_set *given = &change->given;

	return mr_flow_find(given->by_inside, &map->inside) != MR_FLOW_NONE ||
	       mr_flow_find(given->by_inside, &any) != MR_FLOW_NONE ||
	       mr_flow_find(given->by_outside, &outside) != MR_FLOW_NONE;
}

static bool has_outside(const struct nat_maps *maps,
			const struct change *change, const struct nat_map *map)
{
	const struct nat_ports *ports =
		change->ports != NULL ? change->ports : maps->ports;
	uint32_t addr = ntohl(map->outside_addr), place;
	uint32_t proto = nat_proto_of(map->inside.proto);

	if (proto == NAT_PROTOS)
		return change->config->passes_other_protocols &&
		       nat_external_index(&ports->externals, addr) !=
			       NAT_EXTERNAL_NONE;
	place = nat_ports_place(ports, proto, addr, ntohs(map->outside_port));
	return place != NAT_PLACE_NONE && nat_ports_in_range(ports, place);
}

static bool may_stay(const struct nat_maps *maps, const struct change *change,
		     const struct nat_map *map)
{
	if (map->flags & NAT_MAP_STATIC)
		return is_kept_static(change, map);
	return nat_subscriber_ordinal(change->config, map->inside.addr) !=
		       NAT_NO_ORDINAL &&
	       has_outside(maps, change, map) && !is_in_the_way(change, map);
}

static void end_others(struct nat_maps *maps, const struct change *change)
{
	struct mr_flow_table *table = maps->table;

	for (uint32_t id = mr_flow_next(table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(table, id))
		if (!may_stay(maps, change, nat_map_at(maps, id)))
			nat_map_end(maps, id, change->now_s);
}

static void clear_others(struct nat_maps *maps)
{
	for (uint32_t id = mr_flow_next(maps->others, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(maps->others, id))
		mr_flow_remove(maps->others, id);
}

/* Subscribers have neither address nor blocks until these are entered. */
static void unpair(struct nat_maps *maps, const struct change *change)
{
	struct mr_flow_table *table = maps->subscribers;

	for (uint32_t id = mr_flow_next(table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(table, id)) {
		struct nat_subscriber *subscriber =
			nat_subscriber_at(table, id);

		nat_blocks_forget(maps->ports, id, change->now_s);
		subscriber->external = 0;
		subscriber->ordinal = nat_subscriber_ordinal(change->config,
							     subscriber->addr);
	}
}

/* A dynamic mapping, or a static one that was there before. */
static bool enter(struct nat_maps *maps, uint32_t id, uint32_t now_s)
{
	const struct nat_map *map = nat_map_at(maps, id);
	const struct nat_tuple outside = { map->outside_addr, map->outside_port,
					   map->inside.proto,
					   map->inside.realm };
	uint32_t proto = nat_proto_of(map->inside.proto), place;

	if (map->flags & NAT_MAP_STATIC)
		return nat_static_enter(maps, id);
	if (proto == NAT_PROTOS)
		return nat_other_add(maps, &outside, id) == 0;
	place = nat_ports_place(maps->ports, proto, ntohl(outside.addr),
				ntohs(outside.port));
	return nat_ports_take_place(maps->ports, place, map->subscriber, id,
				    now_s);
}

static void enter_all(struct nat_maps *maps, uint8_t flags, uint32_t now_s)
{
	struct mr_flow_table *table = maps->table;

	for (uint32_t id = mr_flow_next(table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(table, id)) {
		const struct nat_map *map = nat_map_at(maps, id);

		if ((map->flags & NAT_MAP_STATIC) != flags ||
		    enter(maps, id, now_s))
			continue;
		/* Its port is in a block that is now another's. */
		nat_map_log(maps, map, now_s, false);
		nat_map_drop(maps, id);
	}
}

/* Those without a mapping, whose blocks were waiting. */
static void put_idle_subscribers(struct nat_maps *maps)
{
	struct mr_flow_table *table = maps->subscribers;

	for (uint32_t id = mr_flow_next(table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(table, id))
		nat_subscriber_put(table, id);
}

/* From the old ports to the new ones. */
static int move(struct nat_maps *maps, struct change *change,
		struct mr_reason *reterr_why)
{
	struct nat_ports *old = maps->ports;
	int err;

	unpair(maps, change);
	clear_others(maps);
	maps->ports = change->ports;
	change->ports = NULL;
	enter_all(maps, NAT_MAP_STATIC, change->now_s);
	err = nat_static_set_make(maps, &change->given, reterr_why);
	enter_all(maps, 0, change->now_s);
	nat_ports_inherit(maps->ports, old, change->now_s);
	put_idle_subscribers(maps);
	nat_ports_destroy(old);
	return err;
}

static void remove_sessions_of(struct nat_maps *maps, uint32_t proto)
{
	struct mr_flow_table *table = maps->sessions;

	for (uint32_t id = mr_flow_next(table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(table, id)) {
		const struct nat_further *further = nat_further_at(maps, id);
		const struct nat_map *map =
			nat_map_at(maps, further->key.map_id);

		if (further->key.kind == NAT_KIND_SESSION &&
		    nat_proto_of(map->inside.proto) == proto)
			nat_further_remove(maps, id);
	}
}

/*
 * Sessions of UDP and ICMP are there for the filter: another one begins without
 * them. Those of TCP stay, with permits or without.
 */
static void change_filters(struct nat_maps *maps, const struct change *change)
{
	const enum nat_filtering *filtering = change->config->filtering;
	bool had_permits = maps->filtering[NAT_TCP] != NAT_FILTER_NONE;
	bool has_permits = filtering[NAT_TCP] != NAT_FILTER_NONE;

	if (filtering[NAT_UDP] != maps->filtering[NAT_UDP])
		remove_sessions_of(maps, NAT_UDP);
	if (filtering[NAT_ICMP] != maps->filtering[NAT_ICMP])
		remove_sessions_of(maps, NAT_ICMP);
	if (had_permits && !has_permits)
		nat_permits_remove(maps);
	nat_maps_adopt(maps, change->config);
	if (!had_permits && has_permits)
		nat_permits_add(maps);
}

/* Timers that became shorter must not wait for the end of the longer ones. */
static void set_timers(struct nat_maps *maps)
{
	for (uint32_t id = mr_flow_next(maps->table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(maps->table, id))
		nat_map_set_timer(maps, id);
	for (uint32_t id = mr_flow_next(maps->sessions, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(maps->sessions, id))
		if (nat_further_at(maps, id)->key.kind == NAT_KIND_SESSION)
			mr_wheel_set(maps->session_wheel, id,
				     nat_further_due(maps, id));
}

static int check(const struct nat_maps *maps, const struct change *change,
		 struct mr_reason *reterr_why)
{
	const struct nat_config *config = change->config;
	uint32_t n = maps->n_shards;

	if (config->max_mappings > (uint64_t)maps->n_max_mappings * n ||
	    config->max_sessions > (uint64_t)maps->n_max_sessions * n) {
		snprintf(reterr_why->text, sizeof(reterr_why->text),
			 "more than %llu mappings or %llu sessions need a "
			 "restart: tables were made for so many",
			 (unsigned long long)maps->n_max_mappings * n,
			 (unsigned long long)maps->n_max_sessions * n);
		return -EINVAL;
	}
	if (change->given.n > maps->n_max_static) {
		snprintf(reterr_why->text, sizeof(reterr_why->text),
			 "%u static mappings need a restart: tables were made "
			 "for %u",
			 change->given.n, maps->n_max_static);
		return -EINVAL;
	}
	return 0;
}

/* Deterministic blocks follow from the order of the inside networks. */
static bool same_subscribers(const struct nat_config *a,
			     const struct nat_config *b)
{
	return a->n_subscribers == b->n_subscribers &&
	       memcmp(a->subscribers, b->subscribers,
		      a->n_subscribers * sizeof(*a->subscribers)) == 0;
}

/* Whether all can stay where it is. */
static bool fits(const struct nat_maps *maps, const struct change *change)
{
	uint32_t n_kept = 0;

	for (uint32_t id = mr_flow_next(maps->table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(maps->table, id)) {
		const struct nat_map *map = nat_map_at(maps, id);

		n_kept += map->flags & NAT_MAP_STATIC &&
			  is_kept_static(change, map);
	}
	return n_kept == maps->n_static && n_kept == change->given.n &&
	       (!change->config->ports.is_deterministic ||
		same_subscribers(change->config, maps->config)) &&
	       nat_ports_equal(maps->ports, change->ports);
}

int nat_maps_reload(struct nat_maps *maps, const struct nat_config *config,
		    uint32_t now_s, struct mr_reason *reterr_why)
{
	struct change change = { .config = config, .now_s = now_s };
	struct mr_reason unused;
	int err;

	if (reterr_why == NULL)
		reterr_why = &unused;
	err = nat_static_set_init(&change.given, maps->ctx, config, reterr_why);
	if (err < 0)
		return err;
	err = check(maps, &change, reterr_why);
	if (err == 0)
		err = nat_maps_make_ports(maps, config, &change.ports,
					  reterr_why);
	if (err < 0) {
		nat_static_set_fini(&change.given);
		return err;
	}
	if (fits(maps, &change)) {
		nat_ports_destroy(change.ports);
		change.ports = NULL;
	}
	end_others(maps, &change);
	change_filters(maps, &change);
	if (change.ports != NULL)
		err = move(maps, &change, reterr_why);
	set_timers(maps);
	nat_static_set_fini(&change.given);
	return err;
}

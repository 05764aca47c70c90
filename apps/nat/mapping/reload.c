/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A reload, which keeps the mappings that are still allowed. Steps that can
 * fail come first. If the ports stay, only static mappings that come or go are
 * touched; a review checks the others, in parts. Otherwise, mappings that are
 * no longer allowed end at once, and the rest move to new ports. Mappings keep
 * their numbers.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "session.h"
#include "static.h"
#include "support/text.h"

enum { N_REVIEWED = 1024 }; /* mappings or sessions at a time */

/* A reload in progress. */
struct change {
	const struct nat_config *config; /* the new one */
	struct nat_static_set given;
	struct nat_ports *ports; /* new ones; NULL: keep the old ones... */
	struct nat_externals externals; /* ...with these addresses */
	uint32_t now_s;
};

/* Whether a static mapping of the new configuration conflicts with this one. */
static bool is_in_the_way(const struct change *change,
			  const struct nat_map *map)
{
	const struct nat_tuple outside = nat_outside_of(map);
	const struct nat_tuple any = { .addr = map->inside.addr };
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
	const struct nat_tuple outside = nat_outside_of(map);
	const uint32_t place = nat_place_of(ports, &outside);

	if (nat_proto_of(outside.proto) == NAT_PROTOS)
		return change->config->passes_other_protocols &&
		       nat_external_index(&ports->externals,
					  ntohl(outside.addr)) !=
			       NAT_EXTERNAL_NONE;
	return place != NAT_PLACE_NONE && nat_ports_in_range(ports, place);
}

static bool may_stay(const struct nat_maps *maps, const struct change *change,
		     const struct nat_map *map)
{
	if (map->flags & NAT_MAP_STATIC)
		return nat_static_has(&change->given, map);
	return nat_subscriber_ordinal(&change->given.ordinals,
				      map->inside.addr) != NAT_NO_ORDINAL &&
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

/* Subscribers have no address and no blocks until these are entered. */
static void unpair_subscribers(struct nat_maps *maps,
			       const struct change *change)
{
	struct mr_flow_table *table = maps->subscribers;

	for (uint32_t id = mr_flow_next(table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(table, id)) {
		struct nat_subscriber *subscriber =
			nat_subscriber_at(table, id);

		nat_blocks_forget(maps->ports, id, change->now_s);
		subscriber->external = 0;
		subscriber->ordinal = nat_subscriber_ordinal(
			&change->given.ordinals, subscriber->addr);
	}
}

/* Enter the external end of a remaining mapping. Others hold no port. */
static bool enter_mapping(struct nat_maps *maps, uint32_t id, uint32_t now_s)
{
	const struct nat_map *map = nat_map_at(maps, id);
	const struct nat_tuple outside = nat_outside_of(map);

	return map->flags & NAT_MAP_STATIC ||
	       nat_proto_of(outside.proto) == NAT_PROTOS ||
	       nat_ports_take_place(maps->ports,
				    nat_place_of(maps->ports, &outside),
				    map->subscriber, id, now_s);
}

static void enter_all(struct nat_maps *maps, uint32_t now_s)
{
	struct mr_flow_table *table = maps->table;

	for (uint32_t id = mr_flow_next(table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(table, id)) {
		if (enter_mapping(maps, id, now_s))
			continue;
		/* Its block now belongs to another subscriber. */
		nat_map_log(maps, nat_map_at(maps, id), now_s, false);
		nat_map_drop(maps, id);
	}
}

/* Subscribers without a mapping, whose blocks were in hold-down. */
static void put_idle_subscribers(struct nat_maps *maps)
{
	struct mr_flow_table *table = maps->subscribers;

	for (uint32_t id = mr_flow_next(table, MR_FLOW_NONE);
	     id != MR_FLOW_NONE; id = mr_flow_next(table, id))
		nat_subscriber_put(table, id);
}

/* From the old ports to the new ones. */
static void move_to_new_ports(struct nat_maps *maps, struct change *change)
{
	struct nat_ports *old = maps->ports;

	end_others(maps, change);
	unpair_subscribers(maps, change);
	maps->ports = change->ports;
	nat_static_set_enter(maps, &change->given, true);
	enter_all(maps, change->now_s);
	nat_ports_inherit(maps->ports, old, change->now_s);
	put_idle_subscribers(maps);
	nat_ports_destroy(old);
}

/* The ports stay; the review ends mappings that are no longer allowed. */
static void keep_ports(struct nat_maps *maps, struct change *change)
{
	struct mr_flow_table *table = maps->static_ends.by_inside;

	for (uint32_t i = mr_flow_next(table, MR_FLOW_NONE); i != MR_FLOW_NONE;
	     i = mr_flow_next(table, i)) {
		const struct nat_tuple *inside =
			&nat_static_at(&maps->static_ends, i)->inside;
		uint32_t id = mr_flow_find(maps->table, inside);

		if (!nat_static_has(&change->given, nat_map_at(maps, id)))
			nat_map_end(maps, id, change->now_s);
	}
	nat_ports_follow(maps->ports, change->config, &change->externals);
	nat_static_set_enter(maps, &change->given, false);
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
 * Sessions of UDP and ICMP exist for the filter, so they end if it changes.
 * Those of TCP stay, with permits or without.
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

static bool same_subscribers(const struct nat_config *a,
			     const struct nat_config *b)
{
	return a->n_subscribers == b->n_subscribers &&
	       memcmp(a->subscribers, b->subscribers,
		      a->n_subscribers * sizeof(*a->subscribers)) == 0;
}

/* Shortened timers must not wait for the old ones to expire. */
static bool has_shorter(const struct nat_timeouts *is,
			const struct nat_timeouts *was)
{
	return is->udp_s < was->udp_s ||
	       is->tcp_opening_s < was->tcp_opening_s ||
	       is->tcp_open_s < was->tcp_open_s ||
	       is->tcp_closing_s < was->tcp_closing_s ||
	       is->tcp_reset_s < was->tcp_reset_s || is->icmp_s < was->icmp_s ||
	       is->other_s < was->other_s;
}

/* Whether existing mappings may be affected. */
static bool needs_review(const struct nat_maps *maps,
			 const struct nat_config *next)
{
	const struct nat_config *config = maps->config;

	return has_shorter(&next->timeouts, &maps->timeouts) ||
	       !same_subscribers(config, next) ||
	       (config->passes_other_protocols &&
		!next->passes_other_protocols) ||
	       next->n_one_to_ones > 0;
}

/* By the current configuration; ports were checked at reload. */
static bool is_allowed(const struct nat_maps *maps, const struct nat_map *map)
{
	const struct nat_tuple any = { .addr = map->inside.addr };

	if (map->flags & NAT_MAP_STATIC)
		return true;
	return nat_subscriber_ordinal(&maps->static_ends.ordinals,
				      map->inside.addr) != NAT_NO_ORDINAL &&
	       (nat_proto_of(map->inside.proto) != NAT_PROTOS ||
		maps->config->passes_other_protocols) &&
	       (maps->n_one_to_ones == 0 ||
		mr_flow_find(maps->table, &any) == MR_FLOW_NONE);
}

static void review_mapping(struct nat_maps *maps, uint32_t id, uint32_t now_s)
{
	nat_rules_take(maps, id);
	if (is_allowed(maps, nat_map_at(maps, id)))
		nat_map_set_timer(maps, id);
	else
		nat_map_end(maps, id, now_s);
}

static void review_session(struct nat_maps *maps, uint32_t id)
{
	const struct nat_further_key *key = &nat_further_at(maps, id)->key;

	if (key->kind != NAT_KIND_SESSION)
		return;
	nat_rule_take(maps, key->map_id,
		      (struct nat_end){ key->addr, key->port });
	mr_wheel_set(maps->session_wheel, id, nat_further_due(maps, id));
}

void nat_maps_review(struct nat_maps *maps, uint32_t now_s)
{
	bool is_mappings = maps->review == NAT_REVIEW_MAPPINGS;
	struct mr_flow_table *table =
		is_mappings ? maps->table : maps->sessions;
	uint32_t id = maps->reviewed;

	for (uint32_t i = 0; i < N_REVIEWED; i++) {
		id = mr_flow_next(table, id);
		if (id == MR_FLOW_NONE) {
			maps->review = is_mappings ? NAT_REVIEW_SESSIONS :
						     NAT_REVIEW_NONE;
			break;
		}
		if (is_mappings)
			review_mapping(maps, id, now_s);
		else
			review_session(maps, id);
	}
	maps->reviewed = id;
}

/* The address was ours and no longer is, or the other way round. */
static bool changes_hands(const struct nat_maps *maps,
			  const struct change *change,
			  const struct nat_static *what)
{
	uint32_t addr = ntohl(what->outside.addr);

	return (nat_external_index(&maps->ports->externals, addr) ==
		NAT_EXTERNAL_NONE) !=
	       (nat_external_index(&change->externals, addr) ==
		NAT_EXTERNAL_NONE);
}

/* Whether the external end of a static mapping can be entered or removed while
 * the ports stay. */
static bool can_enter(const struct nat_maps *maps,
		      const struct nat_static *what)
{
	const struct nat_ports *ports = maps->ports;
	const uint32_t place = nat_place_of(ports, &what->outside);
	uint32_t id;

	if (place == NAT_PLACE_NONE)
		return true;
	/* A block counts the ports that it can give. */
	if (ports->blocks != NULL && nat_ports_in_range(ports, place))
		return false;
	if (ports->index[place] == 0)
		return true;
	id = nat_ports_mapping(ports, place);
	return id != MR_FLOW_NONE &&
	       nat_map_at(maps, id)->flags & NAT_MAP_STATIC;
}

/* The same for all that are not in the other set. */
static bool can_enter_all(const struct nat_maps *maps,
			  const struct change *change,
			  const struct nat_static_set *given,
			  const struct nat_static_set *others)
{
	struct mr_flow_table *table = given->by_inside;

	for (uint32_t i = mr_flow_next(table, MR_FLOW_NONE); i != MR_FLOW_NONE;
	     i = mr_flow_next(table, i)) {
		const struct nat_static *what = nat_static_at(given, i);
		uint32_t there = mr_flow_find(others->by_inside, &what->inside);
		bool is_kept =
			there != MR_FLOW_NONE &&
			memcmp(&nat_static_at(others, there)->outside,
			       &what->outside, sizeof(what->outside)) == 0;

		if (changes_hands(maps, change, what) ||
		    (!is_kept && !can_enter(maps, what)))
			return false;
	}
	return true;
}

/* Choose ports for the new configuration: the existing ones, or new ones. */
static int choose_ports(struct nat_maps *maps, struct change *change,
			struct mr_reason *reterr_why)
{
	if (nat_ports_can_follow(maps->ports, maps->config, change->config,
				 &change->externals)) {
		if (can_enter_all(maps, change, &change->given,
				  &maps->static_ends) &&
		    can_enter_all(maps, change, &maps->static_ends,
				  &change->given))
			return 0;
		nat_externals_fini(&change->externals);
	}
	return nat_maps_make_ports(maps, change->config, &change->ports,
				   reterr_why);
}

static void commit_change(struct nat_maps *maps, struct change *change)
{
	/* An unfinished review starts again. */
	if (needs_review(maps, change->config) ||
	    maps->review != NAT_REVIEW_NONE) {
		maps->review = NAT_REVIEW_MAPPINGS;
		maps->reviewed = MR_FLOW_NONE;
	}
	nat_static_set_convert(maps, &change->given, change->now_s);
	if (change->ports != NULL)
		move_to_new_ports(maps, change);
	else
		keep_ports(maps, change);
	change_filters(maps, change);
	nat_static_set_fini(&maps->static_ends);
	maps->static_ends = change->given;
}

/* The static mappings of a configuration, if there is room for them. */
static int init_given(const struct nat_maps *maps,
		      const struct nat_config *config,
		      struct nat_static_set *given,
		      struct mr_reason *reterr_why)
{
	const int err =
		nat_static_set_init(given, maps->ctx, config, reterr_why);

	if (err < 0 || given->n <= maps->n_max_static)
		return err;
	fail_with(
		reterr_why, 0,
		"%u static mappings need a restart; there is only room for %u",
		given->n, maps->n_max_static);
	nat_static_set_fini(given);
	return -EINVAL;
}

int nat_maps_can_reload(const struct nat_maps *maps,
			const struct nat_config *config,
			struct mr_reason *reterr_why)
{
	struct nat_static_set given;
	const int err = init_given(maps, config, &given, reterr_why);

	if (err == 0)
		nat_static_set_fini(&given);
	return err;
}

int nat_maps_reload(struct nat_maps *maps, const struct nat_config *config,
		    uint32_t now_s, struct mr_reason *reterr_why)
{
	struct change change = { .config = config, .now_s = now_s };
	struct mr_reason unused;
	int err;

	if (reterr_why == NULL)
		reterr_why = &unused;
	err = init_given(maps, config, &change.given, reterr_why);
	if (err == 0)
		err = choose_ports(maps, &change, reterr_why);
	if (err == 0)
		err = nat_static_set_make(maps, &change.given, reterr_why);
	if (err == 0) {
		commit_change(maps, &change);
		return 0;
	}
	nat_ports_destroy(change.ports);
	nat_externals_fini(&change.externals);
	nat_static_set_fini(&change.given);
	return err;
}

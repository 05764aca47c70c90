/* SPDX-License-Identifier: BSD-3-Clause */
/* Lists of sessions, and restoring saved ones. */
#include <arpa/inet.h>
#include <errno.h>

#include "ports/ports_set.h"
#include "session.h"

/*
 * A cursor is the current table in the upper bits, above 1 + the number of the
 * last record; so 0 is the beginning.
 */
enum { IN_MAPPINGS, IN_SESSIONS, AT_END };

static void fill_ends(const struct nat_map *map, struct nat_session *session)
{
	*session = (struct nat_session){
		.inside = map->inside,
		.outside = { map->outside_addr, map->outside_port },
		.flags = map->flags & NAT_MAP_KIND,
		.n_out = map->n_out,
		.n_in = map->n_in,
	};
}

static void fill_times(const struct nat_maps *maps, const struct nat_map *map,
		       uint32_t last_s, uint32_t now_s,
		       struct nat_session *session)
{
	uint32_t due_s = nat_due(last_s, nat_idle_s(maps, map->inside.proto,
						    session->tcp_state));

	session->age_s = now_s - last_s;
	if (!nat_is_due(due_s, now_s))
		session->left_s = due_s - now_s;
}

/* UDP and ICMP sessions on which filtering depends. */
static bool is_filtered(const struct nat_maps *maps, const struct nat_map *map)
{
	uint32_t proto = nat_proto_of(map->inside.proto);

	return (proto == NAT_UDP || proto == NAT_ICMP) &&
	       maps->filtering[proto] != NAT_FILTER_NONE;
}

/* A mapping with its first session; false: it has only further ones. */
static bool list_mapping(const struct nat_maps *maps, uint32_t id,
			 uint32_t now_s, struct nat_session *session)
{
	const struct nat_map *map = nat_map_at(maps, id);
	bool is_tcp = map->inside.proto == IPPROTO_TCP;
	bool is_live;

	nat_rules_take(maps, id);
	is_live = nat_first_is_live(maps, map, now_s);
	if (is_tcp && !is_live && map->n_sessions > 0)
		return false;
	fill_ends(map, session);
	if (map->flags & NAT_MAP_STATIC && !is_live)
		return true;
	/* If filtering depends on it, an expired remote end does not count. */
	if (is_live || !is_filtered(maps, map))
		session->remote = map->remote;
	session->tcp_state = map->tcp_state;
	fill_times(maps, map,
		   is_tcp && map->remote.addr != 0 ? map->remote_last_s :
						     map->last_s,
		   now_s, session);
	if (map->flags & NAT_MAP_STATIC && !is_tcp)
		session->left_s = 0;
	return true;
}

static bool list_session(const struct nat_maps *maps, uint32_t id,
			 uint32_t now_s, struct nat_session *session)
{
	const struct nat_further *further = nat_further_at(maps, id);
	const struct nat_map *map = nat_map_at(maps, further->key.map_id);

	if (further->key.kind != NAT_KIND_SESSION)
		return false;
	nat_rule_take(maps, further->key.map_id,
		      (struct nat_end){ further->key.addr, further->key.port });
	fill_ends(map, session);
	session->remote.addr = further->key.addr;
	session->remote.port = further->key.port;
	session->tcp_state = further->tcp_state;
	fill_times(maps, map, further->last_s, now_s, session);
	return true;
}

uint32_t nat_maps_list(const struct nat_maps *maps, uint64_t *cursor,
		       uint32_t now_s, struct nat_session *sessions, uint32_t n)
{
	uint32_t where = (uint32_t)(*cursor >> 32), n_filled = 0;
	uint32_t id = (uint32_t)*cursor - 1;

	while (where != AT_END && n_filled < n) {
		bool is_listed;

		id = mr_flow_next(where == IN_MAPPINGS ? maps->table :
							 maps->sessions,
				  id);
		if (id == MR_FLOW_NONE) {
			where++;
			continue;
		}
		is_listed = where == IN_MAPPINGS ?
				    list_mapping(maps, id, now_s,
						 &sessions[n_filled]) :
				    list_session(maps, id, now_s,
						 &sessions[n_filled]);
		n_filled += is_listed;
	}
	*cursor = (uint64_t)where << 32 | (id + 1);
	return n_filled;
}

static void fill_held(const struct nat_maps *maps, uint32_t place,
		      uint32_t age_s, struct nat_session *session)
{
	const struct nat_ports *ports = maps->ports;
	const uint32_t owner_id = nat_blocks_owner(ports, place);

	*session = (struct nat_session){
		.inside.proto = nat_ip_proto_of(ports, place),
		.outside = { htonl(nat_ports_addr_of(ports, place)),
			     htons(nat_ports_port_of(ports, place)) },
		.flags = NAT_MAP_RESTS,
		.age_s = age_s,
		.left_s = ports->hold_down_s + 1 - age_s,
	};
	if (owner_id != MR_FLOW_NONE)
		session->inside.addr =
			nat_subscriber_at(maps->subscribers, owner_id)->addr;
}

/* Set in the cursor for ports: bits 32 to 62 are when the last port was freed,
 * bits 0 to 31 its place + 1. */
#define HELD (UINT64_C(1) << 63)

uint32_t nat_maps_save(const struct nat_maps *maps, uint64_t *cursor,
		       uint32_t now_s, struct nat_session *sessions, uint32_t n)
{
	uint32_t place = (uint32_t)*cursor - 1, n_filled = 0, age_s;
	uint32_t freed_s = (uint32_t)((*cursor & ~HELD) >> 32);

	if ((*cursor & HELD) == 0) {
		n_filled = nat_maps_list(maps, cursor, now_s, sessions, n);
		if (n_filled > 0)
			return n_filled;
		place = NAT_PLACE_NONE;
	}
	while (n_filled < n) {
		place = nat_ports_next_held(maps->ports, place, &freed_s);
		if (place == NAT_PLACE_NONE)
			break;
		age_s = now_s - freed_s;
		if (age_s <= maps->ports->hold_down_s)
			fill_held(maps, place, age_s, &sessions[n_filled++]);
		*cursor = HELD | (uint64_t)freed_s << 32 | (place + 1);
	}
	return n_filled;
}

/* Restore a port that was in hold-down when it was saved. */
static int restore_held(struct nat_maps *maps,
			const struct nat_session *session, uint32_t now_s)
{
	const struct nat_tuple outside = { session->outside.addr,
					   session->outside.port,
					   session->inside.proto, 0 };
	const uint32_t place = nat_place_of(maps->ports, &outside);
	const uint32_t ordinal = nat_subscriber_ordinal(
		&maps->static_ends.ordinals, session->inside.addr);
	uint32_t owner_id;
	bool is_admitted;

	if (session->age_s > maps->ports->hold_down_s ||
	    place == NAT_PLACE_NONE || !nat_ports_in_range(maps->ports, place))
		return -EINVAL;
	if (maps->ports->index[place] != 0)
		return -EADDRINUSE;
	/* A port of a block is held only for the owner of the block. */
	if (maps->ports->blocks != NULL) {
		if (ordinal == NAT_NO_ORDINAL)
			return -EINVAL;
		owner_id = nat_subscriber_get(maps->subscribers,
					      session->inside.addr);
		if (owner_id == MR_FLOW_NONE)
			return -ENOSPC;
		nat_subscriber_at(maps->subscribers, owner_id)->ordinal =
			ordinal;
		is_admitted =
			nat_blocks_admit(maps->ports, place, owner_id, now_s);
		nat_subscriber_put(maps->subscribers, owner_id);
		if (!is_admitted)
			return -EADDRINUSE;
	}
	return nat_ports_hold(maps->ports, place, now_s - session->age_s,
			      now_s) ?
		       0 :
		       -EINVAL;
}

/* Restore its remote end, as the first session or a further one. */
static int restore_remote(struct nat_maps *maps,
			  const struct nat_session *session, uint32_t id,
			  uint32_t last_s, uint32_t now_s)
{
	struct nat_map *map = nat_map_at(maps, id);
	bool is_tcp = map->inside.proto == IPPROTO_TCP;
	enum nat_drop drop;

	if (session->remote.addr == 0)
		return 0;
	if (map->remote.addr == session->remote.addr &&
	    map->remote.port == session->remote.port)
		return -EEXIST;
	if (!nat_first_is_live(maps, map, now_s)) {
		nat_map_set_first(maps, id, session->remote,
				  (enum nat_tcp)session->tcp_state, last_s);
		return 0;
	}
	/* Without filtering, there are none. */
	if (!is_tcp &&
	    maps->filtering[nat_proto_of(map->inside.proto)] == NAT_FILTER_NONE)
		return 0;
	if (nat_further_find(maps, id, session->remote) != MR_FLOW_NONE)
		return -EEXIST;
	drop = nat_further_add(maps, id, session->remote, session->tcp_state,
			       last_s);
	return drop == NAT_OK ? 0 : -ENOSPC;
}

/* False: no NAT with this configuration could have saved it. */
static bool is_sound(const struct nat_maps *maps,
		     const struct nat_session *session)
{
	bool is_tcp = session->inside.proto == IPPROTO_TCP;
	bool has_ports = nat_proto_of(session->inside.proto) != NAT_PROTOS;
	bool is_session = session->remote.addr != 0;

	return session->age_s < INT32_MAX / 2 &&
	       session->tcp_state < NAT_TCP_STATES &&
	       (session->tcp_state != NAT_TCP_CLOSED) ==
		       (is_tcp && is_session) &&
	       (has_ports ||
		(maps->config->passes_other_protocols &&
		 session->inside.proto != 0 && session->inside.port == 0 &&
		 session->outside.port == 0));
}

bool nat_maps_has_outside(const struct nat_maps *maps, uint8_t ip_proto,
			  struct nat_end end)
{
	const struct nat_tuple outside = {
		.addr = end.addr,
		.port = end.port,
		.proto = ip_proto,
	};
	const uint32_t addr = ntohl(outside.addr);
	const uint32_t place = nat_place_of(maps->ports, &outside);

	if (nat_proto_of(outside.proto) == NAT_PROTOS)
		return maps->config->passes_other_protocols &&
		       nat_external_index(&maps->ports->externals, addr) !=
			       NAT_EXTERNAL_NONE &&
		       nat_other_shard(addr, maps->n_shards) == maps->shard;
	return place != NAT_PLACE_NONE &&
	       nat_ports_in_range(maps->ports, place);
}

int nat_maps_restore(struct nat_maps *maps, const struct nat_session *session,
		     uint32_t now_s)
{
	uint32_t ordinal = nat_subscriber_ordinal(&maps->static_ends.ordinals,
						  session->inside.addr);
	uint32_t last_s = now_s - session->age_s, id;
	const struct nat_map *map;

	if (session->flags & NAT_MAP_RESTS)
		return restore_held(maps, session, now_s);
	if (!is_sound(maps, session))
		return -EINVAL;
	nat_maps_find_out(maps, &session->inside, 1, &id);
	if (id == MR_FLOW_NONE) {
		if (ordinal == NAT_NO_ORDINAL ||
		    session->flags & NAT_MAP_STATIC ||
		    !nat_maps_has_outside(maps, session->inside.proto,
					  session->outside))
			return -EINVAL;
		switch (nat_map_make(maps, &session->inside, ordinal,
				     session->outside, last_s, now_s, &id)) {
		case NAT_OK:
			nat_map_at(maps, id)->n_out = session->n_out;
			nat_map_at(maps, id)->n_in = session->n_in;
			return restore_remote(maps, session, id, last_s, now_s);
		case NAT_DROP_NO_PORT:
			return -EADDRINUSE;
		default:
			return -ENOSPC;
		}
	}
	map = nat_map_at(maps, id);
	if (map->outside_addr != session->outside.addr ||
	    map->outside_port != session->outside.port)
		return -EADDRINUSE;
	/* At most one has no remote end, or is one-to-one. */
	if (session->remote.addr == 0 || nat_is_one_to_one(map))
		return -EEXIST;
	return restore_remote(maps, session, id, last_s, now_s);
}

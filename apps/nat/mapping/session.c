/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote ends of a mapping beyond the first; see session.h. */
#include <netinet/in.h>

#include "session.h"

_Static_assert(sizeof(struct nat_further) == 64 &&
		       sizeof(struct nat_further_key) == 12,
	       "records are times 8, keys have no holes");

uint32_t nat_idle_s(const struct nat_maps *maps, uint8_t ip_proto,
		    uint8_t tcp_state)
{
	switch (nat_proto_of(ip_proto)) {
	case NAT_UDP:
		return maps->timeouts.udp_s;
	case NAT_TCP:
		return nat_tcp_timeout(&maps->timeouts,
				       (enum nat_tcp)tcp_state);
	case NAT_ICMP:
		return maps->timeouts.icmp_s;
	default:
		return maps->timeouts.other_s;
	}
}

bool nat_first_is_live(const struct nat_maps *maps, const struct nat_map *map,
		       uint32_t now_s)
{
	uint32_t idle_s = nat_idle_s(maps, map->inside.proto, map->tcp_state);

	return map->remote.addr != 0 &&
	       !nat_is_due(nat_due(map->remote_last_s, idle_s), now_s);
}

static const struct nat_map *map_of(const struct nat_maps *maps,
				    uint32_t map_id)
{
	return nat_map_at(maps, map_id);
}

static struct nat_further_key key_of(const struct nat_maps *maps,
				     uint32_t map_id, struct nat_end remote)
{
	uint32_t proto = nat_proto_of(map_of(maps, map_id)->inside.proto);

	return (struct nat_further_key){
		map_id, remote.addr,
		nat_is_by_addr(maps, proto) ? 0 : remote.port, NAT_KIND_SESSION
	};
}

/* Whether permits are kept for sessions of this mapping. */
static bool has_permits(const struct nat_maps *maps, uint32_t map_id)
{
	uint32_t proto = nat_proto_of(map_of(maps, map_id)->inside.proto);

	return proto == NAT_TCP ?
		       maps->filtering[proto] != NAT_FILTER_NONE :
		       maps->filtering[proto] == NAT_FILTER_ADDRESS_PORT;
}

uint32_t nat_further_find(const struct nat_maps *maps, uint32_t map_id,
			  struct nat_end remote)
{
	struct nat_further_key key = key_of(maps, map_id, remote);

	return mr_flow_find(maps->sessions, &key);
}

static bool add_permit(struct nat_maps *maps, uint32_t map_id, uint32_t addr)
{
	const struct nat_further_key key = { map_id, addr, 0, NAT_KIND_PERMIT };
	uint32_t id = mr_flow_find(maps->sessions, &key);

	if (id == MR_FLOW_NONE && mr_flow_add(maps->sessions, &key, &id) < 0)
		return false;
	nat_further_at(maps, id)->n_same++;
	return true;
}

static void drop_permit(struct nat_maps *maps, uint32_t map_id, uint32_t addr)
{
	const struct nat_further_key key = { map_id, addr, 0, NAT_KIND_PERMIT };
	uint32_t id = mr_flow_find(maps->sessions, &key);

	if (id != MR_FLOW_NONE && --nat_further_at(maps, id)->n_same == 0)
		mr_flow_remove(maps->sessions, id);
}

bool nat_further_has_addr(const struct nat_maps *maps, uint32_t map_id,
			  uint32_t addr)
{
	const struct nat_further_key key = { map_id, addr, 0,
					     has_permits(maps, map_id) ?
						     NAT_KIND_PERMIT :
						     NAT_KIND_SESSION };

	return mr_flow_find(maps->sessions, &key) != MR_FLOW_NONE;
}

uint32_t nat_further_due(const struct nat_maps *maps, uint32_t id)
{
	const struct nat_further *further = nat_further_at(maps, id);
	uint8_t proto = map_of(maps, further->key.map_id)->inside.proto;

	return nat_due(further->last_s,
		       nat_idle_s(maps, proto, further->tcp_state));
}

static void link_in(struct nat_maps *maps, struct nat_map *map, uint32_t id)
{
	struct nat_further *further = nat_further_at(maps, id);

	further->next = map->sessions;
	if (map->sessions != 0)
		nat_further_at(maps, map->sessions - 1)->prev = id + 1;
	map->sessions = id + 1;
	map->n_sessions++;
}

static void link_out(struct nat_maps *maps, struct nat_map *map, uint32_t id)
{
	const struct nat_further *further = nat_further_at(maps, id);

	if (further->next != 0)
		nat_further_at(maps, further->next - 1)->prev = further->prev;
	if (further->prev != 0)
		nat_further_at(maps, further->prev - 1)->next = further->next;
	else
		map->sessions = further->next;
	map->n_sessions--;
}

enum nat_drop nat_further_add(struct nat_maps *maps, uint32_t map_id,
			      struct nat_end remote, uint8_t tcp_state,
			      uint32_t now_s)
{
	struct nat_map *map = nat_map_at(maps, map_id);
	struct nat_subscriber *subscriber =
		nat_subscriber_at(maps->subscribers, map->subscriber);
	struct nat_further_key key = key_of(maps, map_id, remote);
	uint32_t limit = maps->config->max_sessions_per_subscriber;
	struct nat_further *further;
	uint32_t id;

	if (!maps->is_taking && limit > 0 && subscriber->n_sessions >= limit)
		return NAT_DROP_QUOTA;
	if (maps->n_sessions >= maps->max_sessions)
		return NAT_DROP_TABLE_FULL;
	if (has_permits(maps, map_id) && !add_permit(maps, map_id, remote.addr))
		return NAT_DROP_TABLE_FULL;
	if (mr_flow_add(maps->sessions, &key, &id) < 0) {
		if (has_permits(maps, map_id))
			drop_permit(maps, map_id, remote.addr);
		return NAT_DROP_TABLE_FULL;
	}
	further = nat_further_at(maps, id);
	further->last_s = now_s;
	further->tcp_state = tcp_state;
	link_in(maps, map, id);
	subscriber->n_sessions++;
	maps->n_sessions++;
	mr_wheel_set(maps->session_wheel, id, nat_further_due(maps, id));
	return NAT_OK;
}

void nat_further_remove(struct nat_maps *maps, uint32_t id)
{
	const struct nat_further_key key = nat_further_at(maps, id)->key;
	struct nat_map *map = nat_map_at(maps, key.map_id);

	nat_rule_end(maps, key.map_id, (struct nat_end){ key.addr, key.port });
	mr_wheel_cancel(maps->session_wheel, id);
	link_out(maps, map, id);
	mr_flow_remove(maps->sessions, id);
	if (has_permits(maps, key.map_id))
		drop_permit(maps, key.map_id, key.addr);
	nat_subscriber_at(maps->subscribers, map->subscriber)->n_sessions--;
	maps->n_sessions--;
}

void nat_further_remove_all(struct nat_maps *maps, uint32_t map_id)
{
	const struct nat_map *map = map_of(maps, map_id);

	while (map->sessions != 0)
		nat_further_remove(maps, map->sessions - 1);
}

/* The next record after id of this kind and of TCP, or MR_FLOW_NONE. */
static uint32_t next_of_tcp(const struct nat_maps *maps, uint32_t id,
			    uint32_t kind)
{
	for (id = mr_flow_next(maps->sessions, id); id != MR_FLOW_NONE;
	     id = mr_flow_next(maps->sessions, id)) {
		const struct nat_further_key *key =
			&nat_further_at(maps, id)->key;

		if (key->kind == kind &&
		    map_of(maps, key->map_id)->inside.proto == IPPROTO_TCP)
			break;
	}
	return id;
}

void nat_permits_add(struct nat_maps *maps)
{
	for (uint32_t id = next_of_tcp(maps, MR_FLOW_NONE, NAT_KIND_SESSION);
	     id != MR_FLOW_NONE; id = next_of_tcp(maps, id, NAT_KIND_SESSION)) {
		const struct nat_further_key *key =
			&nat_further_at(maps, id)->key;

		/* Without memory for it, the filter would miss it. */
		if (!add_permit(maps, key->map_id, key->addr))
			nat_further_remove(maps, id);
	}
}

void nat_permits_remove(struct nat_maps *maps)
{
	for (uint32_t id = next_of_tcp(maps, MR_FLOW_NONE, NAT_KIND_PERMIT);
	     id != MR_FLOW_NONE; id = next_of_tcp(maps, id, NAT_KIND_PERMIT))
		mr_flow_remove(maps->sessions, id);
}

/* A reload creates new static ones before the old ones end. */
uint32_t nat_maps_n_max(const struct nat_maps *maps)
{
	return nat_clamp_count((uint64_t)maps->n_max_mappings +
			       2ull * maps->n_max_static);
}

uint32_t nat_map_due(const struct nat_maps *maps, const struct nat_map *map)
{
	uint32_t idle_s = nat_idle_s(maps, map->inside.proto, map->tcp_state);
	/* TCP: last_s counts until there was a session. */
	bool is_session =
		map->inside.proto == IPPROTO_TCP && map->remote.addr != 0;
	uint32_t last_s = is_session ? map->remote_last_s : map->last_s;

	/* A rule forwards frames of its session, so it ends with it. */
	if (map->flags & NAT_MAP_RULE &&
	    (int32_t)(map->remote_last_s - last_s) < 0)
		last_s = map->remote_last_s;
	return nat_due(last_s, idle_s);
}

void nat_map_set_timer(struct nat_maps *maps, uint32_t id)
{
	const struct nat_map *map = nat_map_at(maps, id);
	/* Further sessions keep a TCP mapping without a first one. */
	bool is_kept = map->inside.proto == IPPROTO_TCP &&
		       map->remote.addr == 0 && map->n_sessions > 0;

	if ((map->flags & (NAT_MAP_STATIC | NAT_MAP_RULE)) != NAT_MAP_STATIC &&
	    !is_kept)
		mr_wheel_set(maps->wheel, id, nat_map_due(maps, map));
}

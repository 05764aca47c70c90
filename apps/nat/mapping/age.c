/* SPDX-License-Identifier: BSD-3-Clause */
/* End expired mappings and sessions, a bounded number per call. */
#include <netinet/in.h>

#include "session.h"

enum { N_PER_CALL = 64 };

/* A TCP mapping lasts as long as any of its sessions. */
static void end_if_unused(struct nat_maps *maps, uint32_t id, uint32_t now_s)
{
	const struct nat_map *map = nat_map_at(maps, id);

	nat_rule_take(maps, id, map->remote);
	if (map->inside.proto == IPPROTO_TCP && map->n_sessions == 0 &&
	    (map->flags & NAT_MAP_STATIC) == 0 &&
	    !nat_first_is_live(maps, map, now_s))
		nat_map_end(maps, id, now_s);
}

/* Returns how many it examined. */
static uint32_t age_sessions(struct nat_maps *maps, uint32_t now_s)
{
	uint32_t ids[N_PER_CALL];
	uint32_t n =
		mr_wheel_expire(maps->session_wheel, now_s, ids, N_PER_CALL);

	for (uint32_t i = 0; i < n; i++) {
		const struct nat_further_key key =
			nat_further_at(maps, ids[i])->key;
		uint32_t due_s;

		nat_rule_take(maps, key.map_id,
			      (struct nat_end){ key.addr, key.port });
		due_s = nat_further_due(maps, ids[i]);
		if (!nat_is_due(due_s, now_s)) {
			mr_wheel_set(maps->session_wheel, ids[i], due_s);
			continue;
		}
		nat_further_remove(maps, ids[i]);
		end_if_unused(maps, key.map_id, now_s);
	}
	return n;
}

/* Handle a mapping from the wheel. Returns whether it ended. */
static bool age_mapping(struct nat_maps *maps, uint32_t id, uint32_t now_s)
{
	struct nat_map *map = nat_map_at(maps, id);
	uint32_t due_s;

	nat_rules_take(maps, id);
	if (map->flags & NAT_MAP_RULE && !nat_first_is_live(maps, map, now_s))
		nat_rule_end(maps, id, map->remote);
	due_s = nat_map_due(maps, map);
	if (!nat_is_due(due_s, now_s)) {
		mr_wheel_set(maps->wheel, id, due_s);
		return false;
	}
	if (map->flags & NAT_MAP_STATIC) /* only the rule has ended */
		return false;
	if (map->n_sessions == 0) {
		nat_map_end(maps, id, now_s);
		return true;
	}
	if (map->inside.proto == IPPROTO_TCP) {
		/* Its further sessions keep it; the last one ends it. */
		map->remote.addr = 0;
		map->tcp_state = NAT_TCP_CLOSED;
		return false;
	}
	/* They are as old as the mapping, and end in the next calls, so that a
	 * mapping with many of them does not make a call long. */
	mr_wheel_set(maps->wheel, id, now_s + 1);
	return false;
}

uint32_t nat_maps_expire(struct nat_maps *maps, uint32_t now_s)
{
	uint64_t before = maps->expired;
	uint32_t ids[N_PER_CALL], n, n_ports, n_sessions;

	maps->now_s = now_s;
	n_ports = nat_ports_release(maps->ports, now_s, N_PER_CALL);
	n_sessions = age_sessions(maps, now_s);
	if (maps->review != NAT_REVIEW_NONE)
		nat_maps_review(maps, now_s);
	n = mr_wheel_expire(maps->wheel, now_s, ids, N_PER_CALL);
	for (uint32_t i = 0; i < n; i++)
		age_mapping(maps, ids[i], now_s);
	maps->is_behind = n == N_PER_CALL || n_sessions == N_PER_CALL ||
			  n_ports == N_PER_CALL ||
			  maps->review != NAT_REVIEW_NONE;
	return (uint32_t)(maps->expired - before);
}

bool nat_maps_is_behind(const struct nat_maps *maps)
{
	return maps->is_behind;
}

void nat_maps_close(struct nat_maps *maps, uint32_t id, uint32_t now_s)
{
	struct nat_map *map = nat_map_at(maps, id);

	if ((map->flags & NAT_MAP_STATIC) == 0) {
		nat_map_end(maps, id, now_s);
		return;
	}
	/* A static mapping stays; its sessions do not. */
	nat_rules_end(maps, id);
	nat_further_remove_all(maps, id);
	map->remote.addr = 0;
	map->tcp_state = NAT_TCP_CLOSED;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet of a mapping: who may send, and what it refreshes. RFC 4787 sections
 * 4.3 and 5, RFC 5382 sections 4 and 5, RFC 7857 sections 2 and 5.
 */
#include <netinet/in.h>

#include "session.h"

void nat_map_set_first(struct nat_maps *maps, uint32_t id,
		       struct nat_end remote, enum nat_tcp state,
		       uint32_t last_s)
{
	struct nat_map *map = nat_map_at(maps, id);

	nat_rule_end(maps, id, map->remote);
	map->remote.addr = remote.addr;
	map->remote.port = remote.port;
	map->remote_last_s = last_s;
	map->tcp_state = (uint8_t)state;
	if (map->inside.proto != IPPROTO_TCP)
		return;
	maps->windows[id] = (struct nat_window){ 0 };
	if (maps->n_windows <= id)
		maps->n_windows = id + 1;
	nat_map_set_timer(maps, id);
}

/*
 * Handle a segment of a session. Returns whether it now ends earlier than the
 * wheel expects; the wheel itself finds out if it ends later.
 */
static bool step_state(const struct nat_maps *maps, struct nat_tracked session,
		       enum nat_direction direction,
		       const struct nat_segment *segment, uint32_t now_s)
{
	enum nat_tcp was = (enum nat_tcp) * session.state;
	enum nat_tcp is = nat_tcp_next(was, direction, segment->flags);
	bool begins = nat_tcp_begins(was, is);

	if (begins) { /* a new connection between these ends */
		*session.window = (struct nat_window){ 0 };
	} else if (nat_window_moves(session.window, direction, segment) &&
		   segment->flags & MR_TCP_SYN) {
		begins = true;
		is = direction == NAT_OUT ? NAT_TCP_ANSWERED : NAT_TCP_OPEN;
	}
	if (!nat_window_see(session.window, direction, segment,
			    begins || nat_tcp_is_opening(was)))
		return false;
	if (is != was) {
		*session.state = (uint8_t)is;
		*session.last_s = now_s;
		return nat_tcp_timeout(&maps->timeouts, is) <
		       nat_tcp_timeout(&maps->timeouts, was);
	}
	if ((direction == NAT_OUT || maps->refreshes_inbound) &&
	    nat_tcp_refreshes(is, segment->flags))
		*session.last_s = now_s;
	return false;
}

/* Handle a segment of an existing session; false: there is none. */
static bool step_session(struct nat_maps *maps, uint32_t id,
			 struct nat_end remote, enum nat_direction direction,
			 const struct nat_segment *segment, uint32_t now_s)
{
	const struct nat_map *map = nat_map_at(maps, id);
	uint32_t further_id;

	if (nat_is_first(maps, map, remote) &&
	    nat_first_is_live(maps, map, now_s)) {
		if (step_state(maps, nat_tracked_at(maps, id, 0), direction,
			       segment, now_s))
			nat_map_set_timer(maps, id);
		return true;
	}
	if (map->n_sessions == 0)
		return false;
	further_id = nat_further_find(maps, id, remote);
	if (further_id == MR_FLOW_NONE)
		return false;
	if (step_state(maps, nat_tracked_at(maps, id, further_id + 1),
		       direction, segment, now_s))
		mr_wheel_set(maps->session_wheel, further_id,
			     nat_further_due(maps, further_id));
	return true;
}

static enum nat_drop tcp_out(struct nat_maps *maps, uint32_t id,
			     struct nat_end remote,
			     const struct nat_segment *segment, uint32_t now_s)
{
	const struct nat_map *map = nat_map_at(maps, id);
	struct nat_window *window = &maps->windows[id];
	enum nat_drop drop;
	enum nat_tcp state;

	if (step_session(maps, id, remote, NAT_OUT, segment, now_s))
		return NAT_OK;
	state = nat_tcp_next(NAT_TCP_CLOSED, NAT_OUT, segment->flags);
	/* RFC 6146 section 3.5.2.2: if there is a mapping, segments without a
	 * session are translated, and change nothing. An RST must be. */
	if (state == NAT_TCP_CLOSED)
		return NAT_OK;
	if (nat_first_is_live(maps, map, now_s)) {
		drop = nat_further_add(maps, id, remote, (uint8_t)state, now_s);
		if (drop != NAT_OK)
			return drop;
		window = &nat_further_at(maps, map->sessions - 1)->window;
	} else {
		nat_map_set_first(maps, id, remote, state, now_s);
	}
	nat_window_see(window, NAT_OUT, segment, true);
	return NAT_OK;
}

/* Whether something was sent to this address and is remembered. */
static bool knows_addr(const struct nat_maps *maps, uint32_t id, uint32_t addr,
		       uint32_t now_s)
{
	const struct nat_map *map = nat_map_at(maps, id);

	if (map->remote.addr == addr && nat_first_is_live(maps, map, now_s))
		return true;
	return map->n_sessions > 0 && nat_further_has_addr(maps, id, addr);
}

static enum nat_drop tcp_in(struct nat_maps *maps, uint32_t id,
			    struct nat_end remote,
			    const struct nat_segment *segment, uint32_t now_s)
{
	const struct nat_map *map = nat_map_at(maps, id);

	if (step_session(maps, id, remote, NAT_IN, segment, now_s) ||
	    (map->flags & NAT_MAP_STATIC) ||
	    maps->filtering[NAT_TCP] == NAT_FILTER_NONE)
		return NAT_OK;
	if (maps->filtering[NAT_TCP] == NAT_FILTER_ADDRESS &&
	    knows_addr(maps, id, remote.addr, now_s))
		return NAT_OK;
	return (segment->flags & (MR_TCP_SYN | MR_TCP_ACK | MR_TCP_RST)) ==
			       MR_TCP_SYN ?
		       NAT_DROP_UNSOLICITED_SYN :
		       NAT_DROP_FILTERED;
}

/* UDP and ICMP, if the filter must know where packets were sent. */
static enum nat_drop remember_remote(struct nat_maps *maps, uint32_t id,
				     struct nat_end remote, uint32_t now_s)
{
	struct nat_map *map = nat_map_at(maps, id);
	uint32_t further_id;

	if (nat_is_first(maps, map, remote)) {
		map->remote_last_s = now_s;
		return NAT_OK;
	}
	if (map->n_sessions > 0) {
		further_id = nat_further_find(maps, id, remote);
		if (further_id != MR_FLOW_NONE) {
			nat_further_at(maps, further_id)->last_s = now_s;
			return NAT_OK;
		}
	}
	if (nat_first_is_live(maps, map, now_s))
		return nat_further_add(maps, id, remote, 0, now_s);
	nat_map_set_first(maps, id, remote, NAT_TCP_CLOSED, now_s);
	return NAT_OK;
}

static enum nat_drop go_out(struct nat_maps *maps, uint32_t id,
			    struct nat_end remote,
			    const struct nat_segment *segment, uint32_t now_s)
{
	struct nat_map *map = nat_map_at(maps, id);
	uint32_t proto = nat_proto_of(map->inside.proto);

	if (nat_is_one_to_one(map))
		return NAT_OK;
	if (proto == NAT_TCP)
		return tcp_out(maps, id, remote, segment, now_s);
	map->last_s = now_s;
	if (proto != NAT_PROTOS && maps->filtering[proto] != NAT_FILTER_NONE)
		return remember_remote(maps, id, remote, now_s);
	if (map->remote.addr == 0)
		nat_map_set_first(maps, id, remote, NAT_TCP_CLOSED, now_s);
	return NAT_OK;
}

/* UDP and ICMP: whether the filter lets the remote end send. */
static bool may_send(struct nat_maps *maps, uint32_t id, struct nat_end remote,
		     uint32_t now_s)
{
	struct nat_map *map = nat_map_at(maps, id);
	uint32_t further_id;

	if (nat_is_first(maps, map, remote) &&
	    nat_first_is_live(maps, map, now_s)) {
		if (maps->refreshes_inbound)
			map->remote_last_s = now_s;
		return true;
	}
	if (map->n_sessions == 0)
		return false;
	further_id = nat_further_find(maps, id, remote);
	if (further_id == MR_FLOW_NONE)
		return false;
	if (maps->refreshes_inbound)
		nat_further_at(maps, further_id)->last_s = now_s;
	return true;
}

static enum nat_drop come_in(struct nat_maps *maps, uint32_t id,
			     struct nat_end remote,
			     const struct nat_segment *segment, uint32_t now_s)
{
	struct nat_map *map = nat_map_at(maps, id);
	uint32_t proto = nat_proto_of(map->inside.proto);

	if (nat_is_one_to_one(map))
		return NAT_OK;
	if (proto == NAT_TCP)
		return tcp_in(maps, id, remote, segment, now_s);
	if (proto != NAT_PROTOS && maps->filtering[proto] != NAT_FILTER_NONE &&
	    !may_send(maps, id, remote, now_s) &&
	    (map->flags & NAT_MAP_STATIC) == 0)
		return NAT_DROP_FILTERED;
	if (maps->refreshes_inbound)
		map->last_s = now_s;
	return NAT_OK;
}

enum nat_drop nat_maps_out(struct nat_maps *maps, uint32_t id,
			   struct nat_end remote,
			   const struct nat_segment *segment, uint32_t now_s)
{
	enum nat_drop drop;

	nat_rule_take(maps, id, remote);
	drop = go_out(maps, id, remote, segment, now_s);
	nat_rule_give(maps, id, NAT_OUT, remote);
	return drop;
}

enum nat_drop nat_maps_in(struct nat_maps *maps, uint32_t id,
			  struct nat_end remote,
			  const struct nat_segment *segment, uint32_t now_s)
{
	enum nat_drop drop;

	nat_rule_take(maps, id, remote);
	drop = come_in(maps, id, remote, segment, now_s);
	nat_rule_give(maps, id, NAT_IN, remote);
	return drop;
}

bool nat_maps_may_in(const struct nat_maps *maps, uint32_t id, uint32_t addr)
{
	const struct nat_map *map = nat_map_at(maps, id);
	uint32_t proto = nat_proto_of(map->inside.proto);

	nat_rule_take(maps, id, nat_map_at(maps, id)->remote);
	return proto == NAT_PROTOS || (map->flags & NAT_MAP_STATIC) ||
	       maps->filtering[proto] == NAT_FILTER_NONE ||
	       knows_addr(maps, id, addr, maps->now_s);
}

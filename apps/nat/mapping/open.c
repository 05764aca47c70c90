/* SPDX-License-Identifier: BSD-3-Clause */
/* Beginning and end of mappings. */
#include <arpa/inet.h>

#include "session.h"
#include "support/probe.h"

_Static_assert(sizeof(struct nat_map) == 64, "one cache line");
_Static_assert(sizeof(struct nat_tuple) == 8, "a key without holes");

enum {
	N_TRIES = 64,     /* for an address-only mapping */
	LOG_EVERY_S = 60, /* refusals, per subscriber */
};

/* A static probe of a mapping that is not static: protocol, inside and outside
 * ends. Addresses are in network byte order, as bpftrace's ntop() expects;
 * ports are in host order. */
#ifdef HAVE_SDT
#define PROBE(name, map)                                                       \
	DTRACE_PROBE5(millrace, name, map->inside.proto, map->inside.addr,     \
		      ntohs(map->inside.port), map->outside_addr,              \
		      ntohs(map->outside_port))
#else
#define PROBE(name, map) ((void)(map))
#endif

void nat_map_fill(struct nat_maps *maps, uint32_t id, struct nat_end outside,
		  uint8_t flags, uint32_t subscriber_id, uint32_t last_s)
{
	struct nat_map *map = nat_map_at(maps, id);

	map->outside_addr = outside.addr;
	map->outside_port = outside.port;
	map->addr_delta =
		mr_csum_fold32(mr_csum_delta32(map->inside.addr, outside.addr));
	map->port_delta =
		mr_csum_fold32(mr_csum_delta16(map->inside.port, outside.port));
	map->flags = flags;
	map->subscriber = subscriber_id;
	map->last_s = last_s;
}

/* Activate a mapping, for its subscriber. */
static void begin_mapping(struct nat_maps *maps, uint32_t id, uint32_t now_s)
{
	const struct nat_map *map = nat_map_at(maps, id);

	nat_subscriber_at(maps->subscribers, map->subscriber)->n_mappings++;
	maps->n_mappings++;
	nat_map_set_timer(maps, id);
	if (maps->is_taking) /* it began in another process */
		return;
	maps->created++;
	nat_map_log(maps, map, now_s, true);
	PROBE(mapping_created, map);
}

static void emit_event(const struct nat_maps *maps,
		       const struct nat_log_event *event)
{
	if (maps->log != NULL)
		maps->log(maps->opaque, event);
}

void nat_map_log(const struct nat_maps *maps, const struct nat_map *map,
		 uint32_t now_s, bool begins)
{
	const struct nat_log_event event = {
		.what = begins ? NAT_LOG_MAPPING_BEGIN : NAT_LOG_MAPPING_END,
		.now_s = now_s,
		.proto = map->inside.proto,
		.inside_addr = map->inside.addr,
		.inside_port = map->inside.port,
		.outside_addr = map->outside_addr,
		.outside_port = map->outside_port,
		.n_ports = 1,
	};

	if (maps->config->logs_sessions)
		emit_event(maps, &event);
}

/* Whether to log a refusal: a refused host retries all the time. */
static bool may_log(bool *has_logged, uint32_t *logged_s, uint32_t now_s,
		    uint32_t every_s)
{
	if (*has_logged && now_s - *logged_s < every_s)
		return false;
	*has_logged = true;
	*logged_s = now_s;
	return true;
}

static void log_refusal(struct nat_maps *maps, const struct nat_tuple *inside,
			struct nat_subscriber *subscriber, enum nat_drop drop,
			uint32_t now_s)
{
	const struct nat_log_event event = {
		.what = drop == NAT_DROP_QUOTA ? NAT_LOG_QUOTA :
						 NAT_LOG_NO_PORT,
		.now_s = now_s,
		.proto = inside->proto,
		.inside_addr = inside->addr,
		.inside_port = inside->port,
	};

	if (drop == NAT_DROP_QUOTA ?
		    may_log(&subscriber->has_logged, &subscriber->logged_s,
			    now_s, LOG_EVERY_S) :
		    may_log(&maps->has_logged, &maps->logged_s, now_s, 1))
		emit_event(maps, &event);
}

int nat_other_add(struct nat_maps *maps, const struct nat_tuple *outside,
		  uint32_t map_id)
{
	struct nat_other *other;
	uint32_t id;
	int err = mr_flow_add(maps->others, outside, &id);

	if (err < 0)
		return err;
	other = mr_flow_record(maps->others, id);
	other->map_id = map_id;
	return 0;
}

/* An external address that no one else uses for this protocol: the paired one
 * if possible, since without ports it serves only one subscriber. */
static enum nat_drop take_addr(struct nat_maps *maps, uint32_t subscriber_id,
			       uint32_t id, struct nat_end *ret_outside)
{
	uint32_t n_addrs = maps->ports->externals.n_addrs;
	uint32_t addr = nat_ports_pair(maps->ports, subscriber_id, NAT_UDP);

	for (uint32_t i = 0; addr != 0 && i < N_TRIES; i++) {
		const struct nat_tuple outside = {
			.addr = htonl(addr),
			.proto = nat_map_at(maps, id)->inside.proto,
		};

		if (nat_other_shard(addr, maps->n_shards) == maps->shard &&
		    nat_other_add(maps, &outside, id) == 0) {
			ret_outside->addr = outside.addr;
			ret_outside->port = 0;
			return NAT_OK;
		}
		addr = nat_external_addr(
			&maps->ports->externals,
			nat_random_below(&maps->random, n_addrs));
	}
	return NAT_DROP_NO_PORT;
}

/* The one that it had before. */
static bool take_again(struct nat_maps *maps, uint32_t subscriber_id,
		       uint32_t id, uint32_t now_s,
		       const struct nat_end *outside)
{
	const struct nat_tuple *inside = &nat_map_at(maps, id)->inside;
	const struct nat_tuple end = { outside->addr, outside->port,
				       inside->proto, 0 };

	if (nat_proto_of(end.proto) == NAT_PROTOS)
		return nat_other_add(maps, &end, id) == 0;
	return nat_ports_take_place(maps->ports,
				    nat_place_of(maps->ports, &end),
				    subscriber_id, id, now_s);
}

/* The external end of a new mapping. */
static enum nat_drop take_outside(struct nat_maps *maps, uint32_t subscriber_id,
				  uint32_t id, uint32_t now_s,
				  struct nat_end *outside)
{
	const struct nat_tuple *inside = &nat_map_at(maps, id)->inside;
	uint32_t proto = nat_proto_of(inside->proto), place;
	enum nat_drop drop;

	if (outside->addr != 0)
		return take_again(maps, subscriber_id, id, now_s, outside) ?
			       NAT_OK :
			       NAT_DROP_NO_PORT;
	if (proto == NAT_PROTOS)
		return take_addr(maps, subscriber_id, id, outside);
	drop = nat_ports_take(maps->ports, proto, subscriber_id,
			      ntohs(inside->port), id, now_s, &place);
	if (drop != NAT_OK)
		return drop;
	outside->addr = htonl(nat_ports_addr_of(maps->ports, place));
	outside->port = htons(nat_ports_port_of(maps->ports, place));
	return NAT_OK;
}

/* Everything has been checked but the ports. */
static enum nat_drop make_mapping(struct nat_maps *maps,
				  const struct nat_tuple *inside,
				  uint32_t subscriber_id,
				  struct nat_end outside, uint32_t last_s,
				  uint32_t now_s, uint32_t *ret_id)
{
	bool has_ports = nat_proto_of(inside->proto) != NAT_PROTOS;
	enum nat_drop drop;
	uint32_t id;

	if (mr_flow_add(maps->table, inside, &id) < 0)
		return NAT_DROP_TABLE_FULL;
	drop = take_outside(maps, subscriber_id, id, now_s, &outside);
	if (drop != NAT_OK) {
		mr_flow_remove(maps->table, id);
		return drop;
	}
	nat_map_fill(maps, id, outside, has_ports ? 0 : NAT_MAP_ADDRESS,
		     subscriber_id, last_s);
	begin_mapping(maps, id, now_s);
	*ret_id = id;
	return NAT_OK;
}

enum nat_drop nat_map_make(struct nat_maps *maps,
			   const struct nat_tuple *inside, uint32_t ordinal,
			   struct nat_end outside, uint32_t last_s,
			   uint32_t now_s, uint32_t *ret_id)
{
	uint32_t limit = maps->config->max_mappings_per_subscriber;
	struct nat_subscriber *subscriber;
	enum nat_drop drop;
	uint32_t subscriber_id;

	if (maps->n_mappings >= maps->max_mappings)
		return NAT_DROP_TABLE_FULL;
	subscriber_id = nat_subscriber_get(maps->subscribers, inside->addr);
	if (subscriber_id == MR_FLOW_NONE)
		return NAT_DROP_TABLE_FULL;
	subscriber = nat_subscriber_at(maps->subscribers, subscriber_id);
	subscriber->ordinal = ordinal;
	drop = !maps->is_taking && limit > 0 &&
			       subscriber->n_mappings >= limit ?
		       NAT_DROP_QUOTA :
		       make_mapping(maps, inside, subscriber_id, outside,
				    last_s, now_s, ret_id);
	if (outside.addr == 0 &&
	    (drop == NAT_DROP_QUOTA || drop == NAT_DROP_NO_PORT))
		log_refusal(maps, inside, subscriber, drop, now_s);
	if (drop != NAT_OK)
		nat_subscriber_put(maps->subscribers, subscriber_id);
	return drop;
}

enum nat_drop nat_maps_open(struct nat_maps *maps,
			    const struct nat_tuple *inside, uint32_t now_s,
			    uint32_t *ret_id)
{
	uint32_t ordinal;

	nat_maps_find_out(maps, inside, 1, ret_id);
	if (*ret_id != MR_FLOW_NONE)
		return NAT_OK;
	ordinal = nat_subscriber_ordinal(&maps->static_ends.ordinals,
					 inside->addr);
	if (ordinal == NAT_NO_ORDINAL)
		return NAT_DROP_SPOOFED;
	/* Protocol 0 without a port is the key of one-to-one mappings. */
	if (nat_proto_of(inside->proto) == NAT_PROTOS &&
	    (!maps->config->passes_other_protocols || inside->proto == 0))
		return NAT_DROP_PROTOCOL;
	return nat_map_make(maps, inside, ordinal, (struct nat_end){ 0 }, now_s,
			    now_s, ret_id);
}

void nat_other_remove(struct nat_maps *maps, const struct nat_tuple *outside,
		      uint32_t map_id)
{
	uint32_t id = mr_flow_find(maps->others, outside);
	const struct nat_other *other;

	if (id == MR_FLOW_NONE)
		return;
	other = mr_flow_record(maps->others, id);
	if (other->map_id == map_id)
		mr_flow_remove(maps->others, id);
}

/* Free its external end, at once or after hold-down. */
static void give_outside(struct nat_maps *maps, uint32_t id, uint32_t now_s)
{
	const struct nat_map *map = nat_map_at(maps, id);
	const struct nat_tuple outside = nat_outside_of(map);
	const uint32_t place = nat_place_of(maps->ports, &outside);

	if (place == NAT_PLACE_NONE)
		nat_other_remove(maps, &outside, id);
	else if (map->flags & NAT_MAP_STATIC)
		nat_ports_clear_static(maps->ports, place);
	else
		nat_ports_free(maps->ports, place, now_s);
}

/* Remove its sessions and timer, and adjust counts. */
static void empty_mapping(struct nat_maps *maps, uint32_t id)
{
	const struct nat_map *map = nat_map_at(maps, id);
	struct nat_subscriber *subscriber =
		nat_subscriber_at(maps->subscribers, map->subscriber);

	nat_rules_end(maps, id);
	nat_further_remove_all(maps, id);
	mr_wheel_cancel(maps->wheel, id);
	if (map->flags & NAT_MAP_STATIC) {
		subscriber->n_static--;
		maps->n_static--;
	} else {
		subscriber->n_mappings--;
		maps->n_mappings--;
		maps->expired++;
		PROBE(mapping_ended, map);
	}
}

void nat_map_drop(struct nat_maps *maps, uint32_t id)
{
	empty_mapping(maps, id);
	mr_flow_remove(maps->table, id);
}

void nat_map_strip(struct nat_maps *maps, uint32_t id, uint32_t now_s)
{
	struct nat_map *map = nat_map_at(maps, id);

	nat_rules_end(maps, id);
	if ((map->flags & NAT_MAP_STATIC) == 0)
		nat_map_log(maps, map, now_s, false);
	/* The port first: its owner must still exist when its block ends. */
	give_outside(maps, id, now_s);
	empty_mapping(maps, id);
	*map = (struct nat_map){ .inside = map->inside,
				 .subscriber = map->subscriber };
}

void nat_map_end(struct nat_maps *maps, uint32_t id, uint32_t now_s)
{
	uint32_t subscriber_id = nat_map_at(maps, id)->subscriber;

	nat_map_strip(maps, id, now_s);
	mr_flow_remove(maps->table, id);
	nat_subscriber_put(maps->subscribers, subscriber_id);
}

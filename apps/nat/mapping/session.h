/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of a worker, and the sessions of a mapping beyond its first.
 *
 *     map (number), remote end --> flow table --> further session
 *     map (number), remote address --> the same --> permit: number of sessions
 *
 * Permits exist if the filter checks addresses but sessions are by port, so
 * that looking up an address needs no search.
 */
#ifndef NAT_SESSION_H
#define NAT_SESSION_H

#include "map.h"
#include "ports/subscriber.h"
#include "rule.h"
#include "static.h"
#include "tcp.h"
#include "window.h"

enum { NAT_KIND_SESSION, NAT_KIND_PERMIT };

struct nat_further_key {
	uint32_t map_id;
	uint32_t addr; /* network order */
	uint16_t port; /* 0 if the filter checks only addresses */
	uint16_t kind;
};

struct nat_further {
	struct nat_further_key key;
	uint32_t last_s;
	uint32_t next, prev; /* 1 + number, of the same mapping */
	uint32_t n_same;     /* of a permit: sessions with this address */
	uint8_t tcp_state;
	uint8_t reserved[3];
	struct nat_window window;
};

/* External ends that are not in the array of ports: address-only mappings, and
 * static ones with ports outside our pool or slice. */
struct nat_other {
	struct nat_tuple outside;
	uint32_t map_id;
	uint32_t reserved;
};

struct nat_maps {
	/* Read for every packet. */
	struct mr_flow_table *table; /* struct nat_map by inside tuple */
	struct nat_window *windows;  /* of first sessions, by mapping */
	struct nat_ports *ports;
	struct nat_rules *rules; /* NULL: none */
	uint8_t filtering[NAT_PROTOS];
	bool refreshes_inbound;
	uint32_t n_one_to_ones;
	struct nat_timeouts timeouts;

	struct mr_flow_table *others;   /* struct nat_other by outside tuple */
	struct mr_flow_table *sessions; /* struct nat_further */
	struct mr_flow_table *subscribers;
	struct mr_wheel *wheel, *session_wheel;
	const struct nat_config *config;
	struct nat_static_set static_ends; /* the configuration's */
	/* What a reload left to review, a part of it per nat_maps_expire(). */
	enum {
		NAT_REVIEW_NONE,
		NAT_REVIEW_MAPPINGS,
		NAT_REVIEW_SESSIONS
	} review;
	uint32_t reviewed; /* progress: a record number */
	struct nat_random random;
	uint32_t shard, n_shards;
	uint32_t max_mappings, max_sessions; /* of this worker */
	/* Capacity of the tables. */
	uint32_t n_max_mappings, n_max_sessions, n_max_static;
	uint32_t n_mappings, n_sessions, n_static;
	uint32_t n_windows; /* the others were never used */
	uint64_t created, expired;
	uint32_t now_s; /* of the last nat_maps_expire() */
	struct mr_ctx *ctx;
	nat_log_fn *log;
	void *opaque;
	bool is_behind;    /* see nat_maps_is_behind() */
	bool is_taking;    /* hand_over.h: limits and events do not apply */
	/* Memory for a copy of these; NULL: none. */
	struct mr_flow_table *spare_table;
	struct mr_wheel *spare_wheel;
	uint64_t settings; /* of a copy for another process: its digest */
	bool has_logged;   /* NAT_LOG_NO_PORT... */
	uint32_t logged_s; /* ...when last */
};

static inline struct nat_map *nat_map_at(const struct nat_maps *maps,
					 uint32_t id)
{
	return mr_flow_record(maps->table, id);
}

static inline struct nat_further *nat_further_at(const struct nat_maps *maps,
						 uint32_t id)
{
	return mr_flow_record(maps->sessions, id);
}

static inline struct nat_tuple nat_outside_of(const struct nat_map *map)
{
	return (struct nat_tuple){ map->outside_addr, map->outside_port,
				   map->inside.proto, 0 };
}

/* The place of an external end in the array; NAT_PLACE_NONE: it has none. */
static inline uint32_t nat_place_of(const struct nat_ports *ports,
				    const struct nat_tuple *outside)
{
	const uint32_t proto = nat_proto_of(outside->proto);

	return proto == NAT_PROTOS ?
		       NAT_PLACE_NONE :
		       nat_ports_place(ports, proto, ntohl(outside->addr),
				       ntohs(outside->port));
}

/* When what was last used at last_s ends. A second counts whole. */
static inline uint32_t nat_due(uint32_t last_s, uint32_t timeout_s)
{
	return last_s + timeout_s + 1;
}

static inline bool nat_is_due(uint32_t due_s, uint32_t now_s)
{
	return (int32_t)(now_s - due_s) >= 0;
}

/* One-to-one: all protocols, without tracking or filtering. */
static inline bool nat_is_one_to_one(const struct nat_map *map)
{
	return (map->flags & NAT_MAP_KIND) == NAT_MAP_KIND;
}

/* Sessions are per address and port, or per address only, as the filter checks.
 */
static inline bool nat_is_by_addr(const struct nat_maps *maps, uint32_t proto)
{
	return proto != NAT_TCP && maps->filtering[proto] == NAT_FILTER_ADDRESS;
}

/* Whether the remote end is that of the first session; TCP, UDP, ICMP. */
static inline bool nat_is_first(const struct nat_maps *maps,
				const struct nat_map *map,
				struct nat_end remote)
{
	return map->remote.addr == remote.addr &&
	       (map->remote.port == remote.port ||
		nat_is_by_addr(maps, nat_proto_of(map->inside.proto)));
}

/* The state of a session, wherever it is stored. */
struct nat_tracked {
	uint8_t *state;
	uint32_t *last_s;
	struct nat_window *window; /* TCP only */
};

/* session: 0: the mapping's first; or 1 + number of a further one. */
static inline struct nat_tracked
nat_tracked_at(const struct nat_maps *maps, uint32_t map_id, uint32_t session)
{
	struct nat_map *map = nat_map_at(maps, map_id);
	struct nat_further *further;

	if (session == 0)
		return (struct nat_tracked){ &map->tcp_state,
					     &map->remote_last_s,
					     &maps->windows[map_id] };
	further = nat_further_at(maps, session - 1);
	return (struct nat_tracked){ &further->tcp_state, &further->last_s,
				     &further->window };
}

/* How long mappings of this protocol, and their sessions, may be idle. */
uint32_t nat_idle_s(const struct nat_maps *maps, uint8_t ip_proto,
		    uint8_t tcp_state);

/* The first session exists, and has not expired. */
bool nat_first_is_live(const struct nat_maps *maps, const struct nat_map *map,
		       uint32_t now_s);

/* The number of a further session, or MR_FLOW_NONE. */
uint32_t nat_further_find(const struct nat_maps *maps, uint32_t map_id,
			  struct nat_end remote);

/* NAT_OK, NAT_DROP_TABLE_FULL or NAT_DROP_QUOTA. It must not exist yet. */
enum nat_drop nat_further_add(struct nat_maps *maps, uint32_t map_id,
			      struct nat_end remote, uint8_t tcp_state,
			      uint32_t now_s);

void nat_further_remove(struct nat_maps *maps, uint32_t id);
void nat_further_remove_all(struct nat_maps *maps, uint32_t map_id);

/* When it ends. */
uint32_t nat_further_due(const struct nat_maps *maps, uint32_t id);

/* Whether a further session has this remote address. */
bool nat_further_has_addr(const struct nat_maps *maps, uint32_t map_id,
			  uint32_t addr);

/* Keep or drop permits for TCP sessions, when the filter changes. */
void nat_permits_add(struct nat_maps *maps);
void nat_permits_remove(struct nat_maps *maps);

/* map.c: use another configuration, except for allocations; and its ports. */
void nat_maps_adopt(struct nat_maps *maps, const struct nat_config *config);
int nat_maps_make_ports(struct nat_maps *maps, const struct nat_config *config,
			struct nat_ports **ret_ports,
			struct mr_reason *reterr_why);

/* open.c: create a mapping for a subscriber. outside: its external end, which
 * it had before; address 0: any. NAT_OK or the drops of nat_maps_open(). */
enum nat_drop nat_map_make(struct nat_maps *maps,
			   const struct nat_tuple *inside, uint32_t ordinal,
			   struct nat_end outside, uint32_t last_s,
			   uint32_t now_s, uint32_t *ret_id);
/* list.c: whether this worker gives out such an external end. */
bool nat_maps_has_outside(const struct nat_maps *maps, uint8_t ip_proto,
			  struct nat_end end);
/* Fill in the record of a new mapping. */
void nat_map_fill(struct nat_maps *maps, uint32_t id, struct nat_end outside,
		  uint8_t flags, uint32_t subscriber_id, uint32_t last_s);
/* End a mapping and its sessions; a dynamic one's port goes into hold-down. */
void nat_map_end(struct nat_maps *maps, uint32_t id, uint32_t now_s);
/* The same if its external end is not entered; its subscriber stays. */
void nat_map_drop(struct nat_maps *maps, uint32_t id);
void nat_map_log(const struct nat_maps *maps, const struct nat_map *map,
		 uint32_t now_s, bool begins);
/* End a mapping but keep its record, with only the inside end. */
void nat_map_strip(struct nat_maps *maps, uint32_t id, uint32_t now_s);
/* 0, -EEXIST, -ENOSPC, -ENOMEM. */
int nat_other_add(struct nat_maps *maps, const struct nat_tuple *outside,
		  uint32_t map_id);

/* If it is that mapping's. */
void nat_other_remove(struct nat_maps *maps, const struct nat_tuple *outside,
		      uint32_t map_id);

/* reload.c: end what is no longer allowed, and set timers; in parts. */
void nat_maps_review(struct nat_maps *maps, uint32_t now_s);

/* track.c: make a session the mapping's first one. */
void nat_map_set_first(struct nat_maps *maps, uint32_t id,
		       struct nat_end remote, enum nat_tcp state,
		       uint32_t last_s);

/* When a mapping, or the rule of its first session, ends; it reads only the
 * mapping's own cache line. */
uint32_t nat_map_due(const struct nat_maps *maps, const struct nat_map *map);

/* Put a mapping on the wheel for its end. */
void nat_map_set_timer(struct nat_maps *maps, uint32_t id);

/* At most what a flow table holds. */
static inline uint32_t nat_clamp_count(uint64_t n)
{
	return n < INT32_MAX ? (uint32_t)n : INT32_MAX;
}

#endif

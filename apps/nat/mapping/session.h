/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * State of a worker, and the sessions of a mapping behind its first one.
 *
 *     map (number), remote end --> flow table --> further session
 *     map (number), remote address --> the same --> permit: how many there are
 *
 * Permits are kept where the filter looks at addresses and sessions are by
 * port, so that to ask for an address needs no search.
 */
#ifndef NAT_SESSION_H
#define NAT_SESSION_H

#include "map.h"
#include "ports/ports.h"
#include "ports/random.h"
#include "ports/subscriber.h"
#include "static.h"
#include "tcp.h"
#include "window.h"

enum { NAT_KIND_SESSION, NAT_KIND_PERMIT };

struct nat_further_key {
	uint32_t map_id;
	uint32_t addr; /* network order */
	uint16_t port; /* 0 where the filter looks at addresses only */
	uint16_t kind;
};

struct nat_further {
	struct nat_further_key key;
	uint32_t last_s;
	uint32_t next, prev; /* 1 + number, of the same mapping */
	uint32_t n_same;     /* of a permit: sessions with the address */
	uint8_t tcp_state;
	uint8_t reserved[3];
	struct nat_window window;
};

/* Outside ends that the array of ports has no place for: address-only
 * mappings, and static ones with ports that are not of our pool or slice. */
struct nat_other {
	struct nat_tuple outside;
	uint32_t map_id;
	uint32_t reserved;
};

struct nat_maps {
	/* What every packet reads. */
	struct mr_flow_table *table; /* struct nat_map by inside tuple */
	struct nat_window *windows;  /* of first sessions, by mapping */
	struct nat_ports *ports;
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
	/* What a reload left to look at, a part of it per nat_maps_expire(). */
	enum {
		NAT_REVIEW_NONE,
		NAT_REVIEW_MAPPINGS,
		NAT_REVIEW_SESSIONS
	} review;
	uint32_t reviewed; /* the number it has come to */
	struct nat_random random;
	uint32_t shard, n_shards;
	uint32_t max_mappings, max_sessions; /* of this worker */
	/* That there are tables for. */
	uint32_t n_max_mappings, n_max_sessions, n_max_static;
	uint32_t n_mappings, n_sessions, n_static;
	uint64_t created, expired;
	uint32_t now_s; /* of the last nat_maps_expire() */
	struct mr_ctx *ctx;
	nat_log_fn *log;
	void *opaque;
	bool is_behind;    /* nat_maps_is_behind() */
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

/* When what was used at last_s ends. A use late in its second counts whole. */
static inline uint32_t nat_due(uint32_t last_s, uint32_t timeout_s)
{
	return last_s + timeout_s + 1;
}

static inline bool nat_is_due(uint32_t due_s, uint32_t now_s)
{
	return (int32_t)(now_s - due_s) >= 0;
}

/* One-to-one: all protocols, nothing is tracked or filtered. */
static inline bool nat_is_one_to_one(const struct nat_map *map)
{
	return map->flags == (NAT_MAP_STATIC | NAT_MAP_ADDRESS);
}

/* How long mappings of this protocol, and their sessions, may be idle. */
uint32_t nat_idle_s(const struct nat_maps *maps, uint8_t ip_proto,
		    uint8_t tcp_state);

/* The first session is there, and not too old. */
bool nat_first_is_live(const struct nat_maps *maps, const struct nat_map *map,
		       uint32_t now_s);

/* The number of a further session, or MR_FLOW_NONE. */
uint32_t nat_further_find(const struct nat_maps *maps, uint32_t map_id,
			  struct nat_remote remote);

/* NAT_OK, NAT_DROP_TABLE_FULL or NAT_DROP_QUOTA. There must be none yet. */
enum nat_reason nat_further_add(struct nat_maps *maps, uint32_t map_id,
				struct nat_remote remote, uint8_t tcp_state,
				uint32_t now_s);

void nat_further_remove(struct nat_maps *maps, uint32_t id);
void nat_further_remove_all(struct nat_maps *maps, uint32_t map_id);

/* When it ends. */
uint32_t nat_further_due(const struct nat_maps *maps, uint32_t id);

/* Whether a further session has this remote address. */
bool nat_further_has_addr(const struct nat_maps *maps, uint32_t map_id,
			  uint32_t addr);

/* Keep permits for the sessions of TCP, or forget them: for another filter. */
void nat_permits_add(struct nat_maps *maps);
void nat_permits_remove(struct nat_maps *maps);

/* map.c: another configuration, as far as it needs no memory; and its ports. */
void nat_maps_adopt(struct nat_maps *maps, const struct nat_config *config);
int nat_maps_make_ports(struct nat_maps *maps, const struct nat_config *config,
			struct nat_ports **ret_ports,
			struct mr_reason *reterr_why);

/* open.c: what stands in a new mapping... */
void nat_map_fill(struct nat_maps *maps, uint32_t id, struct nat_remote outside,
		  uint8_t flags, uint32_t subscriber_id, uint32_t last_s);
/* ...and that it is one, and in whose name. */
void nat_map_begin(struct nat_maps *maps, uint32_t id, uint32_t now_s);
/* A mapping ends, with its sessions; a dynamic one's port waits. */
void nat_map_end(struct nat_maps *maps, uint32_t id, uint32_t now_s);
/* The same where its external end is not entered; its subscriber stays. */
void nat_map_drop(struct nat_maps *maps, uint32_t id);
void nat_map_log(const struct nat_maps *maps, const struct nat_map *map,
		 uint32_t now_s, bool begins);
/* A mapping ends, but its record: there is nothing in it but the inside end. */
void nat_map_strip(struct nat_maps *maps, uint32_t id, uint32_t now_s);
/* 0, -EEXIST, -ENOSPC, -ENOMEM. */
int nat_other_add(struct nat_maps *maps, const struct nat_tuple *outside,
		  uint32_t map_id);

/* If it is that mapping's. */
void nat_other_remove(struct nat_maps *maps, const struct nat_tuple *outside,
		      uint32_t map_id);

/* reload.c: end what is no longer allowed, and set timers; a part of it. */
void nat_maps_review(struct nat_maps *maps, uint32_t now_s);

/* track.c: a session is the mapping's first one, from now on. */
void nat_map_set_first(struct nat_maps *maps, uint32_t id,
		       struct nat_remote remote, enum nat_tcp state,
		       uint32_t last_s);

/* age.c: put a mapping on the wheel, when it ends by what is in its line. */
void nat_map_set_timer(struct nat_maps *maps, uint32_t id);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mappings and sessions: the state of one worker's subscribers.
 *
 *     inside addr, port, proto --> flow table ------> mapping --> outside end
 *     outside addr, port, proto --> array, no hash --> mapping --> inside end
 *
 * A mapping is endpoint-independent: one per inside address, port and protocol,
 * for all destinations. Sessions are its remote ends, kept if something depends
 * on them (TCP state, filtering): the first in the mapping's cache line,
 * further ones in a separate flow table. For UDP and ICMP with
 * endpoint-independent filtering, only the first is remembered, for lists.
 *
 * Time is a tick of one second, set by the caller; nothing here reads a clock.
 * Nothing here handles frames: the datapath does. One thread at a time.
 */
#ifndef NAT_MAP_H
#define NAT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/flow.h>
#include <millrace/millrace.h>

#include "config/config.h"
#include "ports/ports.h"

/* The key of a mapping. addr, port: network order; ICMP: port is the id. */
struct nat_tuple {
	uint32_t addr;
	uint16_t port;
	uint8_t proto;    /* IPPROTO_*; others than UDP, TCP, ICMP: port is 0 */
	uint8_t reserved; /* 0: a key has no holes */
};

/* An end of a session: remote, or ours outside. Network order. */
struct nat_end {
	uint32_t addr;
	uint16_t port; /* ICMP: 0 */
};

/* The relevant fields of a TCP segment; host order. */
struct nat_segment {
	uint32_t seq, ack;
	uint32_t n_bytes; /* of sequence space */
	uint16_t window;
	uint8_t flags; /* MR_TCP_* */
	uint8_t shift; /* nat_window_shift() of a SYN; 0: no scale */
};

enum {
	NAT_MAP_STATIC = 1 << 0,  /* a port forward or one-to-one: no timer */
	NAT_MAP_ADDRESS = 1 << 1, /* address only: the port is not changed */
	NAT_MAP_KIND = NAT_MAP_STATIC | NAT_MAP_ADDRESS,
	NAT_MAP_RULE = 1 << 2,  /* the first session has a rule: rule.h */
	NAT_MAP_RULES = 1 << 3, /* any session has a rule */
	NAT_MAP_RESTS = 1 << 7, /* struct nat_session only: not a session, but a
				 * port in hold-down */
};

/* One cache line. */
struct nat_map {
	struct nat_tuple inside;
	uint32_t outside_addr;  /* network order */
	uint16_t outside_port;  /* network order */
	uint16_t addr_delta;    /* RFC 1624: what translation to outside adds
				 * to a sum over the address... */
	uint16_t port_delta;    /* ...and over the port; folded, in memory
				 * byte order. To inside subtracts it. */
	uint8_t flags;          /* NAT_MAP_* */
	uint8_t tcp_state;      /* of the first session; tcp.h */
	uint32_t subscriber;    /* its number */
	uint32_t last_s;        /* refreshed: the tick; TCP: opened */
	struct nat_end remote;  /* of the first session; addr 0: none */
	uint32_t remote_last_s; /* last used */
	uint32_t n_sessions;    /* beyond the first... */
	uint32_t sessions;      /* ...1 + number of the newest; session.h */
	uint32_t next_hop[2];   /* of the datapath: the slot of the next hop,
				 * by side; 0: unknown */
	uint32_t n_out, n_in;   /* frames, for lists; may wrap */
};

/* A port of a packet on a side of its mapping, where that is mapped. */
static inline uint16_t nat_map_port(const struct nat_map *map, uint16_t mapped,
				    uint16_t port)
{
	return map->flags & NAT_MAP_ADDRESS ? port : mapped;
}

/* One worker's. */
struct nat_maps;

struct nat_maps_stats {
	uint64_t n_mappings, n_sessions, n_subscribers;
	uint64_t n_hold_down;           /* ports */
	uint64_t n_ports, n_ports_used; /* of all addresses, by protocol */
	uint64_t created, expired;      /* mappings */
	uint64_t bytes;                 /* memory of tables and arrays */
};

struct nat_maps_config {
	struct mr_ctx *ctx;
	const struct nat_config *config; /* must outlive it */
	uint32_t shard, n_shards;
	uint64_t seed; /* of hashes and port choice; 0: random */
	uint32_t n_expected; /* mappings that nat_maps_copy() will find */
	uint32_t now_s;
	nat_log_fn *log; /* or NULL */
	void *opaque;
};

int nat_maps_create(const struct nat_maps_config *config,
		    struct nat_maps **ret_maps, struct mr_reason *reterr_why);
void nat_maps_destroy(struct nat_maps *maps);

/*
 * Whether there is room for the static mappings of a configuration: 0, or
 * -errno with an error. Any thread.
 */
int nat_maps_can_reload(const struct nat_maps *maps,
			const struct nat_config *config,
			struct mr_reason *reterr_why);

/*
 * Use another configuration from now on. Mappings that it still allows stay,
 * others end (their external address or subscriber is gone): at once if ports
 * are rebuilt, else in later calls of nat_maps_expire(). On error, the old one
 * stays in force.
 */
int nat_maps_reload(struct nat_maps *maps, const struct nat_config *config,
		    uint32_t now_s, struct mr_reason *reterr_why);

/* Numbers of mappings are below this. */
uint32_t nat_maps_n_max(const struct nat_maps *maps);
struct nat_map *nat_maps_at(struct nat_maps *maps, uint32_t id);
/* The same, prefetching what a packet of proto will read. */
struct nat_map *nat_maps_fetch(struct nat_maps *maps, uint32_t id,
			       uint8_t proto);

/* The worker of a static mapping's host, which has its state; all workers know
 * the mapping. NAT_SHARD_NONE: it is not static. */
enum { NAT_SHARD_NONE = UINT32_MAX };
uint32_t nat_maps_static_shard(const struct nat_maps *maps, uint32_t id);
/*
 * A static mapping whose inside host belongs to another worker. All workers
 * have all static mappings, but only that worker has its state: TCP and filter.
 */
bool nat_maps_is_elsewhere(const struct nat_maps *maps, uint32_t id);

/* By burst; MR_FLOW_NONE if there is none. */
void nat_maps_find_out(const struct nat_maps *maps,
		       const struct nat_tuple *inside, uint32_t n,
		       uint32_t *ret_ids);
/* tuple: outside address, port and protocol. */
void nat_maps_find_in(const struct nat_maps *maps,
		      const struct nat_tuple *outside, uint32_t n,
		      uint32_t *ret_ids);

/*
 * The mapping of an inside tuple, created if necessary; for TCP, only by an
 * outgoing SYN: other segments without a mapping belong to nothing. NAT_OK and
 * *ret_id, or NAT_DROP_NO_PORT, _QUOTA, _TABLE_FULL, _SPOOFED, _PROTOCOL.
 */
enum nat_drop nat_maps_open(struct nat_maps *maps,
			    const struct nat_tuple *inside, uint32_t now_s,
			    uint32_t *ret_id);

/*
 * A packet of a mapping goes out to remote, or comes in from it: check the
 * filter (in only; static mappings have none), the session and TCP state, and
 * refresh what RFC 4787 REQ-6 and RFC 7857 allow. segment: only for TCP. A
 * segment outside its session's windows passes, but changes nothing. NAT_OK, or
 * a drop: NAT_DROP_FILTERED, _TABLE_FULL, _QUOTA, _UNSOLICITED_SYN (in:
 * the caller holds it).
 */
enum nat_drop nat_maps_out(struct nat_maps *maps, uint32_t id,
			   struct nat_end remote,
			   const struct nat_segment *segment, uint32_t now_s);
enum nat_drop nat_maps_in(struct nat_maps *maps, uint32_t id,
			  struct nat_end remote,
			  const struct nat_segment *segment, uint32_t now_s);

/* For an ICMP error about a packet of this mapping: check the filter only. */
bool nat_maps_may_in(const struct nat_maps *maps, uint32_t id, uint32_t addr);

/*
 * End expired mappings and release ports from hold-down; a bounded part per
 * call (64 mappings). Call once per round. Returns how many ended.
 */
uint32_t nat_maps_expire(struct nat_maps *maps, uint32_t now_s);
/* The last call left some work: call again soon, with or without packets. */
bool nat_maps_is_behind(const struct nat_maps *maps);

/* End one mapping and its sessions now; its port goes into hold-down. */
void nat_maps_close(struct nat_maps *maps, uint32_t id, uint32_t now_s);

void nat_maps_stats(const struct nat_maps *maps, struct nat_maps_stats *stats);

/* One session, for lists and for saving. */
struct nat_session {
	struct nat_tuple inside;
	struct nat_end outside; /* the mapping's external end */
	struct nat_end remote;  /* addr 0: none remembered */
	uint8_t tcp_state, flags;
	uint32_t age_s;  /* since its last use */
	uint32_t left_s; /* until it ends; 0: static */
	uint32_t n_out, n_in;
};

/*
 * Iterate: *cursor is 0 at first. Fills in up to n, returns how many; 0: the
 * end. Only mappings created or ended meanwhile may be missed or listed twice.
 */
uint32_t nat_maps_list(const struct nat_maps *maps, uint64_t *cursor,
		       uint32_t now_s, struct nat_session *sessions,
		       uint32_t n);

/* The same for saving: list sessions, then ports in hold-down, with the address
 * of the subscriber that owns the block. */
uint32_t nat_maps_save(const struct nat_maps *maps, uint64_t *cursor,
		       uint32_t now_s, struct nat_session *sessions,
		       uint32_t n);

/* Restore a saved session or port: 0, -EEXIST, -EADDRINUSE, -EINVAL, -ENOSPC.
 */
int nat_maps_restore(struct nat_maps *maps, const struct nat_session *session,
		     uint32_t now_s);

#endif

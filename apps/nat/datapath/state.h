/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the packet path work on: a worker's path, a packet being
 * processed, and the verdict about it.
 *
 *     path.c          the path itself: its parts, its clock
 *     fast_path.c     batches: packets of known flows, nothing unusual
 *     slow_path.c     any other frame, by way of
 *         parse.c     where its headers are, whether they are right
 *         decide.c    where it goes, and as what; icmp.c for errors
 *         forward.c   doing it: changes headers and size; resolve.c finds
 *                     the next hop
 *         fragment.c, syn.c, local.c, kernel.c, arp.c: what is special
 *         icmp_send.c refuses a packet, frame.c sends and drops frames
 */
#ifndef NAT_STATE_H
#define NAT_STATE_H

#include <netinet/in.h>

#include "neighbours.h"
#include "config/addrs.h"
#include "held.h"
#include "path.h"

/* A side as the path needs it; addresses in network order. */
struct nat_link {
	uint64_t mac;  /* ours: nat_mac() */
	uint16_t vlan; /* TCI, network order; 0: untagged */
	uint16_t mtu;
	uint16_t l2_bytes; /* of frames that we send */
	uint32_t own;      /* the first address */
	uint32_t gateway;  /* 0: none */
	uint32_t gateway_slot;
	uint32_t n_nets;
	struct {
		uint32_t addr, mask, own;
	} nets[NAT_MAX_ADDRS];
};

/* Decision about a packet. Network order. */
struct nat_verdict {
	uint32_t src, dst;     /* of the outgoing packet */
	uint16_t sport, dport; /* ICMP query: both the id */
	uint16_t id;           /* new id of its fragments, if any */
	uint8_t to;            /* enum nat_side */
	bool has_id;
	bool is_excluded;
	bool is_looped; /* to whichever worker has the other end */
};

/* A packet being processed. Pointers are into its first entry. */
struct nat_packet {
	struct mr_frame frames[MR_MAX_SEGS];
	uint32_t n;   /* entries */
	uint8_t from; /* enum nat_side */
	uint8_t proto;
	uint8_t tcp_flags;
	bool is_partial; /* MR_FRAME_CSUM_PARTIAL */
	bool is_first;   /* has the layer-4 header */
	bool has_more;   /* fragments follow */
	bool is_looped;  /* hairpinned by another worker */
	uint16_t l2_bytes, ip_bytes;
	uint32_t total_bytes;     /* layer 3, including its header */
	uint32_t fragment_offset; /* bytes */
	uint16_t sport, dport;    /* ICMP query: both the id; else 0 */
	struct mr_ipv4 *ip;
	uint8_t *l4; /* NULL: not the first fragment */
};

struct nat_fragments;
struct nat_syns;
struct nat_resolver;

struct nat_path {
	struct mr_cache *cache;
	uint8_t *base;
	struct nat_maps *maps;
	struct nat_neighbours *neighbours;
	const struct nat_config *config;
	uint32_t page_bytes, headroom_bytes; /* of the pool */
	uint32_t now_s;
	/* For datagrams that we send; workers start at different numbers and
	 * step by a power of two, so they never collide. */
	uint16_t next_id, id_step;
	struct mr_flow_old_id *old_ids; /* 65536 / id_step: nat_new_id() */
	const struct mr_flow_old_id *rule_ids; /* by rules; NULL: none */
	uint16_t mss;                          /* clamp, host order; 0: none */
	uint64_t now_ns;
	struct mr_port *ports[NAT_SIDES];
	struct nat_link links[NAT_SIDES];
	struct nat_addrs addrs;
	struct nat_stats stats;
	uint64_t next_s_ns;                  /* when now_s changes */
	uint64_t answer_ready_ns[NAT_SIDES]; /* icmp_send.c: limits answers */
	struct nat_hold hold;
	struct nat_resolver *resolver;
	struct nat_fragments *fragments;
	struct nat_syns *syns;
	struct nat_tickets *tickets;      /* NULL: no rules */
	struct recorder *const *recorder; /* the worker's slot */
	uint32_t worker_idx;
	uint32_t n_announced;
	bool is_announced;
	bool has_peers;
	/* Atomic: set by nat_path_set_port() and nat_path_announce(); n_news
	 * counts their calls. */
	bool must_announce;
	uint64_t port_macs[NAT_SIDES];
	uint16_t port_mtus[NAT_SIDES];
	uint32_t n_news;
	uint32_t n_followed;            /* calls that took effect */
	uint64_t n_too_long[NAT_SIDES]; /* frames that a port has refused */
	struct nat_outbox outboxes[NAT_SIDES];
	struct nat_outbox loop; /* last: touched only by hairpins */
};

#endif

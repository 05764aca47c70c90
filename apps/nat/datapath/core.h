/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the files of the packet path: a worker's path, a packet being
 * processed, and the verdict about it.
 *
 *     fast_path.c     batches: packets of known flows, nothing unusual
 *     slow_path.c     any other frame, by way of
 *         parse.c     where its headers are, whether they are right
 *         decide.c    where it goes, and as what
 *         ip_options.c    what a router writes into them
 *         rewrite.c   doing it; split.c where it is too big for the link
 *         resolve.c   next hops, ARP
 *         fragment.c, icmp.c, syn.c, local.c: what each is about
 */
#ifndef NAT_CORE_H
#define NAT_CORE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <millrace/experimental/flow_way.h>

#include "arp.h"
#include "config/addrs.h"
#include "path.h"
#include "pending.h"
#include "ports/random.h"
#include "support/capture.h"
#include "support/counter.h"
#include "tickets.h"

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
	uint32_t chunk_bytes, headroom_bytes; /* of the pool */
	uint32_t now_s;
	/* For datagrams that we send; workers start at different numbers and
	 * step by a power of two, so they never collide. */
	uint16_t next_id, id_step;
	struct mr_flow_old_id *old_ids; /* 65536 / id_step: nat_new_id() */
	const struct mr_flow_old_id *rule_ids; /* by rules; NULL: none */
	uint16_t mss; /* clamp, host order; 0: none */
	uint64_t now_ns;
	struct mr_port *ports[NAT_SIDES];
	struct nat_link links[NAT_SIDES];
	struct nat_addrs addrs;
	struct nat_stats stats;
	uint64_t next_s_ns;                /* when now_s changes */
	uint64_t tell_ready_ns[NAT_SIDES]; /* rate limit of answers: icmp.c */
	struct nat_pending hold;
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

/* For one of our datagrams, network order. */
static inline uint16_t nat_take_id(struct nat_path *path)
{
	const uint16_t id = path->next_id;

	path->next_id = (uint16_t)(id + path->id_step);
	return htons(id);
}

/* Offset of the checksum in a layer-4 header that covers addresses; 0: none. */
static inline uint32_t nat_csum_offset(uint8_t proto)
{
	switch (proto) {
	case IPPROTO_UDP:
	case IPPROTO_UDPLITE:
	case IPPROTO_DCCP:
		return 6;
	case IPPROTO_TCP:
		return 16;
	default:
		return 0;
	}
}

/* What TTL - 1 adds to a sum over it. */
#define NAT_TTL_DELTA mr_csum_delta16(htons(1 << 8), 0)

/*
 * A layer-4 checksum after addresses and ports changed. A partial one is the
 * sum of the pseudo-header, not complemented, and does not cover ports. In UDP,
 * 0 means no checksum.
 */
static inline uint16_t nat_fix_l4(uint16_t csum, uint32_t addr_delta,
				  uint32_t port_delta, bool is_partial,
				  uint8_t proto)
{
	if (is_partial)
		return mr_csum_fold32(csum + addr_delta);
	if (proto == IPPROTO_TCP || proto == IPPROTO_DCCP)
		return mr_csum_fix(csum, addr_delta + port_delta);
	if (csum == 0 && proto != IPPROTO_ICMP)
		return 0;
	return mr_csum_fix_nonzero(csum, addr_delta + port_delta);
}

/* The place of the id that one of this worker's ids replaced. */
static inline struct mr_flow_old_id *nat_old_id_at(const struct nat_path *path,
						   uint16_t id)
{
	return &path->old_ids[ntohs(id) >> __builtin_ctz(path->id_step)];
}

/* Choose a new id for a packet whose source becomes our address, and keep its
 * old one: RFC 6864 5.3.1. Call it before the addresses change. */
static inline uint16_t nat_new_id(struct nat_path *path,
				  const struct mr_ipv4 *ip)
{
	enum { AHEAD = 32 }; /* two cache lines: the table is used in order */
	const uint16_t id = nat_take_id(path);
	const uint16_t ahead =
		(uint16_t)(path->next_id + AHEAD * path->id_step);

	__builtin_prefetch(nat_old_id_at(path, htons(ahead)), 1);
	*nat_old_id_at(path, id) = (struct mr_flow_old_id){
		.id = ip->id,
		.mark = mr_flow_id_mark(ip->src, ip->dst, ip->proto)
	};
	return id;
}

/* Replace the id of a packet. Returns the checksum delta. */
static inline uint32_t nat_replace_id(struct nat_path *path, struct mr_ipv4 *ip)
{
	const uint16_t before = ip->id;

	ip->id = nat_new_id(path, ip);
	return mr_csum_delta16(before, ip->id);
}

/* The Ethernet header of a frame that begins at bytes, with the link's tag. */
static inline void nat_write_link(uint8_t *bytes, const struct nat_link *link,
				  uint16_t ether_type, uint64_t mac)
{
	const uint64_t head = mac | link->mac << NAT_MAC_BITS;
	const uint32_t tail = (uint32_t)(link->mac >> 16);
	const uint16_t type = htons(ether_type);

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + 8, &tail, sizeof(tail));
	if (link->vlan != 0) {
		const struct mr_vlan tag = { .tci = link->vlan, .type = type };
		const uint16_t tpid = htons(MR_ETHER_VLAN);

		memcpy(bytes + 12, &tpid, sizeof(tpid));
		memcpy(bytes + 14, &tag, sizeof(tag));
	} else {
		memcpy(bytes + 12, &type, sizeof(type));
	}
}

static inline bool nat_has_ports(uint8_t proto)
{
	return proto == IPPROTO_UDP || proto == IPPROTO_TCP;
}

/* For a segment of n_bytes, header included; not a SYN. */
static inline struct nat_segment nat_segment_of(const struct mr_tcp *tcp,
						uint32_t n_bytes)
{
	return (struct nat_segment){ .seq = ntohl(tcp->seq),
				     .ack = ntohl(tcp->ack),
				     .n_bytes = n_bytes -
						(tcp->offset >> 4) * 4u +
						(tcp->flags & MR_TCP_FIN),
				     .window = ntohs(tcp->window),
				     .flags = tcp->flags };
}

/* Free the frame of a packet and count why. */
void nat_drop(struct nat_path *path, struct nat_packet *packet,
	      enum nat_reason reason);

/* parse.c. NAT_OK, or a reason. Only the frame's entries may change. */
enum nat_reason nat_parse_link(struct nat_path *path, struct nat_packet *packet,
			       uint16_t *ret_ether_type);
enum nat_reason nat_parse_ip(struct nat_path *path, struct nat_packet *packet);
enum nat_reason nat_parse_l4(struct nat_path *path, struct nat_packet *packet);
/* Move the first n_bytes of the frame to its first entry, or false. */
bool nat_pull_up(struct nat_path *path, struct nat_packet *packet,
		 uint32_t n_bytes);
/* Copy n_bytes from offset, which the frame must have. */
void nat_copy_from(const struct nat_path *path, const struct nat_packet *packet,
		   uint32_t offset, uint32_t n_bytes, uint8_t *to);
/* Folded sum of n_bytes from offset, in memory byte order. */
uint16_t nat_sum_of(const struct nat_path *path,
		    const struct nat_packet *packet, uint32_t offset,
		    uint32_t n_bytes);
/* Trim what follows the layer-3 packet, except Ethernet's padding. */
void nat_trim(struct nat_path *path, struct nat_packet *packet);

/* slow_path.c: any frame off the fast path, which takes ownership of it. */
void nat_one(struct nat_path *path, enum nat_side from,
	     const struct mr_frame *frames, uint32_t n);
/*
 * Decide about a packet with a layer-4 header. NAT_OK and *ret_verdict;
 * NAT_TAKEN: it is for us; else the drop reason.
 */
enum nat_reason nat_decide(struct nat_path *path, struct nat_packet *packet,
			   struct nat_verdict *ret_verdict);

/* decide.c: nat_decide() for anything but ICMP errors. */
enum nat_reason nat_decide_plain(struct nat_path *path,
				 const struct nat_packet *packet,
				 struct nat_verdict *ret_verdict);

/* rewrite.c: send it according to the verdict; consumes the packet. */
void nat_forward(struct nat_path *path, struct nat_packet *packet,
		 const struct nat_verdict *verdict);
/* The same with the next hop known. */
void nat_forward_to(struct nat_path *path, struct nat_packet *packet,
		    const struct nat_verdict *verdict, uint64_t mac);
/* Write addresses, ports, id and TTL of the verdict to the headers. */
void nat_rewrite(struct nat_path *path, struct nat_packet *packet,
		 const struct nat_verdict *verdict);
/* The option of this kind and length in a header of n_bytes, or NULL. */
uint8_t *nat_tcp_option(const struct mr_tcp *tcp, uint32_t n_bytes,
			uint8_t kind, uint8_t n_option);
/* Lower the MSS option of a SYN. */
void nat_clamp_mss(uint16_t mss, struct mr_tcp *tcp, uint32_t n_bytes,
		   bool is_partial);
/* Write layer-2 headers, and put it into the outbox; consumes the packet. */
void nat_send(struct nat_path *path, struct nat_packet *packet,
	      enum nat_side to, uint64_t mac);
void nat_send_as(struct nat_path *path, struct nat_packet *packet,
		 enum nat_side to, uint16_t ether_type, uint64_t mac);
/* To whichever worker has its destination, as if it came from outside. */
void nat_send_looped(struct nat_path *path, struct nat_packet *packet);
enum { NAT_OUR_TTL = 64 };
/* Write one of our IPv4 headers, with the common fields and its checksum.
 * Returns where layer 4 begins. */
void *nat_put_ip(struct nat_path *path, const struct nat_packet *packet,
		 const struct mr_ipv4 *header);
/* A new frame of one entry, n_bytes long, leaving room for a VLAN tag. */
bool nat_make(struct nat_path *path, struct nat_packet *packet,
	      uint32_t n_bytes);
/* How many bytes of layer 3 fit into a new frame. */
uint32_t nat_room(const struct nat_path *path);

/* split.c: send it as fragments of at most the link's MTU. */
void nat_split(struct nat_path *path, struct nat_packet *packet,
	       enum nat_side to, uint64_t mac);

/* RFC 792. */
enum {
	NAT_ICMP_ECHO_REPLY = 0,
	NAT_ICMP_UNREACHABLE = 3,
	NAT_ICMP_ECHO = 8,
	NAT_ICMP_TIME = 11,
	NAT_ICMP_PARAMETER = 12,
	NAT_ICMP_TIMESTAMP = 13,
	NAT_ICMP_TIMESTAMP_REPLY = 14,
};

/* Codes of NAT_ICMP_UNREACHABLE. */
enum {
	NAT_ICMP_NO_NET = 0,
	NAT_ICMP_NO_HOST = 1,
	NAT_ICMP_NO_PORT = 3,
	NAT_ICMP_TOO_BIG = 4,
	NAT_ICMP_PROHIBITED = 13,
};

/* icmp.c: queries are decide.c's; these are errors. */
enum nat_reason nat_icmp_translate(struct nat_path *path,
				   struct nat_packet *packet,
				   struct nat_verdict *ret_verdict);
bool nat_icmp_is_error(uint8_t type);
bool nat_icmp_is_query(uint8_t type);
bool nat_icmp_is_reply(uint8_t type);
/* Send an ICMP error to the sender of packet, if allowed. Leaves packet. */
void nat_icmp_tell(struct nat_path *path, const struct nat_packet *packet,
		   uint8_t type, uint8_t code, uint16_t mtu);
/* Whether the rate limit allows another unsolicited answer. */
bool nat_may_tell(struct nat_path *path, const struct nat_packet *packet);
/* Send the ICMP error for reason, if any, and drop. */
void nat_refuse(struct nat_path *path, struct nat_packet *packet,
		enum nat_reason reason);

/* ip_options.c: fill in our address and the time as Record Route and Timestamp
 * request. False: an option is malformed. */
bool nat_options_fill(struct nat_path *path, struct nat_packet *packet,
		      enum nat_side to);

/* links.c: set up the links; follow changes of the ports. */
void nat_links_init(struct nat_path *path);
void nat_links_follow(struct nat_path *path);

/* local.c: packets to our own addresses. */
void nat_local(struct nat_path *path, struct nat_packet *packet);
/* Whether it is for an own address outside, shared with the kernel, and a port
 * that no mapping can have. */
bool nat_is_for_kernel(const struct nat_path *path,
		       const struct nat_packet *packet);
/* Whether the kernel gets a packet that is not translated for this reason. */
bool nat_kernel_takes(const struct nat_path *path,
		      const struct nat_packet *packet, enum nat_reason reason);
/* Drop it or, if the kernel shares our addresses, hand it over. */
void nat_leave(struct nat_path *path, struct nat_packet *packet,
	       enum nat_reason reason);

/* resolve.c: next hops, and frames that wait for them. */
struct nat_resolver *nat_resolver_create(void);
void nat_resolver_destroy(struct nat_resolver *resolver);
/* The next hop for dst. Network order; 0: none. */
uint32_t nat_next_hop(const struct nat_path *path, enum nat_side side,
		      uint32_t dst);
/* NAT_OK and its MAC address; NAT_TAKEN: holding the packet; else a reason. */
enum nat_reason nat_resolve(struct nat_path *path, struct nat_packet *packet,
			    const struct nat_verdict *verdict,
			    uint64_t *ret_mac);
void nat_resolver_tick(struct nat_path *path);
/* Send frames whose next hop is now known. */
void nat_resolver_release(struct nat_path *path);

/* arp_packet.c: ARP packets. Send one to a MAC address; 0: to all. */
void nat_arp_send(struct nat_path *path, enum nat_side side, uint16_t op,
		  uint64_t to_mac, uint32_t sender, uint32_t target);
void nat_arp_input(struct nat_path *path, struct nat_packet *packet);
void nat_announce(struct nat_path *path);

/* fragment.c: packets with fragment_offset or has_more. */
struct nat_fragments *nat_fragments_create(const struct nat_config *config,
					   struct nat_random *random);
void nat_fragments_destroy(struct nat_fragments *fragments);
void nat_fragment(struct nat_path *path, struct nat_packet *packet);
void nat_fragments_tick(struct nat_path *path);

/* syn.c: unsolicited SYNs from outside. */
struct nat_syns *nat_syns_create(void);
void nat_syns_destroy(struct nat_syns *syns);
void nat_syn_hold(struct nat_path *path, struct nat_packet *packet);
/* A SYN goes out: drop held SYNs of the same connection silently. */
void nat_syn_out(struct nat_path *path, const struct nat_verdict *verdict);
void nat_syns_tick(struct nat_path *path);

#endif

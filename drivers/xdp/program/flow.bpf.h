/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Flows: packets of UDP and TCP over IPv4 that a router or translator forwards.
 *
 *     frame --> is it plain? --> flows --> way --> may it leave now?
 *                                           |             |
 *                                        ticket <--no--   yes --> rewrite
 *
 * A packet that fails a check goes to user space, which checks it as well. Two
 * programs may run at a time, one per direction; each writes its own way.
 *
 * Source: RFC 1624 (checksums), RFC 791, RFC 768, RFC 9293.
 */
#ifndef XDP_PROGRAM_FLOW_BPF_H
#define XDP_PROGRAM_FLOW_BPF_H

#include <linux/tcp.h>
#include <linux/udp.h>

#include <millrace/experimental/flow_way.h>

enum {
	VLAN_BYTES = 4,
	MIN_FRAME = 60,
	MIN_TCP_WORDS = 5,
	TCP_NOT_PLAIN = 0x07, /* FIN, SYN, RST */
	TCP_ACK = 0x10,
	PLAIN_VERSION_IHL = 0x45,
	DF = 0x4000,
	MORE_OR_OFFSET = 0x3fff,
	ASK_AGAIN_NS = 10000000,
};

struct flow_packet {
	struct iphdr *ip;
	__u64 now_ns;
	__u32 l2_bytes;
	__u32 l4_bytes;
	__u8 tcp_flags;
};

static __always_inline __u32 fold(__u32 sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

static __always_inline __u16 fix(__u16 csum, __u32 delta)
{
	return (__u16)~fold((__u16)~csum + delta);
}

/* TCP's flags, without the bit fields of <linux/tcp.h>. */
static __always_inline __u8 flags_of(const struct tcphdr *tcp)
{
	return ((const __u8 *)tcp)[13];
}

static __always_inline __u32 header_words_of(const struct tcphdr *tcp)
{
	return ((const __u8 *)tcp)[12] >> 4;
}

static __always_inline __u32 l2_bytes_of(const struct xdp_rule_port *port)
{
	return port->vlan == 0 ? ETH_HLEN : ETH_HLEN + VLAN_BYTES;
}

static __always_inline bool has_link_header(const struct xdp_rule_port *port,
					    const struct ethhdr *eth)
{
	const __u16 *tag = (const void *)(eth + 1);

	if (port->vlan == 0)
		return eth->h_proto == bpf_htons(ETH_P_IP);
	return eth->h_proto == bpf_htons(ETH_P_8021Q) &&
	       (tag[0] & bpf_htons(0x0fff)) == port->vlan &&
	       tag[1] == bpf_htons(ETH_P_IP);
}

/* Whether it may belong to a flow: for us, with ports at the expected place. */
static __always_inline bool has_flow(const struct xdp_rule_port *port,
				     struct ethhdr *eth, const void *end,
				     struct flow_packet *p)
{
	struct iphdr *ip;

	p->l2_bytes = l2_bytes_of(port);
	p->tcp_flags = 0;
	p->ip = ip = (void *)eth + p->l2_bytes;
	return (const void *)(ip + 1) + sizeof(struct udphdr) <= end &&
	       (*(const __u64 *)eth->h_dest << 16 >> 16) == port->mac &&
	       has_link_header(port, eth) &&
	       *(const __u8 *)ip == PLAIN_VERSION_IHL &&
	       (ip->protocol == IPPROTO_UDP || ip->protocol == IPPROTO_TCP) &&
	       !(ip->frag_off & bpf_htons(MORE_OR_OFFSET));
}

static __always_inline bool is_plain_l4(struct flow_packet *p, const void *end)
{
	const struct udphdr *udp = (const void *)(p->ip + 1);
	const struct tcphdr *tcp = (const void *)(p->ip + 1);

	if (p->ip->protocol == IPPROTO_UDP)
		return p->l4_bytes >= sizeof(*udp) &&
		       bpf_ntohs(udp->len) >= sizeof(*udp) &&
		       bpf_ntohs(udp->len) <= p->l4_bytes;
	if ((const void *)(tcp + 1) > end)
		return false;
	p->tcp_flags = flags_of(tcp);
	return header_words_of(tcp) >= MIN_TCP_WORDS &&
	       header_words_of(tcp) * 4 <= p->l4_bytes;
}

/* Whether it is complete, with nothing that a router must examine. */
static __always_inline bool is_plain(struct flow_packet *p,
				     const struct ethhdr *eth, const void *end,
				     __u64 n_bytes)
{
	const struct iphdr *ip = p->ip;
	const __u32 n_ip = bpf_ntohs(ip->tot_len);

	if (n_bytes != (__u64)(end - (const void *)eth) || ip->ttl <= 1 ||
	    n_ip < sizeof(*ip) || p->l2_bytes + n_ip > n_bytes ||
	    (p->l2_bytes + n_ip < n_bytes && n_bytes > MIN_FRAME) ||
	    fold(add_words(ip, sizeof(*ip) / 2)) != 0xffff)
		return false;
	p->l4_bytes = n_ip - sizeof(*ip);
	return is_plain_l4(p, end);
}

/* A TCP segment is where its receiver expects it; learn from it. */
static __always_inline bool follow_segment(struct mr_flow_way *from,
					   const struct mr_flow_way *to,
					   const struct flow_packet *p,
					   const void *end)
{
	const struct tcphdr *tcp = (const void *)(p->ip + 1);
	__u32 seq, ack, n_bytes;
	__u16 window;

	if (p->tcp_flags & TCP_NOT_PLAIN || (const void *)(tcp + 1) > end)
		return false;
	if (from->tcp.flags & MR_FLOW_UNTRACKED)
		return true;
	seq = bpf_ntohl(tcp->seq);
	ack = bpf_ntohl(tcp->ack_seq);
	n_bytes = p->l4_bytes - header_words_of(tcp) * 4;
	window = bpf_ntohs(tcp->window);
	if (!mr_flow_fits(to->tcp.ack,
			  mr_flow_window(to->tcp.window, to->tcp.shift), seq,
			  n_bytes))
		return false;
	if ((__s32)(seq + n_bytes - from->tcp.end) > 0)
		from->tcp.end = seq + n_bytes;
	if (!(p->tcp_flags & TCP_ACK) || (__s32)(ack - from->tcp.ack) < 0 ||
	    (__s32)(ack - to->tcp.end) > 0)
		return true;
	from->tcp.ack = ack;
	if (from->tcp.window < window)
		from->tcp.window = window;
	return true;
}

/* The next hop's MAC address; 0: user space sends, or asks for it. */
static __always_inline __u64 mac_of(__u32 number, __u64 now_ns)
{
	const __u32 idx = number & ((1u << MR_FLOW_HOP_BITS) - 1);
	struct xdp_hop *hop = bpf_map_lookup_elem(&hops, &idx);

	if (hop == NULL || hop->until_ns == 0 ||
	    hop->generation != number >> MR_FLOW_HOP_BITS)
		return 0;
	if (now_ns >= hop->until_ns && now_ns - hop->asked_ns > ASK_AGAIN_NS) {
		hop->asked_ns = now_ns;
		return 0;
	}
	return hop->mac;
}

/* Replace the packet's id by the queue's next one. Returns the sum's delta. */
static __always_inline __u32 replace_id(struct xdp_rule_queue *queue,
					struct iphdr *ip)
{
	const __u16 number = (__u16)queue->next_id;
	const __u16 before = ip->id, after = bpf_htons(number);
	const __u32 idx = number / 2;
	struct xdp_old_ids *ids = bpf_map_lookup_elem(&old_ids, &idx);

	if (ids != NULL) {
		struct mr_flow_old_id *old = &ids->pair[number & 1];

		old->id = before;
		old->mark =
			mr_flow_id_mark(ip->saddr, ip->daddr, ip->protocol);
	}
	queue->next_id += id_step;
	ip->id = after;
	return (__u16)~before + (__u32)after;
}

/* Layer 3 and 4 as they leave. */
static __always_inline void translate(const struct mr_flow_way *way,
				      struct xdp_rule_queue *queue,
				      struct iphdr *ip, const void *end)
{
	/* What TTL - 1 adds: one's complement, in the upper byte. */
	__u32 delta = way->addr_delta + bpf_htons(0xfeff);
	struct udphdr *udp = (void *)(ip + 1);
	struct tcphdr *tcp = (void *)(ip + 1);

	if ((way->tcp.flags & MR_FLOW_NEW_ID) &&
	    !(ip->frag_off & bpf_htons(DF)))
		delta += replace_id(queue, ip);
	ip->saddr = way->src;
	ip->daddr = way->dst;
	ip->ttl--;
	ip->check = fix(ip->check, delta);
	udp->source = way->sport;
	udp->dest = way->dport;
	if (ip->protocol == IPPROTO_TCP) {
		if ((const void *)(tcp + 1) <= end)
			tcp->check = fix(tcp->check, way->l4_delta);
	} else if (udp->check != 0) {
		udp->check = fix(udp->check, way->l4_delta);
		if (udp->check == 0)
			udp->check = 0xffff;
	}
}

/* The link header as the target has it; NULL: no room, or no packet follows. */
static __always_inline struct iphdr *
write_link(struct xdp_md *ctx, const struct xdp_rule_port *target,
	   __u32 n_before, __u64 mac)
{
	const __u32 n_after = l2_bytes_of(target);
	struct ethhdr *eth;
	struct iphdr *ip;
	__u16 *tag;

	if (n_before != n_after &&
	    bpf_xdp_adjust_head(ctx, (int)n_before - (int)n_after) != 0)
		return NULL;
	eth = (void *)(long)ctx->data;
	tag = (void *)(eth + 1);
	ip = (void *)eth + n_after;
	/* All that translate() writes; is_plain() has seen that it is there. */
	if ((void *)(ip + 1) + sizeof(struct udphdr) >
	    (void *)(long)ctx->data_end)
		return NULL;
	*(__u32 *)eth->h_dest = (__u32)mac;
	*(__u16 *)&eth->h_dest[4] = (__u16)(mac >> 32);
	*(__u16 *)eth->h_source = (__u16)target->mac;
	*(__u32 *)&eth->h_source[2] = (__u32)(target->mac >> 16);
	if (target->vlan == 0) {
		eth->h_proto = bpf_htons(ETH_P_IP);
	} else {
		eth->h_proto = bpf_htons(ETH_P_8021Q);
		tag[0] = target->vlan;
		tag[1] = bpf_htons(ETH_P_IP);
	}
	return ip;
}

static __always_inline __u32 ms_of(__u64 ns)
{
	return (__u32)(ns >> 20); /* nearly */
}

/* Whether no frame of it got a ticket yet; some may have preceded the rule. */
static __always_inline bool is_new(const struct mr_flow_way *way)
{
	return way->passed == 0 && way->confirmed == XDP_FLOW_NEW;
}

/* Whether user space has sent every frame of it, or has taken too long. */
static __always_inline bool may_begin(struct mr_flow_way *way, __u64 now_ns)
{
	if (way->passed == way->confirmed)
		return true;
	if (is_new(way) || ms_of(now_ns) - way->since_ms < MR_FLOW_FORCE_MS)
		return false;
	way->confirmed = way->passed;
	return true;
}

/* The direction of its rule that a reference stands for. */
static __always_inline __u32 way_of(__u64 ref)
{
	return ref >> XDP_REF_WAY & 1;
}

/* To user space, with a number to confirm. */
static __always_inline int pass(struct xdp_md *ctx, __u64 ref,
				struct mr_flow_way *way, __u64 now_ns)
{
	struct mr_flow_ticket *ticket;

	if (way->passed == way->confirmed || is_new(way))
		way->since_ms = ms_of(now_ns);
	way->passed++;
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*ticket)) == 0) {
		ticket = (void *)(long)ctx->data_meta;
		if ((void *)(ticket + 1) <= (void *)(long)ctx->data) {
			ticket->magic = magic;
			ticket->id = (__u32)ref;
			ticket->way = way_of(ref);
			ticket->number = way->passed;
		}
	}
	return TO_USER;
}

/* Where a packet of a flow goes; NULL: to user space; *ret_why counts it. */
static __always_inline const struct xdp_rule_port *
target_of(struct xdp_rule_queue *queue, const struct flow_packet *p,
	  const struct mr_flow_way *way, __u64 *ret_mac, __u64 **ret_why)
{
	const __u32 to = way->word & XDP_RULE_TO;
	const struct xdp_rule_port *target = bpf_map_lookup_elem(&ports, &to);
	const __u32 n_ip = p->l4_bytes + sizeof(*p->ip);

	*ret_why = &queue->no_target;
	if (target == NULL || target->max_bytes == 0)
		return NULL;
	*ret_why = &queue->too_long;
	if (n_ip > target->mtu_bytes ||
	    n_ip + l2_bytes_of(target) > target->max_bytes)
		return NULL;
	*ret_why = &queue->no_hop;
	*ret_mac = mac_of(way->hop, p->now_ns);
	return *ret_mac != 0 ? target : NULL;
}

enum { NOT_OF_A_FLOW = -1 };

/* Forward a packet of a flow, or pass it up with a ticket. */
static __always_inline int forward(struct xdp_md *ctx, struct flow_packet *p,
				   __u64 ref, struct xdp_flow *flow,
				   struct xdp_rule_queue *queue,
				   struct xdp_rule_cell *cell, bool plain)
{
	struct mr_flow_way *way = &flow->ways[way_of(ref)];
	const struct mr_flow_way *back = &flow->ways[way_of(ref) ^ 1];
	const void *end = (const void *)(long)ctx->data_end;
	const struct xdp_rule_port *target;
	struct iphdr *ip;
	__u64 mac, *why;

	if (!plain || !(way->word & XDP_RULE_ACTIVE) ||
	    !may_begin(way, p->now_ns))
		return pass(ctx, ref, way, p->now_ns);
	target = target_of(queue, p, way, &mac, &why);
	if (target == NULL)
		goto refused;
	why = &queue->partial;
	if (has_partial_csums && is_partial_v4(p->ip, end))
		goto refused;
	why = &queue->no_target;
	if (bpf_redirect_map(&targets, way->word & XDP_RULE_TO, XDP_ABORTED) !=
	    XDP_REDIRECT)
		goto refused;
	why = &queue->segment;
	if (p->ip->protocol == IPPROTO_TCP &&
	    !follow_segment(way, back, p, end))
		goto refused;
	ip = write_link(ctx, target, p->l2_bytes, mac);
	if (ip == NULL)
		goto refused;
	translate(way, queue, ip, (const void *)(long)ctx->data_end);
	way->seen_ns = p->now_ns;
	way->n_frames++;
	cell->frames++;
	cell->bytes += l2_bytes_of(target) + sizeof(*p->ip) + p->l4_bytes;
	return XDP_REDIRECT;
refused:
	++*why;
	return pass(ctx, ref, way, p->now_ns);
}

static __always_inline __u64 find_in(__u32 idx, __u64 tag)
{
	const struct xdp_flow_bucket *bucket =
		bpf_map_lookup_elem(&flows, &idx);

	for (__u32 i = 0; bucket != NULL && i < XDP_BUCKET_REFS; i++)
		if ((bucket->refs[i] & XDP_REF_TAG) == tag)
			return bucket->refs[i];
	return 0;
}

/* A candidate reference for a packet's flow; 0: none. */
static __always_inline __u64 find_ref(const struct xdp_flow_key *key)
{
	const __u64 hash = xdp_flow_hash(key, magic);
	const __u32 idx = hash & (n_buckets - 1);
	const __u64 ref = find_in(idx, xdp_flow_tag(hash));

	return ref != 0 ? ref : find_in(idx ^ 1, xdp_flow_tag(hash));
}

/* The flow of a packet, or NULL. Each direction leaves with the reversed ends
 * of the other. */
static __always_inline struct xdp_flow *
find_flow(const struct xdp_flow_key *key, __u64 *ret_ref)
{
	const __u64 ref = find_ref(key);
	const __u32 idx = ref & ((1u << XDP_RULE_GENERATION_SHIFT) - 1);
	const struct mr_flow_way *way, *back;
	struct xdp_flow *flow;

	if (ref == 0)
		return NULL;
	flow = bpf_map_lookup_elem(&ways, &idx);
	if (flow == NULL)
		return NULL;
	way = &flow->ways[way_of(ref)];
	back = &flow->ways[way_of(ref) ^ 1];
	if (way->word >> XDP_RULE_GENERATION_SHIFT !=
		    (__u32)ref >> XDP_RULE_GENERATION_SHIFT ||
	    way->origin != key->origin || back->src != key->dst ||
	    back->dst != key->src || back->sport != key->dport ||
	    back->dport != key->sport)
		return NULL;
	*ret_ref = ref;
	return flow;
}

static __always_inline int handle_flow(struct xdp_md *ctx,
				       const struct xdp_rule_port *port,
				       __u32 queue_idx, __u64 n_bytes)
{
	const void *end = (const void *)(long)ctx->data_end;
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct flow_packet p;
	struct xdp_flow_key key;
	struct xdp_rule_queue *queue = bpf_map_lookup_elem(&queues, &queue_idx);
	const struct udphdr *udp;
	struct xdp_rule_cell *cell;
	struct xdp_flow *flow;
	__u64 ref;
	__u32 idx;

	if (queue == NULL || port->mtu_bytes == 0 ||
	    !has_flow(port, eth, end, &p))
		return NOT_OF_A_FLOW;
	udp = (const void *)(p.ip + 1);
	key.src = p.ip->saddr;
	key.dst = p.ip->daddr;
	key.sport = udp->source;
	key.dport = udp->dest;
	key.origin = xdp_flow_origin(port, port_idx, p.ip->protocol);
	flow = find_flow(&key, &ref);
	if (flow == NULL)
		return NOT_OF_A_FLOW;
	idx = queue_idx * n_ports +
	      (flow->ways[way_of(ref)].word & XDP_RULE_TO);
	cell = bpf_map_lookup_elem(&cells, &idx);
	if (cell == NULL)
		return NOT_OF_A_FLOW;
	p.now_ns = is_simulated ? port->now_ns : bpf_ktime_get_coarse_ns();
	return forward(ctx, &p, ref, flow, queue, cell,
		       is_plain(&p, eth, end, n_bytes));
}

#endif

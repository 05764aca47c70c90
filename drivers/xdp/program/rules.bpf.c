/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The program on an interface with rules. A frame that an active rule matches
 * leaves from another interface; any other frame goes to the socket of its
 * queue, as in prog.bpf.c. Values that are constant after loading let the
 * verifier remove unused parts.
 *
 * Source: linux/Documentation/bpf/redirect.rst, map_devmap.rst.
 */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "program/rules.h"
#include "program/steer.bpf.h"

/* The whole set shares each of the maps below; sizes are set at load. */
struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} targets SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, __u64); /* a MAC address, in memory order */
	__type(value, __u32);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
} stations SEC(".maps");

/* A cache of two look-ups in stations: valid while the rules are theirs. */
enum { N_PAIRS = 1024 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct xdp_pair);
	__uint(max_entries, N_PAIRS);
} pairs SEC(".maps");

SHARED_ARRAY(slots, struct xdp_rule_slot, 1);
SHARED_ARRAY(ports, struct xdp_rule_port, 1);
SHARED_ARRAY(queues, struct xdp_rule_queue, 1);
SHARED_ARRAY(cells, struct xdp_rule_cell, 1);
SHARED_ARRAY(flows, struct xdp_flow_bucket, 2); /* or a larger power of two */
SHARED_ARRAY(ways, struct xdp_flow, 1);
SHARED_ARRAY(hops, struct xdp_hop, 1);
SHARED_ARRAY(old_ids, struct xdp_old_ids, 1);

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct xdp_rule_loss);
	__type(value, __u64);
	__uint(max_entries, 1);
} losses SEC(".maps");

const volatile __u32 port_idx;    /* in the set */
const volatile __u32 n_ports;     /* of the set */
const volatile __u32 first_queue; /* of the interface that the port has */
const volatile __u32 n_queues;    /* of the port */
const volatile __u32 queue_base;  /* of its first queue, in queues */
const volatile __u32 targets_id;  /* of the map */
const volatile bool has_partial_csums;
const volatile bool has_flows;
const volatile bool is_simulated; /* time is what the port's entry says */
const volatile __u32 n_buckets;   /* of flows */
const volatile __u32 magic;       /* of tickets */
const volatile __u32 id_step;     /* of struct xdp_rule_queue.next_id */

enum { TO_USER = XDP_REDIRECT + 1 }; /* to the socket, by handle() */

/* The rule of an id; NULL: another one is in its place by now. */
static __always_inline struct xdp_rule_slot *slot_of(__u32 id)
{
	const __u32 idx = id & ((1u << XDP_RULE_GENERATION_SHIFT) - 1);
	struct xdp_rule_slot *slot = bpf_map_lookup_elem(&slots, &idx);

	if (slot == NULL || slot->word >> XDP_RULE_GENERATION_SHIFT !=
				    id >> XDP_RULE_GENERATION_SHIFT)
		return NULL;
	return slot;
}

/* 1 + the id of a station's rule; 0: none. */
static __always_inline __u32 station_of(__u64 mac)
{
	const __u32 *id = bpf_map_lookup_elem(&stations, &mac);

	return id == NULL ? 0 : *id + 1;
}

static __always_inline struct xdp_pair *pair_of(__u64 source, __u64 target)
{
	const __u64 mixed =
		(source ^ target << 16 ^ target >> 32) * 0x9e3779b97f4a7c15;
	const __u32 idx = mixed >> 32 & (N_PAIRS - 1);

	return bpf_map_lookup_elem(&pairs, &idx);
}

/* Written once per tick: the cache line stays shared. */
static __always_inline void stamp(__u64 *ns, __u64 now_ns)
{
	if (*ns != now_ns)
		*ns = now_ns;
}

/* The word of the rule that says what becomes of the frame; 0: none does. */
static __always_inline __u32 match_station(const struct ethhdr *eth)
{
	const __u64 now_ns = bpf_ktime_get_coarse_ns();
	struct xdp_rule_slot *from, *to;
	__u64 source, target;
	struct xdp_pair *pair;

	if (eth->h_dest[0] & 1)
		return 0;
	/* Loads of 8 bytes: at least two bytes of the header follow each. */
	target = *(const __u64 *)eth->h_dest << 16 >> 16;
	source = *(const __u64 *)eth->h_source << 16 >> 16;
	pair = pair_of(source, target);
	if (pair == NULL)
		return 0;
	from = slot_of(pair->from - 1);
	to = slot_of(pair->to - 1);
	if (from == NULL || to == NULL || from->mac != source ||
	    to->mac != target) {
		pair->from = station_of(source);
		pair->to = station_of(target);
		from = slot_of(pair->from - 1);
		to = slot_of(pair->to - 1);
	}
	if (from == NULL || (from->word & XDP_RULE_TO) != port_idx)
		return 0;
	stamp(&from->seen_ns, now_ns);
	if (!(from->word & XDP_RULE_ACTIVE)) {
		stamp(&from->held_ns, now_ns);
		return 0;
	}
	if (to == NULL)
		return 0;
	if (!(to->word & XDP_RULE_ACTIVE))
		stamp(&to->held_ns, now_ns);
	/* It is where the frame comes from. */
	if ((to->word & XDP_RULE_TO) == port_idx)
		return to->word | XDP_RULE_DROP;
	return to->word;
}

static __always_inline __u32 match(const struct xdp_rule_port *port,
				   const struct ethhdr *eth)
{
	struct xdp_rule_slot *slot;

	if (port->any == 0)
		return match_station(eth);
	slot = slot_of(port->any - 1);
	return slot == NULL ? 0 : slot->word;
}

static __always_inline __u32 add_words(const void *bytes, __u32 n)
{
	const __u16 *words = bytes;
	__u32 sum = 0;

	for (__u32 i = 0; i < n; i++)
		sum += words[i];
	return sum;
}

/* Whether the sum at a place of the packet is no more than its pseudo header's.
 */
static __always_inline bool is_pseudo(const void *l4, const void *end,
				      __u8 protocol, __u32 sum)
{
	const __u16 *field = l4 + (protocol == IPPROTO_UDP ? 6 : 16);

	if ((const void *)(field + 1) > end)
		return false;
	sum += bpf_htons(protocol);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return *field == sum;
}

static __always_inline bool is_partial_v4(const struct iphdr *ip,
					  const void *end)
{
	enum { MORE_AND_OFFSET = 0x3fff };
	__u32 n_bytes;

	if ((const void *)(ip + 1) > end ||
	    (ip->protocol != IPPROTO_TCP && ip->protocol != IPPROTO_UDP) ||
	    (ip->frag_off & bpf_htons(MORE_AND_OFFSET)))
		return false;
	n_bytes = bpf_ntohs(ip->tot_len) - ip->ihl * 4;
	return is_pseudo((const void *)ip + ip->ihl * 4, end, ip->protocol,
			 add_words(&ip->saddr, 4) + bpf_htons(n_bytes));
}

static __always_inline bool is_partial_v6(const struct ipv6hdr *ip,
					  const void *end)
{
	if ((const void *)(ip + 1) > end)
		return false;
	if (ip->nexthdr == IPPROTO_HOPOPTS || ip->nexthdr == IPPROTO_ROUTING ||
	    ip->nexthdr == IPPROTO_DSTOPTS)
		return true; /* user space reads on */
	if (ip->nexthdr != IPPROTO_TCP && ip->nexthdr != IPPROTO_UDP)
		return false;
	return is_pseudo(ip + 1, end, ip->nexthdr,
			 add_words(&ip->saddr, 16) + ip->payload_len);
}

/*
 * Whether user space might find a partial checksum, which a redirect would lose
 * and mr_rx_burst() reports. True if in doubt: user space checks again.
 */
static __always_inline bool may_be_partial(const struct ethhdr *eth,
					   const void *end)
{
	const __u16 *type = (const void *)eth + 2 * ETH_ALEN;

	for (int i = 0; i < 2; i++)
		if (*type == bpf_htons(ETH_P_8021Q) ||
		    *type == bpf_htons(ETH_P_8021AD)) {
			type += 2;
			if ((const void *)(type + 1) > end)
				return false;
		}
	if (*type == bpf_htons(ETH_P_IP))
		return is_partial_v4((const void *)(type + 1), end);
	if (*type == bpf_htons(ETH_P_IPV6))
		return is_partial_v6((const void *)(type + 1), end);
	return *type == bpf_htons(ETH_P_8021Q) ||
	       *type == bpf_htons(ETH_P_8021AD);
}

#include "program/flow.bpf.h"

static __always_inline int send(struct xdp_md *ctx, const struct ethhdr *eth,
				const void *end, __u32 queue_idx, __u32 to,
				__u64 n_bytes)
{
	const bool is_sg = n_bytes > (__u64)(end - (const void *)eth);
	const __u32 cell_idx = queue_idx * n_ports + to;
	struct xdp_rule_queue *queue = bpf_map_lookup_elem(&queues, &queue_idx);
	struct xdp_rule_cell *cell = bpf_map_lookup_elem(&cells, &cell_idx);
	const struct xdp_rule_port *port = bpf_map_lookup_elem(&ports, &to);

	if (queue == NULL || cell == NULL || port == NULL)
		return TO_USER;
	if (port->max_bytes == 0) {
		queue->no_target++;
		return TO_USER;
	}
	if (n_bytes > (is_sg ? port->max_sg_bytes : port->max_bytes)) {
		queue->too_long++;
		return TO_USER;
	}
	if (has_partial_csums && may_be_partial(eth, end)) {
		queue->partial++;
		return TO_USER;
	}
	if (bpf_redirect_map(&targets, to, XDP_ABORTED) != XDP_REDIRECT) {
		queue->no_target++;
		return TO_USER;
	}
	cell->frames++;
	cell->bytes += n_bytes;
	return XDP_REDIRECT;
}

/* Apply the rules to a frame; its VLAN tag is in the frame. */
static __always_inline int apply(struct xdp_md *ctx,
				 const struct xdp_rule_port *port,
				 __u32 queue_idx, __u64 n_bytes)
{
	const void *end = (const void *)(long)ctx->data_end;
	const struct ethhdr *eth = (const void *)(long)ctx->data;
	struct xdp_rule_queue *queue;
	__u32 word;

	if (has_flows) {
		const int action = handle_flow(ctx, port, queue_idx, n_bytes);

		if (action != NOT_OF_A_FLOW)
			return action;
		end = (const void *)(long)ctx->data_end;
		eth = (const void *)(long)ctx->data;
	}
	if ((const void *)(eth + 1) > end)
		return TO_USER;
	word = match(port, eth);
	if (!(word & XDP_RULE_ACTIVE))
		return TO_USER;
	if (!(word & XDP_RULE_DROP))
		return send(ctx, eth, end, queue_idx, word & XDP_RULE_TO,
			    n_bytes);
	queue = bpf_map_lookup_elem(&queues, &queue_idx);
	if (queue != NULL)
		queue->dropped++;
	return XDP_DROP;
}

static __always_inline int handle(struct xdp_md *ctx, bool is_sg)
{
	const __u32 i = ctx->rx_queue_index - first_queue;
	const __u32 idx = port_idx;
	const struct xdp_rule_port *port = bpf_map_lookup_elem(&ports, &idx);
	int action;

	if (i >= n_queues || port == NULL || port->is_off)
		return steer(ctx);
	if (has_tags && !put_tag_back(ctx))
		return XDP_ABORTED;
	action = apply(ctx, port, queue_base + i,
		       is_sg ? bpf_xdp_get_buff_len(ctx) :
			       (__u64)(ctx->data_end - ctx->data));
	if (action == TO_USER)
		action = to_socket(ctx);
	/* A simulation has no sockets; it passes what they would get. */
	if ((has_tags || has_tags_in) && action == XDP_PASS && !is_simulated)
		take_tag_out(ctx);
	return action;
}

SEC("xdp")
int millrace_rules(struct xdp_md *ctx)
{
	return handle(ctx, false);
}

SEC("xdp.frags")
int millrace_rules_frags(struct xdp_md *ctx)
{
	return handle(ctx, true);
}

/*
 * A redirect only queues the frame. It is lost later if the kernel refuses it
 * (xdp_redirect_err) or the target does not take the whole batch
 * (xdp_devmap_xmit). Both cover all interfaces, so look up whose it is.
 */
struct net {
	__u64 net_cookie;
} __attribute__((preserve_access_index));

struct net_device {
	int ifindex;
	struct {
		struct net *net;
	} nd_net;
} __attribute__((preserve_access_index));

static __always_inline void count_loss(const struct net_device *from, __u32 to,
				       __u32 is_index, __u32 n)
{
	const struct xdp_rule_loss key = {
		.netns = from->nd_net.net->net_cookie,
		.from = (__u32)from->ifindex,
		.to = to,
		.is_index = is_index,
	};
	__u64 *n_lost = bpf_map_lookup_elem(&losses, &key);

	if (n_lost != NULL)
		__sync_fetch_and_add(n_lost, n);
}

SEC("tp_btf/xdp_devmap_xmit")
int BPF_PROG(millrace_xmit, const struct net_device *from,
	     const struct net_device *to, int n_sent, int n_dropped, int err)
{
	(void)n_sent;
	(void)err;
	if (n_dropped > 0)
		count_loss(from, (__u32)to->ifindex, 0, (__u32)n_dropped);
	return 0;
}

SEC("tp_btf/xdp_redirect_err")
int BPF_PROG(millrace_refused, const struct net_device *from,
	     const void *program, const void *target, int err, __u32 map_type,
	     __u32 map_id, __u32 index)
{
	(void)program;
	(void)target;
	(void)err;
	if (map_type == BPF_MAP_TYPE_DEVMAP && map_id == targets_id)
		count_loss(from, index, 1, 1);
	return 0;
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

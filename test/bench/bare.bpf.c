/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Baselines of ./mr bench offload: a plain redirect, and a translator of UDP
 * packets that checks nothing and whose sessions never expire.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum { FIRST_PORT = 1024, MAX_FLOWS = 65536 - FIRST_PORT };

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 2);
} targets SEC(".maps");

struct source {
	__u32 addr;
	__u32 port;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__type(key, struct source);
	__type(value, __u32); /* its port outside */
	__uint(max_entries, MAX_FLOWS);
} ports SEC(".maps");

const volatile __u32 first; /* ifindex; its frames go to targets[1] */
const volatile __u32 addr;  /* the new source address */
const volatile __u64 mac;   /* of the next hop, in memory order */
__u32 n_ports;

SEC("xdp")
int redirect(struct xdp_md *ctx)
{
	return (int)bpf_redirect_map(&targets, ctx->ingress_ifindex == first,
				     XDP_ABORTED);
}

static __always_inline __u16 fix_csum(__u16 csum, __u32 delta)
{
	__u32 sum = (__u16)~csum + (delta & 0xffff) + (delta >> 16);

	sum = (sum & 0xffff) + (sum >> 16);
	return (__u16) ~((sum & 0xffff) + (sum >> 16));
}

static __always_inline __u32 port_of(const struct iphdr *ip,
				     const struct udphdr *udp)
{
	const struct source source = { ip->saddr, udp->source };
	const __u32 *known = bpf_map_lookup_elem(&ports, &source);
	__u32 port;

	if (known != NULL)
		return *known;
	port = bpf_htons(FIRST_PORT + n_ports++ % MAX_FLOWS);
	bpf_map_update_elem(&ports, &source, &port, BPF_ANY);
	return port;
}

SEC("xdp")
int rewrite(struct xdp_md *ctx)
{
	const void *end = (const void *)(long)ctx->data_end;
	struct ethhdr *eth = (void *)(long)ctx->data;
	struct iphdr *ip = (void *)(eth + 1);
	struct udphdr *udp = (void *)(ip + 1);
	__u32 delta, port;

	if ((const void *)(udp + 1) > end || ip->protocol != IPPROTO_UDP)
		return XDP_DROP;
	port = port_of(ip, udp);
	delta = (__u16)~ip->saddr + (__u16)(~ip->saddr >> 16) + (__u16)addr +
		(addr >> 16);
	ip->check = fix_csum(ip->check,
			     delta + bpf_htons(0xfeff)); /* TTL minus 1 */
	udp->check = fix_csum(udp->check, delta + (__u16)~udp->source + port);
	ip->saddr = addr;
	ip->ttl--;
	udp->source = (__u16)port;
	__builtin_memcpy(eth->h_source, eth->h_dest, ETH_ALEN);
	*(__u32 *)eth->h_dest = (__u32)mac;
	*(__u16 *)&eth->h_dest[4] = (__u16)(mac >> 32);
	return redirect(ctx);
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

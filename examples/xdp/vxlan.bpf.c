/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * An XDP program of your own for an xdp: port. VXLAN goes to the port, all
 * other frames to the kernel.
 *
 *     clang -target bpf -O2 -g -c vxlan.bpf.c
 *     sudo ./l2fwd xdp:eth0,prog=vxlan.bpf.o xdp:eth1
 *
 * The port loads and attaches the program, and puts its sockets into the map
 * "xsks_map", with the queue number as key. The program is detached when the
 * process ends. For frames of several buffers, use the section "xdp.frags".
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum { VXLAN_PORT = 4789 }; /* RFC 7348 */

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 64); /* the port sets the size it needs */
} xsks_map SEC(".maps");

struct headers {
	struct ethhdr eth;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed));

SEC("xdp")
int vxlan(struct xdp_md *ctx)
{
	const struct headers *h = (void *)(long)ctx->data;

	if ((void *)(h + 1) > (void *)(long)ctx->data_end ||
	    h->eth.h_proto != bpf_htons(ETH_P_IP) || h->ip.ihl != 5 ||
	    h->ip.protocol != IPPROTO_UDP ||
	    (h->ip.frag_off & bpf_htons(0x3fff)) != 0 ||
	    h->udp.dest != bpf_htons(VXLAN_PORT))
		return XDP_PASS;
	/* Without a socket on the queue, the frame goes to the kernel. */
	return (int)bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_PASS);
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

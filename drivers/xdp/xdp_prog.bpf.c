/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The program on the interface: each frame to the socket of the queue that it
 * came in on; without a socket there, to the kernel as usual.
 *
 * Two of one body: only a program that says "frags" gets frames of several
 * buffers, and a veth lets its peer have an MTU above one page only with it.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1); /* set to the number of channels at load */
} sockets SEC(".maps");

SEC("xdp")
int millrace(struct xdp_md *ctx)
{
	return (int)bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

SEC("xdp.frags")
int millrace_frags(struct xdp_md *ctx)
{
	return (int)bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

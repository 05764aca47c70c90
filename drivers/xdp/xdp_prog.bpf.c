/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * The program on the interface: each frame to the socket of the queue that it
 * came in on; without a socket there, to the kernel as usual.
 *
 * Each in two of one body: only a program that says "frags" gets frames of
 * several buffers, and a veth lets its peer have an MTU above one page only with
 * it.
 */
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "xdp_steer.bpf.h"

SEC("xdp")
int millrace(struct xdp_md *ctx)
{
	return steer(ctx);
}

SEC("xdp.frags")
int millrace_frags(struct xdp_md *ctx)
{
	return steer(ctx);
}

/* For libxdp's dispatcher: the kernel extends no program by one that can change
 * the frame. */
SEC("xdp")
int millrace_plain(struct xdp_md *ctx)
{
	return (int)bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

SEC("xdp.frags")
int millrace_plain_frags(struct xdp_md *ctx)
{
	return (int)bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

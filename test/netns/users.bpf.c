/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Programs of users: several (USERS), one (SHARED), and one whose map is of
 * another type (WRONG).
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
#ifdef WRONG
	__uint(type, BPF_MAP_TYPE_ARRAY);
#else
	__uint(type, BPF_MAP_TYPE_XSKMAP);
#endif
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 1);
} xsks_map SEC(".maps");

#ifndef WRONG
SEC("xdp")
int all(struct xdp_md *ctx)
{
	return (int)bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_PASS);
}

#ifdef USERS
SEC("xdp.frags")
int all_frags(struct xdp_md *ctx)
{
	return (int)bpf_redirect_map(&xsks_map, ctx->rx_queue_index, XDP_PASS);
}

/* The verifier rejects it: it reads past the end of a frame. */
SEC("xdp/blind")
int blind(struct xdp_md *ctx)
{
	const char *frame = (void *)(long)ctx->data;

	return frame[1] == 1 ? XDP_DROP :
			       (int)bpf_redirect_map(&xsks_map, 0, XDP_PASS);
}
#endif
#else
SEC("xdp")
int all(struct xdp_md *ctx)
{
	const __u32 key = 0;

	(void)ctx;
	return bpf_map_lookup_elem(&xsks_map, &key) ? XDP_PASS : XDP_DROP;
}
#endif

char licence_text[] SEC("license") = "Dual BSD/GPL";

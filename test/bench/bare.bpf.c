/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* What ./mr bench offload compares with: a redirect, and nothing else. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_DEVMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries, 2);
} targets SEC(".maps");

const volatile __u32 first; /* ifindex; frames of it go to targets[1] */

SEC("xdp")
int bare(struct xdp_md *ctx)
{
	return (int)bpf_redirect_map(&targets, ctx->ingress_ifindex == first,
				     XDP_ABORTED);
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

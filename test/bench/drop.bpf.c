/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* A receiver that drops each frame at once: the cheapest possible. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("xdp")
int drop(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_DROP;
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

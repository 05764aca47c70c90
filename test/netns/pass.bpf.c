/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/* Somebody else's XDP program, which must stay where it is. */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

/* A slow host: frames that arrive while it handles one wait in its ring, or are
 * lost. */
SEC("slow")
int take_long(struct xdp_md *ctx)
{
	const __u64 until_ns = bpf_ktime_get_ns() + 50000;

	(void)ctx;
	for (int i = 0; i < 4096 && bpf_ktime_get_ns() < until_ns; i++)
		;
	return XDP_PASS;
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

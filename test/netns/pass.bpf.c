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

char licence_text[] SEC("license") = "Dual BSD/GPL";

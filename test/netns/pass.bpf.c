/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * Somebody else's XDP program, which must stay where it is (PASS), and a host
 * that takes long for a frame: what is sent to it meanwhile waits in its ring,
 * or is lost (SLOW).
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("xdp")
int pass(struct xdp_md *ctx)
{
#ifdef SLOW
	const __u64 until_ns = bpf_ktime_get_ns() + 50000;

	for (int i = 0; i < 4096 && bpf_ktime_get_ns() < until_ns; i++)
		;
#endif
	(void)ctx;
	return XDP_PASS;
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

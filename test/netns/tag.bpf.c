/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * On a host's way out: tag each frame as a VLAN device would. The tag lies
 * beside the frame until a device without tx VLAN offload puts it in.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum { VLAN = 5 };

SEC("tc")
int tag(struct __sk_buff *skb)
{
	bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), VLAN);
	return 0; /* TC_ACT_OK */
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

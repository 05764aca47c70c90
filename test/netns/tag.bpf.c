/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-3-Clause) */
/*
 * What a VLAN device on a host's interface would do: each frame that leaves
 * gets a tag, outside of the frame until a device without tx VLAN offload puts
 * it in; frames that arrive lose theirs.
 */
#include <linux/bpf.h>
#include <linux/if_ether.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

enum { TCI = 3 << 13 | 5 }; /* priority 3, VLAN 5 */

SEC("tc")
int tag(struct __sk_buff *skb)
{
	bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), TCI);
	return 0; /* TC_ACT_OK */
}

SEC("classifier")
int untag(struct __sk_buff *skb)
{
	bpf_skb_vlan_pop(skb);
	return 0;
}

char licence_text[] SEC("license") = "Dual BSD/GPL";

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Redirect a frame to the socket of its queue, and restore a VLAN tag that the
 * kernel holds outside the frame: on a veth whose peer leaves tagging to the
 * device, or on a NIC that strips tags.
 *
 * Source: linux/Documentation/networking/xdp-rx-metadata.rst.
 */
#ifndef XDP_STEER_BPF_H
#define XDP_STEER_BPF_H

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries,
	       1); /* set at load, or the map is replaced */
} sockets SEC(".maps");

const volatile bool has_tags;    /* the device reports tags outside */
const volatile bool has_tags_in; /* and the filter's code inserted them */

enum { TAG_BYTES = 4 };

/* The tag that rx_vlan_tag() returns; tests set it. */
struct {
	__u16 proto; /* network order; 0: no tag */
	__u16 tci;
} simulated_tag;

/*
 * A placeholder for bpf_xdp_metadata_rx_vlan_tag(), which replaces it in
 * programs bound to a device (xdp_bound.c), so each argument must be passed.
 */
static __attribute__((noinline)) int rx_vlan_tag(const struct xdp_md *ctx,
						 __u16 *proto, __u16 *tci)
{
	asm volatile("" : : "r"(ctx)); /* passed, although unused */
	if (simulated_tag.proto == 0)
		return -1;
	*proto = simulated_tag.proto;
	*tci = simulated_tag.tci;
	return 0;
}

/* Write the tag, if the kernel holds one, into the frame. False: no room. */
static __always_inline bool put_tag_back(struct xdp_md *ctx)
{
	__u16 proto = 0, tci = 0;
	__u32 *words;

	if (rx_vlan_tag(ctx, &proto, &tci) != 0)
		return true;
	if (bpf_xdp_adjust_head(ctx, -TAG_BYTES) != 0)
		return false;
	words = (void *)(long)ctx->data;
	if ((void *)(words + 4) > (void *)(long)ctx->data_end)
		return false;
	for (int i = 0; i < 3; i++) /* both addresses */
		words[i] = words[i + 1];
	words[3] = proto | (__u32)bpf_htons(tci) << 16;
	return true;
}

/* Remove an inserted tag: the kernel gets the frame, and still has its tag. */
static __always_inline void take_tag_out(struct xdp_md *ctx)
{
	__u32 *words = (void *)(long)ctx->data;
	__u16 proto = 0, tci = 0;

	if ((void *)(words + 4) > (void *)(long)ctx->data_end ||
	    rx_vlan_tag(ctx, &proto, &tci) != 0)
		return;
	for (int i = 3; i > 0; i--)
		words[i] = words[i - 1];
	(void)bpf_xdp_adjust_head(ctx, TAG_BYTES);
}

/* Redirect to the socket; without one, pass the frame unchanged. */
static __always_inline int steer(struct xdp_md *ctx)
{
	const int action =
		(int)bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);

	if (has_tags && action == XDP_REDIRECT && !put_tag_back(ctx))
		return XDP_ABORTED;
	if (has_tags_in && action != XDP_REDIRECT)
		take_tag_out(ctx);
	return action;
}

#endif

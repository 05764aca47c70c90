/* SPDX-License-Identifier: GPL-2.0-only OR BSD-3-Clause */
/*
 * Redirect a frame to the socket of its queue, with metadata if the port asks
 * for it, and restore a VLAN tag that the kernel holds outside the frame: on a
 * veth whose peer leaves tagging to the device, or on a NIC that strips tags.
 *
 * Source: linux/Documentation/networking/xdp-rx-metadata.rst.
 */
#ifndef XDP_PROGRAM_STEER_BPF_H
#define XDP_PROGRAM_STEER_BPF_H

#include <stddef.h>

#include "program/rx_meta.h"

/* An array that the driver maps as well. */
#define SHARED_ARRAY(name, element, n)                                         \
	struct {                                                               \
		__uint(type, BPF_MAP_TYPE_ARRAY);                              \
		__type(key, __u32);                                            \
		__type(value, element);                                        \
		__uint(max_entries, n);                                        \
		__uint(map_flags, BPF_F_MMAPABLE);                             \
	} name SEC(".maps")

struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__type(key, __u32);
	__type(value, __u32);
	__uint(max_entries,
	       1); /* set at load, or the map is replaced */
} sockets SEC(".maps");

/* Frames that arrived on a queue without a socket, and were dropped. */
SHARED_ARRAY(unserved, __u64, 1);

const volatile bool passes_unserved; /* option partial: not dropped */

const volatile bool has_tags;    /* the device reports tags outside */
const volatile bool has_tags_in; /* and the filter's code inserted them */

const volatile __u32 meta_magic; /* of struct xdp_rx_meta; 0: not asked for */

enum { TAG_BYTES = 4 };

/* What the functions below return; tests set it. */
struct {
	__u16 proto; /* network order; 0: no tag */
	__u16 tci;
} simulated_tag;
struct xdp_rx_meta simulated_meta; /* without magic */

/*
 * Functions in place of the kfuncs bpf_xdp_metadata_rx_...(), which replace
 * them in programs bound to a device (bound.c), so each argument must be
 * passed. The "memory" clobber makes the compiler keep the caller's first
 * values of *a and *b: without CAP_PERFMON, the verifier refuses to pass
 * unwritten stack to a kfunc.
 */
#define STANDS_FOR(kfunc, ctx, a, b)                                           \
	asm volatile("r0 = %0"                                                 \
		     :                                                         \
		     : "i"(XDP_KFUNC_MARK + (kfunc)), "r"(ctx), "r"(a), "r"(b) \
		     : "r0", "memory")

static __attribute__((noinline)) int rx_timestamp(const struct xdp_md *ctx,
						  __u64 *ns)
{
	STANDS_FOR(XDP_KFUNC_TIME, ctx, ns, ns);
	if (!(simulated_meta.word & XDP_RX_META_TIME))
		return -1;
	*ns = simulated_meta.ns;
	return 0;
}

static __attribute__((noinline)) int rx_hash(const struct xdp_md *ctx,
					     __u32 *hash, __u32 *type)
{
	STANDS_FOR(XDP_KFUNC_HASH, ctx, hash, type);
	if (!(simulated_meta.word & XDP_RX_META_HASH))
		return -1;
	*hash = simulated_meta.hash;
	*type = simulated_meta.word >> XDP_RX_META_TYPE_SHIFT;
	return 0;
}

static __attribute__((noinline)) int rx_vlan_tag(const struct xdp_md *ctx,
						 __u16 *proto, __u16 *tci)
{
	STANDS_FOR(XDP_KFUNC_TAG, ctx, proto, tci);
	if (simulated_tag.proto == 0)
		return -1;
	*proto = simulated_tag.proto;
	*tci = simulated_tag.tci;
	return 0;
}

/*
 * A slot of the stack, which is first written as a whole. Without CAP_PERFMON,
 * old kernels (6.1) refuse to write a part of a slot that holds a number, even
 * in a branch that is never taken, and the compiler reuses slots between
 * functions.
 */
union slot {
	__u64 whole;
	__u32 u32;
	__u16 u16;
};

/* Write the metadata in front of the frame, if there is room. */
static __always_inline void put_meta(struct xdp_md *ctx)
{
	union slot hash = { 0 }, type = { 0 };
	__u64 word = meta_magic, ns = 0;
	struct xdp_rx_meta *to;

	if (rx_hash(ctx, &hash.u32, &type.u32) == 0)
		word |= XDP_RX_META_HASH | (type.u32 & XDP_RX_META_TYPES)
						   << XDP_RX_META_TYPE_SHIFT;
	/* A veth reports the time 0 for frames that no NIC received. */
	if (rx_timestamp(ctx, &ns) == 0 && (__s64)ns > 0)
		word |= XDP_RX_META_TIME;
	if (bpf_xdp_adjust_meta(ctx, -(int)sizeof(*to)) != 0)
		return;
	to = (void *)(long)ctx->data_meta;
	if ((void *)(to + 1) > (void *)(long)ctx->data)
		return;
	to->word = (__u32)word;
	to->hash = hash.u32;
	to->ns = ns;
}

/* Write the tag, if the kernel holds one, into the frame. False: no room. */
static __always_inline bool put_tag_back(struct xdp_md *ctx)
{
	union slot proto = { 0 }, tci = { 0 };
	__u32 *words;

	if (rx_vlan_tag(ctx, &proto.u16, &tci.u16) != 0)
		return true;
	if (bpf_xdp_adjust_head(ctx, -TAG_BYTES) != 0)
		return false;
	words = (void *)(long)ctx->data;
	if ((void *)(words + 4) > (void *)(long)ctx->data_end)
		return false;
	for (int i = 0; i < 3; i++) /* both addresses */
		words[i] = words[i + 1];
	words[3] = proto.u16 | (__u32)bpf_htons(tci.u16) << 16;
	return true;
}

/* Remove an inserted tag: the kernel gets the frame, and still has its tag. */
static __always_inline void take_tag_out(struct xdp_md *ctx)
{
	__u32 *words = (void *)(long)ctx->data;
	union slot proto = { 0 }, tci = { 0 };

	if ((void *)(words + 4) > (void *)(long)ctx->data_end ||
	    rx_vlan_tag(ctx, &proto.u16, &tci.u16) != 0)
		return;
	for (int i = 3; i > 0; i--)
		words[i] = words[i - 1];
	(void)bpf_xdp_adjust_head(ctx, TAG_BYTES);
}

/*
 * Redirect to the socket of the queue. A queue without one appeared after the
 * port was opened: its frames must not bypass the port.
 */
static __always_inline int redirect_or_drop(struct xdp_md *ctx)
{
	const int action =
		(int)bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
	const __u32 zero = 0;
	__u64 *n;

	if (action == XDP_REDIRECT || passes_unserved)
		return action;
	n = bpf_map_lookup_elem(&unserved, &zero);
	if (n != NULL)
		__sync_fetch_and_add(n, 1);
	return XDP_DROP;
}

/* The same, with metadata. */
static __always_inline int to_socket(struct xdp_md *ctx)
{
	const int action = redirect_or_drop(ctx);

	/* Before anything is written in front of the frame, where some devices
	 * put its time. */
	if (meta_magic != 0 && action == XDP_REDIRECT)
		put_meta(ctx);
	return action;
}

/* The same, with the tag. Frames for the kernel are not changed. */
static __always_inline int steer(struct xdp_md *ctx)
{
	const int action = to_socket(ctx);

	if (has_tags && action == XDP_REDIRECT && !put_tag_back(ctx))
		return XDP_ABORTED;
	if (has_tags_in && action != XDP_REDIRECT)
		take_tag_out(ctx);
	return action;
}

#endif

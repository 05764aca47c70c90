/* SPDX-License-Identifier: BSD-3-Clause */
/* A frame's metadata, from the XDP program to mr_rx_burst_meta(). */
#ifndef XDP_PROGRAM_RX_META_H
#define XDP_PROGRAM_RX_META_H

#include <linux/types.h>

/* The kfuncs that read it, in the order of the bits NETDEV_XDP_RX_METADATA_*.
 */
enum xdp_kfunc {
	XDP_KFUNC_TIME,
	XDP_KFUNC_HASH,
	XDP_KFUNC_TAG,
	XDP_N_KFUNCS,
};

/* Marks each function that stands for a kfunc, plus the kfunc's number. */
enum { XDP_KFUNC_MARK = 0x6d720000 };

/*
 * Precedes the first byte of a frame or, if it has one, its struct
 * mr_flow_ticket.
 */
struct xdp_rx_meta {
	__u32 word; /* what is set, and the port's magic number */
	__u32 hash;
	__u64 ns;
};

/* In word; bit 0 is set in each ticket. */
enum {
	XDP_RX_META_HASH = 1 << 1,
	XDP_RX_META_TIME = 1 << 2,
	XDP_RX_META_TYPE_SHIFT = 4, /* of the hash: MR_HASH_* */
	XDP_RX_META_TYPES = 0x3f,
	XDP_RX_META_MAGIC_SHIFT = 12,
};

#endif

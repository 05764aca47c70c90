/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's AF_XDP interface, in own words: the headers of the build machine
 * may be older than the kernel that the program runs on, so what a kernel can
 * do is found out at run time and never by #ifdef.
 *
 * Source: linux/include/uapi/linux/if_xdp.h, Documentation/networking/
 * af_xdp.rst, xsk-tx-metadata.rst.
 */
#ifndef XDP_UAPI_H
#define XDP_UAPI_H

#include <stdint.h>

enum {
	SOL_XSK = 283, /* SOL_XDP */

	/* setsockopt(), getsockopt() */
	XSK_MMAP_OFFSETS = 1,
	XSK_RX_RING = 2,
	XSK_TX_RING = 3,
	XSK_UMEM_REG = 4,
	XSK_FILL_RING = 5,
	XSK_COMP_RING = 6,
	XSK_STATISTICS = 7,
	XSK_MAX_TX_BUDGET = 9, /* 6.17 */

	/* bind() flags */
	XSK_SHARED_UMEM = 1 << 0,
	XSK_COPY = 1 << 1,
	XSK_ZEROCOPY = 1 << 2,
	XSK_NEED_WAKEUP = 1 << 3,
	XSK_USE_SG = 1 << 4, /* 6.6 */

	/* ring flags */
	XSK_RING_NEED_WAKEUP = 1 << 0,

	/* descriptor options */
	XSK_PKT_CONTD = 1 << 0,
	XSK_TX_METADATA = 1 << 1, /* 6.8 */

	/* XSK_UMEM_REG flags */
	XSK_UMEM_TX_METADATA_LEN = 1 << 2, /* 6.10, before: not needed */

	/* struct xsk_tx_meta flags */
	XSK_TXMD_TIMESTAMP = 1 << 0,
	XSK_TXMD_CHECKSUM = 1 << 1,
	XSK_TXMD_LAUNCH_TIME = 1 << 2,

	/* Bytes that the kernel keeps free before a received frame. */
	XSK_PACKET_HEADROOM = 256,
	/* Bytes that it keeps behind one with SG (struct skb_shared_info). */
	XSK_SG_TAILROOM = 320,
};

/* mmap() offsets of the four rings */
#define XSK_PGOFF_RX 0ull
#define XSK_PGOFF_TX 0x80000000ull
#define XSK_PGOFF_FILL 0x100000000ull
#define XSK_PGOFF_COMP 0x180000000ull

struct xsk_ring_offsets {
	uint64_t producer, consumer, desc, flags;
};

struct xsk_offsets {
	struct xsk_ring_offsets rx, tx, fill, comp;
};

struct xsk_umem_config {
	uint64_t addr, len;
	uint32_t chunk_size, headroom, flags, tx_metadata_len;
};

struct xsk_statistics {
	uint64_t rx_dropped, rx_invalid_descs, tx_invalid_descs;
	uint64_t rx_ring_full, rx_fill_ring_empty, tx_ring_empty;
};

struct xsk_address { /* struct sockaddr_xdp */
	uint16_t family, flags;
	uint32_t ifindex, queue_id, shared_umem_fd;
};

/* Lies before the frame's first byte; 24 bytes since 6.15, 16 before. */
struct xsk_tx_meta {
	uint64_t flags;
	union {
		struct {
			uint16_t csum_start, csum_offset;
		};
		uint64_t sent_ns; /* by the kernel, before the completion */
	};
	uint64_t launch_time;
};

#endif

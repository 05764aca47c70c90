/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_FRAME_H
#define MILLRACE_FRAME_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/api.h>

MR_BEGIN_DECLS

/**
 * @file
 * Frames, passed by value; their metadata; their owners.
 */

struct mr_cache;

/**
 * One entry of a frame: where its bytes lie in the region.
 *
 * 16 bytes, passed by value in arrays. A frame is 1 to MR_MAX_SEGS entries in
 * order, usually one; all but the last have MR_FRAME_MORE. The layout is that
 * of the kernel's struct xdp_desc, which makes conversion cheap but does not
 * remove it: a driver masks the flags and checks every entry before posting it.
 * Forwarding a frame reads none of its bytes.
 *
 * Each entry owns one reference to its page. The pool's headroom and tailroom
 * around the data belong to the frame. A frame with several owners is
 * read-only, headroom included, until mr_frame_unshare().
 */
struct mr_frame {
	uint64_t addr;  /**< first byte, as an offset in the region */
	uint32_t len;   /**< bytes in this entry, without FCS */
	uint32_t flags; /**< MR_FRAME_*; bits 0 to 15 are the kernel's */
};

enum {
	MR_FRAME_MORE = 1u << 0, /**< the frame continues in the next entry */
	/* Common checksum states, on the first entry of a frame. */
	MR_FRAME_CSUM_VALID = 1u << 16,   /**< rx: the device verified it */
	MR_FRAME_CSUM_PARTIAL = 1u << 17, /**< L4: pseudo-header sum only */
};

/** Entries of the longest frame, in any driver (Linux: MAX_SKB_FRAGS + 1). */
enum { MR_MAX_SEGS = 18 };

#ifdef __cplusplus
static_assert(sizeof(struct mr_frame) == 16, "as struct xdp_desc");
#else
_Static_assert(sizeof(struct mr_frame) == 16, "as struct xdp_desc");
_Static_assert(offsetof(struct mr_frame, flags) == 12, "as struct xdp_desc");
#endif

/** Which members of a struct mr_meta are set. */
enum {
	MR_META_RSS_HASH = 1u << 0,
	MR_META_RX_TIME = 1u << 1,
	MR_META_VLAN = 1u << 2,
	MR_META_CSUM = 1u << 3,
	MR_META_GSO = 1u << 4,
	MR_META_LAUNCH_TIME = 1u << 5,
	MR_META_TX_TIME = 1u << 6,
	MR_META_MARK = 1u << 7,
};

/**
 * What an RSS hash covers, as far as the device says; 0: unknown. Source: the
 * values of the kernel's enum xdp_rss_hash_type.
 */
enum {
	MR_HASH_IPV4 = 1u << 0,
	MR_HASH_IPV6 = 1u << 1,
	MR_HASH_L4 = 1u << 3, /**< ports, too */
	MR_HASH_TCP = 1u << 4,
	MR_HASH_UDP = 1u << 5,
};

/**
 * How to segment a frame that is longer than the MTU: done by the device or, if
 * it cannot, by mr_tx_burst_meta(). The frame has MR_FRAME_CSUM_PARTIAL,
 * MR_META_CSUM and MR_META_GSO; its checksum field holds the pseudo-header sum
 * with the length of the whole, as Linux leaves it. Source: the values of
 * struct virtio_net_hdr (VIRTIO 1.2, section 5.1.6).
 */
enum mr_gso_type {
	MR_GSO_TCPV4 = 1,
	MR_GSO_TCPV6 = 4,
	MR_GSO_UDP = 5, /**< datagrams of gso_bytes each (UDP_L4) */
};

/**
 * A clock in struct mr_meta that is not a clockid_t: the device's own, such as
 * a NIC's PTP hardware clock.
 */
enum { MR_CLOCK_DEVICE = 0xffff };

/**
 * Metadata of one frame: passed by value with its first entry, never stored in
 * a page. Initialise it to zero on tx; on rx, members that valid does not name
 * are undefined. tx_ns is for mr_txq_times().
 */
struct mr_meta {
	uint32_t valid;             /**< MR_META_*: which members are set */
	uint32_t rss_hash;          /**< rx */
	uint32_t hash_type;         /**< of rss_hash: MR_HASH_*, or 0 */
	uint32_t mark;              /**< the caller's, for mr_txq_times(); no
				     *   driver sets it on rx yet */
	uint64_t rx_ns;             /**< rx: when it arrived */
	uint64_t launch_ns;         /**< tx: send it not earlier */
	uint64_t tx_ns;             /**< completion: when it was sent */
	uint16_t rx_clock;          /**< of rx_ns: a clockid_t, or
				     *   MR_CLOCK_DEVICE */
	uint16_t launch_clock;      /**< of launch_ns */
	uint16_t tx_clock;          /**< of tx_ns, as rx_clock */
	uint16_t vlan_proto;        /**< host order: 0x8100, 0x88a8; on tx,
				     *   0 is 0x8100 */
	uint16_t vlan_tci;          /**< host order */
	uint16_t csum_start_bytes;  /**< from the first byte of the frame */
	uint16_t csum_offset_bytes; /**< from csum_start_bytes */
	uint16_t gso_bytes;         /**< payload of one segment, 0: none */
	uint16_t gso_type;          /**< enum mr_gso_type */
	uint16_t reserved[3];
};

#ifdef __cplusplus
static_assert(sizeof(struct mr_meta) == 64, "one cache line");
#else
_Static_assert(sizeof(struct mr_meta) == 64, "one cache line");
#endif

/**
 * How many of the first @p n entries belong to whole frames: @p n without the
 * entries of a truncated frame at the end.
 *
 * @return 0..n
 *
 * Thread: any.
 */
static inline uint32_t mr_frame_n_whole(const struct mr_frame *frames,
					uint32_t n)
{
	while (n > 0 && (frames[n - 1].flags & MR_FRAME_MORE))
		n--;
	return n;
}

/**
 * How many entries the frame at @p frames has.
 *
 * @param frames  a whole frame: one of its entries lacks MR_FRAME_MORE
 *
 * @return 1 or more
 *
 * Thread: any. Cost: a load per entry.
 */
static inline uint32_t mr_frame_n_entries(const struct mr_frame *frames)
{
	uint32_t n = 1;

	while (frames[n - 1].flags & MR_FRAME_MORE)
		n++;
	return n;
}

/**
 * How many frames end in the first @p n entries.
 *
 * @return 0..n
 *
 * Thread: any. Cost: a load per entry.
 */
static inline uint32_t mr_frame_n_frames(const struct mr_frame *frames,
					 uint32_t n)
{
	uint32_t n_frames = 0;

	for (uint32_t i = 0; i < n; i++)
		n_frames += !(frames[i].flags & MR_FRAME_MORE);
	return n_frames;
}

/**
 * How many bytes the first @p n entries hold together.
 *
 * @return bytes; cannot overflow, whatever the entries' lengths
 *
 * Thread: any. Cost: a load per entry.
 */
static inline uint64_t mr_frame_n_bytes(const struct mr_frame *frames,
					uint32_t n)
{
	uint64_t n_bytes = 0;

	for (uint32_t i = 0; i < n; i++)
		n_bytes += frames[i].len;
	return n_bytes;
}

/**
 * The bytes of one entry.
 *
 * @param base   mr_region_base() of the frame's region
 * @param frame  one entry
 *
 * @return pointer to frame->len bytes; read-only if the frame is shared
 *
 * Owner: that of the entry, for as long as it owns it. Thread: the owner's.
 */
static inline uint8_t *mr_frame_data(void *base, const struct mr_frame *frame)
{
	return (uint8_t *)base + frame->addr;
}

/**
 * Extend a frame at its front, into the headroom.
 *
 * @param         cache    the calling thread's cache of the frame's pool
 * @param[in,out] frame    first entry of the frame
 * @param         n_bytes  bytes to add; their content is unspecified
 *
 * @return 0, or, with the entry unchanged,
 *   -ENOSPC  fewer than @p n_bytes are left before the data in its buffer
 *   -EROFS   the frame has another owner; mr_frame_unshare() it first
 *   -EINVAL  the entry does not belong to the pool of @p cache
 *
 * Owner: the caller, before and after. Thread: the one that uses @p cache.
 * Cost:   no lock, no system call, no read of packet memory.
 */
MR_API int mr_frame_push(struct mr_cache *cache, struct mr_frame *frame,
			 uint32_t n_bytes);

/**
 * Shorten a frame at its front; also a shared one: only this entry changes.
 *
 * @return 0, or -ENOSPC if the entry has no more than @p n_bytes
 *
 * Owner: the caller, before and after. Thread: any. Cost: negligible.
 */
MR_API int mr_frame_pull(struct mr_frame *frame, uint32_t n_bytes);

/**
 * Extend a frame at its end, into the tailroom.
 *
 * @param frame  last entry of the frame; else as mr_frame_push()
 *
 * @return as mr_frame_push(), -ENOSPC for the bytes after the data
 *
 * Owner, thread, cost: as mr_frame_push().
 */
MR_API int mr_frame_put(struct mr_cache *cache, struct mr_frame *frame,
			uint32_t n_bytes);

/**
 * Shorten a frame at its end; @p frame is its last entry. Allowed on a shared
 * frame, as mr_frame_pull().
 *
 * @return 0, or -ENOSPC if the entry has no more than @p n_bytes
 *
 * Owner: the caller, before and after. Thread: any. Cost: negligible.
 */
MR_API int mr_frame_trim(struct mr_frame *frame, uint32_t n_bytes);

/**
 * Add one owner to each of @p n entries, for flooding and mirroring. The frames
 * are then read-only for all owners.
 *
 * @return 0, or, with none added,
 *   -EOVERFLOW  a buffer has the maximum number of owners (254)
 *   -EINVAL     an entry belongs to no pool of the region
 *
 * Owner:  the caller, of one more reference per entry; mr_tx_burst() or
 *         mr_frame_free_bulk() of a copy of the entry takes it.
 * Thread: the one that uses @p cache.
 * Cost:   one atomic per entry. From the first call on, each bulk free to a
 *         cache of that pool checks the owners of each page, which is a third
 *         of its cost.
 */
MR_API int mr_frame_ref(struct mr_cache *cache, const struct mr_frame *frames,
			uint32_t n);

/**
 * Make the frame of @p n entries writable: if it has other owners, copy it to
 * fresh buffers and release this owner's references. Each entry keeps the room
 * before and after it that it has in its buffer.
 *
 * @param[in,out] frames  one whole frame; addresses change if it was copied
 * @param         n       its entries, 1..MR_MAX_SEGS
 *
 * @return 0, or, with nothing changed,
 *   -ENOMEM  no free page, or an entry needs more than one: it lies in a block
 *            of several pages, or is a frag longer than a page
 *   -EINVAL  the frame does not belong to the pool of @p cache, n is out of
 *            range, or an entry is longer than its buffer
 *
 * Owner:  the caller, exclusively after success.
 * Thread: the one that uses @p cache.
 * Cost:   nothing if the caller is the exclusive owner; else a copy of the
 *         frame.
 */
MR_API int mr_frame_unshare(struct mr_cache *cache, struct mr_frame *frames,
			    uint32_t n);

/**
 * Copy @p n_bytes of a frame, from offset @p at, to @p to. The frame must have
 * them.
 *
 * @param base  mr_region_base() of the frame's region
 *
 * Owner: unchanged. Thread: the owner's. Cost: the copy.
 */
MR_API void mr_frame_copy_bytes(void *base, const struct mr_frame *frames,
				uint32_t at, void *to, uint32_t n_bytes);

/**
 * Free the buffers of @p n entries to the pool of @p cache.
 *
 * @param cache   the calling thread's cache
 * @param frames  @p n entries; they need not be whole frames
 * @param n       entries, 0 allowed
 *
 * Owner:  the pool, of one reference per entry; a buffer is free when its last
 *         owner has freed it. The array stays the caller's.
 * Thread: the one that uses @p cache, whoever allocated the buffers: they stay
 *         in @p cache, overflow goes to the pool's depot.
 * Cost:   no system call, no read of packet memory; one CAS per magazine. Pages
 *         of other pools of the region are collected in open magazines, which
 *         return to their pool's depot. If a depot has no empty magazine left
 *         (recycle_ring_full), takes the page allocator's lock: may sleep.
 */
MR_API void mr_frame_free_bulk(struct mr_cache *cache,
			       const struct mr_frame *frames, uint32_t n);

MR_END_DECLS

#endif

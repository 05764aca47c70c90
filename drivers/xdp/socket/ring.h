/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The four rings that a socket shares with the kernel, as single-producer
 * single-consumer rings with counters that run freely and wrap at 2^32.
 *
 * fill, tx: we produce (reserve room, write, submit). rx, comp: we consume
 * (peek, release). cached is our side's counter; seen is our copy of the
 * kernel's, read again only when it does not suffice.
 *
 * Order: our release of producer pairs with the kernel's acquire of it and
 * hands over the entries; our acquire of the kernel's producer pairs with its
 * release; our release of consumer hands the places back.
 * Source: linux/Documentation/networking/af_xdp.rst, net/xdp/xsk_queue.h.
 */
#ifndef XDP_SOCKET_RING_H
#define XDP_SOCKET_RING_H

#include <stdbool.h>
#include <string.h>

#include <millrace/frame.h>

#include "uapi.h"

struct xring {
	uint32_t *producer;
	uint32_t *consumer;
	uint32_t *flags;
	void *entries; /* struct mr_frame (rx, tx), uint64_t (fill, comp) */
	uint32_t cached;
	uint32_t seen;
	uint32_t n_entries;
	uint32_t mask;
	void *map;
	size_t map_bytes;
};

static inline bool xring_needs_wakeup(const struct xring *ring)
{
	return __atomic_load_n(ring->flags, __ATOMIC_RELAXED) &
	       XSK_RING_NEED_WAKEUP;
}

/* Entries that we may consume, up to n. */
static inline uint32_t xring_n_ready(struct xring *ring, uint32_t n)
{
	if (ring->seen - ring->cached < n)
		ring->seen = __atomic_load_n(ring->producer, __ATOMIC_ACQUIRE);
	const uint32_t n_ready = ring->seen - ring->cached;

	return n_ready < n ? n_ready : n;
}

static inline void xring_release(struct xring *ring, uint32_t n)
{
	ring->cached += n;
	__atomic_store_n(ring->consumer, ring->cached, __ATOMIC_RELEASE);
}

/* Copy up to n entries of rx without consuming them. */
static inline uint32_t xring_peek_frames(struct xring *ring,
					 struct mr_frame *frames, uint32_t n)
{
	const struct mr_frame *entries = ring->entries;
	const uint32_t n_ready = xring_n_ready(ring, n);
	const uint32_t at = ring->cached & ring->mask;
	const uint32_t n_first =
		ring->n_entries - at < n_ready ? ring->n_entries - at : n_ready;

	if (n_ready == 0) /* then there may be no array to copy to */
		return 0;
	memcpy(frames, entries + at, n_first * sizeof(frames[0]));
	if (n_first < n_ready)
		memcpy(frames + n_first, entries,
		       (n_ready - n_first) * sizeof(frames[0]));
	return n_ready;
}

/*
 * Up to n entries of comp as they lie in the ring, without consuming them.
 * Fewer than are ready if the ring ends first.
 */
static inline uint32_t xring_peek_addrs(struct xring *ring,
					const uint64_t **ret_addrs, uint32_t n)
{
	const uint32_t n_ready = xring_n_ready(ring, n);
	const uint32_t at = ring->cached & ring->mask;

	*ret_addrs = (const uint64_t *)ring->entries + at;
	return ring->n_entries - at < n_ready ? ring->n_entries - at : n_ready;
}

/* Room that we may fill, up to n. */
static inline uint32_t xring_n_room(struct xring *ring, uint32_t n)
{
	if (ring->n_entries - (ring->cached - ring->seen) < n)
		ring->seen = __atomic_load_n(ring->consumer, __ATOMIC_ACQUIRE);
	const uint32_t n_room = ring->n_entries - (ring->cached - ring->seen);

	return n_room < n ? n_room : n;
}

/* The entry of tx with this running number: cached is that of the next one. */
static inline struct mr_frame *xring_frame_at(const struct xring *ring,
					      uint32_t number)
{
	return (struct mr_frame *)ring->entries + (number & ring->mask);
}

static inline void xring_submit(struct xring *ring, uint32_t n)
{
	ring->cached += n;
	__atomic_store_n(ring->producer, ring->cached, __ATOMIC_RELEASE);
}

/* Entries that the kernel has not taken from a ring that we produce. */
static inline uint32_t xring_n_left(const struct xring *ring)
{
	return ring->cached - __atomic_load_n(ring->consumer, __ATOMIC_ACQUIRE);
}

#endif

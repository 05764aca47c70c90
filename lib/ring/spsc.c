/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ring of one producer and one consumer.
 *
 * head and tail count all entries and wrap at 2^32; the ring holds head - tail.
 * Each side keeps a copy of the other's counter on its own line, and reads the
 * real one only when the copy indicates full or empty.
 *
 * Order: the release of head in enqueue pairs with the acquire in dequeue and
 * hands over the entries; the release of tail in dequeue pairs with the acquire
 * in enqueue and hands back their places.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "ring/ring.h"

int mr_ring_spsc_create(struct mr_ctx *ctx, uint32_t n_entries,
			struct mr_ring_spsc **ret_ring,
			struct mr_reason *reterr_reason)
{
	struct mr_ring_spsc *ring;

	if (!mri_ring_is_size(n_entries))
		return mr_fail(reterr_reason, -EINVAL,
			       "a ring of %u entries: must be a power of two, "
			       "2 to %u",
			       n_entries, MRI_RING_MAX_ENTRIES);
	ring = mr_alloc(ctx, 0,
			sizeof(*ring) + n_entries * sizeof(struct mr_frame));
	if (ring == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for a ring of %u entries", n_entries);
	ring->ctx = ctx;
	ring->n_entries = n_entries;
	*ret_ring = ring;
	return 0;
}

void mr_ring_spsc_destroy(struct mr_ring_spsc *ring)
{
	if (ring != NULL)
		mr_free(ring->ctx, ring);
}

void mri_ring_spsc_start_at(struct mr_ring_spsc *ring, uint32_t count)
{
	ring->head = ring->seen_head = count;
	ring->tail = ring->seen_tail = count;
}

/*
 * Copy entries at..at+n of the ring from or to an array. A few are copied one
 * by one: calling memcpy() would take longer.
 */
enum { FEW = 4 };

static inline void copy_in(struct mr_ring_spsc *ring, uint32_t at,
			   const struct mr_frame *frames, uint32_t n)
{
	const uint32_t mask = ring->n_entries - 1;
	const uint32_t place = at & mask;
	const uint32_t first = mri_min_u32(n, ring->n_entries - place);

	if (n <= FEW) {
		for (uint32_t i = 0; i < n; i++)
			ring->entries[(at + i) & mask] = frames[i];
		return;
	}
	memcpy(&ring->entries[place], frames, first * sizeof(frames[0]));
	if (first < n)
		memcpy(ring->entries, frames + first,
		       (n - first) * sizeof(frames[0]));
}

static inline void copy_out(const struct mr_ring_spsc *ring, uint32_t at,
			    struct mr_frame *frames, uint32_t n)
{
	const uint32_t mask = ring->n_entries - 1;
	const uint32_t place = at & mask;
	const uint32_t first = mri_min_u32(n, ring->n_entries - place);

	if (n <= FEW) {
		for (uint32_t i = 0; i < n; i++)
			frames[i] = ring->entries[(at + i) & mask];
		return;
	}
	memcpy(frames, &ring->entries[place], first * sizeof(frames[0]));
	if (first < n)
		memcpy(frames + first, ring->entries,
		       (n - first) * sizeof(frames[0]));
}

uint32_t mr_ring_spsc_enqueue_burst(struct mr_ring_spsc *ring,
				    const struct mr_frame *frames, uint32_t n)
{
	const uint32_t head = ring->head; /* ours: no other writer */
	uint32_t n_room = ring->n_entries - (head - ring->seen_tail);

	if (n_room < n) {
		ring->seen_tail =
			__atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
		n_room = ring->n_entries - (head - ring->seen_tail);
		n = mri_min_u32(n, n_room);
	}
	copy_in(ring, head, frames, n);
	__atomic_store_n(&ring->head, head + n, __ATOMIC_RELEASE);
	return n;
}

uint32_t mr_ring_spsc_peek_burst(struct mr_ring_spsc *ring,
				 struct mr_frame *frames, uint32_t n)
{
	const uint32_t tail = ring->tail; /* ours: no other writer */

	if (ring->seen_head - tail < n) {
		ring->seen_head =
			__atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);
		n = mri_min_u32(n, ring->seen_head - tail);
	}
	copy_out(ring, tail, frames, n);
	return n;
}

void mr_ring_spsc_release(struct mr_ring_spsc *ring, uint32_t n)
{
	__atomic_store_n(&ring->tail, ring->tail + n, __ATOMIC_RELEASE);
}

uint32_t mr_ring_spsc_dequeue_burst(struct mr_ring_spsc *ring,
				    struct mr_frame *frames, uint32_t n)
{
	n = mr_ring_spsc_peek_burst(ring, frames, n);
	mr_ring_spsc_release(ring, n);
	return n;
}

uint32_t mr_ring_spsc_count(const struct mr_ring_spsc *ring)
{
	/* Tail first: a head read later is never behind it. */
	const uint32_t tail = __atomic_load_n(&ring->tail, __ATOMIC_ACQUIRE);
	const uint32_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

	return mri_min_u32(head - tail, ring->n_entries);
}

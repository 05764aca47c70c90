/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The common case of both bursts: a run of contiguous buffers, each of one
 * descriptor. vhost_chain.h handles everything else: other chains, from the end
 * of the run on, invalid ones, and the rings of a guest that migrates.
 *
 * Source: virtio 1.2, 2.7.13, 2.8.21, 5.1.6.
 */
#ifndef VIRTIO_VHOST_PLAIN_H
#define VIRTIO_VHOST_PLAIN_H

#include "vhost_chain.h"

struct vhost_plain {
	uint8_t *bytes;
	uint32_t n_bytes;
	uint32_t id; /* for the used entry */
};

static inline bool vhost_takes_plain(const struct vhost_ring *ring)
{
	return ring->header_bytes == VIRTIO_HEADER_BYTES && ring->log == NULL;
}

/* An area, in registers. */
struct vhost_span {
	uint64_t guest_addr, n_bytes;
	uint8_t *bytes;
};

static inline bool vhost_is_in(const struct vhost_span *span, uint64_t addr,
			       uint32_t n_bytes)
{
	return n_bytes <= span->n_bytes &&
	       addr - span->guest_addr <= span->n_bytes - n_bytes;
}

/* The area that has n_bytes at this address, or one of no bytes. */
__attribute__((noinline)) static struct vhost_span
vhost_find_span(const struct vhost_memory *memory, uint64_t addr,
		uint32_t n_bytes)
{
	for (uint32_t i = 0; i < memory->n; i++) {
		const struct vhost_area *area = &memory->areas[i];
		const struct vhost_span span = { area->guest_addr,
						 area->n_bytes, area->bytes };

		if (vhost_is_in(&span, addr, n_bytes))
			return span;
	}
	return (struct vhost_span){ 0, 0, NULL };
}

/* How many of n are available; in a packed ring, descriptors say that. */
static inline uint32_t vhost_n_available(const struct virtio_vq *vq, uint32_t n,
					 const bool is_packed)
{
	uint32_t n_there;

	if (is_packed)
		return n;
	n_there =
		(uint16_t)(__atomic_load_n(&vq->avail->idx, __ATOMIC_ACQUIRE) -
			   vq->n_avail);
	if (n_there > vq->n_entries)
		return 0; /* invalid */
	return n < n_there ? n : n_there;
}

/*
 * Load the descriptor of this number. False: it is not a plain one. The rings
 * are parameters because the caller's stores could alias *vq.
 */
static inline bool vhost_load_plain(const struct virtio_desc *desc,
				    const uint16_t *avail, uint32_t mask,
				    uint32_t number, uint32_t flags,
				    struct vhost_desc *ret_desc,
				    const bool is_packed)
{
	const uint32_t kinds =
		VIRTIO_DESC_NEXT | VIRTIO_DESC_WRITE | VIRTIO_DESC_INDIRECT |
		(is_packed ? VIRTIO_PACKED_USED | VIRTIO_PACKED_AVAIL : 0);
	uint32_t place = number & mask;

	if (is_packed) {
		const struct virtio_packed_desc *packed = (const void *)desc;
		const uint64_t word =
			__atomic_load_n(&packed[place].word, __ATOMIC_ACQUIRE);

		*ret_desc = vhost_desc_of(
			__atomic_load_n(&packed[place].addr, __ATOMIC_RELAXED),
			word, true);
	} else {
		place = __atomic_load_n(&avail[place], __ATOMIC_RELAXED);
		*ret_desc = vhost_load(&desc[place & mask], false);
		ret_desc->tag = place;
	}
	return place <= mask && (ret_desc->flags & kinds) == flags;
}

/*
 * Read up to n buffers of this direction and of at least min_bytes, and
 * prefetch their first lines. Returns how many.
 */
static inline __attribute__((always_inline)) uint32_t
vhost_read_plain(const struct vhost_ring *ring, struct vhost_plain *plain,
		 uint32_t n, uint32_t min_bytes, const uint32_t direction,
		 const bool is_packed)
{
	const struct virtio_vq *vq = &ring->vq;
	const struct virtio_desc *const descs = vq->desc;
	const uint16_t *const avail = is_packed ? NULL : vq->avail->ring;
	const uint32_t first = vq->n_avail, mask = vq->mask;
	struct vhost_span span = vhost_find_span(ring->memory, 0, 0);
	uint32_t i;

	n = vhost_n_available(vq, n, is_packed);
	for (i = 0; i < n; i++) {
		const uint32_t flags =
			direction |
			(is_packed ? virtio_avail_flags(vq, first + i) : 0);
		struct vhost_desc desc;

		if (!vhost_load_plain(descs, avail, mask, first + i, flags,
				      &desc, is_packed) ||
		    desc.n_bytes < min_bytes)
			break;
		if (!vhost_is_in(&span, desc.addr, desc.n_bytes))
			span = vhost_find_span(ring->memory, desc.addr,
					       desc.n_bytes);
		if (span.bytes == NULL)
			break;
		plain[i].bytes = span.bytes + (desc.addr - span.guest_addr);
		plain[i].n_bytes = desc.n_bytes;
		plain[i].id = desc.tag;
		if (direction == VIRTIO_DESC_WRITE)
			__builtin_prefetch(plain[i].bytes, 1);
		else
			__builtin_prefetch(plain[i].bytes);
	}
	return i;
}

/*
 * Use the first n buffers, at least one, of a packed ring with IN_ORDER.
 * Nothing was written into them, so the id of the last one stands for all
 * (2.8.9). True: the driver was called.
 */
static inline bool vhost_use_in_order(struct vhost_ring *ring,
				      const struct vhost_plain *plain,
				      uint32_t n)
{
	struct virtio_vq *vq = &ring->vq;
	const uint32_t old = vq->n_used;

	if (ring->record != NULL)
		vhost_record_used(vq, ring->record, old, old + n, true);
	vhost_write_used(vq, old, plain[n - 1].id, 0, true);
	vq->n_used = (uint16_t)(old + n);
	vq->n_avail = (uint16_t)(vq->n_avail + n);
	return vhost_show_used(ring, old, true);
}

/*
 * Use the first n buffers, at least one. n_bytes: written into each; NULL:
 * nothing was written. True: the driver was called.
 */
static inline __attribute__((always_inline)) bool
vhost_use_plain(struct vhost_ring *ring, const struct vhost_plain *plain,
		const uint32_t *n_bytes, uint32_t n, const bool is_packed)
{
	struct virtio_vq *vq = &ring->vq;
	/* A copy: the stores could alias *vq. */
	const struct virtio_vq copy = *vq;
	const uint32_t old = vq->n_used;

	if (is_packed && ring->record != NULL)
		vhost_record_used(&copy, ring->record, old, old + n, true);
	/* In a packed ring the first entry comes last: it shows the rest. */
	for (uint32_t i = is_packed ? 1 : 0; i < n; i++)
		vhost_write_used(&copy, old + i, plain[i].id,
				 n_bytes != NULL ? n_bytes[i] : 0, is_packed);
	if (is_packed)
		vhost_write_used(&copy, old, plain[0].id,
				 n_bytes != NULL ? n_bytes[0] : 0, true);
	vq->n_used = (uint16_t)(old + n);
	vq->n_avail = (uint16_t)(vq->n_avail + n);
	return vhost_show_used(ring, old, is_packed);
}

/* Copy a frame of at least 8 bytes. Short ones need no call. */
static inline void vhost_copy(uint8_t *to, const uint8_t *from,
			      uint32_t n_bytes)
{
	if (n_bytes > 64) {
		memcpy(to, from, n_bytes);
	} else if (n_bytes >= 32) {
		memcpy(to, from, 32);
		memcpy(to + n_bytes - 32, from + n_bytes - 32, 32);
	} else if (n_bytes >= 16) {
		memcpy(to, from, 16);
		memcpy(to + n_bytes - 16, from + n_bytes - 16, 16);
	} else {
		memcpy(to, from, 8);
		memcpy(to + n_bytes - 8, from + n_bytes - 8, 8);
	}
}

#endif

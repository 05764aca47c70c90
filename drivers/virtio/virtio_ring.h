/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One virtqueue: its memory, and the operations that all queues share.
 *
 *     split                                  packed
 *     desc[]   addr len flags next           desc[]  addr len id flags
 *     avail    flags idx ring[]  us -> it    one event word each way
 *     used     flags idx ring[]  it -> us
 *
 * Running numbers count what was made available and what was used, modulo
 * 65536; a place in a ring is such a number under the mask. In a packed ring
 * the bit above the mask gives the lap, and thus the wrap counter of the
 * specification: 1 in even laps.
 *
 * Memory order. The store that makes descriptors available is sequentially
 * consistent, and so is the following load of the device's notification
 * request, so that they cannot both see each other's old value. The same holds
 * before sleeping. What the device wrote is read after an acquiring load. With
 * ORDER_PLATFORM the other side may be hardware: x86-64 needs nothing more; on
 * arm64 an outer-domain barrier precedes the store.
 *
 * Whatever the device writes is untrusted input: check it before using it as a
 * place or a length.
 */
#ifndef VIRTIO_VIRTIO_RING_H
#define VIRTIO_VIRTIO_RING_H

#include <stdbool.h>

#include <millrace/experimental/pci.h>

#include "virtio_spec.h"

struct virtio_vq {
	/* Hot. */
	union {
		struct {
			struct virtio_desc *desc;
			struct virtio_avail *avail;
			struct virtio_used *used;
			uint64_t *used_ring;
			uint16_t *used_event;  /* ours: where to interrupt us */
			uint16_t *avail_event; /* the device's: notify it */
		};
		struct {
			struct virtio_packed_desc *packed;
			uint32_t *driver_event; /* ours */
			uint32_t *device_event; /* the device's */
		};
	};
	uint32_t n_entries;
	uint16_t mask;
	uint16_t n_avail; /* running numbers; of descriptors in a packed ring */
	uint16_t n_used;
	bool is_packed;
	bool has_event_idx;
	bool has_notification_data;
	uint16_t notify_word; /* the queue's number, as the device expects it */
	int kick_fd;          /* instead of a doorbell; -1: none */
	uint32_t is_busy;     /* atomic: its user is inside */
	const struct mr_bar *notify_bar;
	uint64_t notify_offset;

	/* Cold. */
	uint32_t number;
	uint32_t vector; /* VIRTIO_NO_VECTOR: none */
	struct mr_dma dma;
	uint64_t desc_iova, driver_iova, device_iova;
	uint64_t reset_until_tick; /* deadline of the reset; 0: none */
};

/* Before a store that hands memory to a device in another domain. */
static inline void virtio_order_stores(void)
{
#if defined(__aarch64__)
	__asm__ __volatile__("dmb oshst" ::: "memory");
#endif
}

static inline uint32_t virtio_notify_value(const struct virtio_vq *vq,
					   uint32_t next)
{
	return vq->notify_word | next << 16;
}

/*
 * Its user enters and leaves the ring. mr_port_poll() may break a queue at any
 * time: it changes the state, makes all threads pass a barrier, and looks here.
 * So the compiler alone must keep the order.
 */
static inline void virtio_enter(struct virtio_vq *vq)
{
	__atomic_store_n(&vq->is_busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void virtio_leave(struct virtio_vq *vq)
{
	__atomic_store_n(&vq->is_busy, 0, __ATOMIC_RELEASE);
}

void mri_virtio_kick(int fd);

/* Ring the doorbell; next is where the driver will continue. */
static inline void virtio_ring_bell(const struct virtio_vq *vq, uint32_t next)
{
	if (vq->kick_fd >= 0)
		mri_virtio_kick(vq->kick_fd);
	else if (vq->has_notification_data)
		mr_bar_write32(vq->notify_bar, vq->notify_offset,
			       virtio_notify_value(vq, next));
	else
		mr_bar_write16(vq->notify_bar, vq->notify_offset,
			       vq->notify_word);
}

/*
 * Whether [old, now) passes event, so that whoever asked must be notified.
 * Numbers are modulo 65536, or two laps of a packed ring. 2.7.7.2.
 */
static inline bool virtio_passes(uint32_t event, uint32_t old, uint32_t now,
				 uint32_t modulo_mask)
{
	return ((now - event - 1) & modulo_mask) < ((now - old) & modulo_mask);
}

/* ---- split ---- */

/* Used entries not taken yet; an impossible number if the device lies. */
static inline uint32_t virtio_split_n_ready(const struct virtio_vq *vq)
{
	return (uint16_t)(__atomic_load_n(&vq->used->idx, __ATOMIC_ACQUIRE) -
			  vq->n_used);
}

/* An entry of the used ring: id | written bytes << 32. */
static inline uint64_t virtio_split_used(const struct virtio_vq *vq,
					 uint32_t number)
{
	return __atomic_load_n(&vq->used_ring[number & vq->mask],
			       __ATOMIC_RELAXED);
}

/* Make n more entries available. True: rang the doorbell. */
static inline bool virtio_split_publish(struct virtio_vq *vq, uint32_t n)
{
	const uint16_t old = vq->n_avail;
	const uint16_t now = (uint16_t)(old + n);
	bool is_wanted;

	vq->n_avail = now;
	virtio_order_stores();
	__atomic_store_n(&vq->avail->idx, now, __ATOMIC_SEQ_CST);
	if (vq->has_event_idx)
		is_wanted = virtio_passes(
			__atomic_load_n(vq->avail_event, __ATOMIC_SEQ_CST), old,
			now, UINT16_MAX);
	else
		is_wanted =
			!(__atomic_load_n(&vq->used->flags, __ATOMIC_SEQ_CST) &
			  VIRTIO_USED_NO_NOTIFY);
	if (is_wanted)
		virtio_ring_bell(vq, now);
	return is_wanted;
}

/* Request an interrupt at the next used entry. True: there already is one. */
static inline bool virtio_split_enable(struct virtio_vq *vq)
{
	if (vq->has_event_idx)
		__atomic_store_n(vq->used_event, vq->n_used, __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(&vq->avail->flags, 0, __ATOMIC_SEQ_CST);
	return __atomic_load_n(&vq->used->idx, __ATOMIC_SEQ_CST) != vq->n_used;
}

/*
 * Disable interrupts. EVENT_IDX has no flag for that: leave the event just
 * behind, 65535 frames away.
 */
static inline void virtio_split_disable(struct virtio_vq *vq)
{
	if (vq->has_event_idx)
		__atomic_store_n(vq->used_event, (uint16_t)(vq->n_used - 1),
				 __ATOMIC_RELAXED);
	else
		__atomic_store_n(&vq->avail->flags, VIRTIO_AVAIL_NO_INTERRUPT,
				 __ATOMIC_RELAXED);
}

/* ---- packed ---- */

static inline uint64_t virtio_packed_word(uint32_t n_bytes, uint32_t id,
					  uint32_t flags)
{
	return n_bytes | (uint64_t)id << 32 | (uint64_t)flags << 48;
}

/* Make a descriptor available; of a chain, the first one last. */
static inline void virtio_packed_store(struct virtio_packed_desc *desc,
				       uint64_t iova, uint64_t word)
{
	desc->addr = iova;
	virtio_order_stores();
	__atomic_store_n(&desc->word, word, __ATOMIC_RELEASE);
}

static inline uint32_t virtio_packed_id(uint64_t word)
{
	return (uint16_t)(word >> 32);
}

/* Whether a number is in an odd lap: its wrap counter is 0. */
static inline bool virtio_is_odd_lap(const struct virtio_vq *vq,
				     uint32_t number)
{
	return number & vq->n_entries;
}

/* Flags that make the descriptor of this number available. */
static inline uint32_t virtio_avail_flags(const struct virtio_vq *vq,
					  uint32_t number)
{
	return virtio_is_odd_lap(vq, number) ? VIRTIO_PACKED_USED :
					       VIRTIO_PACKED_AVAIL;
}

/* Flags of the descriptor of this number when used. */
static inline uint32_t virtio_used_flags(const struct virtio_vq *vq,
					 uint32_t number)
{
	return virtio_is_odd_lap(vq, number) ?
		       0 :
		       VIRTIO_PACKED_USED | VIRTIO_PACKED_AVAIL;
}

static inline uint64_t virtio_packed_load(const struct virtio_vq *vq,
					  uint32_t number)
{
	return __atomic_load_n(&vq->packed[number & vq->mask].word,
			       __ATOMIC_ACQUIRE);
}

/* Whether the descriptor of this number was used, given its word. */
static inline bool virtio_packed_is_used(const struct virtio_vq *vq,
					 uint32_t number, uint64_t word)
{
	const uint32_t both = VIRTIO_PACKED_USED | VIRTIO_PACKED_AVAIL;

	return ((uint32_t)(word >> 48) & both) == virtio_used_flags(vq, number);
}

/* Whether all n that begin at this number were used. */
static inline bool virtio_packed_are_used(const struct virtio_vq *vq,
					  uint32_t number, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (!virtio_packed_is_used(vq, number + i,
					   virtio_packed_load(vq, number + i)))
			return false;
	return true;
}

/*
 * How many of the next n were used, assuming that all before a used one are
 * used. While a device marks a batch, that does not hold: QEMU and vhost mark
 * its first one last.
 */
static inline uint32_t virtio_packed_n_likely(const struct virtio_vq *vq,
					      uint32_t n)
{
	uint32_t n_least = 1;

	if (n == 0 || !virtio_packed_are_used(vq, vq->n_used, 1))
		return 0;
	if (virtio_packed_are_used(vq, vq->n_used + n - 1, 1))
		return n;
	/* n_least ends at a used one, and n at an unused one. */
	while (n - n_least > 1) {
		const uint32_t n_middle = (n_least + n) / 2;

		if (virtio_packed_are_used(vq, vq->n_used + n_middle - 1, 1))
			n_least = n_middle;
		else
			n = n_middle;
	}
	return n_least;
}

/* Where the driver goes on: place | wrap << 15, as in events and doorbells. */
static inline uint32_t virtio_packed_next(const struct virtio_vq *vq,
					  uint32_t number)
{
	return (number & vq->mask) |
	       (virtio_is_odd_lap(vq, number) ? 0 : 1u << 15);
}

/*
 * n more descriptors were made available: notify the device if it wants that.
 * True: rang the doorbell. The exchange of our own event word, which keeps its
 * value, orders the descriptors before the load of the device's. An event that
 * lies behind all of these also rings: QEMU 10 writes its position, and then
 * continues through the ring, so that its event is never passed. It may be a
 * whole ring before these n, which is the same as an event more than the ring
 * minus n ahead; so that one rings early. A device that wants no notifications
 * uses DISABLE.
 */
static inline bool virtio_packed_publish(struct virtio_vq *vq, uint32_t n)
{
	const uint16_t now = (uint16_t)(vq->n_avail + n);
	uint32_t event, kind, ahead;
	bool is_wanted;

	vq->n_avail = now;
	virtio_order_stores();
	__atomic_store_n(vq->driver_event, VIRTIO_EVENT_DISABLE << 16,
			 __ATOMIC_SEQ_CST);
	event = __atomic_load_n(vq->device_event, __ATOMIC_SEQ_CST);
	kind = event >> 16 & 3;
	is_wanted = kind != VIRTIO_EVENT_DISABLE;
	if (kind == VIRTIO_EVENT_DESC) {
		ahead = (((event & vq->mask) |
			  (event & 1u << 15 ? 0 : vq->n_entries)) -
			 now) &
			(2 * vq->n_entries - 1);
		is_wanted = ahead + n >= vq->n_entries;
	}
	if (is_wanted)
		virtio_ring_bell(vq, virtio_packed_next(vq, now));
	return is_wanted;
}

/* As virtio_split_enable(). */
static inline bool virtio_packed_enable(struct virtio_vq *vq)
{
	uint64_t word;

	__atomic_store_n(vq->driver_event, VIRTIO_EVENT_ENABLE << 16,
			 __ATOMIC_SEQ_CST);
	word = __atomic_load_n(&vq->packed[vq->n_used & vq->mask].word,
			       __ATOMIC_SEQ_CST);
	return virtio_packed_is_used(vq, vq->n_used, word);
}

static inline void virtio_packed_disable(struct virtio_vq *vq)
{
	__atomic_store_n(vq->driver_event, VIRTIO_EVENT_DISABLE << 16,
			 __ATOMIC_RELAXED);
}

/* ---- both ---- */

/* Write the descriptor of this number; flags: VIRTIO_DESC_*. */
static inline void virtio_write_desc(struct virtio_vq *vq, uint32_t number,
				     uint64_t iova, uint32_t n_bytes,
				     uint32_t id, uint32_t flags,
				     const bool is_packed)
{
	const uint32_t place = number & vq->mask;

	if (is_packed)
		virtio_packed_store(
			&vq->packed[place], iova,
			virtio_packed_word(
				n_bytes, id,
				flags | virtio_avail_flags(vq, number)));
	else
		vq->desc[place] = (struct virtio_desc){
			iova, n_bytes, (uint16_t)flags,
			(uint16_t)((number + 1) & vq->mask)
		};
}

static inline bool virtio_enable(struct virtio_vq *vq)
{
	return vq->is_packed ? virtio_packed_enable(vq) :
			       virtio_split_enable(vq);
}

static inline void virtio_disable(struct virtio_vq *vq)
{
	if (vq->is_packed)
		virtio_packed_disable(vq);
	else
		virtio_split_disable(vq);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Chains of descriptors, as the device reads them, and used entries, as it
 * writes them.
 *
 * The driver may change a descriptor at any time, so each is loaded once, and
 * the copy is checked. No loop is longer than the ring or VHOST_PIECES: empty
 * descriptors take time, too.
 *
 * Source: virtio 1.2, 2.7.5, 2.7.8, 2.8.6 to 2.8.8.
 */
#ifndef VIRTIO_VHOST_CHAIN_H
#define VIRTIO_VHOST_CHAIN_H

#include <string.h>

#include "vhost.h"

enum {
	VHOST_ROUND = 32,   /* frames that are read before they are copied */
	VHOST_PIECES = 256, /* of their chains */
};

/* Bytes of the peer's memory, here. */
struct vhost_piece {
	uint8_t *bytes;
	uint32_t n_bytes;
};

struct vhost_chain {
	uint32_t id;       /* for the used entry */
	uint32_t n_places; /* that it takes in the ring */
	uint32_t first;    /* of its pieces */
	uint32_t n_pieces;
	uint64_t n_bytes; /* of all of them */
};

/* Chains that were read, but not used yet. */
struct vhost_reader {
	struct vhost_ring *ring;
	uint32_t n_chains, n_pieces;
	uint16_t number; /* where the next one begins */
	uint16_t end;    /* split: where the available ones end */
	bool is_bad;     /* the next one is invalid */
	bool is_full;    /* no room for the pieces of the next one */
	struct vhost_chain chains[VHOST_PIECES];
	struct vhost_piece pieces[VHOST_PIECES];
};

struct vhost_desc {
	uint64_t addr;
	uint32_t n_bytes;
	uint32_t flags;
	uint32_t tag; /* the next one, or the buffer's id */
};

static inline struct vhost_desc vhost_desc_of(uint64_t addr, uint64_t word,
					      const bool is_packed)
{
	const uint32_t low = (uint16_t)(word >> 32);
	const uint32_t high = (uint32_t)(word >> 48);

	return (struct vhost_desc){ addr, (uint32_t)word,
				    is_packed ? high : low,
				    is_packed ? low : high };
}

/* A descriptor of either ring has two words, which are loaded once. */
static inline struct vhost_desc vhost_load(const void *desc,
					   const bool is_packed)
{
	const uint64_t *words = desc;

	return vhost_desc_of(__atomic_load_n(&words[0], __ATOMIC_RELAXED),
			     __atomic_load_n(&words[1], __ATOMIC_RELAXED),
			     is_packed);
}

/* Add the buffer of a descriptor. False: is_bad or is_full. */
static inline bool vhost_add_piece(struct vhost_reader *reader,
				   struct vhost_chain *chain,
				   const struct vhost_desc *desc,
				   uint32_t direction)
{
	uint64_t addr = desc->addr;
	uint32_t left = desc->n_bytes;

	if ((desc->flags & VIRTIO_DESC_WRITE) != direction)
		reader->is_bad = true;
	while (left > 0 && !reader->is_bad) {
		uint32_t n_bytes = left;
		uint8_t *bytes =
			vhost_find(reader->ring->memory, addr, &n_bytes);
		const uint32_t i = chain->first + chain->n_pieces;

		reader->is_bad = bytes == NULL;
		reader->is_full = i == VHOST_PIECES;
		if (reader->is_bad || reader->is_full)
			return false;
		reader->pieces[i] = (struct vhost_piece){ bytes, n_bytes };
		chain->n_pieces++;
		chain->n_bytes += n_bytes;
		addr += n_bytes;
		left -= n_bytes;
	}
	return !reader->is_bad;
}

/* Read the descriptors of an indirect table. */
__attribute__((noinline)) static bool
vhost_read_table(struct vhost_reader *reader, struct vhost_chain *chain,
		 const struct vhost_desc *table, uint32_t direction,
		 const bool is_packed)
{
	const uint32_t n = table->n_bytes / sizeof(struct virtio_desc);
	uint32_t n_bytes = table->n_bytes, at = 0;
	const uint8_t *descs =
		vhost_find(reader->ring->memory, table->addr, &n_bytes);

	if (descs == NULL || n_bytes != table->n_bytes || n == 0 ||
	    n_bytes % sizeof(struct virtio_desc) != 0 ||
	    (uintptr_t)descs % sizeof(uint64_t) != 0 ||
	    table->flags & VIRTIO_DESC_NEXT || n > VIRTIO_MAX_QUEUE_SIZE) {
		reader->is_bad = true;
		return false;
	}
	for (uint32_t i = 0; i < n && i < VHOST_PIECES; i++) {
		const struct vhost_desc desc = vhost_load(
			descs + at * sizeof(struct virtio_desc), is_packed);

		if (desc.flags & VIRTIO_DESC_INDIRECT) {
			reader->is_bad = true;
			return false;
		}
		if (!vhost_add_piece(reader, chain, &desc, direction))
			return false;
		if (!is_packed && !(desc.flags & VIRTIO_DESC_NEXT))
			return true;
		at = is_packed ? at + 1 : desc.tag;
		if (at >= n)
			break;
	}
	/* A packed table ends here. Others are too long, or a split one leads
	 * out of the table or in a circle. */
	reader->is_bad = !is_packed || at < n;
	return !reader->is_bad;
}

/* Read the rest of the chain that begins with desc. */
__attribute__((noinline)) static bool
vhost_read_rest(struct vhost_reader *reader, struct vhost_chain *chain,
		struct vhost_desc desc, uint32_t direction,
		const bool is_packed)
{
	const struct virtio_vq *vq = &reader->ring->vq;
	uint32_t at = reader->number;

	if (desc.flags & VIRTIO_DESC_INDIRECT)
		return vhost_read_table(reader, chain, &desc, direction,
					is_packed);
	for (uint32_t i = 0; i < vq->n_entries && i < VHOST_PIECES; i++) {
		if (desc.flags & VIRTIO_DESC_INDIRECT ||
		    (!is_packed && desc.tag > vq->mask &&
		     desc.flags & VIRTIO_DESC_NEXT))
			break;
		if (!vhost_add_piece(reader, chain, &desc, direction))
			return false;
		if (!(desc.flags & VIRTIO_DESC_NEXT)) {
			if (is_packed) {
				chain->n_places = i + 1;
				chain->id = desc.tag;
			}
			return true;
		}
		at = is_packed ? (at + 1) & vq->mask : desc.tag;
		desc = is_packed ? vhost_load(&vq->packed[at], true) :
				   vhost_load(&vq->desc[at], false);
	}
	reader->is_bad = true;
	return false;
}

/* Begin to read at the ring's position. */
static inline void vhost_begin(struct vhost_reader *reader,
			       struct vhost_ring *ring, const bool is_packed)
{
	const struct virtio_vq *vq = &ring->vq;

	reader->ring = ring;
	reader->n_chains = reader->n_pieces = 0;
	reader->is_bad = reader->is_full = false;
	reader->number = reader->end = vq->n_avail;
	if (is_packed)
		return;
	reader->end = __atomic_load_n(&vq->avail->idx, __ATOMIC_ACQUIRE);
	if ((uint16_t)(reader->end - reader->number) > vq->n_entries) {
		reader->is_bad = true;
		reader->end = reader->number;
	}
}

/* The first descriptor of the next chain. False: none is available. */
static inline bool vhost_first_desc(const struct vhost_reader *reader,
				    struct vhost_desc *desc, uint32_t *head,
				    const bool is_packed)
{
	const uint32_t both = VIRTIO_PACKED_USED | VIRTIO_PACKED_AVAIL;
	const struct virtio_vq *vq = &reader->ring->vq;
	const uint32_t place = reader->number & vq->mask;

	if (is_packed) {
		const uint64_t word = __atomic_load_n(&vq->packed[place].word,
						      __ATOMIC_ACQUIRE);

		*desc = vhost_desc_of(__atomic_load_n(&vq->packed[place].addr,
						      __ATOMIC_RELAXED),
				      word, true);
		*head = desc->tag;
		return (desc->flags & both) ==
		       virtio_avail_flags(vq, reader->number);
	}
	if (reader->number == reader->end)
		return false;
	*head = __atomic_load_n(&vq->avail->ring[place], __ATOMIC_RELAXED);
	/* The caller rejects an invalid head. */
	*desc = vhost_load(&vq->desc[*head & vq->mask], false);
	return true;
}

/*
 * Read the next chain, whose descriptors all have this direction. NULL: there
 * is none, or is_bad, or is_full.
 */
static inline const struct vhost_chain *vhost_read(struct vhost_reader *reader,
						   uint32_t direction,
						   const bool is_packed)
{
	const struct virtio_vq *vq = &reader->ring->vq;
	struct vhost_chain *chain = &reader->chains[reader->n_chains];
	struct vhost_desc desc;
	uint32_t head;

	if (reader->n_chains == VHOST_PIECES) {
		reader->is_full = true;
		return NULL;
	}
	if (!vhost_first_desc(reader, &desc, &head, is_packed))
		return NULL;
	*chain = (struct vhost_chain){ head, 1, reader->n_pieces, 0, 0 };
	if (!is_packed && head > vq->mask) {
		reader->is_bad = true;
		return NULL;
	}
	if (desc.flags & (VIRTIO_DESC_NEXT | VIRTIO_DESC_INDIRECT) ?
		    !vhost_read_rest(reader, chain, desc, direction,
				     is_packed) :
		    !vhost_add_piece(reader, chain, &desc, direction))
		return NULL;
	reader->number = (uint16_t)(reader->number + chain->n_places);
	reader->n_pieces += chain->n_pieces;
	reader->n_chains++;
	return chain;
}

/* Forget the last n chains: they stay available. */
static inline void vhost_unread(struct vhost_reader *reader, uint32_t n)
{
	for (; n > 0; n--) {
		const struct vhost_chain *chain =
			&reader->chains[--reader->n_chains];

		reader->number = (uint16_t)(reader->number - chain->n_places);
		reader->n_pieces -= chain->n_pieces;
	}
}

/* Whether the next chain can never be taken. */
static inline bool vhost_is_stuck(const struct vhost_reader *reader)
{
	return reader->is_bad || (reader->is_full && reader->n_chains == 0);
}

/* Copy from pieces, and move on to the rest. */
static inline void vhost_copy_from(struct vhost_piece **piece, uint8_t *to,
				   uint32_t n_bytes)
{
	while (n_bytes > 0) {
		struct vhost_piece *p = *piece;
		const uint32_t n = p->n_bytes < n_bytes ? p->n_bytes : n_bytes;

		memcpy(to, p->bytes, n);
		p->bytes += n;
		p->n_bytes -= n;
		to += n;
		n_bytes -= n;
		if (p->n_bytes == 0)
			++*piece;
	}
}

/* Copy to pieces, and move on to the rest. */
static inline void vhost_copy_to(struct vhost_piece **piece,
				 const uint8_t *from, uint32_t n_bytes)
{
	while (n_bytes > 0) {
		struct vhost_piece *p = *piece;
		const uint32_t n = p->n_bytes < n_bytes ? p->n_bytes : n_bytes;

		memcpy(p->bytes, from, n);
		p->bytes += n;
		p->n_bytes -= n;
		from += n;
		n_bytes -= n;
		if (p->n_bytes == 0)
			++*piece;
	}
}

static inline void vhost_write_used(const struct virtio_vq *vq, uint32_t number,
				    uint32_t id, uint32_t n_bytes,
				    const bool is_packed)
{
	struct virtio_used_entry *entry =
		(struct virtio_used_entry *)(vq->used + 1) +
		(number & vq->mask);

	if (is_packed)
		__atomic_store_n(
			&vq->packed[number & vq->mask].word,
			virtio_packed_word(n_bytes, id,
					   virtio_used_flags(vq, number)),
			__ATOMIC_RELEASE);
	else
		*entry = (struct virtio_used_entry){ id, n_bytes };
}

/* Whether the driver wants to be called about [old, n_used). */
static inline bool vhost_wants_call(const struct virtio_vq *vq, uint32_t old,
				    const bool is_packed)
{
	uint32_t event, kind;

	if (!is_packed && vq->has_event_idx)
		return virtio_passes(
			__atomic_load_n(vq->used_event, __ATOMIC_SEQ_CST), old,
			vq->n_used, UINT16_MAX);
	if (!is_packed)
		return !(__atomic_load_n(&vq->avail->flags, __ATOMIC_SEQ_CST) &
			 VIRTIO_AVAIL_NO_INTERRUPT);
	event = __atomic_load_n(vq->driver_event, __ATOMIC_SEQ_CST);
	kind = event >> 16 & 3;
	if (kind != VIRTIO_EVENT_DESC)
		return kind == VIRTIO_EVENT_ENABLE;
	event = (event & vq->mask) | (event & 1u << 15 ? 0 : vq->n_entries);
	return virtio_passes(event, old, vq->n_used, 2 * vq->n_entries - 1);
}

/* Show the driver [old, n_used). True: the driver was called. */
static inline bool vhost_show_used(struct vhost_ring *ring, uint32_t old,
				   const bool is_packed)
{
	const struct virtio_vq *vq = &ring->vq;

	/* Orders the used entries before the load of the driver's event. Kicks
	 * are disabled in a burst: the packed ring's store changes nothing. */
	if (is_packed)
		__atomic_store_n(vq->device_event, VIRTIO_EVENT_DISABLE << 16,
				 __ATOMIC_SEQ_CST);
	else
		__atomic_store_n(&vq->used->idx, vq->n_used, __ATOMIC_SEQ_CST);
	if (ring->record != NULL)
		vhost_record_used(vq, ring->record, vq->n_used, vq->n_used,
				  is_packed);
	if (vq->kick_fd < 0 || !vhost_wants_call(vq, old, is_packed))
		return false;
	mri_vhost_signal(ring->signal, vq->kick_fd);
	return true;
}

/*
 * Use all chains that were read. n_bytes[i]: written into the i-th; NULL:
 * nothing was written. True: the driver was called.
 */
static inline bool vhost_use_all(struct vhost_reader *reader,
				 const uint32_t *n_bytes, const bool is_packed)
{
	struct virtio_vq *vq = &reader->ring->vq;
	const uint32_t old = vq->n_used;
	const uint32_t now =
		old + (is_packed ? (uint32_t)reader->number - vq->n_avail :
				   reader->n_chains);
	uint32_t number = old;
	bool is_called;

	if (reader->n_chains == 0)
		return false;
	if (is_packed && reader->ring->record != NULL)
		vhost_record_used(vq, reader->ring->record, old, now, true);
	/* In a packed ring the first entry comes last: it shows the rest. */
	for (uint32_t i = is_packed ? 1 : 0; i < reader->n_chains; i++) {
		number += is_packed ? reader->chains[i - 1].n_places : i > 0;
		vhost_write_used(vq, number, reader->chains[i].id,
				 n_bytes != NULL ? n_bytes[i] : 0, is_packed);
	}
	if (is_packed)
		vhost_write_used(vq, old, reader->chains[0].id,
				 n_bytes != NULL ? n_bytes[0] : 0, true);
	vq->n_used = (uint16_t)now;
	vq->n_avail = reader->number;
	is_called = vhost_show_used(reader->ring, old, is_packed);
	if (reader->ring->log != NULL)
		mri_vhost_log_ring(reader->ring);
	return is_called;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost: frames from the driver's tx ring. A round reads all descriptors, then
 * all headers, and then copies the frames, so that a cache miss of one frame
 * overlaps with the work on others.
 *
 * Source: virtio 1.2, 5.1.6.2.
 */
#include <arpa/inet.h>

#include <millrace/wire.h>

#include "vhost_chain.h"
#include "vhost_plain.h"
#include "virtio_header.h"

enum {
	ETHER_RARP = 0x8035, /* RFC 903 */
	RARP_REQUEST = 3,
	MIN_WIRE_BYTES = 60,
};

/* A frame that is about to be copied. */
struct source {
	struct virtio_header header;
	uint32_t n_bytes;   /* without the header */
	uint32_t n_entries; /* pages to take; 0: dropped */
	int drop;           /* enum mr_rx_drop; -1: none */
};

struct round {
	struct vhost_reader reader;
	struct source sources[VHOST_ROUND];
	uint64_t pages[MR_BURST_MAX];
	uint32_t n_pages; /* wanted */
};

/* What its header says of a frame. Nobody promises us a valid checksum. */
static uint32_t flags_of(const struct virtio_header *header)
{
	return header->flags & VIRTIO_HEADER_NEEDS_CSUM ?
		       MR_FRAME_CSUM_PARTIAL :
		       0;
}

/* Whether the header is valid, and asks only for what was negotiated. */
static bool is_valid_header(const struct vhost_rxq *rxq,
			    const struct virtio_header *header)
{
	static const uint8_t features[8] = {
		[VIRTIO_GSO_TCPV4] = VIRTIO_F_HOST_TSO4,
		[VIRTIO_GSO_TCPV6] = VIRTIO_F_HOST_TSO6,
		[VIRTIO_GSO_UDP_L4] = VIRTIO_F_HOST_USO,
	};
	const uint32_t type = header->gso_type & ~(uint32_t)VIRTIO_GSO_ECN;

	if (header->flags & VIRTIO_HEADER_NEEDS_CSUM &&
	    !vhost_has(rxq->features, VIRTIO_F_CSUM))
		return false;
	if (type == VIRTIO_GSO_NONE)
		return true;
	return type < 8 && features[type] != 0 && header->gso_bytes != 0 &&
	       header->flags & VIRTIO_HEADER_NEEDS_CSUM &&
	       vhost_has(rxq->features, features[type]);
}

static int find_fault(const struct vhost_rxq *rxq, const struct source *source,
		      uint64_t n_bytes)
{
	if (n_bytes < VIRTIO_MIN_FRAME_BYTES ||
	    !is_valid_header(rxq, &source->header))
		return MR_RX_DROP_INVALID;
	return n_bytes > (uint64_t)rxq->n_segs * rxq->room_bytes ?
		       MR_RX_DROP_TOO_LONG :
		       -1;
}

/* Read the header of a chain, and decide whether to drop the frame. */
static void read_header(const struct vhost_rxq *rxq, struct round *round,
			uint32_t i)
{
	const uint32_t header_bytes = rxq->ring.header_bytes;
	struct vhost_chain *chain = &round->reader.chains[i];
	struct vhost_piece *piece = &round->reader.pieces[chain->first];
	struct source *source = &round->sources[i];
	uint64_t n_bytes = 0;

	source->header = (struct virtio_header){ 0 };
	if (chain->n_bytes >= header_bytes) {
		struct vhost_piece *p = piece;

		vhost_copy_from(&p, (uint8_t *)&source->header, header_bytes);
		chain->first += (uint32_t)(p - piece);
		n_bytes = chain->n_bytes - header_bytes;
	}
	source->drop = find_fault(rxq, source, n_bytes);
	source->n_bytes = (uint32_t)n_bytes;
	source->n_entries = source->drop >= 0 ?
				    0 :
			    n_bytes <= rxq->room_bytes ?
				    1 :
				    (uint32_t)((n_bytes + rxq->room_bytes - 1) /
					       rxq->room_bytes);
}

/* Read chains for at most n entries, and their headers. */
static inline __attribute__((always_inline)) void
read_round(struct vhost_rxq *rxq, struct round *round, uint32_t n,
	   const bool is_packed)
{
	struct vhost_reader *reader = &round->reader;
	uint32_t i;

	vhost_begin(reader, &rxq->ring, is_packed);
	for (i = 0; i < VHOST_ROUND && i < n; i++) {
		const struct vhost_chain *chain =
			vhost_read(reader, 0, is_packed);

		if (chain == NULL)
			break;
		if (chain->n_pieces > 0)
			__builtin_prefetch(reader->pieces[chain->first].bytes);
	}
	round->n_pages = 0;
	for (i = 0; i < reader->n_chains; i++) {
		read_header(rxq, round, i);
		if (round->n_pages + round->sources[i].n_entries > n)
			break;
		round->n_pages += round->sources[i].n_entries;
	}
	vhost_unread(reader, reader->n_chains - i);
}

/* Take pages for all frames, or for as many as there are pages. */
static void take_pages(struct vhost_rxq *rxq, struct mr_cache *cache,
		       struct round *round)
{
	struct vhost_reader *reader = &round->reader;
	const uint32_t n = mr_frag_alloc_bulk(cache, round->pages,
					      round->n_pages, rxq->page_bytes);
	uint32_t n_left = n, i = 0;

	if (n == round->n_pages)
		return;
	while (i < reader->n_chains && round->sources[i].n_entries <= n_left)
		n_left -= round->sources[i++].n_entries;
	vhost_unread(reader, reader->n_chains - i);
	mr_frag_free_bulk(cache, round->pages + n - n_left, n_left);
	mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_POOL_EMPTY], 1);
}

/* Copy a frame into pages. */
static void copy_frame(const struct vhost_rxq *rxq, struct vhost_piece *piece,
		       const struct source *source, const uint64_t *pages,
		       struct mr_frame *frames)
{
	uint32_t left = source->n_bytes;

	for (uint32_t i = 0; i < source->n_entries; i++) {
		const uint64_t addr = pages[i] + rxq->headroom_bytes;
		const uint32_t len =
			left < rxq->room_bytes ? left : rxq->room_bytes;

		vhost_copy_from(&piece, rxq->memory + addr, len);
		left -= len;
		frames[i] = (struct mr_frame){ addr, len,
					       left > 0 ? MR_FRAME_MORE : 0 };
	}
	frames[0].flags |= flags_of(&source->header);
}

/* Copy the round's frames. Returns entries. */
static uint32_t copy_round(struct vhost_rxq *rxq, struct round *round,
			   struct mr_frame *frames, struct mr_meta *meta)
{
	struct mr_rx_stats *stats = &rxq->base.stats;
	uint64_t n_frames = 0, n_bytes = 0, n_partial = 0;
	uint32_t n = 0;

	for (uint32_t i = 0; i < round->reader.n_chains; i++) {
		const struct vhost_chain *chain = &round->reader.chains[i];
		const struct source *source = &round->sources[i];

		if (source->drop >= 0) {
			mr_counter_add(&stats->drops[source->drop], 1);
			continue;
		}
		copy_frame(rxq, &round->reader.pieces[chain->first], source,
			   &round->pages[n], &frames[n]);
		if (meta != NULL)
			virtio_header_meta(&source->header, frames[n].len,
					   &meta[n]);
		n += source->n_entries;
		n_frames++;
		n_bytes += source->n_bytes;
		n_partial += source->header.flags & VIRTIO_HEADER_NEEDS_CSUM;
	}
	mr_counter_add(&stats->delivered, n_frames);
	mr_counter_add(&stats->bytes, n_bytes);
	mr_counter_add(&stats->events[MR_RX_EVENT_CSUM_PARTIAL], n_partial);
	return n;
}

/* One round of any chains. Returns entries; *is_last: no more chains. */
__attribute__((noinline)) static uint32_t
receive_round(struct vhost_rxq *rxq, struct mr_cache *cache,
	      struct mr_frame *frames, struct mr_meta *meta, uint32_t n,
	      const bool is_packed, bool *is_last)
{
	struct round round;
	bool is_stuck;

	read_round(rxq, &round, n, is_packed);
	/* Chains that wait for pages are no reason. */
	is_stuck = round.reader.n_chains == 0 && vhost_is_stuck(&round.reader);
	take_pages(rxq, cache, &round);
	n = copy_round(rxq, &round, frames, meta);
	if (vhost_use_all(&round.reader, NULL, is_packed))
		mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_WAKEUP], 1);
	if (is_stuck)
		mri_vhost_ring_break(&rxq->ring);
	*is_last = round.reader.n_chains < VHOST_ROUND;
	return n;
}

/* ---- runs of plain frames ---- */

/* What the headers of a run say. */
struct headers {
	struct virtio_header of[VHOST_ROUND];
	uint32_t offloads;   /* 0: none in any of them */
	uint32_t most_bytes; /* of a frame */
};

/* Load n headers, once. */
static inline void load_headers(const struct vhost_plain *plain,
				struct headers *headers, uint32_t n)
{
	uint32_t most = 0, offloads = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t word;

		memcpy(&word, plain[i].bytes, sizeof(word));
		memcpy(&headers->of[i], &word, sizeof(word));
		memcpy((uint8_t *)&headers->of[i] + sizeof(word),
		       plain[i].bytes + sizeof(word),
		       VIRTIO_HEADER_BYTES - sizeof(word));
		offloads |= (uint16_t)word; /* flags and gso_type */
		most = most < plain[i].n_bytes ? plain[i].n_bytes : most;
	}
	/* Later reads use the copy. */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	headers->offloads = offloads;
	headers->most_bytes = most - VIRTIO_HEADER_BYTES;
}

/* How many of n frames are valid, and fit into a page each. */
__attribute__((noinline)) static uint32_t
count_valid(const struct vhost_rxq *rxq, const struct vhost_plain *plain,
	    struct headers *headers, uint32_t n)
{
	uint32_t i;

	headers->most_bytes = rxq->room_bytes;
	for (i = 0; i < n; i++)
		if (plain[i].n_bytes - VIRTIO_HEADER_BYTES > rxq->room_bytes ||
		    !is_valid_header(rxq, &headers->of[i]))
			break;
	return i;
}

/* Pages for n frames. Shorter buffers begin at different cache lines. */
static inline uint32_t take_plain_pages(struct vhost_rxq *rxq,
					struct mr_cache *cache, uint64_t *pages,
					uint32_t n, uint32_t n_most)
{
	const uint32_t spare = rxq->page_bytes / 4;
	const bool is_short = n_most + spare <= rxq->room_bytes;
	const uint32_t n_got = mr_frag_alloc_bulk(
		cache, pages, n, rxq->page_bytes - (is_short ? spare : 0));

	if (n_got < n)
		mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_POOL_EMPTY],
			       1);
	return n_got;
}

/* Copy n frames, which have no offloads, and count them. */
static inline void copy_plain(struct vhost_rxq *rxq,
			      const struct vhost_plain *plain,
			      const uint64_t *pages, struct mr_frame *frames,
			      uint32_t n)
{
	struct mr_rx_stats *stats = &rxq->base.stats;
	const uint32_t headroom_bytes = rxq->headroom_bytes;
	uint8_t *const memory = rxq->memory;
	uint64_t n_bytes = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint32_t len = plain[i].n_bytes - VIRTIO_HEADER_BYTES;
		const uint64_t addr = pages[i] + headroom_bytes;

		vhost_copy(memory + addr, plain[i].bytes + VIRTIO_HEADER_BYTES,
			   len);
		frames[i].addr = addr;
		frames[i].len = len;
		frames[i].flags = 0;
		n_bytes += len;
	}
	mr_counter_add(&stats->delivered, n);
	mr_counter_add(&stats->bytes, n_bytes);
}

/* Offloads of n frames, as their headers say. */
__attribute__((noinline)) static void
set_offloads(struct vhost_rxq *rxq, const struct headers *headers,
	     struct mr_frame *frames, uint32_t n)
{
	uint64_t n_partial = 0;

	for (uint32_t i = 0; i < n; i++) {
		frames[i].flags = flags_of(&headers->of[i]);
		n_partial += headers->of[i].flags & VIRTIO_HEADER_NEEDS_CSUM;
	}
	mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_CSUM_PARTIAL],
		       n_partial);
}

/* A run of at most n. Returns frames, which are entries. */
static inline __attribute__((always_inline)) uint32_t
receive_plain(struct vhost_rxq *rxq, struct mr_cache *cache,
	      struct mr_frame *frames, struct mr_meta *meta, uint32_t n,
	      const bool is_packed)
{
	struct vhost_plain plain[VHOST_ROUND];
	uint64_t pages[VHOST_ROUND];
	struct headers headers;

	n = vhost_read_plain(
		&rxq->ring, plain, n < VHOST_ROUND ? n : VHOST_ROUND,
		VIRTIO_HEADER_BYTES + VIRTIO_MIN_FRAME_BYTES, 0, is_packed);
	if (n == 0)
		return 0;
	load_headers(plain, &headers, n);
	if (headers.offloads != 0 || headers.most_bytes > rxq->room_bytes)
		n = count_valid(rxq, plain, &headers, n);
	n = take_plain_pages(rxq, cache, pages, n, headers.most_bytes);
	if (n == 0)
		return 0;
	copy_plain(rxq, plain, pages, frames, n);
	if (headers.offloads != 0)
		set_offloads(rxq, &headers, frames, n);
	for (uint32_t i = 0; meta != NULL && i < n; i++)
		virtio_header_meta(&headers.of[i], frames[i].len, &meta[i]);
	if (is_packed && vhost_has(rxq->features, VIRTIO_F_IN_ORDER) ?
		    vhost_use_in_order(&rxq->ring, plain, n) :
		    vhost_use_plain(&rxq->ring, plain, NULL, n, is_packed))
		mr_counter_add(&rxq->base.stats.events[MR_RX_EVENT_WAKEUP], 1);
	return n;
}

static inline __attribute__((always_inline)) uint32_t
receive(struct vhost_rxq *rxq, struct mr_cache *cache, struct mr_frame *frames,
	struct mr_meta *meta, uint32_t n, const bool is_packed)
{
	const bool takes_plain = vhost_takes_plain(&rxq->ring);
	bool is_last = false;
	uint32_t n_done = 0;

	/* Dropped frames fill no entries, so the rounds are limited, too. */
	for (uint32_t i = 0; i < n && n_done + rxq->n_segs <= n && !is_last;
	     i += VHOST_ROUND) {
		struct mr_meta *m = meta != NULL ? meta + n_done : NULL;
		const uint32_t n_plain =
			takes_plain ? receive_plain(rxq, cache, frames + n_done,
						    m, n - n_done, is_packed) :
				      0;

		n_done += n_plain;
		if (n_plain == 0)
			n_done +=
				receive_round(rxq, cache, frames + n_done, m,
					      n - n_done, is_packed, &is_last);
		else if (n_plain < VHOST_ROUND)
			is_last = vhost_is_empty(&rxq->ring.vq, is_packed);
	}
	return n_done;
}

/* The RARP request of a guest that has just arrived. Returns entries. */
__attribute__((noinline)) static uint32_t announce(struct vhost_rxq *rxq,
						   struct mr_cache *cache,
						   struct mr_frame *frame,
						   struct mr_meta *meta)
{
	const uint64_t mac =
		__atomic_exchange_n(&rxq->rarp_mac, 0, __ATOMIC_RELAXED);
	struct mr_arp arp = { .hardware = htons(1),
			      .protocol = htons(MR_ETHER_IPV4),
			      .hardware_bytes = 6,
			      .protocol_bytes = 4,
			      .op = htons(RARP_REQUEST) };
	uint8_t bytes[MIN_WIRE_BYTES] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	uint64_t page;

	if (mr_frag_alloc_bulk(cache, &page, 1, rxq->page_bytes) == 0) {
		/* Again in the next burst. */
		__atomic_store_n(&rxq->rarp_mac, mac, __ATOMIC_RELAXED);
		return 0;
	}
	memcpy(bytes + 6, &mac, 6);
	bytes[12] = ETHER_RARP >> 8;
	bytes[13] = ETHER_RARP & 0xff;
	memcpy(arp.sender_mac, &mac, 6);
	memcpy(arp.target_mac, &mac, 6);
	memcpy(bytes + 14, &arp, sizeof(arp));
	*frame = (struct mr_frame){ page + rxq->headroom_bytes, sizeof(bytes),
				    0 };
	memcpy(rxq->memory + frame->addr, bytes, sizeof(bytes));
	if (meta != NULL)
		meta->valid = 0;
	mr_counter_add(&rxq->base.stats.delivered, 1);
	mr_counter_add(&rxq->base.stats.bytes, sizeof(bytes));
	return 1;
}

uint32_t mri_vhost_rx_burst(struct mr_rxq *base, struct mr_cache *cache,
			    struct mr_frame *frames, struct mr_meta *meta,
			    uint32_t n)
{
	struct vhost_rxq *rxq = (struct vhost_rxq *)base;
	uint32_t n_done;

	if (!vhost_enter(&rxq->ring))
		return 0;
	if (rxq->ring.is_armed)
		mri_vhost_ring_disarm(&rxq->ring);
	n_done = rxq->ring.vq.is_packed ?
			 receive(rxq, cache, frames, meta, n, true) :
			 receive(rxq, cache, frames, meta, n, false);
	virtio_leave(&rxq->ring.vq);
	if (__atomic_load_n(&rxq->rarp_mac, __ATOMIC_RELAXED) != 0 &&
	    n_done < n)
		n_done += announce(rxq, cache, &frames[n_done],
				   meta != NULL ? &meta[n_done] : NULL);
	return n_done;
}

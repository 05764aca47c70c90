/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive queues: 5.1.6.3 and 5.1.6.4 of the specification. */
#include <string.h>

#include "support/packet.h"
#include "virtio_core.h"

enum { HEADER_BYTES = 20, MIN_BUFFER_BYTES = 1514, BIG_BUFFER_BYTES = 65550 };

static bool is_in_table(const struct vnet *v, const uint8_t *mac, uint32_t from,
			uint32_t n)
{
	for (uint32_t i = from; i < from + n; i++)
		if (memcmp(v->macs[i], mac, 6) == 0)
			return true;
	return false;
}

/* 5.1.6.5.1 and 5.1.6.5.2: promiscuous only if the driver says so. */
static bool is_for_us(const struct vnet *v, const uint8_t *bytes)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };

	if (!vnet_has(v, VNET_CTRL_RX) || v->promisc)
		return true;
	if (memcmp(bytes, broadcast, 6) == 0)
		return true;
	if ((bytes[0] & 1) != 0)
		return v->allmulti ||
		       is_in_table(v, bytes, v->n_unicast, v->n_multicast);
	return memcmp(bytes, v->mac, 6) == 0 ||
	       is_in_table(v, bytes, 0, v->n_unicast);
}

/* The pair that a packet goes to, and its hash if there is one. */
static uint32_t steer(struct vnet *v, const uint8_t *bytes, uint32_t n_bytes,
		      uint32_t *ret_hash, uint16_t *ret_kind)
{
	uint8_t own_key[VNET_KEY_BYTES];
	uint16_t kind;

	*ret_hash =
		vnet_hash(v->rss.key, v->rss.types, bytes, n_bytes, ret_kind);
	for (uint32_t i = 0; i < VNET_KEY_BYTES; i++)
		own_key[i] = (uint8_t)(i * 89 + 61);
	if (!v->has_rss) /* as the device likes */
		return vnet_hash(own_key, 0x3f, bytes, n_bytes, &kind) %
		       v->n_active_pairs;
	return *ret_kind != 0 ? v->rss.table[*ret_hash & v->rss.mask] :
				v->rss.unclassified;
}

/* Buffers for @p n_bytes; 0: not enough yet, UINT32_MAX: there never will be */
static uint32_t count_buffers(struct vnet *v, struct vnet_queue *q,
			      uint32_t n_bytes)
{
	const bool is_merging = vnet_has(v, VNET_MRG_RXBUF);
	uint32_t n = 0, room = 0;

	for (uint64_t i = q->n_done; i < q->n_taken && room < n_bytes; i++) {
		room += vnet_capacity(vnet_element(q, i));
		n++;
		if (!is_merging)
			break;
	}
	if (room >= n_bytes)
		return n;
	return (n > 0 && !is_merging) || n == q->size ? UINT32_MAX : 0;
}

/* The buffer is of a size that the specification allows. */
static void check_buffer(struct vnet *v, const struct vnet_queue *q,
			 const struct vnet_element *e)
{
	const uint64_t big =
		VNET_BIT(VNET_GUEST_TSO4) | VNET_BIT(VNET_GUEST_TSO6) |
		VNET_BIT(VNET_GUEST_USO4) | VNET_BIT(VNET_GUEST_USO6) |
		VNET_BIT(VNET_GUEST_UFO);
	uint32_t least = vnet_header_bytes(v);

	if (!vnet_has(v, VNET_MRG_RXBUF))
		least += (v->features & big) != 0 ? BIG_BUFFER_BYTES :
						    MIN_BUFFER_BYTES;
	if (!e->segs[0].is_written)
		vnet_give_up(v, q, "a readable descriptor in an rx queue");
	else if (vnet_capacity(e) < least)
		vnet_give_up(v, q, "an rx buffer is too small");
}

static void fill_header(struct vnet *v, uint8_t *header,
			const struct vnet_offload *o, uint32_t n_buffers)
{
	const struct model_faults *faults = &v->model.faults;

	header[0] = o->flags;
	header[1] = o->gso_type;
	vnet_put16(header + 2, o->hdr_len);
	vnet_put16(header + 4, o->gso_size);
	vnet_put16(header + 6, o->csum_start);
	vnet_put16(header + 8, o->csum_offset);
	vnet_put16(header + 10, (uint16_t)n_buffers);
	if (vnet_fault(v, faults->bad_count)) {
		const uint16_t counts[] = { 0, (uint16_t)(n_buffers + 1), 255,
					    0xffff };

		vnet_put16(header + 10, counts[model_random(&v->model) % 4]);
	}
	if (vnet_fault(v, v->faults.bad_header)) {
		header[0] = (uint8_t)model_random(&v->model);
		header[1] = (uint8_t)model_random(&v->model);
		vnet_put32(header + 2, model_random(&v->model));
		vnet_put32(header + 6, model_random(&v->model));
	}
}

static void put_packet(struct vnet *v, struct vnet_queue *q, uint32_t n_buffers,
		       const uint8_t *header, const uint8_t *bytes,
		       uint32_t n_bytes)
{
	const uint32_t n_header = vnet_header_bytes(v);
	const bool is_lost = vnet_fault(v, v->model.faults.dma_unmapped);
	uint32_t n_put = 0;

	for (uint32_t i = 0; i < n_buffers; i++) {
		const struct vnet_element *e = vnet_element(q, q->n_done);
		const uint32_t from = i == 0 ? n_header : 0;
		uint32_t n = vnet_capacity(e) - from;

		if (n > n_bytes - n_put)
			n = n_bytes - n_put;
		if (!is_lost && i == 0)
			vnet_scatter(e, 0, header, n_header);
		if (!is_lost)
			vnet_scatter(e, from, bytes + n_put, n);
		n_put += n;
		vnet_use(v, q, from + n);
	}
	v->counts[q->idx].n_packets++;
	v->counts[q->idx].n_bytes += n_bytes;
	v->counts[q->idx].n_summed += header[0] == VNET_DATA_VALID;
	v->stats.n_pair[q->idx / 2]++;
}

/* False: it has to wait for buffers. */
static bool deliver(struct vnet *v, const uint8_t *bytes, uint32_t n_bytes,
		    const struct vnet_offload *offload)
{
	uint8_t header[HEADER_BYTES] = { 0 };
	struct vnet_offload o = { 0 };
	const struct packet p = packet_parse(bytes, n_bytes);
	struct vnet_queue *q;
	uint32_t hash, n_buffers;
	uint16_t kind;

	if (n_bytes < 14 || !v->link_is_up || !is_for_us(v, bytes))
		return true;
	q = &v->queues[2 * steer(v, bytes, n_bytes, &hash, &kind)];
	if (!q->is_enabled)
		return true;
	n_buffers = count_buffers(v, q, vnet_header_bytes(v) + n_bytes);
	if (n_buffers == 0) {
		q->is_starved = true;
		return false;
	}
	if (n_buffers == UINT32_MAX) {
		v->counts[q->idx].n_drops++;
		return true;
	}
	if (offload != NULL)
		o = *offload;
	else if (vnet_has(v, VNET_GUEST_CSUM) && p.protocol != 0 &&
		 packet_l4_sum_is_right(bytes, &p))
		o.flags = VNET_DATA_VALID;
	fill_header(v, header, &o, n_buffers);
	if (vnet_fault(v, v->model.faults.bad_hash)) {
		hash = model_random(&v->model);
		kind = (uint16_t)model_random(&v->model);
	}
	vnet_put32(header + 12, hash);
	vnet_put16(header + 16, kind);
	put_packet(v, q, n_buffers, header, bytes, n_bytes);
	return true;
}

static void fetch_all(struct vnet *v)
{
	for (uint32_t i = 0; i < vnet_n_pairs(v); i++) {
		struct vnet_queue *q = &v->queues[2 * i];
		uint64_t first;

		if (!q->is_enabled || !vnet_queue_map(v, q))
			continue;
		q->is_kicked = false;
		q->is_starved = false;
		first = q->n_taken;
		vnet_fetch(v, q);
		for (; first < q->n_taken; first++)
			check_buffer(v, q, vnet_element(q, first));
	}
}

/* What came, as long as there are buffers for it. */
static void fill_buffers(struct vnet *v)
{
	struct vnet_packet *packet;
	const uint8_t *bytes;
	uint32_t n_bytes;

	while (vnet_is_running(v) &&
	       (packet = vnet_backlog_first(&v->in)) != NULL) {
		if (!deliver(v, packet->bytes, packet->n_bytes,
			     &packet->offload))
			return;
		vnet_backlog_drop(&v->in);
	}
	while (vnet_is_running(v) &&
	       (bytes = model_rx_peek(&v->model, &n_bytes)) != NULL) {
		if (!deliver(v, bytes, n_bytes, NULL))
			return;
		model_rx_pop(&v->model);
	}
}

void vnet_step_rx(struct vnet *v)
{
	bool has_more;

	if (v->config.is_held)
		return;
	do {
		has_more = false;
		fetch_all(v);
		fill_buffers(v);
		for (uint32_t i = 0; i < vnet_n_pairs(v); i++) {
			struct vnet_queue *q = &v->queues[2 * i];

			if (!q->is_enabled || !vnet_is_running(v))
				continue;
			vnet_tell(v, q);
			/* A doorbell is of use only where a packet waits. */
			if (!vnet_want_kicks(v, q, q->is_starved) &&
			    q->is_starved)
				has_more = true;
		}
	} while (has_more && vnet_is_running(v));
}

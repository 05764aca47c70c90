/* SPDX-License-Identifier: BSD-3-Clause */
/* Transmit queues: 5.1.6.2 of the specification. */
#include <string.h>

#include "virtio_core.h"

static const char *header_is_wrong(const struct vnet *v, const uint8_t *header,
				   const struct vnet_offload *o)
{
	static const struct {
		uint8_t gso_type;
		enum vnet_feature feature;
	} needs[] = { { VNET_GSO_TCPV4, VNET_HOST_TSO4 },
		      { VNET_GSO_TCPV6, VNET_HOST_TSO6 },
		      { VNET_GSO_UDP_L4, VNET_HOST_USO } };

	if ((o->flags & ~VNET_NEEDS_CSUM) != 0)
		return "flags that only a device sets";
	if ((o->flags & VNET_NEEDS_CSUM) != 0 && !vnet_has(v, VNET_CSUM))
		return "NEEDS_CSUM without the feature";
	if ((o->gso_type & 0x80) != 0 && !vnet_has(v, VNET_HOST_ECN))
		return "GSO_ECN without the feature";
	for (uint32_t i = 0; i < sizeof(needs) / sizeof(needs[0]); i++)
		if ((o->gso_type & 0x7f) == needs[i].gso_type &&
		    !vnet_has(v, needs[i].feature))
			return "a gso_type without its feature";
	if (vnet_get16(header + 10) != 0)
		return "num_buffers is not 0";
	return NULL;
}

static void send_frame(void *arg, const uint8_t *bytes, uint32_t n_bytes)
{
	struct vnet *v = arg;

	if (n_bytes > v->config.mtu_bytes + 18u)
		model_violation(&v->model, "a frame of %u bytes, MTU %u",
				n_bytes, v->config.mtu_bytes);
	else if (!vnet_backlog_put(&v->out, bytes, n_bytes, NULL))
		model_violation(&v->model, "a packet of too many segments");
}

/* What waits goes out; without a cable, nowhere. False: the wire is full. */
static bool send_waiting(struct vnet *v)
{
	struct vnet_packet *packet;

	while ((packet = vnet_backlog_first(&v->out)) != NULL) {
		if (v->link_is_up && v->model.wire != NULL &&
		    !model_tx(&v->model, packet->bytes, packet->n_bytes))
			return false;
		vnet_backlog_drop(&v->out);
	}
	return true;
}

static void send_one(struct vnet *v, struct vnet_queue *q)
{
	const struct vnet_element *e = vnet_element(q, q->n_done);
	const uint32_t n_header = vnet_header_bytes(v);
	const uint32_t n = vnet_gather(e, v->packet, sizeof(v->packet));
	const uint8_t *header = v->packet;
	const uint32_t n_before = v->out.head;
	struct vnet_offload offload;
	const char *wrong = NULL;

	if (e->segs[e->n_segs - 1].is_written)
		wrong = "a buffer to be written, in a tx queue";
	else if (n == UINT32_MAX || n < n_header + 14)
		wrong = "a packet too short or too long";
	if (wrong == NULL) {
		offload = (struct vnet_offload){
			.flags = header[0],
			.gso_type = header[1],
			.hdr_len = vnet_get16(header + 2),
			.gso_size = vnet_get16(header + 4),
			.csum_start = vnet_get16(header + 6),
			.csum_offset = vnet_get16(header + 8),
		};
		wrong = header_is_wrong(v, header, &offload);
	}
	if (wrong == NULL)
		wrong = vnet_finish(v->packet + n_header, n - n_header,
				    &offload, send_frame, v);
	if (wrong != NULL) {
		model_violation(&v->model, "queue %u: %s", q->idx, wrong);
		v->counts[q->idx].n_drops++;
	} else {
		v->counts[q->idx].n_packets++;
		v->counts[q->idx].n_bytes += n - n_header;
		v->counts[q->idx].n_summed += offload.flags & VNET_NEEDS_CSUM;
		v->stats.n_sent++;
		v->stats.n_segmented += v->out.head - n_before > 1;
		v->stats.n_summed += offload.flags & VNET_NEEDS_CSUM;
	}
	vnet_use(v, q, 0);
}

void vnet_step_tx(struct vnet *v, struct vnet_queue *q)
{
	if (v->config.is_held || !vnet_queue_map(v, q))
		return;
	if (q->is_kicked || v->config.polls_tx) {
		do {
			vnet_fetch(v, q);
			q->is_kicked = false;
		} while (!vnet_want_kicks(v, q, !v->config.polls_tx) &&
			 q->n_taken - q->n_told < q->size &&
			 vnet_is_running(v));
	}
	if (q->n_taken > q->n_done && q->idx / 2 >= v->n_active_pairs)
		model_violation(&v->model, "queue %u: it is not active",
				q->idx);
	while (send_waiting(v) && q->n_done < q->n_taken && vnet_is_running(v))
		send_one(v, q);
	vnet_tell(v, q);
}

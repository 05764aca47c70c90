/* SPDX-License-Identifier: BSD-3-Clause */
/* The device as a whole: creation, reset, steps. */
#include <stdlib.h>
#include <string.h>

#include "virtio_core.h"

static const struct model_ops ops = {
	.read = vnet_read,
	.write = vnet_write,
	.step = vnet_step,
	.reset = vnet_reset,
};

uint64_t vnet_all_features(void)
{
	static const uint8_t features[] = {
		VNET_CSUM,
		VNET_GUEST_CSUM,
		VNET_CTRL_GUEST_OFFLOADS,
		VNET_MTU,
		VNET_MAC,
		VNET_GUEST_TSO4,
		VNET_GUEST_TSO6,
		VNET_HOST_TSO4,
		VNET_HOST_TSO6,
		VNET_MRG_RXBUF,
		VNET_STATUS,
		VNET_CTRL_VQ,
		VNET_CTRL_RX,
		VNET_CTRL_RX_EXTRA,
		VNET_MQ,
		VNET_GUEST_ANNOUNCE,
		VNET_NOTIF_CONFIG_DATA,
		VNET_DEVICE_STATS,
		VNET_CTRL_MAC_ADDR,
		VNET_EVENT_IDX,
		VNET_VERSION_1,
		VNET_ACCESS_PLATFORM,
		VNET_RING_PACKED,
		VNET_IN_ORDER,
		VNET_ORDER_PLATFORM,
		VNET_NOTIFICATION_DATA,
		VNET_RING_RESET,
		VNET_VQ_NOTF_COAL,
		VNET_NOTF_COAL,
		VNET_GUEST_USO4,
		VNET_GUEST_USO6,
		VNET_HOST_USO,
		VNET_HASH_REPORT,
		VNET_RSS,
		VNET_SPEED_DUPLEX,
	};
	uint64_t all = 0;

	for (size_t i = 0; i < sizeof(features) / sizeof(features[0]); i++)
		all |= VNET_BIT(features[i]);
	return all;
}

bool vnet_fault(struct vnet *v, uint32_t one_in)
{
	const bool is_now = model_fault(&v->model, one_in);

	v->stats.n_faults += is_now;
	return is_now;
}

bool vnet_backlog_put(struct vnet_backlog *backlog, const uint8_t *bytes,
		      uint32_t n_bytes, const struct vnet_offload *offload)
{
	struct vnet_packet *packet =
		&backlog->packets[backlog->head % VNET_N_WAITING];

	if (backlog->head - backlog->tail == VNET_N_WAITING)
		return false;
	packet->bytes = malloc(n_bytes);
	if (packet->bytes == NULL)
		return false;
	memcpy(packet->bytes, bytes, n_bytes);
	packet->n_bytes = n_bytes;
	packet->offload =
		offload != NULL ? *offload : (struct vnet_offload){ 0 };
	backlog->head++;
	return true;
}

struct vnet_packet *vnet_backlog_first(struct vnet_backlog *backlog)
{
	return backlog->head == backlog->tail ?
		       NULL :
		       &backlog->packets[backlog->tail % VNET_N_WAITING];
}

void vnet_backlog_drop(struct vnet_backlog *backlog)
{
	free(vnet_backlog_first(backlog)->bytes);
	backlog->tail++;
}

static void drop_all(struct vnet *v)
{
	uint32_t n_bytes;

	while (vnet_backlog_first(&v->in) != NULL)
		vnet_backlog_drop(&v->in);
	while (vnet_backlog_first(&v->out) != NULL)
		vnet_backlog_drop(&v->out);
	while (model_rx_peek(&v->model, &n_bytes) != NULL)
		model_rx_pop(&v->model);
}

void vnet_reset(struct model *model)
{
	struct vnet *v = vnet_of(model);

	if (v->model.faults.reset_never_ends != 0) {
		v->stats.n_faults++;
		return;
	}
	for (uint16_t i = 0; i < VNET_MAX_QUEUES; i++) {
		v->queues[i].idx = i;
		vnet_queue_disable(&v->queues[i]);
	}
	drop_all(v);
	v->feature_select[0] = v->feature_select[1] = 0;
	v->driver_features = v->features = 0;
	v->config_vector = VNET_NO_VECTOR;
	v->queue_select = 0;
	v->status = v->isr = 0;
	v->n_reset_reads = v->faults.reset_reads;
	memcpy(v->mac, v->config.mac, sizeof(v->mac));
	v->n_unicast = v->n_multicast = 0;
	v->promisc = v->allmulti = false;
	memset(v->coal, 0, sizeof(v->coal));
	memset(v->counts, 0, sizeof(v->counts));
	memset(&v->rss, 0, sizeof(v->rss));
	v->n_active_pairs = 1;
	v->has_rss = v->wants_announcement = false;
}

struct vnet *vnet_create(const struct vnet_config *config)
{
	const struct model_id id = {
		.vendor_id = 0x1af4,
		.device_id = config->is_transitional ? 0x1000 : 0x1041,
		.subsystem_vendor_id = 0x1af4,
		.subsystem_id = config->is_transitional ? 1 : 0x1100,
		.class_code = 0x020000,
		.revision = config->is_transitional ? 0 : 1,
	};
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 };
	static const uint8_t none[6];
	struct vnet *v = calloc(1, sizeof(*v));

	if (v == NULL)
		return NULL;
	v->config = *config;
	if (v->config.features == 0)
		v->config.features = vnet_all_features();
	if (v->config.queue_size == 0)
		v->config.queue_size = 256;
	if (v->config.n_pairs == 0)
		v->config.n_pairs = 1;
	if (v->config.n_vectors == 0)
		v->config.n_vectors = 2 * v->config.n_pairs + 2;
	if (v->config.mtu_bytes == 0)
		v->config.mtu_bytes = 1500;
	if (memcmp(config->mac, none, sizeof(none)) == 0)
		memcpy(v->config.mac, mac, sizeof(mac));
	v->link_is_up = true;
	model_init(&v->model, &ops, &id);
	vnet_add_caps(v);
	vnet_reset(&v->model);
	return v;
}

void vnet_destroy(struct vnet *v)
{
	if (v == NULL)
		return;
	v->model.faults.reset_never_ends = 0;
	vnet_reset(&v->model);
	model_deinit(&v->model);
	free(v);
}

struct model *vnet_model(struct vnet *v)
{
	return &v->model;
}

struct vnet *vnet_of(struct model *model)
{
	return (struct vnet *)model;
}

void vnet_set_faults(struct vnet *v, const struct vnet_faults *faults)
{
	model_lock(&v->model);
	v->faults = *faults;
	model_unlock(&v->model);
}

struct vnet_queue *vnet_ctrl_queue(struct vnet *v)
{
	return &v->queues[2 * vnet_n_pairs(v)];
}

uint32_t vnet_n_pairs(const struct vnet *v)
{
	return vnet_has(v, VNET_MQ) || vnet_has(v, VNET_RSS) ?
		       v->config.n_pairs :
		       1;
}

static void watch_link(struct vnet *v)
{
	const bool is_up = v->model.faults.link_down == 0;

	if (is_up != v->link_is_up) {
		v->link_is_up = is_up;
		vnet_config_changed(v);
	}
}

void vnet_step(struct model *model)
{
	struct vnet *v = vnet_of(model);
	struct vnet_queue *ctrl = vnet_ctrl_queue(v);

	v->now++;
	watch_link(v);
	if ((v->status & VNET_DRIVER_OK) == 0)
		drop_all(v); /* nobody listens */
	if (vnet_is_running(v) && ctrl->is_enabled && vnet_has(v, VNET_CTRL_VQ))
		vnet_step_ctrl(v, ctrl);
	for (uint32_t i = 0; i < vnet_n_pairs(v); i++)
		if (vnet_is_running(v) && v->queues[2 * i + 1].is_enabled)
			vnet_step_tx(v, &v->queues[2 * i + 1]);
	if (vnet_is_running(v))
		vnet_step_rx(v);
}

static void put_in(void *arg, const uint8_t *bytes, uint32_t n_bytes)
{
	struct vnet *v = arg;

	vnet_backlog_put(&v->in, bytes, n_bytes, NULL);
}

/* Packets that the driver accepts unchanged. */
static bool is_taken(const struct vnet *v, const struct vnet_offload *o)
{
	uint64_t needs = VNET_BIT(VNET_GUEST_CSUM);

	if ((o->gso_type & 0x7f) == VNET_GSO_TCPV4)
		needs |= VNET_BIT(VNET_GUEST_TSO4);
	else if ((o->gso_type & 0x7f) == VNET_GSO_TCPV6)
		needs |= VNET_BIT(VNET_GUEST_TSO6);
	else if (o->gso_type == VNET_GSO_UDP_L4)
		needs |= VNET_BIT(VNET_GUEST_USO4) | VNET_BIT(VNET_GUEST_USO6);
	return (v->features & needs) == needs;
}

bool vnet_inject(struct vnet *v, const uint8_t *bytes, uint32_t n_bytes,
		 const struct vnet_offload *offload)
{
	bool is_put;

	model_lock(&v->model);
	if (is_taken(v, offload)) {
		is_put = vnet_backlog_put(&v->in, bytes, n_bytes, offload);
	} else {
		memcpy(v->packet, bytes, n_bytes);
		is_put = vnet_finish(v->packet, n_bytes, offload, put_in, v) ==
			 NULL;
	}
	model_unlock(&v->model);
	model_poke(&v->model);
	return is_put;
}

void vnet_announce(struct vnet *v)
{
	model_lock(&v->model);
	v->wants_announcement = true;
	vnet_config_changed(v);
	model_unlock(&v->model);
}

void vnet_scribble(struct vnet *v, uint32_t queue, uint32_t area,
		   uint32_t offset, uint16_t value)
{
	struct vnet_queue *q = &v->queues[queue % VNET_MAX_QUEUES];
	const uint64_t iovas[] = { q->desc, q->driver, q->device };
	uint64_t iova;

	model_lock(&v->model);
	/* Descriptors are the largest of the three, 16 bytes each. */
	iova = iovas[area % 3] +
	       (q->size == 0 ? 0 : offset % (16u * q->size)) / 2 * 2;
	if (q->is_enabled && vnet_is_running(v) &&
	    model_is_mapped(&v->model, iova, 2)) {
		__atomic_store_n((uint16_t *)model_dma(&v->model, iova, 2),
				 value, __ATOMIC_RELAXED);
		q->is_confused = true;
	}
	model_unlock(&v->model);
}

struct vnet_stats vnet_stats(struct vnet *v)
{
	struct vnet_stats stats;

	model_lock(&v->model);
	stats = v->stats;
	model_unlock(&v->model);
	return stats;
}

struct vnet_state vnet_state(struct vnet *v)
{
	struct vnet_state state;

	model_lock(&v->model);
	state = (struct vnet_state){
		.promisc = v->promisc,
		.allmulti = v->allmulti,
		.has_rss = v->has_rss,
		.wants_announcement = v->wants_announcement,
		.n_active_pairs = v->n_active_pairs,
		.features = v->features,
		.hash_types = v->rss.types,
	};
	memcpy(state.key, v->rss.key, sizeof(state.key));
	for (uint32_t i = 0; i < 2 * VNET_MAX_PAIRS; i++) {
		state.coal_max_packets[i] = v->coal[i].max_packets;
		state.coal_max_usecs[i] = v->coal[i].max_usecs;
	}
	model_unlock(&v->model);
	return state;
}

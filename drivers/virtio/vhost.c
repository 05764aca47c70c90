/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * vhost: the device side of virtio-net; the driver runs in a virtual machine or
 * in another process. Options, opening, closing.
 *
 * Source: QEMU, docs/interop/vhost-user.rst; virtio 1.2, 5.1.
 */
#include <errno.h>
#include <stdio.h>

#include "vhost.h"

enum {
	DEFAULT_MTU = 1500,
	MAX_MTU = 65535 - VIRTIO_LINK_BYTES,
	DEFAULT_MEMORY_MIB = 256 * 1024,
	MAX_MEMORY_MIB = 64 * 1024 * 1024,
};

enum word { AUTO, ON, OFF };
static const char *const auto_words[] = { "auto", "on", "off", NULL };

static int read_words(const struct mr_spec *spec, struct vhost_options *o,
		      struct mr_reason *reason)
{
	const struct {
		const char *key;
		uint32_t *value;
	} options[] = {
		{ "packed", &o->packed }, { "in-order", &o->in_order },
		{ "sg", &o->sg },         { "csum", &o->csum },
		{ "tso", &o->tso },
	};
	int err = 0;

	for (uint32_t i = 0;
	     i < sizeof(options) / sizeof(options[0]) && err == 0; i++)
		err = mr_spec_get_word(spec, options[i].key, auto_words,
				       options[i].value, reason);
	return err;
}

static int read_options(const struct mr_spec *spec, struct vhost_options *o,
			struct mr_reason *reason)
{
	int err = read_words(spec, o, reason);

	if (err == 0)
		err = mr_spec_get_u32(spec, "queues", 1, 1, VIRTIO_MAX_PAIRS,
				      &o->n_queues, reason);
	if (err == 0)
		err = mr_spec_get_u32(spec, "mtu", DEFAULT_MTU,
				      MR_MTU_MIN_BYTES, MAX_MTU, &o->mtu_bytes,
				      reason);
	if (err == 0)
		err = mr_spec_get_u32(spec, "memory", DEFAULT_MEMORY_MIB, 1,
				      MAX_MEMORY_MIB, &o->memory_mib, reason);
	if (err == 0)
		err = mr_spec_get_bool(spec, "client", &o->is_client, reason);
	if (err == 0)
		err = mr_spec_get_bool(spec, "unsealed", &o->is_unsealed,
				       reason);
	if (err == 0 && o->tso == ON && (o->sg == OFF || o->csum == OFF))
		err = mr_fail(reason, -EINVAL,
			      "tso=on needs sg and csum: frames of 64 KiB take "
			      "several buffers, and their segments checksums");
	return err;
}

/* Whether frames may have several entries. */
static int choose_sg(struct vhost_port *port, struct mr_reason *reason)
{
	const struct vhost_options *o = &port->options;
	struct mr_port *base = &port->base;
	const uint32_t room = mr_port_room_bytes(base);
	const bool is_needed =
		o->tso == ON || o->mtu_bytes + VIRTIO_LINK_BYTES > room;

	if (is_needed && o->sg == OFF)
		return mr_fail(reason, -EINVAL,
			       "%s: sg=off: an MTU of %u does not fit in a "
			       "buffer of %u bytes",
			       base->info->name, o->mtu_bytes, room);
	if (o->tso == ON && room * MR_MAX_SEGS < VIRTIO_MAX_GSO_BYTES)
		return mr_fail(reason, -ENOTSUP,
			       "%s: tso=on needs pages with room for %d bytes "
			       "beside headroom and tailroom; use larger pages",
			       base->info->name,
			       VIRTIO_MAX_GSO_BYTES / MR_MAX_SEGS + 1);
	base->info->has_sg = is_needed || o->sg == ON;
	return 0;
}

/* What a driver may choose from. */
static uint64_t choose_features(const struct vhost_options *o)
{
	uint64_t features =
		virtio_bit(VIRTIO_F_VERSION_1) |
		virtio_bit(VIRTIO_F_MRG_RXBUF) |
		virtio_bit(VIRTIO_F_INDIRECT_DESC) |
		virtio_bit(VIRTIO_F_EVENT_IDX) | virtio_bit(VIRTIO_F_MTU) |
		/* The VMM does these with its own control queue. */
		virtio_bit(VIRTIO_F_CTRL_VQ) | virtio_bit(VIRTIO_F_CTRL_RX) |
		virtio_bit(VIRTIO_F_GUEST_ANNOUNCE);

	if (o->n_queues > 1)
		features |= virtio_bit(VIRTIO_F_MQ);
	if (o->packed != OFF)
		features |= virtio_bit(VIRTIO_F_RING_PACKED);
	if (o->in_order != OFF)
		features |= virtio_bit(VIRTIO_F_IN_ORDER);
	if (o->csum != OFF)
		features |= virtio_bit(VIRTIO_F_CSUM) |
			    virtio_bit(VIRTIO_F_GUEST_CSUM) |
			    virtio_bit(VIRTIO_F_GUEST_TSO4) |
			    virtio_bit(VIRTIO_F_GUEST_TSO6) |
			    virtio_bit(VIRTIO_F_GUEST_USO4) |
			    virtio_bit(VIRTIO_F_GUEST_USO6);
	if (o->tso == ON)
		features |= virtio_bit(VIRTIO_F_HOST_TSO4) |
			    virtio_bit(VIRTIO_F_HOST_TSO6) |
			    virtio_bit(VIRTIO_F_HOST_USO);
	return features;
}

static void vhost_close(struct mr_port *base)
{
	struct vhost_port *port = (struct vhost_port *)base;

	mri_vhost_peer_close(port);
	mri_vhost_rings_close(port);
	mri_vhost_signal_put(port);
}

static int open_steps(struct vhost_port *port, const char *path,
		      struct mr_reason *reason)
{
	int err = choose_sg(port, reason);

	if (err < 0)
		return err;
	port->offered = choose_features(&port->options);
	port->base.info->mtu_bytes = port->options.mtu_bytes;
	port->base.info->numa_node = -1;
	snprintf(port->base.info->mode, sizeof(port->base.info->mode),
		 "vhost-user");
	port->signal = mri_vhost_signal_get(port);
	if (port->signal == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory",
			       port->base.info->name);
	err = mri_vhost_rings_open(port, reason);
	if (err == 0)
		mri_vhost_apply_features(port, 0);
	return err < 0 ? err : mri_vhost_peer_open(port, path, reason);
}

/* From a parcel, unless it is NULL. */
static int open_port(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_parcel *parcel, struct mr_reason *reason)
{
	struct vhost_port *port = (struct vhost_port *)base;
	int err = read_options(spec, &port->options, reason);

	if (err < 0)
		return err;
	port->peer.fd = port->listener.fd = port->timer_fd = port->break_fd =
		-1;
	if (parcel != NULL)
		err = mri_vhost_listener_take(&port->listener, parcel, reason);
	if (err == 0)
		err = open_steps(port, mr_spec_device(spec), reason);
	if (err < 0)
		vhost_close(base);
	return err;
}

static int vhost_open(struct mr_port *base, const struct mr_spec *spec,
		      struct mr_reason *reason)
{
	return open_port(base, spec, NULL, reason);
}

static int vhost_take(struct mr_port *base, const struct mr_spec *spec,
		      struct mr_parcel *parcel, struct mr_reason *reason)
{
	return open_port(base, spec, parcel, reason);
}

static const struct mr_hand_over_ops vhost_hand_over = {
	.offer = mri_vhost_offer,
	.take = vhost_take,
	.give = mri_vhost_give,
	.resume = mri_vhost_resume,
};

static int vhost_link(const struct mr_port *base, struct mr_link *ret_link)
{
	const struct vhost_port *port = (const struct vhost_port *)base;

	*ret_link = (struct mr_link){
		.is_up = __atomic_load_n(&port->is_up, __ATOMIC_RELAXED),
	};
	return 0;
}

static int vhost_set_mtu(struct mr_port *base, uint32_t mtu_bytes,
			 struct mr_reason *reason)
{
	struct vhost_port *port = (struct vhost_port *)base;
	const uint32_t room = mr_port_room_bytes(base);

	if (mtu_bytes > MAX_MTU ||
	    (!base->info->has_sg && mtu_bytes + VIRTIO_LINK_BYTES > room))
		return mr_fail(reason, -EINVAL,
			       "%s: an MTU of %u: its buffers take at most %u; "
			       "open it with sg=on",
			       base->info->name, mtu_bytes,
			       room - VIRTIO_LINK_BYTES);
	for (uint32_t i = 0; i < port->options.n_queues; i++)
		__atomic_store_n(&port->txqs[i].max_bytes,
				 mtu_bytes + VIRTIO_LINK_BYTES,
				 __ATOMIC_RELAXED);
	return 0;
}

static void vhost_rxq_stats(const struct mr_rxq *rxq, struct mr_rx_stats *stats)
{
	(void)rxq;
	stats->received = stats->delivered;
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		stats->received += stats->drops[i];
}

static const char *const vhost_keys[] = { "queues",   "packed", "in-order",
					  "sg",       "csum",   "tso",
					  "mtu",      "memory", "client",
					  "unsealed", NULL };

extern const struct mr_driver mr_driver_vhost;
const struct mr_driver mr_driver_vhost = {
	.name = "vhost",
	.keys = vhost_keys,
	.port_bytes = sizeof(struct vhost_port),
	.open = vhost_open,
	.close = vhost_close,
	.poll = mri_vhost_poll,
	.link = vhost_link,
	.set_mtu = vhost_set_mtu,
	.rxq_stats = vhost_rxq_stats,
	.hand_over = &vhost_hand_over,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio-net driver: options, opening, closing, port information.
 *
 * Opening: claim the function, find its registers, negotiate features, create
 * and enable queues; then enable bus mastering, start the device, and post
 * buffers. Closing resets it first, so that it writes nowhere.
 *
 * Source: virtio 1.2, 3.1, 5.1.5.
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "virtio.h"

enum {
	MAX_ENTRIES = 32768,
	DEFAULT_MTU = 1500,
	MAX_MTU = 65535 - VIRTIO_LINK_BYTES,
	MAX_USECS = 1000 * 1000,
};

static const char *const switch_words[] = { "auto", "on", "off", NULL };
static const char *const csum_words[] = { "tx", "on", "off", NULL };
static const char *const off_words[] = { "off", "on", NULL };
/* As enum virtio_switch, then what other drivers call on and off. */
static const char *const rss_words[] = { "auto",      "on",   "off",
					 "symmetric", "keep", NULL };
static const char *const access_words[] = { "auto", "iommufd", "group",
					    "noiommu", NULL };

struct word_option {
	const char *key;
	const char *const *words;
	uint32_t *value;
};

struct number_option {
	const char *key;
	uint32_t otherwise, min, max;
	uint32_t *value;
};

static int read_words(const struct mr_spec *spec, struct virtio_options *o,
		      struct mr_reason *reason)
{
	const struct word_option options[] = {
		{ "packed", switch_words, &o->packed },
		{ "in-order", switch_words, &o->in_order },
		{ "sg", switch_words, &o->sg },
		{ "rss", rss_words, &o->rss },
		{ "csum", csum_words, &o->csum },
		{ "tso", off_words, &o->tso },
		{ "hash", off_words, &o->hash },
		{ "iommu", access_words, &o->access },
	};
	int err = 0;

	for (uint32_t i = 0;
	     i < sizeof(options) / sizeof(options[0]) && err == 0; i++)
		err = mr_spec_get_word(spec, options[i].key, options[i].words,
				       options[i].value, reason);
	if (o->rss > VIRTIO_OFF)
		o->rss -= VIRTIO_OFF;
	return err;
}

static int read_numbers(const struct mr_spec *spec, struct virtio_options *o,
			struct mr_reason *reason)
{
	const struct number_option options[] = {
		{ "queues", 1, 1, VIRTIO_MAX_PAIRS, &o->n_queues },
		{ "mtu", 0, MR_MTU_MIN_BYTES, MAX_MTU, &o->mtu_bytes },
		{ "rx-usecs", 0, 1, MAX_USECS, &o->rx_usecs },
		{ "rx-frames", 0, 1, UINT16_MAX, &o->rx_frames },
		{ "tx-usecs", 0, 1, MAX_USECS, &o->tx_usecs },
		{ "tx-frames", 0, 1, UINT16_MAX, &o->tx_frames },
	};
	int err = 0;

	for (uint32_t i = 0;
	     i < sizeof(options) / sizeof(options[0]) && err == 0; i++)
		err = mr_spec_get_u32(spec, options[i].key,
				      options[i].otherwise, options[i].min,
				      options[i].max, options[i].value, reason);
	return err;
}

/* 0: not given; then the device's size, at most VIRTIO_DEFAULT_ENTRIES. */
static int read_rings(const struct mr_spec *spec, struct virtio_options *o,
		      struct mr_reason *reason)
{
	uint32_t n_entries = 0;
	int err = mr_spec_get_pow2(spec, "ring", 0, 32, MAX_ENTRIES, &n_entries,
				   reason);

	if (err == 0)
		err = mr_spec_get_pow2(spec, "rx-ring", n_entries, 32,
				       MAX_ENTRIES, &o->n_rx_entries, reason);
	if (err == 0)
		err = mr_spec_get_pow2(spec, "tx-ring", n_entries, 32,
				       MAX_ENTRIES, &o->n_tx_entries, reason);
	return err;
}

static bool parse_mac(const char *text, uint8_t mac[6])
{
	for (uint32_t i = 0; i < 6; i++, text += 3) {
		if (!isxdigit(text[0]) || !isxdigit(text[1]) ||
		    text[2] != (i < 5 ? ':' : '\0'))
			return false;
		mac[i] = (uint8_t)strtoul(text, NULL, 16);
	}
	return !(mac[0] & 1); /* not of a group */
}

/* The port's own address; by default a random one, which is local. */
static int read_mac(const struct mr_spec *spec, uint8_t mac[6],
		    struct mr_reason *reason)
{
	const char *text = mr_spec_get(spec, "mac");

	if (text == NULL) {
		if (getrandom(mac, 6, 0) < 0)
			memset(mac, 0, 6);
		mac[0] = (uint8_t)((mac[0] & ~1) | 2);
		return 0;
	}
	if (!parse_mac(text, mac))
		return mr_fail(reason, -EINVAL,
			       "mac=%s: not the address of a station, such as "
			       "02:00:00:00:00:01",
			       text);
	return 0;
}

/* What only virtio-user has. */
static int read_user_options(const struct mr_spec *spec,
			     struct virtio_options *o, struct mr_reason *reason)
{
	const char *tap = mr_spec_get(spec, "tap");
	int err = mr_spec_get_bool(spec, "server", &o->is_server, reason);

	if (err == 0 && tap != NULL &&
	    (tap[0] == '\0' || strlen(tap) >= sizeof(o->tap)))
		err = mr_fail(reason, -EINVAL,
			      "tap=%s: not the name of an interface", tap);
	if (err < 0)
		return err;
	snprintf(o->tap, sizeof(o->tap), "%s", tap != NULL ? tap : "");
	return read_mac(spec, o->mac, reason);
}

static int read_options(const struct mr_spec *spec, struct virtio_options *o,
			struct mr_reason *reason)
{
	int err = read_words(spec, o, reason);

	if (err == 0)
		err = read_numbers(spec, o, reason);
	if (err == 0)
		err = read_rings(spec, o, reason);
	if (err == 0)
		err = mr_spec_get_bool(spec, "promisc", &o->promisc, reason);
	if (err == 0)
		err = read_user_options(spec, o, reason);
	if (err < 0)
		return err;
	if ((o->rx_frames != 0 && o->rx_usecs == 0) ||
	    (o->tx_frames != 0 && o->tx_usecs == 0))
		return mr_fail(
			reason, -EINVAL,
			"%s: too few frames would wait forever; also set "
			"%s",
			o->rx_usecs == 0 && o->rx_frames != 0 ? "rx-frames" :
								"tx-frames",
			o->rx_usecs == 0 && o->rx_frames != 0 ? "rx-usecs" :
								"tx-usecs");
	if (o->tso && o->sg == VIRTIO_OFF)
		return mr_fail(reason, -EINVAL,
			       "tso=on and sg=off: frames of 64 KiB take "
			       "several buffers");
	return 0;
}

static int virtio_need(struct mr_ctx *ctx, const struct mr_spec *spec,
		       uint32_t page_bytes, uint32_t *ret_n_pages,
		       struct mr_reason *reterr_reason)
{
	struct virtio_options o = { 0 };
	const int err = read_options(spec, &o, reterr_reason);

	(void)ctx;
	(void)page_bytes;
	if (err < 0)
		return err;
	*ret_n_pages =
		o.n_queues * ((o.n_rx_entries != 0 ? o.n_rx_entries :
						     VIRTIO_DEFAULT_ENTRIES) +
			      (o.n_tx_entries != 0 ? o.n_tx_entries :
						     VIRTIO_DEFAULT_ENTRIES));
	return 0;
}

static bool is_longer_than_a_buffer(const struct mr_port *base,
				    uint32_t mtu_bytes)
{
	return mtu_bytes + VIRTIO_LINK_BYTES > mr_port_room_bytes(base);
}

/* Choose the port's MTU, from the device's limits and the options. */
static int choose_mtu(struct virtio_port *port, struct mr_reason *reason)
{
	const struct virtio_options *o = &port->options;
	const struct virtio_facts *facts = &port->facts;
	uint32_t mtu_bytes =
		facts->max_mtu_bytes != 0 ? facts->max_mtu_bytes : DEFAULT_MTU;

	if (facts->max_mtu_bytes != 0 && o->mtu_bytes > facts->max_mtu_bytes)
		return mr_fail(reason, -EINVAL,
			       "%s: mtu=%u: the device takes at most %u",
			       port->base.info->name, o->mtu_bytes,
			       facts->max_mtu_bytes);
	if (o->n_queues > facts->max_pairs)
		return mr_fail(reason, -EINVAL,
			       "%s: queues=%u: the device has %u; QEMU: mq=on, "
			       "and queues= of its netdev",
			       port->base.info->name, o->n_queues,
			       facts->max_pairs);
	if (o->mtu_bytes != 0)
		mtu_bytes = o->mtu_bytes;
	port->base.info->mtu_bytes = mtu_bytes;
	return 0;
}

static int negotiate_features(struct virtio_port *port,
			      struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	const struct virtio_options *o = &port->options;
	struct virtio_options wanted = *o;
	uint64_t offered, features;
	bool needs_sg;
	int err;

	err = port->transport->begin(port, reason);
	if (err < 0)
		return err;
	(void)port->transport->read_facts(port, &port->facts);
	err = choose_mtu(port, reason);
	if (err < 0)
		return err;
	needs_sg = o->sg == VIRTIO_ON || o->tso ||
		   is_longer_than_a_buffer(base, base->info->mtu_bytes);
	if (needs_sg && o->sg == VIRTIO_OFF)
		return mr_fail(reason, -EINVAL,
			       "%s: sg=off: an MTU of %u does not fit in a "
			       "buffer of %u bytes",
			       base->info->name, base->info->mtu_bytes,
			       mr_port_room_bytes(base));
	offered = port->offered;
	if (o->rss == VIRTIO_AUTO && !mri_virtio_has_rss_enough(port))
		offered &= ~virtio_bit(VIRTIO_F_RSS);
	if (port->transport->is_user)
		wanted.n_queues = 1; /* MQ needs a control queue */
	err = mri_virtio_choose(offered, &wanted, port->is_behind_iommu,
				needs_sg, base->info->name, &features, reason);
	if (err < 0)
		return err;
	err = port->transport->accept(port, features, reason);
	if (err < 0)
		return err;
	base->info->has_sg = virtio_has(port, VIRTIO_F_MRG_RXBUF);
	port->header_bytes = virtio_has(port, VIRTIO_F_HASH_REPORT) ?
				     VIRTIO_HASH_HEADER_BYTES :
				     VIRTIO_HEADER_BYTES;
	if (base->headroom_bytes < port->header_bytes)
		return mr_fail(reason, -EINVAL,
			       "%s: the pool has %u bytes of headroom, but the "
			       "device writes %u before each frame",
			       base->info->name, base->headroom_bytes,
			       port->header_bytes);
	return 0;
}

/* A device without interrupts is polled. */
static int set_irqs(struct virtio_port *port, struct mr_reason *reason)
{
	const uint32_t n = 1 + 2 * port->options.n_queues;
	int n_got;

	port->irq_fds = mr_alloc(port->base.ctx, 0, n * sizeof(int));
	if (port->irq_fds == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for interrupts",
			       port->base.info->name);
	n_got = port->transport->set_irqs(port, n, port->irq_fds, reason);
	if (n_got < 0)
		return n_got;
	port->n_irqs = (uint32_t)n_got;
	return 0;
}

static const struct offload {
	uint32_t feature, offload;
} offloads[] = {
	{ VIRTIO_F_CSUM, MR_OFFLOAD_CSUM_TX },
	{ VIRTIO_F_GUEST_CSUM, MR_OFFLOAD_CSUM_RX },
	{ VIRTIO_F_HOST_TSO4, MR_OFFLOAD_TSO4 },
	{ VIRTIO_F_HOST_TSO6, MR_OFFLOAD_TSO6 },
	{ VIRTIO_F_HOST_USO, MR_OFFLOAD_USO },
	{ VIRTIO_F_HASH_REPORT, MR_OFFLOAD_RSS_HASH },
	{ VIRTIO_F_GUEST_TSO4, MR_OFFLOAD_LRO },
	{ VIRTIO_F_GUEST_TSO6, MR_OFFLOAD_LRO },
};

/* As the kernel counts them: the region, and the queues. */
static uint64_t count_locked(const struct virtio_port *port)
{
	struct mr_region_stats region = { .size = sizeof(region) };
	uint64_t n_bytes =
		port->ctrl.vq.dma.n_bytes + port->ctrl.memory.n_bytes;

	(void)mr_region_stats(port->base.region, &region);
	n_bytes += region.n_bytes;
	for (uint32_t i = 0; i < port->options.n_queues; i++)
		n_bytes += port->rxqs[i].vq.dma.n_bytes +
			   port->txqs[i].vq.dma.n_bytes +
			   port->txqs[i].headers.n_bytes;
	return n_bytes;
}

static void fill_info(struct virtio_port *port)
{
	struct mr_port_info *info = port->base.info;

	port->transport->describe(port, info);
	info->locked_bytes = port->transport->is_user ? 0 : count_locked(port);
	info->has_mac = port->facts.has_mac;
	memcpy(info->mac, port->facts.mac, sizeof(info->mac));
	for (uint32_t i = 0; i < sizeof(offloads) / sizeof(offloads[0]); i++)
		if (virtio_has(port, offloads[i].feature))
			info->offloads |= offloads[i].offload;
	if (port->n_irqs < 1 + 2 * port->options.n_queues)
		snprintf(info->why, sizeof(info->why),
			 "the device has %u interrupts; sleeping on each queue "
			 "needs %u",
			 port->n_irqs, 1 + 2 * port->options.n_queues);
}

/* From found registers to a device that receives. */
static int start_device(struct virtio_port *port, struct mr_reason *reason)
{
	int err = mri_virtio_queues_start(port, reason);

	if (err == 0 && virtio_has(port, VIRTIO_F_CTRL_VQ))
		err = port->transport->start_queue(port, &port->ctrl.vq,
						   reason);
	if (err == 0)
		err = port->transport->start(port, reason);
	if (err < 0)
		return err;
	mri_virtio_queues_fill(port);
	return port->transport->is_user ? 0 :
					  mri_virtio_ctrl_setup(port, reason);
}

/*
 * A late answer to a timed-out command might be taken for the answer to the
 * next one, so start over, without the feature of the command.
 */
static int restart_without(struct virtio_port *port, uint32_t feature,
			   struct mr_reason *reason)
{
	const uint64_t features = port->features & ~virtio_bit(feature);
	int err;

	port->transport->stop(port);
	if ((err = port->transport->begin(port, reason)) < 0 ||
	    (err = port->transport->accept(port, features, reason)) < 0)
		return err;
	mri_virtio_queues_clear(port);
	mri_virtio_ctrl_close(port);
	port->ctrl = (struct virtio_ctrl){ 0 };
	err = mri_virtio_ctrl_open(port, reason);
	return err < 0 ? err : start_device(port, reason);
}

static void virtio_close(struct mr_port *base)
{
	struct virtio_port *port = (struct virtio_port *)base;

	port->transport->stop(port);
	mri_virtio_events_close(port);
	mri_virtio_queues_free(port);
	mri_virtio_ctrl_close(port);
	port->transport->close(port);
	mr_free(port->base.ctx, port->irq_fds);
}

static int open_steps(struct virtio_port *port, const char *device,
		      struct mr_reason *reason)
{
	int err;

	if ((err = port->transport->open(port, device, reason)) < 0 ||
	    (err = negotiate_features(port, reason)) < 0 ||
	    (err = set_irqs(port, reason)) < 0 ||
	    (err = mri_virtio_queues_alloc(port, reason)) < 0)
		return err;
	if (virtio_has(port, VIRTIO_F_CTRL_VQ)) {
		err = mri_virtio_ctrl_open(port, reason);
		if (err < 0)
			return err;
	}
	err = mri_virtio_events_open(port, reason);
	if (err == 0 && port->base.is_away)
		fill_info(port);
	if (err < 0 || port->base.is_away)
		return err;
	err = start_device(port, reason);
	if (err < 0)
		return err;
	if (mri_virtio_stats_setup(port) < 0) {
		err = restart_without(port, VIRTIO_F_DEVICE_STATS, reason);
		if (err < 0)
			return err;
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: the device does not report its counters; opened "
		       "without DEVICE_STATS",
		       port->base.info->name);
	}
	mri_virtio_read_link(port);
	fill_info(port);
	return 0;
}

int mri_virtio_open(struct mr_port *base, const struct mr_spec *spec,
		    const struct virtio_transport *transport,
		    struct mr_reason *reason)
{
	struct virtio_port *port = (struct virtio_port *)base;
	int err = read_options(spec, &port->options, reason);

	if (err < 0)
		return err;
	port->transport = transport;
	port->timer_fd = -1; /* like base->fd */
	err = open_steps(port, mr_spec_device(spec), reason);
	if (err < 0)
		virtio_close(base);
	return err;
}

static int virtio_open(struct mr_port *base, const struct mr_spec *spec,
		       struct mr_reason *reterr_reason)
{
	return mri_virtio_open(base, spec, &mri_virtio_pci, reterr_reason);
}

static int virtio_user_open(struct mr_port *base, const struct mr_spec *spec,
			    struct mr_reason *reterr_reason)
{
	return mri_virtio_open(base, spec, &mri_virtio_user, reterr_reason);
}

static int virtio_link(const struct mr_port *base, struct mr_link *ret_link)
{
	const struct virtio_port *port = (const struct virtio_port *)base;

	*ret_link = (struct mr_link){
		.is_up = __atomic_load_n(&port->is_up, __ATOMIC_RELAXED),
		.speed_mbps =
			__atomic_load_n(&port->speed_mbps, __ATOMIC_RELAXED),
		.is_gone = __atomic_load_n(&port->is_gone, __ATOMIC_RELAXED),
	};
	return 0;
}

static int virtio_set_mtu(struct mr_port *base, uint32_t mtu_bytes,
			  struct mr_reason *reason)
{
	struct virtio_port *port = (struct virtio_port *)base;
	const uint32_t max = port->facts.max_mtu_bytes != 0 ?
				     port->facts.max_mtu_bytes :
				     MAX_MTU;

	if (mtu_bytes > max)
		return mr_fail(reason, -EINVAL,
			       "%s: an MTU of %u: the device takes at most %u",
			       base->info->name, mtu_bytes, max);
	if (!base->info->has_sg && is_longer_than_a_buffer(base, mtu_bytes))
		return mr_fail(reason, -EINVAL,
			       "%s: an MTU of %u: its buffers take at most %u; "
			       "open it with sg=on",
			       base->info->name, mtu_bytes,
			       mr_port_room_bytes(base) - VIRTIO_LINK_BYTES);
	mri_virtio_queues_set_mtu(port, mtu_bytes);
	return 0;
}

/* Bursts count what was delivered, and drops. */
static void virtio_rxq_stats(const struct mr_rxq *rxq,
			     struct mr_rx_stats *stats)
{
	(void)rxq;
	stats->received = stats->delivered;
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		stats->received += stats->drops[i];
}

/* Bursts count what they take and complete; the rest is in progress. */
static void virtio_txq_stats(const struct mr_txq *txq,
			     struct mr_tx_stats *stats)
{
	uint64_t n_gone = stats->completed;

	(void)txq;
	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		n_gone += stats->drops[i];
	stats->pending =
		stats->accepted > n_gone ? stats->accepted - n_gone : 0;
}

static const char *const virtio_keys[] = {
	"queues",    "ring",     "rx-ring",   "tx-ring", "packed",
	"in-order",  "sg",       "csum",      "tso",     "rss",
	"hash",      "mtu",      "promisc",   "iommu",   "rx-usecs",
	"rx-frames", "tx-usecs", "tx-frames", NULL
};

static const struct mr_pci_id virtio_ids[] = {
	{ VIRTIO_PCI_VENDOR, VIRTIO_PCI_NET },
	{ VIRTIO_PCI_VENDOR, VIRTIO_PCI_NET_TRANSITIONAL },
	{ 0, 0 },
};

extern const struct mr_driver mr_driver_virtio;
const struct mr_driver mr_driver_virtio = {
	.name = "virtio",
	.keys = virtio_keys,
	.pci_ids = virtio_ids,
	.port_bytes = sizeof(struct virtio_port),
	.need = virtio_need,
	.open = virtio_open,
	.close = virtio_close,
	.poll = mri_virtio_poll,
	.link = virtio_link,
	.set_promisc = mri_virtio_set_promisc,
	.set_allmulti = mri_virtio_set_allmulti,
	.set_mtu = virtio_set_mtu,
	.set_mac = mri_virtio_set_mac,
	.set_mac_filter = mri_virtio_set_mac_filter,
	.set_rss = mri_virtio_set_rss,
	.device_stats = mri_virtio_device_stats,
	.rxq_stats = virtio_rxq_stats,
	.txq_stats = virtio_txq_stats,
};

static const char *const virtio_user_keys[] = {
	"queues", "ring", "rx-ring", "tx-ring", "packed", "in-order", "sg",
	"csum",   "tso",  "mtu",     "mac",     "server", "tap",      NULL
};

extern const struct mr_driver mr_driver_virtio_user;
const struct mr_driver mr_driver_virtio_user = {
	.name = "virtio-user",
	.keys = virtio_user_keys,
	.port_bytes = sizeof(struct virtio_port),
	.need = virtio_need,
	.open = virtio_user_open,
	.close = virtio_close,
	.poll = mri_virtio_poll,
	.link = virtio_link,
	.set_mtu = virtio_set_mtu,
	.rxq_stats = virtio_rxq_stats,
	.txq_stats = virtio_txq_stats,
	.hand_over = &mri_virtio_user_hand_over,
};

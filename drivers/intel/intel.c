/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver for Intel's 1 GbE controllers: which ones, open, close.
 *
 * Opening: device --> reset --> rings and their first buffers --> vectors -->
 * the order of intel_hw.c --> link. Closing: stop the device, so that it cannot
 * access memory, then take back the buffers.
 */
#include <errno.h>
#include <string.h>

#include "intel.h"

/* lib/port chooses the driver by these, and chips[] has a row for each. */
static const struct mr_pci_id intel_ids[] = {
	{ 0x8086, 0x10d3 }, { 0x8086, 0x10c9 }, { 0x8086, 0x10e8 },
	{ 0x8086, 0x1521 }, { 0x8086, 0x1533 }, { 0x8086, 0x157b },
	{ 0x8086, 0x1539 }, { 0, 0 },
};

/* Copper only; fibre and backplanes bring up the link differently. By igb,
 * 82576, I210; then the most queues, bytes of an MTU and of a descriptor. */
static const struct intel_chip chips[] = {
	{ "82574", false, false, false, 2, 9212, 24 << 10 },
	{ "82576", true, true, false, 16, 9216, 32 << 10 },
	{ "82576", true, true, false, 16, 9216, 32 << 10 }, /* of four ports */
	{ "I350", true, false, false, 8, 9216, 32 << 10 },
	{ "I210", true, false, true, 4, 9216, 32 << 10 },
	{ "I210", true, false, true, 4, 9216, 32 << 10 }, /* without flash */
	{ "I211", true, false, true, 2, 9216, 32 << 10 },
};

enum { N_CHIPS = sizeof(chips) / sizeof(chips[0]) };

_Static_assert(sizeof(intel_ids) / sizeof(intel_ids[0]) == N_CHIPS + 1,
	       "a chip for each id");

/* Find the chip of a spec, and check that it supports the options. */
static int find_chip(struct mr_ctx *ctx, const struct mr_spec *spec,
		     const struct intel_options *o,
		     const struct intel_chip **ret_chip,
		     struct mr_reason *reason)
{
	const char *const device = mr_spec_device(spec);
	struct mr_pci_info info = { .size = sizeof(info) };
	const struct intel_chip *chip = NULL;
	const int err = mr_pci_info(ctx, device, &info, reason);

	if (err < 0)
		return err;
	for (uint32_t i = 0; i < N_CHIPS; i++)
		if (intel_ids[i].vendor_id == info.vendor_id &&
		    intel_ids[i].device_id == info.device_id)
			chip = &chips[i];
	if (chip == NULL)
		return mr_fail(reason, -ENODEV,
			       "intel:%s: %04x:%04x is not a supported NIC",
			       device, info.vendor_id, info.device_id);
	if (o->n_queues > chip->max_queues)
		return mr_fail(
			reason, -EINVAL,
			"intel:%s: option queues: %u: the %s has at most %u",
			device, o->n_queues, chip->name, chip->max_queues);
	if (o->mtu_bytes > chip->max_mtu_bytes)
		return mr_fail(
			reason, -EINVAL,
			"intel:%s: option mtu: %u: the %s takes at most %u",
			device, o->mtu_bytes, chip->name, chip->max_mtu_bytes);
	if (o->head_wb == INTEL_ON && !chip->is_igb)
		return mr_fail(reason, -ENOTSUP,
			       "intel:%s: option head-wb: the %s has no head "
			       "write-back",
			       device, chip->name);
	*ret_chip = chip;
	return 0;
}

static int intel_need(struct mr_ctx *ctx, const struct mr_spec *spec,
		      uint32_t page_bytes, uint32_t *ret_n_pages,
		      struct mr_reason *reterr_reason)
{
	struct intel_options options = { 0 };
	const struct intel_chip *chip;
	int err = mri_intel_read_options(spec, &options, reterr_reason);

	(void)page_bytes; /* each entry in flight may have its own page */
	if (err == 0)
		err = find_chip(ctx, spec, &options, &chip, reterr_reason);
	if (err < 0)
		return err;
	*ret_n_pages = (options.n_rx_entries + options.n_tx_entries) *
		       options.n_queues;
	return 0;
}

/* igb counts them in KiB; the 82574 knows powers of two, 1 to 16 KiB. */
static uint32_t rx_buf_bytes(const struct intel_chip *chip, uint32_t room)
{
	if (chip->is_igb)
		return room / 1024 * 1024;
	return room < 16384 ? 1u << (31 - __builtin_clz(room | 1)) : 16384;
}

/* How much of a page the device gets, and how many pages per frame. */
static int choose_buffers(struct intel_port *port, struct mr_reason *reason)
{
	const struct intel_options *o = &port->options;
	struct mr_port *base = &port->base;
	const uint32_t around = base->headroom_bytes + base->tailroom_bytes;
	const uint32_t room = base->page_bytes - around;
	const uint32_t frame_bytes = o->mtu_bytes + INTEL_LINK_BYTES;

	port->buf_bytes = rx_buf_bytes(port->chip, room);
	if (port->buf_bytes < INTEL_MIN_BUF_BYTES)
		return mr_fail(reason, -EINVAL,
			       "%s: the device needs rx buffers of at least "
			       "1024 bytes: with headroom %u and tailroom %u "
			       "the pool needs pages of %u bytes, but has %u",
			       base->info->name, base->headroom_bytes,
			       base->tailroom_bytes,
			       around + INTEL_MIN_BUF_BYTES, base->page_bytes);
	base->info->has_sg =
		o->sg == INTEL_ON ||
		(o->sg == INTEL_AUTO && frame_bytes > port->buf_bytes);
	if (o->sg == INTEL_OFF && frame_bytes > port->buf_bytes)
		return mr_fail(reason, -EINVAL,
			       "%s: sg=off with an MTU of %u needs rx buffers "
			       "of %u bytes; in pages of %u bytes, headroom "
			       "%u and tailroom %u leave room for %u",
			       base->info->name, o->mtu_bytes, frame_bytes,
			       base->page_bytes, base->headroom_bytes,
			       base->tailroom_bytes, port->buf_bytes);
	if (frame_bytes > MR_MAX_SEGS * port->buf_bytes)
		return mr_fail(reason, -EINVAL,
			       "%s: an MTU of %u does not fit in %d rx buffers "
			       "of %u bytes",
			       base->info->name, o->mtu_bytes, MR_MAX_SEGS,
			       port->buf_bytes);
	port->mtu_bytes = o->mtu_bytes;
	return 0;
}

static void fill_info(struct intel_port *port)
{
	struct mr_port_info *info = port->base.info;
	const char *const mode = mr_pci_mode(port->pci);
	struct mr_region_stats region = { .size = sizeof(region) };

	info->mtu_bytes = port->mtu_bytes;
	info->numa_node = mr_pci_device(port->pci)->numa_node;
	(void)mr_region_stats(port->base.region, &region);
	info->locked_bytes = region.n_bytes;
	for (uint32_t i = 0; i < port->n_queues; i++)
		info->locked_bytes +=
			port->rxqs[i].dma.n_bytes + port->txqs[i].dma.n_bytes;
	info->offloads = MR_OFFLOAD_CSUM_TX | MR_OFFLOAD_CSUM_RX |
			 MR_OFFLOAD_TSO4 | MR_OFFLOAD_TSO6 |
			 MR_OFFLOAD_RSS_HASH;
	if (port->txqs[0].has_vlan)
		info->offloads |= MR_OFFLOAD_VLAN_TX;
	if (port->options.vlan)
		info->offloads |= MR_OFFLOAD_VLAN_RX;
	memcpy(info->mode, mode, strnlen(mode, sizeof(info->mode) - 1));
}

/* Undo as much of opening as was done. */
static void intel_close(struct mr_port *base)
{
	struct intel_port *port = (struct intel_port *)base;

	if (port->bar.n_bytes != 0)
		mri_intel_stop(port);
	mri_intel_irq_close(port);
	mri_intel_queues_close(port);
	mr_pci_close(port->pci);
	mr_free(port->base.ctx, port->stats);
}

static int open_steps(struct intel_port *port, const char *device,
		      struct mr_reason *reason)
{
	const struct mr_pci_config config = {
		.size = sizeof(config),
		.access = port->options.access,
		.region = port->base.region,
		.holder = port->base.info->name,
	};
	int err;

	if (mri_intel_stats_open(port) < 0)
		return mr_fail(reason, -ENOMEM, "%s: no memory for a port",
			       port->base.info->name);
	if ((err = mr_pci_open(port->base.ctx, device, &config, &port->pci,
			       reason)) < 0 ||
	    (err = mr_pci_map_bar(port->pci, 0, &port->bar, reason)) < 0 ||
	    (err = mri_intel_reset(port, reason)) < 0 ||
	    (err = mri_intel_queues_open(port, reason)) < 0 ||
	    (err = mri_intel_irq_open(port, reason)) < 0 ||
	    (err = mri_intel_start(port, reason)) < 0)
		return err;
	(void)mri_intel_look(port);
	return mri_intel_check(port, reason);
}

static int intel_open(struct mr_port *base, const struct mr_spec *spec,
		      struct mr_reason *reterr_reason)
{
	struct intel_port *port = (struct intel_port *)base;
	int err;

	port->timer_fd = -1;
	if ((err = mri_intel_read_options(spec, &port->options,
					  reterr_reason)) < 0 ||
	    (err = find_chip(base->ctx, spec, &port->options, &port->chip,
			     reterr_reason)) < 0 ||
	    (err = choose_buffers(port, reterr_reason)) < 0)
		return err;
	err = open_steps(port, mr_spec_device(spec), reterr_reason);
	if (err < 0)
		intel_close(base);
	else
		fill_info(port);
	return err;
}

static int intel_link(const struct mr_port *base, struct mr_link *ret_link)
{
	const struct intel_port *port = (const struct intel_port *)base;

	*ret_link = (struct mr_link){
		.is_up = __atomic_load_n(&port->is_up, __ATOMIC_RELAXED),
		.speed_mbps =
			__atomic_load_n(&port->speed_mbps, __ATOMIC_RELAXED),
		.is_gone = __atomic_load_n(&port->is_gone, __ATOMIC_RELAXED),
	};
	return 0;
}

static const char *const intel_keys[] = {
	"iommu",   "queues", "ring", "rx-ring", "tx-ring",  "mtu", "sg",
	"head-wb", "itr",    "vlan", "promisc", "allmulti", "rss", NULL
};

extern const struct mr_driver mr_driver_intel;
const struct mr_driver mr_driver_intel = {
	.name = "intel",
	.keys = intel_keys,
	.pci_ids = intel_ids,
	.port_bytes = sizeof(struct intel_port),
	.need = intel_need,
	.open = intel_open,
	.close = intel_close,
	.poll = mri_intel_poll,
	.link = intel_link,
	.device_drops = mri_intel_device_drops,
	.set_promisc = mri_intel_set_promisc,
	.set_allmulti = mri_intel_set_allmulti,
	.set_mtu = mri_intel_set_mtu,
	.set_mac = mri_intel_set_mac,
	.set_mac_filter = mri_intel_set_mac_filter,
	.set_rss = mri_intel_set_rss,
	.device_stats = mri_intel_device_stats,
	.rxq_stats = mri_intel_rxq_stats,
	.txq_stats = mri_intel_txq_stats,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The AF_XDP driver: options, opening, closing. Who makes the port's lease also
 * does what needs capabilities later: struct xdp_lessor.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device/events.h"
#include "device/stats.h"
#include "lease/server.h"
#include "program/filter.h"
#include "socket/queue.h"
#include "socket/socket.h"
#include "xdp.h"

enum {
	DEFAULT_RING_ENTRIES = 2048,
	KERNEL_BYTES_PER_CHUNK = 128, /* measured, Linux 6.18 */
};

static const char *const mode_words[] = { "auto", "zc", "copy", NULL };
static const char *const attach_words[] = { "auto", "native", "generic", NULL };
static const char *const rss_words[] = { "auto", "symmetric", "keep", NULL };
static const char *const switch_words[] = { "auto", "on", "off", NULL };
static const char *const via_words[] = { "auto", "broker", "self", NULL };

int mri_xdp_read_options(const struct mr_spec *spec, struct xdp_options *o,
			 struct mr_reason *reason)
{
	int err;

	if ((err = mr_spec_get_word(spec, "mode", mode_words, &o->mode,
				    reason)) < 0 ||
	    (err = mr_spec_get_word(spec, "attach", attach_words, &o->attach,
				    reason)) < 0 ||
	    (err = mr_spec_get_word(spec, "sg", switch_words, &o->sg, reason)) <
		    0 ||
	    (err = mr_spec_get_word(spec, "via", via_words, &o->via, reason)) <
		    0 ||
	    (err = mr_spec_get_word(spec, "csum", switch_words, &o->csum,
				    reason)) < 0 ||
	    (err = mr_spec_get_word(spec, "rss", rss_words, &o->rss, reason)) <
		    0 ||
	    (err = mr_spec_get_u32(spec, "queues", 0, 1, XDP_MAX_QUEUES,
				   &o->n_queues, reason)) < 0 ||
	    (err = mr_spec_get_u32(spec, "start", 0, 0, UINT16_MAX,
				   &o->first_queue, reason)) < 0 ||
	    (err = mr_spec_get_pow2(spec, "ring", DEFAULT_RING_ENTRIES, 64,
				    32768, &o->ring_entries, reason)) < 0 ||
	    (err = mr_spec_get_u32(spec, "mtu", 0, 68, 65535, &o->mtu_bytes,
				   reason)) < 0 ||
	    (err = mr_spec_get_u32(spec, "budget", 0, 32, 32768, &o->budget,
				   reason)) < 0 ||
	    (err = mr_spec_get_u32(spec, "busy", 0, 1, UINT16_MAX, &o->busy,
				   reason)) < 0 ||
	    (err = mr_spec_get_bool(spec, "promisc", &o->promisc, reason)) <
		    0 ||
	    (err = mr_spec_get_bool(spec, "force", &o->force, reason)) < 0 ||
	    (err = mr_spec_get_bool(spec, "partial", &o->partial, reason)) <
		    0 ||
	    (err = mr_spec_get_bool(spec, "meta", &o->meta, reason)) < 0)
		return err;
	o->prog = mr_spec_get(spec, "prog");
	o->map = mr_spec_get(spec, "map");
	o->broker = mr_spec_get(spec, "broker");
	if (o->prog != NULL && o->map != NULL)
		return mr_fail(reason, -EINVAL,
			       "xdp: 'prog' and 'map' are mutually exclusive: "
			       "either the port loads a program, or others "
			       "did");
	if (o->map != NULL && o->attach != XDP_ATTACH_AUTO)
		return mr_fail(reason, -EINVAL,
			       "xdp: with 'map', the port attaches no program: "
			       "omit 'attach'");
	if (o->budget > o->ring_entries)
		return mr_fail(reason, -EINVAL,
			       "xdp: option budget: %u is more than the ring's "
			       "%u entries",
			       o->budget, o->ring_entries);
	return 0;
}

int mri_xdp_choose_queues(const struct xdp_netdev *dev, struct xdp_options *o,
			  struct mr_reason *reason)
{
	const uint32_t n_channels = dev->n_rx_channels;

	if (o->first_queue >= n_channels)
		return mr_fail(reason, -EINVAL,
			       "xdp:%s: start=%u: it has %u rx channels, 0 to "
			       "%u",
			       dev->name, o->first_queue, n_channels,
			       n_channels - 1);
	if (o->n_queues == 0)
		o->n_queues = n_channels - o->first_queue;
	if (o->n_queues > n_channels - o->first_queue)
		return mr_fail(reason, -EINVAL,
			       "xdp:%s: queues=%u: it has %u rx channels from "
			       "%u on; 'ethtool -L' changes that",
			       dev->name, o->n_queues,
			       n_channels - o->first_queue, o->first_queue);
	if (o->n_queues > XDP_MAX_QUEUES)
		return mr_fail(reason, -EINVAL,
			       "xdp:%s: has %u rx channels, a port at most %d; "
			       "'ethtool -L' changes that",
			       dev->name, n_channels, XDP_MAX_QUEUES);
	if (o->n_queues < n_channels && !o->partial)
		return mr_fail(reason, -EINVAL,
			       "xdp:%s: the device feeds %u rx channels and "
			       "the port would have %u: frames on the others "
			       "go to the kernel. 'ethtool -L %s combined %u' "
			       "(veth: rx), or the option 'partial' if that is "
			       "meant",
			       dev->name, n_channels, o->n_queues, dev->name,
			       o->n_queues);
	return 0;
}

/* The interface, who leases it, and its queues. */
static int find_dev(const struct mr_spec *spec, struct xdp_options *o,
		    const struct xdp_lessor **ret_lessor,
		    struct xdp_netdev *ret_dev, struct mr_reason *reason)
{
	const char *const name = mr_spec_device(spec);
	int err = mri_xdp_choose_lessor(name, o, ret_lessor, reason);

	if (err == 0)
		err = (*ret_lessor)->find(name, o, ret_dev, reason);
	return err == 0 ? mri_xdp_choose_queues(ret_dev, o, reason) : err;
}

/* Other sizes of AF_XDP chunks need huge pages or unaligned mode. */
static int check_page_bytes(const struct mr_spec *spec, uint32_t page_bytes,
			    struct mr_reason *reason)
{
	if (page_bytes == 2048 || page_bytes == 4096)
		return 0;
	return mr_fail(reason, -EINVAL,
		       "xdp:%s: AF_XDP has buffers of 2048 or 4096 bytes, and "
		       "the pool's have %u: set page_bytes to one of these",
		       mr_spec_device(spec), page_bytes);
}

static int xdp_need(struct mr_ctx *ctx, const struct mr_spec *spec,
		    uint32_t page_bytes, uint32_t *ret_n_pages,
		    struct mr_reason *reterr_reason)
{
	struct xdp_options options = { 0 };
	struct xdp_netdev dev;
	const struct xdp_lessor *lessor;
	uint32_t n_entries;
	int err = mri_xdp_read_options(spec, &options, reterr_reason);

	(void)ctx;
	if (err == 0)
		err = check_page_bytes(spec, page_bytes, reterr_reason);
	if (err == 0)
		err = find_dev(spec, &options, &lessor, &dev, reterr_reason);
	if (err < 0)
		return err;
	/* Fill side of a zero-copy device: two rings; tx side: one. */
	n_entries = 3 * options.ring_entries * options.n_queues;
	*ret_n_pages = n_entries;
	return 0;
}

bool mri_xdp_has_partial_csums(const struct xdp_port *port)
{
	return port->options.csum == XDP_AUTO ? port->is_software :
						port->options.csum == XDP_ON;
}

void mri_xdp_add_why(struct xdp_port *port, const char *why)
{
	struct mr_port_info *info = port->base.info;
	const size_t n = strlen(info->why);

	snprintf(info->why + n, sizeof(info->why) - n, "%s%s",
		 n > 0 ? "; " : "", why);
}

void mri_xdp_fill_info(struct xdp_port *port)
{
	const struct xdp_lease *lease = &port->lease;
	struct mr_port_info *info = port->base.info;
	uint64_t node;

	/* -1 without a node, and so without a file. */
	if (mri_xdp_netdev_file(xdp_netdev_local_name(&port->dev),
				"device/numa_node", false, &node) == 0)
		info->numa_node = (int32_t)node;
	info->has_sg = lease->max_segs > 1;
	info->locked_bytes = lease->n_bytes;
	info->kernel_bytes = lease->n_bytes / lease->chunk_bytes *
			     KERNEL_BYTES_PER_CHUNK * lease->n_queues;
	memcpy(info->mac, port->dev.mac, sizeof(info->mac));
	info->has_mac = 1;
	memcpy(info->netdev, port->dev.name, sizeof(info->netdev));
	mri_xdp_take_channels(port);
	info->offloads = (port->txqs[0].has_csum ? MR_OFFLOAD_CSUM_TX : 0) |
			 mri_xdp_meta_offloads(port) |
			 (port->txqs[0].times.asks & MR_META_TX_TIME ?
				  MR_OFFLOAD_TIME_TX :
				  0) |
			 (port->txqs[0].times.asks & MR_META_LAUNCH_TIME ?
				  MR_OFFLOAD_LAUNCH_TIME :
				  0);
	info->launch_clock = MR_CLOCK_DEVICE;
	mr_log(port->base.ctx, MR_LOG_INFO,
	       "%s: %llu KiB locked, about %llu KiB of kernel memory, %s "
	       "attach%s",
	       info->name, (unsigned long long)(info->locked_bytes >> 10),
	       (unsigned long long)(info->kernel_bytes >> 10),
	       port->lease.is_native ? "native" : "generic",
	       port->prog.dispatched != NULL ? " by libxdp's dispatcher" : "");
}

/* Report the queues whose frames go to the kernel. */
static void name_unserved(const struct xdp_port *port)
{
	const uint32_t n_channels = port->dev.n_rx_channels;
	const uint32_t first = port->lease.first_queue;

	if (port->lease.n_queues < n_channels)
		mr_log(port->base.ctx, MR_LOG_INFO,
		       "%s: of queues 0 to %u, only %u to %u have a socket: "
		       "frames on the others go to the kernel",
		       port->base.info->name, n_channels - 1, first,
		       first + port->lease.n_queues - 1);
}

static void read_link_state(struct xdp_port *port)
{
	struct xdp_netdev dev = port->dev;

	if (mri_xdp_netdev_read(dev.ifindex, &dev) != 0)
		return;
	port->is_up = xdp_netdev_has_link(&dev);
	port->speed_mbps = mri_xdp_netdev_speed_mbps(&dev);
}

void mri_xdp_release(struct mr_port *base)
{
	struct xdp_port *port = (struct xdp_port *)base;

	if (base->is_away)
		mri_xdp_leave(port);
	else
		port->lessor->close(port);
	if (port->is_pinned)
		mr_region_unpin(port->base.region, port->base.info->name,
				port->lease.n_bytes);
	mri_xdp_events_close(port);
	mri_xdp_stats_close(port);
	mri_xdp_filter_close(port);
	mri_xdp_queues_free(port);
	mri_xdp_lease_close(&port->lease);
}

/* What needs no lease: queues, the pool pinned. */
static int prepare_port(struct xdp_port *port, struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	int err;

	port->is_software = xdp_netdev_is_software(&port->dev);
	err = mri_xdp_queues_alloc(port, reason);
	if (err < 0)
		return err;
	/* Before it is registered: from here on no pool gives a part back. */
	err = mr_region_pin(base->region, base->info->name,
			    port->lease.n_bytes);
	if (err < 0)
		return mr_fail(reason, err, "%s: too many ports on one region",
			       base->info->name);
	port->is_pinned = true;
	return 0;
}

static int open_steps(struct xdp_port *port, struct mr_reason *reason)
{
	int err = prepare_port(port, reason);

	if (err < 0 || (err = port->lessor->open(port, reason)) < 0 ||
	    (err = mri_xdp_stats_open(port, reason)) < 0 ||
	    (err = mri_xdp_counters_map(port, reason)) < 0 ||
	    (err = mri_xdp_times_open(port, reason)) < 0 ||
	    (err = mri_xdp_rss_open(port, reason)) < 0)
		return err;
	read_link_state(port);
	name_unserved(port);
	mri_xdp_fill_info(port);
	/* Frames before its sockets were in the map are not its drops. */
	port->n_unserved_before = mri_xdp_n_unserved(port);
	return 0;
}

void mri_xdp_port_init(struct xdp_port *port)
{
	mri_xdp_lease_init(&port->lease);
	port->promisc_fd = port->allmulti_fd = port->filter_fd = -1;
	port->prog.copy_fd = port->prog.taken_fd = port->prog.fd = -1;
	port->kernel.fd = port->channels_fd = port->base.fd = -1;
}

static int xdp_open(struct mr_port *base, const struct mr_spec *spec,
		    struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	int err;

	mri_xdp_port_init(port);
	if ((err = mri_xdp_read_options(spec, &port->options, reterr_reason)) < 0 ||
	    (err = check_page_bytes(spec, base->page_bytes, reterr_reason)) <
		    0 ||
	    (err = find_dev(spec, &port->options, &port->lessor, &port->dev,
			    reterr_reason)) < 0)
		return err;
	/* mr_port_link() reads it while a port is opened again. */
	__atomic_store_n(&base->driver, port->lessor->driver, __ATOMIC_RELAXED);
	err = mri_xdp_filter_read(port, spec, reterr_reason);
	if (err == 0 && port->filter.n > 0 &&
	    (port->options.prog != NULL || port->options.map != NULL))
		err = mr_fail(reterr_reason, -EINVAL,
			      "%s: a filter is part of the port's own program: "
			      "omit it, or omit 'prog' and 'map'",
			      port->base.info->name);
	if (err == 0)
		err = open_steps(port, reterr_reason);
	if (err < 0)
		mri_xdp_release(base);
	return err;
}

static int xdp_link(const struct mr_port *base, struct mr_link *ret_link)
{
	const struct xdp_port *port = (const struct xdp_port *)base;

	*ret_link = (struct mr_link){
		.is_up = __atomic_load_n(&port->is_up, __ATOMIC_RELAXED),
		.speed_mbps =
			__atomic_load_n(&port->speed_mbps, __ATOMIC_RELAXED),
		.is_gone = __atomic_load_n(&port->is_gone, __ATOMIC_RELAXED),
		.is_detached =
			__atomic_load_n(&port->is_detached, __ATOMIC_RELAXED),
		.is_returned = port->returned_ifindex != 0,
	};
	return 0;
}

static int xdp_set_promisc(struct mr_port *base, bool on,
			   struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;

	return port->lessor->set(port, XDP_SETTING_PROMISC, on, reterr_reason);
}

static int xdp_set_allmulti(struct mr_port *base, bool on,
			    struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;

	return port->lessor->set(port, XDP_SETTING_ALLMULTI, on, reterr_reason);
}

static int xdp_set_mtu(struct mr_port *base, uint32_t mtu_bytes,
		       struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	const uint32_t max_bytes = mri_xdp_max_mtu(port);

	if (mtu_bytes > max_bytes)
		return mr_fail(reterr_reason, -EINVAL,
			       "%s: an MTU of %u does not fit mode %s%s: at "
			       "most %u; open it anew with the option mtu=%u",
			       base->info->name, mtu_bytes, base->info->mode,
			       port->lease.max_segs > 1 ? " with sg" :
							  " without sg",
			       max_bytes, mtu_bytes);
	return port->lessor->set(port, XDP_SETTING_MTU, mtu_bytes,
				 reterr_reason);
}

static int xdp_set_mac(struct mr_port *base, const uint8_t mac[6],
		       struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	uint64_t value = 0;

	memcpy(&value, mac, 6);
	return port->lessor->set(port, XDP_SETTING_MAC, value, reterr_reason);
}

static const char *const xdp_keys[] = {
	"mode",    "attach",        "queues", "start", "ring",    "mtu",
	"promisc", "csum",          "sg",     "force", "partial", "budget",
	"busy",    "prog",          "map",    "meta",  "rss",     "via",
	"broker",  XDP_FILTER_KEYS, NULL,
};

const struct mr_driver mr_driver_xdp = {
	.name = "xdp",
	.keys = xdp_keys,
	.port_bytes = sizeof(struct xdp_port),
	.need = xdp_need,
	.open = xdp_open,
	.close = mri_xdp_release,
	.poll = mri_xdp_events_poll,
	.link = xdp_link,
	.device_drops = mri_xdp_device_drops,
	.set_promisc = xdp_set_promisc,
	.set_allmulti = xdp_set_allmulti,
	.set_mtu = xdp_set_mtu,
	.set_mac = xdp_set_mac,
	.set_mac_filter = mri_xdp_set_mac_filter,
	.set_filter = mri_xdp_set_filter,
	.set_rss = mri_xdp_set_rss,
	.steer = mri_xdp_steer,
	.unsteer = mri_xdp_unsteer,
	.add_queues = mri_xdp_add_queues,
	.device_stats = mri_xdp_device_stats,
	.open_kernel = mri_xdp_open_kernel,
	.to_kernel = mri_xdp_to_kernel,
	.rxq_stats = mri_xdp_rxq_stats,
	.txq_stats = mri_xdp_txq_stats,
	.txq_times = mri_xdp_times_take,
	.rules = &mri_xdp_rules_ops,
	.hand_over = &mri_xdp_hand_over,
};

/* Of a port with a lease from the broker. */
const struct mr_driver mri_xdp_driver_there = {
	.name = "xdp",
	.close = mri_xdp_release,
	.poll = mri_xdp_events_poll,
	.link = xdp_link,
	.device_drops = mri_xdp_device_drops,
	.set_promisc = xdp_set_promisc,
	.set_allmulti = xdp_set_allmulti,
	.set_mtu = xdp_set_mtu,
	.set_mac = xdp_set_mac,
	.set_mac_filter = mri_xdp_set_mac_filter_there,
	.set_filter = mri_xdp_set_filter,
	.set_rss = mri_xdp_set_rss_there,
	.steer = mri_xdp_steer_there,
	.unsteer = mri_xdp_unsteer_there,
	.add_queues = mri_xdp_add_queues,
	.device_stats = mri_xdp_device_stats,
	.open_kernel = mri_xdp_open_kernel_there,
	.to_kernel = mri_xdp_to_kernel,
	.rxq_stats = mri_xdp_rxq_stats,
	.txq_stats = mri_xdp_txq_stats,
	.txq_times = mri_xdp_times_take,
	.rules = &mri_xdp_rules_ops,
	.hand_over = &mri_xdp_hand_over,
};

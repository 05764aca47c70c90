/* SPDX-License-Identifier: BSD-3-Clause */
/* An open port: settings, state, and events of its device. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "dpdk.h"

static int refuse_setting(struct mr_port *base, int err, const char *what,
			  struct mr_reason *reason)
{
	if (err != -ENOTSUP && err != -ENODEV && err != -EPERM)
		err = -EIO;
	return mr_fail(reason, err, "%s: %s: %s", base->info->name, what,
		       mri_dpdk_why(-err));
}

static const enum rte_eth_event_type events[] = { RTE_ETH_EVENT_INTR_LSC,
						  RTE_ETH_EVENT_INTR_RMV };

/* On a DPDK thread: only signal that there is an event. */
static int on_event(uint16_t port_id, enum rte_eth_event_type event,
		    void *opaque, void *ret)
{
	struct dpdk_port *port = opaque;
	const uint64_t one = 1;

	(void)port_id;
	(void)ret;
	if (event == RTE_ETH_EVENT_INTR_RMV)
		__atomic_store_n(&port->is_gone, 1, __ATOMIC_RELAXED);
	return write(port->base->fd, &one, sizeof(one)) < 0 ? -1 : 0;
}

static bool is_gone(const struct dpdk_port *port)
{
	return __atomic_load_n(&port->is_gone, __ATOMIC_RELAXED);
}

static void read_link(struct dpdk_port *port)
{
	struct rte_eth_link link = { 0 };

	if (rte_eth_link_get_nowait(port->port_id, &link) < 0)
		return;
	__atomic_store_n(&port->is_up, link.link_status, __ATOMIC_RELAXED);
	__atomic_store_n(&port->speed_mbps,
			 link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ?
				 0 :
				 link.link_speed,
			 __ATOMIC_RELAXED);
}

static int watch_device(struct dpdk_port *port, struct mr_reason *reason)
{
	struct mr_port *base = port->base;

	base->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (base->fd < 0)
		return mr_fail(reason, -EIO, "%s: no eventfd: %s",
			       base->info->name, mr_strerror(errno));
	port->has_callbacks = true;
	for (size_t i = 0; i < RTE_DIM(events); i++)
		(void)rte_eth_dev_callback_register(port->port_id, events[i],
						    on_event, port);
	return 0;
}

static uint32_t offloads_of(const struct dpdk_port *port)
{
	const struct {
		uint64_t rx, tx;
		uint32_t ours;
	} known[] = {
		{ 0,
		  RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM,
		  MR_OFFLOAD_CSUM_TX },
		{ RTE_ETH_RX_OFFLOAD_TCP_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM,
		  0, MR_OFFLOAD_CSUM_RX },
		{ 0, RTE_ETH_TX_OFFLOAD_TCP_TSO,
		  MR_OFFLOAD_TSO4 | MR_OFFLOAD_TSO6 },
		{ RTE_ETH_RX_OFFLOAD_RSS_HASH, 0, MR_OFFLOAD_RSS_HASH },
		{ RTE_ETH_RX_OFFLOAD_VLAN_STRIP, 0, MR_OFFLOAD_VLAN_RX },
	};
	struct rte_eth_conf conf;
	uint32_t ours = 0;

	if (rte_eth_dev_conf_get(port->port_id, &conf) < 0)
		return ours;
	for (size_t i = 0; i < RTE_DIM(known); i++)
		if ((conf.rxmode.offloads & known[i].rx) == known[i].rx &&
		    (conf.txmode.offloads & known[i].tx) == known[i].tx)
			ours |= known[i].ours;
	/* Its driver reports wrong checksums only, never right ones. */
	if (strcmp(port->info.driver_name, "net_e1000_em") == 0)
		ours &= ~(uint32_t)MR_OFFLOAD_CSUM_RX;
	return ours;
}

/* The names of the device's own counters, fixed while it is open. */
static int read_names(struct dpdk_port *port, struct mr_reason *reason)
{
	struct mr_ctx *ctx = port->base->ctx;
	const int n = rte_eth_xstats_get_names(port->port_id, NULL, 0);

	if (n <= 0)
		return 0;
	port->stat_names =
		mr_alloc(ctx, 0, (size_t)n * sizeof(port->stat_names[0]));
	if (port->stat_names == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for counters",
			       port->base->info->name);
	if (rte_eth_xstats_get_names(port->port_id, port->stat_names,
				     (unsigned int)n) == n)
		port->n_stats = (uint32_t)n;
	return 0;
}

static void fill_info(struct dpdk_port *port)
{
	struct mr_port_info *info = port->base->info;
	const char *driver = port->info.driver_name;
	bool is_polled, is_not_spread;

	info->mtu_bytes = port->mtu_bytes;
	info->numa_node = rte_eth_dev_socket_id(port->port_id);
	info->offloads = offloads_of(port);
	info->has_mac = 1;
	memcpy(info->mac, port->first_mac.addr_bytes, sizeof(info->mac));
	snprintf(info->mode, sizeof(info->mode), "%s", driver);
	is_polled = port->rxqs[0].base.queue.fd < 0;
	is_not_spread = port->n_queues > 1 && dpdk_rss_kinds(port) == 0;
	snprintf(info->why, sizeof(info->why), "%s%s%s",
		 is_polled ? "no rx interrupts: polling" : "",
		 is_polled && is_not_spread ? "; " : "",
		 is_not_spread ? "no RSS: the device does not distribute flows "
				 "over its queues" :
				 "");
	mr_log(port->base->ctx, MR_LOG_INFO,
	       "%s: %u headers of %u bytes for buffers, %u for each tx queue",
	       info->name, port->view->mempool->size, port->view->header_stride,
	       port->txqs[0].extras->n_all);
}

int mri_dpdk_control_open(struct dpdk_port *port, struct mr_reason *reason)
{
	int err;

	if ((err = watch_device(port, reason)) < 0 ||
	    (err = read_names(port, reason)) < 0)
		return err;
	(void)rte_eth_macaddr_get(port->port_id, &port->first_mac);
	(void)rte_eth_stats_get(port->port_id, &port->first_stats);
	read_link(port);
	if (port->options.promisc) {
		err = rte_eth_promiscuous_enable(port->port_id);
		if (err < 0)
			return refuse_setting(port->base, err,
					      "cannot set promiscuous mode",
					      reason);
	}
	fill_info(port);
	return 0;
}

void mri_dpdk_control_close(struct dpdk_port *port)
{
	struct mr_port *base = port->base;

	for (size_t i = 0; port->has_callbacks && i < RTE_DIM(events); i++)
		while (rte_eth_dev_callback_unregister(port->port_id, events[i],
						       on_event,
						       port) == -EAGAIN)
			sched_yield(); /* it is running */
	if (port->did_set_mac)
		(void)rte_eth_dev_default_mac_addr_set(port->port_id,
						       &port->first_mac);
	if (base->fd >= 0)
		close(base->fd);
	base->fd = -1;
	mr_free(base->ctx, port->stat_names);
	mr_free(base->ctx, port->filter);
}

uint32_t mri_dpdk_poll(struct mr_port *base)
{
	struct dpdk_port *port = dpdk_port_of(base);
	const uint32_t was_up = port->is_up;
	uint64_t n_events = 0;

	if (read(base->fd, &n_events, sizeof(n_events)) < 0)
		n_events = 0;
	read_link(port);
	return n_events > 0 || port->is_up != was_up;
}

int mri_dpdk_link(const struct mr_port *base, struct mr_link *ret_link)
{
	const struct dpdk_port *port = dpdk_port_of(base);

	*ret_link = (struct mr_link){
		.is_up = __atomic_load_n(&port->is_up, __ATOMIC_RELAXED),
		.speed_mbps =
			__atomic_load_n(&port->speed_mbps, __ATOMIC_RELAXED),
		.is_gone = is_gone(port),
	};
	return 0;
}

uint32_t mri_dpdk_device_drops(const struct mr_port *base,
			       struct mr_named_count *ret_counts, uint32_t n)
{
	const struct dpdk_port *port = dpdk_port_of(base);
	const struct rte_eth_stats *first = &port->first_stats;
	struct rte_eth_stats now = *first;

	(void)rte_eth_stats_get(port->port_id, &now);
	const struct mr_named_count counts[] = {
		{ "imissed", now.imissed - first->imissed },
		{ "ierrors", now.ierrors - first->ierrors },
		{ "rx_nombuf", now.rx_nombuf - first->rx_nombuf },
	};
	for (uint32_t i = 0; i < n && i < RTE_DIM(counts); i++)
		ret_counts[i] = counts[i];
	return RTE_DIM(counts);
}

uint32_t mri_dpdk_device_stats(const struct mr_port *base,
			       struct mr_named_count *ret_counts, uint32_t n)
{
	const struct dpdk_port *port = dpdk_port_of(base);
	uint32_t n_done = 0;

	/* One by one, so that no memory is needed. */
	for (uint64_t id = 0; id < port->n_stats && n_done < n; id++) {
		struct mr_named_count *count = &ret_counts[n_done++];

		count->name = port->stat_names[id].name;
		count->value = 0;
		(void)rte_eth_xstats_get_by_id(port->port_id, &id,
					       &count->value, 1);
	}
	return port->n_stats;
}

/* Begin a command to the device; mri_dpdk_leave() ends it. */
static struct dpdk_port *begin_command(struct mr_port *base)
{
	mri_dpdk_enter(base->ctx);
	return dpdk_port_of(base);
}

int mri_dpdk_set_promisc(struct mr_port *base, bool on,
			 struct mr_reason *reason)
{
	const uint16_t id = begin_command(base)->port_id;
	int err = on ? rte_eth_promiscuous_enable(id) :
		       rte_eth_promiscuous_disable(id);

	if (err < 0)
		err = refuse_setting(base, err, "cannot set promiscuous mode",
				     reason);
	mri_dpdk_leave();
	return err;
}

int mri_dpdk_set_allmulti(struct mr_port *base, bool on,
			  struct mr_reason *reason)
{
	const uint16_t id = begin_command(base)->port_id;
	int err = on ? rte_eth_allmulticast_enable(id) :
		       rte_eth_allmulticast_disable(id);

	if (err < 0)
		err = refuse_setting(base, err,
				     "cannot set reception of all multicast",
				     reason);
	mri_dpdk_leave();
	return err;
}

/* What the rx buffers hold in the mode chosen at open. */
static uint32_t max_mtu(const struct dpdk_port *port)
{
	const uint32_t room = port->rxqs[0].max_segs * port->rx_room_bytes;

	return RTE_MIN(room - DPDK_LINK_BYTES, (uint32_t)port->info.max_mtu);
}

int mri_dpdk_set_mtu(struct mr_port *base, uint32_t mtu_bytes,
		     struct mr_reason *reason)
{
	struct dpdk_port *port = begin_command(base);
	int err = 0;

	if (mtu_bytes > max_mtu(port))
		err = mr_fail(reason, -EINVAL,
			      "%s: an MTU of %u: the device and its buffers "
			      "take at most %u",
			      base->info->name, mtu_bytes, max_mtu(port));
	if (err == 0) {
		err = rte_eth_dev_set_mtu(port->port_id, (uint16_t)mtu_bytes);
		if (err < 0)
			err = refuse_setting(base, err, "cannot set the MTU",
					     reason);
	}
	if (err == 0) {
		port->set_mtu_bytes = mtu_bytes;
		__atomic_store_n(&port->mtu_bytes, mtu_bytes, __ATOMIC_RELAXED);
	}
	mri_dpdk_leave();
	return err;
}

int mri_dpdk_set_mac(struct mr_port *base, const uint8_t mac[6],
		     struct mr_reason *reason)
{
	struct dpdk_port *port = begin_command(base);
	struct rte_ether_addr addr;
	int err;

	memcpy(addr.addr_bytes, mac, sizeof(addr.addr_bytes));
	err = rte_eth_dev_default_mac_addr_set(port->port_id, &addr);
	if (err < 0)
		err = refuse_setting(base, err, "cannot set the MAC address",
				     reason);
	else
		port->did_set_mac = true;
	mri_dpdk_leave();
	return err;
}

/* Replace the added addresses; with multicast ones, if requested. */
static int set_addresses(struct dpdk_port *port, const uint8_t (*macs)[6],
			 uint32_t n, bool has_groups)
{
	int err = 0;

	for (; port->n_filter > 0; port->n_filter--)
		(void)rte_eth_dev_mac_addr_remove(
			port->port_id, &port->filter[port->n_filter - 1]);
	for (uint32_t i = 0; i < n && err == 0; i++) {
		struct rte_ether_addr *addr = &port->filter[port->n_filter];

		if ((macs[i][0] & 1) && !has_groups)
			continue;
		if (port->n_filter + 1 >= port->info.max_mac_addrs)
			return -ENOSPC;
		memcpy(addr->addr_bytes, macs[i], sizeof(addr->addr_bytes));
		err = rte_eth_dev_mac_addr_add(port->port_id, addr, 0);
		port->n_filter += err == 0;
	}
	return err;
}

/* Replace the multicast addresses. */
static int set_groups(struct dpdk_port *port, const uint8_t (*macs)[6],
		      uint32_t n)
{
	struct rte_ether_addr *groups =
		mr_alloc(port->base->ctx, 0, (n + 1) * sizeof(groups[0]));
	uint32_t n_groups = 0;
	int err;

	if (groups == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		if (macs[i][0] & 1)
			memcpy(groups[n_groups++].addr_bytes, macs[i], 6);
	err = rte_eth_dev_set_mc_addr_list(port->port_id, groups, n_groups);
	mr_free(port->base->ctx, groups);
	return err == -ENOTSUP && n_groups == 0 ? 0 : err;
}

static int set_filter(struct dpdk_port *port, const uint8_t (*macs)[6],
		      uint32_t n, struct mr_reason *reason)
{
	const uint32_t n_before = port->n_filter;
	uint8_t(*before)[6] =
		mr_alloc(port->base->ctx, 0, (n_before + 1) * sizeof(*before));
	int err = -ENOMEM;

	if (before != NULL) {
		for (uint32_t i = 0; i < n_before; i++)
			memcpy(before[i], port->filter[i].addr_bytes, 6);
		err = set_addresses(port, macs, n, false);
		if (err == 0)
			err = set_groups(port, macs, n);
		/* net_virtio has a single list, in which one is its own. */
		if (err == -ENOTSUP && port->info.max_mac_addrs > 1)
			err = set_addresses(port, macs, n, true);
		if (err < 0)
			(void)set_addresses(port, before, n_before, true);
	}
	mr_free(port->base->ctx, before);
	if (err == -ENOSPC)
		return mr_fail(reason, err,
			       "%s: more than the %u addresses that the device "
			       "holds, including its own",
			       port->base->info->name,
			       port->info.max_mac_addrs);
	return err < 0 ? refuse_setting(port->base, err,
					"cannot set the addresses", reason) :
			 0;
}

int mri_dpdk_set_mac_filter(struct mr_port *base, const uint8_t (*macs)[6],
			    uint32_t n, struct mr_reason *reason)
{
	struct dpdk_port *port = begin_command(base);
	int err = 0;

	if (port->filter == NULL)
		port->filter = mr_alloc(base->ctx, 0,
					(port->info.max_mac_addrs + 1) *
						sizeof(port->filter[0]));
	if (port->filter == NULL)
		err = mr_fail(reason, -ENOMEM, "%s: no memory for addresses",
			      base->info->name);
	else
		err = set_filter(port, macs, n, reason);
	mri_dpdk_leave();
	return err;
}

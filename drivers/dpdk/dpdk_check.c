/* SPDX-License-Identifier: BSD-3-Clause */
/* Refuse options that the device does not support, rather than ignore them. */
#include <errno.h>

#include "dpdk.h"

/* The largest MTU of the device, which it may report in two ways. */
static int check_mtu(const struct dpdk_port *port, struct mr_reason *reason)
{
	const struct rte_eth_dev_info *info = &port->info;
	uint32_t max = info->max_mtu;

	if (info->max_rx_pktlen < (uint32_t)max + RTE_ETHER_HDR_LEN)
		max = info->max_rx_pktlen - RTE_ETHER_HDR_LEN;
	if (port->mtu_bytes <= max)
		return 0;
	return mr_fail(reason, -EINVAL,
		       "%s: mtu=%u: the device (driver %s) takes at most %u",
		       port->base->info->name, port->mtu_bytes,
		       info->driver_name, max);
}

static int check_queues(const struct dpdk_port *port, struct mr_reason *reason)
{
	const uint32_t n = port->options.n_queues;
	const uint32_t n_max =
		RTE_MIN(port->info.max_rx_queues, port->info.max_tx_queues);

	if (n <= n_max)
		return 0;
	return mr_fail(reason, -EINVAL,
		       "%s: queues=%u: the device (driver %s) has %u rx and %u "
		       "tx queues",
		       port->base->info->name, n, port->info.driver_name,
		       port->info.max_rx_queues, port->info.max_tx_queues);
}

static int refuse_option(const struct dpdk_port *port, const char *option,
			 const char *what, struct mr_reason *reason)
{
	return mr_fail(
		reason, -ENOTSUP, "%s: %s: the device (driver %s) does not %s",
		port->base->info->name, option, port->info.driver_name, what);
}

/* TCP and UDP, both directions. The IPv4 header's is cheap in software. */
static bool has_sums(const struct rte_eth_dev_info *info)
{
	const uint64_t rx =
		RTE_ETH_RX_OFFLOAD_TCP_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM;
	const uint64_t tx =
		RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;

	return (info->rx_offload_capa & rx) == rx &&
	       (info->tx_offload_capa & tx) == tx;
}

static int check_offloads(const struct dpdk_port *port,
			  struct mr_reason *reason)
{
	const struct rte_eth_dev_info *info = &port->info;

	if (port->options.csum == DPDK_ON && !has_sums(info))
		return refuse_option(port, "csum=on",
				     "verify and compute TCP and UDP checksums",
				     reason);
	if (port->options.strip_vlan &&
	    (info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) == 0)
		return refuse_option(port, "vlan=strip", "strip VLAN tags",
				     reason);
	return 0;
}

int mri_dpdk_check(const struct dpdk_port *port, struct mr_reason *reason)
{
	int err;

	if ((err = check_queues(port, reason)) < 0 ||
	    (err = check_mtu(port, reason)) < 0)
		return err;
	return check_offloads(port, reason);
}

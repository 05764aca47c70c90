/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's interface under a device, if any: whether this machine uses it,
 * and its MTU, which DPDK's drivers do not restore.
 *
 * Source: netdevice(7).
 */
#include <errno.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/experimental/netdev.h>

#include "dpdk.h"

static int control(const struct dpdk_port *port, unsigned long request,
		   struct ifreq *ifr)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (if_indextoname(port->info.if_index, ifr->ifr_name) == NULL ||
	    ioctl(fd, request, ifr) < 0)
		err = -errno;
	close(fd);
	return err;
}

/* Devices that only get copies of what the kernel receives, or created it. */
static bool leaves_it_to_the_kernel(const struct dpdk_port *port)
{
	static const char *const drivers[] = { "net_af_packet", "net_pcap",
					       "net_tap" };

	for (size_t i = 0; i < RTE_DIM(drivers); i++)
		if (strcmp(port->info.driver_name, drivers[i]) == 0)
			return true;
	return false;
}

int mri_dpdk_netdev_open(struct dpdk_port *port, struct mr_reason *reason)
{
	struct ifreq ifr = { 0 };
	enum mr_netdev_use use;
	struct mr_reason why;

	if (port->info.if_index == 0)
		return 0;
	if (control(port, SIOCGIFMTU, &ifr) == 0)
		port->netdev_mtu_bytes = (uint32_t)ifr.ifr_mtu;
	if (port->options.force || leaves_it_to_the_kernel(port))
		return 0;
	use = mr_netdev_use(port->info.if_index, &why);
	if (use == MR_NETDEV_HAS_ADDRESS)
		mr_log(port->base->ctx, MR_LOG_WARNING, "%s: %s",
		       port->base->info->name, why.text);
	if (use != MR_NETDEV_IN_USE)
		return 0;
	return mr_fail(reason, -EBUSY,
		       "%s: %s; add the option 'force' to take it anyway",
		       port->base->info->name, why.text);
}

void mri_dpdk_netdev_close(const struct dpdk_port *port)
{
	struct ifreq ifr = { 0 };
	int err;

	/* Keep what somebody else has set since. */
	if (port->netdev_mtu_bytes == 0 || port->set_mtu_bytes == 0 ||
	    control(port, SIOCGIFMTU, &ifr) < 0 ||
	    (uint32_t)ifr.ifr_mtu != port->set_mtu_bytes ||
	    (uint32_t)ifr.ifr_mtu == port->netdev_mtu_bytes)
		return;
	ifr.ifr_mtu = (int)port->netdev_mtu_bytes;
	err = control(port, SIOCSIFMTU, &ifr);
	if (err < 0)
		mr_log(port->base->ctx, MR_LOG_WARNING,
		       "%s: cannot restore the MTU %u: %s",
		       port->base->info->name, port->netdev_mtu_bytes,
		       mr_strerror(-err));
}

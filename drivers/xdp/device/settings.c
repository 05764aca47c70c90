/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What we set on the network interface, and give back when the port is closed.
 *
 * Promiscuity and filters are memberships of a packet socket: they end with the
 * socket, so a killed process leaves none behind, and they add to what others
 * ask for. MTU, address, up and the deferral of interrupts are the interface's
 * own and have no such owner: device/record.c gives them back.
 *
 * Source: packet(7), netdevice(7).
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if_arp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "socket/socket.h"
#include "xdp.h"

/* As ip(8) and /sys call them. */
const char *const mri_xdp_setting_names[XDP_N_SETTINGS] = {
	[XDP_SETTING_MTU] = "mtu",
	[XDP_SETTING_MAC] = "address",
	[XDP_SETTING_UP] = "up",
	[XDP_SETTING_PROMISC] = "promisc",
	[XDP_SETTING_ALLMULTI] = "allmulticast",
	[XDP_SETTING_DEFER] = "napi_defer_hard_irqs",
	[XDP_SETTING_FLUSH] = "gro_flush_timeout",
	/* Of ethtool(8). */
	[XDP_SETTING_RSS_FIELDS] = "rx-flow-hash",
	[XDP_SETTING_RSS_KEY] = "hkey",
	[XDP_SETTING_RSS_TABLE] = "weight",
	[XDP_SETTING_STEER] = "flow-type",
};

static int use_sysfs(const struct xdp_port *port, const char *name,
		     enum xdp_setting setting, bool is_write, uint64_t *value)
{
	uint64_t ifindex = 0;
	const int err = mri_xdp_netdev_file(name, "ifindex", false, &ifindex);

	/* /sys may show another network namespace. */
	if (err == 0 && ifindex != port->dev.ifindex)
		return -ENOENT;
	return err < 0 ?
		       err :
		       mri_xdp_netdev_file(name, mri_xdp_setting_names[setting],
					   is_write, value);
}

static int use_flag(const char *name, short flag, bool is_write,
		    uint64_t *value)
{
	struct ifreq ifr = { 0 };
	const int err = mri_xdp_netdev_control(name, SIOCGIFFLAGS, &ifr);

	if (err < 0 || !is_write) {
		*value = (ifr.ifr_flags & flag) != 0;
		return err;
	}
	if (*value)
		ifr.ifr_flags |= flag;
	else
		ifr.ifr_flags &= (short)~flag;
	return mri_xdp_netdev_control(name, SIOCSIFFLAGS, &ifr);
}

int mri_xdp_setting(const struct xdp_port *port,
		    const struct xdp_change *change, bool is_write,
		    uint64_t *value)
{
	struct ifreq ifr = { 0 };
	char name[IF_NAMESIZE];
	int err;

	/* It may have been renamed, and another have its name. */
	if (if_indextoname(port->dev.ifindex, name) == NULL)
		return -errno;
	switch (change->setting) {
	case XDP_SETTING_MTU:
		ifr.ifr_mtu = (int)*value;
		err = mri_xdp_netdev_control(
			name, is_write ? SIOCSIFMTU : SIOCGIFMTU, &ifr);
		*value = (uint32_t)ifr.ifr_mtu;
		return err;
	case XDP_SETTING_MAC:
		ifr.ifr_hwaddr.sa_family = ARPHRD_ETHER;
		memcpy(ifr.ifr_hwaddr.sa_data, value, 6);
		err = mri_xdp_netdev_control(
			name, is_write ? SIOCSIFHWADDR : SIOCGIFHWADDR, &ifr);
		*value = 0;
		memcpy(value, ifr.ifr_hwaddr.sa_data, 6);
		return err;
	case XDP_SETTING_UP:
		return use_flag(name, IFF_UP, is_write, value);
	case XDP_SETTING_PROMISC:
		return use_flag(name, IFF_PROMISC, is_write, value);
	case XDP_SETTING_ALLMULTI:
		return use_flag(name, IFF_ALLMULTI, is_write, value);
	case XDP_SETTING_RSS_FIELDS:
	case XDP_SETTING_RSS_KEY:
	case XDP_SETTING_RSS_TABLE:
	case XDP_SETTING_STEER:
		return mri_xdp_queue_setting(port, name, change, is_write,
					     value);
	default:
		return change->id != 0 ?
			       mri_xdp_napi_setting(change->id, change->setting,
						    is_write, value) :
			       use_sysfs(port, name, change->setting, is_write,
					 value);
	}
}

static int add_membership(int fd, const struct xdp_port *port, uint16_t type,
			  const uint8_t *mac)
{
	struct packet_mreq request = { .mr_ifindex = (int)port->dev.ifindex,
				       .mr_type = type };

	if (mac != NULL) {
		request.mr_alen = 6;
		memcpy(request.mr_address, mac, 6);
	}
	if (setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &request,
		       sizeof(request)) < 0)
		return -errno;
	return 0;
}

/*
 * A socket that holds memberships: one of a type without addresses, or one for
 * each of n addresses. An fd or -errno.
 */
static int join_groups(const struct xdp_port *port, uint16_t type,
		       const uint8_t (*macs)[6], uint32_t n)
{
	/* Protocol 0: it receives nothing. */
	const int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (macs == NULL)
		err = add_membership(fd, port, type, NULL);
	for (uint32_t i = 0; i < n && err == 0; i++)
		err = add_membership(fd, port,
				     macs[i][0] & 1 ? PACKET_MR_MULTICAST :
						      PACKET_MR_UNICAST,
				     macs[i]);
	if (err < 0) {
		close(fd);
		return err;
	}
	return mr_fd_guard(fd);
}

static int refuse_setting(const struct xdp_port *port, int err,
			  const char *what, const char *capability,
			  struct mr_reason *reason)
{
	const char *const name = port->base.info->name;

	if (err == -EALREADY)
		return mri_xdp_refuse_shared(port, reason);
	if (err == -ENODEV || err == -ENXIO)
		return mr_fail(reason, -ENODEV,
			       "%s: %s: the interface was deleted, or moved to "
			       "another network namespace",
			       name, what);
	if (err == -EPERM)
		return mri_xdp_refuse_request(name, err, what, capability,
					      reason);
	return mr_fail(reason, -EIO, "%s: %s: %s", name, what,
		       mr_strerror(-err));
}

/* Hold or let go what one socket stands for. */
static int set_membership(struct xdp_port *port, int *fd, uint16_t type,
			  bool is_on, const char *what,
			  struct mr_reason *reason)
{
	int new_fd;

	if (is_on == (*fd >= 0))
		return 0;
	if (!is_on) {
		mr_fd_close(*fd);
		*fd = -1;
		return 0;
	}
	new_fd = join_groups(port, type, NULL, 0);
	if (new_fd < 0)
		return refuse_setting(port, new_fd, what, "CAP_NET_RAW",
				      reason);
	*fd = new_fd;
	return 0;
}

int mri_xdp_set_flag(struct xdp_port *port, enum xdp_setting setting,
		     bool is_on, struct mr_reason *reason)
{
	const int err = mri_xdp_change(port, setting, 0, is_on);

	return err < 0 ? refuse_setting(port, err,
					"cannot set the interface's flags",
					"CAP_NET_ADMIN", reason) :
			 0;
}

int mri_xdp_set_mac_filter(struct mr_port *base, const uint8_t (*macs)[6],
			   uint32_t n, struct mr_reason *reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	int fd = -1;

	if (n > 0) {
		fd = join_groups(port, 0, macs, n);
		if (fd < 0)
			return refuse_setting(port, fd,
					      "cannot set the MAC filter",
					      "CAP_NET_RAW", reason);
	}
	/* Second: what is in both lists is never out of the filter. */
	mr_fd_close(port->filter_fd);
	port->filter_fd = fd;
	return 0;
}

static int change_mtu(struct xdp_port *port, uint32_t mtu_bytes,
		      struct mr_reason *reason)
{
	const uint32_t max_bytes = port->dev.max_mtu_bytes;
	const int err = mri_xdp_change(port, XDP_SETTING_MTU, 0, mtu_bytes);

	if (err == -EALREADY || err == -EPERM || err == -ENODEV ||
	    err == -ENXIO)
		return refuse_setting(port, err, "cannot set the MTU",
				      "CAP_NET_ADMIN", reason);
	if (err < 0 && max_bytes != 0 && mtu_bytes > max_bytes)
		return mr_fail(reason, -EINVAL,
			       "%s: the device does not take an MTU of %u: at "
			       "most %u",
			       port->base.info->name, mtu_bytes, max_bytes);
	if (err < 0)
		return mr_fail(reason, -EINVAL,
			       "%s: the device does not take an MTU of %u: %s",
			       port->base.info->name, mtu_bytes,
			       mr_strerror(-err));
	return 0;
}

static int change_mac(struct xdp_port *port, uint64_t mac,
		      struct mr_reason *reason)
{
	const char *const name = port->base.info->name;
	const int err = mri_xdp_change(port, XDP_SETTING_MAC, 0, mac);

	if (err == -EBUSY)
		return mr_fail(reason, err,
			       "%s: the device changes its MAC address only "
			       "while it is down: 'ip link set %s down', then "
			       "address, before the port is opened",
			       name, port->dev.name);
	if (err == -EOPNOTSUPP)
		return mr_fail(reason, err,
			       "%s: the device has no MAC address to set",
			       name);
	if (err < 0)
		return refuse_setting(port, err, "cannot set the MAC address",
				      "CAP_NET_ADMIN", reason);
	return 0;
}

int mri_xdp_set(struct xdp_port *port, enum xdp_setting setting, uint64_t value,
		struct mr_reason *reason)
{
	switch (setting) {
	case XDP_SETTING_MTU:
		return change_mtu(port, (uint32_t)value, reason);
	case XDP_SETTING_MAC:
		return change_mac(port, value, reason);
	case XDP_SETTING_PROMISC:
		return set_membership(
			port, &port->promisc_fd, PACKET_MR_PROMISC, value != 0,
			"cannot make the interface promiscuous", reason);
	default:
		return set_membership(port, &port->allmulti_fd,
				      PACKET_MR_ALLMULTI, value != 0,
				      "cannot receive all multicast", reason);
	}
}

int mri_xdp_settings_open(struct xdp_port *port, struct mr_reason *reason)
{
	const struct xdp_options *o = &port->options;
	int err = 0;

	port->base.info->mtu_bytes =
		o->mtu_bytes != 0 ? o->mtu_bytes : port->dev.mtu_bytes;
	if (port->base.info->mtu_bytes != port->dev.mtu_bytes)
		err = change_mtu(port, o->mtu_bytes, reason);
	if (err < 0)
		return err;
	/* Binding zero-copy to a device that is down crashes some drivers. */
	if (!(port->dev.flags & IFF_UP)) {
		err = mri_xdp_change(port, XDP_SETTING_UP, 0, 1);
		if (err < 0)
			return refuse_setting(port, err,
					      "cannot bring the interface up",
					      "CAP_NET_ADMIN", reason);
	}
	return o->promisc ?
		       port->lessor->set(port, XDP_SETTING_PROMISC, 1, reason) :
		       0;
}

void mri_xdp_settings_close(struct xdp_port *port)
{
	mr_fd_close(port->promisc_fd);
	mr_fd_close(port->allmulti_fd);
	mr_fd_close(port->filter_fd);
	mri_xdp_record_undo(port, XDP_SETTING_MTU);
}

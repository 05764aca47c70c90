/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The properties of the network interface under a port, by rtnetlink and ioctl,
 * which see the caller's network namespace; /sys may show another one.
 *
 * Source: rtnetlink(7), netdevice(7), linux/include/uapi/linux/ethtool.h,
 * if_link.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/experimental/netlink.h>

#include "xdp.h"

enum { REPLY_BYTES = 16384 };

int mri_xdp_netdev_control(const char *name, unsigned long request,
			   struct ifreq *ifr)
{
	int err = 0, fd;

	if (name[0] == '\0') /* the kernel would look for a module */
		return -ENODEV;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	snprintf(ifr->ifr_name, sizeof(ifr->ifr_name), "%s", name);
	if (ioctl(fd, request, ifr) < 0)
		err = -errno;
	close(fd);
	return err;
}

int mri_xdp_netdev_ethtool(const char *name, void *command)
{
	struct ifreq ifr = { .ifr_data = command };

	return mri_xdp_netdev_control(name, SIOCETHTOOL, &ifr);
}

static const struct rtattr *find_attribute(const struct nlmsghdr *message,
					   uint16_t type)
{
	return mr_netlink_attribute(message, sizeof(struct ifinfomsg), type, 0);
}

/* Nothing if it is not there, or not of n_bytes. */
static void copy_attribute(const struct rtattr *attribute, void *ret,
			   size_t n_bytes)
{
	if (attribute != NULL && RTA_PAYLOAD(attribute) == n_bytes)
		memcpy(ret, RTA_DATA(attribute), n_bytes);
}

void mri_xdp_netdev_take(const struct nlmsghdr *message, struct xdp_netdev *dev)
{
	const struct ifinfomsg *info = NLMSG_DATA(message);
	const struct rtattr *name = find_attribute(message, IFLA_IFNAME);
	const struct rtattr *counts = find_attribute(message, IFLA_STATS64);

	dev->ifindex = (uint32_t)info->ifi_index;
	dev->flags = info->ifi_flags;
	if (name != NULL)
		snprintf(dev->name, sizeof(dev->name), "%s",
			 (const char *)RTA_DATA(name));
	copy_attribute(find_attribute(message, IFLA_MTU), &dev->mtu_bytes,
		       sizeof(dev->mtu_bytes));
	copy_attribute(find_attribute(message, IFLA_MAX_MTU), /* Linux 4.19 */
		       &dev->max_mtu_bytes, sizeof(dev->max_mtu_bytes));
	copy_attribute(find_attribute(message, IFLA_ADDRESS), dev->mac,
		       sizeof(dev->mac));
	copy_attribute(mr_netlink_attribute(message, sizeof(*info), IFLA_XDP,
					    IFLA_XDP_PROG_ID),
		       &dev->xdp_prog_id, sizeof(dev->xdp_prog_id));
	copy_attribute(mr_netlink_attribute(message, sizeof(*info), IFLA_XDP,
					    IFLA_XDP_ATTACHED),
		       &dev->xdp_attached, sizeof(dev->xdp_attached));
	if (counts != NULL) /* a kernel may know fewer, or more */
		memcpy(dev->counts, RTA_DATA(counts),
		       RTA_PAYLOAD(counts) < sizeof(dev->counts) ?
			       RTA_PAYLOAD(counts) :
			       sizeof(dev->counts));
}

static void take_dev(void *opaque, const struct nlmsghdr *message)
{
	struct xdp_netdev *dev = opaque;

	dev->xdp_prog_id = 0;
	mri_xdp_netdev_take(message, dev);
}

/*
 * Query through a socket of another network namespace. Threads may share it:
 * all ask about the same interface, so each may take another's answer.
 */
static int ask_elsewhere(int fd, const struct nlmsghdr *request,
			 struct xdp_netdev *dev)
{
	_Alignas(struct nlmsghdr) char buffer[REPLY_BYTES];
	const struct nlmsghdr *message = (const struct nlmsghdr *)buffer;
	ssize_t n;

	if (send(fd, request, request->nlmsg_len, 0) < 0)
		return -errno;
	n = recv(fd, buffer, sizeof(buffer), 0);
	if (n < 0)
		return -errno;
	if (!NLMSG_OK(message, n))
		return -EIO;
	if (message->nlmsg_type == RTM_NEWLINK)
		take_dev(dev, message);
	return message->nlmsg_type == RTM_NEWLINK ? 0 : -ENODEV;
}

int mri_xdp_netdev_read(uint32_t ifindex, struct xdp_netdev *dev)
{
	const struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST },
		.info = { .ifi_family = AF_UNSPEC, .ifi_index = (int)ifindex },
	};

	if (dev->query_fd_plus_1 != 0)
		return ask_elsewhere(dev->query_fd_plus_1 - 1, &request.header,
				     dev);
	return mr_netlink_ask(NETLINK_ROUTE, &request.header, take_dev, dev);
}

void mri_xdp_netdev_channels(struct xdp_netdev *dev)
{
	struct ethtool_channels channels = { .cmd = ETHTOOL_GCHANNELS };
	const int err =
		mri_xdp_netdev_ethtool(xdp_netdev_local_name(dev), &channels);

	/* It was just renamed or deleted, there is no fd to ask with, or it is
	 * in another network namespace. */
	if (err < 0 && err != -EOPNOTSUPP && dev->n_rx_channels > 0)
		return;
	dev->n_rx_channels = dev->n_tx_channels = 1;
	dev->n_most_rx_channels = 1;
	if (err < 0)
		return; /* lo, tap with one queue, ... */
	if (channels.rx_count + channels.combined_count > 0)
		dev->n_rx_channels =
			channels.rx_count + channels.combined_count;
	dev->n_most_rx_channels = channels.max_rx + channels.max_combined;
	if (channels.tx_count + channels.combined_count > 0)
		dev->n_tx_channels =
			channels.tx_count + channels.combined_count;
}

int mri_xdp_netdev_find(const char *name, struct xdp_netdev *ret_dev,
			struct mr_reason *reterr_reason)
{
	struct ethtool_drvinfo info = { .cmd = ETHTOOL_GDRVINFO };
	struct xdp_netdev dev = { 0 };
	struct ifreq ifr = { 0 };
	int err;

	if (name[0] == '\0')
		return mr_fail(reterr_reason, -EINVAL,
			       "xdp: no interface; for example xdp:eth0");
	/* The kernel takes "eth0:1" for eth0: an alias of old, no interface. */
	err = strlen(name) < IFNAMSIZ && strchr(name, ':') == NULL ?
		      mri_xdp_netdev_control(name, SIOCGIFINDEX, &ifr) :
		      -ENODEV;
	if (err == -ENODEV)
		return mr_fail(reterr_reason, err,
			       "xdp:%s: no such network interface; 'ip link' "
			       "lists those of this network namespace",
			       name);
	if (err == 0) {
		dev.ifindex = (uint32_t)ifr.ifr_ifindex;
		err = mri_xdp_netdev_read(dev.ifindex, &dev);
	}
	if (err < 0)
		return mr_fail(reterr_reason, err,
			       "xdp:%s: cannot read the interface: %s", name,
			       mr_strerror(-err));
	mri_xdp_netdev_channels(&dev);
	if (mri_xdp_netdev_ethtool(name, &info) == 0)
		snprintf(dev.driver, sizeof(dev.driver), "%s", info.driver);
	*ret_dev = dev;
	return 0;
}

int mri_xdp_refuse_request(const char *port, int err, const char *what,
			   const char *capability, struct mr_reason *reason)
{
	if (err == -EPERM)
		return mr_fail(reason, err,
			       "%s: %s: capability %s is missing: run as root, "
			       "or " XDP_SETCAP,
			       port, what, capability);
	return mr_fail(reason, err, "%s: %s: %s", port, what,
		       mr_strerror(-err));
}

int mri_xdp_netdev_file(const char *name, const char *file, bool is_write,
			uint64_t *value)
{
	char path[128], text[32] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/sys/class/net/%s/%s", name, file);
	fd = open(path, (is_write ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (is_write) {
		n = snprintf(text, sizeof(text), "%llu\n",
			     (unsigned long long)*value);
		n = write(fd, text, (size_t)n);
	} else {
		n = read(fd, text, sizeof(text) - 1);
		*value = strtoull(text, NULL, 10);
	}
	n = n < 0 ? -errno : 0;
	close(fd);
	return (int)n;
}

uint32_t mri_xdp_netdev_speed_mbps(const struct xdp_netdev *dev)
{
	struct {
		struct ethtool_link_settings settings;
		uint32_t masks[3 * 127];
	} request = { .settings = { .cmd = ETHTOOL_GLINKSETTINGS } };
	const char *const name = xdp_netdev_local_name(dev);

	/* The kernel answers the first call with the size of its masks. */
	if (mri_xdp_netdev_ethtool(name, &request) < 0 ||
	    request.settings.link_mode_masks_nwords >= 0)
		return 0;
	request.settings.cmd = ETHTOOL_GLINKSETTINGS;
	request.settings.link_mode_masks_nwords =
		(int8_t)-request.settings.link_mode_masks_nwords;
	if (mri_xdp_netdev_ethtool(name, &request) < 0 ||
	    request.settings.speed == (uint32_t)SPEED_UNKNOWN)
		return 0;
	return request.settings.speed;
}

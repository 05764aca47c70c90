/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events of the interface of an open port. Only this file reads the kernel's
 * events. It updates the values that lib/port compares and reports.
 *
 * Source: rtnetlink(7); linux/Documentation/networking/ethtool-netlink.rst.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "device/events.h"
#include "device/stats.h"
#include "xdp.h"

enum {
	MESSAGE_BYTES = 16384,
	QUERY_WAIT_S = 2,
	EACH = 8, /* polls: how often to check what may send no event */
};

int mri_xdp_events_open(void)
{
	const struct sockaddr_nl address = { .nl_family = AF_NETLINK,
					     .nl_groups = RTMGRP_LINK };
	const int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		const int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

int mri_xdp_query_open(uint32_t ifindex)
{
	const struct timeval wait = { .tv_sec = QUERY_WAIT_S };
	const uint32_t index = htonl(ifindex);
	struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS,
			 offsetof(struct nlmsghdr, nlmsg_type)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(NLMSG_ERROR), 7, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_NEWLINK), 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htons(RTM_DELLINK), 0, 4),
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS,
			 offsetof(struct nlmsghdr, nlmsg_flags)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, htons(NLM_F_MULTI), 2, 0),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
			 NLMSG_HDRLEN + offsetof(struct ifinfomsg, ifi_index)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, index, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, 0),
		BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
	};
	const struct sock_fprog program = {
		.len = sizeof(insns) / sizeof(insns[0]), .filter = insns
	};
	const int fd = mri_xdp_events_open(), one = 1;

	if (fd >= 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
		       sizeof(program)) == 0 &&
	    setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &one, sizeof(one)) ==
		    0 &&
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) == 0)
		return fd;
	mr_fd_close(fd);
	return -1;
}

/* Make an fd that is readable when one of these is. */
static int watch_fds(const int *fds, uint32_t n)
{
	const int fd = epoll_create1(EPOLL_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (uint32_t i = 0; i < n; i++) {
		struct epoll_event event = { .events = EPOLLIN };

		if (fds[i] >= 0 &&
		    epoll_ctl(fd, EPOLL_CTL_ADD, fds[i], &event) < 0) {
			const int err = -errno;

			close(fd);
			return err;
		}
	}
	return fd;
}

int mri_xdp_events_watch(struct xdp_port *port, struct mr_reason *reason)
{
	int *fd = &port->lease.fds[XDP_LEASE_EVENTS];

	if (*fd < 0)
		*fd = mri_xdp_events_open();
	if (*fd < 0)
		return mr_fail(reason, *fd, "%s: no rtnetlink: %s",
			       port->base.info->name, mr_strerror(-*fd));
	/* Linux 5.6; without it, mri_xdp_events_poll() checks now and then. */
	port->channels_fd = mri_xdp_channels_open();
	port->base.fd = watch_fds((const int[]){ *fd, port->channels_fd }, 2);
	if (port->base.fd < 0)
		return mr_fail(reason, port->base.fd, "%s: no epoll: %s",
			       port->base.info->name,
			       mr_strerror(-port->base.fd));
	memcpy(port->opened_name, port->dev.name, sizeof(port->opened_name));
	return 0;
}

void mri_xdp_events_close(struct xdp_port *port)
{
	mr_fd_close(port->base.fd);
	mr_fd_close(port->channels_fd);
}

/*
 * An event may be older than a change that the port made itself, so read the
 * interface. If it cannot be read, do nothing: another event will follow.
 */
static void refresh_state(const struct xdp_port *port, struct xdp_netdev *dev)
{
	const struct mr_port_info *info = port->base.info;

	if (dev->mtu_bytes != info->mtu_bytes ||
	    memcmp(dev->mac, info->mac, sizeof(info->mac)) != 0)
		(void)mri_xdp_netdev_read(dev->ifindex, dev);
}

static void take_name(struct xdp_port *port, const struct xdp_netdev *dev)
{
	struct mr_port_info *info = port->base.info;

	if (strcmp(dev->name, port->dev.name) == 0)
		return;
	mr_log(port->base.ctx, MR_LOG_WARNING,
	       "%s: the interface was renamed to %s", info->name, dev->name);
	memcpy(port->dev.name, dev->name, sizeof(port->dev.name));
	memcpy(info->netdev, dev->name, sizeof(info->netdev));
}

static void take_mac(struct xdp_port *port, const uint8_t mac[6])
{
	struct mr_port_info *info = port->base.info;

	if (memcmp(mac, info->mac, sizeof(info->mac)) == 0)
		return;
	mr_log(port->base.ctx, MR_LOG_WARNING,
	       "%s: MAC address is now %02x:%02x:%02x:%02x:%02x:%02x",
	       info->name, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	memcpy(info->mac, mac, sizeof(info->mac));
}

static void take_mtu(struct xdp_port *port, uint32_t mtu_bytes)
{
	struct mr_port_info *info = port->base.info;

	if (mtu_bytes == info->mtu_bytes)
		return;
	mr_log(port->base.ctx, MR_LOG_WARNING, "%s: MTU is now %u (before: %u)",
	       info->name, mtu_bytes, info->mtu_bytes);
	/* Bursts read it. */
	__atomic_store_n(&info->mtu_bytes, mtu_bytes, __ATOMIC_RELAXED);
}

static void take_link(struct xdp_port *port, struct xdp_netdev *dev)
{
	bool is_up;

	refresh_state(port, dev);
	is_up = xdp_netdev_has_link(dev);
	if (is_up != __atomic_load_n(&port->is_up, __ATOMIC_RELAXED))
		mr_log(port->base.ctx, MR_LOG_INFO, "%s: link is %s",
		       port->base.info->name, is_up ? "up" : "down");
	take_name(port, dev);
	take_mac(port, dev->mac);
	take_mtu(port, dev->mtu_bytes);
	__atomic_store_n(&port->is_up, is_up, __ATOMIC_RELAXED);
	__atomic_store_n(&port->speed_mbps, mri_xdp_netdev_speed_mbps(dev),
			 __ATOMIC_RELAXED);
}

static bool is_gone(const struct xdp_port *port)
{
	return __atomic_load_n(&port->is_gone, __ATOMIC_RELAXED);
}

static void lose_interface(struct xdp_port *port)
{
	if (is_gone(port) && port->is_loss_known)
		return;
	mr_log(port->base.ctx, MR_LOG_WARNING,
	       "%s: the interface was deleted, or moved to another network "
	       "namespace",
	       port->base.info->name);
	__atomic_store_n(&port->is_up, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&port->is_gone, 1, __ATOMIC_RELAXED);
	port->is_loss_known = true;
	/* A moved interface would drop all frames. */
	mri_xdp_prog_detach(port);
}

/* An event of another interface: the one that was lost may have returned. */
static void take_return(struct xdp_port *port, const struct xdp_netdev *dev,
			bool is_deleted)
{
	if (is_deleted) {
		if (dev->ifindex == port->returned_ifindex)
			port->returned_ifindex = 0;
	} else if (strcmp(dev->name, port->opened_name) == 0) {
		port->returned_ifindex = dev->ifindex;
	}
}

static void take_message(struct xdp_port *port, const struct nlmsghdr *message)
{
	const bool is_deleted = message->nlmsg_type == RTM_DELLINK;
	struct xdp_netdev dev = port->dev;
	const struct ifinfomsg *info = NLMSG_DATA(message);

	if ((message->nlmsg_type != RTM_NEWLINK && !is_deleted) ||
	    info->ifi_family == AF_BRIDGE)
		return;
	mri_xdp_netdev_take(message, &dev);
	if (port->is_loss_known)
		take_return(port, &dev, is_deleted);
	else if (dev.ifindex != port->dev.ifindex)
		return;
	else if (is_deleted)
		lose_interface(port);
	else
		take_link(port, &dev);
}

/* Read the state after events were lost. */
static void read_state(struct xdp_port *port)
{
	struct xdp_netdev dev = port->dev;
	const int err = mri_xdp_netdev_read(dev.ifindex, &dev);

	if (err == 0 && !port->is_loss_known)
		take_link(port, &dev);
	else if (err == -ENODEV)
		lose_interface(port);
	if (port->is_loss_known && port->dev.query_fd_plus_1 == 0)
		port->returned_ifindex = if_nametoindex(port->opened_name);
}

static int take_messages(struct xdp_port *port)
{
	_Alignas(struct nlmsghdr) char buffer[MESSAGE_BYTES];
	int n_events = 0;

	for (;; n_events++) {
		const struct nlmsghdr *message =
			(const struct nlmsghdr *)buffer;
		ssize_t n = recv(port->lease.fds[XDP_LEASE_EVENTS], buffer,
				 sizeof(buffer), MSG_DONTWAIT);

		if (n < 0 && errno == ENOBUFS)
			read_state(port);
		else if (n <= 0)
			return n_events;
		for (; NLMSG_OK(message, n); message = NLMSG_NEXT(message, n))
			take_message(port, message);
	}
}

bool mri_xdp_drain_events(int fd)
{
	bool has_event = false;
	char message;
	ssize_t n;

	while (fd >= 0 &&
	       ((n = recv(fd, &message, sizeof(message), MSG_DONTWAIT)) > 0 ||
		(n < 0 && errno == ENOBUFS)))
		has_event = true;
	return has_event;
}

/* A veth does not run its program for new channels (Linux 6.18). */
static void cover_channels(struct xdp_port *port)
{
	struct mr_reason why;

	if (!port->lease.is_native || port->options.partial ||
	    port->base.is_away || mri_xdp_prog_spread(port, &why) == 0)
		return;
	mr_log(port->base.ctx, MR_LOG_WARNING,
	       "%s: frames of the new channels go to the kernel until the port "
	       "is opened again (%s)",
	       port->base.info->name, why.text);
}

void mri_xdp_take_channels(struct xdp_port *port)
{
	struct mr_port_info *info = port->base.info;
	const uint32_t first = port->lease.first_queue;
	const uint32_t was = port->dev.n_rx_channels;
	struct xdp_netdev dev = port->dev;

	if (!is_gone(port))
		mri_xdp_netdev_channels(&dev);
	port->dev.n_rx_channels = dev.n_rx_channels;
	info->n_channels = port->options.partial ? port->lease.n_queues :
			   dev.n_rx_channels > first ?
						   dev.n_rx_channels - first :
						   0;
	if (dev.n_rx_channels == was)
		return;
	mr_log(port->base.ctx, MR_LOG_WARNING,
	       "%s: the interface now has %u rx channels (before: %u)",
	       info->name, dev.n_rx_channels, was);
	if (dev.n_rx_channels > was && port->is_software)
		cover_channels(port);
	port->has_named_unserved = false;
}

/* Warn some time after channels appeared: queues may have been added first. */
static void name_unserved(struct xdp_port *port)
{
	const uint64_t n = mri_xdp_n_unserved(port);

	if (n > port->n_unserved_seen && port->n_unserved_seen > 0 &&
	    !port->has_named_unserved) {
		port->has_named_unserved = true;
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: frames arrive on channels that the port has no "
		       "queue for; they are dropped (queue_without_socket)",
		       port->base.info->name);
	}
	port->n_unserved_seen = n;
}

/*
 * The kernel sends no event for BPF_LINK_DETACH. A deleted interface also has
 * its link detached, but that has been reported already.
 */
static int look_at_program(struct xdp_port *port)
{
	struct xdp_netdev dev = port->dev;

	if (port->is_detached || is_gone(port) ||
	    !mri_xdp_prog_is_detached(port) ||
	    mri_xdp_netdev_read(dev.ifindex, &dev) < 0)
		return 0;
	__atomic_store_n(&port->n_detached_at, dev.counts[XDP_LINK_RX_PACKETS],
			 __ATOMIC_RELAXED);
	__atomic_store_n(&port->is_detached, 1, __ATOMIC_RELEASE);
	mr_log(port->base.ctx, MR_LOG_WARNING,
	       "%s: another program detached the XDP program: nothing arrives "
	       "until the port is opened again",
	       port->base.info->name);
	return 1;
}

uint32_t mri_xdp_events_poll(struct mr_port *base)
{
	struct xdp_port *port = (struct xdp_port *)base;
	int n_events = take_messages(port);
	/* These checks take the RTNL lock, so make them rarely. */
	const bool is_time = port->n_polls++ % EACH == 0;
	const uint32_t n_before = port->dev.n_rx_channels;

	if (mri_xdp_drain_events(port->channels_fd) || is_time)
		mri_xdp_take_channels(port);
	n_events += port->dev.n_rx_channels != n_before;
	if (!is_time)
		return n_events;
	name_unserved(port);
	return n_events + look_at_program(port);
}

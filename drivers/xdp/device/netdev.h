/* SPDX-License-Identifier: BSD-3-Clause */
/* The properties of the network interface under a port. */
#ifndef XDP_DEVICE_NETDEV_H
#define XDP_DEVICE_NETDEV_H

#include <linux/netlink.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <millrace/error.h>

#include "device/settings.h"

/* linux/if.h, which net/if.h excludes. */
enum { XDP_IFF_LOWER_UP = 1 << 16 };

/* Counters of each interface: struct rtnl_link_stats64, in its order. */
enum {
	XDP_LINK_RX_PACKETS = 0,
	XDP_LINK_RX_ERRORS = 4,
	XDP_LINK_RX_DROPPED = 6,
	XDP_LINK_RX_MISSED = 15,
	XDP_N_LINK_COUNTS = 24,
};

struct xdp_netdev {
	char name[IFNAMSIZ];
	uint32_t ifindex;
	uint32_t n_rx_channels, n_tx_channels;
	uint32_t n_most_rx_channels; /* how many it can have */
	uint32_t flags;              /* IFF_* */
	uint32_t mtu_bytes;
	uint32_t max_mtu_bytes; /* 0: the kernel does not say */
	uint32_t xdp_prog_id;   /* attached by somebody, 0: none */
	uint8_t xdp_attached;   /* XDP_ATTACHED_*: in which mode */
	uint8_t mac[6];
	char driver[32]; /* "veth", "igb", ... */
	uint64_t counts[XDP_N_LINK_COUNTS];
	/* rtnetlink in its network namespace; 0: that is the caller's. */
	int query_fd_plus_1;
};

/* The name for calls that look for it in the caller's network namespace; "",
 * which is no interface's, if it is in another. */
static inline const char *xdp_netdev_local_name(const struct xdp_netdev *dev)
{
	return dev->query_fd_plus_1 == 0 ? dev->name : "";
}

/*
 * Up, and with a carrier. IFF_RUNNING alone is late by up to a second when the
 * carrier goes (linux/net/core/link_watch.c), IFF_LOWER_UP is not; when it
 * comes, IFF_RUNNING is what says that frames may be queued.
 */
static inline bool xdp_netdev_has_link(const struct xdp_netdev *dev)
{
	const uint32_t wanted = IFF_UP | IFF_RUNNING | XDP_IFF_LOWER_UP;

	return (dev->flags & wanted) == wanted;
}

/* veth or tap: a kernel's frames, not a wire's. */
static inline bool xdp_netdev_is_software(const struct xdp_netdev *dev)
{
	return strcmp(dev->driver, "veth") == 0 ||
	       strcmp(dev->driver, "tun") == 0;
}

int mri_xdp_netdev_find(const char *name, struct xdp_netdev *ret_dev,
			struct mr_reason *reterr_reason);
/* Read the interface by rtnetlink; 0 or -errno. */
int mri_xdp_netdev_read(uint32_t ifindex, struct xdp_netdev *dev);
/* 0: unknown. */
uint32_t mri_xdp_netdev_speed_mbps(const struct xdp_netdev *dev);
/* err, and a reason that names the capability if that is what is missing. */
int mri_xdp_refuse_request(const char *port, int err, const char *what,
			   const char *capability, struct mr_reason *reason);
/* One ioctl on an interface, with its name filled in; 0 or -errno, -ENODEV if
 * the name is "". */
int mri_xdp_netdev_control(const char *name, unsigned long request,
			   struct ifreq *ifr);
int mri_xdp_netdev_ethtool(const char *name, void *command);
/* Read or write the number in a file of /sys/class/net/NAME; 0 or -errno. */
int mri_xdp_netdev_file(const char *name, const char *file, bool is_write,
			uint64_t *value);
/* Take the attributes that we use from an RTM_NEWLINK message. */
void mri_xdp_netdev_take(const struct nlmsghdr *message,
			 struct xdp_netdev *dev);
/* Read how many channels there are; 1 each if the driver has none; as before if
 * it cannot be asked. */
void mri_xdp_netdev_channels(struct xdp_netdev *dev);

/* genl.c */
/* Most descriptors of a frame in zero-copy mode; 1 if the driver has no SG. */
uint32_t mri_xdp_zc_max_segs(uint32_t ifindex);
/* Ids of the interface's NAPIs: how many, or -errno. */
int mri_xdp_napi_list(uint32_t ifindex, uint32_t ret_ids[XDP_MAX_NAPIS]);
/* The NAPI of an rx queue; 0: the driver does not report it. */
uint32_t mri_xdp_queue_napi(uint32_t ifindex, uint32_t queue);
/* As mri_xdp_setting(), of a NAPI; -EOPNOTSUPP: before Linux 6.13. */
int mri_xdp_napi_setting(uint32_t id, enum xdp_setting setting, bool is_write,
			 uint64_t *value);

/* The kernel's NETDEV_XDP_ACT_*: 0, -ENOENT before Linux 6.3, or -errno. */
int mri_xdp_features(uint32_t ifindex, uint64_t *ret_features);
/* Its NETDEV_XDP_RX_METADATA_*; 0 before Linux 6.7. */
uint64_t mri_xdp_rx_metadata(uint32_t ifindex);
/* Its NETDEV_XSK_FLAGS_*: 0, or -ENOENT before Linux 6.8. */
int mri_xdp_tx_metadata(uint32_t ifindex, uint64_t *ret_features);
/* Non-blocking fds that become readable when the features of any interface, or
 * its ethtool settings, change; or -errno. */
int mri_xdp_features_open(void);
int mri_xdp_channels_open(void);

/* master.c */
/* 0; -ENOTSUP: it is a bond, bridge, VLAN or the like, and the reason names the
 * underlying devices; or -errno. */
int mri_xdp_refuse_master(const struct xdp_netdev *dev,
			  struct mr_reason *reterr_reason);

#endif

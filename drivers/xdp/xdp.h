/* SPDX-License-Identifier: BSD-3-Clause */
/* A port of the AF_XDP driver, and its options. */
#ifndef XDP_XDP_H
#define XDP_XDP_H

#include <millrace/driver.h>

#include "device/netdev.h"
#include "device/settings.h"
#include "lease/lease.h"
#include "program/filter.h"
#include "program/program.h"
#include "uapi.h"

/* What lets a user run a program without root; the last is for UMEMs. */
#define XDP_SETCAP                                                             \
	"setcap cap_net_raw,cap_net_admin,cap_bpf,cap_perfmon,cap_ipc_lock+ep" \
	" on the program, or CapabilityBoundingSet= and AmbientCapabilities= " \
	"of its unit"

enum {
	XDP_MIN_FRAME_BYTES = 14, /* an Ethernet header */
	/* Linux devices take an MTU, an Ethernet header and a VLAN tag. */
	XDP_LINK_BYTES = 14 + 4,
	/* ETH_GSTRING_LEN, and an end, which the kernel may leave out. */
	XDP_STAT_NAME_BYTES = 32 + 1,
};

enum xdp_mode { XDP_MODE_AUTO, XDP_MODE_ZC, XDP_MODE_COPY };
enum xdp_attach { XDP_ATTACH_AUTO, XDP_ATTACH_NATIVE, XDP_ATTACH_GENERIC };
enum xdp_switch { XDP_AUTO, XDP_ON, XDP_OFF };
enum xdp_rss { XDP_RSS_AUTO, XDP_RSS_SYMMETRIC, XDP_RSS_KEEP };

struct xdp_options {
	uint32_t mode, attach, sg, csum;
	uint32_t n_queues; /* 0: all channels */
	uint32_t first_queue;
	uint32_t ring_entries;
	uint32_t mtu_bytes; /* 0: as it is */
	uint32_t budget;    /* copy mode: descriptors per sendto(); 0: a ring */
	uint32_t busy;      /* busy poll budget; 0: off */
	bool promisc, force, partial, meta;
	uint32_t rss; /* from here on, not for the broker: lease/wire.h */
	uint32_t via; /* enum xdp_via */
	/* Valid during open; NULL: not given. */
	const char *prog, *map, *broker;
};

enum xdp_via { XDP_VIA_AUTO, XDP_VIA_BROKER, XDP_VIA_SELF };

struct xdp_port {
	struct mr_port base;
	struct xdp_options options;
	const struct xdp_lessor *lessor;
	struct xdp_lease lease;
	struct xdp_netdev dev; /* as at open, except name and n_rx_channels */
	struct xdp_prog prog;
	struct xdp_filter filter; /* n is 0: it takes all frames */
	struct xdp_rules *rules; /* NULL: its program is not attached */
	struct xdp_rxq *rxqs;
	struct xdp_txq *txqs;
	/* Counters of the program, mapped; NULL: none. By queue, and: frames on
	 * queues without a socket. */
	uint64_t (*passed)[XDP_FILTER_COUNT_BYTES / sizeof(uint64_t)];
	const uint64_t *unserved;
	uint64_t n_unserved_before; /* before the port was open */
	uint64_t n_unserved_seen;   /* at the last check */
	bool has_named_unserved;
	int promisc_fd, allmulti_fd, filter_fd; /* -1: not set; end with us */
	struct xdp_record record;
	const struct mr_steer_rule *steering; /* while it is being added */
	bool is_pinned;
	int channels_fd;            /* ethtool netlink; -1: none */
	char opened_name[IFNAMSIZ]; /* of the interface, when it was opened */
	bool is_loss_known;         /* is_gone was reported */
	uint32_t returned_ifindex;  /* has opened_name again; 0: none */
	uint32_t n_polls; /* calls of mr_port_poll(), for rare checks */
	bool is_software;
	uint8_t *posted; /* the memory of XDP_LEASE_POSTED, mapped */
	struct {
		int fd; /* of a tap; -1: not open */
		uint64_t handed, lost;
	} kernel;
	uint32_t n_stats; /* the driver's own counters: ethtool -S */
	char (*stat_names)[XDP_STAT_NAME_BYTES];
	/* As base.info->mtu_bytes: atomic; mr_port_poll() writes. */
	uint32_t is_up;
	uint32_t is_gone;
	uint32_t is_detached;   /* another program detached ours */
	uint64_t n_detached_at; /* frames received until then */
	uint32_t speed_mbps;
};

/* The longest frame that the interface takes now. */
static inline uint32_t xdp_max_bytes(const struct xdp_port *port)
{
	return __atomic_load_n(&port->base.info->mtu_bytes, __ATOMIC_RELAXED) +
	       XDP_LINK_BYTES;
}

/* Whether its program is loaded for its device alone. */
static inline bool xdp_is_bound(const struct xdp_port *port)
{
	return port->lease.kfuncs[XDP_KFUNC_TIME] != 0 ||
	       port->lease.kfuncs[XDP_KFUNC_HASH] != 0 ||
	       port->lease.kfuncs[XDP_KFUNC_TAG] != 0;
}

/* xdp.c */
/* Set all fds to -1. */
void mri_xdp_port_init(struct xdp_port *port);
int mri_xdp_read_options(const struct mr_spec *spec, struct xdp_options *o,
			 struct mr_reason *reterr_reason);
/* Describe the open port. */
void mri_xdp_fill_info(struct xdp_port *port);
/* Undo whatever of opening was done. */
void mri_xdp_release(struct mr_port *base);
/* Add to info.why. */
void mri_xdp_add_why(struct xdp_port *port, const char *why);
/* Check the queues that the options ask for, and fill in how many. */
int mri_xdp_choose_queues(const struct xdp_netdev *dev, struct xdp_options *o,
			  struct mr_reason *reterr_reason);
bool mri_xdp_has_partial_csums(const struct xdp_port *port);

#endif

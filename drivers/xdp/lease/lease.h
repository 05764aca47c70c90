/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a port needs to use a set of queues. The process makes it, if it has the
 * capabilities, or gets it from mr-brokerd. It holds no pointer into a process,
 * so another process can use a copy, with duplicates of the fds.
 */
#ifndef XDP_LEASE_LEASE_H
#define XDP_LEASE_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/experimental/port_queues.h>

#include "device/settings.h"
#include "program/rx_meta.h"

struct mr_driver;
struct mr_hand_over_ops;
struct mr_offload_caps;
struct mr_port;
struct xdp_netdev;
struct xdp_options;
struct xdp_port;

enum {
	XDP_MAX_QUEUES = 64, /* of a port */
	XDP_MAX_SEGMENTS = 64,
};

/* The fds other than the sockets, in the order in which they are sent. */
enum xdp_lease_fd {
	XDP_LEASE_LINK,     /* of the program, which ends with its last fd */
	XDP_LEASE_PASSED,   /* map: frames that the filter left the kernel */
	XDP_LEASE_UNSERVED, /* map: frames on queues without a socket */
	XDP_LEASE_RECORD,   /* its lock says that the port is open */
	XDP_LEASE_EVENTS,   /* rtnetlink, where the interface is */
	XDP_LEASE_QUERY,    /* the same for requests; -1: it is here */
	XDP_LEASE_POSTED,   /* memory: a byte per chunk, for each rx queue */
	XDP_LEASE_BROKER,   /* the connection to the broker */
	XDP_LEASE_N_FDS,
};

struct xdp_lease {
	uint32_t n_queues;     /* sockets */
	uint32_t n_queues_max; /* after adding queues for new channels */
	uint32_t first_queue;
	uint32_t n_entries;   /* of rx, tx and completion ring; fill: twice */
	uint32_t n_zc_queues; /* bound without copies: all, or none at all */
	uint32_t max_segs;    /* descriptors of a frame; 1: no SG */
	uint32_t chunk_bytes, headroom_bytes;
	uint32_t tx_metadata_bytes;    /* before each entry sent; 0: none */
	uint32_t meta_magic;           /* 0: the program writes no metadata */
	uint32_t kfuncs[XDP_N_KFUNCS]; /* that it calls: ids in BTF, or 0 */
	uint8_t is_native, has_frags, is_busy;
	uint8_t is_mute;    /* the sockets have no tx ring */
	uint8_t is_unbound; /* before Linux 6.4: the broker binds them later */
	uint8_t reserved[3];
	uint32_t n_segments; /* registered: memfds of the region */
	uint64_t segment_bytes[XDP_MAX_SEGMENTS];
	uint64_t n_bytes;            /* of all segments */
	int sockets[XDP_MAX_QUEUES]; /* -1: none, as in fds */
	int fds[XDP_LEASE_N_FDS];
};

/* Who makes the lease of a port, and later changes what needs capabilities. */
struct xdp_lessor {
	const struct mr_driver *driver; /* of a port with such a lease */
	const char *why_alone; /* no program may join others; NULL: it may */
	/* As mri_xdp_netdev_find(), without interfaces on top of others. */
	int (*find)(const char *name, const struct xdp_options *o,
		    struct xdp_netdev *ret_dev, struct mr_reason *reason);
	int (*open)(struct xdp_port *port, struct mr_reason *reason);
	/* Give back all of it, also after a failure. */
	void (*close)(struct xdp_port *port);
	/* value as in struct xdp_change */
	int (*set)(struct xdp_port *port, enum xdp_setting setting,
		   uint64_t value, struct mr_reason *reason);
	/* Replace the program by one that has port->filter. */
	int (*set_filter)(struct xdp_port *port, struct mr_reason *reason);
	int (*rules_caps)(const struct xdp_port *port,
			  struct mr_offload_caps *caps,
			  struct mr_reason *reason);
};

/* xdp.c */
extern const struct mr_driver mr_driver_xdp, mri_xdp_driver_there;
/* self.c, client.c */
extern const struct xdp_lessor mri_xdp_self, mri_xdp_broker;
/* client.c: functions of struct mr_driver */
int mri_xdp_set_mac_filter_there(struct mr_port *base, const uint8_t (*macs)[6],
				 uint32_t n, struct mr_reason *reterr_reason);
int mri_xdp_set_rss_there(struct mr_port *base, const struct mr_rss_config *c,
			  struct mr_reason *reterr_reason);
int mri_xdp_steer_there(struct mr_port *base, const struct mr_steer_rule *rule,
			uint32_t *ret_id, struct mr_reason *reterr_reason);
int mri_xdp_unsteer_there(struct mr_port *base, uint32_t id,
			  struct mr_reason *reterr_reason);
int mri_xdp_open_kernel_there(struct mr_port *base,
			      struct mr_reason *reterr_reason);
/* The broker, if an option says so, or it answers and capabilities are missing.
 */
int mri_xdp_choose_lessor(const char *interface, const struct xdp_options *o,
			  const struct xdp_lessor **ret_lessor,
			  struct mr_reason *reterr_reason);

/*
 * self.c: the two steps of a port and of the broker. Between them, the broker
 * may replace the sockets. On failure, mri_xdp_lease_end() undoes them.
 */
int mri_xdp_lease_take(struct xdp_port *port, struct mr_reason *reterr_reason);
int mri_xdp_lease_finish(struct xdp_port *port,
			 struct mr_reason *reterr_reason);
void mri_xdp_lease_end(struct xdp_port *port);

/* capability.c */
enum {
	XDP_CAP_BPF = 1 << 0,
	XDP_CAP_PERFMON = 1 << 1,
	XDP_CAP_NET_ADMIN = 1 << 2,
	XDP_CAP_NET_RAW = 1 << 3,
};
/* Name a capability of wanted that the process lacks. NULL: none, or the kernel
 * does not say. CAP_SYS_ADMIN includes BPF and PERFMON. */
const char *mri_xdp_missing_capability(uint32_t wanted);

/* hand_over.c */
extern const struct mr_hand_over_ops mri_xdp_hand_over;
/* Free what the process has of a port that is another one's. */
void mri_xdp_leave(struct xdp_port *port);

/* unbound.c: whether the kernel maps the rings of a bound socket (Linux 6.4) */
bool mri_xdp_can_map_bound(const struct xdp_port *port);

/* lease.c */
/* One without fds. */
void mri_xdp_lease_init(struct xdp_lease *lease);
/* Fill in what the options and the pool say about sizes. */
void mri_xdp_lease_sizes(struct xdp_port *port);
/* Close the fds that are left. */
void mri_xdp_lease_close(struct xdp_lease *lease);
/* List the fds in the order of the lease. Returns how many. */
uint32_t mri_xdp_lease_pack(const struct xdp_lease *lease, int *ret_fds);
/* Put received fds into a received lease, which owns them then. -EPROTO: it
 * has another number of fds; the caller keeps them. */
int mri_xdp_lease_unpack(struct xdp_lease *lease, const int *fds,
			 uint32_t n_fds);

#endif

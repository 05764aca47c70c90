/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The messages between a port and mr-brokerd: one request and one answer each,
 * as packets of a SOCK_SEQPACKET socket, in the machine's byte order. The
 * broker begins: the first answer says whether it serves this user. Before
 * that, the client may not send fds.
 *
 *     FIND     the interface, before memory is allocated
 *     OPEN     with the memfds of the memory; the answer has the lease
 *     SET      a setting of the interface
 *     RSS, STEER, UNSTEER: <millrace/experimental/port_queues.h>
 *     FILTER   another filter, with the fds of the link, the counters and each
 *              socket, because the broker has kept none of them
 *     BIND     the sockets, whose rings are mapped and filled, if the answer
 *              to OPEN said that they are not bound (unbound.c)
 *
 * The end of the connection ends the port.
 */
#ifndef XDP_LEASE_WIRE_H
#define XDP_LEASE_WIRE_H

#include <linux/filter.h>

#include <millrace/experimental/port_queues.h>

#include "lease/broker.h"
#include "xdp.h"

enum {
	XDP_WIRE_VERSION = 6,
	/* Of struct xdp_options: the members that a client sends. */
	XDP_WIRE_OPTIONS = offsetof(struct xdp_options, rss),
	XDP_WIRE_FILTER_FDS = 2, /* and one per queue */
};

enum xdp_wire_type {
	XDP_WIRE_FIND = 1,
	XDP_WIRE_OPEN,
	XDP_WIRE_SET,
	XDP_WIRE_RSS,
	XDP_WIRE_STEER,
	XDP_WIRE_UNSTEER,
	XDP_WIRE_FILTER,
	XDP_WIRE_BIND,
	XDP_WIRE_N_TYPES,
};

struct xdp_wire_head {
	uint32_t n_bytes; /* of the whole message */
	uint16_t version, type;
};

struct xdp_wire_find {
	struct xdp_wire_head head;
	char interface[IFNAMSIZ];
};

struct xdp_wire_open {
	struct xdp_wire_head head;
	char interface[IFNAMSIZ];
	uint64_t netns; /* cookie of the client's; 0: unknown */
	uint8_t options[XDP_WIRE_OPTIONS];
	uint32_t chunk_bytes, headroom_bytes, tailroom_bytes;
	uint32_t n_segments, n_insns;
	uint64_t segment_bytes[XDP_MAX_SEGMENTS];
	struct sock_filter insns[]; /* the filter */
};

struct xdp_wire_set {
	struct xdp_wire_head head;
	uint32_t setting, pad;
	uint64_t value;
};

struct xdp_wire_rss {
	struct xdp_wire_head head;
	uint32_t keep, fields, n_key_bytes, n_entries;
	uint8_t key[MR_RSS_KEY_MAX];
	uint32_t table[];
};

struct xdp_wire_steer {
	struct xdp_wire_head head;
	struct mr_steer_rule rule;
};

struct xdp_wire_unsteer {
	struct xdp_wire_head head;
	uint32_t id, pad;
};

struct xdp_wire_filter {
	struct xdp_wire_head head;
	uint32_t n_insns, pad;
	struct sock_filter insns[];
};

/* The fds of the lease follow: those that are not -1. */
struct xdp_wire_answer {
	struct xdp_wire_head head;
	int32_t err;
	uint32_t id; /* of a steering rule */
	struct mr_reason reason;
	struct xdp_lease lease;
	uint32_t mtu_bytes;
	char why[sizeof(((struct mr_port_info *)0)->why)];
	struct xdp_netdev dev;
};

_Static_assert(sizeof(struct xdp_wire_answer) <=
		       sizeof(((struct xdp_answer *)0)->bytes),
	       "an answer fits");
_Static_assert(XDP_MAX_QUEUES + XDP_LEASE_N_FDS <= XDP_BROKER_MAX_FDS,
	       "the fds of a lease fit");
_Static_assert(XDP_WIRE_FILTER_FDS + XDP_MAX_QUEUES <= XDP_BROKER_MAX_FDS,
	       "the fds of a request fit");
_Static_assert(sizeof(struct xdp_wire_rss) + XDP_MAX_TABLE * sizeof(uint32_t) <=
		       XDP_BROKER_MAX_BYTES,
	       "a table fits");
_Static_assert(sizeof(struct xdp_wire_open) +
			       XDP_FILTER_MAX * sizeof(struct sock_filter) <=
		       XDP_BROKER_MAX_BYTES,
	       "a request fits");

#endif

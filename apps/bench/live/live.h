/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that a BPF program makes and the kernel sends, without sockets, skbs
 * and copies. For veth and other interfaces with ndo_xdp_xmit(). */
#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

#include <stdint.h>

#include <millrace/millrace.h>

#include "live/live_shape.h"
#include "net/place.h"

/* live:IFACE as a place to send to. In a build without libbpf, clang and
 * bpftool, open() says so. */
extern const struct place_ops live_place;

/*
 * The share of one sender of n_senders, as tables for the program in the
 * kernel. -ENOTSUP: live frames cannot have something that the streams have;
 * the reason says what, and what they can have.
 */
int live_shape_of(const struct streams *streams, uint32_t sender,
		  uint32_t n_senders, uint64_t seed, struct live_shape *ret,
		  struct mr_reason *why);

struct live;

/*
 * Load the program for an interface of the calling thread's network namespace.
 * Sets ifindex and netns of the shape, which is copied. -ENODEV, -EPERM,
 * -ENOTSUP (kernel before 5.18).
 */
int live_open(const char *ifname, const struct live_shape *shape,
	      struct live **ret, struct mr_reason *ret_why);

/*
 * Send, with counters and values from their beginning. Returns when all frames
 * are sent, at the end, or after live_stop(). The thread is in the kernel
 * meanwhile, receives SIGALRM, and starts with 10 to 30 ms of set-up there.
 */
int live_run(struct live *live, const struct live_orders *orders,
	     struct mr_reason *ret_why);

/* From another thread or a signal handler: make live_run() return, now and each
 * time until live_ready(). */
void live_stop(struct live *live);
void live_ready(struct live *live);

/* What has been sent so far; also during live_run(). */
void live_read(const struct live *live, struct live_counts *ret);

/* How late paced frames were, by buckets of net/hist.h; after live_run(). */
const uint64_t *live_lateness(const struct live *live);

void live_close(struct live *live);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that the kernel makes and sends: no socket, no skb, no copy, and no
 * turn of ours for each. For veth and what else has ndo_xdp_xmit().
 */
#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

#include <stdint.h>

#include <millrace/millrace.h>

#include "live/live_shape.h"
#include "net/place.h"

/* live:IFACE as a place to send to. Without libbpf, clang and bpftool at build
 * time its open() says so. */
extern const struct place_ops live_place;

/*
 * Streams as the program in the kernel has them: the share of one sender of
 * n_senders. -ENOTSUP: they have something that live frames cannot, with a line
 * that says which, and what they can.
 */
int live_shape_of(const struct streams *streams, uint32_t sender,
		  uint32_t n_senders, uint64_t seed, struct live_shape *ret,
		  struct mr_reason *why);

struct live;

/*
 * Load the program for an interface of the calling thread's network namespace.
 * shape->ifindex and netns are set here; the rest is the caller's and may go
 * afterwards.
 * -ENODEV, -EPERM, -ENOTSUP (kernel before 5.18).
 */
int live_open(const char *ifname, const struct live_shape *shape,
	      struct live **ret, struct mr_reason *ret_why);

/*
 * Send as told, from new counts and first values on. Returns when all has been
 * sent, when it is over, or after live_stop(). The thread is in the kernel
 * meanwhile, takes SIGALRM, and begins with 10 to 30 ms of set-up there.
 */
int live_run(struct live *live, const struct live_orders *orders,
	     struct mr_reason *ret_why);

/*
 * From another thread or a signal handler: live_run() is to return, now and
 * each time until live_ready().
 */
void live_stop(struct live *live);
void live_ready(struct live *live);

/* What has been sent so far; also while live_run() runs. */
void live_read(const struct live *live, struct live_counts *ret);

/*
 * How late frames were that had a time to be due at, by buckets of net/hist.h;
 * after live_run().
 */
const uint64_t *live_lateness(const struct live *live);

void live_close(struct live *live);

#endif

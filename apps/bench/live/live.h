/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that a BPF program makes and the kernel sends, without sockets, skbs
 * and copies. For veth and other interfaces with ndo_xdp_xmit(). */
#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

#include <stdint.h>

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

/* Load the program for an interface; *skeleton (NULL: none) is the one before,
 * which stays if that fails. Returns 0, -ENODEV, -EPERM or -ENOTSUP. */
struct live_bpf;
int live_load(const char *spec, const struct live_shape *shape,
	      struct live_bpf **skeleton, struct mr_reason *why);

#endif

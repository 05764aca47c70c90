/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams, as the program in the kernel has them. */
#ifndef LIVE_SHAPE_OF_H
#define LIVE_SHAPE_OF_H

#include <millrace/millrace.h>

#include "live/live_shape.h"

struct streams;

/*
 * The share of one sender of n_senders. -ENOTSUP: they have something that live
 * frames cannot, with a line that says which, and what they can.
 */
int live_shape_of(const struct streams *streams, uint32_t sender,
		  uint32_t n_senders, uint64_t seed, struct live_shape *ret,
		  struct mr_reason *why);

#endif

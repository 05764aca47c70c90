/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two workers of a translator on one thread, and a flood of fragments: each
 * belongs to a different datagram, whose first fragment never arrives.
 */
#ifndef NAT_FLOOD_H
#define NAT_FLOOD_H

#include "datapath/steer.h"

struct flood;

/* Frames come from cache; all that is measured runs on one thread. */
struct flood *flood_open(struct mr_ctx *ctx, struct mr_pool *pool,
			 struct mr_port *const *ports,
			 const struct nat_config *config, struct nat_path *path,
			 struct mr_cache *cache);
void flood_close(struct flood *flood);

/*
 * Pass a burst from a side through both workers into the path. After one from
 * outside, add n_fragments, or as many frames that are freed on arrival.
 */
void flood_burst(struct flood *flood, enum nat_side from,
		 const struct mr_frame *frames, uint32_t n,
		 uint32_t n_fragments, bool is_freed, uint64_t now_ns);

#endif

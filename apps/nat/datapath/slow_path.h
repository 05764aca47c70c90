/* SPDX-License-Identifier: BSD-3-Clause */
/* Any frame off the fast path. */
#ifndef NAT_SLOW_PATH_H
#define NAT_SLOW_PATH_H

#include "state.h"

/* Takes ownership of the frame. */
void nat_one(struct nat_path *path, enum nat_side from,
	     const struct mr_frame *frames, uint32_t n);

#endif

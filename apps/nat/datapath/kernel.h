/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel gets, if it shares our addresses (local: kernel). */
#ifndef NAT_KERNEL_H
#define NAT_KERNEL_H

#include "state.h"

/* Whether it is for an own address outside, shared with the kernel, and a port
 * that no mapping can have. */
bool nat_is_for_kernel(const struct nat_path *path,
		       const struct nat_packet *packet);
/* Whether the kernel gets a packet that would be dropped as this. */
bool nat_kernel_takes(const struct nat_path *path,
		      const struct nat_packet *packet, enum nat_drop drop);
/* Drop it or, if the kernel shares our addresses, hand it over. */
void nat_leave_to_kernel(struct nat_path *path, struct nat_packet *packet,
			 enum nat_drop drop);

#endif

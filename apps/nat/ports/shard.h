/* SPDX-License-Identifier: BSD-3-Clause */
/* Which worker has which external ports, addresses and subscribers. */
#ifndef NAT_SHARD_H
#define NAT_SHARD_H

#include <stdint.h>

/*
 * Which external ports belong to this worker: those with (port >>
 * NAT_SLICE_BITS) % n_shards == shard.
 */
enum { NAT_SLICE_BITS = 6 };

/* The worker with the address-only mappings of an external address (host
 * order), which is all that their packets contain. */
static inline uint32_t nat_other_shard(uint32_t outside_addr, uint32_t n_shards)
{
	return outside_addr % n_shards;
}

/* The worker of an inside address. addr: network order. */
static inline uint32_t nat_steer_subscriber(uint32_t addr, uint32_t n_workers)
{
	/* Addresses of a network differ in their last bits, which come first in
	 * memory; the upper half of a product depends on all of them. */
	const uint32_t hash = (addr * 0x9e3779b1u) ^ (addr >> 15);

	return (uint32_t)(((uint64_t)(hash * 0x85ebca6bu) * n_workers) >> 32);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's ports without Millrace: the peers of the benchmarks, and what they
 * compare with. A failure ends the program. */
#ifndef BENCH_DPDK_PORT_H
#define BENCH_DPDK_PORT_H

#include <stdint.h>

#include <rte_mbuf.h>

/* Open a device with one queue in each direction and a mempool of its own;
 * return DPDK's id. */
uint16_t dpdk_port_open(const char *name, uint16_t n_descriptors,
			struct rte_mempool **ret_mempool);

/* Allocate n frames of n_bytes, each with an Ethernet header and a counter
 * written; the rest is as the last user left it. */
void dpdk_frames_make(struct rte_mempool *mempool, struct rte_mbuf **mbufs,
		      uint16_t n, uint16_t n_bytes);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <string.h>

#include <rte_ethdev.h>

#include "dpdk_port.h"

enum { N_MBUFS = 8191, CACHE = 256, HEADER_BYTES = 42 };

uint16_t dpdk_port_open(const char *name, uint16_t n_descriptors,
			struct rte_mempool **ret_mempool)
{
	const struct rte_eth_conf conf = { 0 };
	struct rte_mempool *mempool = rte_pktmbuf_pool_create(
		name, N_MBUFS, CACHE, 0, RTE_MBUF_DEFAULT_BUF_SIZE, 0);
	uint16_t id;

	if (mempool == NULL || rte_eth_dev_get_port_by_name(name, &id) < 0 ||
	    rte_eth_dev_configure(id, 1, 1, &conf) < 0 ||
	    rte_eth_rx_queue_setup(id, 0, n_descriptors, 0, NULL, mempool) <
		    0 ||
	    rte_eth_tx_queue_setup(id, 0, n_descriptors, 0, NULL) < 0 ||
	    rte_eth_dev_start(id) < 0)
		errx(1, "%s does not start", name);
	*ret_mempool = mempool;
	return id;
}

void dpdk_frames_make(struct rte_mempool *mempool, struct rte_mbuf **mbufs,
		      uint16_t n, uint16_t n_bytes)
{
	static uint8_t header[HEADER_BYTES] = { 2, 0, 0, 0, 0, 2, 2,   0,
						0, 0, 0, 1, 8, 0, 0x45 };

	if (rte_pktmbuf_alloc_bulk(mempool, mbufs, n) < 0)
		errx(1, "a peer keeps more frames than its rings hold");
	for (uint16_t i = 0; i < n; i++) {
		mbufs[i]->data_len = n_bytes;
		mbufs[i]->pkt_len = n_bytes;
		header[HEADER_BYTES - 1]++;
		memcpy(rte_pktmbuf_mtod(mbufs[i], void *), header,
		       sizeof(header));
	}
}

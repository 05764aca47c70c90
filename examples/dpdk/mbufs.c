/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mbufs: a program of DPDK hands its packets to a Millrace port, uncopied.
 *
 *     ./mbufs -d LIBDIR/millrace/dpdk/librte_mempool_millrace.so --no-pci \
 *         --mbuf-pool-ops-name=millrace --vdev=net_null0 -- xdp:eth1 1000
 *
 * DPDK's own mempool, on our handler, has its buffers in pages of a Millrace
 * pool. So an mbuf has an address in the region, and that is a frame. The port
 * gets a reference of its own; the mbuf may be used again when that is back.
 */
#include <err.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/experimental/page.h>
#include <millrace/millrace.h>

enum { N = 4096, PAGE = 4096, BURST = 32, ROOM = 1024 };

/* What the port is sending: its mbufs, and the frames that they are. */
static struct rte_mbuf *mbufs[ROOM];
static struct mr_frame frames[ROOM];
static uint8_t *base; /* of the region */
static unsigned long n_sent;

/* All pages of a pool lie beside each other: they are the mempool's buffers. */
static struct rte_mempool *make_mempool(struct mr_pool *pool, uint64_t *pages)
{
	struct rte_pktmbuf_extmem memory = { .buf_len = N * PAGE,
					     .elt_size = PAGE };
	uint64_t first = MR_ADDR_NONE;

	if (mr_page_alloc_bulk(pool, 0, pages, N) != N)
		errx(1, "the pool has fewer than %d pages", N);
	for (int i = 0; i < N; i++)
		first = RTE_MIN(first, pages[i]);
	base = mr_region_base(mr_pool_region(pool));
	memory.buf_ptr = base + first;
	memory.buf_iova = rte_mem_virt2iova(memory.buf_ptr);
	return rte_pktmbuf_pool_create_extbuf("mbufs", N, 0, 0, PAGE,
					      SOCKET_ID_ANY, &memory, 1);
}

static void start_device(struct rte_mempool *mempool)
{
	const struct rte_eth_conf conf = { 0 };

	if (mempool == NULL || rte_eth_dev_configure(0, 1, 1, &conf) < 0 ||
	    rte_eth_rx_queue_setup(0, 0, 512, 0, NULL, mempool) < 0 ||
	    rte_eth_tx_queue_setup(0, 0, 512, 0, NULL) < 0 ||
	    rte_eth_dev_start(0) < 0)
		errx(1, "DPDK's port 0 does not start");
}

/* Those in front that nobody else has any more can be used again. */
static uint32_t free_sent(struct mr_cache *cache, uint32_t n)
{
	uint32_t n_done = 0;

	while (n_done < n && mr_frame_push(cache, &frames[n_done], 0) == 0)
		rte_pktmbuf_free(mbufs[n_done++]);
	memmove(mbufs, mbufs + n_done, (n - n_done) * sizeof(mbufs[0]));
	memmove(frames, frames + n_done, (n - n_done) * sizeof(frames[0]));
	return n - n_done;
}

/* One burst from DPDK to the port, which takes all or what it has room for. */
static uint32_t pass(struct mr_txq *txq, struct mr_cache *cache, uint32_t n)
{
	const uint32_t n_rx = rte_eth_rx_burst(0, 0, mbufs + n, BURST);
	uint32_t n_tx;

	for (uint32_t i = n; i < n + n_rx; i++) {
		frames[i].addr = rte_pktmbuf_mtod(mbufs[i], uint8_t *) - base;
		frames[i].len = rte_pktmbuf_data_len(mbufs[i]);
	}
	if (mr_frame_ref(cache, frames + n, n_rx) < 0) /* one for the port */
		errx(1, "the device gave a buffer that is not the pool's");
	n_tx = mr_tx_burst(txq, cache, frames + n, n_rx);
	n_sent += n_tx;
	mr_frame_free_bulk(cache, frames + n + n_tx, n_rx - n_tx);
	return n_rx;
}

int main(int argc, char **argv)
{
	const int n_eal = rte_eal_init(argc, argv);
	struct mr_pool_config pool = { .size = sizeof(pool), .n_pages = N };
	struct mr_port_config config = { .size = sizeof(config) };
	static uint64_t pages[N];
	uint32_t n_held = 0;
	struct mr_cache *cache, *buffer_cache;
	struct mr_pool *buffers; /* of the mbufs; the port has its own */
	struct mr_reason why;
	struct mr_port *port;
	struct mr_ctx *ctx;

	if (n_eal < 0 || argc - n_eal != 3)
		errx(2, "usage: %s EAL-OPTIONS -- PORT ROUNDS", argv[0]);
	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_pool_create(ctx, &pool, &buffers, &why) < 0)
		errx(1, "%s", why.text);
	pool.region = mr_pool_region(buffers);
	if (mr_pool_create(ctx, &pool, &config.pool, &why) < 0 ||
	    mr_cache_create(buffers, &buffer_cache, &why) < 0 ||
	    mr_cache_create(config.pool, &cache, &why) < 0 ||
	    mr_port_open(ctx, argv[n_eal + 1], &config, &port, &why) < 0)
		errx(1, "%s", why.text);
	start_device(make_mempool(buffers, pages));
	struct mr_txq *txq = mr_port_txq(port, 0);
	for (long i = strtol(argv[n_eal + 2], NULL, 10); i > 0; i--) {
		if (n_held + BURST <= ROOM)
			n_held += pass(txq, cache, n_held);
		else
			mr_tx_burst(txq, cache, NULL, 0);
		n_held = free_sent(buffer_cache, n_held);
	}
	mr_port_close(port);
	printf("%lu frames sent\n", n_sent);
	return n_sent == 0;
}

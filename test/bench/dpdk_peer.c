/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpdk_peer: what ./mr bench vhost connects a forwarder to.
 *
 *     dpdk_peer EAL-OPTIONS --vdev A --vdev B -- A B RING BYTES
 *
 * One core sends frames on the device A, as many as its ring takes, and counts
 * those that arrive on B. (testpmd sends on one port and counts on another only
 * with two cores.) Prints a line of JSON every 50 ms until it is ended: the
 * time, frames sent and received so far, and rounds of the loop, and those in
 * which A took nothing because its ring was full: the forwarder is slower then.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include "dpdk_port.h"

enum { BURST = 32, PERIODS_PER_S = 20 };

struct peer {
	uint16_t tx_id, rx_id, n_bytes;
	struct rte_mempool *mempool;
	struct rte_mbuf *waiting[BURST]; /* not yet taken: the last n_waiting */
	uint16_t n_waiting;
	uint64_t n_sent, n_received, n_rounds, n_full;
};

static void send_burst(struct peer *peer)
{
	uint16_t n;

	if (peer->n_waiting == 0) {
		dpdk_frames_make(peer->mempool, peer->waiting, BURST,
				 peer->n_bytes);
		peer->n_waiting = BURST;
	}
	n = rte_eth_tx_burst(peer->tx_id, 0,
			     peer->waiting + BURST - peer->n_waiting,
			     peer->n_waiting);
	peer->n_waiting = (uint16_t)(peer->n_waiting - n);
	peer->n_sent += n;
	peer->n_full += n == 0;
}

static void receive_burst(struct peer *peer)
{
	struct rte_mbuf *mbufs[BURST];
	const uint16_t n = rte_eth_rx_burst(peer->rx_id, 0, mbufs, BURST);

	rte_pktmbuf_free_bulk(mbufs, n);
	peer->n_received += n;
}

static void print(const struct peer *peer)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	printf("{\"t\":%.6f,\"sent\":%" PRIu64 ",\"received\":%" PRIu64
	       ",\"rounds\":%" PRIu64 ",\"full\":%" PRIu64 "}\n",
	       (double)now.tv_sec + (double)now.tv_nsec * 1e-9, peer->n_sent,
	       peer->n_received, peer->n_rounds, peer->n_full);
	fflush(stdout);
}

_Noreturn static void run(struct peer *peer)
{
	const uint64_t period = rte_get_tsc_hz() / PERIODS_PER_S;
	uint64_t next = rte_rdtsc();

	for (;;) {
		send_burst(peer);
		receive_burst(peer);
		peer->n_rounds++;
		if (rte_rdtsc() - next < UINT64_MAX / 2) {
			print(peer);
			next += period;
		}
	}
}

int main(int argc, char **argv)
{
	const int n_eal = rte_eal_init(argc, argv);
	struct peer peer = { 0 };
	struct rte_mempool *unused;
	uint16_t ring;

	if (n_eal < 0 || argc - n_eal != 5)
		errx(2, "usage: %s EAL-OPTIONS -- A B RING BYTES", argv[0]);
	argv += n_eal;
	ring = (uint16_t)strtoul(argv[3], NULL, 10);
	peer.n_bytes = (uint16_t)strtoul(argv[4], NULL, 10);
	peer.tx_id = dpdk_port_open(argv[1], ring, &peer.mempool);
	peer.rx_id = dpdk_port_open(argv[2], ring, &unused);
	run(&peer);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "measured.h"

__attribute__((noinline)) uint32_t
measured_rx(struct mr_rxq *rxq, struct mr_cache *cache, struct mr_frame *frames,
	    struct mr_meta *metas, uint32_t n)
{
	return mr_rx_burst_meta(rxq, cache, frames, metas, n);
}

__attribute__((noinline)) uint32_t measured_tx(struct mr_txq *txq,
					       struct mr_cache *cache,
					       const struct mr_frame *frames,
					       uint32_t n)
{
	return mr_tx_burst(txq, cache, frames, n);
}

static uint32_t receive_burst(const struct measured_port *port, uint32_t burst)
{
	struct mr_meta metas[MEASURED_BURST];
	struct mr_frame frames[MEASURED_BURST];
	uint32_t n;

	port_inject(burst);
	n = measured_rx(port->rxq, port->cache, frames,
			port->has_meta ? metas : NULL, burst);
	mr_frame_free_bulk(port->cache, frames, n);
	return n;
}

static uint32_t transmit_burst(const struct measured_port *port, uint32_t burst)
{
	struct mr_frame frames[MEASURED_BURST];
	uint32_t n;

	port_make(frames, burst);
	n = measured_tx(port->txq, port->cache, frames, burst);
	port_drain();
	return n;
}

int main(int argc, char **argv)
{
	const bool is_tx = argc == 5 && strcmp(argv[2], "tx") == 0;
	const unsigned long burst = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	const uint64_t n = argc == 5 ? strtoull(argv[4], NULL, 10) : 0;
	struct measured_port port;
	uint64_t n_done;

	if (burst < 1 || burst > MEASURED_BURST || n == 0 ||
	    (!is_tx && strcmp(argv[2], "rx") != 0))
		errx(2, "usage: %s DEVICE rx|tx BURST N_FRAMES", argv[0]);
	port_open(argv[1], &port);
	for (n_done = 0; n_done < n; n_done += burst)
		if ((is_tx ? transmit_burst :
			     receive_burst)(&port, (uint32_t)burst) != burst)
			errx(1, "a burst of %lu frames was not complete",
			     burst);
	printf("frames %" PRIu64 "\n", n_done);
	port_close();
	return 0;
}

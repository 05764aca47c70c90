/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts of a driver over a fake device, for callgrind:
 *
 *     PROGRAM DEVICE rx
 * tx BURST N_FRAMES
 *
 * Prints "frames N". What is counted is in measured_rx() and measured_tx(),
 * which are not inlined, so that nic_bench.py finds them by name.
 */
#ifndef BENCH_MEASURED_H
#define BENCH_MEASURED_H

#include <stdbool.h>

#include <millrace/millrace.h>

enum { MEASURED_BURST = 64, MEASURED_BYTES = 60 };

uint32_t measured_rx(struct mr_rxq *rxq, struct mr_cache *cache,
		     struct mr_frame *frames, struct mr_meta *metas,
		     uint32_t n);
uint32_t measured_tx(struct mr_txq *txq, struct mr_cache *cache,
		     const struct mr_frame *frames, uint32_t n);

/* The queues and the cache of a driver's port. */
struct measured_port {
	struct mr_rxq *rxq;
	struct mr_txq *txq;
	struct mr_cache *cache;
	bool has_meta; /* the application wants its metadata */
};
void port_open(const char *device, struct measured_port *ret);
void port_close(void);

/*
 * Let the device receive n frames; make n frames to send; let the device send
 * all that it has.
 */
void port_inject(uint32_t n);
void port_make(struct mr_frame *frames, uint32_t n);
void port_drain(void);

#endif

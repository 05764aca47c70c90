/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts of a driver over a fake device, for callgrind to count:
 *
 *     PROGRAM DEVICE rx|tx BURST N_FRAMES
 *
 * Prints "frames N". What is counted lies in measured_rx() and measured_tx(),
 * not inlined, each under its name, by which nic_bench.py tells them apart.
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

/* A port of a driver. Its queues and its cache in *ret. */
struct measured_port {
	struct mr_rxq *rxq;
	struct mr_txq *txq;
	struct mr_cache *cache;
	bool has_meta; /* its metadata is asked for */
};
void port_open(const char *device, struct measured_port *ret);
void port_close(void);

/* Let the device receive n frames; make n that can be sent; the device sends
 * all that it has. */
void port_inject(uint32_t n);
void port_make(struct mr_frame *frames, uint32_t n);
void port_drain(void);

#endif

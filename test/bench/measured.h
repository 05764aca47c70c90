/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bursts as callgrind counts them: not inlined, each under its name, by which
 * nic_bench.py tells them apart.
 */
#ifndef BENCH_MEASURED_H
#define BENCH_MEASURED_H

#include <millrace/millrace.h>

uint32_t measured_rx(struct mr_rxq *rxq, struct mr_cache *cache,
		     struct mr_frame *frames, uint32_t n);
uint32_t measured_tx(struct mr_txq *txq, struct mr_cache *cache,
		     const struct mr_frame *frames, uint32_t n);

#endif

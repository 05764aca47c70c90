/* SPDX-License-Identifier: BSD-3-Clause */
#include "measured.h"

uint32_t measured_rx(struct mr_rxq *rxq, struct mr_cache *cache,
		     struct mr_frame *frames, uint32_t n)
{
	return mr_rx_burst(rxq, cache, frames, n);
}

uint32_t measured_tx(struct mr_txq *txq, struct mr_cache *cache,
		     const struct mr_frame *frames, uint32_t n)
{
	return mr_tx_burst(txq, cache, frames, n);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariants of accounting of a queue, as <millrace/port.h> has them. */
#ifndef SUPPORT_INVARIANTS_H
#define SUPPORT_INVARIANTS_H

#include <stdbool.h>

#include <millrace/port.h>

/* Of the drops or the events of a queue. */
static inline uint64_t invariants_sum(const uint64_t counts[MR_STATS_SLOTS])
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		sum += counts[i];
	return sum;
}

static inline bool invariants_of_rx_hold(const struct mr_rx_stats *stats)
{
	return stats->received ==
	       stats->delivered + invariants_sum(stats->drops);
}

static inline bool invariants_of_tx_hold(const struct mr_tx_stats *stats)
{
	return stats->accepted ==
	       stats->completed + stats->pending + invariants_sum(stats->drops);
}

#endif

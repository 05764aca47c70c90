/* SPDX-License-Identifier: BSD-3-Clause */
/* The accounting invariants of a queue, as in <millrace/port.h>. */
#ifndef SUPPORT_INVARIANTS_H
#define SUPPORT_INVARIANTS_H

#include <stdbool.h>

#include <millrace/port.h>

/* The sum of a queue's drops or events. */
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
	       stats->delivered + stats->offloaded + stats->passed_to_kernel +
		       invariants_sum(stats->drops);
}

static inline bool invariants_of_tx_hold(const struct mr_tx_stats *stats)
{
	return stats->accepted ==
	       stats->completed + stats->pending + invariants_sum(stats->drops);
}

#endif

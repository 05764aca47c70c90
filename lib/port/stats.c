/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of queues: their names, copies of them for other threads, and how
 * frames that are lost are counted.
 */
#include <string.h>

#include <millrace/driver.h>

#include "base/base.h"
#include "port/events.h"
#include "port/offload.h"

static const char *const rx_drops[MR_STATS_SLOTS] = {
	[MR_RX_DROP_NO_BUFFER] = "no_buffer",
	[MR_RX_DROP_RING_FULL] = "ring_full",
	[MR_RX_DROP_TOO_LONG] = "too_long",
	[MR_RX_DROP_INVALID] = "invalid",
	[MR_RX_DROP_RULE] = "rule",
};

static const char *const rx_events[MR_STATS_SLOTS] = {
	[MR_RX_EVENT_POOL_EMPTY] = "pool_empty",
	[MR_RX_EVENT_FILL_RING_EMPTY] = "fill_ring_empty",
	[MR_RX_EVENT_WAKEUP] = "wakeup",
	[MR_RX_EVENT_STARVED_KICK] = "starved_kick",
	[MR_RX_EVENT_CSUM_PARTIAL] = "csum_partial",
	[MR_RX_EVENT_UNREGISTERED] = "unregistered",
	[MR_RX_EVENT_FOREIGN_COPIED] = "foreign_copied",
	[MR_RX_EVENT_OFFLOAD_NO_TARGET] = "offload_no_target",
	[MR_RX_EVENT_OFFLOAD_TOO_LONG] = "offload_too_long",
	[MR_RX_EVENT_OFFLOAD_CSUM_PARTIAL] = "offload_csum_partial",
	[MR_RX_EVENT_OFFLOAD_NO_HOP] = "offload_no_hop",
	[MR_RX_EVENT_OFFLOAD_SEGMENT] = "offload_segment",
};

static const char *const tx_drops[MR_STATS_SLOTS] = {
	[MR_TX_DROP_INVALID] = "invalid",
	[MR_TX_DROP_TOO_LONG] = "too_long",
	[MR_TX_DROP_DEVICE] = "device",
	[MR_TX_DROP_NO_BUFFER] = "no_buffer",
	[MR_TX_DROP_PORT_GONE] = "port_gone",
};

static const char *const tx_events[MR_STATS_SLOTS] = {
	[MR_TX_EVENT_WAKEUP] = "wakeup",
	[MR_TX_EVENT_RING_FULL] = "ring_full",
	[MR_TX_EVENT_FOREIGN_COPIED] = "foreign_copied",
	[MR_TX_EVENT_EDGE_COPIED] = "edge_copied",
	[MR_TX_EVENT_EDGE_SPLIT] = "edge_split",
	[MR_TX_EVENT_CSUM_DEVICE] = "csum_device",
	[MR_TX_EVENT_CSUM_SOFTWARE] = "csum_software",
	[MR_TX_EVENT_AGAIN] = "again",
	[MR_TX_EVENT_GSO_SOFTWARE] = "gso_software",
	[MR_TX_EVENT_VLAN_SOFTWARE] = "vlan_software",
	[MR_TX_EVENT_GSO_ADDED] = "gso_added",
	[MR_TX_EVENT_TIME_LOST] = "time_lost",
	[MR_TX_EVENT_UNKNOWN_COMPLETION] = "unknown_completion",
};

const char *mr_rx_drop_name(uint32_t i)
{
	return i < MR_STATS_SLOTS ? rx_drops[i] : NULL;
}

const char *mr_rx_event_name(uint32_t i)
{
	return i < MR_STATS_SLOTS ? rx_events[i] : NULL;
}

const char *mr_tx_drop_name(uint32_t i)
{
	return i < MR_STATS_SLOTS ? tx_drops[i] : NULL;
}

const char *mr_tx_event_name(uint32_t i)
{
	return i < MR_STATS_SLOTS ? tx_events[i] : NULL;
}

uint32_t mr_txq_lose(struct mr_txq *txq, struct mr_cache *cache,
		     const struct mr_frame *frames, uint32_t n,
		     enum mr_tx_drop drop)
{
	struct mr_tx_stats *stats = &txq->stats;
	uint32_t n_frames;

	n = mr_frame_n_whole(frames, n);
	n_frames = mr_frame_n_frames(frames, n);
	mr_counter_add(&stats->accepted, n_frames);
	mr_counter_add(&stats->bytes, mr_frame_n_bytes(frames, n));
	mr_counter_add(&stats->drops[drop], n_frames);
	mr_frame_free_bulk(cache, frames, n);
	return n;
}

/* All members behind the first 8 bytes are counters. */
static void copy_counters(void *to, const void *from, size_t n_bytes)
{
	const uint64_t *f = from;
	uint64_t *t = to;

	for (size_t i = 1; i < n_bytes / sizeof(*t); i++)
		t[i] = mr_counter_get(&f[i]);
}

int mr_rxq_stats(const struct mr_rxq *rxq, struct mr_rx_stats *stats)
{
	const struct mr_driver *driver = rxq->queue.port->driver;
	struct mr_rx_stats s = { 0 };

	copy_counters(&s, &rxq->stats, sizeof(s));
	if (driver->rxq_stats != NULL)
		driver->rxq_stats(rxq, &s);
	mri_kept_add_rx(rxq, &s);
	return mri_fill_sized(stats, &s, sizeof(s));
}

int mr_txq_stats(const struct mr_txq *txq, struct mr_tx_stats *stats)
{
	const struct mr_driver *driver = txq->queue.port->driver;
	const uint32_t n_held = mri_offload_n_held(txq);
	struct mr_tx_stats s = { 0 };

	copy_counters(&s, &txq->stats, sizeof(s));
	if (driver->txq_stats != NULL)
		driver->txq_stats(txq, &s);
	s.accepted += n_held;
	s.pending += n_held;
	mri_kept_add_tx(txq, &s);
	return mri_fill_sized(stats, &s, sizeof(s));
}

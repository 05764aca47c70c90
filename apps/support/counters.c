/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of counters, each in the order of JSON. */
#include <stddef.h>
#include <string.h>

#include "counters.h"
#include "snapshot.h"

#define ROW(type, member, name, metric, help, kind)                            \
	{                                                                      \
		name, metric, help, kind, offsetof(struct type, member),       \
			sizeof(((struct type *)0)->member)                     \
	}
#define TABLE(rows)                                                            \
	{                                                                      \
		rows, sizeof(rows) / sizeof(rows[0])                           \
	}

#define RX(member, metric, help)                                               \
	ROW(mr_rx_stats, member, #member, metric, help, COUNTER)
static const struct counter_row rx_rows[] = {
	RX(received, "rx_received_frames",
	   "Frames received: delivered, offloaded, passed to the kernel, or "
	   "dropped."),
	RX(delivered, "rx_frames", "Frames delivered to the program."),
	RX(offloaded, "rx_offloaded_frames",
	   "Frames that rules forwarded or dropped."),
	RX(passed_to_kernel, "rx_passed_to_kernel_frames",
	   "Frames that the filter left to the kernel."),
	RX(bytes, "rx_bytes", "Bytes of frames delivered to the program."),
};
const struct counter_table rx_counters = TABLE(rx_rows);

#define TX(member, metric, help, kind)                                         \
	ROW(mr_tx_stats, member, #member, metric, help, kind)
static const struct counter_row tx_rows[] = {
	TX(accepted, "tx_frames", "Frames accepted from the program.", COUNTER),
	TX(completed, "tx_completed_frames", "Frames that the device has sent.",
	   COUNTER),
	TX(pending, "tx_pending_frames",
	   "Frames that the device has yet to send.", GAUGE),
	TX(bytes, "tx_bytes", "Bytes of frames accepted from the program.",
	   COUNTER),
};
const struct counter_table tx_counters = TABLE(tx_rows);

static const struct counter_row port_rows[] = {
	ROW(port_snapshot, tx_offloaded, "tx_offloaded", NULL, NULL, COUNTER),
	ROW(port_snapshot, n_reopened, "reopened", "port_reopened",
	    "How often the port was opened again after its device had gone.",
	    COUNTER),
};
const struct counter_table port_counters = TABLE(port_rows);

#define WORKER(member, help)                                                   \
	ROW(worker_snapshot, member, #member, "worker_" #member, help, COUNTER)
#define WORKER_STAT(member, metric, help, kind)                                \
	ROW(worker_snapshot, stats.member, #member, "worker_" metric, help,    \
	    kind)
static const struct counter_row worker_rows[] = {
	WORKER_STAT(busy_ns, "busy_seconds", "Time in rounds with work.",
		    SECONDS),
	WORKER_STAT(idle_ns, "idle_seconds", "Time in rounds without work.",
		    SECONDS),
	WORKER_STAT(asleep_ns, "asleep_seconds", "Time asleep, a part of idle.",
		    SECONDS),
	WORKER_STAT(rounds, "rounds", "Rounds over all queues.", COUNTER),
	WORKER_STAT(empty_rounds, "empty_rounds", "Rounds without work.",
		    COUNTER),
	WORKER_STAT(sleeps, "sleeps", "Times that the worker went to sleep.",
		    COUNTER),
	WORKER(bursts, "Non-empty bursts received."),
	WORKER(entries, "Entries in those bursts."),
	WORKER_STAT(handed_off, "handed_off_frames",
		    "Frames handed to another worker.", COUNTER),
};
const struct counter_table worker_counters = TABLE(worker_rows);

#define POOL(member, help)                                                     \
	ROW(mr_pool_stats, member, #member, "pool_" #member, help, COUNTER)
#define POOL_GAUGE(member, metric, help)                                       \
	ROW(mr_pool_stats, member, #member, "pool_" metric, help, GAUGE)
static const struct counter_row pool_rows[] = {
	POOL_GAUGE(page_bytes, "page_bytes", "Size of a page."),
	POOL_GAUGE(n_pages, "pages", "Pages of the pool."),
	POOL_GAUGE(n_free, "free",
		   "Pages in caches, the depot and the page allocator."),
	POOL_GAUGE(n_in_flight, "in_flight", "Pages allocated and not freed."),
	POOL_GAUGE(n_cached, "cached", "Free pages in caches."),
	POOL_GAUGE(n_depot, "depot", "Free pages in the depot."),
	POOL(alloc_fast, "Pages from the magazines of a cache."),
	POOL(alloc_refill, "Magazines fetched from the depot."),
	POOL(alloc_slow, "Pages fetched from the page allocator."),
	POOL(alloc_empty, "Pages requested when none was left."),
	POOL(recycle_cached, "Pages freed into the magazines of a cache."),
	POOL(recycle_cache_full, "Full magazines moved to the depot."),
	POOL(recycle_ring, "Pages returned to the pools that own them."),
	POOL(recycle_ring_full, "Pages freed to the page allocator instead."),
	POOL(recycle_released_refcnt,
	     "References released of pages that others still use."),
	POOL(free_invalid, "Freed addresses that are in no pool."),
	POOL(depot_cas_failed, "Failed compare-and-swaps in the depot."),
};
const struct counter_table pool_counters = TABLE(pool_rows);

uint64_t counter_row_value(const struct counter_row *row, const void *object)
{
	const char *at = (const char *)object + row->offset;
	uint32_t half;
	uint64_t value;

	if (row->n_bytes == sizeof(half)) {
		memcpy(&half, at, sizeof(half));
		return half;
	}
	memcpy(&value, at, sizeof(value));
	return value;
}

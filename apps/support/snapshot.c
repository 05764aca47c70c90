/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of all counters, and the invariants they must obey. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "counter.h"
#include "snapshot.h"

/* Make room for all queues of the port, whose number may have grown. */
static bool make_room(struct port_snapshot *port)
{
	const uint32_t n = port->info.n_rxqs > port->info.n_txqs ?
				   port->info.n_rxqs :
				   port->info.n_txqs;
	struct queue_snapshot *queues;

	if (n <= port->n_queues && port->queues != NULL)
		return true;
	queues = realloc(port->queues, (n + 1) * sizeof(queues[0]));
	if (queues == NULL)
		return false;
	memset(queues + port->n_queues, 0,
	       (n + 1 - port->n_queues) * sizeof(queues[0]));
	port->queues = queues;
	port->n_queues = n;
	return true;
}

struct snapshot *snapshot_create(const struct dataplane *plane,
				 const struct app_counters *app)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (snapshot == NULL)
		return NULL;
	snapshot->app = app;
	snapshot->n_ports = plane->n_ports;
	snapshot->n_workers = plane->n_workers;
	for (uint32_t p = 0; p < plane->n_ports; p++) {
		struct port_snapshot *port = &snapshot->ports[p];

		port->info.size = sizeof(port->info);
		mr_port_info(plane->ports[p], &port->info);
		if (!make_room(port)) {
			snapshot_destroy(snapshot);
			return NULL;
		}
	}
	return snapshot;
}

static void free_port(struct port_snapshot *port)
{
	free(port->queues);
	free(port->device_stats);
}

void snapshot_destroy(struct snapshot *snapshot)
{
	if (snapshot == NULL)
		return;
	for (uint32_t p = 0; p < snapshot->n_ports; p++)
		free_port(&snapshot->ports[p]);
	free(snapshot);
}

static void take_port(struct port_snapshot *snapshot, struct mr_port *port)
{
	snapshot->info.size = sizeof(snapshot->info);
	mr_port_info(port, &snapshot->info);
	(void)make_room(snapshot); /* if it fails, new queues are not shown */
	snapshot->has_link = mr_port_link(port, &snapshot->link) == 0;
	snapshot->n_device_drops = mr_port_device_drops(
		port, snapshot->device_drops, MAX_DEVICE_DROPS);
	if (snapshot->n_device_drops > MAX_DEVICE_DROPS)
		snapshot->n_device_drops = MAX_DEVICE_DROPS;
	for (uint32_t i = 0; i < snapshot->n_queues; i++) {
		struct queue_snapshot *queue = &snapshot->queues[i];
		struct mr_rxq *rxq = mr_port_rxq(port, i);
		struct mr_txq *txq = mr_port_txq(port, i);

		queue->rx.size = sizeof(queue->rx);
		queue->tx.size = sizeof(queue->tx);
		queue->has_rx =
			rxq != NULL && mr_rxq_stats(rxq, &queue->rx) == 0;
		queue->has_tx =
			txq != NULL && mr_txq_stats(txq, &queue->tx) == 0;
	}
}

void snapshot_copy_counters(uint64_t *to, const uint64_t *from, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		to[i] = counter_get(&from[i]);
}

void snapshot_take(struct snapshot *snapshot, const struct dataplane *plane,
		   double t_s, void *app)
{
	snapshot->t_s = t_s;
	for (uint32_t p = 0; p < snapshot->n_ports; p++) {
		take_port(&snapshot->ports[p], plane->ports[p]);
		snapshot->ports[p].n_reopened = plane->n_reopened[p];
	}
	for (uint32_t w = 0; w < snapshot->n_workers; w++) {
		struct worker_snapshot *worker = &snapshot->workers[w];
		const struct mr_worker *from =
			mr_workers_get(plane->workers, w);

		worker->core = from->core;
		worker->numa_node = from->numa_node;
		worker->stats.size = sizeof(worker->stats);
		mr_worker_stats(from, &worker->stats);
	}
	snapshot->app->take(snapshot, app);
	snapshot_take_pool(snapshot, plane);
}

static void take_device_stats(struct port_snapshot *snapshot,
			      const struct mr_port *port)
{
	const uint32_t n = mr_port_device_stats(port, NULL, 0);
	struct mr_named_count *counts = calloc(n + 1, sizeof(counts[0]));
	uint32_t n_got = 0;

	free(snapshot->device_stats);
	snapshot->device_stats =
		calloc(n + 1, sizeof(snapshot->device_stats[0]));
	if (counts != NULL && snapshot->device_stats != NULL)
		n_got = mr_port_device_stats(port, counts, n);
	/* It may have fewer by now, if it is gone. */
	snapshot->n_device_stats = n_got < n ? n_got : n;
	for (uint32_t i = 0; i < snapshot->n_device_stats; i++) {
		struct device_stat *stat = &snapshot->device_stats[i];

		snprintf(stat->name, sizeof(stat->name), "%s", counts[i].name);
		stat->value = counts[i].value;
	}
	free(counts);
}

void snapshot_take_device_stats(struct snapshot *snapshot,
				const struct dataplane *plane)
{
	for (uint32_t p = 0; p < snapshot->n_ports; p++)
		take_device_stats(&snapshot->ports[p], plane->ports[p]);
}

void snapshot_take_pool(struct snapshot *snapshot,
			const struct dataplane *plane)
{
	snapshot->pool.size = sizeof(snapshot->pool);
	mr_pool_stats(plane->pool, &snapshot->pool);
	snapshot->is_conserved =
		snapshot->pool.n_in_flight == 0 &&
		snapshot->pool.n_free == snapshot->pool.n_pages &&
		snapshot->pool.free_invalid == 0;
}

struct page_sources snapshot_page_sources(const struct mr_pool_stats *now,
					  const struct mr_pool_stats *before)
{
	static const struct mr_pool_stats start;
	const struct mr_pool_stats *b = before != NULL ? before : &start;
	const uint64_t n = now->alloc_fast - b->alloc_fast;
	struct page_sources from = {
		.depot = now->magazine_pages *
			 (now->alloc_refill - b->alloc_refill),
		.allocator = now->alloc_slow - b->alloc_slow,
	};

	/* Some may have been fetched but not handed out: count at most n. */
	from.allocator = from.allocator < n ? from.allocator : n;
	if (from.depot > n - from.allocator)
		from.depot = n - from.allocator;
	from.cache = n - from.allocator - from.depot;
	return from;
}

static uint64_t sum_slots(const uint64_t *slots)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
		n += slots[i];
	return n;
}

struct totals snapshot_port_totals(const struct port_snapshot *port)
{
	struct totals t = { 0 };

	for (uint32_t i = 0; i < port->n_queues; i++) {
		const struct queue_snapshot *queue = &port->queues[i];

		t.rx_frames += queue->rx.delivered;
		t.rx_bytes += queue->rx.bytes;
		t.rx_offloaded += queue->rx.offloaded;
		t.rx_drops += sum_slots(queue->rx.drops);
		t.tx_frames += queue->tx.accepted;
		t.tx_bytes += queue->tx.bytes;
		t.n_added += queue->tx.events[MR_TX_EVENT_GSO_ADDED];
		t.tx_drops += sum_slots(queue->tx.drops);
	}
	t.tx_offloaded = port->tx_offloaded;
	t.offloaded_bytes = port->offloaded_bytes;
	for (uint32_t i = 0; i < port->n_device_drops; i++)
		t.device_drops += port->device_drops[i].value;
	return t;
}

struct totals snapshot_totals(const struct snapshot *snapshot)
{
	struct totals t = { 0 };

	for (uint32_t p = 0; p < snapshot->n_ports; p++) {
		const struct totals port =
			snapshot_port_totals(&snapshot->ports[p]);

		t.rx_frames += port.rx_frames;
		t.rx_bytes += port.rx_bytes;
		t.rx_drops += port.rx_drops;
		t.tx_frames += port.tx_frames;
		t.tx_bytes += port.tx_bytes;
		t.n_added += port.n_added;
		t.tx_drops += port.tx_drops;
		t.rx_offloaded += port.rx_offloaded;
		t.tx_offloaded += port.tx_offloaded;
		t.offloaded_bytes += port.offloaded_bytes;
		t.device_drops += port.device_drops;
	}
	return t;
}

bool snapshot_has_rules(const struct snapshot *snapshot)
{
	for (uint32_t p = 0; p < snapshot->n_ports; p++)
		if (snapshot->ports[p].has_rules)
			return true;
	return false;
}

uint64_t snapshot_worker_drops(const struct snapshot *snapshot)
{
	uint64_t n = 0;

	for (uint32_t w = 0; w < snapshot->n_workers; w++)
		for (uint32_t i = 0; i < snapshot->app->n_drops; i++)
			n += snapshot->workers[w].drops[i];
	return n;
}

static void check_equal(struct snapshot *snapshot, uint64_t left,
			uint64_t right, const char *what, const char *where,
			uint32_t queue)
{
	if (left == right || !snapshot->invariants_hold)
		return;
	snapshot->invariants_hold = false;
	snprintf(snapshot->broken_invariant, sizeof(snapshot->broken_invariant),
		 "%s/%u: %s: %" PRIu64 " is not %" PRIu64, where, queue, what,
		 left, right);
}

/* What came in, or was made, was sent, dropped or kept. */
static void check_program(struct snapshot *snapshot)
{
	const struct app_counters *app = snapshot->app;
	const struct totals t = snapshot_totals(snapshot);
	uint64_t left = t.rx_frames + t.n_added;
	uint64_t right = t.tx_frames + snapshot_worker_drops(snapshot);
	char made[64] = "", kept[64] = "", what[160];

	for (uint32_t i = 0; i < app->n_worker_rows; i++) {
		const struct worker_row *row = &app->worker_rows[i];
		const bool is_made = row->invariant == INVARIANT_MADE;
		char *name = is_made ? made : kept;
		const size_t n = strlen(name);

		if (row->invariant == INVARIANT_NONE)
			continue;
		snprintf(name + n, sizeof(made) - n, " + %s", row->name);
		for (uint32_t w = 0; w < snapshot->n_workers; w++)
			*(is_made ? &left : &right) +=
				snapshot->workers[w].counts[i];
	}
	snprintf(what, sizeof(what),
		 "delivered + gso_added%s = accepted + drops%s", made, kept);
	check_equal(snapshot, left, right, what, "workers", 0);
}

void snapshot_check_invariants(struct snapshot *snapshot)
{
	snapshot->invariants_hold = true;
	snapshot->broken_invariant[0] = '\0';
	for (uint32_t p = 0; p < snapshot->n_ports; p++) {
		const struct port_snapshot *port = &snapshot->ports[p];

		for (uint32_t i = 0; i < port->n_queues; i++) {
			const struct mr_rx_stats *rx = &port->queues[i].rx;
			const struct mr_tx_stats *tx = &port->queues[i].tx;

			check_equal(snapshot, rx->received,
				    rx->delivered + rx->offloaded +
					    rx->passed_to_kernel +
					    sum_slots(rx->drops),
				    "received = delivered + offloaded + "
				    "passed_to_kernel + rx drops",
				    port->info.name, i);
			check_equal(snapshot, tx->accepted,
				    tx->completed + tx->pending +
					    sum_slots(tx->drops),
				    "accepted = completed + pending + tx drops",
				    port->info.name, i);
		}
	}
	check_program(snapshot);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies of all counters, and the laws they must obey. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "snapshot.h"

struct snapshot *snapshot_create(const struct session *session)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));

	if (snapshot == NULL)
		return NULL;
	snapshot->n_ports = session->plane.n_ports;
	snapshot->n_workers = session->plane.n_workers;
	for (uint32_t p = 0; p < session->plane.n_ports; p++) {
		struct port_snapshot *port = &snapshot->ports[p];

		port->info.size = sizeof(port->info);
		mr_port_info(session->plane.ports[p], &port->info);
		port->n_queues = port->info.n_rxqs > port->info.n_txqs ?
					 port->info.n_rxqs :
					 port->info.n_txqs;
		port->queues =
			calloc(port->n_queues + 1, sizeof(port->queues[0]));
		if (port->queues == NULL) {
			snapshot_destroy(snapshot);
			return NULL;
		}
	}
	return snapshot;
}

void snapshot_destroy(struct snapshot *snapshot)
{
	if (snapshot == NULL)
		return;
	for (uint32_t p = 0; p < snapshot->n_ports; p++)
		free(snapshot->ports[p].queues);
	free(snapshot);
}

static void take_port(struct port_snapshot *snapshot, struct mr_port *port)
{
	snapshot->info.size = sizeof(snapshot->info);
	mr_port_info(port, &snapshot->info);
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

static void copy_counters(void *to, const void *from, size_t n_bytes)
{
	const uint64_t *f = from;
	uint64_t *t = to;

	for (size_t i = 0; i < n_bytes / sizeof(*t); i++)
		t[i] = __atomic_load_n(&f[i], __ATOMIC_RELAXED);
}

void snapshot_take(struct snapshot *snapshot, const struct session *session,
		   double t_s)
{
	snapshot->t_s = t_s;
	for (uint32_t p = 0; p < snapshot->n_ports; p++)
		take_port(&snapshot->ports[p], session->plane.ports[p]);
	for (uint32_t w = 0; w < snapshot->n_workers; w++) {
		struct worker_snapshot *worker = &snapshot->workers[w];
		const struct mr_worker *from =
			mr_workers_get(session->plane.workers, w);

		worker->core = from->core;
		worker->numa_node = from->numa_node;
		worker->stats.size = sizeof(worker->stats);
		mr_worker_stats(from, &worker->stats);
		copy_counters(&worker->forward, &session->forwarders[w].stats,
			      sizeof(worker->forward));
	}
	snapshot->has_fdb = session->fdb != NULL;
	if (session->fdb != NULL)
		fdb_stats(session->fdb, &snapshot->fdb);
	snapshot_take_pool(snapshot, session);
}

void snapshot_take_pool(struct snapshot *snapshot,
			const struct session *session)
{
	snapshot->pool.size = sizeof(snapshot->pool);
	mr_pool_stats(session->plane.pool, &snapshot->pool);
	snapshot->is_conserved =
		snapshot->pool.n_in_flight == 0 &&
		snapshot->pool.n_free == snapshot->pool.n_pages &&
		snapshot->pool.free_invalid == 0;
}

static uint64_t sum(const uint64_t *slots)
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
		t.rx_drops += sum(queue->rx.drops);
		t.tx_frames += queue->tx.accepted;
		t.tx_bytes += queue->tx.bytes;
		t.tx_drops += sum(queue->tx.drops);
	}
	for (uint32_t i = 0; i < port->n_device_drops; i++)
		t.device_drops += port->device_drops[i].n_frames;
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
		t.tx_drops += port.tx_drops;
		t.device_drops += port.device_drops;
	}
	return t;
}

uint64_t snapshot_worker_drops(const struct snapshot *snapshot)
{
	uint64_t n = 0;

	for (uint32_t w = 0; w < snapshot->n_workers; w++)
		for (uint32_t i = 0; i < N_FORWARD_DROPS; i++)
			n += snapshot->workers[w].forward.drops[i];
	return n;
}

static void check_equal(struct snapshot *snapshot, uint64_t left,
			uint64_t right, const char *what, const char *where,
			uint32_t queue)
{
	if (left == right || !snapshot->laws_hold)
		return;
	snapshot->laws_hold = false;
	snprintf(snapshot->broken_law, sizeof(snapshot->broken_law),
		 "%s/%u: %s: %" PRIu64 " is not %" PRIu64, where, queue, what,
		 left, right);
}

void snapshot_check_laws(struct snapshot *snapshot)
{
	const struct totals t = snapshot_totals(snapshot);
	uint64_t n_cloned = 0;

	snapshot->laws_hold = true;
	snapshot->broken_law[0] = '\0';
	for (uint32_t p = 0; p < snapshot->n_ports; p++) {
		const struct port_snapshot *port = &snapshot->ports[p];

		for (uint32_t i = 0; i < port->n_queues; i++) {
			const struct mr_rx_stats *rx = &port->queues[i].rx;
			const struct mr_tx_stats *tx = &port->queues[i].tx;

			check_equal(snapshot, rx->received,
				    rx->delivered + sum(rx->drops),
				    "received = delivered + rx drops",
				    port->info.name, i);
			check_equal(snapshot, tx->accepted,
				    tx->completed + tx->pending +
					    sum(tx->drops),
				    "accepted = completed + pending + tx drops",
				    port->info.name, i);
		}
	}
	for (uint32_t w = 0; w < snapshot->n_workers; w++)
		n_cloned += snapshot->workers[w].forward.cloned;
	check_equal(snapshot, t.rx_frames + n_cloned,
		    t.tx_frames + snapshot_worker_drops(snapshot),
		    "delivered + cloned = accepted + drops", "workers", 0);
}

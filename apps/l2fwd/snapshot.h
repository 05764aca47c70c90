/* SPDX-License-Identifier: BSD-3-Clause */
/* One moment's copy of every counter: what all displays are made from. */
#ifndef SNAPSHOT_H
#define SNAPSHOT_H

#include <millrace/millrace.h>

#include "session.h"

enum { MAX_DEVICE_DROPS = 32 };

struct queue_snapshot {
	struct mr_rx_stats rx;
	struct mr_tx_stats tx;
	bool has_rx, has_tx;
};

struct port_snapshot {
	struct mr_port_info info;
	struct mr_link link;
	bool has_link;
	uint32_t n_device_drops;
	struct mr_named_count device_drops[MAX_DEVICE_DROPS];
	uint32_t n_queues; /* the larger of n_rxqs and n_txqs */
	struct queue_snapshot *queues;
};

struct worker_snapshot {
	uint32_t core;
	int32_t numa_node;
	struct mr_worker_stats stats;
	struct forward_stats forward;
};

struct snapshot {
	double t_s; /* since forwarding began */
	uint32_t n_ports, n_workers;
	struct port_snapshot ports[MAX_PORTS];
	struct worker_snapshot workers[MR_WORKERS_MAX];
	struct mr_pool_stats pool;
	bool has_fdb;
	struct fdb_stats fdb;
	/* Of the last one only. */
	bool is_final;
	bool laws_hold;
	bool is_conserved;
	char broken_law[160]; /* "" if they hold */
};

/* NULL: no memory. */
struct snapshot *snapshot_create(const struct session *session);
void snapshot_destroy(struct snapshot *snapshot);
void snapshot_take(struct snapshot *snapshot, const struct session *session,
		   double t_s);
/* The pool's part alone, when the ports are closed. */
void snapshot_take_pool(struct snapshot *snapshot,
			const struct session *session);

/*
 * Per queue: received = delivered + rx drops, accepted = completed + pending +
 * tx drops. Of the program: delivered + cloned = accepted + workers' drops.
 * Sets laws_hold and broken_law; the workers must be at rest.
 */
void snapshot_check_laws(struct snapshot *snapshot);

/* Sums, for totals and rates. */
struct totals {
	uint64_t rx_frames, rx_bytes, rx_drops;
	uint64_t tx_frames, tx_bytes, tx_drops;
	uint64_t device_drops;
};
struct totals snapshot_port_totals(const struct port_snapshot *port);
struct totals snapshot_totals(const struct snapshot *snapshot);
uint64_t snapshot_worker_drops(const struct snapshot *snapshot);

#endif

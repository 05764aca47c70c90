/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A copy of every counter at one moment, from which all reports are made.
 * Those of ports, queues, workers and pool are defined here; an application
 * adds its own.
 */
#ifndef SUPPORT_SNAPSHOT_H
#define SUPPORT_SNAPSHOT_H

#include <millrace/millrace.h>

#include "dataplane.h"

enum {
	MAX_DEVICE_DROPS = 32,
	MAX_DROPS = 48,         /* the application's reasons */
	MAX_WORKER_COUNTS = 16, /* other counters per worker */
	MAX_GROUPS = 8,
	MAX_COUNTS = 16, /* in a group */
};

/* What a worker counter means for frames that no port has counted. */
enum frame_invariant {
	INVARIANT_NONE,
	INVARIANT_MADE, /* frames created by the application */
	INVARIANT_KEPT, /* frames consumed for good, other than drops */
};

/* A counter of every worker. */
struct worker_row {
	const char *name; /* in JSON */
	enum frame_invariant invariant;
};

/* A counter or gauge of the whole program. */
struct count_row {
	const char *name;  /* in JSON */
	const char *label; /* for people, after the number */
};

/* A line of counters for people, an object in JSON. */
struct count_group {
	const char *name;  /* in JSON */
	const char *label; /* for people, before the line */
	const struct count_row *rows;
	uint32_t n_rows; /* at most MAX_COUNTS */
};

struct snapshot;

/* The counters of an application. Constant; names match [a-z][a-z0-9_]*. */
struct app_counters {
	const char *program;
	const char *const *drop_names; /* by reason */
	uint32_t n_drops;              /* at most MAX_DROPS */
	const struct worker_row *worker_rows;
	uint32_t n_worker_rows; /* at most MAX_WORKER_COUNTS */
	const struct count_group *groups;
	uint32_t n_groups; /* at most MAX_GROUPS */
	/* Text that goes with the counters; text NULL: none. */
	struct {
		const char *name;  /* in JSON */
		const char *label; /* for people */
		const char *text;
	} note;
	/* Names of rows that can fall, up to a NULL; NULL: none. */
	const char *const *gauges;
	/*
	 * Fill bursts, entries, counts and drops of each worker, and counts of
	 * each group. The workers may be running: read what they write with
	 * snapshot_copy_counters().
	 */
	void (*take)(struct snapshot *snapshot, void *app);
};

struct queue_snapshot {
	struct mr_rx_stats rx;
	struct mr_tx_stats tx;
	bool has_rx, has_tx;
};

/* A counter of the device; its name outlives the port. */
struct device_stat {
	char name[40];
	uint64_t value;
};

struct port_snapshot {
	struct mr_port_info info;
	struct mr_link link;
	bool has_link;
	uint32_t n_device_drops;
	struct mr_named_count device_drops[MAX_DEVICE_DROPS];
	uint32_t n_device_stats; /* only in the last snapshot */
	struct device_stat *device_stats;
	/* offload_fill() */
	bool has_rules;
	uint64_t tx_offloaded; /* frames that rules sent by it */
	uint64_t offloaded_bytes;
	uint64_t n_reopened; /* since its device went */
	uint32_t n_queues; /* the larger of n_rxqs and n_txqs */
	struct queue_snapshot *queues;
};

struct worker_snapshot {
	uint32_t core;
	int32_t numa_node;
	struct mr_worker_stats stats;
	uint64_t bursts;  /* nonempty rx bursts */
	uint64_t entries; /* in those bursts */
	uint64_t counts[MAX_WORKER_COUNTS];
	uint64_t drops[MAX_DROPS]; /* frames */
};

struct snapshot {
	const struct app_counters *app;
	double t_s; /* since forwarding began */
	uint32_t n_ports, n_workers;
	struct port_snapshot ports[MAX_PORTS];
	struct worker_snapshot workers[MR_WORKERS_MAX];
	struct mr_pool_stats pool;
	uint64_t groups[MAX_GROUPS][MAX_COUNTS];
	uint64_t n_skipped; /* previous reports that were skipped */
	/* Only in the last one. */
	bool is_final;
	bool invariants_hold;
	bool is_conserved;
	char broken_invariant[384]; /* "" if all hold */
	/* Set by take(): the application's result of the whole run, owned by
	 * it; NULL: none. */
	const struct json_t *about;
};

/* NULL: no memory. */
struct snapshot *snapshot_create(const struct dataplane *plane,
				 const struct app_counters *app);
void snapshot_destroy(struct snapshot *snapshot);
/* app is the argument of take(). */
void snapshot_take(struct snapshot *snapshot, const struct dataplane *plane,
		   double t_s, void *app);
/* The devices' own counters, before closing the ports: some have hundreds. */
void snapshot_take_device_stats(struct snapshot *snapshot,
				const struct dataplane *plane);
/* Only the pool's part, when the ports are closed. */
void snapshot_take_pool(struct snapshot *snapshot,
			const struct dataplane *plane);

/* Copy counters that another thread writes. */
void snapshot_copy_counters(uint64_t *to, const uint64_t *from, uint32_t n);

/*
 * Per queue: the invariants of <millrace/port.h>. Program: delivered +
 * gso_added + made = accepted + workers' drops + kept. Sets invariants_hold and
 * broken_invariant; the workers must be at rest.
 */
void snapshot_check_invariants(struct snapshot *snapshot);

/*
 * Where the pages that were allocated since "before" (NULL: the start) came
 * from. A cache hands out all pages. It held those that it did not have to
 * fetch from the depot or the allocator. docs/operations.md
 */
struct page_sources {
	uint64_t cache, depot, allocator;
};
struct page_sources snapshot_page_sources(const struct mr_pool_stats *now,
					  const struct mr_pool_stats *before);

/* Frames in user space; those forwarded by rules are counted separately. */
struct totals {
	uint64_t rx_frames, rx_bytes, rx_drops;
	uint64_t tx_frames, tx_bytes, tx_drops;
	uint64_t rx_offloaded, tx_offloaded, offloaded_bytes;
	uint64_t n_added; /* of tx_frames: more segments than came */
	uint64_t device_drops;
};
struct totals snapshot_port_totals(const struct port_snapshot *port);
struct totals snapshot_totals(const struct snapshot *snapshot);
bool snapshot_has_rules(const struct snapshot *snapshot);
uint64_t snapshot_worker_drops(const struct snapshot *snapshot);

#endif

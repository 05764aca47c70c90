/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log: JSON lines about blocks and mappings, written by a thread that may
 * wait.
 *
 *     worker --> bounded ring --> the log's thread --> file
 *
 * A worker never waits for it: what does not fit is counted, and the log
 * records how many lines are missing. docs/nat-log.schema.json describes the
 * lines.
 */
#ifndef NAT_LOG_H
#define NAT_LOG_H

#include <millrace/millrace.h>

#include "mapping/map.h"

struct nat_log;

/* The part of one worker. */
struct nat_log_ring;

/* path "": no file; events count as lost. 0, or -errno with an error. */
int nat_log_create(struct mr_ctx *ctx, const char *path, uint32_t n_workers,
		   struct nat_log **ret_log, struct mr_reason *ret_why);
/* Write the last lines, and free it; NULL is fine. */
void nat_log_destroy(struct nat_log *log);

struct nat_log_ring *nat_log_ring(struct nat_log *log, uint32_t worker_idx);

/* nat_log_fn of a worker; opaque is its ring. */
void nat_log_put(void *opaque, const struct nat_log_event *event);

/* Have the thread write the workers' events, unless it is still writing. */
void nat_log_write(struct nat_log *log);
/* The same after the file was moved: start a new one. */
void nat_log_reopen(struct nat_log *log);
/* What the thread does. now_s is the workers' tick, since the clock of the
 * lines may have been set. False: the file takes no more; once per opening. */
bool nat_log_flush(struct nat_log *log, uint32_t now_s,
		   struct mr_reason *ret_why);

struct nat_log_stats {
	uint64_t n_written; /* lines written to the file */
	uint64_t n_lost;    /* lost by the ring or the file */
};
struct nat_log_stats nat_log_stats(const struct nat_log *log);

/* For another process, with the workers stopped: wait until the thread has
 * written their events, but not for long. Returns the counters as they will be
 * then. */
struct nat_log_stats nat_log_settle(struct nat_log *log);
/* Count on from there. Before the workers start. */
void nat_log_inherit(struct nat_log *log, const struct nat_log_stats *stats);

#endif

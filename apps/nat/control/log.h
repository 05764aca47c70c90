/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log: JSON lines about blocks and mappings, written by a thread that may
 * wait.
 *
 *     worker --> bounded ring --> the log's thread --> file
 *
 * A worker never waits for it: what does not fit is counted, and the log says
 * how many lines are missing. docs/nat-log.schema.json says what is in a line.
 */
#ifndef NAT_LOG_H
#define NAT_LOG_H

#include <millrace/millrace.h>

#include "mapping/map.h"

struct nat_log;

/* The part of one worker. */
struct nat_log_ring;

/*
 * path "": events are counted as lost, but there is no file. now_s is the tick
 * of the workers at this moment. 0, -ENOMEM, or the errno of opening it.
 */
int nat_log_create(struct mr_ctx *ctx, const char *path, uint32_t n_workers,
		   uint32_t now_s, struct nat_log **ret_log,
		   struct mr_reason *ret_why);
/* Writes what is left. */
void nat_log_destroy(struct nat_log *log);

struct nat_log_ring *nat_log_ring(struct nat_log *log, uint32_t worker_idx);

/* nat_log_fn of a worker; opaque is its ring. */
void nat_log_put(void *opaque, const struct nat_log_event *event);

/* One thread at a time: write what the workers said. now_s is their tick: the
 * clock of the lines may have been set meanwhile. False: the file takes no
 * more; said once per opening. */
bool nat_log_write(struct nat_log *log, uint32_t now_s,
		   struct mr_reason *ret_why);

/* The file was moved away: begin another one. The old one stays on failure. */
int nat_log_reopen(struct nat_log *log, struct mr_reason *ret_why);

struct nat_log_stats {
	uint64_t n_written; /* lines that the file took */
	uint64_t n_lost;    /* lines that the ring or the file did not take */
};
struct nat_log_stats nat_log_stats(const struct nat_log *log);

#endif

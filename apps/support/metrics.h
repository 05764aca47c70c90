/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters for Prometheus over HTTP: OpenMetrics and the older text format. */
#ifndef SUPPORT_METRICS_H
#define SUPPORT_METRICS_H

#include <stdbool.h>
#include <stddef.h>

#include <millrace/millrace.h>

#include "snapshot.h"

struct control;
struct metrics;

/*
 * Listen on "unix:PATH" or "tcp:ADDRESS:PORT". It has no thread: call
 * metrics_serve() when its fd is readable and while it has work, and
 * metrics_tick() each second. The control must outlive it, and must have begun
 * before the first call of metrics_serve(). listen_fd: a socket that listens
 * there already, of another process; -1: none. 0, or -errno with a message.
 */
int metrics_open(const char *where, int listen_fd, struct control *control,
		 struct metrics **ret_metrics, struct mr_reason *ret_why);
void metrics_close(struct metrics *metrics);
/* For the process that takes over: its socket; then leave the path to it. */
int metrics_listen_fd(const struct metrics *metrics);
void metrics_leave(struct metrics *metrics);
int metrics_fd(const struct metrics *metrics);
bool metrics_has_work(const struct metrics *metrics);
void metrics_serve(struct metrics *metrics);
void metrics_tick(struct metrics *metrics);

/* metrics_text.c: for the caller to free; NULL: no memory. */
char *metrics_text(const struct snapshot *snapshot, const char *instance,
		   bool is_openmetrics, size_t *ret_n);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Watches the links of the ports while a program runs. */
#ifndef SUPPORT_WATCH_H
#define SUPPORT_WATCH_H

#include <stdbool.h>

#include "dataplane.h"

/* The links as they were last seen. */
struct watch {
	struct mr_link links[MAX_PORTS];
	bool is_seen[MAX_PORTS]; /* the port can tell */
};

enum watch_change { WATCH_SAME, WATCH_UP, WATCH_DOWN, WATCH_GONE };

/* Look at all ports for the first time. */
void watch_begin(struct watch *watch, const struct dataplane *plane);

/* What happened to a port's link since the last look. */
enum watch_change watch_port(struct watch *watch, const struct dataplane *plane,
			     uint32_t port_idx);

/* "link down", for a line. */
const char *watch_text(enum watch_change change);

/* Whether no port can receive any more: all captures have been read. */
bool watch_is_ended(const struct watch *watch, const struct dataplane *plane);

#endif

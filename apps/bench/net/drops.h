/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss counters of ports: which frames were dropped where. */
#ifndef NET_DROPS_H
#define NET_DROPS_H

#include <millrace/millrace.h>

#include "net/trial.h"

/* The counters of a trial's ports. */
struct drop_rows {
	struct trial_drop *rows;
	uint32_t n, room;
};

/* Add all loss counters of a port, always in the same order. */
void drops_add(struct drop_rows *to, struct mr_port *port, bool is_receivers);

/* Keep the rows that changed, as differences to the rows read before. */
void drops_since(struct drop_rows *now, const struct trial_drop *before);

/* Frames that the port accepted but did not send: those that the rows count,
 * and if its link is down, those that its queues still hold. */
uint64_t drops_unsent(const struct drop_rows *moved, struct mr_port *port);
/* Frames that reached the port and that it dropped. */
uint64_t drops_received(const struct drop_rows *moved, struct mr_port *port);

#endif

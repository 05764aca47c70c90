/* SPDX-License-Identifier: BSD-3-Clause */
/* Counters of losses that ports have: who dropped what, and what never left. */
#ifndef NET_DROPS_H
#define NET_DROPS_H

#include <millrace/millrace.h>

#include "net/trial.h"

/* The counters of a trial's ports. */
struct drop_rows {
	struct trial_drop *rows;
	uint32_t n, room;
};

/* Add all counters of losses of a port, in an order that stays. */
void drops_add(struct drop_rows *to, struct mr_port *port, bool is_receivers);

/* Keep the rows that moved, by how much; before: as many, read earlier. */
void drops_since(struct drop_rows *now, const struct trial_drop *before);

/* Frames that the rows say the port accepted and did not send, and those that
 * its queues still hold if its link is down. */
uint64_t drops_unsent(const struct drop_rows *moved, struct mr_port *port);
/* Frames that reached the port, and that it dropped. */
uint64_t drops_received(const struct drop_rows *moved, struct mr_port *port);

#endif

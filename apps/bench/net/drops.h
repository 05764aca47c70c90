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

/* Read all loss counters of ports; receivers has a bit for each one that
 * receives. before: the rows of an earlier call with these ports, NULL: none;
 * see drops_since(). */
void drops_read(struct drop_rows *ret, struct mr_port *const *ports,
		uint32_t n_ports, uint32_t receivers,
		const struct trial_drop *before);

/* Keep the rows that changed, as differences to the rows read before. */
void drops_since(struct drop_rows *now, const struct trial_drop *before);

/* Frames that the port accepted but did not send: those that the rows count,
 * and if its link is down, those that its queues still hold. */
uint64_t drops_unsent(const struct drop_rows *moved, struct mr_port *port);
/* Frames that reached the port and that it dropped. */
uint64_t drops_received(const struct drop_rows *moved, struct mr_port *port);

#endif

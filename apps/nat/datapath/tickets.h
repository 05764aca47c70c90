/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tickets of received frames, <millrace/experimental/flow_way.h>. A ticket is
 * confirmed once its frame, and everything that this worker sent before it, has
 * left, so that frames which the driver forwards cannot overtake them.
 */
#ifndef NAT_TICKETS_H
#define NAT_TICKETS_H

#include <millrace/experimental/offload.h>
#include <millrace/millrace.h>

struct nat_tickets;

/* NULL: no memory. */
struct nat_tickets *nat_tickets_create(struct mr_rules *rules);
void nat_tickets_destroy(struct nat_tickets *tickets);

/* Take the tickets of frames received on a side. */
void nat_tickets_take(struct nat_tickets *tickets, uint32_t side, uint8_t *base,
		      const struct mr_frame *frames, uint32_t n);
/*
 * Call after these frames have been sent, held or dropped, and again now and
 * then. txq: the tx queue of the other side; NULL: it is another worker's, and
 * a delay stands in for its completions. Returns true while tickets are
 * waiting.
 */
bool nat_tickets_settle(struct nat_tickets *tickets, uint32_t side,
			const struct mr_txq *txq, uint64_t now_ns);
/* The worker is at rest, and everything has left. */
void nat_tickets_confirm(struct nat_tickets *tickets);

#endif

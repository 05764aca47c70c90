/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tickets of received frames, <millrace/flow_way.h>: each is confirmed when its
 * frame has left, and with it all that this worker sent before, so that frames
 * which the driver forwards itself do not overtake them.
 */
#ifndef NAT_TICKETS_H
#define NAT_TICKETS_H

#include <millrace/millrace.h>
#include <millrace/offload.h>

struct nat_tickets;

/* NULL: no memory. */
struct nat_tickets *nat_tickets_create(struct mr_rules *rules);
void nat_tickets_destroy(struct nat_tickets *tickets);

/* Take those of frames as received on a side. */
void nat_tickets_take(struct nat_tickets *tickets, uint32_t side, uint8_t *base,
		      const struct mr_frame *frames, uint32_t n);
/*
 * Their frames have been sent, held or dropped. txq: the queue of the other
 * side, or NULL: another worker's, and some time must do. Call it now and then;
 * true: some tickets still wait.
 */
bool nat_tickets_settle(struct nat_tickets *tickets, uint32_t side,
			const struct mr_txq *txq, uint64_t now_ns);

#endif

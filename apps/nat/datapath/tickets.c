/* SPDX-License-Identifier: BSD-3-Clause */
/* Tickets of received frames: tickets.h. */
#include <stdlib.h>

#include "config/config.h"
#include "tickets.h"

enum {
	N_TICKETS = 4096,  /* more than the frames in an rx and a tx queue; the
			    * next ticket stands in for one that is lost */
	SENT_NS = 1000000, /* when another worker has surely sent its frames */
	AWAKE_NS = 50000000, /* how long to wait for the device */
};

struct ticket {
	struct mr_flow_ticket ticket;
	uint64_t due; /* frames accepted by the tx queue, or a time */
};

/* Of a side; counters run freely. */
struct queue {
	uint32_t head, n_due, tail; /* confirmed, with a due, taken */
	uint64_t taken_ns;          /* last */
	struct ticket tickets[N_TICKETS];
};

struct nat_tickets {
	struct mr_rules *rules;
	struct queue queues[NAT_SIDES];
};

struct nat_tickets *nat_tickets_create(struct mr_rules *rules)
{
	struct nat_tickets *tickets = calloc(1, sizeof(*tickets));

	if (tickets != NULL)
		tickets->rules = rules;
	return tickets;
}

void nat_tickets_destroy(struct nat_tickets *tickets)
{
	free(tickets);
}

void nat_tickets_take(struct nat_tickets *tickets, uint32_t side, uint8_t *base,
		      const struct mr_frame *frames, uint32_t n)
{
	struct queue *queue = &tickets->queues[side];

	for (uint32_t i = 0; i < n; i += mr_frame_n_entries(&frames[i])) {
		struct mr_flow_ticket ticket;

		if (!mr_rules_ticket(tickets->rules,
				     mr_frame_data(base, &frames[i]),
				     &ticket) ||
		    queue->tail - queue->head == N_TICKETS)
			continue;
		queue->tickets[queue->tail++ % N_TICKETS].ticket = ticket;
	}
}

bool nat_tickets_settle(struct nat_tickets *tickets, uint32_t side,
			const struct mr_txq *txq, uint64_t now_ns)
{
	struct queue *queue = &tickets->queues[side];
	const uint64_t due =
		txq != NULL ? txq->stats.accepted : now_ns + SENT_NS;
	const uint64_t done =
		txq != NULL ? txq->stats.accepted - txq->stats.pending : now_ns;

	if (queue->n_due != queue->tail)
		queue->taken_ns = now_ns;
	for (; queue->n_due != queue->tail; queue->n_due++)
		queue->tickets[queue->n_due % N_TICKETS].due = due;
	while (queue->head != queue->tail) {
		const struct ticket *first =
			&queue->tickets[queue->head % N_TICKETS];

		if ((int64_t)(done - first->due) < 0)
			return now_ns - queue->taken_ns < AWAKE_NS;
		mr_rules_confirm(tickets->rules, &first->ticket);
		queue->head++;
	}
	return false;
}

void nat_tickets_confirm(struct nat_tickets *tickets)
{
	for (uint32_t s = 0; s < NAT_SIDES; s++) {
		struct queue *queue = &tickets->queues[s];

		for (; queue->head != queue->tail; queue->head++)
			mr_rules_confirm(
				tickets->rules,
				&queue->tickets[queue->head % N_TICKETS]
					 .ticket);
		queue->n_due = queue->tail;
	}
}

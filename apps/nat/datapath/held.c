/* SPDX-License-Identifier: BSD-3-Clause */
/* A bounded store of waiting frames, with FIFOs. */
#include <errno.h>
#include <stdlib.h>

#include "frame.h"

struct nat_held {
	struct nat_packet packet; /* without entries: this slot is free */
	struct nat_verdict verdict;
	uint32_t next; /* in its queue, or the free list */
};

int nat_hold_init(struct nat_hold *hold, uint32_t n, uint32_t max_entries)
{
	hold->slots = calloc(n, sizeof(*hold->slots));
	if (hold->slots == NULL)
		return -ENOMEM;
	hold->n = n;
	hold->n_entries = 0;
	hold->max_entries = max_entries;
	for (uint32_t i = 0; i < n; i++)
		hold->slots[i].next = i + 1 < n ? i + 1 : NAT_HELD_NONE;
	hold->free = n > 0 ? 0 : NAT_HELD_NONE;
	return 0;
}

void nat_hold_end(struct nat_hold *hold)
{
	free(hold->slots);
}

void nat_fifo_init(struct nat_fifo *fifo)
{
	*fifo = (struct nat_fifo){ .first = NAT_HELD_NONE,
				   .last = NAT_HELD_NONE };
}

bool nat_fifo_put(struct nat_hold *hold, struct nat_fifo *fifo,
		  const struct nat_packet *packet,
		  const struct nat_verdict *verdict)
{
	const uint32_t at = hold->free;
	struct nat_held *held;

	if (at == NAT_HELD_NONE ||
	    packet->n > hold->max_entries - hold->n_entries)
		return false;
	hold->n_entries += packet->n;
	held = &hold->slots[at];
	hold->free = held->next;
	held->packet = *packet;
	held->verdict = verdict != NULL ? *verdict : (struct nat_verdict){ 0 };
	held->next = NAT_HELD_NONE;
	if (fifo->last == NAT_HELD_NONE)
		fifo->first = at;
	else
		hold->slots[fifo->last].next = at;
	fifo->last = at;
	fifo->n++;
	fifo->n_entries += packet->n;
	return true;
}

bool nat_fifo_take(struct nat_hold *hold, struct nat_fifo *fifo,
		   struct nat_packet *ret_packet,
		   struct nat_verdict *ret_verdict)
{
	const uint32_t at = fifo->first;
	struct nat_held *held;

	if (at == NAT_HELD_NONE)
		return false;
	held = &hold->slots[at];
	*ret_packet = held->packet;
	if (ret_verdict != NULL)
		*ret_verdict = held->verdict;
	fifo->first = held->next;
	if (fifo->first == NAT_HELD_NONE)
		fifo->last = NAT_HELD_NONE;
	fifo->n--;
	fifo->n_entries -= held->packet.n;
	hold->n_entries -= held->packet.n;
	held->packet.n = 0;
	held->next = hold->free;
	hold->free = at;
	return true;
}

void nat_path_give_up(struct nat_path *path)
{
	for (uint32_t i = 0; i < path->hold.n; i++) {
		if (path->hold.slots[i].packet.n == 0)
			continue;
		counter_sub(&path->stats.held, 1);
		nat_drop_packet(path, &path->hold.slots[i].packet,
				NAT_DROP_SHUTDOWN);
		path->hold.slots[i].packet.n = 0; /* only once */
	}
}

const struct nat_packet *nat_fifo_next(const struct nat_hold *hold,
				       const struct nat_fifo *fifo,
				       uint32_t *at)
{
	*at = *at == NAT_HELD_NONE ? fifo->first : hold->slots[*at].next;
	return *at == NAT_HELD_NONE ? NULL : &hold->slots[*at].packet;
}

void nat_path_leave(struct nat_path *path)
{
	for (uint32_t i = 0; i < path->hold.n; i++)
		path->hold.slots[i].packet.n = 0;
}

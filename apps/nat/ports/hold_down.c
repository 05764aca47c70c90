/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports wait before they are reused: RFC 6888 REQ-8. The queue needs no memory:
 * the entry of a waiting port links to the next one freed in the same second; a
 * ring has a batch for each of those seconds.
 */
#include "ports_set.h"

/* End of a chain; not a valid place. */
enum { HOLD_DOWN_END = NAT_INDEX_HOLD_DOWN - 1 };

static struct nat_batch *batch_at(const struct nat_ports *ports, uint32_t i)
{
	return &ports->batches[(ports->first_batch + i) % ports->n_batches_max];
}

/* The batch of this second. */
static struct nat_batch *batch_of(struct nat_ports *ports, uint32_t now_s)
{
	struct nat_batch *last =
		batch_at(ports, ports->n_batches + ports->n_batches_max - 1);

	if (ports->n_batches > 0 && last->freed_s == now_s)
		return last;
	/* nat_ports_release() was not called for long: the newest batch joins
	 * this one and waits longer than necessary, never shorter. */
	if (ports->n_batches == ports->n_batches_max) {
		last->freed_s = now_s;
		return last;
	}
	last = batch_at(ports, ports->n_batches++);
	*last = (struct nat_batch){ now_s, HOLD_DOWN_END };
	return last;
}

static void push_port(struct nat_ports *ports, struct nat_batch *batch,
		      uint32_t place)
{
	ports->index[place] = NAT_INDEX_HOLD_DOWN | batch->head;
	batch->head = place;
	ports->n_hold_down++;
}

void nat_ports_free(struct nat_ports *ports, uint32_t place, uint32_t now_s)
{
	ports->n_used--;
	if (ports->hold_down_s == 0)
		nat_set_release(ports, place, now_s);
	else
		push_port(ports, batch_of(ports, now_s), place);
}

/* Release those that have waited longer than age_s; -1: all. */
static uint32_t release_ports(struct nat_ports *ports, uint32_t now_s,
			      int32_t age_s, uint32_t n)
{
	uint32_t n_done = 0;

	while (ports->n_batches > 0) {
		struct nat_batch *batch = batch_at(ports, 0);

		/* A port freed late in its second must not wait less. */
		if (age_s >= 0 && (int32_t)(now_s - batch->freed_s) <= age_s)
			return n_done;
		while (batch->head != HOLD_DOWN_END) {
			uint32_t place = batch->head;

			if (n_done == n)
				return n_done;
			batch->head =
				ports->index[place] & ~NAT_INDEX_HOLD_DOWN;
			ports->n_hold_down--;
			nat_set_release(ports, place, now_s);
			n_done++;
		}
		ports->first_batch =
			(ports->first_batch + 1) % ports->n_batches_max;
		ports->n_batches--;
	}
	return n_done;
}

uint32_t nat_ports_release(struct nat_ports *ports, uint32_t now_s, uint32_t n)
{
	return release_ports(ports, now_s, (int32_t)ports->hold_down_s, n);
}

uint32_t nat_ports_release_all(struct nat_ports *ports, uint32_t now_s,
			       uint32_t n)
{
	return release_ports(ports, now_s, -1, n);
}

uint32_t nat_ports_next_held(const struct nat_ports *ports, uint32_t place,
			     uint32_t *freed_s)
{
	const bool begins = place == NAT_PLACE_NONE;
	/* A reload may have changed the set of places. */
	const bool is_there = !begins &&
			      place / ports->n_slots < ports->n_sets &&
			      ports->index[place] & NAT_INDEX_HOLD_DOWN;

	if (is_there &&
	    ports->index[place] != (NAT_INDEX_HOLD_DOWN | HOLD_DOWN_END))
		return ports->index[place] & ~NAT_INDEX_HOLD_DOWN;
	/* Take the next batch; or this one again if the port has been released
	 * since, because ports are released from the front. */
	for (uint32_t i = 0; i < ports->n_batches; i++) {
		const struct nat_batch *batch = batch_at(ports, i);
		const int32_t later_s = (int32_t)(batch->freed_s - *freed_s);

		if (batch->head == HOLD_DOWN_END ||
		    (!begins && later_s < is_there))
			continue;
		*freed_s = batch->freed_s;
		return batch->head;
	}
	return NAT_PLACE_NONE;
}

/* Add to the batch of that second, or to the last one if that is newer. */
static void add_to_batch(struct nat_ports *ports, uint32_t place,
			 uint32_t freed_s)
{
	const struct nat_batch *last =
		batch_at(ports, ports->n_batches + ports->n_batches_max - 1);

	if (ports->n_batches > 0 && (int32_t)(last->freed_s - freed_s) > 0)
		freed_s = last->freed_s;
	nat_set_take(ports, place, 0);
	ports->n_used--;
	push_port(ports, batch_of(ports, freed_s), place);
}

bool nat_ports_hold(struct nat_ports *ports, uint32_t place, uint32_t freed_s,
		    uint32_t now_s)
{
	if (ports->index[place] != 0 || ports->hold_down_s == 0 ||
	    (int32_t)(now_s - freed_s) > (int32_t)ports->hold_down_s)
		return false;
	add_to_batch(ports, place, freed_s);
	return true;
}

/* Take over a port of an earlier configuration, if it exists and is free. */
static void inherit_port(struct nat_ports *ports, const struct nat_ports *old,
			 uint32_t old_place, uint32_t freed_s, uint32_t now_s)
{
	uint32_t proto = nat_set_of(old, old_place) / old->n_addrs_max;
	uint32_t place =
		nat_ports_place(ports, proto, nat_ports_addr_of(old, old_place),
				nat_ports_port_of(old, old_place));
	uint32_t owner_id = nat_blocks_owner(old, old_place);

	if (place == NAT_PLACE_NONE || ports->index[place] != 0 ||
	    !nat_ports_in_range(ports, place))
		return;
	/* In a block it waits for its owner, or not at all. */
	if (ports->blocks != NULL &&
	    (owner_id == MR_FLOW_NONE ||
	     !nat_blocks_admit(ports, place, owner_id, now_s)))
		return;
	add_to_batch(ports, place, freed_s);
}

void nat_ports_inherit(struct nat_ports *ports, const struct nat_ports *old,
		       uint32_t now_s)
{
	if (ports->hold_down_s == 0)
		return;
	for (uint32_t i = 0; i < old->n_batches; i++) {
		const struct nat_batch *batch = batch_at(old, i);

		for (uint32_t place = batch->head; place != HOLD_DOWN_END;
		     place = old->index[place] & ~NAT_INDEX_HOLD_DOWN)
			inherit_port(ports, old, place, batch->freed_s, now_s);
	}
}

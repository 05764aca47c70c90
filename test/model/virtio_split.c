/* SPDX-License-Identifier: BSD-3-Clause */
/* The split ring: 2.7 of the specification. */
#include "virtio_core.h"

/* Offsets in the driver's area and in the device's. */
enum { FLAGS = 0, IDX = 2, RING = 4, NO_INTERRUPT = 1, NO_NOTIFY = 1 };

static uint16_t load16(const uint8_t *area, uint32_t offset)
{
	return __atomic_load_n((const uint16_t *)(area + offset),
			       __ATOMIC_SEQ_CST);
}

static void store16(uint8_t *area, uint32_t offset, uint16_t value)
{
	__atomic_store_n((uint16_t *)(area + offset), value, __ATOMIC_SEQ_CST);
}

static uint8_t *used_event(const struct vnet_queue *q)
{
	return q->driver_area + RING + 2 * q->size;
}

static bool enable(struct vnet *v, struct vnet_queue *q)
{
	if ((q->size & (q->size - 1)) != 0)
		return vnet_give_up(v, q, "its size is no power of two");
	if (q->desc % 16 != 0 || q->driver % 2 != 0 || q->device % 4 != 0)
		return vnet_give_up(v, q, "an area is not aligned");
	return true;
}

static bool has_more(const struct vnet_queue *q)
{
	return load16(q->driver_area, IDX) != (uint16_t)q->avail_pos;
}

/* The chain from descriptor @p at. */
static bool walk(struct vnet *v, struct vnet_queue *q, struct vnet_element *e,
		 uint16_t at)
{
	for (;;) {
		const uint8_t *desc = q->desc_area + 16 * (uint32_t)at;
		uint16_t flags;

		if (at >= q->size)
			return vnet_give_up(v, q, "no such descriptor");
		if (q->is_out[at] && !q->is_confused)
			return vnet_give_up(
				v, q,
				"a descriptor is made available that is "
				"not used yet");
		if (e->n_slots == VNET_MAX_SEGS)
			return vnet_give_up(v, q, "the chain is too long");
		q->is_out[at] = true;
		e->slots[e->n_slots++] = at;
		flags = vnet_get16(desc + 12);
		if (!vnet_add_seg(v, q, e, desc))
			return false;
		if ((flags & VNET_DESC_NEXT) == 0)
			return true;
		at = vnet_get16(desc + 14);
	}
}

static int take_split(struct vnet *v, struct vnet_queue *q,
		      struct vnet_element *e)
{
	const uint16_t place = (uint16_t)q->avail_pos & (q->size - 1);
	const uint16_t n =
		(uint16_t)(load16(q->driver_area, IDX) - q->avail_pos);

	if (n == 0)
		return 0;
	if (n > q->size) {
		vnet_give_up(v, q, "avail idx is more than the ring ahead");
		return -1;
	}
	e->id = vnet_get16(q->driver_area + RING + 2 * place);
	q->avail_pos++;
	if (e->id >= q->size) {
		vnet_give_up(v, q, "the avail ring names no descriptor");
		return -1;
	}
	return walk(v, q, e, e->id) ? 1 : -1;
}

/* Whether the length of the used entry at this place lies on another page. */
static bool is_torn(const struct vnet_queue *q, uint16_t place)
{
	return (q->device + RING + 8 * (uint64_t)place + 4) % 4096 == 0;
}

static void put_used(struct vnet *v, struct vnet_queue *q,
		     const struct vnet_used *used, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint16_t place = (uint16_t)q->used_pos & (q->size - 1);
		uint8_t *entry = q->device_area + RING + 8 * place;

		vnet_put32(entry, used[i].id);
		if (!v->faults.tears_entries || !is_torn(q, place))
			vnet_put32(entry + 4, used[i].n_written);
		q->used_pos += used[i].n_steps;
	}
	store16(q->device_area, IDX, (uint16_t)q->used_pos);
}

static bool wants_irq(struct vnet *v, const struct vnet_queue *q)
{
	uint16_t event;

	if (!vnet_has(v, VNET_EVENT_IDX))
		return (load16(q->driver_area, FLAGS) & NO_INTERRUPT) == 0;
	event = load16(used_event(q), 0);
	return (uint16_t)(q->used_pos - event - 1) <
	       (uint16_t)(q->used_pos - q->told_pos);
}

static void want_kicks(const struct vnet *v, struct vnet_queue *q, bool is_on)
{
	if (!vnet_has(v, VNET_EVENT_IDX))
		store16(q->device_area, FLAGS, is_on ? 0 : NO_NOTIFY);
	else if (is_on)
		store16(q->device_area, RING + 8 * q->size,
			(uint16_t)q->avail_pos);
	/* Off: what is left there has been passed by. */
}

static void doorbell(struct vnet *v, struct vnet_queue *q, uint16_t next)
{
	if (next != load16(q->driver_area, IDX))
		model_violation(&v->model,
				"queue %u: NOTIFICATION_DATA says avail idx "
				"%u, the ring %u",
				q->idx, next, load16(q->driver_area, IDX));
}

const struct vnet_layout vnet_split = {
	.enable = enable,
	.take = take_split,
	.has_more = has_more,
	.put_used = put_used,
	.wants_irq = wants_irq,
	.want_kicks = want_kicks,
	.doorbell = doorbell,
};

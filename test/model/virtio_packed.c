/* SPDX-License-Identifier: BSD-3-Clause */
/* The packed ring: 2.8 of the specification. */
#include "virtio_core.h"

/* Event suppression, in the driver's area and in the device's. */
enum { OFF_WRAP = 0, FLAGS = 2, ENABLE = 0, DISABLE = 1, DESC = 2 };

/* Wrap counters begin with 1. */
static bool wrap_of(const struct vnet_queue *q, uint64_t pos)
{
	return pos / q->size % 2 == 0;
}

static uint8_t *desc_at(const struct vnet_queue *q, uint64_t pos)
{
	return q->desc_area + 16 * (pos % q->size);
}

/*
 * Length, id and flags are a word of 64 bits that both sides load and store as
 * one: ThreadSanitizer sees order only between accesses of one size.
 */
static uint16_t flags_at(const struct vnet_queue *q, uint64_t pos)
{
	return (uint16_t)(__atomic_load_n((uint64_t *)(desc_at(q, pos) + 8),
					  __ATOMIC_SEQ_CST) >>
			  48);
}

/* The driver has made the descriptor at @p pos available. */
static bool is_avail(const struct vnet_queue *q, uint64_t pos)
{
	const uint16_t flags = flags_at(q, pos);
	const bool wrap = wrap_of(q, pos);

	return ((flags & VNET_DESC_AVAIL) != 0) == wrap &&
	       ((flags & VNET_DESC_USED) != 0) != wrap;
}

static bool enable(struct vnet *v, struct vnet_queue *q)
{
	if (q->desc % 16 != 0 || q->driver % 4 != 0 || q->device % 4 != 0)
		return vnet_give_up(v, q, "an area is not aligned");
	return true;
}

static bool has_more(const struct vnet_queue *q)
{
	return is_avail(q, q->avail_pos);
}

/* The id of a buffer is that of its last descriptor. */
static int identify(struct vnet *v, struct vnet_queue *q,
		    struct vnet_element *e, const uint8_t *desc)
{
	e->id = vnet_get16(desc + 12);
	if (e->id >= q->size || (q->is_out[e->id] && !q->is_confused)) {
		vnet_give_up(v, q,
			     e->id >= q->size ?
				     "a buffer id is beyond the ring" :
				     "a buffer id is not used yet");
		return -1;
	}
	q->is_out[e->id] = true;
	return 1;
}

static int take_packed(struct vnet *v, struct vnet_queue *q,
		       struct vnet_element *e)
{
	if (!is_avail(q, q->avail_pos))
		return 0;
	for (;;) {
		const uint8_t *desc = desc_at(q, q->avail_pos);
		const uint16_t flags = vnet_get16(desc + 14);

		if (!is_avail(q, q->avail_pos)) {
			vnet_give_up(v, q,
				     "the first descriptor of a chain "
				     "was made available before the "
				     "others, or a wrap bit is wrong");
			return -1;
		}
		if (q->avail_pos - q->used_pos == q->size ||
		    e->n_slots == VNET_MAX_SEGS) {
			vnet_give_up(v, q, "the chain is too long");
			return -1;
		}
		e->n_slots++;
		q->avail_pos++;
		if (!vnet_add_seg(v, q, e, desc))
			return -1;
		if ((flags & VNET_DESC_NEXT) == 0)
			return identify(v, q, e, desc);
	}
}

static void store_used(const struct vnet_queue *q, uint64_t pos,
		       const struct vnet_used *used)
{
	const uint64_t flags =
		(wrap_of(q, pos) ? VNET_DESC_AVAIL | VNET_DESC_USED : 0) |
		(used->has_written ? VNET_DESC_WRITE : 0);

	__atomic_store_n((uint64_t *)(desc_at(q, pos) + 8),
			 used->n_written | (uint64_t)used->id << 32 |
				 flags << 48,
			 __ATOMIC_SEQ_CST);
}

/* The first one last: then the driver sees all of them at once. */
static void put_used(struct vnet *v, struct vnet_queue *q,
		     const struct vnet_used *used, uint32_t n)
{
	const uint64_t first = q->used_pos;

	(void)v;
	for (uint32_t i = 0; i < n; i++) {
		if (i > 0)
			store_used(q, q->used_pos, &used[i]);
		q->used_pos += used[i].n_steps;
	}
	if (n > 0)
		store_used(q, first, &used[0]);
}

static bool wants_irq(struct vnet *v, const struct vnet_queue *q)
{
	const uint32_t event = __atomic_load_n((const uint32_t *)q->driver_area,
					       __ATOMIC_SEQ_CST);
	const uint32_t offset = event & 0x7fff;
	const bool wrap = event >> 15 & 1;
	uint64_t lap = q->used_pos / q->size, pos;

	if (event >> 16 != DESC)
		return event >> 16 == ENABLE;
	if (!vnet_has(v, VNET_EVENT_IDX)) {
		model_violation(&v->model,
				"queue %u: event flags DESC without "
				"EVENT_IDX",
				q->idx);
		return true;
	}
	/* The lap that the driver means: this one, or the one before. */
	if (wrap != wrap_of(q, q->used_pos)) {
		if (lap == 0)
			return false;
		lap--;
	}
	pos = lap * q->size + offset;
	return pos >= q->told_pos && pos < q->used_pos;
}

static void want_kicks(const struct vnet *v, struct vnet_queue *q, bool is_on)
{
	uint32_t event = (uint32_t)DISABLE << 16;

	if (is_on && vnet_has(v, VNET_EVENT_IDX))
		event = (uint32_t)DESC << 16 |
			(uint32_t)wrap_of(q, q->avail_pos) << 15 |
			(uint32_t)(q->avail_pos % q->size);
	else if (is_on)
		event = (uint32_t)ENABLE << 16;
	__atomic_store_n((uint32_t *)q->device_area, event, __ATOMIC_SEQ_CST);
}

/* next: offset and, in bit 15, wrap counter of what is available next. */
static void doorbell(struct vnet *v, struct vnet_queue *q, uint16_t next)
{
	uint64_t pos = q->avail_pos;

	while (pos - q->used_pos < q->size && is_avail(q, pos))
		pos++;
	if (next != (pos % q->size | (uint64_t)wrap_of(q, pos) << 15))
		model_violation(&v->model,
				"queue %u: NOTIFICATION_DATA says offset %u "
				"and wrap %u, the ring %u and %u",
				q->idx, next & 0x7fffu, next >> 15,
				(unsigned)(pos % q->size), wrap_of(q, pos));
}

const struct vnet_layout vnet_packed = {
	.enable = enable,
	.take = take_packed,
	.has_more = has_more,
	.put_used = put_used,
	.wants_irq = wants_irq,
	.want_kicks = want_kicks,
	.doorbell = doorbell,
};

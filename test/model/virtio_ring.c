/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rings, whichever layout they have: taking buffers, and telling the driver of
 * those used. Here is what a hostile device does to the latter.
 */
#include <stdlib.h>
#include <string.h>

#include "virtio_core.h"

bool vnet_give_up(struct vnet *v, const struct vnet_queue *q, const char *why)
{
	model_violation(&v->model, "queue %u: %s", q->idx, why);
	v->status |= VNET_NEEDS_RESET;
	return false;
}

static bool is_packed(const struct vnet *v)
{
	return vnet_has(v, VNET_RING_PACKED);
}

struct vnet_element *vnet_element(struct vnet_queue *q, uint64_t i)
{
	return &q->elements[i % VNET_MAX_RING];
}

static uint64_t driver_bytes(const struct vnet *v, const struct vnet_queue *q)
{
	return is_packed(v) ? 4 : 6 + 2 * (uint64_t)q->size;
}

static uint64_t device_bytes(const struct vnet *v, const struct vnet_queue *q)
{
	return is_packed(v) ? 4 : 6 + 8 * (uint64_t)q->size;
}

/* Areas may be unmapped at any time: they are looked up for each step. */
bool vnet_queue_map(struct vnet *v, struct vnet_queue *q)
{
	if (!vnet_is_running(v))
		return false;
	q->desc_area = model_dma(&v->model, q->desc, 16 * (uint64_t)q->size);
	q->driver_area = model_dma(&v->model, q->driver, driver_bytes(v, q));
	q->device_area = model_dma(&v->model, q->device, device_bytes(v, q));
	if (q->desc_area == NULL || q->driver_area == NULL ||
	    q->device_area == NULL)
		return vnet_give_up(v, q, "an area of the ring is not mapped");
	return true;
}

bool vnet_queue_enable(struct vnet *v, struct vnet_queue *q)
{
	if (q->size == 0 || q->size > v->config.queue_size)
		return vnet_give_up(v, q, "its size is out of range");
	if (!vnet_layout(v)->enable(v, q))
		return false;
	if (!model_is_mapped(&v->model, q->desc, 16 * (uint64_t)q->size) ||
	    !model_is_mapped(&v->model, q->driver, driver_bytes(v, q)) ||
	    !model_is_mapped(&v->model, q->device, device_bytes(v, q)))
		return vnet_give_up(v, q, "an area of the ring is not mapped");
	q->elements = calloc(VNET_MAX_RING, sizeof(*q->elements));
	q->is_out = calloc(VNET_MAX_RING, sizeof(*q->is_out));
	q->is_enabled = q->elements != NULL && q->is_out != NULL;
	return q->is_enabled;
}

void vnet_queue_disable(struct vnet_queue *q)
{
	const struct vnet_queue kept = { .idx = q->idx,
					 .vector = VNET_NO_VECTOR };

	free(q->elements);
	free(q->is_out);
	*q = kept;
}

static bool overlaps(const struct vnet_seg *a, uint64_t iova, uint64_t n_bytes)
{
	return a->is_written && iova < a->iova + a->n_bytes &&
	       a->iova < iova + n_bytes;
}

/* The device may still write to a part of it. */
static bool is_posted(struct vnet *v, uint64_t iova, uint32_t n_bytes)
{
	for (uint32_t k = 0; k < 2 * v->config.n_pairs; k += 2) {
		struct vnet_queue *q = &v->queues[k];

		for (uint64_t i = q->n_told; i < q->n_taken; i++) {
			const struct vnet_element *e = vnet_element(q, i);

			for (uint32_t s = 0; s < e->n_segs; s++)
				if (overlaps(&e->segs[s], iova, n_bytes))
					return true;
		}
	}
	return false;
}

bool vnet_add_seg(struct vnet *v, struct vnet_queue *q, struct vnet_element *e,
		  const uint8_t *desc)
{
	struct vnet_seg *seg = &e->segs[e->n_segs];
	const bool is_written = (vnet_get16(desc + (is_packed(v) ? 14 : 12)) &
				 VNET_DESC_WRITE) != 0;

	if (e->n_segs == VNET_MAX_SEGS)
		return vnet_give_up(v, q, "the chain is too long");
	if (vnet_get16(desc + (is_packed(v) ? 14 : 12)) & VNET_DESC_INDIRECT)
		return vnet_give_up(v, q, "INDIRECT was not negotiated");
	seg->iova = vnet_get64(desc);
	seg->n_bytes = vnet_get32(desc + 8);
	seg->is_written = is_written;
	if (seg->n_bytes == 0)
		return vnet_give_up(v, q, "a descriptor of no bytes");
	if (!is_written && e->n_segs > 0 && e->segs[e->n_segs - 1].is_written)
		return vnet_give_up(v, q, "readable behind writable");
	seg->bytes = model_dma(&v->model, seg->iova, seg->n_bytes);
	if (seg->bytes == NULL)
		return vnet_give_up(v, q, "a buffer is not mapped");
	if (is_written && !q->is_confused &&
	    is_posted(v, seg->iova, seg->n_bytes))
		return vnet_give_up(v, q, "a buffer is posted twice");
	e->n_segs++;
	return true;
}

/* Take all that the driver has made available. */
void vnet_fetch(struct vnet *v, struct vnet_queue *q)
{
	while (vnet_is_running(v) && q->n_taken - q->n_told < q->size) {
		struct vnet_element *e = vnet_element(q, q->n_taken);
		int n;

		e->n_slots = 0;
		e->n_segs = 0;
		e->n_written = 0;
		n = vnet_layout(v)->take(v, q, e);
		if (n <= 0)
			return;
		q->n_taken++;
	}
}

uint32_t vnet_gather(const struct vnet_element *e, uint8_t *bytes,
		     uint32_t room)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->n_segs && !e->segs[i].is_written; i++) {
		if (e->segs[i].n_bytes > room - n)
			return UINT32_MAX;
		memcpy(bytes + n, e->segs[i].bytes, e->segs[i].n_bytes);
		n += e->segs[i].n_bytes;
	}
	return n;
}

uint32_t vnet_capacity(const struct vnet_element *e)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->n_segs; i++)
		n += e->segs[i].is_written ? e->segs[i].n_bytes : 0;
	return n;
}

/* Write behind the first @p from bytes. How many there was room for. */
uint32_t vnet_scatter(const struct vnet_element *e, uint32_t from,
		      const uint8_t *bytes, uint32_t n_bytes)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < e->n_segs && n < n_bytes; i++) {
		const struct vnet_seg *seg = &e->segs[i];
		uint32_t len;

		if (!seg->is_written)
			continue;
		if (from >= seg->n_bytes) {
			from -= seg->n_bytes;
			continue;
		}
		len = seg->n_bytes - from;
		if (len > n_bytes - n)
			len = n_bytes - n;
		memcpy(seg->bytes + from, bytes + n, len);
		from = 0;
		n += len;
	}
	return n;
}

/* The next buffer is done with; the driver is told when it is due. */
void vnet_use(struct vnet *v, struct vnet_queue *q, uint32_t n_written)
{
	struct vnet_element *e = vnet_element(q, q->n_done++);

	e->n_written = n_written;
	e->due = v->now + v->model.faults.late_completions;
}

/* What a device gone wrong makes of it. */
static void spoil(struct vnet *v, struct vnet_queue *q, struct vnet_used *used)
{
	static const uint32_t lengths[] = { 0,     1,          11,
					    65551, 0x7fffffff, UINT32_MAX };
	const struct model_faults *faults = &v->model.faults;

	if (vnet_fault(v, faults->bad_length))
		used->n_written = lengths[model_random(&v->model) % 6];
	if (vnet_fault(v, faults->bad_id)) {
		used->id =
			(uint16_t)(q->size + model_random(&v->model) % 60000);
		q->is_confused = true;
	}
	if (vnet_fault(v, faults->wrong_completion)) {
		used->id = (uint16_t)(model_random(&v->model) % q->size);
		q->is_confused = true;
	}
}

static void release_element(struct vnet *v, struct vnet_queue *q,
			    const struct vnet_element *e)
{
	if (is_packed(v))
		q->is_out[e->id] = false;
	else
		for (uint32_t i = 0; i < e->n_slots; i++)
			q->is_out[e->slots[i]] = false;
}

/* The next one; out of its turn, if that is what goes wrong. */
static const struct vnet_element *next_to_tell(struct vnet *v,
					       struct vnet_queue *q)
{
	struct vnet_element *e = vnet_element(q, q->n_told);
	const uint64_t n = q->n_done - q->n_told;

	if (q->idx % 2 == 1 && n > 1 && !vnet_has(v, VNET_IN_ORDER) &&
	    vnet_fault(v, v->faults.reordered)) {
		struct vnet_element *other = vnet_element(
			q, q->n_told + 1 + model_random(&v->model) % (n - 1));
		const struct vnet_element kept = *e;

		*e = *other;
		*other = kept;
	}
	return e;
}

/*
 * Used in order, buffers may be told by the last one of a batch alone, if the
 * others were used to their end. How many entries are left.
 */
static uint32_t make_batches(const struct vnet *v, struct vnet_used *used,
			     uint32_t n)
{
	uint32_t n_left = 0, n_steps = 0;

	if (!vnet_has(v, VNET_IN_ORDER))
		return n;
	for (uint32_t i = 0; i < n; i++) {
		n_steps += used[i].n_steps;
		if (i + 1 < n && used[i].is_full)
			continue;
		used[n_left] = used[i];
		used[n_left++].n_steps = (uint16_t)n_steps;
		n_steps = 0;
	}
	return n_left;
}

static void publish(struct vnet *v, struct vnet_queue *q,
		    struct vnet_used *used, uint32_t n)
{
	n = make_batches(v, used, n);
	if (vnet_fault(v, v->faults.doubled)) {
		used[n] = used[n - 1];
		n++;
		q->is_confused = true;
	}
	if (!is_packed(v) && vnet_fault(v, v->faults.idx_jumps)) {
		used[n - 1].n_steps = (uint16_t)(q->size + 1);
		q->is_confused = true;
	}
	vnet_layout(v)->put_used(v, q, used, n);
	if (vnet_layout(v)->wants_irq(v, q)) {
		vnet_irq(v, q->vector, 1);
		v->counts[q->idx].n_irqs += q->vector != VNET_NO_VECTOR;
	}
	q->told_pos = q->used_pos;
}

void vnet_tell(struct vnet *v, struct vnet_queue *q)
{
	struct vnet_used used[VNET_MAX_RING + 1];
	uint32_t n = 0;

	while (q->n_told < q->n_done &&
	       vnet_element(q, q->n_told)->due <= v->now) {
		const struct vnet_element *e = next_to_tell(v, q);

		used[n] = (struct vnet_used){
			.id = e->id,
			.n_steps = is_packed(v) ? e->n_slots : 1,
			.n_written = e->n_written,
			.has_written = e->segs[e->n_segs - 1].is_written,
			.is_full = e->n_written == vnet_capacity(e),
		};
		spoil(v, q, &used[n++]);
		release_element(v, q, e);
		q->n_told++;
	}
	if (n == 0)
		return;
	publish(v, q, used, n);
	if (v->faults.needs_reset > 0 && v->faults.needs_reset <= n)
		vnet_break(v);
	v->faults.needs_reset -=
		v->faults.needs_reset > n ? n : v->faults.needs_reset;
}

bool vnet_want_kicks(struct vnet *v, struct vnet_queue *q, bool is_on)
{
	vnet_layout(v)->want_kicks(v, q, is_on);
	return !vnet_layout(v)->has_more(q);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings: their registers, posting by the tail, and who owns a descriptor. */
#include <string.h>

#include "intel.h"
#include "intel_regs.h"

enum {
	MIN_RING = 32,
	RING_ALIGN = 128, /* bytes, of base and length */
	DESC_BYTES = sizeof(struct intel_desc),
	LATE_STEP_NS = 50000,
};

static uint32_t *ring_reg(struct intel *nic, const struct intel_ring *ring,
			  uint32_t which)
{
	return intel_reg(nic, ring->base + which);
}

static const char *name_of(const struct intel_ring *ring)
{
	return ring->is_tx ? "tx" : "rx";
}

static bool direction_is_on(struct intel *nic, const struct intel_ring *ring)
{
	return ring->is_tx ? *intel_reg(nic, REG_TCTL) & TCTL_EN :
			     *intel_reg(nic, REG_RCTL) & RCTL_EN;
}

/* Its own enable bit; the rings of an 82574L have none. */
static bool is_enabled(struct intel *nic, const struct intel_ring *ring)
{
	return nic->chip->is_82574 ||
	       (*ring_reg(nic, ring, RING_CONTROL) & QUEUE_ENABLE);
}

bool intel_ring_is_on(struct intel *nic, const struct intel_ring *ring)
{
	return is_enabled(nic, ring) && direction_is_on(nic, ring) &&
	       ring->n > 0;
}

static uint64_t base_of(struct intel *nic, const struct intel_ring *ring)
{
	return (uint64_t)*ring_reg(nic, ring, RING_BAH) << 32 |
	       *ring_reg(nic, ring, RING_BAL);
}

struct intel_desc *intel_desc_at(struct intel *nic, struct intel_ring *ring,
				 uint32_t i)
{
	return model_dma(&nic->m, base_of(nic, ring) + i * DESC_BYTES,
			 DESC_BYTES);
}

bool intel_desc_is_kept(struct intel *nic, struct intel_ring *ring, uint32_t i,
			const struct intel_desc *now)
{
	if (memcmp(now, &ring->given[i], sizeof(*now)) == 0)
		return true;
	model_violation(&nic->m,
			"%s ring %u: descriptor %u changed while the "
			"device had it",
			name_of(ring), ring->q, i);
	return false;
}

bool intel_is_late(struct intel *nic, struct intel_ring *ring)
{
	const uint32_t n = nic->m.faults.late_completions;

	if (n == 0 || ring->head == ring->tail) {
		ring->n_late = n;
		return false;
	}
	if (ring->n_late == 0) {
		ring->n_late = n;
		return false;
	}
	ring->n_late--;
	model_wake_at(&nic->m, model_now_ns(&nic->m) + LATE_STEP_NS);
	return true;
}

/* Bytes of a receive buffer: from SRRCTL, or else RCTL. */
uint32_t intel_rx_buffer_bytes(struct intel *nic, const struct intel_ring *ring)
{
	const uint32_t srrctl = *ring_reg(nic, ring, RING_SRRCTL);
	const uint32_t rctl = *intel_reg(nic, REG_RCTL);
	const uint32_t size = rctl >> 16 & 3;

	if (!nic->chip->is_82574 && (srrctl & SRRCTL_BSIZE_MASK) != 0)
		return (srrctl & SRRCTL_BSIZE_MASK) * 1024;
	if (rctl & RCTL_BSEX) /* 16384, 8192, 4096 */
		return size == 0 ? 0 : 32768u >> size;
	return 2048u >> size;
}

static uint32_t owned_slot(uint64_t iova)
{
	return (uint32_t)((iova * UINT64_C(0x9e3779b97f4a7c15)) >> 48) %
	       INTEL_OWNED_SLOTS;
}

/* Whether the ring already has the buffer; its slot may be another's. */
static bool is_given(const struct intel_ring *ring, uint32_t end, uint64_t iova)
{
	for (uint32_t i = ring->head; i != end; i = (i + 1) % ring->n)
		if (ring->given[i].low == iova)
			return true;
	return false;
}

static void own(struct intel *nic, struct intel_ring *ring, uint32_t i)
{
	const uint64_t iova = ring->given[i].low;
	const uint32_t n_bytes = intel_rx_buffer_bytes(nic, ring);
	uint8_t *slot = &nic->owned[owned_slot(iova)];

	if (ring->given[i].high != 0)
		model_violation(&nic->m,
				"rx ring %u: descriptor %u is given "
				"with a second address, or an old status",
				ring->q, i);
	if (!nic->chip->is_82574 && iova % 2 != 0)
		model_violation(&nic->m, "rx ring %u: buffer at an odd address",
				ring->q);
	if (!model_is_mapped(&nic->m, iova, n_bytes))
		model_violation(&nic->m,
				"rx ring %u: buffer of %u bytes at "
				"0x%llx is not mapped",
				ring->q, n_bytes, (unsigned long long)iova);
	if (*slot > 0 && is_given(ring, i, iova))
		model_violation(&nic->m,
				"rx ring %u: buffer 0x%llx is given "
				"twice",
				ring->q, (unsigned long long)iova);
	if (*slot < 255)
		++*slot;
}

void intel_disown(struct intel *nic, uint64_t iova)
{
	uint8_t *slot = &nic->owned[owned_slot(iova)];

	if (*slot > 0 && *slot < 255)
		--*slot;
}

/* What the registers of a ring must be before its tail moves. */
static bool is_sound(struct intel *nic, struct intel_ring *ring)
{
	const uint32_t len = *ring_reg(nic, ring, RING_LEN);
	const uint64_t base = base_of(nic, ring);
	const uint32_t srrctl = *ring_reg(nic, ring, RING_SRRCTL);

	if (base % RING_ALIGN != 0 || len % RING_ALIGN != 0 ||
	    len / DESC_BYTES < MIN_RING || len / DESC_BYTES > INTEL_MAX_RING) {
		model_violation(&nic->m, "%s ring %u: base 0x%llx, %u bytes",
				name_of(ring), ring->q,
				(unsigned long long)base, len);
		return false;
	}
	if (!model_is_mapped(&nic->m, base, len)) {
		model_violation(&nic->m, "%s ring %u: not all of it is mapped",
				name_of(ring), ring->q);
		return false;
	}
	if (!ring->is_tx && !nic->chip->is_82574 &&
	    (srrctl & SRRCTL_DESCTYPE_MASK) != SRRCTL_ONEBUF)
		model_violation(&nic->m,
				"rx ring %u: SRRCTL 0x%x is not for "
				"advanced descriptors of one buffer",
				ring->q, srrctl);
	ring->n = len / DESC_BYTES;
	return true;
}

static bool may_move_tail(struct intel *nic, struct intel_ring *ring,
			  uint32_t tail)
{
	if (!is_enabled(nic, ring) || !direction_is_on(nic, ring)) {
		/* It is initialized to 0. */
		if (tail != *ring_reg(nic, ring, RING_HEAD))
			model_violation(&nic->m,
					"%s ring %u: tail %u while it "
					"is off",
					name_of(ring), ring->q, tail);
		return false;
	}
	if (!is_sound(nic, ring))
		return false;
	if (!nic->chip->is_82574 && !ring->was_seen_enabled) {
		model_violation(&nic->m,
				"%s ring %u: tail %u before "
				"QUEUE_ENABLE was read as 1",
				name_of(ring), ring->q, tail);
		return false;
	}
	if (tail >= ring->n) {
		model_violation(&nic->m, "%s ring %u: tail %u of %u",
				name_of(ring), ring->q, tail, ring->n);
		return false;
	}
	return true;
}

static void write_tail(struct intel *nic, struct intel_ring *ring,
		       uint32_t tail)
{
	const struct intel_desc *from;
	uint32_t n_new, n_owned;

	if (!may_move_tail(nic, ring, tail))
		return;
	n_new = (tail + ring->n - ring->tail) % ring->n;
	n_owned = (ring->tail + ring->n - ring->head) % ring->n;
	if (n_owned + n_new >= ring->n) {
		model_violation(&nic->m,
				"%s ring %u: tail from %u to %u "
				"passes head %u",
				name_of(ring), ring->q, ring->tail, tail,
				ring->head);
		return;
	}
	for (uint32_t i = ring->tail; i != tail; i = (i + 1) % ring->n) {
		from = intel_desc_at(nic, ring, i);
		if (from == NULL)
			return;
		ring->given[i] = *from;
		if (!ring->is_tx)
			own(nic, ring, i);
	}
	ring->tail = tail;
	*ring_reg(nic, ring, RING_TAIL) = tail;
}

/* Forget all posted descriptors. */
static void drop_given(struct intel *nic, struct intel_ring *ring)
{
	for (; !ring->is_tx && ring->head != ring->tail;
	     ring->head = (ring->head + 1) % ring->n)
		intel_disown(nic, ring->given[ring->head].low);
	ring->n_segments = 0;
}

/* QUEUE_ENABLE: start or stop a ring. */
static void write_control(struct intel *nic, struct intel_ring *ring,
			  uint32_t value)
{
	const bool was_on = is_enabled(nic, ring);

	*ring_reg(nic, ring, RING_CONTROL) = value;
	if (nic->chip->is_82574 || was_on == is_enabled(nic, ring))
		return;
	drop_given(nic, ring);
	ring->was_seen_enabled = false;
	ring->n_polls = 0;
	ring->has_context[0] = ring->has_context[1] = false;
	if (was_on)
		return;
	is_sound(nic, ring);
	ring->head = *ring_reg(nic, ring, RING_HEAD);
	ring->tail = ring->head;
}

void intel_ring_write(struct intel *nic, struct intel_ring *ring,
		      uint32_t offset, uint32_t value)
{
	const uint32_t which = offset - ring->base;
	const bool is_on = nic->chip->is_82574 ? direction_is_on(nic, ring) :
						 is_enabled(nic, ring);

	if (!nic->was_reset)
		model_violation(&nic->m, "%s ring %u is set up before a reset",
				name_of(ring), ring->q);
	if (which == RING_TAIL) {
		write_tail(nic, ring, value);
		return;
	}
	if (which == RING_CONTROL) {
		write_control(nic, ring, value);
		return;
	}
	if (which == RING_DROPS && !ring->is_tx)
		ring->drops = value;
	if (is_on && (which <= RING_LEN || which == RING_HEAD))
		model_violation(&nic->m,
				"%s ring %u: register 0x%x is written "
				"while it runs",
				name_of(ring), ring->q, offset);
	if (ring->is_tx && which == RING_WBAL && (value & 2))
		model_violation(&nic->m,
				"tx ring %u: head write-back to "
				"0x%x",
				ring->q, value);
	if (which >= RING_WBAL && !nic->chip->has_head_writeback)
		model_violation(&nic->m, "the %s has no head write-back",
				nic->chip->name);
	*ring_reg(nic, ring, which) = value;
	if (which == RING_HEAD && !is_on) {
		drop_given(nic, ring);
		ring->head = ring->tail = value;
	}
}

uint32_t intel_ring_read(struct intel *nic, struct intel_ring *ring,
			 uint32_t offset)
{
	const uint32_t which = offset - ring->base;
	uint32_t value = *intel_reg(nic, offset);

	if (which == RING_HEAD)
		return ring->head;
	if (which == RING_DROPS && !ring->is_tx) {
		value = ring->drops;
		/* Writing the I210's clears it. */
		ring->drops = nic->chip == &chip_i210 ? value : 0;
	}
	if (which != RING_CONTROL || nic->chip->is_82574)
		return value;
	/* It reads 0 until the direction is enabled, and a moment longer. */
	if (!direction_is_on(nic, ring) || ring->n_polls < nic->enable_polls) {
		ring->n_polls += direction_is_on(nic, ring);
		return value & ~QUEUE_ENABLE;
	}
	ring->was_seen_enabled |= (value & QUEUE_ENABLE) != 0;
	return value;
}

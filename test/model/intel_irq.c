/* SPDX-License-Identifier: BSD-3-Clause */
/* Interrupts: causes, vectors, moderation, and auto-clear. */
#include "intel.h"
#include "intel_regs.h"

enum {
	VECTOR_BITS_82574 = 4,
	VALID_82574 = 8,
	VALID = 0x80,
	TICK_82574_NS = 256, /* of EITR */
	TICK_NS = 1000,
};

static uint32_t *reg(struct intel *nic, uint32_t offset)
{
	return intel_reg(nic, offset);
}

/* Shortest time between two interrupts of a vector. */
static uint64_t interval_ns(struct intel *nic, uint32_t vector)
{
	if (nic->chip->is_82574)
		return (*reg(nic, REG_EITR_82574 + 4 * vector) & 0xffff) *
		       (uint64_t)TICK_82574_NS;
	return ((*reg(nic, REG_EITR + 4 * vector) & 0x7ffc) >> 2) *
	       (uint64_t)TICK_NS;
}

/* False: too early; it is sent later. */
static bool send_interrupt(struct intel *nic, uint32_t vector)
{
	const uint64_t now_ns = model_now_ns(&nic->m);

	if (vector >= nic->chip->n_vectors) {
		model_violation(&nic->m, "vector %u: the %s has %u", vector,
				nic->chip->name, nic->chip->n_vectors);
		return false;
	}
	if (now_ns < nic->next_irq_ns[vector]) {
		nic->held_irqs |= 1u << vector;
		model_wake_at(&nic->m, nic->next_irq_ns[vector]);
		return false;
	}
	nic->held_irqs &= ~(1u << vector);
	nic->next_irq_ns[vector] = now_ns + interval_ns(nic, vector);
	model_irq(&nic->m, vector);
	return true;
}

/* ---- 82574L: ICR and IMS, and five vectors by IVAR ---- */

static bool uses_msix_82574(struct intel *nic)
{
	return (*reg(nic, REG_IVAR_82574) & 0x00088888) != 0;
}

static void fire_82574(struct intel *nic, uint32_t causes)
{
	/* In the order of IVAR's fields. */
	static const uint32_t order[] = { CAUSE_RXQ0, CAUSE_RXQ0 << 1,
					  CAUSE_TXQ0, CAUSE_TXQ0 << 1,
					  CAUSE_OTHER };
	const uint32_t ivar = *reg(nic, REG_IVAR_82574);

	causes &= *reg(nic, REG_IMS);
	if (!uses_msix_82574(nic)) {
		if (causes != 0 && send_interrupt(nic, 0))
			*reg(nic, REG_ICR) |= CAUSE_ASSERTED;
		return;
	}
	for (uint32_t i = 0; i < 5; i++) {
		const uint32_t field = ivar >> VECTOR_BITS_82574 * i & 15;

		if (!(causes & order[i]))
			continue;
		if (!(field & VALID_82574)) {
			model_violation(&nic->m,
					"IVAR 0x%x has no vector for "
					"cause 0x%x",
					ivar, order[i]);
			continue;
		}
		if (!send_interrupt(nic, field & 7))
			continue;
		*reg(nic, REG_ICR) &= ~(*reg(nic, REG_EIAC_82574) & order[i]);
		if (*reg(nic, REG_CTRL_EXT) & CTRL_EXT_EIAME)
			*reg(nic, REG_IMS) &= ~(*reg(nic, REG_IAM) & order[i]);
	}
}

static bool write_82574(struct intel *nic, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case REG_IVAR_82574:
	case REG_IAM:
		*reg(nic, offset) = value;
		return true;
	case REG_EIAC_82574:
		if (value & ~0x01f00000u)
			model_violation(&nic->m, "EIAC 0x%x: reserved bits",
					value);
		*reg(nic, offset) = value;
		return true;
	default:
		if (offset < REG_EITR_82574 || offset >= REG_EITR_82574 + 20)
			return false;
		*reg(nic, offset) = value;
		return true;
	}
}

/* ---- 82576: a bit of EICR per vector, by IVAR ---- */

static void fire_82576(struct intel *nic, uint32_t vectors)
{
	vectors &= *reg(nic, REG_EIMS);
	for (uint32_t v = 0; v < 32; v++) {
		if (!(vectors >> v & 1) || !send_interrupt(nic, v))
			continue;
		*reg(nic, REG_EICR) &= ~(*reg(nic, REG_EIAC) & 1u << v);
		if (*reg(nic, REG_GPIE) & GPIE_EIAME)
			*reg(nic, REG_EIMS) &= ~(*reg(nic, REG_EIAM) & 1u << v);
	}
}

static uint32_t ivar_of(struct intel *nic, const struct intel_ring *ring)
{
	const uint32_t q = ring->q;

	if (nic->chip->has_i210_ivar)
		return *reg(nic, REG_IVAR + 4 * (q >> 1)) >>
			       (((q & 1) << 4) + 8 * ring->is_tx) &
		       0xff;
	return *reg(nic, REG_IVAR + 4 * (q & 7)) >>
		       (((q & 8) << 1) + 8 * ring->is_tx) &
	       0xff;
}

static void raise_82576(struct intel *nic, uint32_t entry)
{
	if (!(entry & VALID)) /* unused */
		return;
	*reg(nic, REG_EICR) |= 1u << (entry & 31);
	fire_82576(nic, 1u << (entry & 31));
}

static bool write_82576(struct intel *nic, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case REG_EIMS:
		*reg(nic, REG_EIMS) |= value;
		fire_82576(nic, *reg(nic, REG_EICR) & value);
		return true;
	case REG_EIMC:
		*reg(nic, REG_EIMS) &= ~value;
		return true;
	case REG_EICS:
		*reg(nic, REG_EICR) |= value;
		fire_82576(nic, value);
		return true;
	case REG_EICR:
		*reg(nic, REG_EICR) &= ~value;
		return true;
	case REG_GPIE:
	case REG_EIAC:
	case REG_EIAM:
	case REG_IVAR_MISC:
		*reg(nic, offset) = value;
		return true;
	default:
		if ((offset < REG_EITR || offset >= REG_EITR + 100) &&
		    (offset < REG_IVAR || offset >= REG_IVAR + 32))
			return false;
		*reg(nic, offset) = value;
		return true;
	}
}

/* ---- both ---- */

static bool uses_msix(struct intel *nic)
{
	return nic->chip->is_82574 ? uses_msix_82574(nic) :
				     *reg(nic, REG_GPIE) & GPIE_MSIX_MODE;
}

static void raise(struct intel *nic, uint32_t causes)
{
	*reg(nic, REG_ICR) |= causes;
	if (nic->chip->is_82574)
		fire_82574(nic, causes);
	else if (!uses_msix(nic) && (causes & *reg(nic, REG_IMS)) &&
		 send_interrupt(nic, 0))
		*reg(nic, REG_ICR) |= CAUSE_ASSERTED;
}

void intel_irq_queue(struct intel *nic, const struct intel_ring *ring)
{
	if (!nic->chip->is_82574 && uses_msix(nic))
		raise_82576(nic, ivar_of(nic, ring));
	else if (ring->is_tx)
		raise(nic, CAUSE_TXDW | CAUSE_TXQ0 << ring->q);
	else
		raise(nic, CAUSE_RXT0 | CAUSE_RXQ0 << ring->q);
}

void intel_irq_other(struct intel *nic, uint32_t causes)
{
	/* An overrun sets OTHER whether or not IMS has RXO. */
	if (nic->chip->is_82574 && uses_msix(nic) &&
	    (causes & (CAUSE_LSC | CAUSE_RXO)))
		causes |= CAUSE_OTHER;
	raise(nic, causes);
	if (!nic->chip->is_82574 && uses_msix(nic) &&
	    (causes & *reg(nic, REG_IMS)))
		raise_82576(nic, *reg(nic, REG_IVAR_MISC) >> 8 & 0xff);
}

bool intel_irq_has(const struct intel *nic, uint32_t offset)
{
	if (offset >= REG_ICR && offset <= REG_IAM)
		return offset != 0xc4;
	return !nic->chip->is_82574 &&
	       (offset == REG_EICR || offset == REG_EIMS || offset == REG_EIMC);
}

uint32_t intel_irq_read(struct intel *nic, uint32_t offset)
{
	const uint32_t value = *reg(nic, offset);

	if (offset == REG_ICR)
		*reg(nic, REG_ICR) = 0;
	if (offset == REG_IMC)
		return *reg(nic, REG_IMS);
	if (offset == REG_EIMC)
		return *reg(nic, REG_EIMS);
	if (offset == REG_EICR) {
		if (*reg(nic, REG_EIAC) != 0)
			model_violation(&nic->m,
					"EICR is read while EIAC is "
					"0x%x",
					*reg(nic, REG_EIAC));
		*reg(nic, REG_EICR) = 0;
	}
	return value;
}

bool intel_irq_write(struct intel *nic, uint32_t offset, uint32_t value)
{
	switch (offset) {
	case REG_ICR:
		*reg(nic, REG_ICR) &= ~value;
		return true;
	case REG_ICS:
		raise(nic, value);
		return true;
	case REG_IMS:
		*reg(nic, REG_IMS) |= value;
		intel_irq_other(nic, *reg(nic, REG_ICR) & value);
		return true;
	case REG_IMC:
		*reg(nic, REG_IMS) &= ~value;
		return true;
	case REG_IAM:
		*reg(nic, REG_IAM) = value;
		return true;
	default:
		return nic->chip->is_82574 ? write_82574(nic, offset, value) :
					     write_82576(nic, offset, value);
	}
}

/* Send interrupts that are due. */
void intel_irq_step(struct intel *nic)
{
	const uint32_t held = nic->held_irqs;

	for (uint32_t v = 0; v < nic->chip->n_vectors; v++) {
		if (!(held >> v & 1))
			continue;
		if (model_now_ns(&nic->m) < nic->next_irq_ns[v]) {
			model_wake_at(&nic->m, nic->next_irq_ns[v]);
			continue;
		}
		nic->held_irqs &= ~(1u << v);
		if (!nic->chip->is_82574 && uses_msix(nic))
			fire_82576(nic, *reg(nic, REG_EICR) & 1u << v);
		else
			raise(nic, *reg(nic, REG_ICR));
	}
}

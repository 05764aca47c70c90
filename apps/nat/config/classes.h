/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which classes an address belongs to: ranges of addresses with bits. A lookup
 * takes at most three loads, however many ranges there are.
 *
 *     slot of the upper 16 bits --> 256 slots of the next 8 --> 256 of the last
 *
 * A slot has bits if they hold for all of its addresses, else its own slots.
 */
#ifndef NAT_CLASSES_H
#define NAT_CLASSES_H

#include <stdint.h>

enum { NAT_CLASSES_SPLIT = 1u << 31 }; /* not among the bits */

struct nat_classes {
	uint32_t *slots;
	uint32_t n, n_max;
};

/* 0 or -ENOMEM, like nat_classes_add(). */
int nat_classes_init(struct nat_classes *classes);
void nat_classes_end(struct nat_classes *classes);

/* Add these bits to addresses first to last, host order. */
int nat_classes_add(struct nat_classes *classes, uint32_t first, uint32_t last,
		    uint32_t bits);

/* The bits of an address, host order. */
static inline uint32_t nat_classes_of(const struct nat_classes *classes,
				      uint32_t addr)
{
	uint32_t slot = classes->slots[addr >> 16];

	if (slot & NAT_CLASSES_SPLIT)
		slot = classes->slots[(slot & ~NAT_CLASSES_SPLIT) +
				      (addr >> 8 & 255)];
	if (slot & NAT_CLASSES_SPLIT)
		slot = classes->slots[(slot & ~NAT_CLASSES_SPLIT) +
				      (addr & 255)];
	return slot;
}

#endif

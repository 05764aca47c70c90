/* SPDX-License-Identifier: BSD-3-Clause */
/* Which classes an address belongs to. */
#include <errno.h>
#include <stdlib.h>

#include "classes.h"

enum { N_ROOT = 1 << 16, N_SPLIT = 256 };

int nat_classes_init(struct nat_classes *classes)
{
	*classes = (struct nat_classes){ .n = N_ROOT, .n_max = N_ROOT };
	classes->slots = calloc(N_ROOT, sizeof(*classes->slots));
	return classes->slots == NULL ? -ENOMEM : 0;
}

void nat_classes_end(struct nat_classes *classes)
{
	free(classes->slots);
	*classes = (struct nat_classes){ 0 };
}

/* Give this slot its own slots, with its bits. */
static int split(struct nat_classes *classes, uint32_t at)
{
	const uint32_t bits = classes->slots[at];

	if (classes->n == classes->n_max) {
		const uint32_t n_max = 2 * classes->n_max;
		uint32_t *slots = realloc(classes->slots,
					  n_max * sizeof(*classes->slots));

		if (slots == NULL)
			return -ENOMEM;
		classes->slots = slots;
		classes->n_max = n_max;
	}
	for (uint32_t i = 0; i < N_SPLIT; i++)
		classes->slots[classes->n + i] = bits;
	classes->slots[at] = NAT_CLASSES_SPLIT | classes->n;
	classes->n += N_SPLIT;
	return 0;
}

/* The part of first..last that is in a slot of 2^shift addresses from begin. */
static int add(struct nat_classes *classes, uint32_t at, uint32_t begin,
	       uint32_t shift, uint32_t first, uint32_t last, uint32_t bits)
{
	const uint32_t end = begin + ((1u << shift) - 1);
	int err = 0;

	first = first > begin ? first : begin;
	last = last < end ? last : end;
	if ((classes->slots[at] & NAT_CLASSES_SPLIT) == 0) {
		if (first == begin && last == end) {
			classes->slots[at] |= bits;
			return 0;
		}
		err = split(classes, at);
	}
	at = classes->slots[at] & ~NAT_CLASSES_SPLIT;
	shift -= 8;
	for (uint32_t i = (first - begin) >> shift;
	     err == 0 && i <= (last - begin) >> shift; i++)
		err = add(classes, at + i, begin + (i << shift), shift, first,
			  last, bits);
	return err;
}

int nat_classes_add(struct nat_classes *classes, uint32_t first, uint32_t last,
		    uint32_t bits)
{
	int err = 0;

	for (uint32_t i = first >> 16; err == 0 && i <= last >> 16; i++)
		err = add(classes, i, i << 16, 16, first, last, bits);
	return err;
}

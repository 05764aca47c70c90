/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bare stack of page numbers: no owner, no counters, no checks, no second
 * thread. What nobody can be faster than; a floor, never a result.
 */
#ifndef PLAIN_H
#define PLAIN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct plain {
	uint32_t n, size;
	uint32_t numbers[];
};

static inline struct plain *plain_make(uint32_t n)
{
	struct plain *plain = malloc(sizeof(*plain) + n * sizeof(uint32_t));

	if (plain == NULL)
		return NULL;
	plain->n = plain->size = n;
	for (uint32_t i = 0; i < n; i++)
		plain->numbers[i] = i;
	return plain;
}

static inline uint32_t plain_pop(struct plain *plain, uint32_t *numbers,
				 uint32_t n)
{
	if (n > plain->n)
		return 0;
	plain->n -= n;
	memcpy(numbers, plain->numbers + plain->n, n * sizeof(*numbers));
	return n;
}

static inline void plain_push(struct plain *plain, const uint32_t *numbers,
			      uint32_t n)
{
	memcpy(plain->numbers + plain->n, numbers, n * sizeof(*numbers));
	plain->n += n;
}

#endif

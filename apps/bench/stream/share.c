/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shares of values. Random values depend on the number of the frame alone, so
 * that any frame can be made again: a counter through a hash of one
 * multiplication (wyrand of W. Yi), scaled to the range by another (D. Lemire,
 * 2019); its fraction selects in an alias table (M. Vose, 1991).
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stream/share.h"

typedef unsigned __int128 wide;

static inline uint64_t draw_number(uint64_t seed, uint64_t k)
{
	const uint64_t state = seed + k * UINT64_C(0xa0761d6478bd642f);
	const wide product =
		(wide)state * (state ^ UINT64_C(0xe7037ed1a0b428db));

	return (uint64_t)(product >> 64) ^ (uint64_t)product;
}

/* Fill what a value lacks in its column of the table from one that has more. */
static void fill_alias(struct share_alias *alias, double *mass, uint32_t *stack,
		       uint32_t n)
{
	uint32_t n_small = 0, n_large = 0;

	for (uint32_t i = 0; i < n; i++) {
		if (mass[i] < 1)
			stack[n_small++] = i;
		else
			stack[n - ++n_large] = i;
	}
	while (n_small > 0 && n_large > 0) {
		const uint32_t small = stack[--n_small];
		const uint32_t large = stack[n - n_large];

		alias[small].threshold = (uint32_t)(mass[small] * 0x1p32);
		alias[small].other = large;
		mass[large] -= 1 - mass[small];
		if (mass[large] < 1) {
			n_large--;
			stack[n_small++] = large;
		}
	}
	/* Each of the rest has a column of its own, except for rounding. */
	while (n_small > 0) {
		const uint32_t i = stack[--n_small];

		alias[i] = (struct share_alias){ UINT32_MAX, i };
	}
	for (; n_large > 0; n_large--) {
		const uint32_t i = stack[n - n_large];

		alias[i] = (struct share_alias){ UINT32_MAX, i };
	}
}

static int open_zipf(struct share *share, double exponent)
{
	const uint32_t n = (uint32_t)share->n;
	double *mass = calloc(n, sizeof(mass[0]));
	uint32_t *stack = calloc(n, sizeof(stack[0]));
	double sum = 0;

	share->alias = calloc(n, sizeof(share->alias[0]));
	if (mass == NULL || stack == NULL || share->alias == NULL) {
		free(mass);
		free(stack);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++)
		sum += mass[i] = pow(i + 1.0, -exponent);
	for (uint32_t i = 0; i < n; i++)
		mass[i] *= n / sum;
	fill_alias(share->alias, mass, stack, n);
	free(mass);
	free(stack);
	return 0;
}

int share_open(struct share *share, const struct values *values,
	       uint32_t sender, uint32_t n_senders, uint64_t seed)
{
	*share = (struct share){
		.n = (values->n - sender + n_senders - 1) / n_senders,
		.first = values->first + sender * values->step,
		.step = values->step * n_senders,
		.order = values->order,
		.period = 1,
		.seed = seed,
	};
	if (values->table != NULL) {
		share->table = calloc(share->n, sizeof(share->table[0]));
		if (share->table == NULL)
			return -ENOMEM;
		for (uint64_t i = 0; i < share->n; i++)
			share->table[i] = values->table[sender + i * n_senders];
	}
	share_seek(share, 0);
	return share->order == ORDER_ZIPF ? open_zipf(share, values->exponent) :
					    0;
}

void share_close(struct share *share)
{
	free(share->table);
	free(share->alias);
	*share = (struct share){ .n = 0 };
}

void share_seek(struct share *share, uint64_t k)
{
	if (share->order != ORDER_SEQUENCE)
		return;
	share->index = k / share->period % share->n;
	share->left = share->period - k % share->period;
}

static inline uint32_t value_at(const struct share *share, uint64_t index)
{
	return share->table != NULL ?
		       share->table[index] :
		       share->first + (uint32_t)index * share->step;
}

/* The fastest sequence of a stream: another value in each frame. */
static void make_fast(struct share *share, uint32_t *ret, uint32_t n)
{
	while (n > 0) {
		const uint64_t n_rest = share->n - share->index;
		const uint32_t n_run = n_rest < n ? (uint32_t)n_rest : n;
		const uint32_t from = value_at(share, share->index);

		if (share->table != NULL)
			for (uint32_t i = 0; i < n_run; i++)
				ret[i] = share->table[share->index + i];
		else
			for (uint32_t i = 0; i < n_run; i++)
				ret[i] = from + i * share->step;
		share->index += n_run;
		if (share->index == share->n)
			share->index = 0;
		ret += n_run;
		n -= n_run;
	}
}

static void make_slow(struct share *share, uint32_t *ret, uint32_t n)
{
	while (n > 0) {
		const uint32_t n_run =
			share->left < n ? (uint32_t)share->left : n;
		const uint32_t value = value_at(share, share->index);

		for (uint32_t i = 0; i < n_run; i++)
			ret[i] = value;
		share->left -= n_run;
		if (share->left == 0) {
			share->left = share->period;
			share->index++;
			if (share->index == share->n)
				share->index = 0;
		}
		ret += n_run;
		n -= n_run;
	}
}

static void make_random(const struct share *share, uint64_t k, uint32_t *ret,
			uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		ret[i] = (uint32_t)((wide)draw_number(share->seed, k + i) *
					    share->n >>
				    64);
}

static void make_zipf(const struct share *share, uint64_t k, uint32_t *ret,
		      uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const wide scaled =
			(wide)draw_number(share->seed, k + i) * share->n;
		const uint32_t column = (uint32_t)(scaled >> 64);
		const uint32_t rest = (uint32_t)((uint64_t)scaled >> 32);
		const struct share_alias *alias = &share->alias[column];

		ret[i] = rest < alias->threshold ? column : alias->other;
	}
}

void share_make(struct share *share, uint64_t k, uint32_t *ret, uint32_t n)
{
	switch (share->order) {
	case ORDER_SEQUENCE:
		if (share->period == 1)
			make_fast(share, ret, n);
		else
			make_slow(share, ret, n);
		return;
	case ORDER_RANDOM:
		make_random(share, k, ret, n);
		break;
	case ORDER_ZIPF:
		make_zipf(share, k, ret, n);
		break;
	}
	if (share->table != NULL)
		for (uint32_t i = 0; i < n; i++)
			ret[i] = share->table[ret[i]];
	else
		for (uint32_t i = 0; i < n; i++)
			ret[i] = share->first + ret[i] * share->step;
}

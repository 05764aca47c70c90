/* SPDX-License-Identifier: BSD-3-Clause */
/* One sender's share of the values of a field, in the order it sends them. */
#ifndef STREAM_SHARE_H
#define STREAM_SHARE_H

#include "stream/compiled.h"

/* Value i if the rest is below the threshold, else the other one. */
struct share_alias {
	uint32_t threshold, other;
};

struct share {
	uint64_t n;
	uint32_t first, step;
	uint32_t *table; /* or NULL: first + i * step */
	enum field_order order;
	/* ORDER_SEQUENCE */
	uint64_t period; /* frames from one value to the next */
	uint64_t index;  /* of the value of the next frame */
	uint64_t left;   /* frames that have it, 1 or more */
	/* ORDER_RANDOM, ORDER_ZIPF */
	uint64_t seed;
	struct share_alias *alias;
};

/*
 * The values number sender, sender + n_senders, ... of a field; n_senders is 1
 * for fields that are not dealt out. Returns 0 or -ENOMEM.
 */
int share_open(struct share *share, const struct values *values,
	       uint32_t sender, uint32_t n_senders, uint64_t seed);
void share_close(struct share *share);

/* Frame number k is next. */
void share_seek(struct share *share, uint64_t k);

/* The values of the next n frames, from number k on. */
void share_make(struct share *share, uint64_t k, uint32_t *ret, uint32_t n);

#endif

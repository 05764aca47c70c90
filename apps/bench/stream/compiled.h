/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Compiled streams, from which builders, and live frames in BPF, make frames.
 *
 * Sums are of 16-bit words in host order, not folded and not complemented.
 * Values that vary, and checksums to be computed, are 0 in sums and templates.
 * The frame's checksum is ~fold(sum of the shape + sum of the values).
 */
#ifndef STREAM_COMPILED_H
#define STREAM_COMPILED_H

#include "stream/stream.h"

enum { FIELDS_MAX = 16 };

enum field_order { ORDER_SEQUENCE, ORDER_RANDOM, ORDER_ZIPF };

/* Values in their order: first + i * step, or table[i]; i in 0..n - 1. */
struct values {
	uint64_t n; /* 1..2^32; 1: a constant */
	uint32_t first, step;
	uint32_t *table; /* or NULL */
	enum field_order order;
	double exponent; /* ORDER_ZIPF: value i has 1 / (i + 1)^exponent */
	/* A constant longer than 4 bytes, in network order: MAC and IPv6
	 * addresses, of which only the last 4 bytes can vary. */
	uint8_t high[12];
	bool is_ipv6;
};

/* One field that varies. */
struct field {
	char name[12]; /* "ip.src" */
	struct values values;
	uint16_t at;       /* of the window that is written, in the frame */
	uint8_t n_bytes;   /* 1, 2 or 4 */
	uint8_t shift;     /* of the value in the window */
	uint32_t fixed;    /* bits of the window that do not vary */
	bool is_in_l3_sum; /* of the IPv4 header */
	bool is_in_l4_sum; /* of TCP, UDP, ICMP, with the pseudo-header */
	uint8_t sum_shift; /* 8: a byte that is the upper one of its word */
};

/* A frame of one size, or of a capture. */
struct shape {
	uint8_t *bytes;
	uint32_t n_bytes;
	uint16_t l3_csum, l4_csum; /* offsets; 0: none to be computed */
	uint32_t l3_sum, l4_sum;
	bool is_zero_csum_none; /* UDP: a sum of 0 is written as 0xffff */
	bool has_stamp_in_sum;
	bool is_stamp_odd; /* it begins at an odd offset of the sum */
};

struct stream {
	char *text; /* as given */
	uint32_t weight;
	struct shape *shapes;
	uint32_t n_shapes;
	uint32_t *sizes; /* frame k has shapes[sizes[k % n_sizes]] */
	uint32_t n_sizes;
	struct field *fields; /* the first one changes fastest */
	uint32_t n_fields;
	bool is_capture; /* shapes are frames of one */
};

struct streams {
	struct stream *of;
	uint32_t n; /* 1..STREAMS_MAX */
	uint32_t max_bytes;
	double mean_bytes; /* of the frames that are sent, weighted */
	bool is_stamped;
	uint32_t magic;
	uint16_t run;
	uint32_t *turns; /* frame k is of stream turns[k % n_turns] */
	uint32_t n_turns;
};

#endif

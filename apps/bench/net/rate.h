/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates as people write them, and in frames per second. */
#ifndef NET_RATE_H
#define NET_RATE_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/error.h>

#include "support/options.h"

/* What a frame takes on the wire beside its bytes (IEEE 802.3, clause 4.2). */
enum {
	FCS_BYTES = 4,
	WIRE_BYTES = 24, /* preamble 8, FCS 4, gap 12 */
};

enum rate_unit {
	RATE_FULL,
	RATE_PPS,
	RATE_L1_BPS,  /* with preamble, FCS and gap */
	RATE_L2_BPS,  /* with the FCS */
	RATE_PERCENT, /* of the link */
};

struct rate {
	enum rate_unit unit;
	double value;
};

/* "1.2M", "1.2Mpps", "10Gbit", "10Gbit-l2", "25%" or "max". */
enum parse_result rate_parse(const char *name, const char *text,
			     struct rate *ret, struct mr_reason *ret_error);

/* As rate_parse() takes it. */
void rate_print(const struct rate *rate, char *ret, size_t n_bytes);

/*
 * Frames per second of frames of mean_bytes (without FCS); line_pps is what the
 * link takes of such frames, 0: unknown. 0 is full speed; negative: a share of
 * a link whose speed is not known.
 */
double rate_pps(const struct rate *rate, double mean_bytes, double line_pps);

/* Bits per second that n frames per second of that size are on the wire. */
double rate_l1_bps(double pps, double mean_bytes);

#endif

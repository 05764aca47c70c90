/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Histograms in the formats of HdrHistogram, for its plotter and its libraries.
 *
 * A histogram as text is the payload of the V2 encoding, compressed, in base64;
 * percentiles are HdrHistogram's table, one line per step.
 */
#ifndef RESULT_HDR_H
#define RESULT_HDR_H

#include <stdbool.h>
#include <stdio.h>

struct hist;

/* A log's first lines. */
void hdr_log_head(double start_s, FILE *to);

/*
 * One line of a log: a histogram that was taken from start_s for length_s
 * (seconds since the epoch, and of time). tag: no commas or blanks. False: no
 * memory, or it could not be written.
 */
bool hdr_log_line(const char *tag, double start_s, double length_s,
		  const struct hist *hist, FILE *to);

/* Percentiles, by steps that halve the rest five times per doubling; in us. */
void hdr_percentiles(const struct hist *hist, FILE *to);

/*
 * The next step of such a table behind percentile p (0..100), 100 after the
 * last that n values can tell.
 */
double hdr_next_percentile(double p, double n);

#endif

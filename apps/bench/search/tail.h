/* SPDX-License-Identifier: BSD-3-Clause */
/* The latencies of the tester alone. */
#ifndef SEARCH_TAIL_H
#define SEARCH_TAIL_H

#include "search/session.h"

/*
 * Measure the latencies of the tester alone at that rate: the same cores and
 * streams, but frames pass through memory. Prints a line, and adds figures to
 * "measured". Returns 0, or the exit status.
 */
int tail_measure_own(struct session *session, double pps,
		     struct mr_reason *why);

#endif

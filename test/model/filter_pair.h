/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a filter in libpcap's interpreter and, translated, in the kernel. */
#ifndef MODEL_FILTER_PAIR_H
#define MODEL_FILTER_PAIR_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/filter.h>

#include "xdp_filter.h"

enum { FILTER_PAIR_MIN_BYTES = 14, FILTER_PAIR_MAX_BYTES = 16384 };

struct filter_pair {
	struct xdp_cbpf cbpf; /* not owned */
	int fd;
};

/* Whether programs can be loaded; once, before the other calls. */
bool filter_pair_begin(void);
/* 0, or the error of the translation or the kernel; prints the verifier's log.
 */
int filter_pair_open(struct filter_pair *pair, const struct xdp_cbpf *cbpf,
		     bool has_frags);
void filter_pair_close(struct filter_pair *pair);
/* Whether libpcap takes the frame. */
bool filter_pair_interpret(const struct xdp_cbpf *cbpf, const uint8_t *bytes,
			   uint32_t n_bytes);
/* Whether the two disagree about the frame. */
bool filter_pair_differs(const struct filter_pair *pair, const uint8_t *bytes,
			 uint32_t n_bytes, bool *ret_is_taken);
/* How many frames the translations have passed to the kernel. */
uint64_t filter_pair_n_passed(void);

#endif

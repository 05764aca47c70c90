/* SPDX-License-Identifier: BSD-3-Clause */
/* Filter expressions of pcap-filter(7), run on bytes in memory. */
#ifndef SUPPORT_CAPTURE_FILTER_H
#define SUPPORT_CAPTURE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

struct capture_filter {
	void *program; /* NULL: all frames match */
};

/* 0, or -EINVAL, -ENOMEM, -ENOTSUP with a message. NULL: all frames match. */
int capture_filter_compile(const char *expression, struct capture_filter *ret,
			   struct mr_reason *ret_why);
void capture_filter_free(struct capture_filter *filter);
/* Any thread. */
bool capture_filter_matches(const struct capture_filter *filter,
			    const uint8_t *bytes, uint32_t n_bytes,
			    uint32_t n_frame);

#endif

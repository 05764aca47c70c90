/* SPDX-License-Identifier: BSD-3-Clause */
/* Without libpcap. */
#include <errno.h>
#include <stdio.h>

#include "capture_filter.h"
#include "text.h"

int capture_filter_compile(const char *expression, struct capture_filter *ret,
			   struct mr_reason *ret_why)
{
	ret->program = NULL;
	if (expression == NULL || expression[0] == '\0')
		return 0;
	return fail_with(ret_why, -ENOTSUP,
			 "filters need a program built with libpcap");
}

void capture_filter_free(struct capture_filter *filter)
{
	(void)filter;
}

bool capture_filter_matches(const struct capture_filter *filter,
			    const uint8_t *bytes, uint32_t n_bytes,
			    uint32_t n_frame)
{
	(void)filter;
	(void)bytes;
	(void)n_bytes;
	(void)n_frame;
	return true;
}

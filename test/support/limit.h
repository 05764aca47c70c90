/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits of time, longer where the host is slow; host.py has the other half. */
#ifndef SUPPORT_LIMIT_H
#define SUPPORT_LIMIT_H

#include <stdint.h>
#include <stdlib.h>

/* How long a wait may take that takes @p ms at most on a quiet host. */
static inline uint32_t test_limit_ms(uint32_t ms)
{
	const char *factor = getenv("MR_TIME_FACTOR");

	return factor == NULL ? ms : (uint32_t)(ms * strtod(factor, NULL));
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Time limits, longer on slow hosts; host.py has the other half. */
#ifndef SUPPORT_LIMIT_H
#define SUPPORT_LIMIT_H

#include <stdint.h>
#include <stdlib.h>

/* The limit for a wait that takes at most @p ms on a quiet host. */
static inline uint32_t test_limit_ms(uint32_t ms)
{
	const char *factor = getenv("MR_TIME_FACTOR");

	return factor == NULL ? ms : (uint32_t)(ms * strtod(factor, NULL));
}

#endif

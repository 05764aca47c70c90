/* SPDX-License-Identifier: BSD-3-Clause */
/* A context and a region of the least size, which stay for the next input. */
#ifndef FUZZ_REGION_H
#define FUZZ_REGION_H

#include <millrace/millrace.h>

#include "fuzz.h"

static inline void fuzz_region(struct mr_ctx **ctx, struct mr_region **region)
{
	const struct mr_region_config config = { .size = sizeof(config),
						 .max_bytes = 1,
						 .os_pages = MR_OS_PAGES_4K };

	if (*ctx != NULL)
		return;
	FUZZ_CHECK(mr_ctx_create(NULL, ctx, NULL) == 0);
	FUZZ_CHECK(mr_region_create(*ctx, &config, region, NULL) == 0);
}

#endif

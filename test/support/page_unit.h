/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by unit tests of the page allocator's public calls. */
#ifndef SUPPORT_PAGE_UNIT_H
#define SUPPORT_PAGE_UNIT_H

#include "support/pool_unit.h"

#include <millrace/page.h>

static inline struct mr_page_stats page_stats(const struct mr_pool *pool)
{
	struct mr_page_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_page_stats(pool, &stats), 0);
	return stats;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of pools, with a fixture, `f`. A fixture that a test leaves open is
 * closed afterwards, which checks that everything was freed. Include this after
 * headers whose functions have a parameter of that name.
 */
#ifndef SUPPORT_POOL_TEST_H
#define SUPPORT_POOL_TEST_H

#include "support/pool_unit.h"

static struct pool_fixture f;

static inline int pool_tear_down(void **state)
{
	(void)state;
	if (f.ctx != NULL)
		fixture_close(&f);
	return 0;
}

#define TEST_POOL(name) TEST_WITH(NULL, pool_tear_down, name)

#endif

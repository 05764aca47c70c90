/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests with a context, `ctx`, which must free all of its memory. */
#ifndef SUPPORT_UNIT_CTX_H
#define SUPPORT_UNIT_CTX_H

#include "support/unit.h"

static struct test_allocator allocator;
static struct mr_ctx *ctx;

static inline int ctx_set_up(void **state)
{
	(void)state;
	allocator = (struct test_allocator){ 0 };
	ctx = test_ctx(&allocator);
	return 0;
}

static inline int ctx_tear_down(void **state)
{
	(void)state;
	mr_ctx_destroy(ctx);
	assert_int_equal(allocator.n_out, 0);
	return 0;
}

#define TEST_CTX(name) TEST_WITH(ctx_set_up, ctx_tear_down, name)

#endif

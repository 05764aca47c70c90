/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/pool/page_alloc.c. */
#include "support/pool_unit.h"

static void pages_are_handed_out_once_each(void **state)
{
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	struct mri_page_alloc pa = { 0 };
	uint32_t pages[12];
	bool is_seen[10] = { false };

	(void)state;
	assert_int_equal(mri_page_alloc_init(&pa, ctx, 10), 0);
	assert_int_equal(mri_page_alloc_bulk(&pa, pages, 0), 0);
	assert_int_equal(mri_page_alloc_bulk(&pa, pages, 4), 4);
	assert_int_equal(mri_page_alloc_bulk(&pa, pages + 4, 8), 6);
	assert_int_equal(mri_page_alloc_bulk(&pa, pages + 10, 1), 0);
	for (int i = 0; i < 10; i++) {
		assert_true(pages[i] < 10 && !is_seen[pages[i]]);
		is_seen[pages[i]] = true;
	}
	mri_page_alloc_fini(&pa, ctx);
	mr_ctx_destroy(ctx);
	assert_int_equal(a.n_out, 0);
}

/* What came back last is still in a core's cache. */
static void last_freed_first_allocated(void **state)
{
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	struct mri_page_alloc pa = { 0 };
	const uint32_t back[] = { 7, 3 };
	uint32_t pages[10];

	(void)state;
	assert_int_equal(mri_page_alloc_init(&pa, ctx, 10), 0);
	assert_int_equal(mri_page_alloc_bulk(&pa, pages, 10), 10);
	mri_page_free_bulk(&pa, back, 2);
	mri_page_free_bulk(&pa, back, 0);
	assert_int_equal(mri_page_alloc_bulk(&pa, pages, 1), 1);
	assert_int_equal(pages[0], 3);
	assert_int_equal(mri_page_alloc_bulk(&pa, pages, 1), 1);
	assert_int_equal(pages[0], 7);
	mri_page_alloc_fini(&pa, ctx);
	mr_ctx_destroy(ctx);
}

static void no_memory_is_enomem(void **state)
{
	struct test_allocator a = { 0 };
	struct mr_ctx *ctx = test_ctx(&a);
	struct mri_page_alloc pa = { 0 };

	(void)state;
	a.fail_at = a.n_calls + 1;
	assert_int_equal(mri_page_alloc_init(&pa, ctx, 10), -ENOMEM);
	assert_int_equal(a.n_out, 1);
	mr_ctx_destroy(ctx);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_handed_out_once_each),
		cmocka_unit_test(last_freed_first_allocated),
		cmocka_unit_test(no_memory_is_enomem),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

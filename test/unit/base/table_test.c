/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/table.c: memory for tables. */
#include "support/unit.h"

#include "base/base.h"

TEST(tables_are_zeroed_aligned_and_separate)
{
	const size_t n_bytes = 100000;
	uint8_t *one = mri_table_alloc(n_bytes, n_bytes / 2);
	uint8_t *other = mri_table_alloc(n_bytes, 0);

	assert_non_null(one);
	assert_non_null(other);
	assert_int_equal((uintptr_t)one % (2 * MRI_CACHE_LINE), 0);
	memset(other, 0xff, n_bytes);
	for (size_t i = 0; i < n_bytes; i++)
		assert_int_equal(one[i], 0);
	mri_table_free(one);
	mri_table_free(other);
	mri_table_free(NULL);
}

TEST(a_table_without_memory_is_null)
{
	assert_null(mri_table_alloc((size_t)1 << 60, 0));
}

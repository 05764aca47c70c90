/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/reason.c and sized.c. */
#include "support/unit.h"

#include <millrace/driver_base.h>

#include "base/base.h"

/* A struct of this version: three members behind the size. */
struct sized {
	uint32_t size, a, b, c;
};

TEST(reason_is_one_line_and_cut_off)
{
	struct mr_reason why;
	char longer[600];

	assert_int_equal(mr_fail(&why, -EIO, "two\nlines %d", 1), -EIO);
	assert_string_equal(why.text, "two lines 1");
	memset(longer, 'y', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	assert_int_equal(mr_fail(&why, -EPERM, "%s", longer), -EPERM);
	assert_int_equal(strlen(why.text), sizeof(why.text) - 1);
	assert_int_equal(mr_fail(NULL, -EBUSY, "%s", longer), -EBUSY);
}

TEST(too_many_files_has_its_remedy)
{
	assert_non_null(strstr(mr_strerror(EMFILE), "ulimit -n"));
	assert_non_null(strstr(mr_strerror(ENFILE), "fs.file-max"));
	assert_string_equal(mr_strerror(ENOENT), strerror(ENOENT));
}

TEST(a_shorter_config_is_completed_with_zeros)
{
	static const struct {
		uint32_t size;
		int err;
		struct sized want;
	} cases[] = {
		{ 0, -EINVAL, { 0 } },          { 3, -EINVAL, { 0 } },
		{ 4, 0, { 4, 0, 0, 0 } },       { 8, 0, { 8, 1, 0, 0 } },
		{ 10, 0, { 10, 1, 2, 0 } }, /* little end of b */
		{ 16, 0, { 16, 1, 2, 3 } },     { 17, -EINVAL, { 0 } },
		{ UINT32_MAX, -EINVAL, { 0 } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct sized from = { cases[i].size, 1, 2, 3 };
		struct sized to = { 9, 9, 9, 9 };
		struct mr_reason why = { "" };

		assert_int_equal(
			mri_copy_sized(&to, &from, sizeof(to), "sized", &why),
			cases[i].err);
		assert_memory_equal(&to, &cases[i].want, sizeof(to));
		if (cases[i].err < 0)
			assert_reason_has(&why, "sizeof(struct sized)");
	}
}

TEST(no_config_is_all_defaults)
{
	const struct sized want = { sizeof(want), 0, 0, 0 };
	struct sized to = { 9, 9, 9, 9 };

	assert_int_equal(mri_copy_sized(&to, NULL, sizeof(to), "sized", NULL),
			 0);
	assert_memory_equal(&to, &want, sizeof(to));
}

/* A caller of an older version has a shorter struct, of a newer one a longer.
 */
TEST(statistics_fill_only_the_size_that_the_caller_has)
{
	static const struct {
		uint32_t size;
		int err;
		uint32_t want[6];
	} cases[] = {
		{ 0, -EINVAL, { 0, 9, 9, 9, 9, 9 } },
		{ 3, -EINVAL, { 3, 9, 9, 9, 9, 9 } },
		{ 4, 0, { 4, 9, 9, 9, 9, 9 } },
		{ 12, 0, { 12, 1, 2, 9, 9, 9 } },
		{ 16, 0, { 16, 1, 2, 3, 9, 9 } },
		{ 20, 0, { 20, 1, 2, 3, 0, 9 } },
		{ 24, 0, { 24, 1, 2, 3, 0, 0 } },
	};
	const struct sized from = { 77, 1, 2, 3 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t to[6] = { cases[i].size, 9, 9, 9, 9, 9 };

		assert_int_equal(mri_fill_sized(to, &from, sizeof(from)),
				 cases[i].err);
		assert_memory_equal(to, cases[i].want, sizeof(to));
	}
}

TEST(rounding_up_and_powers_of_two_are_right)
{
	assert_int_equal(mri_round_up(0, 64), 0);
	assert_int_equal(mri_round_up(1, 64), 64);
	assert_int_equal(mri_round_up(64, 64), 64);
	assert_int_equal(mri_round_up((UINT64_C(1) << 40) + 1, 4096),
			 (UINT64_C(1) << 40) + 4096);
	assert_false(mri_is_power_of_two(0));
	assert_true(mri_is_power_of_two(1));
	assert_false(mri_is_power_of_two(3));
	assert_true(mri_is_power_of_two(UINT64_C(1) << 63));
	assert_int_equal(mri_min_u32(UINT32_MAX, 1), 1);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/mem/listen.c. */
#include "support/unit_ctx.h"

#include <millrace/driver_base.h>
#include <millrace/driver_mem.h>

#include "mem/mem.h"

/* What a listener knows of, by the place of its address in 64 KiB. */
struct ear {
	uint32_t known;
	int err;
	uint64_t refuses; /* this address */
	const struct mr_region *region;
	bool was_backed; /* it was told too late */
};

static int note_segment(void *opaque, const struct mr_segment_info *segment,
			struct mr_reason *reterr_reason)
{
	struct ear *ear = opaque;

	if (ear->err < 0 && segment->addr == ear->refuses)
		return mr_fail(reterr_reason, ear->err, "not that one");
	assert_int_equal(ear->known & 1u << segment->addr / 65536, 0);
	ear->known |= 1u << segment->addr / 65536;
	ear->was_backed = mr_region_is_backed(ear->region, segment->addr, 1);
	return 0;
}

static void forget(void *opaque, const struct mr_segment_info *segment)
{
	struct ear *ear = opaque;

	assert_int_not_equal(ear->known & 1u << segment->addr / 65536, 0);
	ear->known &= ~(1u << segment->addr / 65536);
}

static int grow_region(struct mr_region *region, struct mr_reason *reason)
{
	const struct mri_segment_wish wish = { MRI_ADDR_ANY, 65536, 0, 0 };
	struct mr_segment_info info;

	return mri_region_add(region, &wish, &info, reason);
}

static struct mr_region *make_region(void)
{
	const struct mr_region_config config = { .size = sizeof(config),
						 .os_pages = MR_OS_PAGES_4K };
	struct mr_region *region = NULL;

	assert_int_equal(mr_region_create(ctx, &config, &region, NULL), 0);
	assert_int_equal(grow_region(region, NULL), 0);
	assert_int_equal(grow_region(region, NULL), 0);
	return region;
}

TEST_CTX(a_listener_learns_of_every_segment)
{
	struct mr_region *region = make_region();
	struct ear ear = { .region = region };

	assert_int_equal(
		mr_region_listen(region, note_segment, forget, &ear, NULL), 0);
	assert_int_equal(ear.known, 3);
	assert_int_equal(grow_region(region, NULL), 0);
	assert_int_equal(ear.known, 7);
	assert_false(ear.was_backed);
	mr_region_unlisten(region, &ear);
	assert_int_equal(ear.known, 0);
	assert_int_equal(grow_region(region, NULL), 0);
	assert_int_equal(ear.known, 0);
	assert_int_equal(mr_region_destroy(region, NULL), 0);
}

TEST_CTX(a_listener_that_refuses_is_not_registered)
{
	struct mr_region *region = make_region();
	struct ear ear = { .region = region, .err = -EIO, .refuses = 65536 };
	struct mr_reason why = { "" };

	assert_int_equal(
		mr_region_listen(region, note_segment, forget, &ear, &why),
		-EIO);
	assert_reason_has(&why, "not that one");
	assert_int_equal(ear.known, 0);
	assert_int_equal(grow_region(region, NULL), 0);
	assert_int_equal(ear.known, 0);
	assert_int_equal(mr_region_destroy(region, NULL), 0);
}

TEST_CTX(a_segment_that_one_listener_refuses_is_undone)
{
	struct mr_region *region = make_region();
	struct ear ears[3] = {
		{ .region = region },
		{ .region = region, .err = -ENOMEM, .refuses = 2 * 65536 },
		{ .region = region }
	};
	struct mr_segment_info info;
	struct mr_reason why = { "" };

	for (int i = 0; i < 3; i++)
		assert_int_equal(mr_region_listen(region, note_segment, forget,
						  &ears[i], NULL),
				 0);
	assert_int_equal(grow_region(region, &why), -ENOMEM);
	assert_reason_has(&why, "not that one");
	for (int i = 0; i < 3; i++)
		assert_int_equal(ears[i].known, 3);
	assert_int_equal(mr_region_segment(region, 2, &info), -ENOENT);
	assert_false(mr_region_is_backed(region, 2 * 65536, 1));
	mr_region_unlisten(region, &ears[1]);
	assert_int_equal(grow_region(region, NULL), 0);
	assert_int_equal(ears[0].known, 7);
	assert_int_equal(ears[1].known, 0);
	assert_int_equal(ears[2].known, 7);
	mr_region_unlisten(region, &ears[0]);
	mr_region_unlisten(region, &ears[2]);
	assert_int_equal(mr_region_destroy(region, NULL), 0);
}

TEST_CTX(listeners_beyond_the_limit_are_refused)
{
	struct mr_region *region = make_region();
	struct ear ears[MRI_MAX_LISTENERS + 1] = { { 0 } };
	struct mr_reason why = { "" };

	for (int i = 0; i <= MRI_MAX_LISTENERS; i++) {
		ears[i].region = region;
		assert_int_equal(mr_region_listen(region, note_segment, forget,
						  &ears[i], &why),
				 i < MRI_MAX_LISTENERS ? 0 : -ENOSPC);
	}
	assert_reason_has(&why, "room for 64 listeners");
	assert_int_equal(ears[MRI_MAX_LISTENERS].known, 0);
	for (int i = 0; i < MRI_MAX_LISTENERS; i++)
		mr_region_unlisten(region, &ears[i]);
	assert_int_equal(mr_region_destroy(region, NULL), 0);
}

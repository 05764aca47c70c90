/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/flow/slab.c. */
#include "support/flow_unit.h"

/* 512 items of 4096 bytes are a chunk. */
enum { ITEM = 4096, CHUNK = 512, MIB = 1 << 20 };

static bool has_no_memory;

int __real_mprotect(void *at, size_t n, int prot);
int __wrap_mprotect(void *at, size_t n, int prot);

int __wrap_mprotect(void *at, size_t n, int prot)
{
	return has_no_memory ? -1 : __real_mprotect(at, n, prot);
}

static void take_slots(struct mri_slab *slab, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t item = mri_slab_take(slab);

		assert_true(item < slab->n_max);
		memset(mri_slab_at(slab, item), 0xff, slab->item_bytes);
	}
}

static void put_slots(struct mri_slab *slab, uint32_t first, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		mri_slab_put(slab, first + i);
}

static uint64_t in_memory(const struct mri_slab *slab)
{
	return resident_bytes(slab->space.base, slab->space.max_bytes);
}

TEST_CTX(numbers_are_dense_and_reused)
{
	struct mri_slab slab;

	assert_int_equal(mri_slab_init(&slab, ctx, 1000, ITEM, 0), 0);
	for (uint32_t i = 0; i < 1000; i++)
		assert_int_equal(mri_slab_take(&slab), i);
	assert_false(mri_slab_has_room(&slab));
	assert_int_equal(mri_slab_take(&slab), MR_FLOW_NONE);
	assert_int_equal(slab.n, 1000);
	/* Last in, first out. */
	mri_slab_put(&slab, 7);
	mri_slab_put(&slab, 300);
	assert_int_equal(mri_slab_take(&slab), 300);
	assert_int_equal(mri_slab_take(&slab), 7);
	/* What is full and has a place again is filled in that order. */
	mri_slab_put(&slab, 600);
	mri_slab_put(&slab, 8);
	assert_int_equal(mri_slab_take(&slab), 600);
	assert_int_equal(mri_slab_take(&slab), 8);
	assert_int_equal(mri_slab_take(&slab), MR_FLOW_NONE);
	mri_slab_fini(&slab, ctx);
}

TEST_CTX(chunks_end_at_a_huge_page)
{
	static const uint32_t sizes[] = { 8, 24, 64, 72, 96, 4096, 4088 };
	struct mri_slab slab;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(mri_slab_init(&slab, ctx, 10, sizes[i], 0), 0);
		assert_int_equal(((uint64_t)sizes[i] << slab.chunk_shift) %
					 MRI_SPACE_STEP,
				 0);
		assert_int_equal(mri_slab_take(&slab), 0);
		assert_int_equal((uint8_t *)mri_slab_at(&slab, 3) -
					 slab.space.base,
				 3 * sizes[i]);
		mri_slab_fini(&slab, ctx);
	}
}

TEST_CTX(an_empty_chunk_is_returned)
{
	struct mri_slab slab;

	assert_int_equal(mri_slab_init(&slab, ctx, 3 * CHUNK, ITEM, 0), 0);
	take_slots(&slab, 3 * CHUNK);
	assert_int_equal(in_memory(&slab), 6 * MIB);
	assert_int_equal(mri_slab_bytes(&slab), 6 * MIB);
	/* The only one that has a place stays. */
	put_slots(&slab, CHUNK, CHUNK);
	assert_int_equal(in_memory(&slab), 6 * MIB);
	put_slots(&slab, 2 * CHUNK, CHUNK - 1);
	assert_int_equal(in_memory(&slab), 6 * MIB);
	mri_slab_put(&slab, 3 * CHUNK - 1);
	assert_int_equal(in_memory(&slab), 4 * MIB);
	assert_int_equal(mri_slab_bytes(&slab), 4 * MIB);
	/* And is used again when it is needed. */
	take_slots(&slab, 2 * CHUNK);
	assert_int_equal(mri_slab_take(&slab), MR_FLOW_NONE);
	assert_int_equal(in_memory(&slab), 6 * MIB);
	/* With the last item all go, and the first numbers come first. */
	put_slots(&slab, CHUNK, 2 * CHUNK);
	put_slots(&slab, 0, CHUNK);
	assert_int_equal(slab.n, 0);
	assert_int_equal(in_memory(&slab), 0);
	assert_int_equal(mri_slab_bytes(&slab), 0);
	assert_int_equal(mri_slab_take(&slab), 0);
	mri_slab_fini(&slab, ctx);
}

TEST_CTX(up_to_64_kib_stay_allocated)
{
	struct mri_slab slab;

	assert_int_equal(mri_slab_init(&slab, ctx, CHUNK, ITEM, 0), 0);
	take_slots(&slab, 16);
	put_slots(&slab, 0, 16);
	assert_int_equal(in_memory(&slab), 64 << 10);
	assert_int_equal(mri_slab_bytes(&slab), 64 << 10);
	take_slots(&slab, 17);
	put_slots(&slab, 0, 17);
	assert_int_equal(in_memory(&slab), 0);
	assert_int_equal(mri_slab_bytes(&slab), 0);
	mri_slab_fini(&slab, ctx);
}

TEST_CTX(the_first_memory_is_kept)
{
	const uint32_t n_start = CHUNK / 2;
	struct mri_slab slab;

	assert_int_equal(mri_slab_init(&slab, ctx, 2 * CHUNK, ITEM, n_start),
			 0);
	assert_int_equal(in_memory(&slab), 1 * MIB);
	assert_int_equal(mri_slab_bytes(&slab), 1 * MIB);
	for (int i = 0; i < 2; i++) {
		take_slots(&slab, 2 * CHUNK);
		assert_int_equal(in_memory(&slab), 4 * MIB);
		assert_int_equal(mri_slab_bytes(&slab), 4 * MIB);
		put_slots(&slab, 0, 2 * CHUNK);
		assert_int_equal(in_memory(&slab), 1 * MIB);
		assert_int_equal(mri_slab_bytes(&slab), 1 * MIB);
	}
	mri_slab_fini(&slab, ctx);
}

TEST_CTX(no_memory_is_an_error_and_changes_nothing)
{
	struct mri_slab slab;

	allocator.fail_at = allocator.n_calls + 1;
	assert_int_equal(mri_slab_init(&slab, ctx, 10, ITEM, 0), -ENOMEM);
	has_no_memory = true;
	assert_int_equal(mri_slab_init(&slab, ctx, 10, ITEM, 1), -ENOMEM);
	assert_int_equal(mri_slab_init(&slab, ctx, 2 * CHUNK, ITEM, 0), 0);
	assert_false(mri_slab_has_room(&slab));
	assert_int_equal(mri_slab_take(&slab), MR_FLOW_NONE);
	has_no_memory = false;
	take_slots(&slab, CHUNK);
	has_no_memory = true;
	assert_int_equal(mri_slab_take(&slab), MR_FLOW_NONE);
	assert_int_equal(slab.n, CHUNK);
	/* As many as were put can be had, all or a few. */
	put_slots(&slab, 5, 3);
	take_slots(&slab, 3);
	put_slots(&slab, 0, CHUNK);
	take_slots(&slab, CHUNK);
	assert_int_equal(mri_slab_take(&slab), MR_FLOW_NONE);
	has_no_memory = false;
	take_slots(&slab, CHUNK);
	mri_slab_fini(&slab, ctx);
}

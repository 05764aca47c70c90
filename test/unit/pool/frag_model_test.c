/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test of lib/pool/frag.c, block.c and block_refs.c: long random sequences of
 * operations with fixed seeds, against a model that knows what is where.
 */
#include "support/pool_unit.h"

#define MODEL_CHECK(promise) assert_true(promise)
#include "support/frag_model.h"

static void frags_do_as_the_model_says(uint32_t n_pages, uint32_t page_bytes,
				       uint64_t seed)
{
	static struct model model;
	struct pool_fixture f;
	uint64_t random = seed;

	fixture_open(&f, n_pages, page_bytes);
	model_open(&model, f.pool);
	for (int i = 0; i < 40000; i++) {
		const uint32_t r = test_random(&random, 1 << 16);

		model_step(&model, (uint8_t)(r >> 8), (uint8_t)r);
		if (i % 16 == 0)
			model_check_pool(&model);
	}
	model_close(&model);
	fixture_close(&f);
}

TEST(plenty_of_pages)
{
	frags_do_as_the_model_says(4096, 4096, 1);
	frags_do_as_the_model_says(1024, 8192, 2);
	frags_do_as_the_model_says(4096, 2048, 3);
	frags_do_as_the_model_says(512, 32768, 4);
}

TEST(too_few_pages)
{
	frags_do_as_the_model_says(40, 4096, 5);
	frags_do_as_the_model_says(7, 4096, 6);
	frags_do_as_the_model_says(3, 16384, 7);
	frags_do_as_the_model_says(90, 2048, 8);
	frags_do_as_the_model_says(1, 32768, 9);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool (cache.c, free.c, direct.c, frame.c, page_bulk.c,
 * segments.c, safety.c and others) by long random sequences of calls with
 * fixed seeds, against a model: pool_model.h. After each call the statistics
 * must say the same. Frags of any size have a model of their own: frag_model.h.
 */
#include "support/pool_steps.h"

static void run_sequence(struct mr_pool_config config, uint64_t seed)
{
	static struct model m;

	memset(&m, 0, sizeof(m));
	m.random = seed * UINT64_C(0x9e3779b97f4a7c15);
	model_open(&m, config);
	for (uint32_t i = 0; i < 3000; i++)
		step(&m);
	model_close(&m);
}

TEST(plain_pools)
{
	static const struct mr_pool_config configs[] = {
		{ .n_pages = 256 },
		{ .n_pages = 600, .page_bytes = 2048 },
		{ .n_pages = 60, .page_bytes = 32768 },
		{ .n_pages = 90, .page_bytes = 8192 },
		{ .n_pages = 300, .page_bytes = 16384 },
		{ .n_pages = 1024, .magazine_pages = 128 },
		{ .n_pages = 3000, .page_bytes = 2048, .magazine_pages = 512 },
		{ .n_pages = 100, .max_pages = 1024, .segment_pages = 128 },
		{ .n_pages = 64,
		  .max_pages = 256,
		  .segment_pages = 64,
		  .page_bytes = 8192 },
	};

	for (uint32_t i = 0; i < sizeof(configs) / sizeof(configs[0]); i++)
		for (uint64_t seed = 1; seed <= 2; seed++)
			run_sequence(configs[i], seed);
}

TEST(checked_pools)
{
	for (int level = MR_SAFETY_STATES; level <= MR_SAFETY_POISON; level++) {
		struct mr_pool_config config = {
			.n_pages = 300, .safety = (enum mr_safety)level
		};

		run_sequence(config, 3);
		config.n_pages = 100;
		config.page_bytes = 8192;
		run_sequence(config, 4);
		config.max_pages = 300;
		config.segment_pages = 64;
		run_sequence(config, 5);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: sequences of operations on frag caches, against the model of
 * support/frag_model.h.
 *
 * Two bytes choose the pool, then each operation takes two: what, and with
 * what.
 */
#include <millrace/driver.h>
#include <millrace/millrace.h>

#include "region.h"

#define MODEL_CHECK(promise) FUZZ_CHECK(promise)
#include "support/frag_model.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* Cut, abort, abort the reference, prepare, commit, lengthen. */
	SEED("\x11\x20\x00\x01\x00\x62\x04\x00\x00\x03\x14\x00\x06\x63\x08\x02"
	     "\x06\x01\x09\x01\x08\x01\x1a\x07\x0e\x00"),
	/* Bulk, freed by the other cache one by one, owners, drain. */
	SEED("\x11\x10\xf3\x07\xf3\x04\x2a\x85\x2a\x85\x0d\x00\x0d\x01\xf3\x88"
	     "\x1a\x3f\x1a\x3f\x0e\x00\x2b\x8f\x1a\x3f"),
	/* A pool smaller than a block; pages of 32 KiB. */
	SEED("\x11\x02\x00\x0c\x00\x0b\xf3\x07\x00\x0e\x1a\x3f\xfe\x00\x00\x01"
	     "\xfe\x80\x06\x0d\x08\x0d"),
	SEED("\x14\x03\x00\x0e\x00\x01\xf3\x08\x0a\x3f\x0f\x80\x0f\x00\x06\x74"
	     "\x08\x04"),
	{ NULL, 0 },
};

static struct mr_pool *open_pool(struct mr_ctx *ctx, struct mr_region *region,
				 uint8_t shape, uint8_t n_pages)
{
	const struct mr_pool_config config = {
		.size = sizeof(config),
		.n_pages = 1 + n_pages % 128 * (n_pages >= 128 ? 4 : 1),
		.page_bytes = 2048u << (shape & 15) % 5,
		.region = region,
	};
	struct mr_pool *pool = NULL;

	FUZZ_CHECK(mr_pool_create(ctx, &config, &pool, NULL) == 0);
	return pool;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct mr_ctx *ctx; /* stays for the next input, as the region */
	static struct mr_region *region;
	static struct model m;
	struct mr_pool *pool;

	fuzz_region(&ctx, &region);
	if (n_bytes < 2)
		return 0;
	pool = open_pool(ctx, region, data[0], data[1]);
	model_open(&m, pool);
	for (size_t i = 2; i + 1 < n_bytes && i < 600; i += 2) {
		model_step(&m, data[i], data[i + 1]);
		if (i % 16 == 0)
			model_check_pool(&m);
	}
	model_close(&m);
	FUZZ_CHECK(mr_pool_destroy(pool, NULL) == 0);
	return 0;
}

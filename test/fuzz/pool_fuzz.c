/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: sequences of pool operations, against the model of
 * support/pool_model.h.
 *
 * Two bytes choose the pool, the others are what the model would choose at
 * random: which step, with which cache, of what and how many.
 */
#include <stdlib.h>

#include "fuzz.h"

#include "support/pool_steps.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* Buffers of pages of 4 KiB, freed by two caches; references. */
	SEED("\x01\x30\x00\x00\x01\x00\x40\x01\x02\x00\x01\x01\x30\x00"
	     "\x06\x00\x20\x05\x10\x06\x10\x07\x10\x00\x0b\x00\x08\x13"
	     "\x00\x01\x02\x03\x04\x05\x06\x07\x0d\x00\x03\x01\x0c\x00"),
	/* Pages of 8 KiB; a pool that grows; blocks. */
	SEED("\x92\x20\x01\x00\x02\x01\x3f\x01\x04\x00\x02\x00\x05\x00"
	     "\x05\x01\x01\x01\x0e\x00\x03\x09\x00\x01\x10\x01\x0e\x01\x04"),
	/* Checked pools, and what is wrong. */
	SEED("\x41\x40\x00\x00\x01\x00\x20\x01\x0f\x00\x01\x02\x0f\x01\x02"
	     "\x06\x00\x08\x01\x00\x02\x01\x06\x00\x08\x00\x00\x01\x00"),
	{ NULL, 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct model m;
	struct mr_pool_config config = { 0 };

	if (n_bytes < 2)
		return 0;
	/* A failed assertion is a crash. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	config.n_pages = 1 + data[1] * 2u;
	config.page_bytes = 2048u << (data[0] & 15) % 5;
	config.safety = (enum mr_safety)((data[0] >> 5 & 3) % 3);
	if (data[0] & 128) {
		config.max_pages = config.n_pages + 512;
		config.segment_pages = 128;
	}
	memset(&m, 0, sizeof(m));
	m.random = UINT64_C(0x9e3779b97f4a7c15);
	m.bytes = data + 2;
	m.n_bytes = n_bytes - 2;
	model_open(&m, config);
	for (uint32_t i = 0; m.n_bytes > 0 && i < 200; i++)
		step(&m);
	m.bytes = NULL;
	model_close(&m);
	return 0;
}

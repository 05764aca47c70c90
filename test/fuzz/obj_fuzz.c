/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzz target: sequences of operations on an object pool, against the model of
 * support/obj_model.h.
 *
 * Four bytes choose the pool, then each operation takes two: what, and with
 * which cache and how many.
 */
#include <stdlib.h>

#include "fuzz.h"

#include "support/obj_model.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* Objects of 24 bytes: bursts of all lengths by two caches. */
	SEED("\x17\x00\x96\x00\x00\x3f\x00\x7f\x04\x3f\x0d\x3f\x0c\x7f"
	     "\x00\x1f\x04\x1f\x15\x3f\x14\x3f"),
	/* Caches that end with odd numbers left in them. */
	SEED("\x40\x01\xff\x00\x00\x25\x03\x00\x04\x13\x03\x00\x00\x3f"
	     "\x04\x07\x03\x40\x03\x80\x00\x3f\x04\x3f\x03\x00"),
	/* Memory of the caller's; addresses that are none. */
	SEED("\x40\x03\x50\x03\x04\x3f\x0c\x05\x0d\x85\x00\x3f\x0e\x3f"
	     "\x00\x3f\x00\x3f\x04\x7f"),
	/* Magazines of 256, and long bursts. */
	SEED("\x07\x00\xff\x09\xc0\x3f\xc1\x7f\xc4\x1f\xd5\x3f\xc0\x9f"
	     "\x03\x00\xc4\x3f\x45\x3f"),
	{ NULL, 0 },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
	static struct obj_model m;

	if (n_bytes < 4)
		return 0;
	/* A failed assertion is a crash. */
	setenv("CMOCKA_TEST_ABORT", "1", 1);
	obj_model_open(&m,
		       (struct mr_objpool_config){
			       .object_bytes = data[0] + 1u,
			       .align_bytes = 8u << data[1] % 4,
			       .n_objects = 1 + (data[2] | (data[3] & 1u) << 8),
			       .magazine_objects = 64u << (data[3] >> 2 & 3),
		       },
		       data[3] & 2);
	for (size_t i = 4; i + 1 < n_bytes && i < 400; i += 2)
		obj_model_step(&m, data[i], data[i + 1]);
	obj_model_close(&m);
	return 0;
}

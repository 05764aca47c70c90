/* SPDX-License-Identifier: BSD-3-Clause */
/* Saved sessions from anywhere: all of them, or none and a reason. */
#include <string.h>

#include "control/save.h"
#include "fuzz.h"

/* An empty file of ours, but for its sum, and the beginning of one with a
 * session. */
const struct fuzz_seed fuzz_seeds[] = {
	{ "mr-nat\n\0\1\0\0\0\50\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
	  "\0\0\0\0\0\0\0\0",
	  40 },
	{ "mr-nat\n\0\1\0\0\0\50\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
	  "\12\0\0\5\300\0\2\1\313\0\161\11",
	  44 },
	{ NULL, 0 },
};

static bool take_session(void *opaque, const struct nat_session *session)
{
	uint64_t *n = opaque;

	FUZZ_CHECK(session->left_s > 0);
	++*n;
	return true;
}

/* FNV-1a as the format has it, so that what is behind the sum is reached. */
static uint64_t sum_of(const uint8_t *bytes, size_t n, uint64_t sum)
{
	for (size_t i = 0; i + 8 <= n; i += 8) {
		uint64_t word = 0;

		for (uint32_t b = 8; b > 0; b--)
			word = word << 8 | bytes[i + b - 1];
		sum = (sum ^ word) * 0x100000001b3ull;
		sum ^= sum >> 32;
	}
	return sum;
}

static int parse_saved(const uint8_t *bytes, size_t n_bytes, uint64_t *ret_n)
{
	struct mr_reason why = { .text = "" };
	const int err = nat_saved_parse("file", bytes, n_bytes, 1000, false,
					take_session, ret_n, &why);

	FUZZ_CHECK(err == 0 || *ret_n == 0);
	FUZZ_CHECK((err == 0) == (why.text[0] == '\0'));
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	uint8_t copy[32 + 8 * 40 + 8];
	uint64_t n = 0, sum;

	if (parse_saved(bytes, n_bytes, &n) == 0)
		FUZZ_CHECK(n <= n_bytes / 40);
	/* The same with the right length and sum. */
	if (n_bytes < 40 || n_bytes > sizeof(copy))
		return 0;
	memcpy(copy, bytes, n_bytes);
	n_bytes -= (n_bytes - 40) % 40;
	copy[24] = (uint8_t)((n_bytes - 40) / 40);
	memset(copy + 25, 0, 7);
	sum = sum_of(copy, 32, sum_of(copy + 32, n_bytes - 40, 0));
	for (uint32_t b = 0; b < 8; b++)
		copy[n_bytes - 8 + b] = (uint8_t)(sum >> 8 * b);
	n = 0;
	if (parse_saved(copy, n_bytes, &n) == 0)
		FUZZ_CHECK(n <= copy[24]);
	else /* what is left to object to is in front */
		FUZZ_CHECK(memcmp(copy, "mr-nat\n\0\1\0\0\0\50\0\0\0", 16) !=
			   0);
	return 0;
}

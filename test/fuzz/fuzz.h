/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a fuzz target gives: one function that takes any bytes and stops the
 * program if a promise is broken, and inputs to begin with. The function has
 * libFuzzer's name, so a target also links with clang -fsanitize=fuzzer.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

struct fuzz_seed {
	const char *bytes;
	size_t n_bytes;
};

/* A literal as a seed, with the zero bytes in it. */
#define SEED(text)                                                             \
	{                                                                      \
		text, sizeof(text) - 1                                         \
	}

/* Inputs that get past the first checks; a NULL at the end. */
extern const struct fuzz_seed fuzz_seeds[];

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

/* Stop, saying which promise was broken; on in every kind of build. */
#define FUZZ_CHECK(promise) \
	((promise) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #promise))

_Noreturn void fuzz_broken(const char *file, int line, const char *promise);

#endif

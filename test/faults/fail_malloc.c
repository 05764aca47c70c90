/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to preload. It makes allocation number MR_FAIL_AT fail, and writes
 * the number of the first allocation of each place in the code to the file
 * MR_FAIL_LOG.
 *
 * Source: dladdr(3), ld.so(8).
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { N_PLACES = 1 << 14 };

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t n_bytes);
void *__libc_realloc(void *old, size_t n);
void *__libc_memalign(size_t align, size_t n);
void *aligned_alloc(size_t align, size_t n);
int posix_memalign(void **ret, size_t align, size_t n);

static _Atomic uint64_t n_calls;
static _Atomic uintptr_t places[N_PLACES];
static uint64_t fail_at;
static int log_fd = -1;

__attribute__((constructor)) static void begin(void)
{
	const char *at = getenv("MR_FAIL_AT"), *log = getenv("MR_FAIL_LOG");

	if (log != NULL)
		log_fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC,
			      0600);
	n_calls = 0;
	fail_at = at != NULL ? strtoull(at, NULL, 10) : 0;
	/* Not in the programs that this one starts. */
	unsetenv("LD_PRELOAD");
}

static bool is_new(uintptr_t place)
{
	for (uint32_t i = place * UINT64_C(0x9e3779b97f4a7c15) >> 50;;
	     i = (i + 1) % N_PLACES) {
		uintptr_t none = 0;

		if (atomic_compare_exchange_strong(&places[i], &none, place))
			return true;
		if (none == place)
			return false;
	}
}

static bool must_fail(void *place)
{
	const uint64_t n = atomic_fetch_add(&n_calls, 1) + 1;

	if (log_fd >= 0 && is_new((uintptr_t)place))
		dprintf(log_fd, "%llu\n", (unsigned long long)n);
	if (n != fail_at)
		return false;
	errno = ENOMEM;
	return true;
}

void *malloc(size_t n)
{
	return must_fail(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t n_bytes)
{
	return must_fail(__builtin_return_address(0)) ? NULL :
						    __libc_calloc(n, n_bytes);
}

void *realloc(void *old, size_t n)
{
	return must_fail(__builtin_return_address(0)) ? NULL :
						    __libc_realloc(old, n);
}

void *aligned_alloc(size_t align, size_t n)
{
	return must_fail(__builtin_return_address(0)) ? NULL :
						    __libc_memalign(align, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
	if (must_fail(__builtin_return_address(0)))
		return ENOMEM;
	*ret = __libc_memalign(align, n);
	return *ret == NULL ? ENOMEM : 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by unit tests: cmocka, and a context that can fail. */
#ifndef SUPPORT_UNIT_H
#define SUPPORT_UNIT_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/limit.h"
#include "support/random.h"
#include "support/test.h"

#include <millrace/ctx.h>
#include <millrace/error.h>

/*
 * An allocator that fails once, or never, and counts live blocks, atomically,
 * since some tests have several threads.
 */
struct test_allocator {
	uint32_t fail_at; /* the call that fails, from 1; 0: none */
	uint32_t n_calls;
	int32_t n_out;    /* allocated and not freed */
	uint32_t n_lines; /* of the log */
	char last_line[512];
};

static inline void *hook_alloc(void *opaque, size_t align_bytes, size_t n_bytes)
{
	struct test_allocator *a = opaque;
	void *memory;

	if (__atomic_add_fetch(&a->n_calls, 1, __ATOMIC_RELAXED) == a->fail_at)
		return NULL;
	/* Of exactly this size, so that ASan sees reads past the end. */
	if (posix_memalign(&memory, align_bytes, n_bytes) != 0)
		return NULL;
	/* The library must zero what it needs to. */
	memset(memory, 0xa5, n_bytes);
	__atomic_fetch_add(&a->n_out, 1, __ATOMIC_RELAXED);
	return memory;
}

static inline void hook_free(void *opaque, void *memory)
{
	struct test_allocator *a = opaque;

	__atomic_fetch_sub(&a->n_out, memory != NULL, __ATOMIC_RELAXED);
	free(memory);
}

static inline void hook_log(void *opaque, enum mr_log_level level,
			    const char *line)
{
	struct test_allocator *a = opaque;
	size_t n = strlen(line);

	(void)level;
	a->n_lines++;
	if (n >= sizeof(a->last_line))
		n = sizeof(a->last_line) - 1;
	memcpy(a->last_line, line, n);
	a->last_line[n] = '\0';
}

/* A context that uses @p allocator and clock. */
static inline struct mr_ctx *test_ctx_with(struct test_allocator *allocator,
					   mr_clock_fn *clock)
{
	const struct mr_ctx_config config = { .size = sizeof(config),
					      .opaque = allocator,
					      .log = hook_log,
					      .alloc = hook_alloc,
					      .free = hook_free,
					      .clock = clock };
	struct mr_ctx *ctx = NULL;

	assert_int_equal(mr_ctx_create(&config, &ctx, NULL), 0);
	return ctx;
}

static inline struct mr_ctx *test_ctx(struct test_allocator *allocator)
{
	return test_ctx_with(allocator, NULL);
}

/* The reason is one line, and contains the words. */
static inline void assert_reason_has(const struct mr_reason *reason,
				     const char *words)
{
	if (strstr(reason->text, words) == NULL)
		fail_msg("'%s' is not in '%s'", words, reason->text);
	assert_null(strchr(reason->text, '\n'));
}

#endif

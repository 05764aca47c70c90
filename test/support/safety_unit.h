/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by unit tests of checked pools. */
#ifndef SUPPORT_SAFETY_UNIT_H
#define SUPPORT_SAFETY_UNIT_H

#include <pthread.h>

#include "support/pool_unit.h"

#include "pool/debug/safety.h"

static inline void checked_open(struct pool_fixture *f, enum mr_safety level,
				uint32_t n_pages, uint32_t page_bytes)
{
	fixture_open(f, n_pages, page_bytes);
	mr_cache_destroy(f->cache);
	assert_int_equal(mr_pool_set_safety(f->pool, level, NULL), 0);
	assert_int_equal(mr_cache_create(f->pool, &f->cache, NULL), 0);
	f->allocator.n_lines = 0;
}

static inline void assert_log_has(const struct pool_fixture *f,
				  const char *words)
{
	if (strstr(f->allocator.last_line, words) == NULL)
		fail_msg("'%s' is not in '%s'", words, f->allocator.last_line);
	assert_null(strchr(f->allocator.last_line, '\n'));
}

/* The same for any text, after formatting the words. */
__attribute__((format(printf, 2, 3))) static inline void
assert_names(const char *text, const char *format, ...)
{
	char words[200];
	va_list args;

	va_start(args, format);
	vsnprintf(words, sizeof(words), format, args);
	va_end(args);
	if (strstr(text, words) == NULL)
		fail_msg("'%s' is not in '%s'", words, text);
}

/* Call it on another thread. */
static inline void on_thread(void *(*body)(void *), void *opaque)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, body, opaque), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

#endif

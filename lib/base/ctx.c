/* SPDX-License-Identifier: BSD-3-Clause */
/* The context and its hooks. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"

static void *default_alloc(void *opaque, size_t align_bytes, size_t n_bytes)
{
	(void)opaque;
	return aligned_alloc(align_bytes, mri_round_up(n_bytes, align_bytes));
}

static void default_free(void *opaque, void *memory)
{
	(void)opaque;
	free(memory);
}

static uint64_t default_clock(void *opaque)
{
	struct timespec t;

	(void)opaque;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void default_log(void *opaque, enum mr_log_level level, const char *line)
{
	(void)opaque;
	(void)level;
	(void)line;
}

int mr_ctx_create(const struct mr_ctx_config *config, struct mr_ctx **ret_ctx,
		  struct mr_reason *reterr_reason)
{
	struct mr_ctx_config c;
	struct mr_ctx *ctx;
	int err;

	err = mri_copy_sized(&c, config, sizeof(c), "mr_ctx_config",
			     reterr_reason);
	if (err < 0)
		return err;
	if ((c.alloc == NULL) != (c.free == NULL))
		return mr_fail(
			reterr_reason, -EINVAL,
			"mr_ctx_config: set both alloc and free, or neither");
	if (c.alloc == NULL) {
		c.alloc = default_alloc;
		c.free = default_free;
	}
	if (c.clock == NULL)
		c.clock = default_clock;
	if (c.log == NULL)
		c.log = default_log;
	if (c.sysfs == NULL)
		c.sysfs = "/sys";

	ctx = c.alloc(c.opaque, MRI_CACHE_LINE, sizeof(*ctx));
	if (ctx == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for a context");
	memset(ctx, 0, sizeof(*ctx));
	ctx->config = c;
	*ret_ctx = ctx;
	return 0;
}

void mr_ctx_destroy(struct mr_ctx *ctx)
{
	if (ctx == NULL)
		return;
	while (ctx->n_added_drivers > 0)
		mr_free(ctx, ctx->added_drivers[--ctx->n_added_drivers]);
	ctx->config.free(ctx->config.opaque, ctx);
}

uint64_t mr_ctx_now_ns(const struct mr_ctx *ctx)
{
	return ctx->config.clock(ctx->config.opaque);
}

void *mr_alloc(const struct mr_ctx *ctx, size_t align_bytes, size_t n_bytes)
{
	void *memory;

	if (align_bytes < MRI_CACHE_LINE)
		align_bytes = MRI_CACHE_LINE;
	memory = ctx->config.alloc(ctx->config.opaque, align_bytes, n_bytes);
	if (memory != NULL)
		memset(memory, 0, n_bytes);
	return memory;
}

void mr_free(const struct mr_ctx *ctx, void *memory)
{
	if (memory != NULL)
		ctx->config.free(ctx->config.opaque, memory);
}

void mr_log(const struct mr_ctx *ctx, enum mr_log_level level,
	    const char *format, ...)
{
	char line[512];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	ctx->config.log(ctx->config.opaque, level, line);
}

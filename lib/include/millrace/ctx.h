/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_CTX_H
#define MILLRACE_CTX_H

#include <stddef.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * The context: log hook, allocator and clock, and what the library keeps for
 * its user, such as the list of drivers. There is no state outside it, so a
 * process may have any number of contexts.
 */

struct mr_ctx;

/** Severity of a log line. A hook receives all of them. */
enum mr_log_level {
	MR_LOG_ERROR = 1,
	MR_LOG_WARNING = 2,
	MR_LOG_INFO = 3,
	MR_LOG_DEBUG = 4,
};

/** Receives one log line without newline, on the calling thread. */
typedef void mr_log_fn(void *opaque, enum mr_log_level level, const char *line);

/** Returns @p n_bytes of memory aligned to @p align_bytes, or NULL. */
typedef void *mr_alloc_fn(void *opaque, size_t align_bytes, size_t n_bytes);

/** Frees what the mr_alloc_fn returned; NULL is allowed. */
typedef void mr_free_fn(void *opaque, void *memory);

/** Returns nanoseconds of a monotonic clock. */
typedef uint64_t mr_clock_fn(void *opaque);

/** Hooks of a context. Zero is the default of each member but size. */
struct mr_ctx_config {
	uint32_t size;      /**< sizeof(struct mr_ctx_config) */
	uint32_t reserved;  /**< 0 */
	void *opaque;       /**< first argument of each hook */
	mr_log_fn *log;     /**< NULL: silent */
	mr_alloc_fn *alloc; /**< NULL: aligned_alloc(); set with free, or not at
			     *   all */
	mr_free_fn *free;   /**< NULL: free() */
	mr_clock_fn *clock; /**< NULL: CLOCK_MONOTONIC */
	/** Where sysfs is mounted; NULL: "/sys". Must outlive the context. */
	const char *sysfs;
};

/**
 * Create a context.
 *
 * @param      config   hooks, or NULL for the defaults; copied
 * @param[out] ret_ctx  set on success, unchanged on failure
 *
 * @return 0, or
 *   -EINVAL  config->size is 0 or larger than this library knows, or only one
 *            of alloc and free is set
 *   -ENOMEM  no memory
 *
 * Owner: the caller, of the context. Thread: any.
 */
MR_API int mr_ctx_create(const struct mr_ctx_config *config,
			 struct mr_ctx **ret_ctx,
			 struct mr_reason *reterr_reason);

/**
 * Free @p ctx; NULL is allowed. Its regions, pools and ports must be gone.
 *
 * Owner:  nobody, of the context.
 * Thread: one, with nobody else using the context.
 */
MR_API void mr_ctx_destroy(struct mr_ctx *ctx);

/**
 * Read the clock of @p ctx.
 *
 * @return nanoseconds since an arbitrary, fixed point
 *
 * Thread: any, if the hook allows it; the default does.
 * Cost:   with the default, one vDSO call.
 */
MR_API uint64_t mr_ctx_now_ns(const struct mr_ctx *ctx);

MR_END_DECLS

#endif

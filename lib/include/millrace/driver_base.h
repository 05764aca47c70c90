/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_DRIVER_BASE_H
#define MILLRACE_DRIVER_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/ctx.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * For driver authors: errors, log, counters, memory and fds.
 */

/**
 * Add to a counter that one thread writes and any thread may read.
 *
 * Thread: the writer. Cost: a load and a store.
 */
static inline void mr_counter_add(uint64_t *counter, uint64_t n)
{
	__atomic_store_n(counter,
			 __atomic_load_n(counter, __ATOMIC_RELAXED) + n,
			 __ATOMIC_RELAXED);
}

/** Read such a counter. @return its value. Thread: any. */
static inline uint64_t mr_counter_get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

/**
 * Write a reason, if the caller wants one.
 *
 * @return @p error, for "return mr_fail(reason, -EINVAL, ...)". Thread: any.
 */
MR_API int mr_fail(struct mr_reason *reason, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/** Send one line to the context's log hook. Thread: any. */
MR_API void mr_log(const struct mr_ctx *ctx, enum mr_log_level level,
		   const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/**
 * Allocate zeroed memory from the context's allocator.
 *
 * @param align_bytes  a power of two; 0: 64, one cache line
 *
 * @return NULL if there is none
 *
 * Owner: the caller; mr_free() frees it. Thread: as the hook.
 */
MR_API void *mr_alloc(const struct mr_ctx *ctx, size_t align_bytes,
		      size_t n_bytes);

/**
 * Free memory of mr_alloc(). NULL is allowed.
 *
 * Owner: the allocator. Thread: as the hook.
 */
MR_API void mr_free(const struct mr_ctx *ctx, void *memory);

/**
 * Close @p fd in children forked from now on. For an fd that keeps a queue busy
 * while any process has it open. Pass it the result of the call that makes it.
 *
 * @return @p fd, also if it is negative; or -EMFILE, with errno set, if it is
 *         1048576 or higher: then it has been closed
 *
 * Owner:  the caller, of the fd; mr_fd_close() closes it.
 * Thread: any. Cost: a lock.
 */
MR_API int mr_fd_guard(int fd) __attribute__((warn_unused_result));

/**
 * Create memory with an fd: memfd_create() of a guarded, close-on-exec fd that
 * can be sealed. Where the sysctl vm.memfd_noexec is 2, it cannot be executed.
 *
 * @param flags  more flags for memfd_create(), such as MFD_HUGETLB
 *
 * @return the fd, or -1 with errno, or as mr_fd_guard()
 *
 * Owner:  the caller, of the fd; mr_fd_close() closes it.
 * Thread: any. Cost: a system call.
 */
MR_API int mr_memfd_create(const char *name, unsigned int flags)
	__attribute__((warn_unused_result));

/**
 * Close an fd, guarded or not; -1 is allowed.
 *
 * Thread: any.
 * Cost:   that of close(); fork() in another thread does not wait for it.
 */
MR_API void mr_fd_close(int fd);

MR_END_DECLS

#endif

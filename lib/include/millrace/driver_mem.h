/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_DRIVER_MEM_H
#define MILLRACE_DRIVER_MEM_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/region.h>

MR_BEGIN_DECLS

/**
 * @file
 * For driver authors: the segments of a region.
 */

/**
 * Pin the segments of a region that begin in [0, n_bytes), so that they cannot
 * be released while a device has them registered.
 *
 * @param holder   the port's name, for messages
 *
 * @return 0, or
 *   -ENOSPC  too many holders (64)
 *
 * Thread: as mr_port_open().
 */
MR_API int mr_region_pin(struct mr_region *region, const char *holder,
			 uint64_t n_bytes);

/**
 * Undo mr_region_pin() with the same arguments.
 *
 * Owner: unchanged. Thread: as mr_port_open().
 */
MR_API void mr_region_unpin(struct mr_region *region, const char *holder,
			    uint64_t n_bytes);

/**
 * Called for a segment before any of its pages is handed out, on the thread
 * that adds it. It must not call anything that locks the region.
 *
 * @return 0, or -errno with a reason: the segment is not added
 */
typedef int mr_segment_add_fn(void *opaque,
			      const struct mr_segment_info *segment,
			      struct mr_reason *reterr_reason);

/** Called when a segment that mr_segment_add_fn accepted goes. */
typedef void mr_segment_remove_fn(void *opaque,
				  const struct mr_segment_info *segment);

/**
 * Listen to the region's segments: @p add is called for each that exists, then
 * for each that is added. Pin the region first, so that none goes.
 *
 * @return 0, what @p add returned (@p remove was then called for those it had
 *         accepted), or
 *   -ENOSPC  too many listeners (64)
 *
 * Owner: the caller, of @p opaque, until mr_region_unlisten().
 * Thread: as mr_port_open().
 */
MR_API int mr_region_listen(struct mr_region *region, mr_segment_add_fn *add,
			    mr_segment_remove_fn *remove, void *opaque,
			    struct mr_reason *reterr_reason);

/**
 * Undo mr_region_listen(): @p remove is called for each segment.
 *
 * Owner: the caller, of @p opaque. Thread: as mr_port_close().
 */
MR_API void mr_region_unlisten(struct mr_region *region, void *opaque);

/**
 * Whether bytes can be read, that is, lie in one segment, not in a gap, across
 * two segments or after the last one.
 *
 * @return whether they do
 *
 * Thread: any, in bursts too. Cost: a look at each segment; no lock.
 */
MR_API bool mr_region_is_backed(const struct mr_region *region, uint64_t addr,
				uint64_t n_bytes);

/**
 * As mr_region_is_backed(), and return the segment's bounds, so that a burst
 * need not search again. Every segment found this way is already mapped for
 * each driver that listens.
 *
 * @param[out] ret_begin  address of its first byte; set if true
 * @param[out] ret_end    address after its last byte; set if true
 *
 * Thread, Cost: as mr_region_is_backed().
 */
MR_API bool mr_region_find(const struct mr_region *region, uint64_t addr,
			   uint64_t n_bytes, uint64_t *ret_begin,
			   uint64_t *ret_end);

/**
 * How far segments back the region without a gap.
 *
 * @return bytes from address 0. Thread: as mr_port_open().
 */
MR_API uint64_t mr_region_n_contiguous_bytes(const struct mr_region *region);

MR_END_DECLS

#endif

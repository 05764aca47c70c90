/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_REGION_H
#define MILLRACE_REGION_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * Regions: the memory that every port of a program shares.
 *
 *     0                                                            max_bytes
 *     +-----------+-----------+-------------------------------------------+
 *     | segment 0 | segment 1 |   reserved, not yet backed by memory      |
 *     +-----------+-----------+-------------------------------------------+
 *
 * The whole address range is reserved at creation, so an address is an offset
 * that never moves. Memory comes in segments: one memfd each, on the largest OS
 * pages available, and reported as obtained. Pools ask for segments; programs
 * rarely do.
 */

struct mr_ctx;
struct mr_region;

/** No address of any region: an empty slot, or none was found. */
#define MR_ADDR_NONE UINT64_MAX

/** OS pages to ask for. Each value falls back to those after it. */
enum mr_os_pages {
	MR_OS_PAGES_AUTO = 0, /**< the largest that wastes no more than half */
	MR_OS_PAGES_1G = 1,
	MR_OS_PAGES_2M = 2,
	MR_OS_PAGES_THP = 3, /**< transparent huge pages */
	MR_OS_PAGES_4K = 4,
};

/** Zero is the default of each member but size. */
struct mr_region_config {
	uint32_t size;             /**< sizeof(struct mr_region_config) */
	enum mr_os_pages os_pages; /**< best OS pages to try */
	uint64_t max_bytes;        /**< address range; 0: 64 GiB */
	uint32_t numa_node_plus_1; /**< 0: the node of the calling thread */
	uint32_t reserved;         /**< 0 */
	const char *name;          /**< in /proc/PID/maps; NULL: "millrace" */
};

/** One segment, as obtained. */
struct mr_segment_info {
	uint64_t addr;          /**< offset of its first byte in the region */
	uint64_t n_bytes;
	uint64_t os_page_bytes; /**< 1 GiB, 2 MiB or 4 KiB */
	int32_t numa_node;      /**< -1: not bound */
	uint32_t n_pins;        /**< ports that have it registered */
	int32_t fd;             /**< its memfd, which is the region's: to pass to
				 *   a process that registers the memory. Sealed
				 *   against shrinking */
	uint32_t reserved_word; /**< 0 */
	uint64_t reserved[3];
	char why[160]; /**< why not larger OS pages; "" if they are the best */
};

struct mr_region_stats {
	uint32_t size;           /**< sizeof(struct mr_region_stats) */
	uint32_t n_segments;
	uint64_t n_bytes;        /**< in segments */
	uint64_t n_huge_bytes;   /**< of those on 1 GiB or 2 MiB pages */
	uint64_t max_bytes;      /**< address range */
};

/**
 * Reserve an address range for a region, without a segment.
 *
 * @param      config      or NULL for the defaults; copied
 * @param[out] ret_region  set on success
 *
 * @return 0, or
 *   -EINVAL  config->size, or a value is out of range
 *   -ENOMEM  the address range is not available
 *
 * Owner: the caller, of the region. Thread: any.
 * Cost:   one mmap() without memory behind it.
 */
MR_API int mr_region_create(struct mr_ctx *ctx,
			    const struct mr_region_config *config,
			    struct mr_region **ret_region,
			    struct mr_reason *reterr_reason);

/**
 * Free the region. NULL is allowed.
 *
 * @return 0, or, with nothing changed,
 *   -EBUSY  a pool uses it, or a port has a segment registered; the reason
 *           names the holder
 *
 * Owner:  on success nobody, on failure the caller.
 * Thread: one, with nobody else using the region.
 */
MR_API int mr_region_destroy(struct mr_region *region,
			     struct mr_reason *reterr_reason);

/**
 * Where the region begins in this process.
 *
 * @return pointer to address 0 of the region; it never changes
 *
 * Owner: the region. Thread: any. Cost: a load.
 */
MR_API void *mr_region_base(const struct mr_region *region);

/**
 * Copy the statistics of @p region.
 *
 * @return 0, or -EINVAL if stats->size, which the caller sets, is 0
 *
 * Thread: any.
 */
MR_API int mr_region_stats(const struct mr_region *region,
			   struct mr_region_stats *stats);

/**
 * Describe segment @p i, in order of their addresses.
 *
 * @return 0, or -ENOENT after the last one
 *
 * Thread: any.
 */
MR_API int mr_region_segment(const struct mr_region *region, uint32_t i,
			     struct mr_segment_info *ret_info);

MR_END_DECLS

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_DRIVER_FRAME_H
#define MILLRACE_DRIVER_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/frame.h>
#include <millrace/pool.h>

MR_BEGIN_DECLS

/**
 * @file
 * For driver authors: buffers without a cache, the room around a frame, a copy
 * of its bytes, and its partial checksum.
 */

/**
 * Allocate buffers directly from the pool, without a cache, as
 * mr_frag_alloc_bulk(). For opening a port.
 *
 * @return buffers allocated
 *
 * Owner: as mr_frag_alloc_bulk(). Thread: any. Cost: may take a lock.
 */
MR_API uint32_t mr_pool_frag_alloc_bulk(struct mr_pool *pool, uint64_t *addrs,
					uint32_t n);

/**
 * @return about how many buffers mr_pool_frag_alloc_bulk() would find now,
 *         without those in caches, in further magazines of the depot, and in
 *         segments not yet added
 *
 * Thread: any; others may take them. Cost: two loads.
 */
MR_API uint64_t mr_pool_n_direct(const struct mr_pool *pool);

/** Free buffers to the pool. Owner: the pool. Thread: any. Cost: may lock. */
MR_API void mr_pool_frag_free_bulk(struct mr_pool *pool, const uint64_t *addrs,
				   uint32_t n);

/**
 * Whether all buffers lie in [0, n_bytes) of the region. If not, call
 * mr_pool_keep_below().
 *
 * @return whether they do. Thread: any. Cost: two instructions per buffer.
 */
static inline bool mr_addrs_are_below(const uint64_t *addrs, uint32_t n,
				      uint64_t n_bytes)
{
	const uint64_t last = n_bytes - 1;
	uint64_t beyond = 0;

	/* Beyond the last, this borrows, which sets the top bit. */
	for (uint32_t i = 0; i < n; i++)
		beyond |= last - addrs[i];
	return beyond >> 63 == 0;
}

/**
 * Free the buffers outside [0, n_bytes): a device that registered only that
 * much cannot reach them. They go to the page allocator, because a cache would
 * return them from the next allocation.
 *
 * @return buffers left, at the start of @p addrs
 *
 * Owner: the pool, of those freed. Thread: any. Cost: may take a lock.
 */
MR_API uint32_t mr_pool_keep_below(struct mr_pool *pool, uint64_t *addrs,
				   uint32_t n, uint64_t n_bytes)
	__attribute__((cold));

/**
 * Whether all pages of @p pool lie in [0, n_bytes) of its region, so that a
 * device that registers that much can receive into all of them.
 *
 * @return whether they do. Thread: any. Cost: negligible.
 */
MR_API bool mr_pool_is_below(const struct mr_pool *pool, uint64_t n_bytes);

/** Bytes around an entry that belong to it alone. */
struct mr_room {
	uint32_t front_bytes; /**< before its first byte */
	uint32_t back_bytes;  /**< after its last byte */
};

/**
 * How much room an entry has, that is, what its owner may write besides its
 * bytes. Ask before writing there or keeping state per page.
 *
 * @param      frame     one entry
 * @param[out] ret_room  always set; both 0 on failure and for a frag of a frag
 *                       cache, whose neighbours share its page
 *
 * @return 0: the caller is the exclusive owner; or
 *   -EROFS   the entry has another owner
 *   -EINVAL  the entry is not of the pool of @p cache
 *
 * Owner:  unchanged. Thread: the one that uses @p cache.
 * Cost:   a few loads, none of packet memory.
 */
MR_API int mr_frame_room(const struct mr_cache *cache,
			 const struct mr_frame *frame,
			 struct mr_room *ret_room);

/**
 * Whether the caller is the exclusive owner of @p frame and may write to it.
 *
 * @return whether mr_frame_room() returns 0
 *
 * Owner: unchanged. Thread, cost: as mr_frame_room().
 */
static inline bool mr_frame_is_exclusive(const struct mr_cache *cache,
					 const struct mr_frame *frame)
{
	struct mr_room room;

	return mr_frame_room(cache, frame, &room) == 0;
}

/**
 * What mr_pages_room() needs to know. A loop over frames keeps a copy in
 * registers.
 */
struct mr_pages {
	uint64_t addr;         /**< of page 0 */
	const uint8_t *owners; /**< by page: owners beyond the first */
	uint32_t n;
	uint32_t shift; /**< page size: 1 << shift */
};

/**
 * Describe the pages of @p cache.
 *
 * @return valid until the next call that takes @p cache
 *
 * Owner: unchanged. Thread: the one that uses @p cache. Cost: four loads.
 */
static inline struct mr_pages mr_cache_pages(const struct mr_cache *cache)
{
	const struct mr_cache_head *head = (const struct mr_cache_head *)cache;
	struct mr_pages pages;

	pages.addr = head->addr;
	pages.owners = head->owners;
	pages.n = __atomic_load_n(&head->own_pages, __ATOMIC_RELAXED);
	pages.shift = head->page_shift;
	return pages;
}

/**
 * mr_frame_room() inline, for the common case of one entry per page.
 *
 * @param[out] ret_room  valid only if the result is true
 *
 * @return false: ask mr_frame_room()
 *
 * Owner: unchanged. Thread: the one that uses the cache. Cost: one load.
 */
static inline bool mr_pages_room(const struct mr_pages *pages,
				 const struct mr_frame *frame,
				 struct mr_room *ret_room)
{
	const uint32_t page_bytes = 1u << pages->shift;
	const uint64_t offset = frame->addr - pages->addr;
	const uint64_t page = offset >> pages->shift;
	const uint32_t front = (uint32_t)offset & (page_bytes - 1);
	const uint64_t end = (uint64_t)front + frame->len;

	ret_room->front_bytes = front;
	ret_room->back_bytes = page_bytes - (uint32_t)end;
	return page < pages->n && end <= page_bytes &&
	       __atomic_load_n(&pages->owners[page], __ATOMIC_ACQUIRE) == 0;
}

/** A partial checksum: what to sum, and where to store it. */
struct mr_partial {
	uint32_t start_bytes; /**< from the first byte of the frame */
	uint32_t n_bytes;     /**< from start_bytes */
	uint32_t field_bytes; /**< from the first byte; in the first entry */
	uint32_t has_no_zero; /**< 1: store a sum of 0 as 0xffff */
	uint32_t reserved[4];
};

/**
 * Find the partial checksum of a frame from its metadata or, without any, from
 * its headers: a checksum equal to the pseudo-header's is taken as partial.
 *
 * @param base    mr_region_base() of the frame's region
 * @param frames  the entries of one frame
 * @param meta    of it, or NULL
 *
 * @return 0, or -ENOENT: there is none, or its field is not in the first entry
 *
 * Owner:  unchanged. Thread: the owner's.
 * Cost:   without metadata, reads the headers.
 */
MR_API int mr_partial_find(void *base, const struct mr_frame *frames,
			   const struct mr_meta *meta,
			   struct mr_partial *ret_partial);

/**
 * Compute it in software. The first entry must be writable.
 *
 * Owner: unchanged. Thread: the owner's. Cost: reads all that is summed.
 */
MR_API void mr_partial_finish(void *base, const struct mr_frame *frames,
			      const struct mr_partial *partial);

MR_END_DECLS

#endif

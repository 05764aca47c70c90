/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_FRAG_H
#define MILLRACE_FRAG_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/pool.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * @file
 * Frags of mixed sizes, cut one behind the other from blocks of 32 KiB.
 *
 *     block:  | frag | frag |pad| frag  |   free: offset grows up  |
 *                                        ^ offset
 *
 * One frag cache belongs to one mr_cache and is used by the same thread. Frags
 * go back with mr_frag_free_bulk() or mr_frame_free_bulk(), on any thread, with
 * any cache of the region; a block goes back when its last frag has.
 *
 * What a block costs in atomics is one when it is used up, and one for each run
 * of its frags that another thread gives back together. Allocating and freeing
 * on the thread that cut the frag cost none.
 *
 * Where no block of 32 KiB is to be had, a single page does; what does not fit
 * a page fails then, and the page is kept. A frag cache holds one block that it
 * cuts, and up to three that it fetched ahead.
 *
 * Only who cut a frag knows its bounds: mr_frame_push() and mr_frame_put() find
 * no room around it. Owners are counted by block: once a frag of a block was
 * shared by mr_frame_ref(), all of its frags count as shared until there is
 * one reference left on it, or none. What comes back more often than it was
 * cut is counted in free_over, and breaks nothing. That is found by block: a
 * frag that was given back twice takes the place of another one of its block,
 * and who still has that one then finds his bytes cut again. No level of
 * mr_safety sees this, since a frag may be given back by the address of any of
 * its bytes, may have several owners, and may begin anywhere: to tell it from
 * its neighbours takes a count for each byte of the pool. Give frags of a page
 * or a chunk to those who are suspected: MR_SAFETY_STATES finds those.
 *
 * Source: Linux, mm/page_frag_cache.c, and "Replace page_frag with
 * page_frag_cache (Part-2)", netdev 2024.
 */

struct mr_frag_cache;

/** Bytes that were prepared and not committed yet. */
struct mr_frag {
	uint64_t addr;       /**< of the first byte, aligned as asked for */
	uint32_t n_bytes;    /**< all that may be used: at least as asked for */
	uint32_t generation; /**< what the frag cache was at; a stale prepare
			      *   is refused by it */
};

/**
 * Make a frag cache.
 *
 * @param cache  the calling thread's cache; it must outlive the frag cache
 *
 * @return 0, or -ENOMEM: no memory, or there are ports, and with the blocks
 *         that it may hold (128 KiB, if pages are smaller than 32 KiB; else one
 *         page) they could run out of pages; the reason has the number needed
 *
 * Owner: the caller. Thread: the one that uses @p cache, here and below.
 * Cost:  from the first block on, as from the first mr_frame_ref(), each bulk
 *        free to a cache of that pool looks at the owners of each page.
 */
MR_API int mr_frag_cache_create(struct mr_cache *cache,
				struct mr_frag_cache **ret_frags,
				struct mr_reason *reterr_reason);

/**
 * Drain and free it. NULL is allowed. Frags in flight are no matter.
 *
 * Owner: nobody. Thread: the one that uses it.
 */
MR_API void mr_frag_cache_destroy(struct mr_frag_cache *frags);

/**
 * Cut one frag.
 *
 * @param      n_bytes      1..32768
 * @param      align_bytes  a power of two, at most a page; 0: 1
 * @param[out] ret_addr     set on success
 *
 * @return 0, or
 *   -EINVAL  a value is out of range
 *   -ENOMEM  no block and no page, or only a page and it does not fit in it
 *
 * A frag of at most one chunk does not cross a chunk's edge.
 *
 * Owner:  the caller, of one reference.
 * Thread: the one that uses it.
 * Cost:   an addition and a comparison; no atomic but when a block is used up.
 */
MR_API int mr_frag_cache_alloc(struct mr_frag_cache *frags, uint32_t n_bytes,
			       uint32_t align_bytes, uint64_t *ret_addr);

/**
 * Cut up to @p n frags of the same size.
 *
 * @return frags cut; fewer only if mr_frag_cache_alloc() would fail
 *
 * Owner, thread: as mr_frag_cache_alloc(). Cost: less per frag.
 */
MR_API uint32_t mr_frag_cache_alloc_bulk(struct mr_frag_cache *frags,
					 uint64_t *addrs, uint32_t n,
					 uint32_t n_bytes,
					 uint32_t align_bytes);

/**
 * Undo the last cut: its bytes are free again, padding excepted.
 *
 * @param addr, n_bytes  of the frag
 *
 * @return 0, or
 *   -EINVAL  it is not the last one, or nothing of its block is out
 *   -EBUSY   it, or another frag of its block, has or had other owners
 *   Then nothing was done.
 *
 * The reference must be the caller's still: owners are counted by block, so
 * that of a frag that was given back is not missed while others are out.
 *
 * Owner: the frag cache. Thread: the one that uses it. Cost: no atomic.
 */
MR_API int mr_frag_cache_abort(struct mr_frag_cache *frags, uint64_t addr,
			       uint32_t n_bytes);

/**
 * Give only the reference of the last cut back; its bytes stay used.
 *
 * @return as mr_frag_cache_abort()
 *
 * Owner, thread, cost: as mr_frag_cache_abort().
 */
MR_API int mr_frag_cache_abort_ref(struct mr_frag_cache *frags, uint64_t addr,
				   uint32_t n_bytes);

/**
 * See what can be used, and take nothing yet; fetch a block if need be.
 *
 * @param[out] ret_frag  addr and all the bytes that follow it in the block
 *
 * @return as mr_frag_cache_alloc()
 *
 * Not committing is allowed. Any other call on @p frags that cuts, commits or
 * drains makes the frag stale.
 *
 * Owner: unchanged. Thread: the one that uses it.
 */
MR_API int mr_frag_cache_prepare(struct mr_frag_cache *frags, uint32_t n_bytes,
				 uint32_t align_bytes,
				 struct mr_frag *ret_frag);

/**
 * As mr_frag_cache_prepare(), and say where the bytes are in this process.
 *
 * @return NULL where mr_frag_cache_prepare() fails
 *
 * Owner, thread: as mr_frag_cache_prepare().
 */
MR_API void *mr_frag_cache_alloc_prepare(struct mr_frag_cache *frags,
					 uint32_t n_bytes,
					 uint32_t align_bytes,
					 struct mr_frag *ret_frag);

/**
 * As mr_frag_cache_prepare(), but never fetch a block.
 *
 * @return false: it does not fit what is left
 *
 * Owner, thread: as mr_frag_cache_prepare().
 */
MR_API bool mr_frag_cache_probe(struct mr_frag_cache *frags, uint32_t n_bytes,
				uint32_t align_bytes,
				struct mr_frag *ret_frag);

/**
 * Take the first @p n_bytes of what was prepared: a frag.
 *
 * @return the bytes that it really took, padding in front included; or
 *   -ESTALE  something else was cut, committed or drained since
 *   -EINVAL  0, or more than was prepared
 *   Then nothing was done.
 *
 * Owner:  the caller, of one reference.
 * Thread: the one that uses it. Cost: no atomic.
 */
MR_API int mr_frag_cache_commit(struct mr_frag_cache *frags,
				const struct mr_frag *frag, uint32_t n_bytes);

/**
 * The same without a reference: the bytes lengthen the frag before, and go
 * with it.
 *
 * @return as mr_frag_cache_commit(), or
 *   -EINVAL  also: they do not begin right behind the last frag, that one was
 *            aborted, or nothing of the block is out
 *
 * Owner: that of the frag before. Thread, cost: as mr_frag_cache_commit().
 */
MR_API int mr_frag_cache_commit_noref(struct mr_frag_cache *frags,
				      const struct mr_frag *frag,
				      uint32_t n_bytes);

/**
 * Let go of the block that is being cut. The next cut fetches another.
 *
 * Owner: the pool, once all its frags are back. Cost: one atomic.
 * Thread: the one that uses it.
 */
MR_API void mr_frag_cache_drain(struct mr_frag_cache *frags);

#ifdef __cplusplus
}
#endif

#endif

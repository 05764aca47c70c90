/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_FRAG_H
#define MILLRACE_EXPERIMENTAL_FRAG_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/pool.h>

MR_BEGIN_DECLS

/**
 * @file
 * Frags of mixed sizes, cut one after another from blocks of 32 KiB.
 *
 *     block:  | frag | frag |pad| frag  |   free: offset grows up  |
 *                                        ^ offset
 *
 * A frag cache belongs to one mr_cache and to the same thread. Frags are freed
 * with mr_frag_free_bulk() or mr_frame_free_bulk(), on any thread, with any
 * cache of the region; a block is free when all of its frags are.
 *
 * A block costs one atomic operation when it is used up, and one for each run
 * of its frags that another thread frees together. Frags freed on the thread
 * that cut them cost none.
 *
 * If no block of 32 KiB is available, a single page serves; cuts that do not
 * fit into it fail, and the page is kept. A frag cache holds the block that it
 * cuts and up to three that it fetched ahead or that its cache freed.
 *
 * Only the owner of a frag knows its bounds: mr_frame_push() and mr_frame_put()
 * find no room around it. Owners are counted by block: once mr_frame_ref() has
 * shared a frag of a block, all of its frags count as shared until at most one
 * reference to the block is left. A block that gets back more references than
 * were issued is counted in free_over, without harm to the pool. But a frag
 * freed twice takes the place of another frag of its block, whose bytes are
 * then cut again while its owner still uses them. No level of mr_safety detects
 * this: a frag may begin anywhere, have several owners and be freed by the
 * address of any of its bytes, so it would take a count for each byte of the
 * pool. Give pages to code under suspicion: MR_SAFETY_STATES detects
 * their double frees.
 *
 * Source: Linux, mm/page_frag_cache.c, and "Replace page_frag with
 *         page_frag_cache (Part-2)", netdev 2024.
 */

struct mr_frag_cache;

/** Bytes that are prepared but not committed. */
struct mr_frag {
	uint64_t addr;       /**< of the first byte, aligned as asked for */
	uint32_t n_bytes;    /**< all usable bytes, at least those requested */
	uint32_t generation; /**< of the frag cache, which rejects a stale
			      *   prepare by it */
};

/**
 * Create a frag cache.
 *
 * @param cache  the calling thread's cache; must outlive the frag cache
 *
 * @return 0, or -ENOMEM: no memory, or the blocks that it may hold (128 KiB, or
 *         one page if pages are 32 KiB) could starve the open ports of pages;
 *         the reason has the number of pages needed
 *
 * Owner: the caller. Thread: the one that uses @p cache, here and below.
 * Cost:  once it has fetched a block, as after a first mr_frame_ref(), each
 *        bulk free to a cache of that pool looks at the owners of each page.
 */
MR_API int mr_frag_cache_create(struct mr_cache *cache,
				struct mr_frag_cache **ret_frags,
				struct mr_reason *reterr_reason);

/**
 * Drain and free it. NULL is allowed. Its frags may still be in flight.
 *
 * Owner: nobody. Thread: the one that uses it.
 */
MR_API void mr_frag_cache_destroy(struct mr_frag_cache *frags);

/**
 * Cut one frag. One of at most a page does not cross a page boundary.
 *
 * @param      n_bytes      1..32768
 * @param      align_bytes  a power of two, at most a page; 0: 1
 * @param[out] ret_addr     set on success
 *
 * @return 0, or
 *   -EINVAL  a value is out of range
 *   -ENOMEM  no block and no page, or only a page that is too small
 *
 * Owner: the caller, of one reference. Thread: the one that uses it.
 * Cost:   an addition and a comparison; an atomic when a block is used up.
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
 * Undo the last cut: its bytes, except padding, are free again.
 *
 * @param addr, n_bytes  of the frag
 *
 * @return 0, or, with nothing changed,
 *   -EINVAL  it is not the last one, or no frag of its block is in flight
 *   -EBUSY   it or another frag of its block has or had other owners
 *
 * The caller must still hold the reference: owners are counted by block, so one
 * that was already given back goes unnoticed while other frags are in flight.
 *
 * Owner: the frag cache. Thread: the one that uses it. Cost: no atomic.
 */
MR_API int mr_frag_cache_abort(struct mr_frag_cache *frags, uint64_t addr,
			       uint32_t n_bytes);

/**
 * Give back the reference of the last cut only; its bytes stay used.
 *
 * @return as mr_frag_cache_abort()
 *
 * Owner, thread, cost: as mr_frag_cache_abort().
 */
MR_API int mr_frag_cache_abort_ref(struct mr_frag_cache *frags, uint64_t addr,
				   uint32_t n_bytes);

/**
 * Return the bytes that can be used, without taking them; fetch a block if
 * necessary. They need not be committed. Any other call on @p frags that cuts,
 * commits or drains makes them stale.
 *
 * @param[out] ret_frag  addr, and all the bytes that follow it in the block
 *
 * @return as mr_frag_cache_alloc()
 *
 * Owner: unchanged. Thread: the one that uses it.
 */
MR_API int mr_frag_cache_prepare(struct mr_frag_cache *frags, uint32_t n_bytes,
				 uint32_t align_bytes,
				 struct mr_frag *ret_frag);

/**
 * As mr_frag_cache_prepare(), but return a pointer to the bytes.
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
 * @return false: it does not fit the current block
 *
 * Owner, thread: as mr_frag_cache_prepare().
 */
MR_API bool mr_frag_cache_probe(struct mr_frag_cache *frags, uint32_t n_bytes,
				uint32_t align_bytes,
				struct mr_frag *ret_frag);

/**
 * Take the first @p n_bytes of the prepared bytes as a frag.
 *
 * @return the bytes taken, including padding in front; or, with nothing
 *         changed,
 *   -ESTALE  something else was cut, committed or drained since
 *   -EINVAL  @p n_bytes is 0 or more than was prepared
 *
 * Owner:  the caller, of one reference.
 * Thread: the one that uses it. Cost: no atomic.
 */
MR_API int mr_frag_cache_commit(struct mr_frag_cache *frags,
				const struct mr_frag *frag, uint32_t n_bytes);

/**
 * As mr_frag_cache_commit(), without a reference: the bytes extend the previous
 * frag and are freed with it.
 *
 * @return as mr_frag_cache_commit(), or
 *   -EINVAL  also: they do not follow the last frag directly, it was aborted,
 *            or no frag of the block is in flight
 *
 * Owner: that of the previous frag. Thread, cost: as mr_frag_cache_commit().
 */
MR_API int mr_frag_cache_commit_noref(struct mr_frag_cache *frags,
				      const struct mr_frag *frag,
				      uint32_t n_bytes);

/**
 * Release the current block. The next cut fetches another one.
 *
 * Owner: the pool, once all its frags are free. Cost: one atomic.
 * Thread: the one that uses it.
 */
MR_API void mr_frag_cache_drain(struct mr_frag_cache *frags);

MR_END_DECLS

#endif

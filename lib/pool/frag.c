/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frag caches: frags of mixed sizes, one after the other.
 *
 *     cut       offset moves up, n_issued counts: no atomic
 *     used up   all freed: reuse the block from its start (a load)
 *               else: another one first, then this one is retired (one atomic)
 *     no block  a page of the cache; what it cannot hold fails, and what is
 *               being cut stays
 *
 * Source: Linux, mm/page_frag_cache.c, and "Replace page_frag with
 * page_frag_cache (Part-2)", netdev 2024: prepare, commit, probe, abort.
 */
#include <errno.h>

#include <millrace/experimental/frag.h>

#include "mem/mem.h"
#include "pool/cache.h"

/* The block being cut, and those fetched ahead. */
static uint32_t max_pages(const struct mr_pool *pool)
{
	return pool->blocks.max_order == 0 ?
		       1 :
		       MRI_BLOCK_BATCH << pool->blocks.max_order;
}

int mr_frag_cache_create(struct mr_cache *cache,
			 struct mr_frag_cache **ret_frags,
			 struct mr_reason *reterr_reason)
{
	struct mr_pool *pool = cache->pool;
	struct mr_frag_cache *frags =
		mr_alloc(pool->ctx, MRI_CACHE_LINE, sizeof(*frags));
	int err;

	if (frags == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for a frag cache");
	frags->ctx = pool->ctx;
	frags->cache = cache;
	frags->last = MRI_FRAG_NONE;
	frags->epoch = 1; /* no zeroed struct mr_frag matches it */
	frags->page_bytes = pool->page_bytes;
	pthread_mutex_lock(&pool->grow_lock);
	pthread_mutex_lock(&pool->lock); /* statistics read the list */
	err = mri_pool_check_room(pool, "a frag cache", max_pages(pool),
				  reterr_reason);
	if (err == 0) {
		pool->n_committed += max_pages(pool);
		frags->next = cache->frags;
		cache->frags = frags;
		*ret_frags = frags;
	}
	pthread_mutex_unlock(&pool->lock);
	pthread_mutex_unlock(&pool->grow_lock);
	if (err < 0)
		mr_free(pool->ctx, frags);
	return err;
}

/* Return what it holds, and remove it from its cache. */
static void detach(struct mr_frag_cache *frags)
{
	struct mr_pool *pool = frags->cache->pool;
	struct mr_frag_cache **link;

	mr_frag_cache_drain(frags);
	pthread_mutex_lock(&pool->lock);
	for (link = &frags->cache->frags; *link != frags; link = &(*link)->next)
		;
	*link = frags->next;
	pool->n_committed -= max_pages(pool);
	pthread_mutex_unlock(&pool->lock);
	frags->cache = NULL;
}

uint32_t mri_frag_caches_detach(struct mr_cache *cache)
{
	uint32_t n;

	for (n = 0; cache->frags != NULL; n++)
		detach(cache->frags);
	return n;
}

void mr_frag_cache_destroy(struct mr_frag_cache *frags)
{
	if (frags == NULL)
		return;
	if (frags->cache != NULL)
		detach(frags);
	mr_free(frags->ctx, frags);
}

static void set_n_issued(struct mr_frag_cache *frags, uint32_t n_issued)
{
	__atomic_store_n(&frags->n_issued, n_issued, __ATOMIC_RELAXED);
}

static void set_n_fetched(struct mr_frag_cache *frags, uint32_t n_fetched)
{
	__atomic_store_n(&frags->n_fetched, n_fetched, __ATOMIC_RELAXED);
}

/* A number that each cut, commit, abort and change of the block increases. */
static inline uint32_t generation_of(const struct mr_frag_cache *frags)
{
	return frags->epoch + frags->n_issued;
}

/* Start at the first byte of a block without references. NULL: no block. */
static void set_block(struct mr_frag_cache *frags, struct mri_block *block)
{
	const struct mr_pool *pool = frags->cache->pool;

	frags->epoch += frags->n_issued + 1;
	frags->offset = 0;
	frags->last = MRI_FRAG_NONE;
	set_n_issued(frags, 0);
	__atomic_store_n(&frags->block, block, __ATOMIC_RELAXED);
	if (block == NULL) {
		frags->n_bytes = 0;
		return;
	}
	frags->n_bytes = pool->page_bytes << block->order;
	frags->begin = pool->addr + ((uint64_t)block->page << pool->page_shift);
}

/* A block of the largest order; NULL: none. */
static struct mri_block *take_block(struct mr_frag_cache *frags)
{
	uint32_t n = frags->n_fetched;

	if (n == 0)
		n = mri_block_fetch(frags->cache, frags->fetched);
	if (n == 0)
		return NULL;
	set_n_fetched(frags, n - 1);
	return frags->fetched[n - 1];
}

static bool restart(struct mr_frag_cache *frags)
{
	if (frags->block == NULL ||
	    !mri_block_restart(frags->cache, frags->block, frags->n_issued))
		return false;
	set_block(frags, frags->block);
	return true;
}

/*
 * Find something to cut n_bytes from; they do not fit into the rest. site is
 * the caller, to which all references on the block are attributed, whoever cuts
 * the rest of it.
 */
__attribute__((noinline, cold)) static int
refill(struct mr_frag_cache *frags, uint32_t n_bytes, const void *site)
{
	struct mri_block *old = frags->block, *next;
	const uint32_t n_issued = frags->n_issued;
	const bool is_page = frags->n_bytes < MRI_BLOCK_BYTES;

	if (frags->cache == NULL)
		return -ENOMEM;
	mri_block_flush(frags->cache); /* it may be of this very block */
	frags->cache->site = site;
	if (!is_page && restart(frags))
		return 0;
	next = take_block(frags);
	if (next == NULL) {
		if (n_bytes > frags->page_bytes)
			return -ENOMEM;
		if (is_page && restart(frags))
			return 0;
		next = mri_block_fetch_page(frags->cache);
		if (next == NULL)
			return -ENOMEM;
	}
	mri_block_start(frags->cache, next);
	set_block(frags, next);
	if (old != NULL)
		mri_block_retire(frags->cache, old, n_issued);
	return 0;
}

/*
 * Where n_bytes could begin. A frag of at most a page does not cross the edge
 * of a page, so that any device can send it.
 */
static inline uint32_t place_of(const struct mr_frag_cache *frags,
				uint32_t offset, uint32_t n_bytes,
				uint32_t align_mask)
{
	const uint32_t page_mask = frags->page_bytes - 1;
	const uint32_t at = (offset + align_mask) & ~align_mask;

	if ((at & page_mask) + n_bytes > frags->page_bytes &&
	    n_bytes <= frags->page_bytes)
		return (at + page_mask) & ~page_mask;
	return at;
}

static inline bool is_valid(const struct mr_frag_cache *frags, uint32_t n_bytes,
			    uint32_t align_bytes)
{
	return n_bytes - 1 < MRI_BLOCK_BYTES &&
	       (align_bytes & (align_bytes - 1)) == 0 &&
	       align_bytes <= frags->page_bytes;
}

static inline uint32_t mask_of(uint32_t align_bytes)
{
	return align_bytes - (align_bytes != 0);
}

/* Issue n references; the last one is on [at, at + n_bytes). */
static inline void cut(struct mr_frag_cache *frags, uint32_t at,
		       uint32_t n_bytes, uint32_t n)
{
	frags->last = at;
	frags->offset = at + n_bytes;
	set_n_issued(frags, frags->n_issued + n);
}

/* Cut the first bytes of a block; the rest of the last one is too short. */
__attribute__((noinline)) static int cut_next(struct mr_frag_cache *frags,
					      uint32_t n_bytes,
					      uint64_t *ret_addr,
					      const void *site)
{
	const int err = refill(frags, n_bytes, site);

	if (err < 0)
		return err;
	cut(frags, 0, n_bytes, 1);
	*ret_addr = frags->begin;
	return 0;
}

int mr_frag_cache_alloc(struct mr_frag_cache *frags, uint32_t n_bytes,
			uint32_t align_bytes, uint64_t *ret_addr)
{
	uint32_t at;

	if (!is_valid(frags, n_bytes, align_bytes))
		return -EINVAL;
	at = place_of(frags, frags->offset, n_bytes, mask_of(align_bytes));
	if (at + n_bytes > frags->n_bytes)
		return cut_next(frags, n_bytes, ret_addr,
				__builtin_return_address(0));
	cut(frags, at, n_bytes, 1);
	*ret_addr = frags->begin + at;
	return 0;
}

/*
 * Cut up to n frags of the block, the first one at `at`, where there is room.
 * Returns how many.
 */
static inline uint32_t cut_row(struct mr_frag_cache *frags, uint64_t *addrs,
			       uint32_t n, uint32_t at, uint32_t n_bytes,
			       uint32_t align_mask)
{
	const uint32_t step = (n_bytes + align_mask) & ~align_mask;
	const uint32_t page_bytes = frags->page_bytes;
	const uint32_t last_of_block = frags->n_bytes - n_bytes;
	const uint64_t begin = frags->begin;
	/* The last place in front of the edge that it may not cross. */
	uint32_t limit = n_bytes > page_bytes ?
				 last_of_block :
				 (at | (page_bytes - 1)) + 1 - n_bytes;
	uint32_t last, k = 0;

	do {
		addrs[k++] = begin + at;
		last = at;
		at += step;
		if (at > limit) { /* the next page */
			at = limit + n_bytes;
			limit += page_bytes;
		}
	} while (k < n && at <= last_of_block);
	cut(frags, last, n_bytes, k);
	return k;
}

uint32_t mr_frag_cache_alloc_bulk(struct mr_frag_cache *frags, uint64_t *addrs,
				  uint32_t n, uint32_t n_bytes,
				  uint32_t align_bytes)
{
	const uint32_t align_mask = mask_of(align_bytes);
	uint32_t n_done = 0;

	if (!is_valid(frags, n_bytes, align_bytes))
		return 0;
	while (n_done < n) {
		uint32_t at =
			place_of(frags, frags->offset, n_bytes, align_mask);

		if (at + n_bytes > frags->n_bytes) {
			if (refill(frags, n_bytes,
				   __builtin_return_address(0)) < 0)
				break;
			at = 0;
		}
		n_done += cut_row(frags, addrs + n_done, n - n_done, at,
				  n_bytes, align_mask);
	}
	return n_done;
}

/* References on the block being cut, which must exist. */
static int64_t n_out(const struct mr_frag_cache *frags)
{
	const struct mri_block_run *run = &frags->cache->run;

	return mri_block_n_out(frags->block, frags->n_issued) -
	       (run->block == frags->block ? run->n : 0);
}

/* Whether the last cut may be undone. */
static int check_abort(const struct mr_frag_cache *frags, uint64_t addr,
		       uint32_t n_bytes)
{
	if (frags->last == MRI_FRAG_NONE ||
	    addr != frags->begin + frags->last ||
	    n_bytes != frags->offset - frags->last)
		return -EINVAL;
	if (!mri_block_is_exclusive(frags->block))
		return -EBUSY;
	/* It was already freed, like all of the block. */
	return n_out(frags) > 0 ? 0 : -EINVAL;
}

int mr_frag_cache_abort_ref(struct mr_frag_cache *frags, uint64_t addr,
			    uint32_t n_bytes)
{
	const int err = check_abort(frags, addr, n_bytes);

	if (err < 0)
		return err;
	frags->last = MRI_FRAG_NONE;
	frags->epoch += 2;
	set_n_issued(frags, frags->n_issued - 1);
	return 0;
}

int mr_frag_cache_abort(struct mr_frag_cache *frags, uint64_t addr,
			uint32_t n_bytes)
{
	const int err = mr_frag_cache_abort_ref(frags, addr, n_bytes);

	if (err == 0)
		frags->offset -= n_bytes;
	return err;
}

static bool look(const struct mr_frag_cache *frags, uint32_t n_bytes,
		 uint32_t align_bytes, struct mr_frag *ret_frag)
{
	const uint32_t at =
		place_of(frags, frags->offset, n_bytes, mask_of(align_bytes));

	if (at + n_bytes > frags->n_bytes)
		return false;
	ret_frag->addr = frags->begin + at;
	ret_frag->n_bytes = frags->n_bytes - at;
	ret_frag->generation = generation_of(frags);
	return true;
}

static inline int prepare(struct mr_frag_cache *frags, uint32_t n_bytes,
			  uint32_t align_bytes, struct mr_frag *ret_frag,
			  const void *site)
{
	int err;

	if (!is_valid(frags, n_bytes, align_bytes))
		return -EINVAL;
	if (look(frags, n_bytes, align_bytes, ret_frag))
		return 0;
	err = refill(frags, n_bytes, site);
	if (err < 0)
		return err;
	look(frags, n_bytes, align_bytes, ret_frag);
	return 0;
}

int mr_frag_cache_prepare(struct mr_frag_cache *frags, uint32_t n_bytes,
			  uint32_t align_bytes, struct mr_frag *ret_frag)
{
	return prepare(frags, n_bytes, align_bytes, ret_frag,
		       __builtin_return_address(0));
}

void *mr_frag_cache_alloc_prepare(struct mr_frag_cache *frags, uint32_t n_bytes,
				  uint32_t align_bytes,
				  struct mr_frag *ret_frag)
{
	if (prepare(frags, n_bytes, align_bytes, ret_frag,
		    __builtin_return_address(0)) < 0)
		return NULL;
	return frags->cache->pool->region->base + ret_frag->addr;
}

bool mr_frag_cache_probe(struct mr_frag_cache *frags, uint32_t n_bytes,
			 uint32_t align_bytes, struct mr_frag *ret_frag)
{
	return is_valid(frags, n_bytes, align_bytes) &&
	       look(frags, n_bytes, align_bytes, ret_frag);
}

/* Check a prepared frag, of which n_bytes are wanted. Returns its offset. */
static int check_commit(const struct mr_frag_cache *frags,
			const struct mr_frag *frag, uint32_t n_bytes,
			uint32_t *ret_at)
{
	const uint64_t at = frag->addr - frags->begin;

	if (frag->generation != generation_of(frags))
		return -ESTALE;
	/* It is the caller's struct, so trust nothing in it. */
	if (n_bytes == 0 || n_bytes > frag->n_bytes || at < frags->offset ||
	    at > frags->n_bytes || n_bytes > frags->n_bytes - at)
		return -EINVAL;
	*ret_at = (uint32_t)at;
	return 0;
}

int mr_frag_cache_commit(struct mr_frag_cache *frags,
			 const struct mr_frag *frag, uint32_t n_bytes)
{
	const uint32_t offset = frags->offset;
	uint32_t at;
	const int err = check_commit(frags, frag, n_bytes, &at);

	if (err < 0)
		return err;
	cut(frags, at, n_bytes, 1);
	return (int)(frags->offset - offset);
}

int mr_frag_cache_commit_noref(struct mr_frag_cache *frags,
			       const struct mr_frag *frag, uint32_t n_bytes)
{
	uint32_t at;
	const int err = check_commit(frags, frag, n_bytes, &at);

	if (err < 0)
		return err;
	if (frags->last == MRI_FRAG_NONE || at != frags->offset ||
	    n_out(frags) <= 0)
		return -EINVAL;
	frags->offset += n_bytes;
	frags->epoch++;
	return (int)n_bytes;
}

void mr_frag_cache_drain(struct mr_frag_cache *frags)
{
	struct mri_block *block = frags->block;
	const uint32_t n_issued = frags->n_issued;
	uint32_t n_fetched;

	if (frags->cache == NULL)
		return;
	/* The last frees may be of this very block, or complete another. */
	mri_block_flush(frags->cache);
	n_fetched = frags->n_fetched;
	set_block(frags, NULL);
	if (block != NULL)
		mri_block_retire(frags->cache, block, n_issued);
	set_n_fetched(frags, 0);
	mri_block_unfetch(frags->cache, frags->fetched, n_fetched);
}

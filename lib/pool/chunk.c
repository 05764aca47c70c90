/* SPDX-License-Identifier: BSD-3-Clause */
/* Single-chunk frags, if a page holds several chunks. */
#include "pool/cache.h"
#include "pool/debug/safety.h"

static void set_open(struct mr_cache *cache, uint64_t addr, uint32_t n_left)
{
	__atomic_store_n(&cache->open_addr, addr, __ATOMIC_RELAXED);
	__atomic_store_n(&cache->n_open_left, n_left, __ATOMIC_RELAXED);
}

/*
 * Single-chunk frags, from pages with several: one open page per cache. live[]
 * starts at the number of frags to be cut, so cutting costs no atomic.
 */
uint32_t mri_chunk_alloc(struct mr_cache *cache, uint64_t *addrs, uint32_t n)
{
	const struct mr_pool *pool = cache->pool;
	const uint32_t chunk_bytes = pool->chunk_bytes;
	const uint32_t n_per_page = 1u
				    << (pool->page_shift - pool->chunk_shift);
	uint64_t pages[MR_MAGAZINE_PAGES]; /* their addresses */
	uint64_t addr = cache->open_addr;
	uint32_t n_left = cache->n_open_left;
	uint32_t n_pages = 0, at = 0, n_done = 0;

	for (;;) {
		const uint32_t k = mri_min_u32(n - n_done, n_left);

		for (uint32_t i = 0; i < k; i++, addr += chunk_bytes)
			addrs[n_done + i] = addr;
		n_left -= k;
		n_done += k;
		if (n_done == n)
			break;
		if (at == n_pages) {
			n_pages = mri_any_alloc_pages(
				cache, pages,
				mri_min_u32(MR_MAGAZINE_PAGES,
					    (n - n_done + n_per_page - 1) /
						    n_per_page));
			at = 0;
			if (n_pages == 0)
				break;
		}
		addr = pages[at++];
		n_left = n_per_page;
		__atomic_store_n(&pool->live[mri_page_of(pool, addr)],
				 (uint8_t)n_per_page, __ATOMIC_RELAXED);
	}
	set_open(cache, addr, n_left);
	return n_done;
}

/* Close the open page, as if its remaining frags had been cut and freed. */
void mri_chunk_close(struct mr_cache *cache)
{
	struct mr_pool *pool = cache->pool;
	const uint32_t n_left = cache->n_open_left;
	const uint32_t page = mri_page_of(pool, cache->open_addr);

	set_open(cache, 0, 0);
	if (n_left > 0 && mri_live_put(&pool->live[page], n_left) &&
	    (pool->safety == NULL ||
	     mri_checked_page_in(pool, page, cache, NULL, true)))
		mri_cache_keep(cache, &page, 1);
}

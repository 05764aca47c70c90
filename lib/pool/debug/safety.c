/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of a checked pool, when allocated and freed. */
#include <errno.h>

#include "pool/cache.h"
#include "pool/debug/safety.h"

/* MR_SAFETY_COUNTS has no checks. */
static bool take_page(struct mr_pool *pool, uint32_t page,
		      struct mr_cache *cache, const void *site)
{
	(void)pool, (void)page, (void)cache, (void)site;
	return true;
}

static void ignore_pages(struct mr_pool *pool, uint32_t first, uint32_t n,
			 const void *site)
{
	(void)pool, (void)first, (void)n, (void)site;
}

static void ignore_addr(struct mr_pool *pool, uint64_t addr, const void *site)
{
	(void)pool, (void)addr, (void)site;
}

const struct mri_checks mri_no_checks = {
	.alloc = mri_cache_alloc_pages,
	.free = mri_cache_put,
	.page_in = take_page,
	.out = ignore_pages,
	.again = ignore_pages,
	.in = ignore_pages,
	.invalid = ignore_addr,
};

static struct mri_safety *make(struct mr_pool *pool, enum mr_safety level)
{
	struct mri_safety *safety = mr_alloc(pool->ctx, 0, sizeof(*safety));

	if (safety == NULL)
		return NULL;
	safety->level = level;
	safety->now_us = mr_ctx_now_ns(pool->ctx) / 1000;
	safety->states = mr_alloc(pool->ctx, 0,
				  pool->n_pages * sizeof(safety->states[0]));
	if (safety->states == NULL ||
	    (level >= MR_SAFETY_POISON &&
	     mri_quarantine_init(pool, &safety->quarantine) < 0)) {
		mr_free(pool->ctx, safety->states);
		mr_free(pool->ctx, safety);
		return NULL;
	}
	return safety;
}

void mri_safety_destroy(struct mr_pool *pool)
{
	struct mri_safety *safety = pool->safety;

	if (safety == NULL)
		return;
	while (mri_quarantine_reclaim(pool) > 0)
		;
	mri_poison_allow(pool, pool->addr,
			 (uint64_t)mri_pool_population(pool)
				 << pool->page_shift);
	mri_quarantine_fini(pool, &safety->quarantine);
	mr_free(pool->ctx, safety->states);
	mr_free(pool->ctx, safety);
	pool->safety = NULL;
	pool->checks = &mri_no_checks;
}

/* A cache that was not adopted may be in use by two threads at once. */
__attribute__((noinline, cold)) static void tell_thread(struct mr_cache *cache)
{
	struct mri_safety *safety = cache->pool->safety;
	char where[MRI_SITE_TEXT];

	if (cache->user == 0) {
		cache->user = mri_thread_self();
		return;
	}
	if (cache->is_user_told)
		return;
	cache->is_user_told = true;
	mri_site_say(safety, mri_site_find(safety, cache->site), where);
	mr_log(cache->pool->ctx, MR_LOG_ERROR,
	       "%s: a second thread uses a cache, in %s: give each thread its "
	       "own cache, or call mr_cache_adopt() when the first thread has "
	       "ended",
	       cache->pool->name, where);
}

static inline void check_thread(struct mr_cache *cache)
{
	if (cache->user != mri_thread_self())
		tell_thread(cache);
}

static inline void pages_out(struct mr_pool *pool, const uint64_t *addrs,
			     uint32_t n, uint64_t out)
{
	uint64_t *states = pool->safety->states;
	const uint64_t base = pool->addr;
	const uint32_t shift = pool->page_shift;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t page = (addrs[i] - base) >> shift;

		if (pool->safety->level >= MR_SAFETY_POISON)
			mri_poison_check(pool, (uint32_t)page,
					 __atomic_load_n(&states[page],
							 __ATOMIC_RELAXED));
		__atomic_store_n(&states[page], out, __ATOMIC_RELAXED);
	}
}

static void checked_out(struct mr_pool *pool, uint32_t first, uint32_t n,
			const void *site)
{
	struct mri_safety *safety = pool->safety;
	const uint64_t out =
		mri_state(safety, mri_site_find(safety, site), MRI_STATE_OUT);

	for (uint32_t i = first; i < first + n; i++) {
		const uint64_t addr = mri_page_addr(pool, i);

		pages_out(pool, &addr, 1, out);
	}
}

/* Pages in quarantine leave as if through the cache. */
static uint32_t take_held(struct mr_cache *cache, uint64_t *addrs, uint32_t n,
			  uint32_t n_keep)
{
	struct mr_pool *pool = cache->pool;
	uint32_t pages[MR_MAGAZINE_PAGES];
	uint32_t n_done = 0;

	while (n_done < n) {
		const uint32_t k = mri_quarantine_take(
			&pool->safety->quarantine, pages,
			mri_min_u32(n - n_done, MR_MAGAZINE_PAGES), n_keep);

		if (k == 0)
			break;
		for (uint32_t i = 0; i < k; i++)
			addrs[n_done++] = mri_page_addr(pool, pages[i]);
	}
	mri_cache_pass_out(cache, n_done);
	return n_done;
}

static uint32_t checked_alloc(struct mr_cache *cache, uint64_t *addrs,
			      uint32_t n)
{
	struct mr_pool *pool = cache->pool;
	struct mri_safety *safety = pool->safety;
	const uint64_t out = mri_state(
		safety, mri_site_find(safety, cache->site), MRI_STATE_OUT);
	uint32_t n_done = 0, n_late;

	check_thread(cache);
	if (safety->level >= MR_SAFETY_POISON)
		n_done = take_held(cache, addrs, n, safety->quarantine.bound);
	if (n_done < n)
		n_done += mri_cache_alloc_pages(cache, addrs + n_done,
						n - n_done);
	if (n_done < n && safety->level >= MR_SAFETY_POISON) {
		n_late = take_held(cache, addrs + n_done, n - n_done, 0);
		n_done += n_late;
		mr_counter_add(&cache->counters.alloc_empty, -(uint64_t)n_late);
	}
	pages_out(pool, addrs, n_done, out);
	return n_done;
}

__attribute__((noinline, cold)) static void
tell_double(struct mr_pool *pool, uint32_t page, uint64_t addr, uint64_t before,
	    uint32_t site)
{
	struct mri_safety *safety = pool->safety;
	char where[MRI_SITE_TEXT], first[MRI_SITE_TEXT];

	mri_counter_add_shared(&pool->counters.free_double, 1);
	if (!mri_site_tell(safety, site, MRI_TOLD_DOUBLE))
		return;
	mri_site_say(safety, site, where);
	mri_site_say(safety, mri_state_site(before), first);
	mr_log(pool->ctx, MR_LOG_ERROR,
	       "%s: page %u (0x%llx) was freed twice, by %s; last %s by %s: "
	       "two owners, but one reference",
	       pool->name, page, (unsigned long long)addr, where,
	       (before & MRI_STATE_OUT) != 0 ? "taken" : "freed", first);
}

static void checked_invalid(struct mr_pool *pool, uint64_t addr,
			    const void *site)
{
	struct mri_safety *safety = pool->safety;
	const uint32_t place = mri_site_find(safety, site);
	char where[MRI_SITE_TEXT];

	if (!mri_site_tell(safety, place, MRI_TOLD_INVALID))
		return;
	mri_site_say(safety, place, where);
	mr_log(pool->ctx, MR_LOG_ERROR,
	       "%s: address 0x%llx, freed by %s, belongs to no pool of the "
	       "region",
	       pool->name, (unsigned long long)addr, where);
}

/* True: it was in use, and is free now. */
static inline __attribute__((always_inline)) bool
mark_free(struct mr_pool *pool, uint32_t page, uint64_t in, uint32_t site)
{
	const uint64_t before = __atomic_exchange_n(&pool->safety->states[page],
						    in, __ATOMIC_RELAXED);

	if ((before & MRI_STATE_OUT) != 0)
		return true;
	/* A page that was never taken has not been filled either. */
	if ((before & MRI_STATE_POISONED) == 0)
		__atomic_fetch_and(&pool->safety->states[page],
				   ~(uint64_t)MRI_STATE_POISONED,
				   __ATOMIC_RELAXED);
	tell_double(pool, page, mri_page_addr(pool, page), before, site);
	return false;
}

static bool fills_pages(const struct mr_pool *pool)
{
	return pool->safety->level >= MR_SAFETY_POISON && !pool->is_away;
}

static bool checked_page_in(struct mr_pool *pool, uint32_t page,
			    struct mr_cache *cache, const void *site)
{
	struct mri_safety *safety = pool->safety;
	const uint32_t place = mri_site_find(safety, site);
	const bool is_held = fills_pages(pool);
	const uint64_t in =
		mri_state(safety, place, is_held ? MRI_STATE_POISONED : 0);

	if (!mark_free(pool, page, in, place))
		return false;
	if (!is_held)
		return true;
	mri_poison_fill(pool, mri_page_addr(pool, page), pool->page_bytes);
	mri_quarantine_put(&safety->quarantine, &page, 1);
	if (cache != NULL && cache->pool == pool)
		mri_cache_pass_in(cache, 1);
	else /* the last access to the pool: see outbox.c */
		__atomic_fetch_add(&pool->counters.n_direct_free, 1,
				   __ATOMIC_RELEASE);
	return false;
}

/* Pages with one owner here; everything else as in an unchecked pool. */
static void free_pages(struct mr_cache *cache, const char *addrs, uint32_t n,
		       size_t stride)
{
	struct mr_pool *pool = cache->pool;
	struct mri_safety *safety = pool->safety;
	const uint32_t site = mri_site_find(safety, cache->site);
	const uint64_t in = mri_state(safety, site, 0);
	const uint64_t n_pages = mri_pool_population(pool);
	uint32_t pages[MR_MAGAZINE_PAGES];
	uint32_t n_free = 0;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t addr = mri_addr_at(addrs, i, stride);
		const uint64_t page = (addr - pool->addr) >> pool->page_shift;

		if (page >= n_pages ||
		    __atomic_load_n(&pool->owners[page], __ATOMIC_ACQUIRE) != 0)
			mri_cache_put(cache, addrs + i * stride, 1, stride);
		else if (mark_free(pool, (uint32_t)page, in, site))
			pages[n_free++] = (uint32_t)page;
	}
	mri_cache_keep(cache, pages, n_free);
}

static void checked_free(struct mr_cache *cache, const char *addrs, uint32_t n,
			 size_t stride)
{
	const struct mr_pool *pool = cache->pool;

	check_thread(cache);
	if (pool->safety->level >= MR_SAFETY_POISON) {
		mri_cache_put(cache, addrs, n, stride);
		return;
	}
	while (n > 0) {
		const uint32_t k = mri_min_u32(n, MR_MAGAZINE_PAGES);

		free_pages(cache, addrs, k, stride);
		addrs += k * stride;
		n -= k;
	}
}

static void checked_again(struct mr_pool *pool, uint32_t first, uint32_t n,
			  const void *site)
{
	struct mri_safety *safety = pool->safety;
	const uint64_t out =
		mri_state(safety, mri_site_find(safety, site), MRI_STATE_OUT);

	for (uint32_t i = first; i < first + n; i++)
		__atomic_store_n(&safety->states[i], out, __ATOMIC_RELAXED);
}

/* No quarantine: blocks need adjacent pages. */
static void checked_in(struct mr_pool *pool, uint32_t first, uint32_t n,
		       const void *site)
{
	struct mri_safety *safety = pool->safety;
	const uint32_t place = mri_site_find(safety, site);
	const bool is_filled = fills_pages(pool);
	const uint64_t in =
		mri_state(safety, place, is_filled ? MRI_STATE_POISONED : 0);

	for (uint32_t i = first; i < first + n; i++)
		if (mark_free(pool, i, in, place) && is_filled)
			mri_poison_fill(pool, mri_page_addr(pool, i),
					pool->page_bytes);
}

static const struct mri_checks checks = {
	.alloc = checked_alloc,
	.free = checked_free,
	.page_in = checked_page_in,
	.out = checked_out,
	.again = checked_again,
	.in = checked_in,
	.invalid = checked_invalid,
};

void mri_safety_tick(struct mr_pool *pool, uint64_t now_ns)
{
	if (pool->safety != NULL)
		__atomic_store_n(&pool->safety->now_us, now_ns / 1000,
				 __ATOMIC_RELAXED);
}

void mri_safety_forget(struct mr_pool *pool, uint32_t first, uint32_t end)
{
	if (pool->safety == NULL)
		return;
	for (uint32_t page = first; page < end; page++)
		__atomic_store_n(&pool->safety->states[page], 0,
				 __ATOMIC_RELAXED);
	mri_poison_allow(pool, mri_page_addr(pool, first),
			 (uint64_t)(end - first) << pool->page_shift);
}

/* Set the level of an idle pool; see mr_pool_set_safety(). */
int mri_safety_set(struct mr_pool *pool, enum mr_safety level,
		   struct mr_reason *reterr_reason)
{
	struct mri_safety *safety = NULL;

	if (level != MR_SAFETY_COUNTS) {
		safety = make(pool, level);
		if (safety == NULL)
			return mr_fail(reterr_reason, -ENOMEM,
				       "no memory for the states of %u pages",
				       pool->n_pages);
	}
	mri_safety_destroy(pool);
	pool->safety = safety;
	pool->checks = safety != NULL ? &checks : &mri_no_checks;
	return 0;
}

int mr_pool_set_safety(struct mr_pool *pool, enum mr_safety safety,
		       struct mr_reason *reterr_reason)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	if ((unsigned int)safety > MR_SAFETY_POISON)
		return mr_fail(reterr_reason, -EINVAL,
			       "no such safety level: %d", (int)safety);
	mr_pool_stats(pool, &stats);
	if (stats.n_caches > 0 || stats.n_in_flight > 0)
		return mr_fail(
			reterr_reason, -EBUSY,
			"%s: %u caches exist and %llu pages are in flight, "
			"taken by unknown callers; destroy and free them first",
			pool->name, stats.n_caches,
			(unsigned long long)stats.n_in_flight);
	return mri_safety_set(pool, safety, reterr_reason);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From MR_SAFETY_POISON on: freed bytes get a pattern, and freed pages wait.
 *
 * Writing through a freed address breaks the pattern, which is checked when the
 * page is allocated again. Reusing a page at once would hide that, so pages
 * wait in a queue until it holds a quarter of the pool, or mr_pool_trim() finds
 * them old; the oldest leaves first. Everything takes a lock: this is for
 * finding faults.
 */
#include <errno.h>
#include <string.h>

#include "mem/mem.h"
#include "pool/debug/safety.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
#endif

int mri_quarantine_init(struct mr_pool *pool, struct mri_quarantine *q)
{
	q->n_places = pool->n_pages;
	q->bound = mri_pool_population(pool) / 4;
	q->pages = mr_alloc(pool->ctx, 0, q->n_places * sizeof(q->pages[0]));
	if (q->pages == NULL)
		return -ENOMEM;
	pthread_mutex_init(&q->lock, NULL);
	return 0;
}

void mri_quarantine_fini(struct mr_pool *pool, struct mri_quarantine *q)
{
	if (q->pages == NULL)
		return;
	pthread_mutex_destroy(&q->lock);
	mr_free(pool->ctx, q->pages);
}

/* It has room for each page of the pool, and none is here twice. */
void mri_quarantine_put(struct mri_quarantine *q, const uint32_t *pages,
			uint32_t n)
{
	uint32_t end;

	pthread_mutex_lock(&q->lock);
	end = q->first + q->n;
	for (uint32_t i = 0; i < n; i++, end++)
		q->pages[end % q->n_places] = pages[i];
	__atomic_store_n(&q->n, end - q->first, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&q->lock);
}

/* Under its lock: take the n oldest. */
static void take_oldest(struct mri_quarantine *q, uint32_t *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pages[i] = q->pages[(q->first + i) % q->n_places];
	q->first = (q->first + n) % q->n_places;
	q->n_left += n;
	__atomic_store_n(&q->n, q->n - n, __ATOMIC_RELAXED);
}

uint32_t mri_quarantine_take(struct mri_quarantine *q, uint32_t *pages,
			     uint32_t n, uint32_t n_keep)
{
	if (__atomic_load_n(&q->n, __ATOMIC_RELAXED) <= n_keep)
		return 0;
	pthread_mutex_lock(&q->lock);
	n = mri_min_u32(n, q->n > n_keep ? q->n - n_keep : 0);
	take_oldest(q, pages, n);
	pthread_mutex_unlock(&q->lock);
	return n;
}

uint32_t mri_quarantine_reclaim(struct mr_pool *pool)
{
	uint32_t pages[MR_MAGAZINE_PAGES], n;

	if (pool->safety == NULL)
		return 0;
	n = mri_quarantine_take(&pool->safety->quarantine, pages,
				MR_MAGAZINE_PAGES, 0);
	mri_page_back_bulk(&pool->page_alloc, pages, n);
	return n;
}

uint64_t mri_quarantine_end(struct mr_pool *pool, uint64_t now_ns,
			    uint64_t idle_ns)
{
	struct mri_quarantine *q;
	uint32_t pages[MR_MAGAZINE_PAGES], n;
	uint64_t n_ended = 0;

	if (pool->safety == NULL || pool->safety->level < MR_SAFETY_POISON)
		return 0;
	q = &pool->safety->quarantine;
	if (mri_distance(q->seen_ns, now_ns) < idle_ns)
		return 0;
	pthread_mutex_lock(&q->lock);
	do { /* later ones are all behind these */
		n = mri_min_u32(MR_MAGAZINE_PAGES,
				(uint32_t)mri_distance(q->n_left, q->n_seen));
		take_oldest(q, pages, n);
		mri_page_back_bulk(&pool->page_alloc, pages, n);
		n_ended += n;
	} while (n > 0);
	q->n_seen = q->n_left + q->n;
	pthread_mutex_unlock(&q->lock);
	q->seen_ns = now_ns;
	return n_ended;
}

static uint8_t *bytes_at(const struct mr_pool *pool, uint64_t addr)
{
	return pool->region->base + addr;
}

void mri_poison_allow(const struct mr_pool *pool, uint64_t addr,
		      uint64_t n_bytes)
{
#ifdef HAS_ASAN
	ASAN_UNPOISON_MEMORY_REGION(bytes_at(pool, addr), n_bytes);
#else
	(void)pool;
	(void)addr;
	(void)n_bytes;
#endif
}

/* Its last owner frees these bytes, so nobody else reads them. */
void mri_poison_fill(struct mr_pool *pool, uint64_t addr, uint32_t n_bytes)
{
	memset(bytes_at(pool, addr), MRI_POISON, n_bytes);
#ifdef HAS_ASAN
	ASAN_POISON_MEMORY_REGION(bytes_at(pool, addr), n_bytes);
#endif
}

/* Offset of the first changed byte; n_bytes: none. */
static uint32_t find_broken(const uint8_t *bytes, uint32_t n_bytes)
{
	/* All bytes are equal if each equals the next one. */
	if (bytes[0] == MRI_POISON &&
	    memcmp(bytes, bytes + 1, n_bytes - 1) == 0)
		return n_bytes;
	for (uint32_t i = 0; i < n_bytes; i++)
		if (bytes[i] != MRI_POISON)
			return i;
	return n_bytes;
}

void mri_poison_check(struct mr_pool *pool, uint32_t page, uint64_t state)
{
	const uint64_t addr = mri_page_addr(pool, page);
	const uint8_t *bytes = bytes_at(pool, addr);
	const uint32_t site = mri_state_site(state);
	char where[MRI_SITE_TEXT];
	uint32_t at;

	mri_poison_allow(pool, addr, pool->page_bytes);
	if ((state & MRI_STATE_POISONED) == 0)
		return;
	at = find_broken(bytes, pool->page_bytes);
	if (at == pool->page_bytes)
		return;
	__atomic_fetch_add(&pool->counters.poison_broken, 1, __ATOMIC_RELAXED);
	if (!mri_site_tell(pool->safety, site, MRI_TOLD_BROKEN))
		return;
	mri_site_say(pool->safety, site, where);
	mr_log(pool->ctx, MR_LOG_ERROR,
	       "%s: page %u (0x%llx) was written to while free: byte %u is "
	       "0x%02x; it was freed by %s, and its address is still in use",
	       pool->name, page, (unsigned long long)addr, at, bytes[at],
	       where);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_pool_trim(): returns idle pages, and sorts those that it keeps.
 *
 *     depot --half--> one bit per page --> sorted, each page once
 *                                         | high addresses: idle
 *                                         v
 *     depot <-- magazines, sorted      page allocator --> segments --> system
 *
 * The depot sees one more cache. Idle pages are those that were in the depot
 * even when the most pages were in use; that peak decays by an eighth per call.
 * Pages with high addresses go first, so that the last segments become free:
 * only those can be released.
 *
 * Only the owner of an idle cache can return its pages. It is asked to, and
 * does so at its next flush. Pages in quarantine are returned after the same
 * time.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "mem/mem.h"
#include "pool/debug/safety.h"

enum {
	DEFAULT_MAGAZINES = 256,
	BITS = 64,
};

static const uint64_t DEFAULT_IDLE_NS = UINT64_C(10) * 1000 * 1000 * 1000;

/* One call. */
struct round {
	struct mr_pool *pool;
	uint64_t n_idle;   /* pages that may leave the depot for good */
	uint64_t *is_here; /* a bit per page */
	struct mri_magazine **magazines;
	uint32_t n_magazines;
	uint64_t n_popped, n_pushed, n_dropped; /* pages */
	uint64_t n_failed;
	struct mr_trim_report report;
};

/*
 * The clock that states are stamped by, and what caches were seen to do: those
 * that did nothing for long are asked to give back.
 */
static void tick(struct mr_pool *pool, uint64_t now_ns, uint64_t idle_ns)
{
	mri_safety_tick(pool, now_ns);
	pthread_mutex_lock(&pool->lock);
	for (struct mr_cache *c = pool->caches; c != NULL; c = c->next)
		if (mri_cache_idle_ns(c, now_ns) >= idle_ns)
			__atomic_store_n(&c->is_asked, 1, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&pool->lock);
}

/* Pages of the depot that were idle since the last calls. */
static uint64_t n_idle_pages(struct mr_pool *pool,
			     const struct mr_pool_stats *stats)
{
	const uint64_t n_used =
		stats->n_in_flight + stats->n_cached + stats->n_open;
	uint64_t *high = &pool->trim.n_high;
	uint64_t n_needed;

	*high -= *high / 8;
	if (*high < n_used)
		*high = n_used;
	n_needed = *high - n_used;
	return stats->n_depot > n_needed ? stats->n_depot - n_needed : 0;
}

/*
 * A page that is here already, or in the page allocator, was freed twice: it is
 * dropped here, and the other one stays.
 */
static void look_at(struct round *r, uint32_t page)
{
	struct mri_page_alloc *pa = &r->pool->page_alloc;
	const uint32_t in_group = page & ((1u << pa->group_shift) - 1);
	const uint64_t bit = UINT64_C(1) << page % BITS;

	if (page < pa->n_pages && (r->is_here[page / BITS] & bit) == 0 &&
	    (pa->groups[page >> pa->group_shift].free >> in_group & 1) == 0)
		r->is_here[page / BITS] |= bit;
	else
		r->n_dropped++;
}

static void pop_magazines(struct round *r, uint32_t n)
{
	struct mri_depot *depot = &r->pool->depot;

	while (r->n_magazines < n) {
		struct mri_magazine *magazine =
			mri_depot_take(depot, &depot->filled, &r->n_failed);

		if (magazine == NULL)
			break;
		r->magazines[r->n_magazines++] = magazine;
		r->n_popped += mri_magazine_n(magazine);
		mri_lock_take(&r->pool->page_alloc.lock);
		for (uint32_t i = 0; i < mri_magazine_n(magazine); i++)
			look_at(r, magazine->numbers[i]);
		mri_lock_give(&r->pool->page_alloc.lock);
	}
}

/* Up to n of the highest pages, in ascending order at the end of an array. */
static uint32_t take_highest(struct round *r, uint32_t *at_word,
			     uint32_t pages[MR_MAGAZINE_MAX_PAGES], uint32_t n)
{
	uint32_t first = MR_MAGAZINE_MAX_PAGES;

	while (MR_MAGAZINE_MAX_PAGES - first < n) {
		uint64_t *word = &r->is_here[*at_word];
		uint32_t bit;

		if (*word == 0) {
			if (*at_word == 0)
				break;
			--*at_word;
			continue;
		}
		bit = BITS - 1 - (uint32_t)__builtin_clzll(*word);
		*word &= ~(UINT64_C(1) << bit);
		pages[--first] = *at_word * BITS + bit;
	}
	return MR_MAGAZINE_MAX_PAGES - first;
}

/*
 * The highest pages to the page allocator, as many as are idle, and what fills
 * no magazine; the others to the depot, the lowest on top.
 */
static void give_back(struct round *r)
{
	struct mr_pool *pool = r->pool;
	struct mri_depot *depot = &pool->depot;
	const uint32_t n_full_one = mri_magazine_pages(pool);
	uint32_t pages[MR_MAGAZINE_MAX_PAGES];
	uint32_t at_word = (pool->n_pages - 1) / BITS, n_full = 0;
	uint64_t n_left = r->n_popped - r->n_dropped;
	uint64_t n_back = n_left < r->n_idle ? n_left : r->n_idle;

	n_back += (n_left - n_back) % n_full_one;
	r->report.n_pages_back = n_back;
	while (n_left > 0) {
		const uint32_t n_want = n_back > 0 && n_back < n_full_one ?
						(uint32_t)n_back :
						n_full_one;
		const uint32_t n = take_highest(r, &at_word, pages, n_want);
		const uint32_t *first = pages + MR_MAGAZINE_MAX_PAGES - n;
		struct mri_magazine *magazine = r->magazines[n_full];

		n_left -= n;
		if (n_back > 0) {
			n_back -= n;
			mri_page_back_bulk(&pool->page_alloc, first, n);
			continue;
		}
		memcpy(magazine->numbers, first, n * sizeof(first[0]));
		mri_magazine_set_n(magazine, n);
		mri_depot_put(&depot->filled, magazine, &r->n_failed);
		r->n_pushed += n;
		n_full++;
	}
	for (uint32_t i = n_full; i < r->n_magazines; i++) {
		mri_magazine_set_n(r->magazines[i], 0);
		mri_depot_put(&depot->empty, r->magazines[i], &r->n_failed);
	}
}

/*
 * Half of the magazines at most, rounded up, so that the data path finds some
 * meanwhile. Pages of the depot are no measure: some are those of blocks.
 */
static void sort_depot(struct round *r, uint32_t max_magazines)
{
	struct mr_pool *pool = r->pool;
	const uint32_t n_there =
		mri_stack_n(&pool->depot.filled, mri_depot_n(&pool->depot));
	const uint32_t n = mri_min_u32((n_there + 1) / 2, max_magazines);

	if (n == 0)
		return;
	r->is_here = mr_alloc(pool->ctx, 0,
			      (pool->n_pages / BITS + 1) * sizeof(uint64_t));
	r->magazines =
		mr_alloc(pool->ctx, 0, n * sizeof(struct mri_magazine *));
	if (r->is_here != NULL && r->magazines != NULL) {
		pop_magazines(r, n);
		give_back(r);
	}
	mr_free(pool->ctx, r->is_here);
	mr_free(pool->ctx, (void *)r->magazines);
	mri_counter_add_shared(&pool->counters.n_from_depot, r->n_popped);
	mri_counter_add_shared(&pool->counters.n_to_depot, r->n_pushed);
	mri_counter_add_shared(&pool->counters.depot_cas_failed, r->n_failed);
	/* What was free twice came back once too often: it is out once more. */
	mri_counter_add_shared(&pool->counters.n_direct_alloc, r->n_dropped);
	mri_counter_add_shared(&pool->counters.free_double, r->n_dropped);
	r->report.n_magazines = r->n_magazines;
	r->report.n_duplicates = r->n_dropped;
	if (r->n_dropped > 0)
		mr_log(pool->ctx, MR_LOG_ERROR,
		       "%s: %llu pages were freed twice (MR_SAFETY_STATES "
		       "reports by whom)",
		       pool->name, (unsigned long long)r->n_dropped);
}

/* Blocks that the frag caches have no use for, while pages are idle. */
static void take_blocks(struct round *r)
{
	while (r->report.n_pages_back < r->n_idle) {
		const uint32_t n = mri_block_reclaim(r->pool, NULL);

		if (n == 0)
			break;
		r->report.n_pages_back += n;
	}
}

/* Pages to keep, so that only segments go which were free for long enough. */
static uint64_t pages_in_use(struct mr_pool *pool, uint64_t now_ns,
			     uint64_t idle_ns)
{
	struct mri_page_alloc *pa = &pool->page_alloc;
	uint64_t n_keep;
	bool is_last = true;

	mri_lock_take(&pa->lock);
	n_keep = pa->n_pages;
	for (uint32_t s = pa->n_segments; s-- > 0;) {
		const struct mri_page_segment *segment = &pa->segments[s];
		const uint32_t end =
			mri_min_u32(segment->end_page, pa->n_pages);
		uint64_t *since = &pool->trim.free_since_ns[s];

		if (segment->n_free != end - segment->first_page)
			*since = UINT64_MAX;
		else if (*since > now_ns)
			*since = now_ns;
		is_last = is_last && *since <= now_ns &&
			  now_ns - *since >= idle_ns;
		if (is_last)
			n_keep = segment->first_page;
	}
	for (uint32_t s = pa->n_segments; s < MRI_PAGE_SEGMENTS; s++)
		pool->trim.free_since_ns[s] = UINT64_MAX;
	mri_lock_give(&pa->lock);
	return n_keep;
}

static void shrink(struct round *r, uint64_t now_ns, uint64_t n_keep,
		   uint64_t idle_ns)
{
	struct mr_pool *pool = r->pool;
	const uint64_t n_pages = mri_pool_population(pool);
	const uint64_t n_used = pages_in_use(pool, now_ns, idle_ns);
	struct mr_reason why;
	uint64_t n_gone = 0;

	if (n_pages <= n_keep)
		return;
	if (n_used == n_pages)
		snprintf(r->report.why, sizeof(r->report.why),
			 "the last segment has pages in use, or free for less "
			 "than %llu ms",
			 (unsigned long long)(idle_ns / 1000000));
	else if (mr_pool_shrink(pool, n_used > n_keep ? n_used : n_keep,
				&n_gone, &why) < 0)
		snprintf(r->report.why, sizeof(r->report.why), "%.159s",
			 why.text);
	r->report.n_pages_shrunk = n_gone;
}

static void grow_ahead(struct round *r)
{
	struct mr_pool *pool = r->pool;
	const struct mri_page_alloc *pa = &pool->page_alloc;
	const uint32_t n_before = mri_page_alloc_n_pages(pa);

	if (mri_page_alloc_n_free(pa) >= pa->low_pages ||
	    n_before == mri_page_alloc_max_pages(pa))
		return;
	if (mr_pool_grow(pool, 0, NULL) == 0)
		r->report.n_pages_grown = mri_page_alloc_n_pages(pa) - n_before;
}

int mr_pool_trim(struct mr_pool *pool, const struct mr_trim_config *config,
		 struct mr_trim_report *report)
{
	const uint64_t now_ns = mr_ctx_now_ns(pool->ctx);
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct round r = { .pool = pool };
	struct mr_trim_config c;
	int err;

	err = mri_copy_sized(&c, config, sizeof(c), "mr_trim_config", NULL);
	if (err < 0 || (report != NULL && report->size < sizeof(report->size)))
		return -EINVAL;
	if (c.n_keep == 0)
		c.n_keep = pool->trim.n_first;
	if (c.idle_ns == 0)
		c.idle_ns = DEFAULT_IDLE_NS;
	if (c.max_magazines == 0)
		c.max_magazines = DEFAULT_MAGAZINES;

	tick(pool, now_ns, c.idle_ns);
	mr_pool_stats(pool, &stats);
	r.n_idle = n_idle_pages(pool, &stats);
	sort_depot(&r, c.max_magazines);
	take_blocks(&r);
	r.report.n_pages_back += mri_quarantine_end(pool, now_ns, c.idle_ns);
	grow_ahead(&r);
	if (r.report.n_pages_grown == 0)
		shrink(&r, now_ns, c.n_keep, c.idle_ns);
	return report == NULL ?
		       0 :
		       mri_fill_sized(report, &r.report, sizeof(r.report));
}

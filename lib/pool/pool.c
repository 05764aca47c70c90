/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates and destroys page pools, and commits their pages to ports. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "mem/mem.h"
#include "pool/debug/safety.h"
#include "pool/hand_over.h"

enum {
	DEFAULT_PAGES = 8192,
	ELASTIC_PAGES = 1 << 20, /* 170 queues with rings of 2048 */
	DEFAULT_HEADROOM_BYTES = 128,
	DEFAULT_MAX_CACHES = 64,
	MIN_DATA_BYTES = 64,
};

static const uint32_t SEGMENT_BYTES = 2u << 20;

static void set_defaults(const struct mr_pool_config *asked,
			 struct mr_pool_config *c)
{
	*c = *asked;
	if (c->n_pages == 0)
		c->n_pages = DEFAULT_PAGES;
	if (c->page_bytes == 0)
		c->page_bytes = MRI_POOL_PAGE_BYTES;
	if (c->headroom_bytes == 0)
		c->headroom_bytes = DEFAULT_HEADROOM_BYTES;
	if (c->magazine_pages == 0)
		c->magazine_pages =
			mri_magazine_default(c->n_pages, c->max_caches);
	if (c->max_caches == 0)
		c->max_caches = DEFAULT_MAX_CACHES;
	if (c->name == NULL)
		c->name = "pool";
	if (c->max_pages == 0)
		c->max_pages = c->n_pages;
}

static int check_sizes(const struct mr_pool_config *c,
		       struct mr_reason *reterr_reason)
{
	if (!mri_is_power_of_two(c->page_bytes) || c->page_bytes < 2048 ||
	    c->page_bytes > 32768)
		return mr_fail(reterr_reason, -EINVAL,
			       "pages of %u bytes: must be a power of two, "
			       "2048 to 32768",
			       c->page_bytes);
	if (c->n_pages > MRI_POOL_MAX_PAGES ||
	    c->max_pages > MRI_POOL_MAX_PAGES)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u pages: a pool has at most %u",
			       c->n_pages > MRI_POOL_MAX_PAGES ? c->n_pages :
								 c->max_pages,
			       MRI_POOL_MAX_PAGES);
	if (c->max_pages < c->n_pages)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_pool_config.max_pages: %u is less than its "
			       "%u pages",
			       c->max_pages, c->n_pages);
	if (c->headroom_bytes > c->page_bytes ||
	    c->tailroom_bytes > c->page_bytes ||
	    c->headroom_bytes + c->tailroom_bytes + MIN_DATA_BYTES >
		    c->page_bytes)
		return mr_fail(reterr_reason, -EINVAL,
			       "headroom of %u and tailroom of %u bytes leave "
			       "less than %d of a page of %u",
			       c->headroom_bytes, c->tailroom_bytes,
			       MIN_DATA_BYTES, c->page_bytes);
	return 0;
}

static int check_config(const struct mr_pool_config *c,
			struct mr_reason *reterr_reason)
{
	const int err = check_sizes(c, reterr_reason);

	if (err < 0)
		return err;
	if (c->numa_node_plus_1 > MRI_MAX_NUMA_NODES)
		return mr_fail(
			reterr_reason, -EINVAL,
			"mr_pool_config.numa_node_plus_1: no NUMA node %u",
			c->numa_node_plus_1 - 1);
	if ((unsigned int)c->safety > MR_SAFETY_POISON)
		return mr_fail(reterr_reason, -EINVAL,
			       "mr_pool_config.safety: no such value: %d",
			       (int)c->safety);
	if (c->max_caches > 4096)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u caches: a pool has at most 4096",
			       c->max_caches);
	if (!mri_is_magazine_size(c->magazine_pages))
		return mr_fail(reterr_reason, -EINVAL,
			       "magazines of %u pages: must be a power of two, "
			       "%d to %d",
			       c->magazine_pages, MR_MAGAZINE_PAGES,
			       MR_MAGAZINE_MAX_PAGES);
	return 0;
}

static void free_tables(struct mr_pool *pool)
{
	mri_table_free(pool->owners);
	mri_depot_fini(&pool->depot);
	mri_blocks_fini(&pool->blocks);
}

/*
 * Each cache holds two magazines and may open others. The slack is for caches
 * of other pools, and for magazines that are passed on before they are full.
 */
static uint32_t count_magazines(uint32_t n_pages, uint32_t magazine_pages,
				uint32_t max_caches)
{
	return 2 * (n_pages / magazine_pages) + 1 +
	       2 * (2 + MR_OPEN_MAGAZINES) * max_caches;
}

uint32_t mri_pool_n_magazines(const struct mr_pool *pool, uint32_t n_pages)
{
	return count_magazines(n_pages, mri_magazine_pages(pool),
			       pool->max_caches);
}

static int alloc_tables(struct mr_pool *pool, const struct mr_pool_config *c)
{
	const uint32_t max_magazines = count_magazines(
		pool->n_pages, c->magazine_pages, c->max_caches);
	const uint32_t n_magazines =
		count_magazines(c->max_pages, c->magazine_pages, c->max_caches);

	pool->owners = mri_table_alloc(pool->n_pages, c->max_pages);
	if (pool->owners == NULL ||
	    mri_depot_init(&pool->depot, max_magazines, n_magazines,
			   c->magazine_pages) < 0 ||
	    mri_blocks_init(&pool->blocks, pool->n_pages, pool->page_shift) <
		    0 ||
	    mri_page_alloc_init(&pool->page_alloc, pool->n_pages, c->max_pages,
				pool->page_shift) < 0) {
		free_tables(pool);
		return -ENOMEM;
	}
	return 0;
}

/* Create a region for this pool alone. */
static int make_region(struct mr_pool *pool, struct mr_reason *reterr_reason)
{
	const uint64_t max_bytes = (uint64_t)pool->n_pages << pool->page_shift;
	struct mr_region_config config = { .size = sizeof(config),
					   .name = pool->name };

	/* If it needs more than half of the default size: twice its need. */
	if (max_bytes > UINT64_C(32) << 30)
		config.max_bytes = 2 * max_bytes;

	return mr_region_create(pool->ctx, &config, &pool->region,
				reterr_reason);
}

/* From here on, caches of other pools find this one by its addresses. */
static int join_region(struct mr_pool *pool, uint64_t n_bytes,
		       struct mr_reason *reterr_reason)
{
	pool->place = mri_region_join(pool->region, pool->addr, n_bytes, pool);
	if (pool->place >= 0)
		return 0;
	return mr_fail(reterr_reason, -ENOMEM,
		       "a region has room for %d pools, all in use",
		       MRI_MAX_TENANTS);
}

/* Set the safety level and join the region, once there are pages. */
static int start_pool(struct mr_pool *pool, enum mr_safety safety,
		      struct mr_reason *reterr_reason)
{
	int err = mri_safety_set(pool, safety, reterr_reason);

	if (err == 0)
		err = join_region(pool,
				  (uint64_t)pool->n_pages << pool->page_shift,
				  reterr_reason);
	if (err < 0)
		mri_safety_destroy(pool);
	return err;
}

/* Its region, and the first segment. */
static int make_memory(struct mr_pool *pool, const struct mr_pool_config *c,
		       struct mr_reason *reterr_reason)
{
	int err = 0;

	pool->region = c->region;
	pool->owns_region = c->region == NULL;
	if (pool->owns_region)
		err = make_region(pool, reterr_reason);
	return err < 0 ?
		       err :
		       mri_pool_segments_init(pool, c->n_pages, reterr_reason);
}

static void take_config(struct mr_pool *pool,
			const struct mr_pool_config *asked,
			const struct mr_pool_config *c)
{
	pool->asked_caches = asked->max_caches;
	pool->has_default_magazines = asked->magazine_pages == 0;
	pool->is_elastic = asked->n_pages == 0 || asked->is_elastic != 0;
	pool->n_pages = pool->is_elastic && asked->max_pages == 0 &&
					c->n_pages < ELASTIC_PAGES ?
				ELASTIC_PAGES :
				c->max_pages;
	pool->trim.n_first = c->n_pages;
	for (uint32_t s = 0; s < MRI_PAGE_SEGMENTS; s++)
		pool->trim.free_since_ns[s] = UINT64_MAX;
	pool->page_bytes = c->page_bytes;
	pool->vector_bytes = mri_vector_bytes();
	pool->page_shift = (uint32_t)__builtin_ctz(c->page_bytes);
	pool->headroom_bytes = c->headroom_bytes;
	pool->tailroom_bytes = c->tailroom_bytes;
	pool->max_caches = c->max_caches;
	pool->numa_node_plus_1 = c->numa_node_plus_1;
	pool->page_alloc.low_pages = c->low_pages;
	pool->segment_pages = c->segment_pages != 0 ?
				      c->segment_pages :
				      SEGMENT_BYTES >> pool->page_shift;
	snprintf(pool->name, sizeof(pool->name), "%s", c->name);
}

/* Allocate all but its memory. */
static int make_pool(struct mr_ctx *ctx, const struct mr_pool_config *asked,
		     const struct mr_pool_config *c,
		     const struct mri_pool_image *image,
		     struct mr_pool **ret_pool, struct mr_reason *reterr_reason)
{
	struct mr_pool *pool = mr_alloc(ctx, MRI_CACHE_LINE, sizeof(*pool));

	if (pool == NULL)
		return mr_fail(reterr_reason, -ENOMEM, "no memory for a pool");
	pool->ctx = ctx;
	take_config(pool, asked, c);
	if (image != NULL) {
		pool->n_pages = image->n_places;
		pool->has_default_magazines = image->has_default_magazines != 0;
	}
	if (alloc_tables(pool, c) < 0) {
		mr_free(ctx, pool);
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for the tables of a pool of %u pages",
			       c->n_pages);
	}
	pthread_mutex_init(&pool->lock, NULL);
	pthread_mutex_init(&pool->grow_lock, NULL);
	*ret_pool = pool;
	return 0;
}

/* Free all but its memory. */
static void free_pool(struct mr_pool *pool)
{
	mri_page_alloc_fini(&pool->page_alloc);
	free_tables(pool);
	pthread_mutex_destroy(&pool->grow_lock);
	pthread_mutex_destroy(&pool->lock);
	mr_free(pool->ctx, pool);
}

int mri_pool_create(struct mr_ctx *ctx, const struct mr_pool_config *config,
		    const struct mri_pool_image *image,
		    struct mr_region *region, struct mr_pool **ret_pool,
		    struct mr_reason *reterr_reason)
{
	struct mr_pool_config asked, c = { 0 };
	struct mr_pool *pool = NULL;
	int err;

	err = mri_copy_sized(&asked, config, sizeof(asked), "mr_pool_config",
			     reterr_reason);
	if (err == 0) {
		set_defaults(&asked, &c);
		err = check_config(&c, reterr_reason);
	}
	if (err == 0)
		err = make_pool(ctx, &asked, &c, image, &pool, reterr_reason);
	if (err == 0 && image != NULL) {
		pool->region = region;
		pool->owns_region = true;
		mri_pool_segments_take(pool, image);
	} else if (err == 0) {
		err = make_memory(pool, &c, reterr_reason);
		region = pool->owns_region ? pool->region : NULL;
	}
	if (err < 0)
		goto failed;
	err = start_pool(pool, c.safety, reterr_reason);
	if (err == 0) {
		*ret_pool = pool;
		return 0;
	}
	mri_pool_segments_fini(pool, NULL);
failed:
	(void)mr_region_destroy(region, NULL);
	if (pool != NULL)
		free_pool(pool);
	return err;
}

int mr_pool_create(struct mr_ctx *ctx, const struct mr_pool_config *config,
		   struct mr_pool **ret_pool, struct mr_reason *reterr_reason)
{
	return mri_pool_create(ctx, config, NULL, NULL, ret_pool,
			       reterr_reason);
}

/* Refuse to destroy a pool: say where its pages are, and what would help. */
static int refuse_destroy(const struct mr_pool *pool,
			  const struct mr_pool_stats *s,
			  const struct mri_pool_places *p,
			  struct mr_reason *reterr_reason)
{
	const uint64_t n_frames = mri_distance(p->n_in_blocks, s->n_in_flight);
	char rest[160], takers[256];

	snprintf(rest, sizeof(rest),
		 "free: %" PRIu64 " in the page allocator, %" PRIu64
		 " in caches, %" PRIu64 " in the depot, %" PRIu64
		 " in quarantine",
		 p->n_page_alloc, s->n_cached, s->n_depot, p->n_quarantine);
	if (pool->n_ports > 0 || s->n_caches > 0)
		return mr_fail(reterr_reason, -EBUSY,
			       "%s is in use by %u ports and %u caches; close "
			       "and destroy them first; in flight: %" PRIu64
			       " in rings of ports and in frames, %" PRIu64
			       " in blocks of frags; %s",
			       pool->name, pool->n_ports, s->n_caches, n_frames,
			       p->n_in_blocks, rest);
	mri_site_say_leaks(pool, takers, sizeof(takers));
	return mr_fail(reterr_reason, -EBUSY,
		       "%" PRIu64 " pages of %s are in flight: %" PRIu64
		       " of frames that were not freed, %" PRIu64
		       " in blocks of frags, %" PRIu64
		       " in open magazines of caches of other pools "
		       "(mr_cache_flush())%s; %s",
		       s->n_in_flight + s->n_open, pool->name, n_frames,
		       p->n_in_blocks, s->n_open, takers, rest);
}

int mr_pool_destroy(struct mr_pool *pool, struct mr_reason *reterr_reason)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mri_pool_places places;
	uint64_t n_bytes;
	int err;

	if (pool == NULL)
		return 0;
	mri_pool_stats(pool, &stats, &places);
	if (pool->n_ports > 0 || stats.n_caches > 0 ||
	    (stats.n_in_flight + stats.n_open > 0 && !pool->is_away))
		return refuse_destroy(pool, &stats, &places, reterr_reason);
	if (stats.free_over > 0)
		mr_log(pool->ctx, MR_LOG_ERROR,
		       "%llu more pages of %s were freed than allocated",
		       (unsigned long long)stats.free_over, pool->name);
	/* Pairs with the release by the last thread that freed a page. */
	(void)__atomic_load_n(&pool->counters.n_direct_free, __ATOMIC_ACQUIRE);
	(void)__atomic_load_n(&pool->counters.n_block_free, __ATOMIC_ACQUIRE);
	if (pool->owns_region &&
	    mri_region_n_tenants(pool->region) > (pool->place >= 0 ? 1U : 0U))
		return mr_fail(reterr_reason, -EBUSY,
			       "%s created its region, which has another pool; "
			       "destroy that one first",
			       pool->name);
	/* Leave before the memory goes: no cache may find the pool then. */
	n_bytes = mri_region_leave(pool->region, pool->place);
	err = mri_pool_segments_fini(pool, reterr_reason);
	if (err < 0) {
		(void)join_region(pool, n_bytes, NULL); /* its place is free */
		return err;
	}
	mri_safety_destroy(pool);
	if (pool->owns_region)
		mr_region_destroy(pool->region, NULL);
	free_pool(pool);
	return 0;
}

bool mr_pool_is_below(const struct mr_pool *pool, uint64_t n_bytes)
{
	const uint64_t pool_bytes = (uint64_t)mri_pool_population(pool)
				    << pool->page_shift;

	return pool->addr + pool_bytes <= n_bytes;
}

struct mr_region *mr_pool_region(const struct mr_pool *pool)
{
	return pool->region;
}

/* The loop converges because magazines have only four sizes. */
uint64_t mri_pool_with_caches(uint64_t n_others, uint32_t n_caches,
			      const struct mr_pool_config *asked)
{
	struct mr_pool_config c;
	uint64_t n = n_others;

	set_defaults(asked, &c);
	for (uint32_t i = 0; i < 5; i++) {
		if (asked->magazine_pages == 0)
			c.magazine_pages =
				mri_magazine_default(n, asked->max_caches);
		n = n_others +
		    (uint64_t)n_caches * mr_cache_max_pages(c.magazine_pages);
	}
	return n;
}

/* How many pages suffice for n_wanted, which include n_caches caches. */
static uint64_t enough_pages(const struct mr_pool *pool, uint64_t n_wanted,
			     uint32_t n_caches)
{
	const struct mr_pool_config asked = {
		.page_bytes = pool->page_bytes,
		.max_caches = pool->asked_caches,
		.magazine_pages = pool->has_default_magazines ?
					  0 :
					  mri_magazine_pages(pool),
	};

	return mri_pool_with_caches(
		n_wanted - (uint64_t)n_caches * mri_cache_max_pages(pool),
		n_caches, &asked);
}

/* Log growth and its effect on open ports. */
static void report_growth(const struct mr_pool *pool, uint32_t n_before,
			  const char *who)
{
	const uint32_t n_now = mri_pool_population(pool);
	char holders[256];

	if (mri_region_name_short_pins(
		    pool->region,
		    pool->addr + ((uint64_t)n_now << pool->page_shift), holders,
		    sizeof(holders)) == 0)
		mr_log(pool->ctx, MR_LOG_INFO,
		       "%s has grown from %u to %u pages for %s", pool->name,
		       n_before, n_now, who);
	else
		mr_log(pool->ctx, MR_LOG_WARNING,
		       "%s has grown from %u to %u pages for %s; frames in the "
		       "new pages are copied when they leave by %s, which was "
		       "opened before (foreign_copied): create the pool with "
		       "the pages that mr_pool_size_for() returns",
		       pool->name, n_before, n_now, who, holders);
}

/*
 * Ensure that the pool has n_needed pages. An elastic pool grows to n_wanted.
 * The pool's lock is released meanwhile, because growing is slow and calls the
 * log hook. -ENOMEM.
 */
static int ensure_pages(struct mr_pool *pool, const char *who,
			uint64_t n_needed, uint64_t n_wanted,
			struct mr_reason *ret_why)
{
	const uint32_t n_before = mri_pool_population(pool);
	int err;

	ret_why->text[0] = '\0';
	if (n_needed <= n_before)
		return 0;
	if (!pool->is_elastic)
		return -ENOMEM;
	if (n_wanted > pool->n_pages && n_needed <= pool->n_pages)
		n_wanted = pool->n_pages;
	pthread_mutex_unlock(&pool->lock);
	err = mri_pool_grow_to(pool, n_wanted, ret_why);
	if (err == 0)
		report_growth(pool, n_before, who);
	pthread_mutex_lock(&pool->lock);
	return err < 0 ? -ENOMEM : 0;
}

int mri_pool_check_room(struct mr_pool *pool, const char *who, uint64_t n_pages,
			struct mr_reason *reterr_reason)
{
	const uint64_t n_needed = pool->n_committed + n_pages;
	struct mr_reason why;

	if (pool->n_ports == 0 ||
	    ensure_pages(pool, who, n_needed, n_needed, &why) == 0)
		return 0;
	return mr_fail(reterr_reason, -ENOMEM,
		       "%s may hold %llu pages, and other ports and caches of "
		       "%s hold %llu: the pool needs at least %llu pages and "
		       "has %u%s%s",
		       who, (unsigned long long)n_pages, pool->name,
		       (unsigned long long)pool->n_committed,
		       (unsigned long long)n_needed, mri_pool_population(pool),
		       why.text[0] != '\0' ? ": " : "", why.text);
}

/* As mri_pool_commit(), with both locks held. */
static int commit_pages(struct mr_pool *pool, const char *who, uint64_t n_pages,
			uint32_t n_workers, struct mr_reason *reterr_reason)
{
	const uint32_t n_caches =
		n_workers > pool->n_caches ? n_workers : pool->n_caches;
	const uint64_t n_needed = pool->n_committed + n_pages;
	const uint64_t n_wanted =
		n_needed + (uint64_t)(n_caches - pool->n_caches) *
				   mri_cache_max_pages(pool);
	struct mr_reason why;

	if (ensure_pages(pool, who, n_needed, n_wanted, &why) < 0)
		return mr_fail(
			reterr_reason, -ENOMEM,
			"%s needs %llu pages for its rings and a burst per "
			"worker, and other ports and caches of %s hold %llu: "
			"the pool needs at least %llu pages and has %u%s%s",
			who, (unsigned long long)n_pages, pool->name,
			(unsigned long long)pool->n_committed,
			(unsigned long long)enough_pages(pool, n_wanted,
							 n_caches),
			mri_pool_population(pool),
			why.text[0] != '\0' ? ": " : "", why.text);
	pool->n_committed += n_pages;
	pool->n_ports++;
	return 0;
}

int mri_pool_commit(struct mr_pool *pool, const char *who, uint64_t n_pages,
		    uint32_t n_workers, struct mr_reason *reterr_reason)
{
	int err;

	/* Keeps segments from being removed meanwhile. */
	pthread_mutex_lock(&pool->grow_lock);
	pthread_mutex_lock(&pool->lock);
	err = mri_pool_check_frozen(pool, reterr_reason);
	if (err == 0)
		err = commit_pages(pool, who, n_pages, n_workers,
				   reterr_reason);
	pthread_mutex_unlock(&pool->lock);
	if (err == 0 && pool->page_alloc.n_segments > 1)
		mri_pool_empty_depot(pool);
	pthread_mutex_unlock(&pool->grow_lock);
	return err;
}

void mri_pool_uncommit(struct mr_pool *pool, uint64_t n_pages)
{
	pthread_mutex_lock(&pool->lock);
	pool->n_committed -= n_pages;
	pool->n_ports--;
	pthread_mutex_unlock(&pool->lock);
}

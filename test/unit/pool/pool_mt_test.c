/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All of lib/pool, by up to 15 workers: two pools in one region, a cache per
 * thread; buffers, blocks and frags that travel between threads, by themselves
 * or in objects (pool_mt_worker.h); caches that change threads; segments and a
 * third pool that come and go; a reader of statistics.
 */
#include <unistd.h>

#include "pool_mt_worker.h"

static void open_caches(struct worker *w)
{
	mt_check(w->thread->run,
		 mr_cache_create(w->pool, &w->cache, NULL) == 0);
	if (w->shared->layout.has_frags)
		mt_check(w->thread->run,
			 mr_frag_cache_create(w->cache, &w->frags, NULL) == 0);
	mt_check(w->thread->run, mr_objcache_create(w->shared->objects.pool,
						    &w->objects, NULL) == 0);
}

static void close_caches(struct worker *w)
{
	mr_objcache_destroy(w->objects);
	mr_frag_cache_destroy(w->frags);
	mr_cache_destroy(w->cache);
}

/* Everything goes back to the pool, or no segment would ever be free. */
static void return_all(struct worker *w)
{
	free_some(w, w->n_held);
	close_caches(w);
	open_caches(w);
}

/* The cache of whoever was here last goes on with this thread. */
static void swap_caches(struct worker *w)
{
	mr_frag_cache_destroy(w->frags);
	w->cache = mr_cache_adopt(__atomic_exchange_n(
		&w->shared->parked, w->cache, __ATOMIC_ACQ_REL));
	w->pool = mr_cache_pool(w->cache);
	if (w->frags != NULL)
		mt_check(w->thread->run,
			 mr_frag_cache_create(w->cache, &w->frags, NULL) == 0);
}

static void worker_body(struct mt_thread *thread)
{
	struct mt_run *run = thread->run;
	struct worker w = { .thread = thread, .shared = run->shared };
	const uint32_t n_between = w.shared->layout.is_growing ? 256 : 8000;

	w.pool = w.shared->pools[thread->id % 2];
	open_caches(&w);
	for (uint64_t op = 0; op < run->n_ops && !mt_failed(run); op++) {
		do_one(&w);
		/* Bounds hold at all times. */
		mt_check(run,
			 w.cache->n_open <=
				 MR_OPEN_MAGAZINES * w.cache->magazine_pages);
		if (mt_random(thread, 200) == 0)
			swap_caches(&w);
		if (w.frags != NULL && mt_random(thread, 4000) == 0)
			mr_frag_cache_drain(w.frags);
		if (mt_random(thread, n_between) == 0)
			return_all(&w);
	}
	free_some(&w, w.n_held);
	close_caches(&w);
}

/* Segments come and go; whether growing has room is not known. */
static void grow_and_shrink(struct mt_thread *thread, struct mr_pool *pool)
{
	const struct mr_trim_config config = { .size = sizeof(config),
					       .idle_ns = 1 };
	struct mr_trim_report report = { .size = sizeof(report) };

	(void)mr_pool_grow(pool, 0, NULL);
	mt_check(thread->run, mr_pool_trim(pool, &config, &report) == 0);
	mt_check(thread->run, report.n_duplicates == 0);
	if (mt_random(thread, 2) == 0)
		mt_check(thread->run, mr_pool_shrink(pool, 0, NULL, NULL) == 0);
}

/* Pools come and go in the region, and somebody looks at statistics. */
static void watch_pools(struct mt_thread *thread)
{
	struct shared *shared = thread->run->shared;
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 16,
					       .region = shared->f.region };

	do {
		struct mr_region_stats region = { .size = sizeof(region) };
		struct mr_pool_stats stats = { .size = sizeof(stats) };
		struct mr_pool *pool;

		mt_check(thread->run, mr_pool_create(shared->f.ctx, &config,
						     &pool, NULL) == 0);
		/* Sums like free_over are exact at rest only. */
		for (int i = 0; i < 2; i++) {
			mr_pool_stats(shared->pools[i], &stats);
			mt_check(thread->run, stats.free_invalid == 0);
			mt_check(thread->run,
				 stats.n_caches <= MAX_WORKERS + 1);
			if (shared->layout.is_growing)
				grow_and_shrink(thread, shared->pools[i]);
		}
		mr_region_stats(shared->f.region, &region);
		mt_check(thread->run,
			 shared->layout.is_growing || region.n_segments == 3);
		usleep(300);
		mt_check(thread->run, mr_pool_destroy(pool, NULL) == 0);
	} while (__atomic_load_n(&shared->n_working, __ATOMIC_RELAXED) > 0);
}

static void run_thread(struct mt_thread *thread)
{
	struct shared *shared = thread->run->shared;

	if (thread->id > shared->layout.n_workers) {
		watch_pools(thread);
		return;
	}
	worker_body(thread);
	__atomic_fetch_sub(&shared->n_working, 1, __ATOMIC_RELAXED);
}

static void drain_rings(struct shared *shared)
{
	for (uint32_t i = 0; i < shared->layout.n_workers; i++) {
		struct mr_frame frames[MAX_IN_RINGS];
		const uint32_t n = receive_frames(shared, shared->objects.cache,
						  i, frames, MAX_IN_RINGS);

		for (uint32_t k = 0; k < n && !shared->layout.has_frags; k++)
			shared->n_owners[frames[k].addr /
					 shared->layout.page_bytes]--;
		mr_frame_free_bulk(shared->f.cache, frames, n);
		for (uint32_t k = 0; k < shared->layout.n_workers; k++)
			mr_ring_spsc_destroy(shared->rings[i][k]);
	}
	mr_cache_destroy(shared->parked);
}

static void open_pools(struct shared *s, struct layout layout)
{
	const struct mr_objpool_config objects = {
		.object_bytes = sizeof(struct mr_frame), .n_objects = N_OBJECTS
	};
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = layout.n_pages,
					 .magazine_pages = MR_MAGAZINE_PAGES,
					 .page_bytes = layout.page_bytes,
					 .safety = layout.safety };

	if (layout.is_growing) {
		config.max_pages = 4 * layout.n_pages;
		config.segment_pages = layout.n_pages / 2;
	}
	memset(s, 0, sizeof(*s));
	s->layout = layout;
	s->n_working = layout.n_workers;
	objects_open(&s->objects, &objects);
	fixture_open_with(&s->f, config);
	config.region = s->f.region;
	s->pools[0] = s->f.pool;
	assert_false(mr_pool_create(s->f.ctx, &config, &s->pools[1], NULL));
	assert_false(mr_cache_create(s->pools[1], &s->parked, NULL));
	for (uint32_t i = 0, n = layout.n_workers; i < n * n; i++)
		assert_false(mr_ring_spsc_create(
			s->f.ctx, RING, &s->rings[i / n][i % n], NULL));
}

/*
 * That the runs were about something. One run shows nothing: its threads may
 * happen to run one after the other.
 */
struct seen {
	uint64_t n_returned; /* pages that returned to the other pool */
	uint64_t n_grown;
};

static void run_layout(struct layout layout, struct seen *seen)
{
	static struct shared shared;
	struct mt_run run = { .body = run_thread,
			      .shared = &shared,
			      .n_ops = mt_n_ops(layout.n_ops) };

	open_pools(&shared, layout);
	run.n_threads = layout.n_workers + 1;
	assert_int_equal(mt_run(&run), 0);
	drain_rings(&shared);
	mr_cache_flush(shared.f.cache);
	for (int i = 0; i < MAX_BUFFERS; i++)
		assert_int_equal(shared.n_owners[i], 0);
	for (int i = 0; i < 2; i++) {
		const struct mr_pool_stats s = pool_stats(shared.pools[i]);

		assert_in_flight(shared.pools[i], 0);
		assert_int_equal(s.free_over + s.free_double, 0);
		assert_int_equal(s.poison_broken, 0);
		seen->n_returned += s.recycle_ring;
		seen->n_grown += page_stats(shared.pools[i]).n_grown;
	}
	assert_obj_in_flight(shared.objects.pool, 0);
	objects_close(&shared.objects);
	assert_magazines(shared.pools[1]);
	assert_int_equal(mr_pool_destroy(shared.pools[1], NULL), 0);
	fixture_close(&shared.f);
}

static struct seen run_layouts(const struct layout *layouts, size_t n)
{
	struct seen seen = { 0 };

	for (size_t i = 0; i < n; i++)
		run_layout(layouts[i], &seen);
	return seen;
}
#define RUN(layouts) run_layouts(layouts, sizeof(layouts) / sizeof(layouts[0]))

TEST(flooded_frames_keep_their_owners_and_all_pages_come_back)
{
	static const struct layout layouts[] = {
		{ 640, 2048, 1, N_OPS, .is_flooded = true },
		{ 640, 2048, 5, N_OPS, .is_flooded = true,
		  .is_parcelled = true },
		{ 4000, 2048, MAX_WORKERS, N_OPS / 3, .is_flooded = true },
		{ 640, 8192, 5, N_OPS, .is_flooded = true },
		{ 640, 8192, 5, N_OPS / 4, .is_flooded = true,
		  .safety = MR_SAFETY_POISON },
	};

	assert_true(RUN(layouts).n_returned > 0);
}

/* Frees do not look whether a page has two owners. */
TEST(frames_of_one_owner_come_back)
{
	static const struct layout layouts[] = {
		{ 640, 2048, 5, N_OPS, .is_flooded = false },
		{ 640, 2048, 2, N_OPS, .is_pipeline = true },
		{ 640, 2048, 5, N_OPS, .is_pipeline = true,
		  .is_parcelled = true },
	};

	RUN(layouts);
}

TEST(pools_grow_and_shrink_under_traffic)
{
	static const struct layout layouts[] = {
		{ 512, 4096, 4, N_OPS / 4, .has_blocks = true,
		  .is_growing = true },
		{ 512, 4096, 4, N_OPS / 8, .has_blocks = true,
		  .is_growing = true, .safety = MR_SAFETY_POISON },
	};

	assert_true(RUN(layouts).n_grown > 0);
}

/* So few pages that blocks, and then pages, run out. */
TEST(frags_keep_their_bytes_when_pages_run_out)
{
	static const struct layout layouts[] = {
		{ 700, 4096, 5, N_OPS * 2, .is_flooded = true,
		  .has_frags = true },
		{ 200, 4096, 5, N_OPS / 2, .is_flooded = true,
		  .has_frags = true },
	};

	RUN(layouts);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All of lib/pool, by up to 15 workers: two pools in one region, a cache per
 * thread; buffers, blocks and frags that travel between threads, by themselves
 * or in objects, are flooded, unshared and freed elsewhere; caches that change
 * threads; segments and a third pool that come and go; a reader of statistics.
 *
 * Each buffer has a word here that says how many owners it should have, from 0
 * to 1 when it is allocated: a buffer that is handed out twice shows at once.
 * All bytes of a frame say which one it is, plainly: two frags that overlap
 * show, and so does, under ThreadSanitizer, a block that is cut again before the
 * last one has read it. The words are relaxed: ordering is up to the library.
 */
#include "support/objpool_unit.h"
#include "support/page_unit.h"

#include <unistd.h>

#include <millrace/experimental/frag.h>
#include <millrace/ring.h>

#include "support/mt.h"

enum {
	MAX_WORKERS = MT_MAX_THREADS - 1, /* one makes pools and looks on */
	MAX_HELD = 64,
	MAX_BURST = 48,
	RING = 16, /* from each worker to each */
	MAX_IN_RINGS = RING * MAX_WORKERS,
	MAX_BUFFERS = 8192,
	N_OBJECTS = 3000,
#ifdef __SANITIZE_THREAD__
	N_OPS = 10000,
#else
	N_OPS = 40000, /* of each thread */
#endif
};

struct layout {
	uint32_t n_pages, page_bytes, n_workers, n_ops;
	bool is_flooded;   /* or each frame has one owner */
	bool has_frags;    /* or each frame is a buffer */
	bool has_blocks;   /* of the page allocator, too */
	bool is_growing;   /* to four times its pages, and back */
	bool is_pipeline;  /* the first allocates, the last frees */
	bool is_parcelled; /* frames travel in objects */
	enum mr_safety safety;
};

struct shared {
	struct pool_fixture f;
	struct layout layout;
	struct objects objects;
	struct mr_pool *pools[2];
	struct mr_ring_spsc *rings[MAX_WORKERS][MAX_WORKERS]; /* to, from */
	struct mr_cache *parked; /* for whoever comes; atomic */
	uint32_t n_working;
	uint8_t n_owners[MAX_BUFFERS]; /* by address; relaxed */
};

struct worker {
	struct mt_thread *thread;
	struct shared *shared;
	struct mr_pool *pool;
	struct mr_cache *cache;
	struct mr_frag_cache *frags; /* NULL: without frags */
	struct mr_objcache *objects;
	uint32_t n_held;
	struct mr_frame held[MAX_HELD];
};

/* How many owners a buffer has more; how many it had. Of frags: not counted. */
static uint8_t add_owners(struct worker *w, uint64_t addr, int n)
{
	struct shared *s = w->shared;

	return s->layout.has_frags ?
		       n < 0 :
		       __atomic_fetch_add(
			       &s->n_owners[addr / s->layout.page_bytes],
			       (uint8_t)n, __ATOMIC_RELAXED);
}

static uint8_t stamp_of(const struct mr_frame *frame)
{
	return (uint8_t)(frame->addr * 31 >> 2 ^ frame->addr >> 11 ^
			 frame->len);
}

static bool has_stamp(const struct shared *s, const struct mr_frame *frame,
		      uint8_t stamp)
{
	const uint8_t *bytes = s->f.base + frame->addr;

	return bytes[0] == stamp &&
	       memcmp(bytes, bytes + 1, frame->len - 1) == 0;
}

static void check_frames(struct worker *w, const struct mr_frame *frames,
			 uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		mt_check(w->thread->run, has_stamp(w->shared, &frames[i],
						   stamp_of(&frames[i])));
}

static void write_stamp(struct worker *w, const struct mr_frame *frame)
{
	memset(w->shared->f.base + frame->addr, stamp_of(frame), frame->len);
}

static void hold_frame(struct worker *w, uint64_t addr, uint32_t n_bytes)
{
	struct mr_frame *frame = &w->held[w->n_held++];

	*frame = (struct mr_frame){ addr, n_bytes, 0 };
	mt_check(w->thread->run, add_owners(w, addr, 1) == 0);
	write_stamp(w, frame);
}

/* Buffers, or blocks of any order from the page allocator. */
static void do_alloc(struct worker *w)
{
	const struct layout *l = &w->shared->layout;
	const bool is_block = l->has_blocks && mt_random(w->thread, 2) == 0;
	const uint32_t order = is_block ? mt_random(w->thread, 4) : 0;
	const uint32_t n_bytes =
		l->page_bytes << order;
	uint64_t addrs[MAX_BURST];
	uint32_t n = 1 + mt_random(w->thread, is_block ? 8 : MAX_BURST);

	n = mri_min_u32(n, MAX_HELD - w->n_held);
	n = is_block ? mr_page_alloc_bulk(w->pool, order, addrs, n) :
		       mr_frag_alloc_bulk(w->cache, addrs, n, n_bytes);
	for (uint32_t i = 0; i < n; i++)
		hold_frame(w, addrs[i], n_bytes);
}

static void do_cut(struct worker *w)
{
	const uint32_t n_bytes =
		1 + mt_random(w->thread, mt_random(w->thread, 8) ? 600 : 9000);
	const uint32_t align_bytes = 1u << mt_random(w->thread, 8);
	uint32_t n = mri_min_u32(8, MAX_HELD - w->n_held);
	uint64_t addrs[8];
	struct mr_frag frag;

	if (n == 0)
		return;
	switch (mt_random(w->thread, 4)) {
	case 0:
		n = mr_frag_cache_alloc_bulk(w->frags, addrs, n, n_bytes,
					     align_bytes);
		for (uint32_t i = 0; i < n; i++)
			hold_frame(w, addrs[i], n_bytes);
		return;
	case 1:
		if (mr_frag_cache_prepare(w->frags, n_bytes, align_bytes,
					  &frag) < 0)
			return;
		mt_check(w->thread->run,
			 mr_frag_cache_commit(w->frags, &frag, n_bytes) >=
				 (int)n_bytes);
		hold_frame(w, frag.addr, n_bytes);
		return;
	default:
		break;
	}
	if (mr_frag_cache_alloc(w->frags, n_bytes, align_bytes, addrs) < 0)
		return;
	if (mt_random(w->thread, 2) == 0) {
		const int err =
			mr_frag_cache_abort(w->frags, addrs[0], n_bytes);

		mt_check(w->thread->run, err == 0 || err == -EBUSY);
		if (err == 0)
			return;
	}
	hold_frame(w, addrs[0], n_bytes);
}

/* A random frame of ours to the end of the list. */
static struct mr_frame *pick_frame(struct worker *w)
{
	const uint32_t i = mt_random(w->thread, w->n_held);
	struct mr_frame *last = &w->held[w->n_held - 1];
	const struct mr_frame frame = w->held[i];

	w->held[i] = *last;
	*last = frame;
	return last;
}

/* What the words say before the library hears of it: never too late. */
static void remove_owner(struct worker *w, const struct mr_frame *frame)
{
	check_frames(w, frame, 1);
	mt_check(w->thread->run, add_owners(w, frame->addr, -1) != 0);
}

/* By the page allocator, if it may be; whoever allocated it. */
static void free_one(struct worker *w, const struct mr_frame *frame)
{
	const uint32_t n_pages = frame->len / w->shared->layout.page_bytes;

	if (w->shared->layout.has_blocks && mri_pool_has(w->pool, frame->addr))
		mr_page_free_bulk(w->pool, (uint32_t)__builtin_ctz(n_pages),
				  &frame->addr, 1);
	else
		mr_frag_free_bulk(w->cache, &frame->addr, 1);
}

static void free_some(struct worker *w, uint32_t n)
{
	uint64_t addrs[MAX_HELD];

	w->n_held -= n;
	for (uint32_t i = 0; i < n; i++) {
		remove_owner(w, &w->held[w->n_held + i]);
		addrs[i] = w->held[w->n_held + i].addr;
	}
	switch (mt_random(w->thread, 8)) {
	case 0:
		mr_frag_free_bulk(w->cache, addrs, n);
		break;
	case 1:
		mr_pool_frag_free_bulk(w->pool, addrs, n);
		break;
	case 2:
	case 3:
		for (uint32_t i = 0; i < n; i++)
			free_one(w, &w->held[w->n_held + i]);
		break;
	default:
		mr_frame_free_bulk(w->cache, &w->held[w->n_held], n);
		break;
	}
}

/* False: the ring is full, or there is no object. */
static bool send_frame(struct worker *w, uint32_t to, struct mr_frame frame)
{
	const bool is_parcelled = w->shared->layout.is_parcelled;
	void *object = NULL;

	if (is_parcelled) {
		if (mr_obj_alloc_bulk(w->objects, &object, 1) == 0)
			return false;
		memcpy(object, &frame, sizeof(frame));
		frame.addr = (uintptr_t)object;
	}
	if (mr_ring_spsc_enqueue_burst(w->shared->rings[to][w->thread->id - 1],
				       &frame, 1) == 1)
		return true;
	mr_obj_free_bulk(w->objects, &object, is_parcelled);
	return false;
}

/* What the rings to a worker had; how many, at most n. */
static uint32_t receive_frames(struct shared *s, struct mr_objcache *cache,
			       uint32_t to, struct mr_frame *frames,
			       uint32_t max)
{
	void *objects[MAX_IN_RINGS];
	uint32_t n = 0;

	for (uint32_t i = 0; n < max && i < s->layout.n_workers; i++)
		n += mr_ring_spsc_dequeue_burst(s->rings[to][i], frames + n,
						max - n);
	if (!s->layout.is_parcelled)
		return n;
	for (uint32_t i = 0; i < n; i++) {
		objects[i] = (void *)(uintptr_t)frames[i].addr;
		memcpy(&frames[i], objects[i], sizeof(frames[i]));
	}
	mr_obj_free_bulk(cache, objects, n);
	return n;
}

static void do_send(struct worker *w)
{
	const uint32_t n = w->shared->layout.n_workers, id = w->thread->id;
	const uint32_t to = w->shared->layout.is_pipeline ?
				    mri_min_u32(id, n - 1) :
				    mt_random(w->thread, n);
	const bool is_flood =
		w->shared->layout.is_flooded && mt_random(w->thread, 3) == 0;
	struct mr_frame *frame = pick_frame(w);

	if (is_flood) {
		add_owners(w, frame->addr, 1);
		mt_check(w->thread->run, mr_frame_ref(w->cache, frame, 1) == 0);
	}
	if (send_frame(w, to, *frame)) {
		w->n_held -= !is_flood;
	} else if (is_flood) {
		remove_owner(w, frame);
		mr_frame_free_bulk(w->cache, frame, 1);
	}
}

static void do_receive(struct worker *w)
{
	const uint32_t n = receive_frames(
		w->shared, w->objects, w->thread->id - 1, &w->held[w->n_held],
		MAX_HELD - w->n_held);

	check_frames(w, &w->held[w->n_held], n);
	w->n_held += n;
	if (n == 0)
		mr_cache_flush(w->cache);
}

/* Writing is for exclusive owners. */
static void do_write(struct worker *w)
{
	struct mr_frame *frame = pick_frame(w);
	const uint64_t addr = frame->addr;
	const uint8_t stamp = stamp_of(frame);
	const bool is_mine = mri_pool_has(w->pool, frame->addr);
	int err;

	/* It may be given up behind unshare()'s back; if not, we take it. */
	remove_owner(w, frame);
	err = mr_frame_unshare(w->cache, frame, 1);
	mt_check(w->thread->run,
		 err == 0 || err == (is_mine ? -ENOMEM : -EINVAL));
	if (add_owners(w, frame->addr, 1) != 0)
		mt_check(w->thread->run, frame->addr == addr);
	mt_check(w->thread->run, has_stamp(w->shared, frame, stamp));
	if (err < 0)
		return;
	mt_check(w->thread->run, mr_frame_is_exclusive(w->cache, frame));
	write_stamp(w, frame);
}

static void do_one(struct worker *w)
{
	const struct layout *l = &w->shared->layout;
	const bool is_source = !l->is_pipeline || w->thread->id == 1;
	const bool is_sink = !l->is_pipeline || w->thread->id == l->n_workers;

	switch (mt_random(w->thread, 8)) {
	case 0:
	case 1:
	case 2:
		if (w->frags != NULL && mt_random(w->thread, 3) != 0)
			do_cut(w);
		else if (is_source)
			do_alloc(w);
		break;
	case 3:
		if (is_sink)
			free_some(w, mt_random(w->thread, w->n_held + 1));
		break;
	case 4:
		if (w->n_held > 0)
			do_send(w);
		break;
	case 5:
		if (w->n_held > 0 && l->is_flooded)
			do_write(w);
		break;
	default:
		do_receive(w);
		break;
	}
	mt_maybe_yield(w->thread, 50);
}

static void open_caches(struct worker *w)
{
	mt_check(w->thread->run,
		 mr_cache_create(w->pool, &w->cache, NULL) == 0);
	if (w->shared->layout.has_frags)
		mt_check(w->thread->run,
			 mr_frag_cache_create(w->cache, &w->frags, NULL) == 0);
	mt_check(w->thread->run,
		 mr_objcache_create(w->shared->objects.pool, &w->objects,
				    NULL) == 0);
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
		mt_check(run, w.cache->n_open <=
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
		mt_check(thread->run, shared->layout.is_growing ||
					      region.n_segments == 3);
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

TEST(each_frame_has_its_owners_and_all_pages_come_back)
{
	static const struct layout layouts[] = {
		{ 640, 2048, 1, N_OPS, .is_flooded = true },
		{ 640, 2048, 5, N_OPS, .is_flooded = true,
		  .is_parcelled = true },
		{ 4000, 2048, MAX_WORKERS, N_OPS / 3, .is_flooded = true },
		/* No page has two owners: frees do not look at them. */
		{ 640, 2048, 5, N_OPS, .is_flooded = false },
		{ 640, 2048, 2, N_OPS, .is_pipeline = true },
		{ 640, 2048, 5, N_OPS, .is_pipeline = true,
		  .is_parcelled = true },
		{ 640, 8192, 5, N_OPS, .is_flooded = true },
		{ 640, 8192, 5, N_OPS / 4, .is_flooded = true,
		  .safety = MR_SAFETY_POISON },
		{ 512, 4096, 4, N_OPS / 4, .has_blocks = true,
		  .is_growing = true },
		{ 512, 4096, 4, N_OPS / 8, .has_blocks = true,
		  .is_growing = true, .safety = MR_SAFETY_POISON },
		/* So few pages that blocks, and then pages, run out. */
		{ 700, 4096, 5, N_OPS * 2, .is_flooded = true,
		  .has_frags = true },
		{ 200, 4096, 5, N_OPS / 2, .is_flooded = true,
		  .has_frags = true },
	};
	struct seen seen = { 0 };

	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		run_layout(layouts[i], &seen);
	assert_true(seen.n_returned > 0);
	assert_true(seen.n_grown > 0);
}

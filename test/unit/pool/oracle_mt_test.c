/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The oracle: lib/pool/pool.c, cache.c, depot.c, frame.c, outbox.c and
 * objcache.c under load, by 1 to 16 threads, in the patterns of applications.
 * It knows of each page how many references are out, and what is written in
 * its first line, and looks at both whenever a page changes hands.
 *
 * The words of the oracle are relaxed: they order nothing. That the content is
 * there is the library's doing, and what ThreadSanitizer looks at.
 *
 * MR_TEST_OPS_FACTOR=100 makes it 10^9 operations.
 */
#include "support/mt.h"
#include "support/objpool_unit.h"
#include "support/pool_unit.h"

#include <millrace/ring.h>

enum {
	PAGE_BYTES = 4096,
	N_PAGES = 8192,
	N_OBJECTS = 3000,
	RING_ENTRIES = 256,
	BURST = 32,
	MAX_REFS = 4,
	WORDS = 8,
#ifdef __SANITIZE_THREAD__
	N_OPS = 25000,
#else
	N_OPS = 500000, /* of each run: 20 of them are 10^7 */
#endif
};

enum pattern {
	RUN_TO_COMPLETION,
	PIPELINE, /* the first takes, the last gives back, all look */
	PIPELINE_OF_TWO_POOLS, /* and only the first has a cache of the pool */
	ALL_TO_ALL,
	SHARED_REFERENCES, /* up to four owners, each on another thread */
	PAGES_AND_OBJECTS, /* an object travels, and says where its page is */
	N_PATTERNS
};

/* What travels as an object. */
struct parcel {
	struct mr_frame frame;
	uint64_t check; /* ~frame.addr */
};

struct oracle {
	enum pattern pattern;
	bool is_pipeline;
	struct mr_pool *pool, *beside;
	struct mr_objpool *objects;
	uint8_t *base;
	uint32_t *words;    /* by page: seq << 8 | references that are out */
	uint32_t *parcels;  /* by object: 1: it is out */
	uint64_t n_left;    /* references to come back; relaxed */
	uint64_t n_growing; /* threads that may still make some */
	struct mr_ring_mpmc *rings[MT_MAX_THREADS];
	struct mr_ring_spsc *lanes[MT_MAX_THREADS];
};

struct worker {
	struct mt_thread *thread;
	struct oracle *oracle;
	struct mr_cache *cache;
	struct mr_objcache *objects;
	uint32_t id, n_threads, seq;
	uint64_t quota; /* pages to take yet */
	uint32_t n_pending;
	struct mr_frame pending[BURST * MAX_REFS];
	uint32_t to[BURST * MAX_REFS]; /* whom */
};

static uint32_t page_of(const struct worker *w, uint64_t addr)
{
	return mri_page_of(w->oracle->pool, addr);
}

static uint64_t *line_at(const struct worker *w, const struct mr_frame *frame)
{
	return (uint64_t *)(void *)(w->oracle->base +
				    (frame->addr & ~(uint64_t)63));
}

static uint64_t stamp_of(const struct mr_frame *frame, uint32_t i)
{
	return (frame->addr << 32 | frame->len) * (2 * i + 1);
}

/* A page that is nobody's becomes ours, n_refs times; and its line. */
static bool claim(struct worker *w, struct mr_frame *frame, uint32_t n_refs)
{
	uint32_t *word = &w->oracle->words[page_of(w, frame->addr)];
	uint64_t *line;
	uint32_t nobody = 0;

	frame->len = ++w->seq & 0xffffff;
	if (!mt_check(w->thread->run, page_of(w, frame->addr) < N_PAGES) ||
	    !mt_check(w->thread->run, frame->addr % PAGE_BYTES == 0) ||
	    !mt_check(w->thread->run,
		      __atomic_compare_exchange_n(
			      word, &nobody, frame->len << 8 | n_refs, false,
			      __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
		return false;
	line = line_at(w, frame);
	for (uint32_t i = 0; i < WORDS; i++)
		line[i] = stamp_of(frame, i);
	return true;
}

static void look_at(struct worker *w, const struct mr_frame *frame)
{
	const uint64_t *line = line_at(w, frame);
	const uint32_t word = __atomic_load_n(
		&w->oracle->words[page_of(w, frame->addr)], __ATOMIC_RELAXED);

	mt_check(w->thread->run, word >> 8 == frame->len);
	mt_check(w->thread->run, (uint8_t)word > 0);
	for (uint32_t i = 0; i < WORDS; i++)
		mt_check(w->thread->run, line[i] == stamp_of(frame, i));
}

/* n references of ours come back; the oracle hears of it first. */
static void give_back(struct worker *w, const struct mr_frame *frames,
		      uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		uint32_t *word = &w->oracle->words[page_of(w, frames[i].addr)];

		look_at(w, &frames[i]);
		if ((uint8_t)__atomic_sub_fetch(word, 1, __ATOMIC_RELAXED) == 0)
			__atomic_store_n(word, 0, __ATOMIC_RELAXED);
	}
	mr_frame_free_bulk(w->cache, frames, n);
	__atomic_fetch_sub(&w->oracle->n_left, n, __ATOMIC_RELAXED);
}

/* The page goes as an object that has it. False: there is no object. */
static bool wrap(struct worker *w, struct mr_frame *frame)
{
	struct oracle *o = w->oracle;
	struct parcel *parcel;
	void *object;

	if (mr_obj_alloc_bulk(w->objects, &object, 1) == 0)
		return false;
	parcel = object;
	mt_check(w->thread->run,
		 __atomic_exchange_n(&o->parcels[mri_obj_number(
					     &o->objects->layout, object)],
				     1, __ATOMIC_RELAXED) == 0);
	*parcel = (struct parcel){ *frame, ~frame->addr };
	*frame = (struct mr_frame){ (uintptr_t)parcel, 0, 0 };
	return true;
}

static void unwrap(struct worker *w, struct mr_frame *frames, uint32_t n)
{
	struct oracle *o = w->oracle;
	void *objects[BURST];

	for (uint32_t i = 0; i < n; i++) {
		struct parcel *parcel =
			(struct parcel *)(uintptr_t)frames[i].addr;

		objects[i] = parcel;
		mt_check(w->thread->run, parcel->check == ~parcel->frame.addr);
		frames[i] = parcel->frame;
		mt_check(w->thread->run,
			 __atomic_exchange_n(
				 &o->parcels[mri_obj_number(&o->objects->layout,
							    parcel)],
				 0, __ATOMIC_RELAXED) == 1);
	}
	mr_obj_free_bulk(w->objects, objects, n);
}

static uint32_t whom(struct worker *w)
{
	if (w->oracle->is_pipeline)
		return w->id + 1 < w->n_threads ? w->id + 1 : w->id;
	return mt_random(w->thread, w->n_threads);
}

/* New pages, to be sent, or given back at once. */
static void take(struct worker *w)
{
	struct oracle *o = w->oracle;
	const uint32_t n_want = 1 + mt_random(w->thread, BURST);
	struct mr_frame frames[BURST] = { 0 };
	uint64_t addrs[BURST];
	uint32_t n = mri_min_u32(n_want,
				 w->quota > BURST ? BURST : (uint32_t)w->quota);

	n = mr_frag_alloc_bulk(w->cache, addrs, n, PAGE_BYTES);
	w->quota -= n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t n_refs = 1;

		if (o->pattern == SHARED_REFERENCES)
			n_refs += mt_random(w->thread, MAX_REFS);
		frames[i].addr = addrs[i];
		__atomic_fetch_add(&o->n_left, n_refs, __ATOMIC_RELAXED);
		if (!claim(w, &frames[i], n_refs))
			return;
		for (uint32_t r = 1; r < n_refs; r++)
			mt_check(w->thread->run,
				 mr_frame_ref(w->cache, &frames[i], 1) == 0);
		if (o->pattern == RUN_TO_COMPLETION)
			continue;
		if (o->pattern == PAGES_AND_OBJECTS && !wrap(w, &frames[i])) {
			give_back(w, &frames[i], 1);
			continue;
		}
		for (uint32_t r = 0; r < n_refs; r++) {
			w->pending[w->n_pending] = frames[i];
			w->to[w->n_pending++] = whom(w);
		}
	}
	if (o->pattern == RUN_TO_COMPLETION) {
		mt_maybe_yield(w->thread, 64);
		give_back(w, frames, n);
	}
	if (w->quota == 0)
		__atomic_fetch_sub(&o->n_growing, 1, __ATOMIC_RELEASE);
}

/* What is pending, as far as it fits; one by one, each to its own. */
static void send_pending(struct worker *w)
{
	struct oracle *o = w->oracle;
	uint32_t n_kept = 0;

	if (o->is_pipeline) {
		n_kept = w->n_pending -
			 mr_ring_spsc_enqueue_burst(o->lanes[w->id + 1],
						    w->pending, w->n_pending);
		memmove(w->pending, w->pending + w->n_pending - n_kept,
			n_kept * sizeof(w->pending[0]));
		w->n_pending = n_kept;
		return;
	}
	for (uint32_t i = 0; i < w->n_pending; i++) {
		if (mr_ring_mpmc_enqueue_burst(o->rings[w->to[i]],
					       &w->pending[i], 1) == 1)
			continue;
		w->pending[n_kept] = w->pending[i];
		w->to[n_kept++] = w->to[i];
	}
	w->n_pending = n_kept;
}

/* What came for us: on to the next one, or back to the pool. How many. */
static uint32_t receive(struct worker *w)
{
	struct oracle *o = w->oracle;
	struct mr_frame frames[BURST];
	uint32_t n;

	if (!o->is_pipeline) {
		n = mr_ring_mpmc_dequeue_burst(o->rings[w->id], frames, BURST);
		if (o->pattern == PAGES_AND_OBJECTS)
			unwrap(w, frames, n);
		give_back(w, frames, n);
		return n;
	}
	if (w->id == 0 || w->n_pending > 0)
		return 0;
	n = mr_ring_spsc_dequeue_burst(o->lanes[w->id], frames, BURST);
	if (w->id + 1 == w->n_threads) {
		give_back(w, frames, n);
		return n;
	}
	for (uint32_t i = 0; i < n; i++)
		look_at(w, &frames[i]);
	memcpy(w->pending, frames, n * sizeof(frames[0]));
	w->n_pending = n;
	return n;
}

static bool is_over(const struct oracle *o)
{
	/* First who may make more, then what is there. */
	return __atomic_load_n(&o->n_growing, __ATOMIC_ACQUIRE) == 0 &&
	       __atomic_load_n(&o->n_left, __ATOMIC_ACQUIRE) == 0;
}

static void work(struct mt_thread *thread)
{
	struct mt_run *run = thread->run;
	struct oracle *o = run->shared;
	struct worker w = { .thread = thread,
			    .oracle = o,
			    .id = thread->id - 1,
			    .n_threads = run->n_threads,
			    .seq = thread->id << 20 };
	struct mr_pool *pool;

	w.quota = !o->is_pipeline ? run->n_ops / run->n_threads + 1 :
		  w.id == 0       ? run->n_ops :
				    0;
	pool = o->pattern == PIPELINE_OF_TWO_POOLS && w.id > 0 ? o->beside :
								 o->pool;
	if (!mt_check(run, mr_cache_create(pool, &w.cache, NULL) == 0) ||
	    !mt_check(run,
		      mr_objcache_create(o->objects, &w.objects, NULL) == 0))
		return;
	while (!is_over(o) && !mt_failed(run)) {
		uint32_t n = 0;

		if (w.n_pending == 0 && w.quota > 0)
			take(&w);
		if (w.n_pending > 0)
			send_pending(&w);
		n = receive(&w);
		if (n == 0 && (w.quota == 0 || w.n_pending > 0)) {
			mr_cache_flush(w.cache);
			sched_yield();
		}
		mt_maybe_yield(thread, 200);
		/* No cache knows more than the pool. */
		if (mt_random(thread, 1000) == 0) {
			mr_objcache_destroy(w.objects);
			mt_check(run, mr_objcache_create(o->objects, &w.objects,
							 NULL) == 0);
		}
	}
	mr_objcache_destroy(w.objects);
	mr_cache_destroy(w.cache);
}

static void open_rings(struct oracle *o, struct mr_ctx *ctx)
{
	for (uint32_t i = 0; i < MT_MAX_THREADS; i++) {
		assert_int_equal(mr_ring_mpmc_create(ctx, RING_ENTRIES,
						     &o->rings[i], NULL),
				 0);
		assert_int_equal(mr_ring_spsc_create(ctx, RING_ENTRIES,
						     &o->lanes[i], NULL),
				 0);
	}
}

static void close_rings(struct oracle *o)
{
	for (uint32_t i = 0; i < MT_MAX_THREADS; i++) {
		mr_ring_mpmc_destroy(o->rings[i]);
		mr_ring_spsc_destroy(o->lanes[i]);
	}
}

/* One pattern with n_threads threads; then everything is where it was. */
static void consult(enum pattern pattern, uint32_t n_threads)
{
	const struct mr_objpool_config objects_config = {
		.object_bytes = sizeof(struct parcel), .n_objects = N_OBJECTS
	};
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = N_PAGES,
					 .page_bytes = PAGE_BYTES,
					 .magazine_pages =
						 n_threads == 2 ? 128 : 0 };
	struct oracle o = { .pattern = pattern,
			    .is_pipeline = pattern == PIPELINE ||
					   pattern == PIPELINE_OF_TWO_POOLS };
	struct mt_run run = { .body = work,
			      .shared = &o,
			      .n_threads = n_threads,
			      .n_ops = mt_n_ops(N_OPS) / 2 };
	struct pool_fixture f;
	struct objects g;

	fixture_open(&f, 64, PAGE_BYTES, PAGE_BYTES);
	objects_open(&g, &objects_config);
	config.region = f.region;
	assert_int_equal(mr_pool_create(f.ctx, &config, &o.pool, NULL), 0);
	o.beside = pool_beside(&f, N_PAGES, PAGE_BYTES);
	open_rings(&o, f.ctx);
	o.objects = g.pool;
	o.base = f.base;
	o.words = calloc(N_PAGES, sizeof(o.words[0]));
	o.parcels = calloc(N_OBJECTS, sizeof(o.parcels[0]));
	o.n_growing = o.is_pipeline ? 1 : n_threads;
	assert_int_equal(mt_run(&run), 0);
	for (uint32_t i = 0; i < N_PAGES; i++)
		assert_int_equal(o.words[i], 0);
	assert_in_flight(o.pool, 0);
	if (pattern == PIPELINE_OF_TWO_POOLS)
		assert_true(pool_stats(o.beside).recycle_ring >= run.n_ops);
	assert_int_equal(mr_pool_destroy(o.beside, NULL), 0);
	assert_obj_in_flight(o.objects, 0);
	close_rings(&o);
	free(o.words);
	free(o.parcels);
	assert_int_equal(mr_pool_destroy(o.pool, NULL), 0);
	objects_close(&g);
	fixture_close(&f);
}

static void consult_all(enum pattern pattern)
{
	static const uint32_t n_threads[] = { 1, 2, 5, 16 };

	for (uint32_t i = 0; i < 4; i++) {
		/* A pipeline of one has nobody to send to. */
		if (n_threads[i] > 1 ||
		    (pattern != PIPELINE && pattern != PIPELINE_OF_TWO_POOLS))
			consult(pattern, n_threads[i]);
	}
}

TEST(run_to_completion)
{
	consult_all(RUN_TO_COMPLETION);
}

TEST(pipeline)
{
	consult_all(PIPELINE);
}

TEST(pipeline_of_two_pools)
{
	consult_all(PIPELINE_OF_TWO_POOLS);
}

TEST(all_to_all)
{
	consult_all(ALL_TO_ALL);
}

TEST(shared_references)
{
	consult_all(SHARED_REFERENCES);
}

TEST(pages_and_objects)
{
	consult_all(PAGES_AND_OBJECTS);
}

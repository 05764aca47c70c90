/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool/page_segment.c, page_alloc.c, page_bulk.c, trim.c and
 * poison.c by more threads than cores: pages leave by caches, blocks straight
 * from the page allocator, while a thread grows and shrinks the pool and runs
 * its trim.
 *
 * Each page has a word here that says who has it. A page that is handed out
 * twice shows at once; one whose segment has gone is a fault when it is
 * stamped.
 */
#include "support/page_unit.h"

#include "support/mt.h"

enum {
	N_WORKERS = 4,
	N_THREADS = N_WORKERS + 1, /* and one that grows and shrinks */
	FIRST_PAGES = 512,
	MAX_PAGES = 2048,
	PAGE_BYTES = 4096,
	MAX_BURST = 64,
	MAX_HELD = 48, /* batches */
};

struct shared {
	struct pool_fixture f;
	uint32_t n_working;
	uint8_t owners[MAX_PAGES]; /* relaxed: who has it, 0: nobody */
};

struct batch {
	uint32_t order, n;
	bool by_cache;
	uint64_t addrs[MAX_BURST];
};

struct worker {
	struct mt_thread *thread;
	struct shared *shared;
	struct mr_cache *cache;
	uint32_t n_held;
	struct batch held[MAX_HELD];
};

/* All pages of a block from one owner to another, stamped by the new one. */
static void pass(struct worker *w, uint64_t addr, uint32_t order, uint8_t from,
		 uint8_t to)
{
	struct shared *s = w->shared;

	for (uint32_t i = 0; i < 1u << order; i++) {
		const uint64_t at = addr + (uint64_t)i * PAGE_BYTES;
		const uint64_t page = (at - s->f.pool->addr) / PAGE_BYTES;
		uint64_t *stamp = (uint64_t *)(void *)(s->f.base + at);
		uint8_t seen = from;

		if (!mt_check(w->thread->run, page < MAX_PAGES) ||
		    !mt_check(w->thread->run,
			      __atomic_compare_exchange_n(
				      &s->owners[page], &seen, to, false,
				      __ATOMIC_RELAXED, __ATOMIC_RELAXED)))
			return;
		if (to != 0)
			*stamp = page << 8 | to;
		else
			mt_check(w->thread->run, *stamp == (page << 8 | from));
	}
}

static void do_alloc(struct worker *w)
{
	struct mr_pool *pool = w->shared->f.pool;
	struct batch *b = &w->held[w->n_held];
	const uint32_t n = 1 + mt_random(w->thread, MAX_BURST);

	b->by_cache = mt_random(w->thread, 2) == 0;
	b->order = b->by_cache ? 0 : mt_random(w->thread, 4);
	if (b->by_cache)
		b->n = mr_frag_alloc_bulk(w->cache, b->addrs, n, PAGE_BYTES);
	else
		b->n = mr_page_alloc_bulk(
			pool, b->order, b->addrs,
			b->order == 0 && n % 4 == 0 ? 1 : 1 + n / 8);
	for (uint32_t i = 0; i < b->n; i++)
		pass(w, b->addrs[i], b->order, 0, (uint8_t)w->thread->id);
	if (b->n > 0)
		w->n_held++;
}

/* What came from a cache may go to the page allocator, and the other way. */
static void do_free(struct worker *w)
{
	const uint32_t k = mt_random(w->thread, w->n_held);
	struct batch b = w->held[k];

	w->held[k] = w->held[--w->n_held];
	for (uint32_t i = 0; i < b.n; i++)
		pass(w, b.addrs[i], b.order, (uint8_t)w->thread->id, 0);
	if (b.order == 0 && mt_random(w->thread, 2) == 0)
		mr_frag_free_bulk(w->cache, b.addrs, b.n);
	else
		mr_page_free_bulk(w->shared->f.pool, b.order, b.addrs, b.n);
}

/* Everything back, and to the pool: or no segment would ever be free. */
static void do_rest(struct worker *w)
{
	while (w->n_held > 0)
		do_free(w);
	mr_cache_destroy(w->cache);
	w->cache = NULL;
	mt_check(w->thread->run,
		 mr_cache_create(w->shared->f.pool, &w->cache, NULL) == 0);
}

static void work(struct mt_thread *thread, struct shared *shared)
{
	struct worker *w = calloc(1, sizeof(*w));

	w->thread = thread;
	w->shared = shared;
	mt_check(thread->run,
		 mr_cache_create(shared->f.pool, &w->cache, NULL) == 0);
	for (uint64_t i = 0; i < thread->run->n_ops && !mt_failed(thread->run);
	     i++) {
		mt_maybe_yield(thread, 16);
		mr_cache_flush(w->cache);
		if (mt_random(thread, 256) == 0)
			do_rest(w);
		else if (w->n_held < MAX_HELD &&
			 (w->n_held == 0 || mt_random(thread, 2) == 0))
			do_alloc(w);
		else
			do_free(w);
	}
	do_rest(w);
	mr_cache_destroy(w->cache);
	free(w);
	__atomic_fetch_sub(&shared->n_working, 1, __ATOMIC_RELEASE);
}

static void grow_and_shrink(struct mt_thread *thread, struct shared *shared)
{
	const struct mr_trim_config config = { .size = sizeof(config),
					       .idle_ns = 1 };
	struct mr_trim_report report = { .size = sizeof(report) };
	struct mr_pool *pool = shared->f.pool;

	while (__atomic_load_n(&shared->n_working, __ATOMIC_ACQUIRE) != 0 &&
	       !mt_failed(thread->run)) {
		switch (mt_random(thread, 4)) {
		case 0:
			(void)mr_pool_grow(pool, 256, NULL); /* may be full */
			break;
		case 1:
			mt_check(thread->run,
				 mr_pool_shrink(pool, 0, NULL, NULL) == 0);
			break;
		case 2:
			mt_check(thread->run,
				 mr_pool_trim(pool, &config, &report) == 0);
			mt_check(thread->run, report.n_duplicates == 0);
			break;
		default:
			mt_check(thread->run,
				 page_stats(pool).n_pages <= MAX_PAGES);
			break;
		}
		sched_yield();
	}
}

static void body(struct mt_thread *thread)
{
	struct shared *shared = thread->run->shared;

	if (thread->id <= N_WORKERS)
		work(thread, shared);
	else
		grow_and_shrink(thread, shared);
}

static void run_traffic(enum mr_safety safety, uint64_t n_ops)
{
	static struct shared shared;
	static struct mt_run run = { .body = body,
				     .shared = &shared,
				     .n_threads = N_THREADS };
	struct mr_page_stats s;

	memset(&shared, 0, sizeof(shared));
	shared.n_working = N_WORKERS;
	run.n_ops = mt_n_ops(n_ops);
	fixture_open_with(&shared.f,
			  (struct mr_pool_config){ .n_pages = FIRST_PAGES,
						   .max_pages = MAX_PAGES,
						   .segment_pages = 256,
						   .page_bytes = PAGE_BYTES,
						   .chunk_bytes = PAGE_BYTES,
						   .safety = safety });
	assert_int_equal(mt_run(&run), 0);
	/* It was about something. */
	s = page_stats(shared.f.pool);
	assert_true(s.n_grown > 0);
	assert_int_equal(s.free_double, 0);
	assert_int_equal(pool_stats(shared.f.pool).free_double, 0);
	assert_int_equal(pool_stats(shared.f.pool).poison_broken, 0);
	for (uint32_t i = 0; i < MAX_PAGES; i++)
		assert_int_equal(shared.owners[i], 0);
	assert_in_flight(shared.f.pool, 0);
	print_message("grown %llu times, shrunk %llu times under traffic\n",
		      (unsigned long long)s.n_grown,
		      (unsigned long long)s.n_shrunk);
	mr_cache_destroy(shared.f.cache);
	assert_magazines(shared.f.pool);
	assert_int_equal(mr_pool_destroy(shared.f.pool, NULL), 0);
	assert_int_equal(mr_region_destroy(shared.f.region, NULL), 0);
	mr_ctx_destroy(shared.f.ctx);
	assert_int_equal(shared.f.allocator.n_out, 0);
}

TEST(segments_come_and_go_under_traffic)
{
	run_traffic(MR_SAFETY_COUNTS, 8000);
}

TEST(checked_segments_come_and_go)
{
	run_traffic(MR_SAFETY_POISON, 2000);
}

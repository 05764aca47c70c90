/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool by more threads than cores: how pages come back, to the
 * cache that freed them or home (outbox.c, inbox.c, cache.c, put.c).
 *
 * Three patterns: a pipeline, where the first thread allocates and the last one
 * frees; all to all; and all to all with caches that go from thread to thread.
 * The threads have caches of two pools in one region, so half of what they free
 * belongs to another pool.
 *
 * Each page has a word here that says who has it, or nobody, and its first
 * bytes say the same, written plainly.
 */
#include "support/pool_unit.h"

#include <millrace/ring.h>

#include "support/mt.h"

enum {
	N_THREADS = 6,
	N_PAGES = 2048, /* of each pool */
	MAX_BURST = 48,
	MAX_HELD = 96,
	MAILBOX = 128,
	PAGE_BYTES = 2048,
};

enum pattern { PIPELINE, ALL_TO_ALL, HAND_OVER };

struct shared {
	struct pool_fixture f;
	enum pattern pattern;
	struct mr_pool *pools[2];
	struct mr_ring_mpmc *mailboxes[N_THREADS];
	struct mr_cache *parked; /* for whoever comes; atomic */
	enum mr_return returns;
	uint8_t who[2 * N_PAGES + 64]; /* by address; relaxed */
};

struct worker {
	struct mt_thread *thread;
	struct shared *shared;
	struct mr_cache *cache;
	uint32_t n_held;
	struct mr_frame held[MAX_HELD];
};

static void check_stamp(struct worker *w, uint64_t addr, uint64_t stamp)
{
	const uint64_t page = addr / PAGE_BYTES;

	mt_check(w->thread->run,
		 *(uint64_t *)(void *)(w->shared->f.base + page * PAGE_BYTES) ==
			 (page << 8 | stamp));
}

/* A page that somebody has changes hands. */
static void pass(struct worker *w, uint64_t addr, uint32_t from, uint32_t to)
{
	const uint64_t page = addr / PAGE_BYTES;
	uint8_t seen = (uint8_t)from;

	mt_check(w->thread->run, __atomic_compare_exchange_n(
					 &w->shared->who[page], &seen,
					 (uint8_t)to, false, __ATOMIC_RELAXED,
					 __ATOMIC_RELAXED));
	if (from != 0)
		check_stamp(w, addr, from);
	*(uint64_t *)(void *)(w->shared->f.base + page * PAGE_BYTES) =
		page << 8 | to;
}

static void do_alloc(struct worker *w)
{
	uint64_t addrs[MAX_BURST];
	const uint32_t n = mr_frag_alloc_bulk(
		w->cache, addrs,
		mri_min_u32(1 + mt_random(w->thread, MAX_BURST),
			    MAX_HELD - w->n_held),
		PAGE_BYTES);

	for (uint32_t i = 0; i < n; i++) {
		pass(w, addrs[i], 0, w->thread->id);
		w->held[w->n_held++] =
			(struct mr_frame){ addrs[i] + 128, 60, 0 };
	}
}

static void do_free(struct worker *w, uint32_t n)
{
	w->n_held -= n;
	for (uint32_t i = 0; i < n; i++)
		pass(w, w->held[w->n_held + i].addr, w->thread->id, 0);
	mr_frame_free_bulk(w->cache, &w->held[w->n_held], n);
}

/* To the mailbox of another thread, as much as fits. */
static void do_send(struct worker *w, uint32_t to, uint32_t n)
{
	struct mr_frame *frames = &w->held[w->n_held - n];
	uint32_t n_sent;

	for (uint32_t i = 0; i < n; i++)
		pass(w, frames[i].addr, w->thread->id, 200 + to);
	n_sent = mr_ring_mpmc_enqueue_burst(w->shared->mailboxes[to], frames,
					    n);
	for (uint32_t i = n_sent; i < n; i++)
		pass(w, frames[i].addr, 200 + to, w->thread->id);
	memmove(frames, frames + n_sent, (n - n_sent) * sizeof(frames[0]));
	w->n_held -= n_sent;
}

static void do_receive(struct worker *w)
{
	const uint32_t self = w->thread->id - 1;
	const uint32_t n = mr_ring_mpmc_dequeue_burst(
		w->shared->mailboxes[self], &w->held[w->n_held],
		MAX_HELD - w->n_held);

	for (uint32_t i = 0; i < n; i++)
		pass(w, w->held[w->n_held + i].addr, 200 + self,
		     w->thread->id);
	w->n_held += n;
	if (n == 0)
		mr_cache_flush(w->cache);
}

/* First allocates, last frees, the others pass on what they get. */
static void do_pipeline(struct worker *w)
{
	const uint32_t id = w->thread->id;

	if (id == 1)
		do_alloc(w);
	else
		do_receive(w);
	if (id == N_THREADS)
		do_free(w, w->n_held);
	else
		do_send(w, id, w->n_held);
}

static void do_all_to_all(struct worker *w)
{
	switch (mt_random(w->thread, 6)) {
	case 0:
	case 1:
		do_alloc(w);
		break;
	case 2:
		do_free(w, mt_random(w->thread, w->n_held + 1));
		break;
	case 3:
	case 4:
		do_send(w, mt_random(w->thread, N_THREADS),
			mt_random(w->thread, w->n_held + 1));
		break;
	default:
		do_receive(w);
		break;
	}
}

/* The cache of whoever was here last goes on with this thread. */
static void swap_caches(struct worker *w)
{
	struct mr_cache *other = __atomic_exchange_n(
		&w->shared->parked, w->cache, __ATOMIC_ACQ_REL);

	w->cache = mr_cache_adopt(other);
}

/* Whether caches of this pool must have sent pages home. */
static bool sends_home(const struct shared *shared, int p)
{
	/*
	 * Who frees in a pipeline has a cache of pools[0]. The others may, what
	 * they still have when they end.
	 */
	return shared->returns == MR_RETURN_HOME &&
	       (shared->pattern != PIPELINE || p == 0);
}

/*
 * A scheduler may run the threads one after another: then no cache that a page
 * came from is there when it is freed. So no thread ends before some went home.
 */
static bool has_sent_home(const struct shared *shared)
{
	for (int p = 0; p < 2; p++)
		if (sends_home(shared, p) &&
		    pool_stats(shared->pools[p]).recycle_home == 0)
			return false;
	return true;
}

static bool goes_on(const struct shared *shared, const struct mt_run *run,
		    uint64_t op)
{
	if (op < run->n_ops)
		return !mt_failed(run);
	sched_yield();
	return !mt_failed(run) && !has_sent_home(shared);
}

static void body(struct mt_thread *thread)
{
	struct mt_run *run = thread->run;
	struct worker w = { .thread = thread, .shared = run->shared };
	const struct shared *shared = w.shared;

	mt_check(run, mr_cache_create(shared->pools[thread->id % 2], &w.cache,
				      NULL) == 0);
	for (uint64_t op = 0; goes_on(shared, run, op); op++) {
		if (shared->pattern == PIPELINE)
			do_pipeline(&w);
		else
			do_all_to_all(&w);
		if (shared->pattern == HAND_OVER &&
		    mt_random(thread, 20) == 0)
			swap_caches(&w);
		/* Bounds hold at all times. */
		mt_check(run, w.cache->n_open <= MR_OPEN_MAGAZINES *
							 MR_MAGAZINE_PAGES);
		mt_maybe_yield(thread, 50);
	}
	do_free(&w, w.n_held);
	mr_cache_destroy(w.cache);
}

static void drain_mailboxes(struct shared *shared)
{
	for (uint32_t i = 0; i < N_THREADS; i++) {
		struct mr_frame frames[MAILBOX];
		const uint32_t n = mr_ring_mpmc_dequeue_burst(
			shared->mailboxes[i], frames, MAILBOX);

		for (uint32_t k = 0; k < n; k++)
			shared->who[frames[k].addr / PAGE_BYTES] = 0;
		mr_frame_free_bulk(shared->f.cache, frames, n);
		mr_ring_mpmc_destroy(shared->mailboxes[i]);
	}
	mr_cache_destroy(shared->parked);
	mr_cache_flush(shared->f.cache);
}

static void open_shared(struct shared *shared, enum pattern pattern,
			enum mr_return returns)
{
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = N_PAGES,
					 .page_bytes = PAGE_BYTES,
					 .chunk_bytes = PAGE_BYTES,
					 .returns = returns };

	memset(shared, 0, sizeof(*shared));
	shared->pattern = pattern;
	shared->returns = returns;
	fixture_open_with(&shared->f, config);
	config.region = shared->f.region;
	shared->pools[0] = shared->f.pool;
	assert_int_equal(
		mr_pool_create(shared->f.ctx, &config, &shared->pools[1], NULL),
		0);
	assert_int_equal(
		mr_cache_create(shared->pools[1], &shared->parked, NULL), 0);
	for (uint32_t i = 0; i < N_THREADS; i++)
		assert_int_equal(mr_ring_mpmc_create(shared->f.ctx, MAILBOX,
						     &shared->mailboxes[i],
						     NULL),
				 0);
}

static void run_pattern(enum pattern pattern, enum mr_return returns)
{
	static struct shared shared;
	struct mt_run run = { .body = body,
			      .shared = &shared,
			      .n_threads = N_THREADS,
			      .n_ops = mt_n_ops(12000) };
	struct mr_pool_stats s;

	open_shared(&shared, pattern, returns);
	assert_int_equal(mt_run(&run), 0);
	drain_mailboxes(&shared);
	for (size_t i = 0; i < sizeof(shared.who); i++)
		assert_int_equal(shared.who[i], 0);
	for (int p = 0; p < 2; p++) {
		assert_in_flight(shared.pools[p], 0);
		s = pool_stats(shared.pools[p]);
		assert_int_equal(s.free_invalid + s.free_over, 0);
		if (sends_home(&shared, p))
			assert_true(s.recycle_home > 0);
		else if (returns == MR_RETURN_LOCAL)
			assert_int_equal(s.recycle_home, 0);
	}
	assert_magazines(shared.pools[1]);
	assert_int_equal(mr_pool_destroy(shared.pools[1], NULL), 0);
	fixture_close(&shared.f);
}

TEST(pipeline_local)
{
	run_pattern(PIPELINE, MR_RETURN_LOCAL);
}

TEST(pipeline_home)
{
	run_pattern(PIPELINE, MR_RETURN_HOME);
}

TEST(all_to_all_local)
{
	run_pattern(ALL_TO_ALL, MR_RETURN_LOCAL);
}

TEST(all_to_all_home)
{
	run_pattern(ALL_TO_ALL, MR_RETURN_HOME);
}

TEST(hand_over_local)
{
	run_pattern(HAND_OVER, MR_RETURN_LOCAL);
}

TEST(hand_over_home)
{
	run_pattern(HAND_OVER, MR_RETURN_HOME);
}

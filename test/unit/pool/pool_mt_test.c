/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool by more threads than cores (cache.c, free.c, outbox.c,
 * ...): two pools in one region, a cache per thread, frames that wander between
 * the threads by mailboxes, are flooded, unshared and freed elsewhere; caches
 * that go from thread to thread, caches and a third pool that come and go, and
 * a reader of statistics.
 *
 * Each buffer has a word here that says how many owners it should have, from 0
 * to 1 when it is allocated: a buffer that is handed out twice shows at once.
 * Its bytes say which buffer it is and who wrote them, and are accessed
 * plainly.
 */
#include "support/pool_unit.h"

#include <time.h>

#include <millrace/ring.h>

#include "support/mt.h"

enum {
	N_WORKERS = 5,
	N_THREADS = N_WORKERS + 1, /* and one that makes pools and looks on */
	N_PAGES = 640,
	MAX_HELD = 64,
	MAX_BURST = 48,
	MAILBOX = 32,
	MAX_BUFFERS = 2 * N_PAGES * 4,
};

struct shared {
	struct pool_fixture f;
	struct mr_pool *pools[2];
	struct mr_ring_mpmc *mailboxes[N_WORKERS];
	uint32_t buffer_bytes;
	bool is_flooded;         /* or each frame has one owner */
	struct mr_cache *parked; /* for whoever comes; atomic */
	uint32_t n_working;
	uint8_t n_owners[MAX_BUFFERS]; /* by address; relaxed */
};

struct worker {
	struct mt_thread *thread;
	struct shared *shared;
	struct mr_pool *pool;
	struct mr_cache *cache;
	uint32_t n_held;
	struct mr_frame held[MAX_HELD];
};

static uint8_t *n_owners_of(struct shared *shared, uint64_t addr)
{
	return &shared->n_owners[addr / shared->buffer_bytes];
}

/* First and last bytes of a buffer; headroom is before and room behind. */
static uint64_t *stamp_at(struct shared *shared, uint64_t addr, bool is_last)
{
	const uint64_t buffer = addr & ~(uint64_t)(shared->buffer_bytes - 1);

	return (uint64_t *)(void *)(shared->f.base + buffer +
				    (is_last ? shared->buffer_bytes - 8 : 0));
}

static void write_stamp(struct shared *shared, uint64_t addr, uint32_t id)
{
	const uint64_t stamp = addr / shared->buffer_bytes << 8 | id;

	*stamp_at(shared, addr, false) = stamp;
	*stamp_at(shared, addr, true) = stamp;
}

static bool is_stamped(struct shared *shared, uint64_t addr)
{
	const uint64_t stamp = *stamp_at(shared, addr, false);

	return stamp == *stamp_at(shared, addr, true) &&
	       stamp >> 8 == addr / shared->buffer_bytes;
}

static void do_alloc(struct worker *w)
{
	struct shared *shared = w->shared;
	uint64_t addrs[MAX_BURST];
	uint32_t n = 1 + mt_random(w->thread, MAX_BURST);

	n = mri_min_u32(n, MAX_HELD - w->n_held);
	n = mr_frag_alloc_bulk(w->cache, addrs, n, shared->buffer_bytes);
	for (uint32_t i = 0; i < n; i++) {
		uint8_t nobody = 0;

		if (!mt_check(w->thread->run,
			      __atomic_compare_exchange_n(
				      n_owners_of(shared, addrs[i]), &nobody, 1,
				      false, __ATOMIC_RELAXED,
				      __ATOMIC_RELAXED)))
			return;
		write_stamp(shared, addrs[i], w->thread->id);
		w->held[w->n_held++] =
			(struct mr_frame){ addrs[i] + 128, 60, 0 };
	}
}

/* A random frame of ours to the end of the list. */
static struct mr_frame *pick(struct worker *w)
{
	const uint32_t i = mt_random(w->thread, w->n_held);
	struct mr_frame *last = &w->held[w->n_held - 1];
	const struct mr_frame frame = w->held[i];

	w->held[i] = *last;
	*last = frame;
	return last;
}

/* What the words say before the library hears of it: never too late. */
static void give_up(struct worker *w, const struct mr_frame *frame)
{
	mt_check(w->thread->run, is_stamped(w->shared, frame->addr));
	mt_check(w->thread->run,
		 __atomic_fetch_sub(n_owners_of(w->shared, frame->addr), 1,
				    __ATOMIC_RELAXED) != 0);
}

static void do_free(struct worker *w)
{
	const uint32_t n = mt_random(w->thread, w->n_held + 1);
	uint64_t addrs[MAX_HELD];

	w->n_held -= n;
	for (uint32_t i = 0; i < n; i++) {
		give_up(w, &w->held[w->n_held + i]);
		addrs[i] = w->held[w->n_held + i].addr;
	}
	switch (mt_random(w->thread, 8)) {
	case 0:
		mr_frag_free_bulk(w->cache, addrs, n);
		break;
	case 1:
		mr_pool_frag_free_bulk(w->pool, addrs, n);
		break;
	default:
		mr_frame_free_bulk(w->cache, &w->held[w->n_held], n);
		break;
	}
}

static void do_send(struct worker *w, bool is_flood)
{
	struct mr_ring_mpmc *to =
		w->shared->mailboxes[mt_random(w->thread, N_WORKERS)];
	struct mr_frame *frame = pick(w);
	uint8_t *n_owners = n_owners_of(w->shared, frame->addr);

	if (is_flood) {
		__atomic_fetch_add(n_owners, 1, __ATOMIC_RELAXED);
		mt_check(w->thread->run, mr_frame_ref(w->cache, frame, 1) == 0);
	}
	if (mr_ring_mpmc_enqueue_burst(to, frame, 1) == 1) {
		w->n_held -= !is_flood;
	} else if (is_flood) {
		give_up(w, frame);
		mr_frame_free_bulk(w->cache, frame, 1);
	}
}

static void do_receive(struct worker *w)
{
	const uint32_t n = mr_ring_mpmc_dequeue_burst(
		w->shared->mailboxes[w->thread->id - 1], &w->held[w->n_held],
		MAX_HELD - w->n_held);

	for (uint32_t i = 0; i < n; i++)
		mt_check(w->thread->run,
			 is_stamped(w->shared, w->held[w->n_held + i].addr));
	w->n_held += n;
	if (n == 0)
		mr_cache_flush(w->cache);
}

/* Writing is for sole owners, headroom included. */
static void do_write(struct worker *w)
{
	struct mr_frame *frame = pick(w);
	const struct mr_frame before = *frame;
	const bool is_mine = mri_pool_has(w->pool, frame->addr);
	int err;

	/* It may be given up behind unshare()'s back; if not, we take it. */
	give_up(w, frame);
	err = mr_frame_unshare(w->cache, frame, 1);
	mt_check(w->thread->run,
		 err == 0 || err == (is_mine ? -ENOMEM : -EINVAL));
	if (__atomic_fetch_add(n_owners_of(w->shared, frame->addr), 1,
			       __ATOMIC_RELAXED) != 0)
		mt_check(w->thread->run, frame->addr == before.addr);
	if (err < 0)
		return;
	write_stamp(w->shared, frame->addr, w->thread->id);
	mt_check(w->thread->run, mr_frame_is_sole(w->cache, frame));
	mt_check(w->thread->run, mr_frame_push(w->cache, frame, 14) == 0);
	memset(w->shared->f.base + frame->addr, (int)w->thread->id, 14);
	mt_check(w->thread->run, mr_frame_pull(frame, 14) == 0);
}

static void work(struct worker *w)
{
	switch (mt_random(w->thread, 8)) {
	case 0:
	case 1:
		do_alloc(w);
		break;
	case 2:
		do_free(w);
		break;
	case 3:
	case 4:
		if (w->n_held > 0)
			do_send(w, w->shared->is_flooded &&
					   mt_random(w->thread, 3) == 0);
		break;
	case 5:
		if (w->n_held > 0 && w->shared->is_flooded)
			do_write(w);
		break;
	default:
		do_receive(w);
		break;
	}
	mt_maybe_yield(w->thread, 50);
}

/* The cache of whoever was here last goes on with this thread. */
static void swap_caches(struct worker *w)
{
	w->cache = mr_cache_adopt(__atomic_exchange_n(
		&w->shared->parked, w->cache, __ATOMIC_ACQ_REL));
	w->pool = mr_cache_pool(w->cache);
}

static void worker_body(struct mt_thread *thread)
{
	struct mt_run *run = thread->run;
	struct worker w = { .thread = thread, .shared = run->shared };

	w.pool = w.shared->pools[thread->id % 2];
	mt_check(run, mr_cache_create(w.pool, &w.cache, NULL) == 0);
	for (uint64_t op = 0; op < run->n_ops && !mt_failed(run); op++) {
		work(&w);
		/* Bounds hold at all times. */
		mt_check(run, w.cache->n_open <=
				      MR_OPEN_MAGAZINES * MR_MAGAZINE_PAGES);
		if (mt_random(thread, 100) == 0)
			swap_caches(&w);
		if (mt_random(thread, 20000) == 0) {
			mr_cache_destroy(w.cache);
			mt_check(run,
				 mr_cache_create(w.pool, &w.cache, NULL) == 0);
		}
	}
	for (uint32_t i = 0; i < w.n_held; i++)
		give_up(&w, &w.held[i]);
	mr_frame_free_bulk(w.cache, w.held, w.n_held);
	mr_cache_destroy(w.cache);
}

/* Pools come and go in the region, and somebody looks at statistics. */
static void look_on(struct mt_thread *thread)
{
	struct shared *shared = thread->run->shared;
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 16,
					       .region = shared->f.region };
	const struct timespec nap = { .tv_nsec = 300000 };

	while (__atomic_load_n(&shared->n_working, __ATOMIC_RELAXED) > 0) {
		struct mr_region_stats region = { .size = sizeof(region) };
		struct mr_pool_stats stats = { .size = sizeof(stats) };
		struct mr_pool *pool;

		mt_check(thread->run, mr_pool_create(shared->f.ctx, &config,
						     &pool, NULL) == 0);
		for (int i = 0; i < 2; i++) {
			mr_pool_stats(shared->pools[i], &stats);
			mt_check(thread->run, stats.free_invalid == 0);
			mt_check(thread->run, stats.n_caches <= N_WORKERS + 1);
		}
		mr_region_stats(shared->f.region, &region);
		mt_check(thread->run, region.n_segments == 3);
		nanosleep(&nap, NULL);
		mt_check(thread->run, mr_pool_destroy(pool, NULL) == 0);
	}
}

static void body(struct mt_thread *thread)
{
	struct shared *shared = thread->run->shared;

	if (thread->id > N_WORKERS) {
		look_on(thread);
		return;
	}
	worker_body(thread);
	__atomic_fetch_sub(&shared->n_working, 1, __ATOMIC_RELAXED);
}

static void drain_mailboxes(struct shared *shared)
{
	for (int i = 0; i < N_WORKERS; i++) {
		struct mr_frame frames[MAILBOX];
		const uint32_t n = mr_ring_mpmc_dequeue_burst(
			shared->mailboxes[i], frames, MAILBOX);

		for (uint32_t k = 0; k < n; k++)
			(*n_owners_of(shared, frames[k].addr))--;
		mr_frame_free_bulk(shared->f.cache, frames, n);
		mr_ring_mpmc_destroy(shared->mailboxes[i]);
	}
	mr_cache_destroy(shared->parked);
}

static void frames_wander_and_all_pages_come_back(uint32_t page_bytes,
						  uint32_t chunk_bytes,
						  bool is_flooded)
{
	static struct shared shared;
	struct mt_run run = { .body = body,
			      .shared = &shared,
			      .n_threads = N_THREADS,
			      .n_ops = mt_n_ops(260000) };
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = N_PAGES,
					 .page_bytes = page_bytes,
					 .chunk_bytes = chunk_bytes };

	memset(&shared, 0, sizeof(shared));
	fixture_open(&shared.f, N_PAGES, page_bytes, chunk_bytes);
	config.region = shared.f.region;
	shared.pools[0] = shared.f.pool;
	assert_int_equal(
		mr_pool_create(shared.f.ctx, &config, &shared.pools[1], NULL),
		0);
	assert_int_equal(mr_cache_create(shared.pools[1], &shared.parked, NULL),
			 0);
	shared.buffer_bytes = chunk_bytes;
	shared.is_flooded = is_flooded;
	shared.n_working = N_WORKERS;
	for (int i = 0; i < N_WORKERS; i++)
		assert_int_equal(mr_ring_mpmc_create(shared.f.ctx, MAILBOX,
						     &shared.mailboxes[i],
						     NULL),
				 0);
	assert_int_equal(mt_run(&run), 0);
	drain_mailboxes(&shared);
	mr_cache_flush(shared.f.cache);
	for (int i = 0; i < MAX_BUFFERS; i++)
		assert_int_equal(shared.n_owners[i], 0);
	assert_in_flight(shared.pools[0], 0);
	assert_in_flight(shared.pools[1], 0);
	assert_magazines(shared.pools[1]);
	assert_int_equal(mr_pool_destroy(shared.pools[1], NULL), 0);
	fixture_close(&shared.f);
}

TEST(pages_of_one_chunk)
{
	frames_wander_and_all_pages_come_back(2048, 2048, true);
}

TEST(pages_of_one_owner)
{
	frames_wander_and_all_pages_come_back(2048, 2048, false);
}

TEST(pages_of_four_chunks)
{
	frames_wander_and_all_pages_come_back(8192, 2048, true);
}

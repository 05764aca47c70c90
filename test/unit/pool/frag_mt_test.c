/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/pool/block.c, block_count.c and frag.c by more threads than
 * cores: frags that are cut here and freed there, one by one and in bursts,
 * while the block is being used up.
 *
 * All bytes of a frag say which one it is. They are written and read plainly,
 * so two frags that overlap show, and so does, under ThreadSanitizer, a block
 * that is cut again before the last one has read what was in it.
 */
#include "support/pool_unit.h"

#include <millrace/frag.h>
#include <millrace/ring.h>

#include "support/mt.h"

enum { N_WORKERS = 5, MAX_HELD = 64, MAILBOX = 64, RING = 512 };

struct shared {
	struct pool_fixture f;
	struct mr_pool *pools[2];
	struct mr_ring_mpmc *mailboxes[N_WORKERS];
	struct mr_ring_spsc *ring;
	uint32_t n_bytes, align_bytes; /* of push and pop */
	uint32_t n_looking;
};

struct worker {
	struct mt_thread *thread;
	struct shared *shared;
	struct mr_cache *cache;
	struct mr_frag_cache *frags;
	uint32_t n_held;
	struct mr_frame held[MAX_HELD];
};

static uint8_t stamp_of(const struct mr_frame *frame)
{
	return (uint8_t)(frame->addr * 31 >> 2 ^ frame->len);
}

static void write_stamp(struct shared *shared, const struct mr_frame *frame)
{
	memset(shared->f.base + frame->addr, stamp_of(frame), frame->len);
}

static bool is_stamped(struct shared *shared, const struct mr_frame *frame)
{
	const uint8_t *bytes = shared->f.base + frame->addr;
	uint32_t n_wrong = 0;

	for (uint32_t i = 0; i < frame->len; i++)
		n_wrong += bytes[i] != stamp_of(frame);
	return n_wrong == 0;
}

static void check_frames(struct worker *w, const struct mr_frame *frames,
			 uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		mt_check(w->thread->run, is_stamped(w->shared, &frames[i]));
}

static uint32_t random_bytes(struct mt_thread *thread)
{
	return mt_random(thread, 8) == 0 ? 1 + mt_random(thread, 9000) :
					   1 + mt_random(thread, 600);
}

static void hold(struct worker *w, uint64_t addr, uint32_t n_bytes)
{
	struct mr_frame *frame = &w->held[w->n_held++];

	*frame = (struct mr_frame){ addr, n_bytes, 0 };
	write_stamp(w->shared, frame);
}

static void do_cut(struct worker *w)
{
	const uint32_t n_bytes = random_bytes(w->thread);
	const uint32_t align_bytes = 1u << mt_random(w->thread, 8);
	const uint32_t n_max = MAX_HELD - w->n_held;
	uint64_t addrs[8];
	struct mr_frag frag;
	uint32_t n;

	if (n_max < 8)
		return;
	switch (mt_random(w->thread, 4)) {
	case 0:
		n = mr_frag_cache_alloc_bulk(w->frags, addrs, 8, n_bytes,
					     align_bytes);
		for (uint32_t i = 0; i < n; i++)
			hold(w, addrs[i], n_bytes);
		break;
	case 1:
		if (mr_frag_cache_prepare(w->frags, n_bytes, align_bytes,
					  &frag) < 0)
			break;
		mt_check(w->thread->run,
			 mr_frag_cache_commit(w->frags, &frag, n_bytes) >=
				 (int)n_bytes);
		hold(w, frag.addr, n_bytes);
		break;
	case 2:
		if (mr_frag_cache_alloc(w->frags, n_bytes, align_bytes, addrs) <
		    0)
			break;
		memset(w->shared->f.base + addrs[0], 0xee, n_bytes);
		n = (uint32_t)-mr_frag_cache_abort(w->frags, addrs[0], n_bytes);
		mt_check(w->thread->run, n == 0 || n == EBUSY);
		if (n != 0)
			mr_frag_free_bulk(w->cache, addrs, 1);
		break;
	default:
		if (mr_frag_cache_alloc(w->frags, n_bytes, align_bytes,
					addrs) == 0)
			hold(w, addrs[0], n_bytes);
		break;
	}
}

static void do_free(struct worker *w)
{
	const uint32_t n = mt_random(w->thread, w->n_held + 1);
	const struct mr_frame *frames = &w->held[w->n_held - n];
	uint64_t addrs[MAX_HELD];

	w->n_held -= n;
	check_frames(w, frames, n);
	for (uint32_t i = 0; i < n; i++)
		addrs[i] = frames[i].addr;
	switch (mt_random(w->thread, 6)) {
	case 0:
		mr_pool_frag_free_bulk(w->shared->f.pool, addrs, n);
		break;
	case 1:
	case 2:
		mr_frag_free_bulk(w->cache, addrs, n);
		break;
	case 3:
		mr_frame_free_bulk(w->cache, frames, n);
		break;
	default:
		for (uint32_t i = 0; i < n; i++)
			mr_frag_free_bulk(w->cache, &addrs[i], 1);
		break;
	}
}

static void do_send(struct worker *w)
{
	struct mr_ring_mpmc *to =
		w->shared->mailboxes[mt_random(w->thread, N_WORKERS)];
	struct mr_frame *frame = &w->held[w->n_held - 1];
	const bool is_flood = mt_random(w->thread, 4) == 0;

	if (is_flood)
		mt_check(w->thread->run, mr_frame_ref(w->cache, frame, 1) == 0);
	if (mr_ring_mpmc_enqueue_burst(to, frame, 1) == 1)
		w->n_held -= !is_flood;
	else if (is_flood)
		mr_frame_free_bulk(w->cache, frame, 1);
}

static void do_receive(struct worker *w)
{
	const uint32_t n = mr_ring_mpmc_dequeue_burst(
		w->shared->mailboxes[w->thread->id - 1], &w->held[w->n_held],
		MAX_HELD - w->n_held);

	check_frames(w, &w->held[w->n_held], n);
	w->n_held += n;
}

static void do_write(struct worker *w)
{
	struct mr_frame *frame = &w->held[mt_random(w->thread, w->n_held)];

	if (!mr_frame_is_sole(w->cache, frame))
		return;
	check_frames(w, frame, 1);
	write_stamp(w->shared, frame);
}

static void open_caches(struct worker *w)
{
	struct mr_pool *pool = w->shared->pools[w->thread->id % 2];

	mt_check(w->thread->run, mr_cache_create(pool, &w->cache, NULL) == 0);
	mt_check(w->thread->run,
		 mr_frag_cache_create(w->cache, &w->frags, NULL) == 0);
}

static void close_caches(struct worker *w)
{
	mr_frag_cache_destroy(w->frags);
	mr_cache_destroy(w->cache);
}

static void work(struct worker *w)
{
	uint64_t page;

	switch (mt_random(w->thread, 8)) {
	case 0:
	case 1:
	case 2:
		do_cut(w);
		break;
	case 3:
		do_free(w);
		break;
	case 4:
		if (w->n_held > 0)
			do_send(w);
		break;
	case 5:
		if (w->n_held > 0)
			do_write(w);
		break;
	case 6: /* pages want the memory, too */
		if (mr_frag_alloc_bulk(w->cache, &page, 1, 4096) == 1)
			mr_frag_free_bulk(w->cache, &page, 1);
		break;
	default:
		do_receive(w);
		break;
	}
	mt_maybe_yield(w->thread, 50);
}

static void worker_body(struct mt_thread *thread)
{
	struct worker w = { .thread = thread, .shared = thread->run->shared };

	open_caches(&w);
	for (uint64_t op = 0; op < thread->run->n_ops; op++) {
		if (mt_failed(thread->run))
			break;
		work(&w);
		switch (mt_random(thread, 4000)) {
		case 0:
			close_caches(&w);
			open_caches(&w);
			break;
		case 1:
			mr_frag_cache_drain(w.frags);
			break;
		default:
			break;
		}
	}
	mr_frame_free_bulk(w.cache, w.held, w.n_held);
	close_caches(&w);
}

/*
 * Statistics may be read at any time, but sums like free_over are exact at rest
 * only: a page may move while they are added up.
 */
static void look_on(struct mt_thread *thread)
{
	struct shared *shared = thread->run->shared;

	while (__atomic_load_n(&shared->n_looking, __ATOMIC_RELAXED) > 0) {
		struct mr_pool_stats s = { .size = sizeof(s) };

		mr_pool_stats(shared->pools[0], &s);
		mt_check(thread->run, s.free_invalid == 0);
		sched_yield();
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
	__atomic_fetch_sub(&shared->n_looking, 1, __ATOMIC_RELAXED);
}

TEST(frags_wander_and_all_blocks_come_back)
{
	/* Little enough that blocks, and then pages, run out. */
	static const uint32_t n_pages[] = { 700, 90 };

	for (int i = 0; i < 2; i++) {
		static struct shared shared;
		struct mt_run run = { .body = body,
				      .shared = &shared,
				      .n_threads = N_WORKERS + 1,
				      .n_ops = mt_n_ops(50000) };
		struct mr_frame frames[MAILBOX];

		memset(&shared, 0, sizeof(shared));
		fixture_open(&shared.f, n_pages[i], 4096, 4096);
		shared.pools[0] = shared.f.pool;
		shared.pools[1] = pool_beside(&shared.f, n_pages[i], 4096);
		shared.n_looking = N_WORKERS;
		for (int m = 0; m < N_WORKERS; m++)
			assert_int_equal(
				mr_ring_mpmc_create(shared.f.ctx, MAILBOX,
						    &shared.mailboxes[m], NULL),
				0);
		assert_int_equal(mt_run(&run), 0);
		for (int m = 0; m < N_WORKERS; m++) {
			const uint32_t n = mr_ring_mpmc_dequeue_burst(
				shared.mailboxes[m], frames, MAILBOX);

			mr_frame_free_bulk(shared.f.cache, frames, n);
			mr_ring_mpmc_destroy(shared.mailboxes[m]);
		}
		mr_cache_flush(shared.f.cache); /* pages of the other pool */
		assert_int_equal(pool_stats(shared.pools[0]).free_over, 0);
		assert_int_equal(pool_stats(shared.pools[1]).free_over, 0);
		assert_in_flight(shared.pools[0], 0);
		assert_in_flight(shared.pools[1], 0);
		assert_int_equal(mr_pool_destroy(shared.pools[1], NULL), 0);
		fixture_close(&shared.f);
	}
}

/*
 * The kernel's page_frag_test: one thread cuts, one frees, a ring between. What
 * does not fit the ring is given back at once, so while the ring is full a
 * block may be used up for one frag of it that waits there: memory runs out.
 */
static void push(struct mt_thread *thread, struct mr_cache *cache)
{
	struct shared *shared = thread->run->shared;
	struct mr_frag_cache *frags;

	mt_check(thread->run, mr_frag_cache_create(cache, &frags, NULL) == 0);
	for (uint64_t n = 0; n < thread->run->n_ops;) {
		struct mr_frame frame = { 0, shared->n_bytes, 0 };

		if (mt_failed(thread->run))
			break;
		if (mr_frag_cache_alloc(frags, frame.len, shared->align_bytes,
					&frame.addr) < 0) {
			sched_yield();
			continue;
		}
		mt_check(thread->run,
			 (frame.addr & (shared->align_bytes - 1)) == 0);
		write_stamp(shared, &frame);
		if (mr_ring_spsc_enqueue_burst(shared->ring, &frame, 1) == 1) {
			n++;
			continue;
		}
		mr_frag_free_bulk(cache, &frame.addr, 1);
		sched_yield();
	}
	mr_frag_cache_destroy(frags);
}

static void pop(struct mt_thread *thread, struct mr_cache *cache)
{
	struct shared *shared = thread->run->shared;

	for (uint64_t n = 0; n < thread->run->n_ops;) {
		struct mr_frame frame;

		if (mt_failed(thread->run))
			break;
		if (mr_ring_spsc_dequeue_burst(shared->ring, &frame, 1) == 0) {
			sched_yield();
			continue;
		}
		mt_check(thread->run, is_stamped(shared, &frame));
		mr_frag_free_bulk(cache, &frame.addr, 1);
		n++;
	}
}

static void push_or_pop(struct mt_thread *thread)
{
	struct shared *shared = thread->run->shared;
	struct mr_cache *cache = NULL;

	mt_check(thread->run,
		 mr_cache_create(shared->f.pool, &cache, NULL) == 0);
	if (thread->id == 1)
		push(thread, cache);
	else
		pop(thread, cache);
	mr_cache_destroy(cache);
}

TEST(one_cuts_and_one_frees)
{
	static const uint32_t cases[][2] = {
		{ 12, 1 }, { 12, 64 }, { 75, 1 }, { 2048, 1 }, { 2048, 64 }
	};

	for (int i = 0; i < 5; i++) {
		static struct shared shared;
		struct mt_run run = { .body = push_or_pop,
				      .shared = &shared,
				      .n_threads = 2,
				      .n_ops = mt_n_ops(50000) };

		memset(&shared, 0, sizeof(shared));
		fixture_open(&shared.f, 512, 4096, 4096);
		shared.n_bytes = cases[i][0];
		shared.align_bytes = cases[i][1];
		assert_int_equal(mr_ring_spsc_create(shared.f.ctx, RING,
						     &shared.ring, NULL),
				 0);
		assert_int_equal(mt_run(&run), 0);
		mr_ring_spsc_destroy(shared.ring);
		assert_int_equal(pool_stats(shared.f.pool).free_over, 0);
		assert_in_flight(shared.f.pool, 0);
		fixture_close(&shared.f);
	}
}

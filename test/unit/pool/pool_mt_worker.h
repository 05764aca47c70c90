/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a worker of pool_mt_test.c does with frames: it allocates, cuts, sends,
 * receives, floods, unshares and frees them, each at random.
 *
 * Each buffer has a word that says how many owners it should have, from 0 to 1
 * when it is allocated, so a buffer that is handed out twice shows at once. All
 * bytes of a frame have a value that is computed from its place, and they are
 * written plainly: two frags that overlap show, and so does, under
 * ThreadSanitizer, a block that is cut again before its last reader is done.
 * The words are relaxed: ordering is up to the library.
 */
#ifndef TEST_POOL_MT_WORKER_H
#define TEST_POOL_MT_WORKER_H

#include "support/objpool_unit.h"
#include "support/page_unit.h"

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
	const uint32_t n_bytes = l->page_bytes << order;
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
	const uint32_t n =
		receive_frames(w->shared, w->objects, w->thread->id - 1,
			       &w->held[w->n_held], MAX_HELD - w->n_held);

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

#endif

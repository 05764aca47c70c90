/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps of a random sequence: each makes some calls, and compares their results
 * with the model of pool_model.h.
 */
#ifndef SUPPORT_POOL_STEPS_H
#define SUPPORT_POOL_STEPS_H

#include "pool/cache.h"
#include "support/pool_model.h"

/* Allocate pages or parts of them, with or without a cache. */
static inline void alloc_buffers(struct model *m)
{
	const uint32_t cache = below(m, N_CACHES), s = side_of(cache);
	struct side *side = &m->sides[s];
	const struct mr_pool *pool = side->pool;
	const uint32_t way = below(m, 4);
	const uint32_t n_bytes = way == 3 || below(m, 3) > 0 ?
					 pool->page_bytes :
					 1 + below(m, pool->page_bytes);
	const uint32_t n_max = mri_min_u32(MAX_N, MAX_LIVE - m->n_live);
	uint32_t n_want = below(m, n_max + 1), n = 0;
	const uint64_t n_most = n_available(m, s, way < 3 ? cache : N_CACHES);
	uint64_t addrs[MAX_N];

	if (below(m, 2) == 0)
		n_want &= ~7u;
	if (way == 3)
		n = mr_pool_frag_alloc_bulk(side->pool, addrs, n_want);
	else if (way > 0)
		n = mr_frag_alloc_bulk(m->caches[cache], addrs, n_want,
				       n_bytes);
	else
		while (n < n_want &&
		       (addrs[n] = mr_frag_alloc(m->caches[cache], n_bytes)) !=
			       MR_ADDR_NONE)
			n++;
	assert_true(n <= n_want);
	for (uint32_t i = 0; i < n; i++) {
		const uint64_t first =
			(addrs[i] - pool->addr) % pool->page_bytes;

		assert_true(first % 64 == 0 &&
			    first + n_bytes <= pool->page_bytes);
		hold(m, s, addrs[i], pool->page_bytes, 0);
	}
	assert_int_equal(n, n_want < n_most ? n_want : n_most);
	side->n_empty += way == 0 ? n < n_want : n_want - n;
}

/* Allocate blocks from the page allocator, as an array or a list. */
static inline void alloc_blocks(struct model *m)
{
	const uint32_t s = below(m, N_POOLS);
	struct side *side = &m->sides[s];
	struct mr_pool *pool = side->pool;
	const uint32_t order = below(m, page_stats(pool).max_order + 2);
	const bool is_list = below(m, 4) == 0;
	const uint64_t n_most = n_available(m, s, N_CACHES);
	const uint64_t n_failed = page_stats(pool).alloc_failed;
	uint32_t n_want, n;
	struct mr_page_list list = { 0 };
	uint64_t addrs[MAX_N], addr;

	n_want = mri_min_u32(MAX_N >> order, MAX_LIVE - m->n_live);
	n_want = below(m, 4) == 0 ? n_want > 0 : below(m, n_want + 1);
	n = is_list ? mr_page_alloc_list(pool, order, n_want, &list) :
		      mr_page_alloc_bulk(pool, order, addrs, n_want);
	if (is_list && n > 0) /* a list has one order */
		assert_int_equal(mr_page_alloc_list(pool, order ^ 1, 1, &list),
				 0);
	assert_true(n <= n_want);
	for (uint32_t i = 0; i < n; i++) {
		if (is_list)
			assert_true(mr_page_list_pop(pool, &list, &addrs[i]));
		hold(m, s, addrs[i], pool->page_bytes << order, order);
		assert_int_equal((addrs[i] - pool->addr) %
					 (pool->page_bytes << order),
				 0);
	}
	assert_false(mr_page_list_pop(pool, &list, &addr));
	assert_int_equal(page_stats(pool).alloc_failed - n_failed,
			 n == 0 ? n_want : 0);
	if (order > page_stats(pool).max_order)
		assert_int_equal(n, 0);
	else if (n == 0)
		side->n_empty += (uint64_t)n_want << order;
	if (order == 0 && n_want > 0)
		assert_int_equal(n > 0, n_most > 0);
}

/* An address that is in no pool now. */
static inline uint64_t wrong_addr(struct model *m)
{
	const struct mr_pool *pool = m->sides[0].pool;
	const uint64_t population = mri_pool_population(pool);
	const uint64_t addrs[] = {
		UINT64_MAX,
		UINT64_C(1) << 63,
		(UINT64_C(1) << 44) + 4096,
		/* Its address range may be larger than the pool. */
		mri_page_addr(pool, (uint32_t)population),
		mri_page_addr(pool, pool->n_pages) + below(m, 4096),
	};
	const uint64_t addr = addrs[below(m, 5)];

	return mri_pool_has(m->sides[1].pool, addr) ? UINT64_MAX : addr;
}

/* Make calls with sizes, orders and counts for which nothing is available. */
static inline void ask_for_nothing(struct model *m)
{
	const uint32_t cache = below(m, N_CACHES);
	struct mr_pool *pool = m->sides[side_of(cache)].pool;
	const uint32_t sizes[] = { 0, pool->page_bytes + 1,
				   2 * pool->page_bytes, UINT32_MAX };
	const uint32_t n_bytes = sizes[below(m, 4)];
	struct mr_page_list list = { 0, 0, 0, 0 };
	uint64_t addrs[2];
	uint32_t order;

	assert_int_equal(
		mr_frag_alloc_bulk(m->caches[cache], addrs, 2, n_bytes), 0);
	assert_int_equal(mr_pool_frag_alloc_bulk(pool, addrs, 0), 0);
	assert_int_equal(mr_frag_alloc(m->caches[cache], n_bytes),
			 MR_ADDR_NONE);
	assert_int_equal(mr_page_alloc_list(pool, 0, 0, &list), 0);
	mr_page_free_list(pool, &list);
	order = below(m, 2) ? UINT32_MAX : page_stats(pool).max_order + 1;
	assert_int_equal(mr_page_alloc_bulk(pool, order, addrs, 2), 0);
	addrs[0] = pool->addr;
	mr_page_free_bulk(pool, order, addrs, 1);
	m->sides[side_of(cache)].n_invalid++;
}

/* Make calls with a frame that is in no pool, or of 0 or too many entries. */
static inline void ask_for_nobodys(struct model *m)
{
	struct mr_cache *cache = m->caches[below(m, N_CACHES)];
	const struct mr_pages pages = mr_cache_pages(cache);
	struct mr_frame frame = { wrong_addr(m), 60, 0 }, before = frame;
	struct mr_room room;

	assert_false(mr_pages_room(&pages, &frame, &room));
	assert_int_equal(mr_frame_room(cache, &frame, &room), -EINVAL);
	assert_int_equal(room.front_bytes + room.back_bytes, 0);
	assert_int_equal(mr_frame_push(cache, &frame, 1), -EINVAL);
	assert_int_equal(mr_frame_put(cache, &frame, 1), -EINVAL);
	assert_int_equal(mr_frame_ref(cache, &frame, 1), -EINVAL);
	assert_int_equal(mr_frame_unshare(cache, &frame, 1), -EINVAL);
	assert_int_equal(mr_frame_unshare(cache, &frame, 0), -EINVAL);
	assert_int_equal(mr_frame_unshare(cache, &frame, MR_MAX_SEGS + 1),
			 -EINVAL);
	assert_false(mr_frame_is_exclusive(cache, &frame));
	assert_memory_equal(&frame, &before, sizeof(frame));
}

/* A page of a checked pool that is already free, or MR_ADDR_NONE. */
static inline uint64_t free_page(struct model *m, uint32_t s)
{
	struct side *side = &m->sides[s];
	const struct mr_pool *pool = side->pool;
	const uint64_t addr =
		mri_page_addr(pool, below(m, mri_pool_population(pool)));

	/* Blocks in the depot are counted differently: frag_test.c. */
	if (side->pool->safety == NULL || mri_is_block(side->pool, addr))
		return MR_ADDR_NONE;
	for (uint32_t i = 0; i < m->n_live; i++)
		if (addr - m->live[i].begin < m->live[i].n_bytes)
			return MR_ADDR_NONE;
	side->n_double++;
	return addr;
}

/* Choose references for calls on a pool to drop, some of them invalid. */
static inline uint32_t pick_references(struct model *m, uint32_t by,
				       uint64_t *addrs)
{
	const uint32_t n_want = below(m, MAX_N);
	uint32_t n = 0;

	while (n < n_want && m->n_live > 0) {
		struct buffer *b = &m->live[below(m, m->n_live)];
		const uint32_t what = below(m, 64);

		if (what == 0) {
			addrs[n++] = wrong_addr(m);
			m->sides[by].n_invalid++;
		} else if (what == 1) {
			addrs[n] = free_page(m, below(m, N_POOLS));
			n += addrs[n] != MR_ADDR_NONE;
		} else {
			addrs[n++] = b->begin + below(m, b->n_bytes);
			look_at(m, b);
			release(m, b, by);
		}
	}
	return n;
}

static inline void free_buffers(struct model *m)
{
	const uint32_t cache = below(m, N_CACHES), by = side_of(cache);
	struct mr_frame frames[MAX_N] = { { 0 } };
	uint64_t addrs[MAX_N];
	const uint32_t n = pick_references(m, by, addrs);

	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ addrs[i], 1, 0 };
	switch (below(m, 4)) {
	case 0:
		mr_frag_free_bulk(m->caches[cache], addrs, n);
		break;
	case 1:
		mr_frame_free_bulk(m->caches[cache], frames, n);
		break;
	case 2:
		mr_pool_frag_free_bulk(m->sides[by].pool, addrs, n);
		break;
	default:
		for (uint32_t i = 0; i < n; i++)
			mr_frag_free(m->caches[cache], addrs[i]);
		break;
	}
}

/* An address at which no block of an order begins. */
static inline uint64_t wrong_block(struct model *m, uint32_t s, uint32_t order)
{
	const struct side *side = &m->sides[s];
	const struct buffer *b = &m->live[below(m, m->n_live)];

	if (b->pool != s || below(m, 4) == 0)
		return mri_page_addr(side->pool, side->pool->n_pages);
	if (b->n_bytes < side->pool->page_bytes) /* a page that was cut */
		return side->pool->addr + (b->begin - side->pool->addr) /
						  side->pool->page_bytes *
						  side->pool->page_bytes;
	if (b->order > 0 && below(m, 2) == 0) /* inside a block */
		return b->begin + side->pool->page_bytes;
	return b->order > order ? b->begin : b->begin + 1;
}

static inline void free_blocks(struct model *m)
{
	const uint32_t s = below(m, N_POOLS);
	struct side *side = &m->sides[s];
	const uint32_t order = below(m, page_stats(side->pool).max_order + 1);
	uint64_t addrs[MAX_N];
	uint32_t n = 0;

	for (uint32_t k = below(m, MAX_N); k > 0 && m->n_live > 0; k--) {
		struct buffer *b = &m->live[below(m, m->n_live)];

		if (below(m, 64) == 0) {
			addrs[n++] = wrong_block(m, s, order);
			side->n_invalid++;
		} else if (b->pool == s && b->order == order &&
			   b->n_bytes >= side->pool->page_bytes) {
			addrs[n++] = b->begin;
			look_at(m, b);
			side->n_released += order > 0 && b->n_refs > 1;
			release(m, b, s);
		}
	}
	mr_page_free_bulk(side->pool, order, addrs, n);
}

/* Add an owner to each of some frames, or to none if one is invalid or full. */
static inline void share(struct model *m)
{
	const uint32_t cache = below(m, N_CACHES), n = below(m, 9);
	const uint32_t wrong = below(m, 20);
	uint32_t n_shared = 0;
	struct buffer *picked;
	struct mr_frame frames[8];
	uint64_t *n_released = &m->sides[side_of(cache)].n_released;
	uint32_t places[8];
	int want = 0;

	for (uint32_t i = 0; i < n && m->n_live > 0; i++) {
		places[i] = below(m, m->n_live);
		picked = &m->live[places[i]];
		frames[i] = picked->view;
		if (i == wrong)
			frames[i].addr = wrong_addr(m);
		if (want < 0)
			continue;
		if (i == wrong)
			want = -EINVAL;
		else if (picked->order == 0 && picked->n_refs == 254)
			want = -EOVERFLOW;
		picked->n_refs += want == 0;
		n_shared += want == 0;
	}
	if (m->n_live == 0)
		return;
	assert_int_equal(mr_frame_ref(m->caches[cache], frames, n), want);
	for (uint32_t i = 0; i < n_shared && want < 0; i++) {
		picked = &m->live[places[i]];
		picked->n_refs--;
		*n_released += picked->order == 0;
	}
}

/* Move the ends of a view, and check the room at each. */
static inline void move_ends(struct model *m)
{
	const uint32_t cache = below(m, N_CACHES);
	struct buffer *b = &m->live[below(m, m->n_live)];
	const struct side *side = &m->sides[b->pool];
	struct mr_cache *c = m->caches[cache];
	const struct mr_pages pages = mr_cache_pages(c);
	struct mr_frame *v = &b->view;
	const uint32_t front = (uint32_t)(v->addr - b->begin);
	const uint32_t back = b->n_bytes - front - v->len;
	const uint32_t pushes[] = { below(m, front + 2), front, UINT32_MAX };
	const uint32_t puts[] = { below(m, back + 2), back, UINT32_MAX };
	const uint32_t push = pushes[below(m, 3)], put = puts[below(m, 3)];
	const int err = side_of(cache) != b->pool ? -EINVAL :
			b->n_refs > 1             ? -EROFS :
						    0;
	const struct mr_frame before = *v;
	struct mr_room room, fast;
	uint32_t n;

	assert_int_equal(mr_frame_is_exclusive(c, v), err == 0);
	assert_int_equal(mr_frame_room(c, v, &room), err);
	assert_int_equal(room.front_bytes, err == 0 ? front : 0);
	assert_int_equal(room.back_bytes, err == 0 ? back : 0);
	if (mr_pages_room(&pages, v, &fast))
		assert_memory_equal(&fast, &room, sizeof(room));
	else
		assert_true(err < 0 || b->order > 0 ||
			    mri_page_of(side->pool, b->begin) >= pages.n);
	assert_int_equal(mr_frame_push(c, v, push), err < 0      ? err :
						    push > front ? -ENOSPC :
								   0);
	assert_int_equal(mr_frame_put(c, v, put), err < 0    ? err :
						  put > back ? -ENOSPC :
							       0);
	if (err < 0)
		assert_memory_equal(v, &before, sizeof(before));
	/* An owner may shorten its view of a shared buffer, too. */
	for (uint32_t i = 0; i < 2; i++) {
		const struct mr_frame was = *v;

		const uint32_t most[] = { was.len, was.len + 1, UINT32_MAX };

		n = below(m, 2) ? below(m, was.len) : most[below(m, 3)];
		assert_int_equal(i == 0 ? mr_frame_pull(v, n) :
					  mr_frame_trim(v, n),
				 n < was.len ? 0 : -ENOSPC);
		n = n < was.len ? n : 0;
		assert_int_equal(v->len, was.len - n);
		assert_int_equal(v->addr, was.addr + (i == 0 ? n : 0));
	}
	assert_true(v->addr >= b->begin &&
		    v->addr + v->len <= b->begin + b->n_bytes);
}

/* Record that the entries of a frame were copied into buffers of equal size. */
static inline void take_copies(struct model *m, uint32_t s, uint32_t first,
			const struct mr_frame *frames, uint32_t n)
{
	struct buffer old[MR_MAX_SEGS];

	memcpy(old, &m->live[first], n * sizeof(old[0]));
	for (uint32_t i = 0; i < n; i++) {
		const uint8_t *bytes = m->f.base + frames[i].addr;

		assert_int_equal(frames[i].len, old[i].view.len);
		for (uint32_t k = 0; k < frames[i].len; k++)
			assert_int_equal(bytes[k], old[i].stamp);
	}
	/* Backwards: release() moves the last buffer into the free place. */
	for (uint32_t i = n; i-- > 0;)
		release(m, &m->live[first + i], s);
	for (uint32_t i = 0; i < n; i++) {
		struct buffer *b =
			hold(m, s, frames[i].addr, old[i].n_bytes, 0);

		assert_int_equal(frames[i].addr - b->begin,
				 old[i].view.addr - old[i].begin);
		b->view = frames[i];
		b->view.flags = 0;
	}
}

static inline void make_own(struct model *m)
{
	const uint32_t cache = below(m, N_CACHES), s = side_of(cache);
	const uint32_t n = 1 + below(m, mri_min_u32(m->n_live, MR_MAX_SEGS));
	const uint32_t first = below(m, m->n_live - n + 1);
	struct mr_frame frames[MR_MAX_SEGS], before[MR_MAX_SEGS];
	bool is_ours = true, is_exclusive = true, has_block = false;
	const uint64_t n_most = n_available(m, s, cache);
	int err;

	for (uint32_t i = 0; i < n; i++) {
		const struct buffer *b = &m->live[first + i];

		is_ours = is_ours && b->pool == s;
		is_exclusive = is_exclusive && b->n_refs == 1;
		has_block = has_block || b->order > 0;
		look_at(m, b);
		frames[i] = b->view;
		frames[i].flags = i + 1 < n ? MR_FRAME_MORE : 0;
	}
	if (m->n_live + n > MAX_LIVE)
		return;
	memcpy(before, frames, sizeof(before));
	err = mr_frame_unshare(m->caches[cache], frames, n);
	if (!is_ours)
		assert_int_equal(err, -EINVAL);
	else if (is_exclusive)
		assert_int_equal(err, 0);
	else if (has_block || n > n_most)
		assert_int_equal(err, -ENOMEM);
	else
		assert_int_equal(err, 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(frames[i].flags, before[i].flags);
	if (err < 0 || is_exclusive)
		assert_memory_equal(frames, before, n * sizeof(frames[0]));
	else
		take_copies(m, s, first, frames, n);
	m->sides[s].n_empty = pool_stats(m->sides[s].pool).alloc_empty;
}

/* Replace, trim, grow or flush; the model does not notice. */
static inline void keep_house(struct model *m)
{
	const struct mr_trim_config config = { .size = sizeof(config),
					       .idle_ns = 1 };
	const uint32_t cache = below(m, N_CACHES);
	struct side *side = &m->sides[side_of(cache)];
	struct mr_trim_report report = { .size = sizeof(report) };

	switch (below(m, 8)) {
	case 0:
		mr_cache_destroy(m->caches[cache]);
		assert_int_equal(
			mr_cache_create(side->pool, &m->caches[cache], NULL),
			0);
		break;
	case 1:
		m->caches[cache] = mr_cache_adopt(m->caches[cache]);
		break;
	case 2:
		assert_int_equal(mr_pool_trim(side->pool, &config, &report), 0);
		assert_int_equal(report.n_duplicates, 0);
		break;
	case 3:
		(void)mr_pool_grow(side->pool, 0, NULL); /* it may be full */
		break;
	case 4:
		assert_int_equal(mr_pool_shrink(side->pool, 0, NULL, NULL), 0);
		break;
	case 5:
		/* As on CPUs with other vectors. */
		side->pool->vector_bytes =
			mri_min_u32(16u << below(m, 3), mri_vector_bytes());
		break;
	case 6:
		mr_cache_idle(m->caches[cache]);
		break;
	default:
		mr_cache_flush(m->caches[cache]);
		break;
	}
}

static inline void step(struct model *m)
{
	const uint32_t what = below(m, 16);

	if (what < 4)
		alloc_buffers(m);
	else if (what < 6)
		alloc_blocks(m);
	else if (what < 9)
		free_buffers(m);
	else if (what < 11)
		free_blocks(m);
	else if (what == 11)
		share(m);
	else if (what == 12 && m->n_live > 0)
		move_ends(m);
	else if (what == 13 && m->n_live > 0)
		make_own(m);
	else if (what == 14)
		keep_house(m);
	else
		below(m, 2) ? ask_for_nothing(m) : ask_for_nobodys(m);
	check(m);
}

static inline void model_open(struct model *m, struct mr_pool_config config)
{
	fixture_open_with(&m->f, config);
	m->sides[0].pool = m->f.pool;
	m->sides[1].pool = pool_beside(&m->f, 200, 2048);
	m->sides[0].has_quarantine = config.safety >= MR_SAFETY_POISON;
	for (uint32_t i = 0; i < N_CACHES; i++)
		assert_int_equal(mr_cache_create(m->sides[side_of(i)].pool,
						 &m->caches[i], NULL),
				 0);
}

static inline void model_close(struct model *m)
{
	while (m->n_live > 0) {
		free_buffers(m);
		check(m);
	}
	for (uint32_t i = 0; i < N_CACHES; i++)
		mr_cache_destroy(m->caches[i]);
	assert_magazines(m->sides[1].pool);
	assert_int_equal(mr_pool_destroy(m->sides[1].pool, NULL), 0);
	fixture_close(&m->f);
}

#endif

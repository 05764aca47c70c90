/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of allocators: how to make, count and free each. */
#include <stdio.h>

#include "alloc.h"
#include "support/text.h"

/* If DPDK got no huge pages, we use none either: both miss the TLB alike. */
static int small_region(struct bench *bench, struct mr_region **ret,
			struct mr_reason *why)
{
	const struct mr_region_config config = {
		.size = sizeof(config),
		.os_pages = MR_OS_PAGES_4K,
	};

	if (!dpdk_has_small_pages())
		return 0;
	return mr_region_create(bench_ctx(bench), &config, ret, why);
}

/* Give a page a second owner once: from then on the pool checks owners. */
static int use_owners(struct mr_cache *cache, struct mr_reason *why)
{
	struct mr_frame frame = { .len = 64 };
	int err;

	if (mr_frag_alloc_bulk(cache, &frame.addr, 1, OBJECT_BYTES) != 1) {
		snprintf(why->text, sizeof(why->text), "the pool is empty");
		return -1;
	}
	err = mr_frame_ref(cache, &frame, 1);
	mr_frame_free_bulk(cache, &frame, 1);
	if (err == 0)
		mr_frame_free_bulk(cache, &frame, 1);
	return err;
}

static int make_pool(struct our_pool *our, const struct variant *variant,
		     uint32_t p, struct mr_reason *why)
{
	const struct wish *wish = &variant->wish;
	struct mr_pool_config config = wish->ours;

	config.size = sizeof(config);
	config.n_pages = wish->n_objects;
	config.page_bytes = wish->n_bytes;
	/* One region for all pools, so a cache can free frames of any pool. */
	config.region = p == 0 ? our->region : mr_pool_region(our->pools[0]);
	if (mr_pool_create(bench_ctx(variant->bench), &config, &our->pools[p],
			   why) < 0)
		return -1;
	for (uint32_t t = 0; t < variant->row->n_threads; t++)
		if (mr_cache_create(our->pools[p], &our->caches[p][t], why) < 0)
			return -1;
	return wish->has_owners ? use_owners(our->caches[p][0], why) : 0;
}

static int make_ours(struct variant *variant, void **ret, struct mr_reason *why)
{
	const struct wish *wish = &variant->wish;
	struct our_pool *our = *ret = calloc(1, sizeof(*our));

	if (our == NULL)
		return -1;
	our->n_pools = wish->n_pools;
	our->n_bytes = wish->frag_bytes;
	our->align = wish->align;
	our->to = wish->caches == CACHES_AWAY ? our->others : our->caches[0];
	if (small_region(variant->bench, &our->region, why) < 0)
		return -1;
	for (uint32_t p = 0; p < our->n_pools; p++)
		if (make_pool(our, variant, p, why) < 0)
			return -1;
	for (uint32_t t = 0;
	     wish->caches != CACHES_ONE && t < variant->row->n_threads; t++)
		if (mr_cache_create(our->pools[0], &our->others[t], why) < 0)
			return -1;
	our->base = mr_region_base(mr_pool_region(our->pools[0]));
	return variant->alloc == A_FRAGS ?
		       mr_frag_cache_create(our->caches[0][0], &our->frags,
					    why) :
		       0;
}

static void free_ours(void *pool)
{
	struct our_pool *our = pool;
	struct mr_reason why = { .text = "" };
	bool is_whole = true;

	mr_frag_cache_destroy(our->frags);
	/* Destroy all caches first: each may hold pages of any pool. */
	for (uint32_t t = 0; t < MAX_THREADS; t++) {
		for (uint32_t p = 0; p < MAX_POOLS; p++)
			mr_cache_destroy(our->caches[p][t]);
		mr_cache_destroy(our->others[t]);
	}
	/* Each benchmark also tests that no page is lost. */
	for (uint32_t p = MAX_POOLS; p > 0; p--)
		is_whole = mr_pool_destroy(our->pools[p - 1], &why) >= 0 &&
			   is_whole;
	if (mr_region_destroy(our->region, &why) < 0 || !is_whole)
		print_error("mr-micro: %s", why.text);
	free(our);
}

void count_huge(struct mr_pool *pool, struct counts *counts)
{
	struct mr_region_stats s = { .size = sizeof(s) };

	if (mr_region_stats(mr_pool_region(pool), &s) == 0 && s.n_bytes > 0)
		count_add(counts, "huge_percent",
			  100.0 * (double)s.n_huge_bytes / (double)s.n_bytes);
}

static void count_ours(void *pool, struct variant *variant,
		       struct counts *counts)
{
	const struct our_pool *our = pool;
	struct mr_pool_stats s = { .size = sizeof(s) };

	mr_pool_stats(our->pools[0], &s);
	count_per_1000(counts, "fast_per_1000", s.alloc_fast, variant);
	count_per_1000(counts, "refill_per_1000", s.alloc_refill, variant);
	count_per_1000(counts, "slow_per_1000", s.alloc_slow, variant);
	count_per_1000(counts, "empty_per_1000", s.alloc_empty, variant);
	count_per_1000(counts, "cached_per_1000", s.recycle_cached, variant);
	count_per_1000(counts, "cache_full_per_1000", s.recycle_cache_full,
		       variant);
	count_per_1000(counts, "ring_full_per_1000", s.recycle_ring_full,
		       variant);
	count_per_1000(counts, "cas_failed_per_1000", s.depot_cas_failed,
		       variant);
	count_add(counts, "parked", (double)(s.n_cached + s.n_open));
	count_huge(our->pools[0], counts);
}

static int make_objects(struct variant *variant, void **ret,
			struct mr_reason *why)
{
	const struct mr_objpool_config config = {
		.size = sizeof(config),
		.object_bytes = variant->wish.n_bytes,
		.n_objects = variant->wish.n_objects,
	};
	struct our_objects *o = *ret = calloc(1, sizeof(*o));

	if (o == NULL || mr_objpool_create(bench_ctx(variant->bench), &config,
					   &o->pool, why) < 0)
		return -1;
	for (uint32_t i = 0; i < variant->row->n_threads; i++)
		if (mr_objcache_create(o->pool, &o->caches[i], why) < 0)
			return -1;
	return 0;
}

static void free_objects(void *pool)
{
	struct our_objects *o = pool;
	struct mr_reason why = { .text = "" };

	for (uint32_t i = 0; i < MAX_THREADS; i++)
		mr_objcache_destroy(o->caches[i]);
	if (mr_objpool_destroy(o->pool, &why) < 0)
		print_error("mr-micro: %s", why.text);
	free(o);
}

static void count_objects(void *pool, struct variant *variant,
			  struct counts *counts)
{
	const struct our_objects *o = pool;
	struct mr_objpool_stats s = { .size = sizeof(s) };

	mr_objpool_stats(o->pool, &s);
	count_per_1000(counts, "refill_per_1000", s.alloc_refill, variant);
	count_per_1000(counts, "cache_full_per_1000", s.recycle_cache_full,
		       variant);
	count_per_1000(counts, "empty_per_1000", s.alloc_empty, variant);
	count_per_1000(counts, "cas_failed_per_1000", s.depot_cas_failed,
		       variant);
	count_add(counts, "parked", (double)s.n_cached);
}

static int make_page_pool(struct variant *variant, void **ret,
			  struct mr_reason *why)
{
	(void)why;
	*ret = model_make(variant->wish.n_objects, MODEL_RING, OBJECT_BYTES);
	return *ret == NULL ? -1 : 0;
}

static void count_page_pool(void *pool, struct variant *variant,
			    struct counts *counts)
{
	const struct model_page_pool *model = pool;

	count_per_1000(counts, "slow_per_1000", model->n_slow, variant);
	count_per_1000(counts, "ring_full_per_1000", model->n_ring_full,
		       variant);
}

static int make_qmempool(struct variant *variant, void **ret,
			 struct mr_reason *why)
{
	(void)why;
	*ret = qm_make(variant->row->n_threads, variant->wish.n_bytes);
	return *ret == NULL ? -1 : 0;
}

static int make_page_frag(struct variant *variant, void **ret,
			  struct mr_reason *why)
{
	const uint64_t n_bytes =
		(uint64_t)variant->wish.n_objects * variant->wish.n_bytes;

	(void)why;
	*ret = kernel_frags_make((uint32_t)(n_bytes / 32768),
				 variant->wish.frag_bytes, variant->wish.align);
	return *ret == NULL ? -1 : 0;
}

static void free_plain(void *pool)
{
	struct plain **stacks = pool;

	for (uint32_t i = 0; i < MAX_THREADS; i++)
		free(stacks[i]);
	free(stacks);
}

static int make_plain(struct variant *variant, void **ret,
		      struct mr_reason *why)
{
	const uint32_t n = variant->wish.n_objects;
	struct plain **stacks = *ret = calloc(MAX_THREADS, sizeof(*stacks));

	(void)why;
	for (uint32_t i = 0; stacks != NULL && i < variant->row->n_threads;
	     i++) {
		stacks[i] = calloc(1, sizeof(**stacks) + n * sizeof(word));
		if (stacks[i] == NULL)
			return -1;
		stacks[i]->n = n;
	}
	return stacks == NULL ? -1 : 0;
}

static int make_round(struct variant *variant, void **ret,
		      struct mr_reason *why)
{
	const size_t n_bytes = (size_t)ROUND_OBJECTS * ROUND_STRIDE;
	struct round *round = *ret = calloc(1, sizeof(*round));

	(void)variant;
	(void)why;
	if (round == NULL)
		return -1;
	round->bytes = aligned_alloc(64, n_bytes);
	if (round->bytes == NULL)
		return -1;
	memset(round->bytes, 0, n_bytes);
	for (uint32_t i = 0; i < ROUND_OBJECTS; i++)
		round->words[i] = (uintptr_t)round->bytes + ROUND_STRIDE * i;
	return 0;
}

static void free_round(void *pool)
{
	free(((struct round *)pool)->bytes);
	free(pool);
}

static int make_heap(struct variant *variant, void **ret, struct mr_reason *why)
{
	struct heap *heap = *ret = malloc(sizeof(*heap));

	(void)why;
	if (heap == NULL)
		return -1;
	*heap = (struct heap){ variant->wish.n_bytes, variant->wish.frag_bytes,
			       variant->wish.align };
	return 0;
}

/*
 * free() is also called after make() failed, if make() stored a pointer. All
 * objects must have come back before free_ours() and free_objects().
 */
static const struct {
	enum side side;
	int (*make)(struct variant *variant, void **ret, struct mr_reason *why);
	void (*free)(void *pool);
	void (*count)(void *pool, struct variant *variant,
		      struct counts *counts);
} allocs[] = {
	[A_OURS] = { SIDE_OURS, make_ours, free_ours, count_ours },
	[A_FRAGS] = { SIDE_OURS, make_ours, free_ours, count_ours },
	[A_OBJECTS] = { SIDE_OURS, make_objects, free_objects, count_objects },
#ifdef BENCH_DPDK
	[A_MEMPOOL] = { SIDE_DPDK, dpdk_pool_make, dpdk_pool_free, NULL },
	[A_MBUFS] = { SIDE_DPDK, dpdk_pool_make, dpdk_pool_free, NULL },
#else
	[A_MEMPOOL... A_MBUFS] = { SIDE_DPDK, NULL, NULL, NULL },
#endif
	[A_PAGE_POOL] = { SIDE_KERNEL, make_page_pool, model_free,
			  count_page_pool },
	[A_QMEMPOOL] = { SIDE_KERNEL, make_qmempool, qm_destroy, NULL },
	[A_PAGE_FRAG] = { SIDE_KERNEL, make_page_frag, kernel_frags_free,
			  NULL },
	[A_PLAIN] = { SIDE_PLAIN, make_plain, free_plain, NULL },
	[A_ROUND] = { SIDE_PLAIN, make_round, free_round, NULL },
	[A_MALLOC] = { SIDE_MALLOC, make_heap, free, NULL },
	[A_NOTHING] = { SIDE_PLAIN, NULL, NULL, NULL },
};

static void free_harness(const struct variant *variant, struct harness *harness)
{
	if (harness->pool != NULL)
		allocs[variant->alloc].free(harness->pool);
	for (uint32_t i = 0; i < variant->wish.n_hops; i++)
		free(harness->hops[i]);
	free(harness);
}

static int set_up(struct variant *variant, struct mr_reason *why)
{
	struct wish *wish = &variant->wish;
	const size_t n_bytes =
		(sizeof(struct harness) + wish->n_extra + 63) / 64 * 64;
	struct harness *harness = aligned_alloc(64, n_bytes);
	bool is_whole = harness != NULL;

	if (!is_whole)
		return -1;
	memset(harness, 0, n_bytes);
	variant->state = harness;
	harness->n_threads = variant->row->n_threads;
	if (wish->n_objects == 0)
		wish->n_objects = 16384;
	if (wish->n_bytes == 0)
		wish->n_bytes = OBJECT_BYTES;
	if (wish->frag_bytes == 0)
		wish->frag_bytes = wish->n_bytes;
	if (wish->align == 0)
		wish->align = 1;
	if (wish->n_pools == 0)
		wish->n_pools = 1;
	for (uint32_t i = 0; i < wish->n_hops; i++) {
		harness->hops[i] = hop_make(wish->hop_words);
		is_whole = is_whole && harness->hops[i] != NULL;
	}
	if (is_whole && allocs[variant->alloc].make != NULL)
		is_whole = allocs[variant->alloc].make(variant, &harness->pool,
						       why) >= 0;
	if (is_whole && variant->begin != NULL)
		is_whole = variant->begin(variant, why) >= 0;
	if (is_whole)
		return 0;
	free_harness(variant, harness);
	return -1;
}

static void tear_down(struct variant *variant)
{
	struct harness *harness = variant->state;
	word object;

	if (harness->is_dead)
		print_error("mr-micro: %s: no progress for 2 s", variant->name);
	if (variant->end != NULL)
		variant->end(variant);
	/* Free what a run that gave up left in the rings. */
	for (uint32_t i = 0; i < variant->wish.n_hops; i++)
		while (variant->alloc <= A_FRAGS &&
		       hop_get(harness->hops[i], &object, 1) == 1)
			ours_give(harness->pool, 0, &object, 1);
	free_harness(variant, harness);
}

void harness_count(struct variant *variant, struct counts *counts)
{
	struct harness *harness = variant->state;

	if (allocs[variant->alloc].count != NULL)
		allocs[variant->alloc].count(harness->pool, variant, counts);
}

static void add_kinds(struct bench *bench, struct row *row,
		      const struct variant *like, const struct contestant *c)
{
	for (uint32_t i = 0; i < DPDK_KINDS; i++) {
		const struct dpdk_kind *kind = &dpdk_kinds[i];
		struct variant variant = *like;

		if ((c->kinds & kind->size) == 0)
			continue;
		NAME(variant.name, "%s%s", kind->name, c->name);
		variant.wish.kind = kind;
		bench_add(bench, row, &variant);
		if (c->kinds & C_FIRST)
			return;
	}
}

void bench_add_all(struct bench *bench, struct row *row,
		   const struct variant *like, const struct contestant *list,
		   uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const struct contestant *c = &list[i];
		struct variant variant = *like;

		NAME(variant.name, "%s", c->name);
		variant.alloc = c->alloc;
		variant.side = allocs[c->alloc].side;
		variant.run = c->run;
		variant.setup = set_up;
		variant.teardown = tear_down;
		variant.param[P_HOW] = c->how;
		if (c->magazine_pages > 0)
			variant.wish.ours.magazine_pages = c->magazine_pages;
		if (like->wish.frags_mib > 0) {
			/* DPDK uses a whole object for each frag. */
			variant.wish.n_bytes = c->kinds != 0 ? 2048 : 4096;
			variant.wish.n_objects = (like->wish.frags_mib << 20) /
						 variant.wish.n_bytes;
			variant.wish.align = (uint32_t)c->how;
		}
		if (c->kinds != 0)
			add_kinds(bench, row, &variant, c);
		else
			bench_add(bench, row, &variant);
	}
}

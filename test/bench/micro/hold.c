/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread allocates pages and frees them: B02 to B04 and B06. */
#include <stdio.h>

#include "alloc.h"

enum { P_BULK }; /* of variant.param */

enum { MAX_BULK = 128 };

/* Allocate `bulk` objects, free them. constant: the bulk, or 0. */
static ALWAYS_INLINE uint64_t once(struct variant *variant, uint32_t thread,
				   uint64_t n, const struct ops ops,
				   const uint32_t constant)
{
	void *pool = ((struct harness *)variant->state)->pool;
	void *from = ops.from != NULL ? ops.from(pool, thread) : pool;
	void *to = ops.to != NULL ? ops.to(pool, thread) : pool;
	const uint32_t bulk =
		constant > 0 ? constant : (uint32_t)variant->param[P_BULK];
	word words[MAX_BULK];
	uint64_t done;

	for (done = 0; done < n; done += bulk) {
		if (!ops.take(from, thread, words, bulk))
			return 0;
		keep(words);
		ops.give(to, thread, words, bulk);
	}
	return done;
}

RUN(once_inlined, once, CACHE_SINGLE, 1)
RUN(once_outlined, once, CACHE, 1)
RUN(once_ours, once, CACHE, 0)
RUN(once_single, once, CACHE_SINGLE, 0)
RUN(once_page, once, PAGES, 1)
RUN(once_pages, once, PAGES, 0)
RUN(once_pages_single, once, PAGES_SINGLE, 0)
RUN(once_pages_list, once, PAGES_LIST, 0)
RUN(once_direct, once, MODEL_DIRECT, 1)
RUN(once_ring, once, MODEL_RINGED, 1)
RUN(once_buddy, once, BUDDY, 1)
RUN(once_plain, once, PLAIN, 0)
RUN(once_heap, once, HEAP, 0)
RUN(once_plain_1, once, PLAIN, 1)
RUN(once_heap_1, once, HEAP, 1)
/*
 * Here the compiler does not know that the bulk is 1: with the constant that
 * rte_mempool_get() passes, allocating an object and freeing it takes twice as
 * long in B02, and 1.5 times as long in B12.
 */
RUN_DPDK(once_dpdk, once, MEMPOOL, 0)
RUN_DPDK(once_cached, once, DPDK_CACHED, 0)

static const struct contestant floors[] = {
	{ "plain stack", A_PLAIN, once_plain },
	{ "malloc", A_MALLOC, once_heap },
};

/* With a bulk that the compiler knows. */
static const struct contestant floors_1[] = {
	{ "plain stack", A_PLAIN, once_plain_1 },
	{ "malloc", A_MALLOC, once_heap_1 },
};

/*
 * B02 to B04: one page at a time, as bench_page_pool_simple does with a pool of
 * 1024 pages and 64 of them in the cache: taken and given back
 *
 *     fast  to the same cache
 *     ring  through what threads share: with a cache for each direction
 *     slow  to the backing store, with no cache in between
 */
static void one_page(struct bench *bench, const struct contestant *list,
		     uint32_t n, enum caches caches)
{
	struct row row = { .name = "1 page at a time", .unit = "page" };
	const struct variant like = {
		.count = harness_count,
		.wish = { .n_objects = 1024,
			  .caches = caches,
			  .is_owned = caches == CACHES_AWAY },
		.param = { 1 },
	};

	bench_add_all(bench, &row, &like, list, n);
	bench_add_all(bench, &row, &like, floors_1, N_OF(floors_1));
	bench_row(bench, &row);
}

void rows_b02(struct bench *bench)
{
	static const struct contestant list[] = {
		{ "millrace", A_OURS, once_inlined },
		{ "millrace, outlined", A_OURS, once_outlined },
		{ "", A_MEMPOOL, once_dpdk, C512 | C256 },
		{ "model of page_pool", A_PAGE_POOL, once_direct },
	};

	one_page(bench, list, N_OF(list), CACHES_ONE);
}

void rows_b03(struct bench *bench)
{
	static const struct contestant list[] = {
		{ "millrace", A_OURS, once_inlined },
		{ "millrace, outlined", A_OURS, once_outlined },
		{ "", A_MEMPOOL, once_cached, C512 | C256 },
		{ "model of page_pool", A_PAGE_POOL, once_ring },
	};

	one_page(bench, list, N_OF(list), CACHES_AWAY);
}

void rows_b04(struct bench *bench)
{
	static const struct contestant list[] = {
		{ "millrace", A_OURS, once_page },
		{ "", A_MEMPOOL, once_dpdk, C0 },
		{ "model of page_pool", A_PAGE_POOL, once_buddy },
	};

	one_page(bench, list, N_OF(list), CACHES_ONE);
}

/*
 * B06: allocate every page of the pool in bulks, then free all. n is rounded
 * up.
 */
static uint64_t fresh(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct harness *harness = variant->state;
	const struct our_pool *our = harness->pool;
	uint64_t *addrs = (uint64_t *)(void *)harness->extra;
	const uint32_t bulk = (uint32_t)variant->param[P_BULK];
	const uint32_t n_pages = variant->wish.n_objects;
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += n_pages) {
		uint32_t got = 0;

		for (uint32_t k = 1; got < n_pages && k > 0; got += k) {
			const uint32_t left = n_pages - got;

			k = mr_page_alloc_bulk(our->pools[0], 0, addrs + got,
					       left < bulk ? left : bulk);
		}
		for (uint32_t i = 0; i < got; i += bulk)
			mr_page_free_bulk(our->pools[0], 0, addrs + i,
					  got - i < bulk ? got - i : bulk);
		if (got < n_pages)
			return 0;
	}
	return done;
}

/*
 * B06: single against array against list. A round takes as many pages as the
 * bulk has and gives them back; where from is:
 *
 *     pages   the page allocator, with no cache: also as a list
 *     fresh   the same, but every page of the pool is taken once before any
 *             comes back, so that each call cuts segments that are whole. The
 *             pool has been through that before: its memory is there
 *     cache   one cache takes and gets back: its two magazines
 *     depot   one cache takes, another one gets back, both this thread's: each
 *             magazine goes through the depot each way
 */
void rows_b06(struct bench *bench)
{
	static const struct contestant pages[] = {
		{ "array", A_OURS, once_pages },
		{ "list", A_OURS, once_pages_list },
		{ "single", A_OURS, once_pages_single },
		{ "", A_MEMPOOL, once_dpdk, C0 },
		{ "malloc", A_MALLOC, once_heap },
	};
	static const struct contestant whole[] = { { "array", A_OURS, fresh } };
	static const struct contestant cache[] = {
		{ "array", A_OURS, once_ours },
		{ "single", A_OURS, once_single },
		{ "", A_MEMPOOL, once_dpdk, C_ALL },
	};
	/* DPDK: with the caller's caches, one for each direction. */
	static const struct contestant depot[] = {
		{ "array", A_OURS, once_ours },
		{ "single", A_OURS, once_single },
		{ "", A_MEMPOOL, once_cached, C_ALL },
	};
	static const struct {
		const char *name;
		const struct contestant *list;
		uint32_t n;
		enum caches caches;
	} from[] = {
		{ "pages", pages, N_OF(pages), CACHES_ONE },
		{ "fresh", whole, N_OF(whole), CACHES_ONE },
		{ "cache", cache, N_OF(cache), CACHES_OTHERS },
		{ "depot", depot, N_OF(depot), CACHES_AWAY },
	};
	static const uint32_t bulks[] = { 1, 2, 3, 4, 8, 16, 32, 64, 128 };

	for (uint32_t i = 0; i < N_OF(from) * N_OF(bulks); i++) {
		const uint32_t f = i / N_OF(bulks);
		const uint32_t bulk = bulks[i % N_OF(bulks)];
		struct row row = { .unit = "page" };
		const struct variant like = {
			.count = harness_count,
			.wish = { .n_objects = 16384,
				  .n_extra = 16384 * sizeof(word),
				  .caches = from[f].caches,
				  .is_owned = from[f].caches == CACHES_AWAY },
			.param = { bulk },
		};

		NAME(row.plot, "from=%s", from[f].name);
		NAME(row.name, "%s bulk=%u", row.plot, bulk);
		bench_add_all(bench, &row, &like, from[f].list, from[f].n);
		if (from[f].caches != CACHES_ONE)
			bench_add_all(bench, &row, &like, floors, N_OF(floors));
		bench_row(bench, &row);
	}
}

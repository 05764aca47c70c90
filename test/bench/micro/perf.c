/* SPDX-License-Identifier: BSD-3-Clause */
/* Each thread allocates objects, then frees them: B12 and B13. */
#include <stdio.h>

#include "alloc.h"

enum { P_HOLD, P_GET, P_PUT, P_RANDOM }; /* of variant.param; a maximum, or 0 */

/*
 * Bytes of the list of held objects, 16 each. No two threads write to the same
 * page, or a core would prefetch the other's lines.
 */
static inline size_t held_bytes(uint64_t n_held)
{
	return (n_held * 2 * sizeof(word) + 127) / 128 * 128 + 4096;
}

static inline word *held_by(const struct variant *variant, uint32_t thread)
{
	struct harness *harness = variant->state;

	return (word *)(void *)(harness->extra +
				held_bytes(variant->param[P_HOLD]) * thread);
}

/* Sizes of calls: fixed, or random as in 26.11, but never more than is left. */
struct sizes {
	uint32_t fixed, mask, r;
};

enum how_many { AS_ASKED, UP_TO_LEFT };

static ALWAYS_INLINE uint32_t next_size(struct sizes *sizes, uint32_t n_left,
					enum how_many how_many)
{
	uint32_t n = sizes->fixed, r;

	if (how_many == AS_ASKED)
		return n;
	if (sizes->mask != 0) {
		r = sizes->r++;
		n = ((r ^ (r >> 2) ^ (r << 3)) & sizes->mask) + 1;
	}
	return n < n_left ? n : n_left;
}

static inline struct sizes sizes_of(const struct variant *variant, uint32_t p)
{
	const uint64_t most = variant->param[P_RANDOM];

	return (struct sizes){ .fixed = (uint32_t)variant->param[p],
			       .mask = most > 0 ? (uint32_t)most - 1 : 0 };
}

/* Allocate all objects, `get` per call, and free them, `put` per call. */
static ALWAYS_INLINE uint64_t hold(struct variant *variant, uint32_t thread,
				   uint64_t n, const struct ops ops,
				   const enum how_many how_many,
				   const uint32_t constant)
{
	void *pool = ((struct harness *)variant->state)->pool;
	void *from = ops.from != NULL ? ops.from(pool, thread) : pool;
	void *to = ops.to != NULL ? ops.to(pool, thread) : pool;
	const uint32_t n_held = (uint32_t)variant->param[P_HOLD];
	struct sizes get = sizes_of(variant, P_GET);
	struct sizes put = sizes_of(variant, P_PUT);
	word *words = held_by(variant, thread), *end = words + n_held;
	uint64_t done;
	uint32_t k;

	for (done = 0; done < n; done += n_held) {
		for (word *w = words; w < end; w += k) {
			k = constant ? constant :
				       next_size(&get, (uint32_t)(end - w),
						 how_many);
			if (!ops.take(from, thread, w, k)) {
				ops.give(to, thread, words,
					 (uint32_t)(w - words));
				return 0;
			}
		}
		keep(words);
		for (const word *w = words; w < end; w += k) {
			k = constant ? constant :
				       next_size(&put, (uint32_t)(end - w),
						 how_many);
			ops.give(to, thread, w, k);
		}
	}
	return done;
}

RUN(hold_objects, hold, OBJECTS, AS_ASKED, 0)
RUN(hold_qmempool, hold, QMEMPOOL, AS_ASKED, 1)
RUN(hold_heap, hold, HEAP, AS_ASKED, 1)
RUN_DPDK(hold_dpdk, hold, MEMPOOL, AS_ASKED, 0)

/*
 * B12: objects of 256 bytes (an sk_buff) through a local cache and a shared
 * queue, one at a time: freed at once (fast), or after 128 or 256 were
 * allocated (N), more than a local queue of 32 holds; these in rows of their
 * own in bulk, too. On one thread, on as many as there are cores, and on more.
 *
 * Without caches, more threads than cores would wait for each other's tails a
 * time slice at a time: such a row does not end.
 */
static void objects_row(struct bench *bench, uint32_t n_held,
			uint32_t n_threads, bool is_bulk)
{
	static const struct contestant singles[] = {
		{ "millrace objects", A_OBJECTS, hold_objects },
		{ "", A_MEMPOOL, hold_dpdk, C512 | C256 },
		{ "", A_MEMPOOL, hold_dpdk, C0 },
		{ "model of qmempool", A_QMEMPOOL, hold_qmempool },
		{ "malloc", A_MALLOC, hold_heap },
	};
	/* The others have no calls for several. */
	static const uint32_t n_bulk = 2;
	const bool is_crowded = n_threads > bench_n_cores(bench);
	const uint32_t n_call = is_bulk ? n_held : 1;
	struct row row = { .unit = "object",
			   .n_threads = n_threads,
			   .is_per_thread = true };
	const struct variant like = {
		.count = harness_count,
		.wish = { .n_objects = n_threads * 2048,
			  .n_bytes = 256,
			  .n_extra = held_bytes(n_held) * n_threads },
		.param = { n_held, n_call, n_call },
	};

	NAME(row.plot, n_held == 1 ? "fast" : "N=%u%s", n_held,
	     is_bulk ? " in bulk" : "");
	NAME(row.name, "%s threads=%u", row.plot, n_threads);
	for (uint32_t i = 0; i < (is_bulk ? n_bulk : N_OF(singles)); i++)
		if (!is_crowded || (i != 2 && (i != 3 || n_held == 1)))
			bench_add_all(bench, &row, &like, &singles[i], 1);
	bench_row(bench, &row);
}

static void object_rows(struct bench *bench, uint32_t n_held,
			uint32_t n_threads)
{
	objects_row(bench, n_held, n_threads, false);
	if (n_held > 1)
		objects_row(bench, n_held, n_threads, true);
}

void rows_b12(struct bench *bench)
{
	static const uint32_t holds[] = { 1, 128, 256 };
	const uint32_t n_cores = bench_n_cores(bench);

	for (uint32_t i = 0; i < N_OF(holds); i++) {
		for (uint32_t n = 1; n <= n_cores;
		     n = next_n_threads(n, n_cores))
			object_rows(bench, holds[i], n);
		if (4 * n_cores <= MAX_THREADS)
			object_rows(bench, holds[i], 4 * n_cores);
	}
}

/*
 * B13: mempool_perf_autotest, rte_mempool's own workload, as in DPDK 22.11, and
 * as in 26.11-rc0, where sizes of calls may be random. If get = put, both have
 * another run, in which the compiler knows the size.
 *
 * Ours with "owners on" checks the owners of each page that it frees, as all
 * pools do once a page had two.
 */
#define CASE(ops, k)                                                           \
	case k:                                                                \
		return hold(variant, thread, n, ops, UP_TO_LEFT, k)

/* The compiler knows n and unrolls: DPDK says that this gains 17 %. */
#define RUN_CONSTANT(ops)                                                      \
	do {                                                                   \
		switch (variant->param[P_GET]) {                               \
			CASE(ops, 1);                                          \
			CASE(ops, 4);                                          \
			CASE(ops, 8);                                          \
			CASE(ops, 32);                                         \
			CASE(ops, 64);                                         \
			CASE(ops, 128);                                        \
			CASE(ops, 256);                                        \
			CASE(ops, 512);                                        \
		default:                                                       \
			return 0;                                              \
		}                                                              \
	} while (0)

RUN(hold_ours, hold, CACHE, UP_TO_LEFT, 0)
RUN(hold_plain, hold, PLAIN, UP_TO_LEFT, 0)

/* As in DPDK's test, the cache is looked up once. */
#ifdef BENCH_DPDK
static uint64_t hold_cached(struct variant *variant, uint32_t thread,
			    uint64_t n)
{
	dpdk_caches(((struct harness *)variant->state)->pool, thread);
	return hold(variant, thread, n, DPDK_CACHED, UP_TO_LEFT, 0);
}

static uint64_t hold_constant(struct variant *variant, uint32_t thread,
			      uint64_t n)
{
	dpdk_caches(((struct harness *)variant->state)->pool, thread);
	RUN_CONSTANT(DPDK_CACHED);
}
#else
RUN_DPDK(hold_cached, 0)
RUN_DPDK(hold_constant, 0)
#endif

static uint64_t hold_ours_constant(struct variant *variant, uint32_t thread,
				   uint64_t n)
{
	RUN_CONSTANT(CACHE);
}

/* Allocate k pages as frames. */
static ALWAYS_INLINE bool take_frames(struct mr_cache *cache,
				      struct mr_frame *frames, uint32_t k)
{
	uint64_t addrs[512];
	const uint32_t got = mr_frag_alloc_bulk(cache, addrs, k, OBJECT_BYTES);

	if (got != k) {
		mr_frag_free_bulk(cache, addrs, got);
		return false;
	}
	for (uint32_t j = 0; j < k; j++)
		frames[j] = (struct mr_frame){ .addr = addrs[j], .len = 64 };
	return true;
}

/* The same from two pools, alternating. */
static ALWAYS_INLINE bool take_mixed(struct mr_cache *a, struct mr_cache *b,
				     struct mr_frame *frames, uint32_t k)
{
	uint64_t addrs[2][256];
	const uint32_t of_a =
		mr_frag_alloc_bulk(a, addrs[0], (k + 1) / 2, OBJECT_BYTES);
	const uint32_t of_b =
		mr_frag_alloc_bulk(b, addrs[1], k / 2, OBJECT_BYTES);

	if (of_a + of_b != k) {
		mr_frag_free_bulk(a, addrs[0], of_a);
		mr_frag_free_bulk(b, addrs[1], of_b);
		return false;
	}
	for (uint32_t j = 0; j < k; j++)
		frames[j] = (struct mr_frame){ .addr = addrs[j % 2][j / 2],
					       .len = 64 };
	return true;
}

/*
 * The same with frames, whose entries are written. All are freed by the first
 * cache, whatever their pool; those of two pools alternate.
 */
static ALWAYS_INLINE uint64_t frames_loop(struct variant *variant,
					  uint32_t thread, uint64_t n,
					  const bool is_mixed)
{
	struct our_pool *our = ((struct harness *)variant->state)->pool;
	struct mr_cache *const caches[2] = { our->caches[0][thread],
					     our->caches[1][thread] };
	const uint32_t n_held = (uint32_t)variant->param[P_HOLD];
	struct sizes get = sizes_of(variant, P_GET);
	struct sizes put = sizes_of(variant, P_PUT);
	struct mr_frame *frames = (void *)held_by(variant, thread);
	uint32_t turn = 0;
	uint64_t done;

	for (done = 0; done < n; done += n_held) {
		for (uint32_t i = 0, k; i < n_held; i += k, turn ^= 1) {
			k = next_size(&get, n_held - i, UP_TO_LEFT);
			if (is_mixed ? !take_mixed(caches[turn], caches[!turn],
						   frames + i, k) :
				       !take_frames(caches[0], frames + i, k)) {
				mr_frame_free_bulk(caches[0], frames, i);
				return 0;
			}
		}
		for (uint32_t i = 0, k; i < n_held; i += k) {
			k = next_size(&put, n_held - i, UP_TO_LEFT);
			mr_frame_free_bulk(caches[0], frames + i, k);
		}
	}
	return done;
}

RUN(hold_frames, frames_loop, false)
RUN(hold_mixed, frames_loop, true)

/* The first pool's counters, and the second one's share of the pages. */
static void count_two(struct variant *variant, struct counts *counts)
{
	const struct our_pool *our = ((struct harness *)variant->state)->pool;
	struct mr_pool_stats s = { .size = sizeof(s) };

	harness_count(variant, counts);
	mr_pool_stats(our->pools[1], &s);
	count_per_1000(counts, "fast_of_pool_2_per_1000", s.alloc_fast,
		       variant);
}

static void add_ours(struct bench *bench, struct row *row,
		     const struct variant *like, bool is_constant)
{
	static const struct contestant list[] = {
		{ "addresses", A_OURS, hold_ours },
		{ "addresses, owners on", A_OURS, hold_ours },
		{ "frames", A_OURS, hold_frames },
		{ "frames, owners on", A_OURS, hold_frames },
		{ "addresses, default magazines", A_OURS, hold_ours },
		{ "frames of 2 pools, owners on", A_OURS, hold_mixed },
	};

	for (uint32_t i = 0; i < N_OF(list); i++) {
		struct variant variant = *like;
		struct contestant contestant = list[i];

		if (is_constant && contestant.run == hold_ours)
			contestant.run = hold_ours_constant;
		variant.wish.has_owners = i % 2 != 0;
		/* As DPDK's caches, by configuration: pools here are small. */
		variant.wish.ours.magazine_pages = i == 4 ? 0 : 512;
		variant.wish.n_pools = i == 5 ? 2 : 1;
		variant.count = i == 5 ? count_two : harness_count;
		bench_add_all(bench, row, &variant, &contestant, 1);
	}
}

static void perf_row(struct bench *bench, struct row *row,
		     const struct variant *like, uint32_t kinds,
		     bool is_constant)
{
	const struct contestant theirs = {
		"", A_MEMPOOL, is_constant ? hold_constant : hold_cached, kinds
	};
	const struct contestant users = { ", user's", A_MEMPOOL, theirs.run,
					  C512 | C_FIRST };
	static const struct contestant plain = { "plain stack", A_PLAIN,
						 hold_plain };
	struct variant owned = *like;

	row->unit = "page";
	row->is_per_thread = true;
	add_ours(bench, row, like, is_constant);
	bench_add_all(bench, row, like, &theirs, 1);
	owned.wish.is_owned = true;
	if (row->n_threads == 1 && kinds == C_ALL)
		bench_add_all(bench, row, &owned, &users, 1);
	owned.count = NULL;
	bench_add_all(bench, row, &owned, &plain, 1);
	bench_row(bench, row);
}

/* The most that is held; and what caches of 512 hold in addition. */
enum { OLD_HELD = 512, NEW_HELD = 32768, CACHED = 512 };

static struct variant perf_variant(uint32_t n_threads, uint32_t n_objects,
				   uint32_t n_held, uint32_t get, uint32_t put,
				   uint32_t random)
{
	return (struct variant){
		.count = harness_count,
		.wish = { .n_objects = n_threads * n_objects - 1,
			  .n_extra = held_bytes(n_held) * n_threads },
		.param = { n_held, get, put, random },
	};
}

static void rows_22_11(struct bench *bench, uint32_t n_threads)
{
	static const uint32_t helds[] = { 32, 128, 512 };
	static const uint32_t bulks[] = { 1, 4, 8, 32 };

	for (uint32_t i = 0; i < 3 * 4 * 4; i++) {
		const uint32_t held = helds[i / 16];
		const uint32_t get = bulks[i / 4 % 4], put = bulks[i % 4];
		const struct variant like = perf_variant(
			n_threads, OLD_HELD + CACHED, held, get, put, 0);
		struct row row = { .n_threads = n_threads }, same = row;

		NAME(row.name, "22.11 keep=%u get=%u put=%u threads=%u", held,
		     get, put, n_threads);
		if (get == put)
			NAME(row.plot, "22.11 keep=%u threads=%u", held,
			     n_threads);
		perf_row(bench, &row, &like, C_ALL, false);
		NAME(same.name, "22.11 keep=%u constant=%u threads=%u", held,
		     get, n_threads);
		NAME(same.plot, "22.11 keep=%u constant threads=%u", held,
		     n_threads);
		if (get == put)
			perf_row(bench, &same, &like, C_ALL, true);
	}
}

static void rows_26_11(struct bench *bench, uint32_t n_threads)
{
	static const uint32_t helds[] = { 32, 128, 512, 2048, 8192, 32768 };
	static const uint32_t bulks[] = { 1, 4, 8, 32, 64, 128, 256, 512 };

	for (uint32_t i = 0; i < 6 * 8 * 2; i++) {
		const uint32_t held = helds[i / 16], bulk = bulks[i / 2 % 8];
		const bool is_random = i % 2 != 0;
		const char *how = is_random ? "random" : "constant";
		const struct variant like =
			perf_variant(n_threads, NEW_HELD + 2 * CACHED, held,
				     bulk, bulk, is_random ? bulk : 0);
		struct row row = { .n_threads = n_threads };

		if (bulk > held || (is_random && bulk < 8))
			continue;
		NAME(row.name, "26.11 keep=%u %s=%u threads=%u", held, how,
		     bulk, n_threads);
		NAME(row.plot, "26.11 keep=%u %s threads=%u", held, how,
		     n_threads);
		/* The pools are large: not all handlers fit into 600 MB. */
		perf_row(bench, &row, &like, C512, !is_random);
	}
}

void rows_b13(struct bench *bench)
{
	for (uint32_t n = 1; n <= bench_n_cores(bench); n *= 2) {
		rows_22_11(bench, n);
		rows_26_11(bench, n);
	}
}

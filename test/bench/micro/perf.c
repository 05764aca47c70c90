/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B13: rte_mempool's own workload, mempool_perf_autotest, in the version of
 * DPDK 22.11, and in that of 26.11-rc0, where the sizes of calls may be random,
 * too. Where get = put both have a run more, in which the compiler knows the
 * size.
 *
 * Ours with "owners on" looks at the owner of each page that it gives back, as
 * all pools do once a page had two.
 */
#include <stdio.h>

#include "hold.h"
#include "workloads.h"

#define CASE(ops, k)                                                           \
	case k:                                                                \
		return hold(variant, thread, n, ops, UP_TO_LEFT, k)

/* The compiler knows n and unrolls: +17 % by DPDK's own account. */
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

/* As DPDK's test does, its cache is looked up once. */
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

/* Take k pages as frames. */
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

/* The same, of two pools by turns. */
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
 * The same through frames, with their entries built. All go back through the
 * first cache, of whatever pool they are; those of two pools alternate.
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

/* What the first pool counts, and how much of all is the second one's. */
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
		{ "addresses, magazines of 512", A_OURS, hold_ours },
		{ "frames of 2 pools, owners on", A_OURS, hold_mixed },
	};

	for (uint32_t i = 0; i < N_OF(list); i++) {
		struct variant variant = *like;
		struct contestant contestant = list[i];

		if (is_constant && contestant.run == hold_ours)
			contestant.run = hold_ours_constant;
		variant.wish.has_owners = i % 2 != 0;
		/* As DPDK's caches: what is kept need not leave them. */
		variant.wish.ours.magazine_pages = i == 4 ? 512 : 0;
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
	row->x_name = "pages per call";
	row->x = (double)like->param[P_GET];
	add_ours(bench, row, like, is_constant);
	bench_add_all(bench, row, like, &theirs, 1);
	owned.wish.is_owned = true;
	if (row->n_threads == 1 && kinds == C_ALL)
		bench_add_all(bench, row, &owned, &users, 1);
	owned.count = NULL;
	bench_add_all(bench, row, &owned, &plain, 1);
	bench_row(bench, row);
}

/* Largest that is held; and what caches of 512 hold besides. */
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
		/* The pools are large: not all kinds fit 600 MB. */
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

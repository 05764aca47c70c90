/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread allocates objects, others free them: B05, B09, B14 and B20. */
#include <stdio.h>

#include "alloc.h"

enum { BURST = 32, RING = 1024 };

/*
 * B05 and B09: thread 0 allocates lots of objects, and deals them to the other
 * threads in turn, through a ring to each. A lot whose ring is full is freed at
 * once, and counted; so are polls of an empty ring.
 */
enum { P_BULK, P_LOT }; /* variant.param: objects per call, there and here */

/* Like page_frag_test's cond_resched(): pause, so that more objects come. */
static bool gives_up(struct harness *harness, struct patience *patience)
{
	for (uint32_t i = 0; i < 16; i++)
		relax();
	return harness_is_dead(harness, patience);
}

/* Deal n objects to each; after a full ring, allocate and try again. */
static ALWAYS_INLINE uint64_t deal_objects(struct variant *variant, uint64_t n,
					   uint32_t lot, bool is_calm,
					   const struct ops ops)
{
	struct harness *harness = variant->state;
	const uint32_t n_others = harness->n_threads - 1;
	uint64_t n_dealt[MAX_THREADS] = { 0 }, n_full = 0;
	struct patience patience = { 0 };
	word words[BURST];

	for (uint64_t left = n * n_others; left > 0;) {
		for (uint32_t i = 1; i <= n_others; i++) {
			if (n_dealt[i] == n)
				continue;
			if (!ops.take(harness->pool, 0, words, lot)) {
				sched_yield(); /* the others have all */
				continue;
			}
			if (hop_put(harness->hops[i], words, lot)) {
				n_dealt[i] += lot;
				left -= lot;
				patience = (struct patience){ 0 };
				continue;
			}
			ops.give(harness->pool, 0, words, lot);
			n_full += lot;
			if (is_calm && gives_up(harness, &patience))
				return 0;
			if (!is_calm && n_full % 1024 == 0)
				sched_yield();
		}
	}
	harness->n_full += n_full;
	return 0;
}

static ALWAYS_INLINE uint64_t collect_objects(struct variant *variant,
					      uint32_t thread, uint64_t n,
					      uint32_t bulk, bool is_calm,
					      const struct ops ops)
{
	struct harness *harness = variant->state;
	struct patience patience = { 0 };
	uint64_t n_idle = 0;
	word words[BURST];

	for (uint64_t left = n; left > 0;) {
		const uint32_t got =
			hop_get(harness->hops[thread], words,
				left < bulk ? (uint32_t)left : bulk);

		if (got > 0) {
			ops.give(harness->pool, thread, words, got);
			left -= got;
			patience = (struct patience){ 0 };
			continue;
		}
		n_idle++;
		if (is_calm && gives_up(harness, &patience))
			return 0;
		if (!is_calm && n_idle % 10000 == 0)
			sched_yield();
	}
	__atomic_add_fetch(&harness->n_idle, n_idle, __ATOMIC_RELAXED);
	return n;
}

static void count_dealt(struct variant *variant, struct counts *counts)
{
	const struct harness *harness = variant->state;

	count_per_1000(counts, "queue_full_per_1000", harness->n_full, variant);
	count_per_1000(counts, "empty_polls_per_1000", harness->n_idle,
		       variant);
	harness_count(variant, counts);
}

/* B05: pages one by one, as bench_page_pool_cross_cpu. */
static ALWAYS_INLINE uint64_t cross(struct variant *variant, uint32_t thread,
				    uint64_t n, const struct ops ops)
{
	if (thread == 0)
		return deal_objects(variant, n, (uint32_t)variant->param[P_LOT],
				    false, ops);
	return collect_objects(variant, thread, n,
			       (uint32_t)variant->param[P_BULK], false, ops);
}

RUN(cross_ours, cross, OURS)
RUN(cross_model, cross, MODEL)
RUN_DPDK(cross_dpdk, cross, DPDK)

/* The original has two freeing threads; use more if there are cores. */
void rows_b05(struct bench *bench)
{
	static const struct contestant list[] = {
		POOLS(cross_ours, cross_dpdk),
		{ "model of page_pool", A_PAGE_POOL, cross_model },
	};
	const uint32_t n_cores = bench_n_cores(bench);
	const uint32_t most = n_cores > 2 ? n_cores - 1 : 1;

	for (uint32_t bulk = 1; bulk <= BURST; bulk *= BURST)
		for (uint32_t n = 1; n <= most; n = next_n_threads(n, most)) {
			struct row row = { .unit = "page", .n_threads = n + 1 };
			const struct variant like = {
				.count = count_dealt,
				.wish = { .n_objects = 32000,
					  .n_hops = n + 1,
					  .hop_words = RING },
				.param = { bulk, 1 },
			};

			NAME(row.plot, "bulk=%u", bulk);
			NAME(row.name, "returners=%u %s", n, row.plot);
			bench_add_all(bench, &row, &like, list, N_OF(list));
			bench_row(bench, &row);
		}
}

/*
 * B09: the kernel's page_frag_test: one core cuts frags and pushes them into a
 * ring of 512, another one pops and frees them; a single thread fills the ring,
 * then empties it. An operation is a frag from cut to free, the ring included.
 * hop=1 is the original: one frag at a time on both sides. hop=32 is how
 * packets travel.
 *
 * A row has frags aligned to 64 bytes and unaligned ones: the first ratio says
 * whether alignment costs anything. DPDK's objects are always aligned.
 */
enum { FRAG_RING = 512 };

static ALWAYS_INLINE uint64_t fill_then_empty(struct variant *variant,
					      uint64_t n, const struct ops ops)
{
	struct harness *harness = variant->state;
	struct hop *hop = harness->hops[1];
	uint64_t done = 0;
	word at;

	while (done < n) {
		uint32_t n_in = 0;

		while (ops.take(harness->pool, 0, &at, 1) &&
		       hop_put(hop, &at, 1))
			n_in++;
		if (n_in < FRAG_RING)
			return 0;
		ops.give(harness->pool, 0, &at, 1);
		while (hop_get(hop, &at, 1) == 1)
			ops.give(harness->pool, 0, &at, 1);
		done += n_in;
	}
	return done;
}

/* The lot is a constant in each loop. */
static ALWAYS_INLINE uint64_t through(struct variant *variant, uint32_t thread,
				      uint64_t n, const struct ops ops)
{
	const bool is_single = variant->param[P_LOT] == 1;

	if (variant->row->n_threads == 1)
		return fill_then_empty(variant, n, ops);
	n = n_of_run(n, BURST);
	if (thread != 0)
		return is_single ?
			       collect_objects(variant, 1, n, 1, true, ops) :
			       collect_objects(variant, 1, n, BURST, true, ops);
	return is_single ? deal_objects(variant, n, 1, true, ops) :
			   deal_objects(variant, n, BURST, true, ops);
}

/* In two steps, as for a frag whose length is not known before. */
static ALWAYS_INLINE uint64_t frags_commit(const struct our_pool *our,
					   bool is_probed)
{
	struct mr_frag frag;

	if (!(is_probed && mr_frag_cache_probe(our->frags, our->n_bytes,
					       our->align, &frag)) &&
	    mr_frag_cache_alloc_prepare(our->frags, our->n_bytes, our->align,
					&frag) == NULL)
		return MR_ADDR_NONE;
	return mr_frag_cache_commit(our->frags, &frag, our->n_bytes) >= 0 ?
		       frag.addr :
		       MR_ADDR_NONE;
}

static ALWAYS_INLINE uintptr_t kernel_commit(struct kernel_frags *frags,
					     bool is_probed)
{
	void *data = is_probed ? kernel_frag_probe(frags) : NULL;

	if (data == NULL)
		data = kernel_frag_prepare(frags);
	if (data != NULL)
		kernel_frag_commit(frags, data);
	return (uintptr_t)data;
}

TAKE_EACH(prepared_take, ours_give, MR_ADDR_NONE, frags_commit(pool, false))
TAKE_EACH(probed_take, ours_give, MR_ADDR_NONE, frags_commit(pool, true))
TAKE_EACH(kernel_prepared_take, kernel_give, 0, kernel_commit(pool, false))
TAKE_EACH(kernel_probed_take, kernel_give, 0, kernel_commit(pool, true))

#define CUT_BY(take, give) ((struct ops){ take, give, NULL, NULL })

RUN(through_ours, through, FRAGS)
RUN(through_kernel, through, KERNEL_FRAGS)
RUN(prepared_ours, through, CUT_BY(prepared_take, ours_give))
RUN(prepared_kernel, through, CUT_BY(kernel_prepared_take, kernel_give))
RUN(probed_ours, through, CUT_BY(probed_take, ours_give))
RUN(probed_kernel, through, CUT_BY(kernel_probed_take, kernel_give))
RUN(through_heap, through, HEAP_FRAGS)
RUN_DPDK(through_dpdk, through, DPDK)

#define FRAG_CACHES(ours, kernel)                                              \
	{ "frag cache", A_FRAGS, ours },                                       \
		{ "frag cache, aligned", A_FRAGS, ours, .how = 64 },           \
		{ "model of page_frag_cache", A_PAGE_FRAG, kernel },           \
	{                                                                      \
		"model of page_frag_cache, aligned", A_PAGE_FRAG, kernel,      \
			.how = 64                                              \
	}

/*
 * Ways of cutting, and allocators: those that are not ours can only allocate.
 */
static const struct cut {
	const char *name;
	struct contestant list[7];
	uint32_t n;
} cuts[] = {
	{ "alloc",
	  { FRAG_CACHES(through_ours, through_kernel),
	    { "", A_MEMPOOL, through_dpdk, C_ALL },
	    { "malloc", A_MALLOC, through_heap },
	    { "malloc, aligned", A_MALLOC, through_heap, .how = 64 } },
	  7 },
	{ "prepare+commit",
	  { FRAG_CACHES(prepared_ours, prepared_kernel) },
	  4 },
	{ "probe+prepare+commit",
	  { FRAG_CACHES(probed_ours, probed_kernel) },
	  4 },
};

static void through_rows(struct bench *bench, uint32_t n_threads, uint32_t hop,
			 const struct cut *cut)
{
	static const uint32_t sizes[] = { 12, 75, 256, 1024, 2048 };

	for (uint32_t i = 0; i < N_OF(sizes); i++) {
		struct row row = { .unit = "frag", .n_threads = n_threads };
		const struct variant like = {
			.count = count_dealt,
			.wish = { .n_hops = 2,
				  .hop_words = FRAG_RING,
				  .frag_bytes = sizes[i],
				  .frags_mib = 8 },
			.param = { hop, hop },
		};

		NAME(row.plot, "threads=%u hop=%u %s", n_threads, hop,
		     cut->name);
		NAME(row.name, "len=%u %s", sizes[i], row.plot);
		bench_add_all(bench, &row, &like, cut->list, cut->n);
		bench_row(bench, &row);
	}
}

void rows_b09(struct bench *bench)
{
	for (uint32_t n_threads = 2; n_threads > 0; n_threads--)
		for (uint32_t i = 0; i < N_OF(cuts); i++)
			through_rows(bench, n_threads, 1, &cuts[i]);
	through_rows(bench, 2, BURST, &cuts[0]);
}

/*
 * B14: one core takes pages in bursts of 32, the other one touches their bytes
 * and gives them back:
 *
 *     core 0: take -> ring -> core 1: touch -> give
 *
 * The rows by ring size show what a longer queue costs (the advice of founding
 * document 4): as a driver that completes late, core 1 waits until the ring is
 * three quarters full, then empties it. Such a queue holds, and returns at
 * once, pages that no cache has room for.
 *
 * What is taken is room for a frame of Ethernet behind a headroom, out of 2048
 * bytes: ours begins at one of the lines that are left over, an object of
 * rte_mempool has a header and padding that spread them.
 */
enum { P_IS_TOUCHED, P_IS_LATE }; /* of variant.param */

/* Waits at the rings, and what the allocator counted. */
static void count_pipe(struct variant *variant, struct counts *counts)
{
	const struct harness *harness = variant->state;
	const struct hop *hop = harness->hops[0];

	if (hop->n_looks > 0)
		count_add(counts, "in_flight",
			  (double)hop->n_waiting / (double)hop->n_looks);
	count_per_1000(counts, "ring_full_waits_per_1000", harness->n_full,
		       variant);
	if (variant->side != SIDE_PLAIN)
		count_per_1000(counts, "pool_empty_waits_per_1000",
			       harness->n_empty, variant);
	harness_count(variant, counts);
}

/* Allocate n objects and send them on. */
static ALWAYS_INLINE uint64_t produce_objects(struct harness *harness,
					      uint64_t n, const struct ops ops)
{
	struct patience patience = { 0 };
	word words[BURST];
	uint64_t n_sent = 0;
	bool has = false; /* has a burst to send */

	while (n_sent < n) {
		if (!has) {
			has = ops.take(harness->pool, 0, words, BURST);
			harness->n_empty += !has;
		}
		if (has && hop_put(harness->hops[0], words, BURST)) {
			n_sent += BURST;
			has = false;
			patience = (struct patience){ 0 };
			continue;
		}
		harness->n_full += has;
		if (harness_is_dead(harness, &patience))
			break;
	}
	if (has)
		ops.give(harness->pool, 0, words, BURST);
	return n_sent < n ? 0 : n;
}

/* Whether a late core begins now; left: how many objects are still to come. */
static bool is_time(const struct hop *hop, uint64_t left)
{
	const uint32_t most = (hop->mask + 1) / 4 * 3;

	return hop_count(hop) >= (left < most ? left : most);
}

/* Touch n objects, and free them. */
static ALWAYS_INLINE uint64_t consume_objects(struct harness *harness,
					      uint64_t n, bool is_touched,
					      bool is_late,
					      const struct ops ops)
{
	struct patience patience = { 0 };
	word words[BURST];
	bool is_on = !is_late;

	for (uint64_t done = 0; done < n;) {
		uint32_t got = 0;

		is_on = is_on || is_time(harness->hops[0], n - done);
		if (is_on)
			got = hop_get(harness->hops[0], words, BURST);
		if (got == 0) {
			is_on = !is_late;
			idle(harness, 1, ops);
			if (harness_is_dead(harness, &patience))
				return 0;
			continue;
		}
		patience = (struct patience){ 0 };
		/* Like a forwarder that writes the header. */
		for (uint32_t i = 0; i < got && is_touched; i++)
			++*(uint64_t *)ops.data(harness->pool, words[i]);
		done += got;
		ops.give(harness->pool, 1, words, got);
	}
	idle(harness, 1, ops);
	return 0;
}

static ALWAYS_INLINE uint64_t pipeline(struct variant *variant, uint32_t thread,
				       uint64_t n, const struct ops ops)
{
	const bool is_late = variant->param[P_IS_LATE] != 0;
	struct harness *harness = variant->state;

	n = n_of_run(n, BURST);
	if (thread == 0)
		return produce_objects(harness, n, ops);
	/* One copy of the loop for each value. */
	return variant->param[P_IS_TOUCHED] != 0 ?
		       consume_objects(harness, n, true, is_late, ops) :
		       consume_objects(harness, n, false, is_late, ops);
}

RUN(pipeline_ours, pipeline, OURS)
RUN(pipeline_round, pipeline, ROUND)
RUN(pipeline_heap, pipeline, HEAP)
RUN_DPDK(pipeline_dpdk, pipeline, DPDK)

/* ring=0: rows by the size of the pool, with a ring of 1024. */
static void pipeline_row(struct bench *bench, uint32_t n_pages, bool is_touched,
			 uint32_t ring)
{
	static const struct contestant list[] = {
		POOLS(pipeline_ours, pipeline_dpdk),
		{ "ring alone", A_ROUND, pipeline_round },
		{ "malloc", A_MALLOC, pipeline_heap },
	};
	const bool is_rings = ring > 0;
	const char *touch = is_touched ? "header" : "none";
	struct row row = { .unit = "page", .n_threads = 2 };
	const struct variant like = {
		.count = count_pipe,
		.wish = { .n_objects = n_pages,
			  .frag_bytes = 128 + 1518,
			  .n_hops = 1,
			  .hop_words = is_rings ? ring : RING },
		.param = { is_touched, is_rings },
	};

	NAME(row.name, "%s=%u touch=%s", is_rings ? "ring" : "pages",
	     is_rings ? ring : n_pages, touch);
	NAME(row.plot, "%s sizes touch=%s", is_rings ? "ring" : "pool", touch);
	bench_add_all(bench, &row, &like, list, N_OF(list));
	bench_row(bench, &row);
}

void rows_b14(struct bench *bench)
{
	static const uint32_t pools[] = { 2048, 16384, 32768, 65536, 131072 };

	for (uint32_t i = 0; i < 2 * N_OF(pools); i++)
		pipeline_row(bench, pools[i % N_OF(pools)], i >= N_OF(pools),
			     0);
	for (uint32_t ring = 64; ring <= 4096; ring *= 2)
		pipeline_row(bench, 32768, true, ring);
}

/*
 * B20: what each level of checks costs. One core takes bursts of 32 and drops
 * them (as B08), or sends them to another one that frees them (as B14). The
 * first level is what all the others are compared with. Statistics are
 * on in all: they cannot be switched off.
 */
static uint64_t drop_bursts(struct variant *variant, uint32_t thread,
			    uint64_t n)
{
	struct harness *harness = variant->state;
	word words[BURST];

	n = n_of_run(n, BURST);
	for (uint64_t done = 0; done < n; done += BURST) {
		if (!ours_take(harness->pool, thread, words, BURST))
			return 0;
		keep(words);
		ours_give(harness->pool, thread, words, BURST);
	}
	return n;
}

void rows_b20(struct bench *bench)
{
	static const char *const levels[] = { "0 counts", "1 states",
					      "2 poison" };

	for (uint32_t n = 1; n <= 2; n++) {
		struct row row = { .unit = "page", .n_threads = n };
		struct variant like = { .count = count_pipe,
					.wish = { .n_objects = 8192,
						  .n_bytes = 4096,
						  .n_hops = 1,
						  .hop_words = RING } };

		NAME(row.name, n == 1 ? "drop" : "pipeline");
		for (uint32_t i = MR_SAFETY_COUNTS; i <= MR_SAFETY_POISON;
		     i++) {
			const struct contestant level = {
				levels[i], A_OURS,
				n == 1 ? drop_bursts : pipeline_ours
			};

			like.wish.ours.safety = (enum mr_safety)i;
			bench_add_all(bench, &row, &like, &level, 1);
		}
		bench_row(bench, &row);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Frags through a ring: B09. */
#include <stdio.h>

#include "cut_ops.h"
#include "workloads.h"

void add_cut_ops(struct bench *bench, struct row *row,
		 const struct variant *like, uint32_t n_mib,
		 const struct contestant *list, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		struct variant variant = *like;

		variant.wish.n_bytes = list[i].alloc == A_MEMPOOL ? 2048 : 4096;
		variant.wish.n_objects = (n_mib << 20) / variant.wish.n_bytes;
		bench_add_all(bench, row, &variant, &list[i], 1);
	}
}

/*
 * B09: the kernel's page_frag_test: one core cuts frags and pushes them into a
 * ring of 512, another one pops and frees them. A full ring: the frag is freed
 * at once, and that try does not count. With one thread the ring is filled,
 * then emptied.
 *
 * Aligned to 64 bytes and not stand in one row: the first ratio says whether
 * the alignment costs anything. DPDK's objects are aligned always.
 *
 * An operation is a frag from cut to free, the ring included. hop=1 is the
 * original: one frag at a time on both sides. hop=32 is how packets travel.
 */
enum { P_SIZE, P_CUT, P_HOP }; /* of variant.param; P_HOW is the alignment */

enum { RING = 512, MAX_HOP = 32 };

/* As the original's cond_resched(): away for a moment, so that a lot gathers.
 */
static bool gives_up(struct harness *harness, struct patience *patience)
{
	for (uint32_t i = 0; i < 16; i++)
		relax();
	return harness_is_dead(harness, patience);
}

/* Cut and push one lot. False: no room, it was freed. */
static ALWAYS_INLINE bool push_lot(struct variant *variant,
				   struct harness *harness, uint32_t hop,
				   enum cut how, const struct cut_ops by)
{
	const uint32_t align = (uint32_t)variant->param[P_HOW];
	word words[MAX_HOP];
	const uint32_t n = by.cut(harness->pool, words, hop,
				  (uint32_t)variant->param[P_SIZE], align, how);

	for (uint32_t i = 0; i < n; i++)
		harness->n_empty += (words[i] & (align - 1)) != 0;
	if (n == hop && hop_put(harness->hops[0], words, n))
		return true;
	by.give(harness->pool, 0, words, n);
	harness->n_full += hop;
	return false;
}

static ALWAYS_INLINE uint64_t push(struct variant *variant, uint64_t n,
				   uint32_t hop, enum cut how,
				   const struct cut_ops by)
{
	struct harness *harness = variant->state;
	struct patience patience = { 0 };
	uint64_t done = 0;

	while (done < n) {
		if (push_lot(variant, harness, hop, how, by)) {
			done += hop;
			patience = (struct patience){ 0 };
		} else if (gives_up(harness, &patience)) {
			return 0;
		}
	}
	return done;
}

static ALWAYS_INLINE uint64_t pop(struct variant *variant, uint64_t n,
				  uint32_t hop, const struct cut_ops by)
{
	struct harness *harness = variant->state;
	struct patience patience = { 0 };
	word words[MAX_HOP];
	uint64_t done = 0;

	while (done < n) {
		const uint32_t got = hop_get(harness->hops[0], words, hop);

		if (got > 0) {
			by.give(harness->pool, 1, words, got);
			done += got;
			patience = (struct patience){ 0 };
			continue;
		}
		harness->n_idle++;
		if (gives_up(harness, &patience))
			break;
	}
	return 0;
}

static ALWAYS_INLINE uint64_t push_then_pop(struct variant *variant, uint64_t n,
					    enum cut how,
					    const struct cut_ops by)
{
	struct harness *harness = variant->state;
	uint64_t done = 0;

	while (done < n) {
		uint32_t n_in = 0;
		word at;

		while (n_in < RING && push_lot(variant, harness, 1, how, by))
			n_in++;
		if (n_in == 0)
			return 0;
		while (hop_get(harness->hops[0], &at, 1) == 1)
			by.give(harness->pool, 0, &at, 1);
		done += n_in;
	}
	return done;
}

/* How it is cut is a constant in each of the loops. */
static ALWAYS_INLINE uint64_t through_how(struct variant *variant,
					  uint32_t thread, uint64_t n,
					  enum cut how, const struct cut_ops by)
{
	const uint32_t hop = (uint32_t)variant->param[P_HOP];

	if (variant->row->n_threads == 1)
		return push_then_pop(variant, n, how, by);
	n = n_of_run(n, hop);
	if (thread != 0)
		return hop == 1 ? pop(variant, n, 1, by) :
				  pop(variant, n, MAX_HOP, by);
	return hop == 1 ? push(variant, n, 1, how, by) :
			  push(variant, n, MAX_HOP, how, by);
}

static ALWAYS_INLINE uint64_t through(struct variant *variant, uint32_t thread,
				      uint64_t n, const struct cut_ops by)
{
	switch ((enum cut)variant->param[P_CUT]) {
	case CUT_ALLOC:
		return through_how(variant, thread, n, CUT_ALLOC, by);
	case CUT_COMMIT:
		return through_how(variant, thread, n, CUT_COMMIT, by);
	default:
		return through_how(variant, thread, n, CUT_PROBE, by);
	}
}

RUN(through_ours, through, OUR_FRAGS)
RUN(through_kernel, through, KERNEL_FRAGS)
RUN(through_heap, through, HEAP_FRAGS)
RUN_DPDK(through_dpdk, through, DPDK_FRAGS)

static void count_through(struct variant *variant, struct counts *counts)
{
	const struct harness *harness = variant->state;

	count_per_1000(counts, "push_full_per_1000", harness->n_full, variant);
	count_per_1000(counts, "pop_empty_per_1000", harness->n_idle, variant);
	if (variant->param[P_HOW] > 1)
		count_add(counts, "unaligned", (double)harness->n_empty);
}

static void through_rows(struct bench *bench, uint32_t n_threads, uint32_t hop,
			 enum cut how)
{
	static const struct contestant list[] = {
		{ "frag cache", A_FRAGS, through_ours, .how = 1 },
		{ "frag cache, aligned", A_FRAGS, through_ours, .how = 64 },
		{ "model of page_frag_cache", A_PAGE_FRAG, through_kernel,
		  .how = 1 },
		{ "model of page_frag_cache, aligned", A_PAGE_FRAG,
		  through_kernel, .how = 64 },
		/* The others know no more than to allocate. */
		{ "", A_MEMPOOL, through_dpdk, C_ALL, .how = 64 },
		{ "malloc", A_MALLOC, through_heap, .how = 1 },
		{ "malloc, aligned", A_MALLOC, through_heap, .how = 64 },
	};
	static const char *const hows[] = { "alloc", "prepare+commit",
					    "probe+prepare+commit" };
	static const uint32_t sizes[] = { 12, 75, 256, 1024, 2048 };

	for (uint32_t i = 0; i < N_OF(sizes); i++) {
		struct row row = { .unit = "frag",
				   .n_threads = n_threads,
				   .x_name = "bytes of a frag",
				   .x = sizes[i] };
		const struct variant like = {
			.count = count_through,
			.wish = { .n_hops = 1, .hop_words = RING },
			.param = { sizes[i], how, hop },
		};

		NAME(row.plot, "threads=%u hop=%u %s", n_threads, hop,
		     hows[how]);
		NAME(row.name, "len=%u %s", sizes[i], row.plot);
		add_cut_ops(bench, &row, &like, 8, list,
			    how == CUT_ALLOC ? N_OF(list) : 4);
		bench_row(bench, &row);
	}
}

void rows_b09(struct bench *bench)
{
	for (uint32_t n_threads = 2; n_threads > 0; n_threads--)
		for (uint32_t how = CUT_ALLOC; how <= CUT_PROBE; how++)
			through_rows(bench, n_threads, 1, (enum cut)how);
	through_rows(bench, 2, MAX_HOP, CUT_ALLOC);
}

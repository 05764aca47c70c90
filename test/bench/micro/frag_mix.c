/* SPDX-License-Identifier: BSD-3-Clause */
/* Frags of mixed sizes, B10, and those that nobody wanted, B11. */
#include <stdio.h>

#include "cut_ops.h"
#include "workloads.h"

enum { P_SIZE }; /* of variant.param */

enum { RING = 512 };

/*
 * B10: frags of mixed sizes that live for different times. Sizes are those of
 * the simple Internet mix (64 bytes 7 times, 576 4 times, 1500 once); a frag is
 * freed after 0 to 4096 others were cut, evenly spread. With two threads one
 * cuts and sends, the other one holds and frees: no two of its frees in a row
 * are of the same block.
 *
 * pinned_by_live: bytes that nobody else can use, by bytes of frags alive.
 */
enum {
	STEPS = 65536, /* of the schedule; it goes round */
	MAX_DELAY = 4096,
	ALIGN = 64,
	BURST = 32,
};

/* The same for all variants: what is cut at a step, and what freed after it. */
struct mix {
	uint16_t sizes[STEPS], delays[STEPS];
	uint32_t first[STEPS + 1]; /* in ends, by step */
	uint16_t ends[STEPS];      /* what ends there was cut at that step */
	uint16_t n_filled[STEPS];
	alignas(64) uint32_t at_cut; /* the next step */
	alignas(64) uint32_t at_hold;
	word frags[STEPS];
};

static struct mix *mix_of(struct harness *harness)
{
	return (struct mix *)(void *)harness->extra;
}

static int begin_mix(struct variant *variant, struct mr_reason *why)
{
	struct mix *m = mix_of(variant->state);
	uint64_t state = RANDOM_SEED;

	(void)why;
	for (uint32_t i = 0; i < STEPS; i++) {
		const uint32_t of12 = random_u32(&state) % 12;

		m->frags[i] = MR_ADDR_NONE;
		m->sizes[i] = of12 < 7 ? 64 : of12 < 11 ? 576 : 1500;
		m->delays[i] = (uint16_t)(random_u32(&state) % (MAX_DELAY + 1));
		m->first[(i + m->delays[i]) % STEPS + 1]++;
	}
	for (uint32_t i = 0; i < STEPS; i++)
		m->first[i + 1] += m->first[i];
	for (uint32_t i = 0; i < STEPS; i++) {
		const uint32_t end = (i + m->delays[i]) % STEPS;

		m->ends[m->first[end] + m->n_filled[end]++] = (uint16_t)i;
	}
	return 0;
}

/* Keep the frag of this step, and free those whose time is over. */
static ALWAYS_INLINE void hold(struct harness *harness, uint32_t thread,
			       word frag, give_fn give)
{
	struct mix *m = mix_of(harness);
	const uint32_t step = m->at_hold;
	word over[BURST];
	uint32_t n = 0;

	m->frags[step] = frag;
	for (uint32_t i = m->first[step]; i < m->first[step + 1]; i++) {
		word *at = &m->frags[m->ends[i]];

		if (*at == MR_ADDR_NONE) /* in the first round only */
			continue;
		over[n++] = *at;
		*at = MR_ADDR_NONE;
		if (n == BURST) {
			give(harness->pool, thread, over, n);
			n = 0;
		}
	}
	give(harness->pool, thread, over, n);
	m->at_hold = (step + 1) % STEPS;
}

static ALWAYS_INLINE bool cut_next(struct harness *harness, word *ret_frag,
				   const struct cut_ops by)
{
	struct mix *m = mix_of(harness);

	if (by.cut(harness->pool, ret_frag, 1, m->sizes[m->at_cut], ALIGN,
		   CUT_ALLOC) != 1)
		return false;
	m->at_cut = (m->at_cut + 1) % STEPS;
	return true;
}

static ALWAYS_INLINE uint64_t cut_and_send(struct harness *harness, uint64_t n,
					   const struct cut_ops by)
{
	struct patience patience = { 0 };
	word words[BURST];

	for (uint64_t done = 0; done < n; done += BURST) {
		for (uint32_t i = 0; i < BURST; i++)
			while (!cut_next(harness, &words[i], by))
				if (harness_is_dead(harness, &patience))
					return 0;
		while (!hop_put(harness->hops[0], words, BURST))
			if (harness_is_dead(harness, &patience))
				return 0;
		patience = (struct patience){ 0 };
	}
	return n;
}

static ALWAYS_INLINE uint64_t get_and_hold(struct harness *harness, uint64_t n,
					   const struct cut_ops by)
{
	struct patience patience = { 0 };
	word words[BURST];

	for (uint64_t done = 0; done < n;) {
		const uint32_t got = hop_get(harness->hops[0], words, BURST);

		if (got == 0 && harness_is_dead(harness, &patience))
			break;
		if (got > 0)
			patience = (struct patience){ 0 };
		for (uint32_t i = 0; i < got; i++)
			hold(harness, 1, words[i], by.give);
		done += got;
	}
	return 0;
}

static ALWAYS_INLINE uint64_t mixed(struct variant *variant, uint32_t thread,
				    uint64_t n, const struct cut_ops by)
{
	struct harness *harness = variant->state;

	if (harness->n_threads == 2) {
		n = n_of_run(n, BURST);
		return thread == 0 ? cut_and_send(harness, n, by) :
				     get_and_hold(harness, n, by);
	}
	for (uint64_t i = 0; i < n; i++) {
		word frag;

		if (!cut_next(harness, &frag, by))
			return 0;
		hold(harness, 0, frag, by.give);
	}
	return n;
}

RUN(mixed_ours, mixed, OUR_FRAGS)
RUN(mixed_kernel, mixed, KERNEL_FRAGS)
RUN(mixed_heap, mixed, HEAP_FRAGS)
RUN_DPDK(mixed_dpdk, mixed, DPDK_FRAGS)

/* Bytes that cannot be used for anything else; 0: nobody can say. At rest. */
static uint64_t pinned(const struct variant *variant, uint64_t n)
{
	const struct harness *harness = variant->state;
	struct mr_pool_stats s = { .size = sizeof(s) };

	switch (variant->alloc) {
	case A_FRAGS:
		mr_pool_stats(((struct our_pool *)harness->pool)->pools[0], &s);
		return s.n_in_flight * s.page_bytes;
	case A_PAGE_FRAG:
		return kernel_frags_pinned(harness->pool);
	case A_MEMPOOL:
		return n * OBJECT_BYTES;
	default:
		return 0;
	}
}

static void count_mixed(struct variant *variant, struct counts *counts)
{
	const struct mix *m = mix_of(variant->state);
	uint64_t n_bytes = 0, n = 0, n_pinned;

	for (uint32_t i = 0; i < STEPS; i++) {
		if (m->frags[i] == MR_ADDR_NONE)
			continue;
		n_bytes += m->sizes[i];
		n++;
	}
	n_pinned = pinned(variant, n);
	if (n_bytes == 0 || n_pinned == 0)
		return;
	count_add(counts, "live_bytes", (double)n_bytes);
	count_add(counts, "pinned_by_live", (double)n_pinned / (double)n_bytes);
}

static void end_mix(struct variant *variant)
{
	struct harness *harness = variant->state;
	struct mix *m = mix_of(harness);

	for (uint32_t i = 0; i < STEPS && variant->alloc == A_FRAGS; i++)
		if (m->frags[i] != MR_ADDR_NONE)
			ours_give(harness->pool, 0, &m->frags[i], 1);
}

void rows_b10(struct bench *bench)
{
	static const struct contestant list[] = {
		{ "frag cache", A_FRAGS, mixed_ours },
		{ "model of page_frag_cache", A_PAGE_FRAG, mixed_kernel },
		{ "", A_MEMPOOL, mixed_dpdk, C_ALL },
		{ "malloc", A_MALLOC, mixed_heap },
	};

	for (uint32_t n = 1; n <= 2; n++) {
		struct row row = { .unit = "frag", .n_threads = n };
		const struct variant like = { .begin = begin_mix,
					      .end = end_mix,
					      .count = count_mixed,
					      .wish = { .n_hops = 1,
							.hop_words = RING,
							.n_extra = sizeof(
								struct mix) } };

		NAME(row.name, "threads=%u", n);
		add_cut_ops(bench, &row, &like, 16, list, N_OF(list));
		bench_row(bench, &row);
	}
}

/*
 * B11: a frag that turns out not to be wanted, as when XDP drops a packet of a
 * tun device: undo the cut (abort), undo the reference only (abort_ref), or
 * free it as any other.
 */
typedef bool undo_fn(void *pool, word at, uint32_t size);

static ALWAYS_INLINE bool our_abort(void *pool, word at, uint32_t size)
{
	struct our_pool *our = pool;

	return mr_frag_cache_abort(our->frags, at, size) >= 0;
}

static ALWAYS_INLINE bool our_abort_ref(void *pool, word at, uint32_t size)
{
	struct our_pool *our = pool;

	return mr_frag_cache_abort_ref(our->frags, at, size) >= 0;
}

static ALWAYS_INLINE bool our_free(void *pool, word at, uint32_t size)
{
	(void)size;
	ours_give(pool, 0, &at, 1);
	return true;
}

static ALWAYS_INLINE bool kernel_abort(void *pool, word at, uint32_t size)
{
	kernel_frag_abort(pool, (void *)(uintptr_t)at, size);
	return true;
}

static ALWAYS_INLINE bool kernel_free(void *pool, word at, uint32_t size)
{
	(void)size;
	kernel_give(pool, 0, &at, 1);
	return true;
}

static ALWAYS_INLINE uint64_t undone(struct variant *variant, uint32_t thread,
				     uint64_t n, cut_fn cut, undo_fn undo)
{
	void *pool = ((struct harness *)variant->state)->pool;
	const uint32_t size = (uint32_t)variant->param[P_SIZE];
	word frag;

	(void)thread;
	for (uint64_t i = 0; i < n; i++)
		if (cut(pool, &frag, 1, size, ALIGN, CUT_ALLOC) != 1 ||
		    !undo(pool, frag, size))
			return 0;
	return n;
}

RUN(undone_abort, undone, ours_cut, our_abort)
RUN(undone_abort_ref, undone, ours_cut, our_abort_ref)
RUN(undone_free, undone, ours_cut, our_free)
RUN(undone_kernel_abort, undone, kernel_cut, kernel_abort)
RUN(undone_kernel_free, undone, kernel_cut, kernel_free)

void rows_b11(struct bench *bench)
{
	static const struct contestant list[] = {
		{ "alloc + abort", A_FRAGS, undone_abort },
		{ "alloc + abort_ref", A_FRAGS, undone_abort_ref },
		{ "alloc + free", A_FRAGS, undone_free },
		{ "page_frag_cache alloc + abort", A_PAGE_FRAG,
		  undone_kernel_abort },
		{ "page_frag_cache alloc + free", A_PAGE_FRAG,
		  undone_kernel_free },
	};
	static const uint32_t sizes[] = { 64, 256, 1500, 2048 };

	for (uint32_t s = 0; s < N_OF(sizes); s++) {
		struct row row = { .unit = "frag" };

		NAME(row.name, "len=%u", sizes[s]);
		add_cut_ops(bench, &row,
			    &(struct variant){ .param = { sizes[s] } }, 8, list,
			    N_OF(list));
		bench_row(bench, &row);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* B01, B07, B10 and B11: rows whose loops no other workload has. */
#include <stdio.h>

#include "alloc.h"

/*
 * B01: the time of basic operations of this machine. Divide other figures by
 * these to compare them with published ones.
 */
static uint64_t run_loop(struct variant *variant, uint32_t thread, uint64_t n)
{
	(void)variant;
	(void)thread;
	for (uint64_t i = 0; i < n; i++)
		keep(NULL);
	return n;
}

static uint64_t run_atomic(struct variant *variant, uint32_t thread, uint64_t n)
{
	alignas(64) uint32_t number = 0;

	(void)variant;
	(void)thread;
	for (uint64_t i = 0; i < n; i++)
		__atomic_add_fetch(&number, 1, __ATOMIC_ACQ_REL);
	keep(&number);
	return n;
}

static uint64_t run_memcpy(struct variant *variant, uint32_t thread, uint64_t n)
{
	alignas(64) char from[256] = "x", to[256];

	(void)variant;
	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		keep(from);
		memcpy(to, from, sizeof(to));
		keep(to);
	}
	return n;
}

void rows_b01(struct bench *bench)
{
	static const struct contestant list[] = {
		{ "for_loop", A_NOTHING, run_loop },
		{ "atomic_inc, private", A_NOTHING, run_atomic },
		{ "memcpy of 256 bytes", A_NOTHING, run_memcpy },
	};
	struct row row = { .name = "1 core", .unit = "step" };

	bench_add_all(bench, &row, &(struct variant){ 0 }, list, N_OF(list));
	bench_row(bench, &row);
}

/*
 * B07: the kernel's svc_alloc_arg() (SUNRPC): an array of 259 slots (1 MiB of
 * payload in 4 KiB pages, and 3), of which a random number is full; the holes
 * are filled by single pages, from a list, or by one call that finds the holes.
 * An operation is one such call.
 */
enum { SLOTS = 259 };

struct rpc {
	uint64_t seed;
	word slots[SLOTS];
};

static int begin_rpc(struct variant *variant, struct mr_reason *why)
{
	struct rpc *rpc = extra_of(variant);

	(void)why;
	rpc->seed = 1;
	for (uint32_t i = 0; i < SLOTS; i++)
		rpc->slots[i] = MR_ADDR_NONE;
	return 0;
}

static void end_rpc(struct variant *variant)
{
	struct harness *harness = variant->state;
	struct rpc *rpc = extra_of(variant);

	for (uint32_t i = 0; i < SLOTS && variant->side == SIDE_OURS; i++)
		if (rpc->slots[i] != MR_ADDR_NONE)
			ours_give(harness->pool, 0, &rpc->slots[i], 1);
}

/* Spread the emptied slots over the array: i times an odd step. */
static inline uint32_t hole(uint32_t i)
{
	return i * 100 % SLOTS; /* coprime: 259 = 7 * 37 */
}

/* Empty a random number of slots; the same series for each variant. */
static ALWAYS_INLINE void empty_slots(struct rpc *rpc, void *pool, give_fn give)
{
	word words[SLOTS];
	uint32_t n;

	rpc->seed = rpc->seed * 6364136223846793005u + 1442695040888963407u;
	n = SLOTS - (uint32_t)((rpc->seed >> 33) % (SLOTS + 1));
	for (uint32_t i = 0; i < n; i++) {
		words[i] = rpc->slots[hole(i)];
		rpc->slots[hole(i)] = MR_ADDR_NONE;
	}
	give(pool, 0, words, n);
}

static ALWAYS_INLINE uint64_t fill_slots(struct variant *variant,
					 uint32_t thread, uint64_t n,
					 const struct ops ops)
{
	void *pool = ((struct harness *)variant->state)->pool;
	struct rpc *rpc = extra_of(variant);
	word words[SLOTS];

	for (uint64_t k = 0; k < n; k++) {
		uint32_t n_holes = 0;

		for (uint32_t i = 0; i < SLOTS; i++)
			n_holes += rpc->slots[i] == MR_ADDR_NONE;
		/* For DPDK's ring, a call for 0 objects fails. */
		if (n_holes > 0 && !ops.take(pool, thread, words, n_holes))
			return 0;
		for (uint32_t i = 0; i < SLOTS; i++)
			if (rpc->slots[i] == MR_ADDR_NONE)
				rpc->slots[i] = words[--n_holes];
		empty_slots(rpc, pool, ops.give);
	}
	return n;
}

#define PAGE_BY_PAGE ((struct ops){ page_take, pages_give, NULL, NULL })

RUN(fill_array, fill_slots, PAGES)
RUN(fill_list, fill_slots, PAGES_LIST)
RUN(fill_single, fill_slots, PAGE_BY_PAGE)
RUN(fill_cache, fill_slots, OURS)
RUN(fill_buddy, fill_slots, BUDDY)
RUN(fill_buddy_single, fill_slots, BUDDY_SINGLE)
RUN_DPDK(fill_dpdk, fill_slots, DPDK)

void rows_b07(struct bench *bench)
{
	static const struct contestant list[] = {
		{ "array", A_OURS, fill_array },
		{ "list", A_OURS, fill_list },
		{ "single", A_OURS, fill_single },
		{ "cache", A_OURS, fill_cache },
		{ "", A_MEMPOOL, fill_dpdk, C_ALL },
		{ "model of buddy, single", A_PAGE_POOL, fill_buddy_single },
		{ "model of buddy, array", A_PAGE_POOL, fill_buddy },
	};
	struct row row = { .name = "259 slots", .unit = "call" };

	bench_add_all(
		bench, &row,
		&(struct variant){ .begin = begin_rpc,
				   .end = end_rpc,
				   .count = harness_count,
				   .wish = { .n_objects = 4096,
					     .n_extra = sizeof(struct rpc) } },
		list, N_OF(list));
	bench_row(bench, &row);
}

/*
 * B10: frags of mixed sizes and lifetimes. Sizes are those of the simple
 * Internet mix (64 bytes 7 times, 576 4 times, 1500 once). A frag is freed
 * after 0 to 4096 others were cut, evenly distributed. With two threads, one
 * cuts and sends, the other holds and frees: consecutive frees are of different
 * blocks.
 *
 * pinned_by_live: bytes that nobody else can use, per byte of a live frag.
 */
enum {
	STEPS = 65536, /* of the schedule, which repeats */
	MAX_DELAY = 4096,
	ALIGN = 64,
	BURST = 32,
};

/* The schedule, equal for all variants: what to cut and what to free. */
struct mix {
	uint16_t sizes[STEPS];
	uint32_t first[STEPS + 1];   /* index into ends, by step */
	uint16_t ends[STEPS];        /* the frag cut at this step ends */
	alignas(64) uint32_t at_cut; /* the next step */
	alignas(64) uint32_t at_hold;
	word frags[STEPS];
};

static int begin_mix(struct variant *variant, struct mr_reason *why)
{
	struct mix *m = extra_of(variant);
	uint16_t ends_at[STEPS];
	uint64_t seed = 88172645;

	(void)why;
	for (uint32_t i = 0; i < STEPS; i++) {
		const uint64_t r = random_u64(&seed) >> 32;
		const uint64_t delay =
			(random_u64(&seed) >> 32) % (MAX_DELAY + 1);

		m->frags[i] = MR_ADDR_NONE;
		m->sizes[i] = r % 12 < 7 ? 64 : r % 12 < 11 ? 576 : 1500;
		ends_at[i] = (uint16_t)((i + delay) % STEPS);
		m->first[ends_at[i]]++;
	}
	/*
	 * Where each step's part of ends[] ends; filling it moves this to its
	 * begin.
	 */
	for (uint32_t i = 1; i <= STEPS; i++)
		m->first[i] += m->first[i - 1];
	for (uint32_t i = STEPS; i-- > 0;)
		m->ends[--m->first[ends_at[i]]] = (uint16_t)i;
	return 0;
}

/* Keep the frag of this step, and free those whose time has come. */
static ALWAYS_INLINE void hold(struct variant *variant, uint32_t thread,
			       word frag, give_fn give)
{
	void *pool = ((struct harness *)variant->state)->pool;
	struct mix *m = extra_of(variant);
	const uint32_t step = m->at_hold;
	word over[BURST];
	uint32_t n = 0;

	m->frags[step] = frag;
	for (uint32_t i = m->first[step]; i < m->first[step + 1]; i++) {
		word *at = &m->frags[m->ends[i]];

		if (*at == MR_ADDR_NONE) /* only in the first round */
			continue;
		over[n++] = *at;
		*at = MR_ADDR_NONE;
		if (n == BURST) {
			give(pool, thread, over, n);
			n = 0;
		}
	}
	give(pool, thread, over, n);
	m->at_hold = (step + 1) % STEPS;
}

/* Here and in B11, take() allocates one frag of n bytes. */
static ALWAYS_INLINE bool cut_next(struct variant *variant, word *ret_frag,
				   const struct ops ops)
{
	void *pool = ((struct harness *)variant->state)->pool;
	struct mix *m = extra_of(variant);

	if (!ops.take(pool, 0, ret_frag, m->sizes[m->at_cut]))
		return false;
	m->at_cut = (m->at_cut + 1) % STEPS;
	return true;
}

static ALWAYS_INLINE uint64_t cut_and_send(struct variant *variant, uint64_t n,
					   const struct ops ops)
{
	struct harness *harness = variant->state;
	struct patience patience = { 0 };
	word words[BURST];

	for (uint64_t done = 0; done < n; done += BURST) {
		for (uint32_t i = 0; i < BURST; i++)
			while (!cut_next(variant, &words[i], ops))
				if (harness_is_dead(harness, &patience))
					return 0;
		while (!hop_put(harness->hops[0], words, BURST))
			if (harness_is_dead(harness, &patience))
				return 0;
		patience = (struct patience){ 0 };
	}
	return n;
}

static ALWAYS_INLINE uint64_t get_and_hold(struct variant *variant, uint64_t n,
					   give_fn give)
{
	struct harness *harness = variant->state;
	struct patience patience = { 0 };
	word words[BURST];

	for (uint64_t done = 0; done < n;) {
		const uint32_t got = hop_get(harness->hops[0], words, BURST);

		if (got == 0 && harness_is_dead(harness, &patience))
			break;
		if (got > 0)
			patience = (struct patience){ 0 };
		for (uint32_t i = 0; i < got; i++)
			hold(variant, 1, words[i], give);
		done += got;
	}
	return 0;
}

static ALWAYS_INLINE uint64_t mixed(struct variant *variant, uint32_t thread,
				    uint64_t n, const struct ops ops)
{
	if (variant->row->n_threads == 2) {
		n = n_of_run(n, BURST);
		return thread == 0 ? cut_and_send(variant, n, ops) :
				     get_and_hold(variant, n, ops.give);
	}
	for (uint64_t i = 0; i < n; i++) {
		word frag;

		if (!cut_next(variant, &frag, ops))
			return 0;
		hold(variant, 0, frag, ops.give);
	}
	return n;
}

TAKE(our_cut, mr_frag_cache_alloc(our_pool(pool)->frags, n, ALIGN, addrs) == 0)
TAKE(kernel_cut, (*words = (uintptr_t)kernel_frag_cut(pool, n, ALIGN)) != 0)
TAKE(aligned_cut,
     (*objects = aligned_alloc(ALIGN, (n + ALIGN - 1) & -ALIGN)) != NULL)
#ifdef BENCH_DPDK
TAKE(dpdk_cut, dpdk_take(pool, thread, words, 1))
#endif

#define MIXED(take, give) ((struct ops){ take, give, NULL, NULL })

RUN(mixed_ours, mixed, MIXED(our_cut, ours_give))
RUN(mixed_kernel, mixed, MIXED(kernel_cut, kernel_give))
RUN(mixed_heap, mixed, MIXED(aligned_cut, heap_give))
RUN_DPDK(mixed_dpdk, mixed, MIXED(dpdk_cut, dpdk_give))

/* Bytes that have no other use; 0: unknown. Call it while no thread runs. */
static uint64_t pinned(const struct variant *variant, uint64_t n)
{
	void *pool = ((struct harness *)variant->state)->pool;
	struct mr_pool_stats s = { .size = sizeof(s) };

	switch (variant->alloc) {
	case A_FRAGS:
		mr_pool_stats(our_pool(pool)->pools[0], &s);
		return s.n_in_flight * s.page_bytes;
	case A_PAGE_FRAG:
		return kernel_frags_pinned(pool);
	case A_MEMPOOL:
		return n * OBJECT_BYTES;
	default:
		return 0;
	}
}

static void count_mixed(struct variant *variant, struct counts *counts)
{
	const struct mix *m = extra_of(variant);
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
	void *pool = ((struct harness *)variant->state)->pool;
	struct mix *m = extra_of(variant);

	for (uint32_t i = 0; i < STEPS; i++) {
		if (m->frags[i] == MR_ADDR_NONE)
			continue;
		if (variant->alloc == A_FRAGS)
			ours_give(pool, 0, &m->frags[i], 1);
		else if (variant->alloc == A_MALLOC)
			heap_give(pool, 0, &m->frags[i], 1);
	}
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
					      .wish = { .frags_mib = 16,
							.n_hops = 1,
							.hop_words = 512,
							.n_extra = sizeof(
								struct mix) } };

		NAME(row.name, "threads=%u", n);
		bench_add_all(bench, &row, &like, list, N_OF(list));
		bench_row(bench, &row);
	}
}

/*
 * B11: an allocation that is undone, as when XDP drops a packet of a tun
 * device: undo the cut (abort), undo the reference only (abort_ref), or free
 * the frag as usual.
 */
enum { P_SIZE }; /* of variant.param */

/* undo: its words are one frag of n bytes. */
static ALWAYS_INLINE uint64_t undone(struct variant *variant, uint32_t thread,
				     uint64_t n, take_fn cut, take_fn undo)
{
	void *pool = ((struct harness *)variant->state)->pool;
	const uint32_t size = (uint32_t)variant->param[P_SIZE];
	word frag;

	for (uint64_t i = 0; i < n; i++)
		if (!cut(pool, thread, &frag, size) ||
		    !undo(pool, thread, &frag, size))
			return 0;
	return n;
}

TAKE(our_abort, mr_frag_cache_abort(our_pool(pool)->frags, *words, n) >= 0)
TAKE(our_abort_ref,
     mr_frag_cache_abort_ref(our_pool(pool)->frags, *words, n) >= 0)
TAKE(our_free, (ours_give(pool, thread, words, 1), true))
TAKE(kernel_abort, kernel_frag_abort(pool, *objects, n))
TAKE(kernel_free, (kernel_give(pool, thread, words, 1), true))

RUN(undone_abort, undone, our_cut, our_abort)
RUN(undone_abort_ref, undone, our_cut, our_abort_ref)
RUN(undone_free, undone, our_cut, our_free)
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
		bench_add_all(bench, &row,
			      &(struct variant){ .wish = { .frags_mib = 8 },
						 .param = { sizes[s] } },
			      list, N_OF(list));
		bench_row(bench, &row);
	}
}

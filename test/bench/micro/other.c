/* SPDX-License-Identifier: BSD-3-Clause */
/* B01 and B07: rows whose work is like no other's. */
#include <stdio.h>

#include "alloc.h"

/*
 * B01: what this machine's basic moves cost. Other figures are compared with
 * published ones only as ratios to these.
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
 * B07: svc_alloc_arg() of the kernel's SUNRPC: an array of 259 slots (1 MiB of
 * payload in 4 KiB pages, and 3) of which a random number is filled already;
 * the holes are filled, by single pages, from a list, or by one call that looks
 * for the holes itself. One operation is one such call.
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

/* Which slots are emptied is spread over the array: i by an odd step. */
static inline uint32_t hole(uint32_t i)
{
	return i * 100 % SLOTS; /* 259 = 7 * 37, and 100 has neither */
}

/* Empty all but 0 to 259 slots; the same series for each variant. */
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
		/* A ring of DPDK's calls 0 objects a failure. */
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

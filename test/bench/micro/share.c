/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that share one pool: B16 and B19. */
#include <stdio.h>

#include "alloc.h"
#include "latency.h"

enum { BURST = 32, RING = 1024 };

/*
 * B16: each thread allocates bursts of 32 from one pool and frees them; but of
 * a hundred bursts, some go to the next thread, which frees them:
 *
 *       thread 0: alloc -+-> free        thread 1: alloc -+-> free
 *                        +-- ring --> free                +-- ring --> free (0)
 */
enum { P_PERCENT }; /* of variant.param */

/* The state of a thread, beside the ring from the previous thread. */
struct part {
	alignas(64) uint64_t n_own; /* bursts for a full ring, freed here */
	uint32_t is_done;           /* it will send no more */
	uint32_t percent_due;
};

static struct part *part_of(struct harness *harness, uint32_t thread)
{
	return (struct part *)(void *)harness->extra + thread;
}

/* Free what came from the previous thread; return whether there was any. */
static ALWAYS_INLINE bool drain_ring(struct harness *harness, uint32_t thread,
				     const struct ops ops)
{
	word words[BURST];
	const uint32_t n = hop_get(harness->hops[thread], words, BURST);

	ops.give(harness->pool, thread, words, n);
	return n > 0;
}

/* Drain until the previous thread is done and its ring is empty. */
static ALWAYS_INLINE void drain_all(struct harness *harness, uint32_t thread,
				    const struct ops ops)
{
	struct part *before = part_of(harness, (thread + harness->n_threads -
						1) % harness->n_threads);
	struct patience patience = { 0 };

	/* After a signal, the rest is freed with the harness. */
	while (!bench_is_ending()) {
		const bool is_last = __atomic_load_n(&before->is_done,
						     __ATOMIC_ACQUIRE) != 0;

		if (drain_ring(harness, thread, ops))
			patience = (struct patience){ 0 };
		else if (is_last || patience_ends(&patience))
			break;
	}
	/* For the next run: no thread reads it any more in this one. */
	__atomic_store_n(&before->is_done, 0, __ATOMIC_RELEASE);
	idle(harness, thread, ops);
}

static ALWAYS_INLINE uint64_t mesh(struct variant *variant, uint32_t thread,
				   uint64_t n, const struct ops ops)
{
	struct harness *harness = variant->state;
	struct part *part = part_of(harness, thread);
	struct hop *out = harness->hops[(thread + 1) % harness->n_threads];
	struct patience patience = { 0 };
	word words[BURST];
	uint64_t done = 0, start = 0;

	n = n_of_run(n, BURST);
	while (done < n && !bench_is_ending() &&
	       (done % 4096 != 0 || !is_too_long(&start))) {
		const bool had = drain_ring(harness, thread, ops);

		if (!ops.take(harness->pool, thread, words, BURST)) {
			if (!had && patience_ends(&patience))
				break;
			continue;
		}
		keep(words);
		part->percent_due += (uint32_t)variant->param[P_PERCENT];
		if (part->percent_due < 100) {
			ops.give(harness->pool, thread, words, BURST);
		} else {
			part->percent_due -= 100;
			if (!hop_put(out, words, BURST)) {
				part->n_own++;
				ops.give(harness->pool, thread, words, BURST);
			}
		}
		done += BURST;
	}
	__atomic_store_n(&part->is_done, 1, __ATOMIC_RELEASE);
	drain_all(harness, thread, ops);
	return done;
}

RUN(mesh_ours, mesh, OURS)
RUN(mesh_heap, mesh, HEAP)
RUN_DPDK(mesh_dpdk, mesh, DPDK)

static void count_mesh(struct variant *variant, struct counts *counts)
{
	struct harness *harness = variant->state;
	uint64_t n_own = 0;

	for (uint32_t i = 0; i < harness->n_threads; i++)
		n_own += part_of(harness, i)->n_own;
	count_per_1000(counts, "ring_full_per_1000", BURST * n_own, variant);
	harness_count(variant, counts);
}

void rows_b16(struct bench *bench)
{
	static const struct contestant list[] = {
		POOLS(mesh_ours, mesh_dpdk),
		{ "malloc", A_MALLOC, mesh_heap },
	};
	static const uint32_t percents[] = { 0, 10, 50, 100 };

	for (uint32_t i = 0; i < 3 * N_OF(percents); i++) {
		const uint32_t n = 2u << i / N_OF(percents);
		const uint32_t percent = percents[i % N_OF(percents)];
		struct row row = { .unit = "page",
				   .n_threads = n,
				   .is_per_thread = true };
		const struct variant like = {
			.count = count_mesh,
			.wish = { .n_objects = 32768,
				  .n_hops = n,
				  .hop_words = RING,
				  .n_extra = n * sizeof(struct part) },
			.param = { percent },
		};

		NAME(row.plot, "threads=%u", n);
		NAME(row.name, "%s away=%u%%", row.plot, percent);
		bench_add_all(bench, &row, &like, list, N_OF(list));
		bench_row(bench, &row);
	}
}

/*
 * B19: more threads than cores, so some are stopped at bad moments. Each
 * allocates 1024 objects of the shared pool in bursts of 32, then frees them in
 * bursts of 32: more than a cache holds, so all threads use the shared part. No
 * thread may have to wait there for a stopped one.
 *
 * The times of single bursts are of a run of its own, with a clock around each.
 */
enum { P_IS_TIMED }; /* of variant.param */

enum { HELD = 1024 };

static struct latency *latency_of(struct harness *harness, uint32_t thread)
{
	return (struct latency *)(void *)harness->extra + thread;
}

static ALWAYS_INLINE bool crowd_round(struct harness *harness, uint32_t thread,
				      bool is_dpdk, struct latency *latency,
				      const struct ops ops)
{
	word words[HELD];
	uint32_t n;

	for (n = 0; n < HELD && !bench_is_ending(); n += BURST) {
		const uint64_t start = latency != NULL ? latency_now() : 0;

		if (!ops.take(harness->pool, thread, words + n, BURST))
			break;
		if (latency != NULL)
			latency_add(latency, latency_now() - start);
	}
	keep(words);
	/*
	 * At a signal, DPDK's objects need not come back: rings may take long.
	 */
	if (is_dpdk && bench_is_ending())
		return true;
	for (uint32_t i = 0; i < n; i += BURST) {
		const uint64_t start = latency != NULL ? latency_now() : 0;

		ops.give(harness->pool, thread, words + i, BURST);
		if (latency != NULL)
			latency_add(latency, latency_now() - start);
	}
	return n == HELD;
}

static ALWAYS_INLINE uint64_t crowd(struct variant *variant, uint32_t thread,
				    uint64_t n, const struct ops ops)
{
	struct harness *harness = variant->state;
	struct latency *latency = latency_of(harness, thread);
	const bool is_dpdk = variant->side == SIDE_DPDK;
	uint64_t done, start = 0;

	n = n_of_run(n, HELD);
	for (done = 0; done < n && !bench_is_ending() && !is_too_long(&start);
	     done += HELD)
		if (variant->param[P_IS_TIMED] != 0 ?
			    !crowd_round(harness, thread, is_dpdk, latency,
					 ops) :
			    !crowd_round(harness, thread, is_dpdk, NULL, ops))
			return 0;
	return done;
}

RUN(crowd_ours, crowd, OURS)
RUN_DPDK(crowd_dpdk, crowd, DPDK)

static void count_crowd(struct variant *variant, struct counts *counts)
{
	struct harness *harness = variant->state;

	variant->param[P_IS_TIMED] = 1;
	bench_run_again(variant, 4000000);
	variant->param[P_IS_TIMED] = 0;
	latency_count(latency_of(harness, 0), harness->n_threads, counts);
	harness_count(variant, counts);
}

/* Fewer threads than cores, as many, and more. */
void rows_b19(struct bench *bench)
{
	static const struct contestant list[] = { POOLS(crowd_ours,
							crowd_dpdk) };
	const uint32_t n_cores = bench_n_cores(bench);

	for (uint32_t n = 1; n <= 4 * n_cores && n <= MAX_THREADS;
	     n = n < n_cores ? next_n_threads(n, n_cores) : 2 * n) {
		struct row row = { .unit = "page",
				   .n_threads = n,
				   .is_per_thread = true,
				   .plot = "threads" };
		const struct variant like = {
			.count = count_crowd,
			.wish = { .n_objects = n * 4096,
				  .n_extra = n * sizeof(struct latency) },
		};

		if (n < n_cores)
			NAME(row.name, "threads=%u", n);
		else
			NAME(row.name, "threads_per_core=%u", n / n_cores);
		bench_add_all(bench, &row, &like, list, N_OF(list));
		bench_row(bench, &row);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B21: how often a cache's policy has to go to what is behind it.
 *
 * A simulation on the traces of B13 to B15: caches are lengths, objects are
 * counted and not moved. The result is in the counters; the time of a row is
 * the simulator's, and says nothing. It is the one place where DPDK 26.07,
 * which no distribution of today has, can be compared.
 */
#include <stdio.h>

#include "alloc.h"
#include "workloads.h"

enum { N_CACHES = 2, PIPE_BURST = 32, WALK_MAX = 16384 };

/* One thread's cache. What the members mean is the policy's. */
struct cache {
	uint32_t len;   /* objects in it */
	uint32_t other; /* ours, xsk_fwd: in the second array */
	uint32_t scale; /* pcp: how often the batch was doubled */
};

struct sim {
	const struct policy *policy;
	struct cache caches[N_CACHES];
	uint64_t n_objects; /* asked for or given back */
	uint64_t n_calls;   /* exchanges with the shared tier */
	uint64_t n_moved;   /* objects in them */
	uint32_t n_most;    /* objects that one cache held at most */
	uint64_t random;
	uint32_t held; /* walk: objects in the queue */
};

struct policy {
	const char *name;
	uint32_t size;
	void (*get)(struct sim *sim, struct cache *cache, uint32_t n);
	void (*put)(struct sim *sim, struct cache *cache, uint32_t n);
};

static void exchange(struct sim *sim, uint32_t n)
{
	sim->n_calls++;
	sim->n_moved += n;
}

/*
 * DPDK 22.11: one array; a get that it cannot serve fetches what is missing and
 * a full array; a put above 1.5 times the size flushes all of it.
 */
static void get_2211(struct sim *sim, struct cache *cache, uint32_t n)
{
	const uint32_t size = sim->policy->size;
	const uint32_t n_rest = n > cache->len ? n - cache->len : 0;

	if (n_rest == 0) {
		cache->len -= n;
	} else {
		exchange(sim, n_rest + size);
		cache->len = size;
	}
}

static void put_2211(struct sim *sim, struct cache *cache, uint32_t n)
{
	const uint32_t threshold = sim->policy->size * 3 / 2;

	if (n > threshold) {
		exchange(sim, n);
	} else if (cache->len + n <= threshold) {
		cache->len += n;
	} else {
		exchange(sim, cache->len);
		cache->len = n;
	}
}

/* DPDK 26.07: half of the array each way; requests above a half bounce. */
static void get_2607(struct sim *sim, struct cache *cache, uint32_t n)
{
	const uint32_t half = sim->policy->size / 2;
	const uint32_t n_rest = n > cache->len ? n - cache->len : 0;

	if (n_rest == 0) {
		cache->len -= n;
	} else if (n_rest > half) {
		exchange(sim, n_rest);
		cache->len = 0;
	} else {
		exchange(sim, half);
		cache->len = half - n_rest;
	}
}

static void put_2607(struct sim *sim, struct cache *cache, uint32_t n)
{
	const uint32_t size = sim->policy->size;

	if (cache->len + n <= size) {
		cache->len += n;
	} else if (n > size / 2) {
		exchange(sim, n);
	} else {
		exchange(sim, size / 2);
		cache->len -= size / 2;
		cache->len += n;
	}
}

/* VPP: refills only just enough; a full array gives each overflow on alone. */
static void get_vpp(struct sim *sim, struct cache *cache, uint32_t n)
{
	const uint32_t n_rest = n > cache->len ? n - cache->len : 0;
	uint32_t n_fetch = 32;

	if (n_rest == 0) {
		cache->len -= n;
		return;
	}
	while (n_fetch < n_rest)
		n_fetch *= 2;
	exchange(sim, n_fetch);
	cache->len = n_fetch - n_rest;
}

static void put_vpp(struct sim *sim, struct cache *cache, uint32_t n)
{
	const uint32_t room = sim->policy->size - cache->len;

	if (n > room)
		exchange(sim, n - room);
	cache->len += n < room ? n : room;
}

/* xsk_fwd: a slab to take from and a slab to put into, never exchanged. */
static void get_slab(struct sim *sim, struct cache *cache, uint32_t n)
{
	while (n > cache->len) {
		n -= cache->len;
		exchange(sim, sim->policy->size);
		cache->len = sim->policy->size;
	}
	cache->len -= n;
}

static void put_slab(struct sim *sim, struct cache *cache, uint32_t n)
{
	cache->other += n;
	while (cache->other >= sim->policy->size) {
		exchange(sim, sim->policy->size);
		cache->other -= sim->policy->size;
	}
}

/*
 * The kernel's per-CPU lists: batches of 64 that double while the traffic goes
 * one way, 2048 at most, and halve when it turns.
 */
static uint32_t pcp_batch(const struct cache *cache)
{
	return 64u << (cache->scale > 5 ? 5 : cache->scale);
}

static void get_pcp(struct sim *sim, struct cache *cache, uint32_t n)
{
	while (n > cache->len) {
		n -= cache->len;
		cache->len = pcp_batch(cache);
		exchange(sim, cache->len);
		if (cache->scale < 5)
			cache->scale++;
	}
	cache->len -= n;
}

static void put_pcp(struct sim *sim, struct cache *cache, uint32_t n)
{
	cache->len += n;
	if (cache->len <= sim->policy->size) {
		cache->scale /= 2;
		return;
	}
	n = pcp_batch(cache);
	n = n < cache->len ? n : cache->len;
	exchange(sim, n);
	cache->len -= n;
	if (cache->scale < 5)
		cache->scale++;
}

/* Ours: two magazines, exchanged with each other and whole with the depot. */
static void get_ours(struct sim *sim, struct cache *cache, uint32_t n)
{
	while (n > cache->len) {
		n -= cache->len;
		cache->len = cache->other;
		cache->other = 0;
		if (cache->len == 0) {
			cache->len = sim->policy->size;
			exchange(sim, cache->len);
		}
	}
	cache->len -= n;
}

static void put_ours(struct sim *sim, struct cache *cache, uint32_t n)
{
	while (cache->len + n > sim->policy->size) {
		const uint32_t other = cache->other;

		n -= sim->policy->size - cache->len;
		cache->other = sim->policy->size;
		cache->len = other;
		if (other == sim->policy->size) {
			exchange(sim, other);
			cache->len = 0;
		}
	}
	cache->len += n;
}

static const struct policy policies[] = {
	{ "magazines 2 x 64 (ours)", MR_MAGAZINE_PAGES, get_ours, put_ours },
	{ "rte_mempool 22.11 c256", 256, get_2211, put_2211 },
	{ "rte_mempool 22.11 c512", 512, get_2211, put_2211 },
	{ "rte_mempool 26.07 c256", 256, get_2607, put_2607 },
	{ "rte_mempool 26.07 c512", 512, get_2607, put_2607 },
	{ "VPP 512", 512, get_vpp, put_vpp },
	{ "xsk_fwd 4096", 4096, get_slab, put_slab },
	{ "kernel PCP, high 1024", 1024, get_pcp, put_pcp },
};

static void step(struct sim *sim, uint32_t from, int is_put, uint32_t n)
{
	struct cache *cache = &sim->caches[from];

	(is_put ? sim->policy->put : sim->policy->get)(sim, cache, n);
	sim->n_objects += n;
	if (cache->len + cache->other > sim->n_most)
		sim->n_most = cache->len + cache->other;
}

/* B13: n_keep objects are taken in bulk, then all are given back. */
static uint64_t run_keep(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct sim *sim = extra_of(variant);
	const uint32_t n_keep = (uint32_t)variant->param[0];
	uint64_t n_done = 0;

	(void)thread;
	while (n_done < n) {
		for (uint32_t i = 0; i < n_keep; i += PIPE_BURST)
			step(sim, 0, 0, PIPE_BURST);
		for (uint32_t i = 0; i < n_keep; i += PIPE_BURST)
			step(sim, 0, 1, PIPE_BURST);
		n_done += 2 * (uint64_t)n_keep;
	}
	return n_done;
}

/* B14: one thread only takes, the other only gives back. */
static uint64_t run_pipeline(struct variant *variant, uint32_t thread,
			     uint64_t n)
{
	struct sim *sim = extra_of(variant);

	(void)thread;
	for (uint64_t i = 0; i < n; i += 2 * PIPE_BURST) {
		step(sim, 0, 0, PIPE_BURST);
		step(sim, 1, 1, PIPE_BURST);
	}
	return n;
}

/* B15: one thread, and a queue whose length walks at random. */
static uint64_t run_walk(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct sim *sim = extra_of(variant);

	(void)thread;
	for (uint64_t i = 0; i < n;) {
		const uint32_t k = 1 + random_u32(&sim->random) % 32;
		const int is_put = random_u32(&sim->random) % 2 != 0;

		if (is_put ? sim->held < k : sim->held + k > WALK_MAX)
			continue;
		step(sim, 0, is_put, k);
		sim->held = is_put ? sim->held - k : sim->held + k;
		i += k;
	}
	return n;
}

static int begin(struct variant *variant, struct mr_reason *why)
{
	struct sim *sim = extra_of(variant);

	(void)why;
	sim->policy = &policies[variant->param[P_HOW]];
	sim->random = 0x9e3779b97f4a7c15;
	return 0;
}

static void count(struct variant *variant, struct counts *counts)
{
	const struct sim *sim = extra_of(variant);
	const double n = (double)sim->n_objects;

	count_add(counts, "exchanges per 1000 objects",
		  1000 * (double)sim->n_calls / n);
	count_add(counts, "objects per exchange",
		  sim->n_calls > 0 ?
			  (double)sim->n_moved / (double)sim->n_calls :
			  0);
	count_add(counts, "moved per 1000 objects",
		  1000 * (double)sim->n_moved / n);
	count_add(counts, "parked at most", sim->n_most);
}

void rows_b21(struct bench *bench)
{
	static const struct {
		const char *name;
		variant_run_fn *run;
		uint64_t n_keep;
	} traces[] = {
		{ "keep=32 bulk=32", run_keep, 32 },
		{ "keep=128 bulk=32", run_keep, 128 },
		{ "keep=512 bulk=32", run_keep, 512 },
		{ "keep=8192 bulk=32", run_keep, 8192 },
		{ "pipeline bulk=32", run_pipeline, 0 },
		{ "random walk 0..16384", run_walk, 0 },
	};

	for (uint32_t t = 0; t < N_OF(traces); t++) {
		struct row row = { .unit = "simulated object" };
		const struct variant like = {
			.begin = begin,
			.count = count,
			.wish = { .n_extra = sizeof(struct sim) },
			.param = { traces[t].n_keep },
		};

		NAME(row.name, "%s", traces[t].name);
		for (uint32_t i = 0; i < N_OF(policies); i++)
			bench_add_all(
				bench, &row, &like,
				&(struct contestant){ policies[i].name,
						      i == 0 ? A_OURS_NOTHING :
							       A_NOTHING,
						      traces[t].run, .how = i },
				1);
		bench_row(bench, &row);
	}
}

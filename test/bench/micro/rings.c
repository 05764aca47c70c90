/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B23: rings alone, of 1024 entries, 1, 8 and 32 in a call: our public ones of
 * frame entries (16 bytes), DPDK's of pointers and of 16 bytes, the kernel's
 * alf_queue as a model.
 *
 *     hand-over  one thread puts in, another one takes out; or one does both
 *     pool       each thread takes out and puts back: a ring as a pool, which
 *                is what rte_mempool is without its caches
 *
 * An operation is an entry that went in and out. The rings of DPDK and
 * alf_queue wait for each other's tails, so there are no more threads than
 * cores.
 */
#include <stdio.h>

#include "alloc.h"
#include "hop.h"
#include "workloads.h"
#ifdef BENCH_DPDK
#include <rte_ring_elem.h>
#endif

enum { P_BULK, P_IS_POOL, P_KIND }; /* of variant.param */

enum { ENTRIES = 1024, MAX_BULK = 32 };

/* Room for entries of either size. */
union burst {
	struct mr_frame frames[MAX_BULK];
	void *pointers[MAX_BULK];
	word words[MAX_BULK];
};

/* Up to n entries; return how many. */
struct ring {
	uint32_t (*put)(void *ring, const union burst *burst, uint32_t n);
	uint32_t (*get)(void *ring, union burst *burst, uint32_t n);
};

static ALWAYS_INLINE uint64_t put_all(void *state, uint64_t n, uint32_t bulk,
				      const struct ring ring)
{
	struct patience patience = { 0 };
	union burst burst = { 0 };

	for (uint64_t done = 0; done < n;) {
		const uint64_t left = n - done;
		const uint32_t k = ring.put(
			state, &burst, left < bulk ? (uint32_t)left : bulk);

		done += k;
		if (k > 0)
			patience = (struct patience){ 0 };
		else if (patience_ends(&patience))
			return 0;
	}
	return n;
}

static ALWAYS_INLINE uint64_t get_all(void *state, uint64_t n, uint32_t bulk,
				      const struct ring ring)
{
	struct patience patience = { 0 };
	union burst burst;

	for (uint64_t done = 0; done < n;) {
		const uint32_t k = ring.get(state, &burst, bulk);

		keep(&burst);
		done += k;
		if (k > 0)
			patience = (struct patience){ 0 };
		else if (patience_ends(&patience))
			break;
	}
	return 0;
}

/* In and out, or out and in, on each thread. */
static ALWAYS_INLINE uint64_t turn(void *state, uint64_t n, uint32_t bulk,
				   bool is_pool, const struct ring ring)
{
	struct patience patience = { 0 };
	union burst burst = { 0 };
	uint64_t done = 0;

	while (done < n) {
		uint32_t k = bulk;

		if (!is_pool)
			k = ring.put(state, &burst, bulk);
		k = ring.get(state, &burst, k);
		keep(&burst);
		/* There is room: it was there before, and who takes out puts
		 * in. Our ring may say that there is none for a moment. */
		for (uint32_t i = 0; is_pool && i < k;)
			i += ring.put(state, &burst, k - i);
		done += k;
		if (k > 0)
			patience = (struct patience){ 0 };
		else if (patience_ends(&patience))
			return 0;
	}
	return done;
}

static ALWAYS_INLINE uint64_t hand_over(struct variant *variant,
					uint32_t thread, uint64_t n,
					const struct ring ring)
{
	const uint32_t bulk = (uint32_t)variant->param[P_BULK];

	if (variant->param[P_IS_POOL] != 0)
		return turn(variant->state, n, bulk, true, ring);
	if (variant->row->n_threads == 1)
		return turn(variant->state, n, bulk, false, ring);
	n = n_of_run(n, bulk);
	return thread == 0 ? put_all(variant->state, n, bulk, ring) :
			     get_all(variant->state, n, bulk, ring);
}

static ALWAYS_INLINE uint32_t put_spsc(void *ring, const union burst *burst,
				       uint32_t n)
{
	return mr_ring_spsc_enqueue_burst(ring, burst->frames, n);
}

static ALWAYS_INLINE uint32_t get_spsc(void *ring, union burst *burst,
				       uint32_t n)
{
	return mr_ring_spsc_dequeue_burst(ring, burst->frames, n);
}

static ALWAYS_INLINE uint32_t put_mpmc(void *ring, const union burst *burst,
				       uint32_t n)
{
	return mr_ring_mpmc_enqueue_burst(ring, burst->frames, n);
}

static ALWAYS_INLINE uint32_t get_mpmc(void *ring, union burst *burst,
				       uint32_t n)
{
	return mr_ring_mpmc_dequeue_burst(ring, burst->frames, n);
}

/* All or none. */
static ALWAYS_INLINE uint32_t put_alf(void *ring, const union burst *burst,
				      uint32_t n)
{
	return qm_enqueue(ring, burst->pointers, n) ? n : 0;
}

static ALWAYS_INLINE uint32_t get_alf(void *ring, union burst *burst,
				      uint32_t n)
{
	return qm_dequeue(ring, burst->pointers, n);
}

static ALWAYS_INLINE uint32_t put_hop(void *ring, const union burst *burst,
				      uint32_t n)
{
	return hop_put(ring, burst->words, n) ? n : 0;
}

static ALWAYS_INLINE uint32_t get_hop(void *ring, union burst *burst,
				      uint32_t n)
{
	return hop_get(ring, burst->words, n);
}

#ifdef BENCH_DPDK
/* Single or not is a flag of the ring, which it looks at in each call. */
static ALWAYS_INLINE uint32_t put_rte(void *ring, const union burst *burst,
				      uint32_t n)
{
	return rte_ring_enqueue_burst(ring, burst->pointers, n, NULL);
}

static ALWAYS_INLINE uint32_t get_rte(void *ring, union burst *burst,
				      uint32_t n)
{
	return rte_ring_dequeue_burst(ring, burst->pointers, n, NULL);
}

static ALWAYS_INLINE uint32_t put_wide(void *ring, const union burst *burst,
				       uint32_t n)
{
	return rte_ring_enqueue_burst_elem(ring, burst->frames,
					   sizeof(struct mr_frame), n, NULL);
}

static ALWAYS_INLINE uint32_t get_wide(void *ring, union burst *burst,
				       uint32_t n)
{
	return rte_ring_dequeue_burst_elem(ring, burst->frames,
					   sizeof(struct mr_frame), n, NULL);
}

static void *make_rte(bool is_single, size_t n_bytes, struct mr_reason *why)
{
	static uint32_t number;
	struct rte_ring *ring;
	char name[32];

	NAME(name, "entries%u", number++);
	ring = rte_ring_create_elem(
		name, (unsigned int)n_bytes, ENTRIES, SOCKET_ID_ANY,
		is_single ? RING_F_SP_ENQ | RING_F_SC_DEQ : 0);
	if (ring == NULL)
		snprintf(why->text, sizeof(why->text), "rte_ring_create: %s",
			 rte_strerror(rte_errno));
	return ring;
}

static void free_rte(struct rte_ring *ring)
{
	rte_ring_free(ring);
}
#else
static void *make_rte(bool is_single, size_t n_bytes, struct mr_reason *why)
{
	(void)is_single;
	(void)n_bytes;
	(void)why;
	return NULL;
}

static void free_rte(void *ring)
{
	(void)ring;
}
#endif

#define SPSC ((struct ring){ put_spsc, get_spsc })
#define MPMC ((struct ring){ put_mpmc, get_mpmc })
#define ALF ((struct ring){ put_alf, get_alf })
#define HOP ((struct ring){ put_hop, get_hop })
#define RTE ((struct ring){ put_rte, get_rte })
#define WIDE ((struct ring){ put_wide, get_wide })

RUN(run_spsc, hand_over, SPSC)
RUN(run_mpmc, hand_over, MPMC)
RUN(run_alf, hand_over, ALF)
RUN(run_hop, hand_over, HOP)
RUN_DPDK(run_rte, hand_over, RTE)
RUN_DPDK(run_wide, hand_over, WIDE)

enum kind { R_SPSC, R_RTE_SP, R_WIDE_SP, R_HOP, R_MPMC, R_ALF, R_RTE, R_WIDE };

/* Those from R_MPMC on can be pools, too. */
static const struct {
	const char *name;
	enum side side;
	variant_run_fn *run;
} rings[] = {
	[R_SPSC] = { "mr_ring_spsc", SIDE_OURS, run_spsc },
	[R_RTE_SP] = { "rte_ring SP/SC", SIDE_DPDK, run_rte },
	[R_WIDE_SP] = { "rte_ring SP/SC, 16 bytes", SIDE_DPDK, run_wide },
	[R_HOP] = { "ring of the bench", SIDE_PLAIN, run_hop },
	[R_MPMC] = { "mr_ring_mpmc", SIDE_OURS, run_mpmc },
	[R_ALF] = { "model of alf_queue", SIDE_KERNEL, run_alf },
	[R_RTE] = { "rte_ring MP/MC", SIDE_DPDK, run_rte },
	[R_WIDE] = { "rte_ring MP/MC, 16 bytes", SIDE_DPDK, run_wide },
};

/* In a pool half of the entries are there; what they are does not matter. */
static bool fill_one(const struct variant *variant)
{
	const union burst burst = { 0 };

	switch (variant->param[P_KIND]) {
	case R_MPMC:
		return put_mpmc(variant->state, &burst, 1) == 1;
	case R_ALF:
		return put_alf(variant->state, &burst, 1) == 1;
#ifdef BENCH_DPDK
	case R_RTE:
		return put_rte(variant->state, &burst, 1) == 1;
	case R_WIDE:
		return put_wide(variant->state, &burst, 1) == 1;
#endif
	default:
		return false;
	}
}

static int set_up(struct variant *variant, struct mr_reason *why)
{
	struct mr_ctx *ctx = bench_ctx(variant->bench);
	const uint64_t kind = variant->param[P_KIND];

	variant->state = NULL;
	if (kind == R_SPSC)
		(void)mr_ring_spsc_create(
			ctx, ENTRIES, (struct mr_ring_spsc **)&variant->state,
			why);
	else if (kind == R_MPMC)
		(void)mr_ring_mpmc_create(
			ctx, ENTRIES, (struct mr_ring_mpmc **)&variant->state,
			why);
	else if (kind == R_ALF)
		variant->state = qm_make(0, 0);
	else if (kind == R_HOP)
		variant->state = hop_make(ENTRIES);
	else
		variant->state = make_rte(kind < R_MPMC,
					  variant->run == run_wide ?
						  sizeof(struct mr_frame) :
						  sizeof(void *),
					  why);
	if (variant->state == NULL)
		return -1;
	for (uint32_t i = 0; variant->param[P_IS_POOL] && i < ENTRIES / 2; i++)
		if (!fill_one(variant))
			return -1;
	return 0;
}

static void tear_down(struct variant *variant)
{
	if (variant->param[P_KIND] == R_SPSC)
		mr_ring_spsc_destroy(variant->state);
	else if (variant->param[P_KIND] == R_MPMC)
		mr_ring_mpmc_destroy(variant->state);
	else if (variant->side == SIDE_DPDK)
		free_rte(variant->state);
	else
		free(variant->state);
}

static void row_of(struct bench *bench, bool is_pool, uint32_t n_threads,
		   uint32_t bulk)
{
	struct row row = { .unit = "entry",
			   .n_threads = n_threads,
			   .is_per_thread = is_pool,
			   .x_name = "entries in a call",
			   .x = bulk };

	NAME(row.plot, "%s threads=%u", is_pool ? "pool" : "hand-over",
	     n_threads);
	NAME(row.name, "%s bulk=%u", row.plot, bulk);
	for (uint32_t i = is_pool ? R_MPMC : 0; i < N_OF(rings); i++) {
		struct variant variant = { .side = rings[i].side,
					   .setup = set_up,
					   .run = rings[i].run,
					   .teardown = tear_down,
					   .param = { bulk, is_pool, i } };

		NAME(variant.name, "%s", rings[i].name);
		bench_add(bench, &row, &variant);
	}
	bench_row(bench, &row);
}

void rows_b23(struct bench *bench)
{
	static const uint32_t bulks[] = { 1, 8, 32 };
	const uint32_t n_cores = bench_n_cores(bench);

	for (uint32_t n = 1; n <= 2; n++)
		for (uint32_t i = 0; i < N_OF(bulks); i++)
			row_of(bench, false, n, bulks[i]);
	for (uint32_t n = 1; n <= n_cores; n = next_n_threads(n, n_cores))
		for (uint32_t i = 0; i < N_OF(bulks); i++)
			row_of(bench, true, n, bulks[i]);
}

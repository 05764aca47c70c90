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

#include "hop.h"
#include "model_qmempool.h"
#include "takers.h"
#include "workloads.h"
#ifdef BENCH_DPDK
#include <rte_errno.h>
#include <rte_ring.h>
#include <rte_ring_elem.h>
#endif

enum { BULK, IS_POOL, IS_SINGLE, IS_WIDE }; /* of player.param */

enum { ENTRIES = 1024, MAX_BULK = 32 };

/* Room for entries of either size. */
union burst {
	struct mr_frame frames[MAX_BULK];
	void *pointers[MAX_BULK];
	word words[MAX_BULK];
};

/* Up to n entries; return how many. */
typedef uint32_t (*put_fn)(void *ring, const union burst *burst, uint32_t n);
typedef uint32_t (*get_fn)(void *ring, union burst *burst, uint32_t n);

struct ring {
	put_fn put;
	get_fn get;
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

static ALWAYS_INLINE void get_all(void *state, uint64_t n, uint32_t bulk,
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
			return;
	}
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

static ALWAYS_INLINE uint64_t run(struct player *player, uint32_t thread,
				  uint64_t n, const struct ring ring)
{
	const uint32_t bulk = (uint32_t)player->param[BULK];

	if (player->param[IS_POOL] != 0)
		return turn(player->state, n, bulk, true, ring);
	if (player->row->n_threads == 1)
		return turn(player->state, n, bulk, false, ring);
	n = n_of_run(n, bulk);
	if (thread == 0)
		return put_all(player->state, n, bulk, ring);
	get_all(player->state, n, bulk, ring);
	return 0;
}

/* For pools: half of the entries. */
static int fill(struct player *player, const struct ring ring)
{
	union burst burst = { 0 };

	for (uint32_t i = 0; player->param[IS_POOL] && i < ENTRIES / 2; i++)
		if (ring.put(player->state, &burst, 1) != 1)
			return -1;
	return 0;
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

static int set_up_spsc(struct player *player, struct mr_reason *why)
{
	return mr_ring_spsc_create(bench_ctx(player->bench), ENTRIES,
				   (struct mr_ring_spsc **)&player->state, why);
}

static void tear_down_spsc(struct player *player)
{
	mr_ring_spsc_destroy(player->state);
}

static int set_up_mpmc(struct player *player, struct mr_reason *why)
{
	if (mr_ring_mpmc_create(bench_ctx(player->bench), ENTRIES,
				(struct mr_ring_mpmc **)&player->state,
				why) < 0)
		return -1;
	return fill(player, (struct ring){ put_mpmc, get_mpmc });
}

static void tear_down_mpmc(struct player *player)
{
	mr_ring_mpmc_destroy(player->state);
}

static uint64_t run_spsc(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, (struct ring){ put_spsc, get_spsc });
}

static uint64_t run_mpmc(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, (struct ring){ put_mpmc, get_mpmc });
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

static int set_up_alf(struct player *player, struct mr_reason *why)
{
	(void)why;
	player->state = qm_make(0, 0);
	if (player->state == NULL)
		return -1;
	return fill(player, (struct ring){ put_alf, get_alf });
}

/* What is in it are no objects: nothing to free but the ring. */
static void free_state(struct player *player)
{
	free(player->state);
}

static uint64_t run_alf(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, (struct ring){ put_alf, get_alf });
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

static int set_up_hop(struct player *player, struct mr_reason *why)
{
	(void)why;
	player->state = hop_make(ENTRIES);
	return player->state == NULL ? -1 : 0;
}

static uint64_t run_hop(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, (struct ring){ put_hop, get_hop });
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

static int set_up_rte(struct player *player, struct mr_reason *why)
{
	const bool is_wide = player->param[IS_WIDE] != 0;
	static uint32_t number;
	char name[32];

	snprintf(name, sizeof(name), "entries%u", number++);
	player->state = rte_ring_create_elem(
		name, is_wide ? sizeof(struct mr_frame) : sizeof(void *),
		ENTRIES, SOCKET_ID_ANY,
		player->param[IS_SINGLE] ? RING_F_SP_ENQ | RING_F_SC_DEQ : 0);
	if (player->state == NULL) {
		snprintf(why->text, sizeof(why->text), "rte_ring_create: %s",
			 rte_strerror(rte_errno));
		return -1;
	}
	return is_wide ? fill(player, (struct ring){ put_wide, get_wide }) :
			 fill(player, (struct ring){ put_rte, get_rte });
}

static void tear_down_rte(struct player *player)
{
	rte_ring_free(player->state);
}

static uint64_t run_rte(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, (struct ring){ put_rte, get_rte });
}

static uint64_t run_wide(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, (struct ring){ put_wide, get_wide });
}

static void add_rte(struct bench *bench, struct row *row,
		    const struct player *like, const char *name, bool is_single,
		    bool is_wide)
{
	struct player player = *like;

	player.name = name;
	player.side = SIDE_DPDK;
	player.setup = set_up_rte;
	player.run = is_wide ? run_wide : run_rte;
	player.teardown = tear_down_rte;
	player.param[IS_SINGLE] = is_single;
	player.param[IS_WIDE] = is_wide;
	bench_add(bench, row->players, &row->n_players, &player);
}
#else
static void add_rte(struct bench *bench, struct row *row,
		    const struct player *like, const char *name, bool is_single,
		    bool is_wide)
{
	(void)bench;
	(void)row;
	(void)like;
	(void)name;
	(void)is_single;
	(void)is_wide;
}
#endif

static void add(struct bench *bench, struct row *row, const struct player *like,
		bool is_pool)
{
	static const struct {
		bool is_for_pool;
		const char *name;
		enum side side;
		int (*setup)(struct player *, struct mr_reason *);
		player_run_fn *run;
		void (*teardown)(struct player *);
	} rings[] = {
		{ false, "mr_ring_spsc", SIDE_OURS, set_up_spsc, run_spsc,
		  tear_down_spsc },
		{ true, "mr_ring_mpmc", SIDE_OURS, set_up_mpmc, run_mpmc,
		  tear_down_mpmc },
		{ true, "model of alf_queue", SIDE_KERNEL, set_up_alf, run_alf,
		  free_state },
		{ false, "ring of the bench", SIDE_PLAIN, set_up_hop, run_hop,
		  free_state },
	};

	for (uint32_t i = 0; i < 4; i++) {
		struct player player = *like;

		player.name = rings[i].name;
		player.side = rings[i].side;
		player.setup = rings[i].setup;
		player.run = rings[i].run;
		player.teardown = rings[i].teardown;
		if (!is_pool || rings[i].is_for_pool)
			bench_add(bench, row->players, &row->n_players,
				  &player);
	}
	if (!is_pool) {
		add_rte(bench, row, like, "rte_ring SP/SC", true, false);
		add_rte(bench, row, like, "rte_ring SP/SC, 16 bytes", true,
			true);
	}
	add_rte(bench, row, like, "rte_ring MP/MC", false, false);
	add_rte(bench, row, like, "rte_ring MP/MC, 16 bytes", false, true);
}

static void row_of(struct bench *bench, bool is_pool, uint32_t n_threads,
		   uint32_t bulk)
{
	struct player players[MAX_PLAYERS];
	char name[64], plot[32];
	struct row row = { .name = name,
			   .unit = "entry",
			   .n_threads = n_threads,
			   .is_per_thread = is_pool,
			   .plot = plot,
			   .x_name = "entries in a call",
			   .x = bulk,
			   .players = players };
	const struct player player = { .param = { bulk, is_pool } };

	snprintf(plot, sizeof(plot), "%s threads=%u",
		 is_pool ? "pool" : "hand-over", n_threads);
	snprintf(name, sizeof(name), "%s bulk=%u", plot, bulk);
	add(bench, &row, &player, is_pool);
	bench_row(bench, &row);
}

static void rows(struct bench *bench)
{
	static const uint32_t bulks[] = { 1, 8, 32 };
	const uint32_t n_cores = bench_n_cores(bench);

	for (uint32_t n = 1; n <= 2; n++)
		for (uint32_t i = 0; i < 3; i++)
			row_of(bench, false, n, bulks[i]);
	for (uint32_t n = 1; n <= n_cores; n = next_n_threads(n, n_cores))
		for (uint32_t i = 0; i < 3; i++)
			row_of(bench, true, n, bulks[i]);
}

const struct workload b23_ring = {
	.name = "B23",
	.title = "ring",
	.what = "rings as such: from thread to thread, and as a pool",
	.source = "DPDK, ring_perf_autotest; prototype-kernel, alf_queue_bench",
	.rows = rows,
};

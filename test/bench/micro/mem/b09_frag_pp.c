/* SPDX-License-Identifier: BSD-3-Clause */
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
#include <stdio.h>

#include "cutters.h"
#include "workloads.h"

enum { SIZE, ALIGN, HOW, HOP, THREADS }; /* of player.param */

enum { RING = 512, MAX_HOP = 32, MEMORY = 8 << 20 };

struct frag_pp {
	void *state; /* of the allocator */
	struct hop *hop;
	uint32_t is_dead;
	alignas(64) uint64_t n_full; /* the pusher's */
	uint64_t n_unaligned;
	alignas(64) uint64_t n_empty; /* the popper's */
};

static int set_up(struct player *player, struct mr_reason *why)
{
	struct frag_pp *pp = aligned_alloc(64, sizeof(*pp));

	if (pp == NULL)
		return -1;
	*pp = (struct frag_pp){ .hop = hop_make(RING) };
	if (pp->hop != NULL)
		pp->state = cutter_make(player, MEMORY, why);
	if (pp->state == NULL) {
		free(pp->hop);
		free(pp);
		return -1;
	}
	player->state = pp;
	return 0;
}

static void tear_down(struct player *player)
{
	struct frag_pp *pp = player->state;
	word at;

	/* What a run that gave up has left behind. */
	while (hop_get(pp->hop, &at, 1) == 1)
		if (player->side == SIDE_OURS)
			ours_give(pp->state, 0, &at, 1);
	cutter_free(player, pp->state);
	free(pp->hop);
	free(pp);
}

static void count(struct player *player, struct counts *counts)
{
	const struct frag_pp *pp = player->state;

	count_per_1000(counts, "push_full_per_1000", pp->n_full, player);
	count_per_1000(counts, "pop_empty_per_1000", pp->n_empty, player);
	if (player->param[ALIGN] > 1)
		count_add(counts, "unaligned", (double)pp->n_unaligned);
}

/* As the original's cond_resched(): away for a moment, so that a lot gathers.
 */
static bool gives_up(struct frag_pp *pp, struct patience *patience)
{
	for (uint32_t i = 0; i < 16; i++)
		relax();
	if (__atomic_load_n(&pp->is_dead, __ATOMIC_RELAXED) == 0 &&
	    !patience_ends(patience))
		return false;
	__atomic_store_n(&pp->is_dead, 1, __ATOMIC_RELAXED);
	return true;
}

/* Cut and push one lot. False: no room, it was freed. */
static ALWAYS_INLINE bool push_lot(struct player *player, struct frag_pp *pp,
				   uint32_t hop, enum cut how,
				   const struct cutter cutter)
{
	const uint32_t align = (uint32_t)player->param[ALIGN];
	word words[MAX_HOP];
	const uint32_t n =
		cutter.cut(pp->state, words, hop, (uint32_t)player->param[SIZE],
			   align, how);

	for (uint32_t i = 0; i < n; i++)
		pp->n_unaligned += (words[i] & (align - 1)) != 0;
	if (n == hop && hop_put(pp->hop, words, n))
		return true;
	cutter.give(pp->state, 0, words, n);
	pp->n_full += hop;
	return false;
}

static ALWAYS_INLINE uint64_t push(struct player *player, uint64_t n,
				   uint32_t hop, enum cut how,
				   const struct cutter cutter)
{
	struct frag_pp *pp = player->state;
	struct patience patience = { 0 };
	uint64_t done = 0;

	while (done < n) {
		if (push_lot(player, pp, hop, how, cutter)) {
			done += hop;
			patience = (struct patience){ 0 };
		} else if (gives_up(pp, &patience)) {
			return 0;
		}
	}
	return done;
}

static ALWAYS_INLINE void pop(struct player *player, uint64_t n, uint32_t hop,
			      const struct cutter cutter)
{
	struct frag_pp *pp = player->state;
	struct patience patience = { 0 };
	word words[MAX_HOP];
	uint64_t done = 0;

	while (done < n) {
		const uint32_t got = hop_get(pp->hop, words, hop);

		if (got > 0) {
			cutter.give(pp->state, 1, words, got);
			done += got;
			patience = (struct patience){ 0 };
			continue;
		}
		pp->n_empty++;
		if (gives_up(pp, &patience))
			return;
	}
}

static ALWAYS_INLINE uint64_t push_then_pop(struct player *player, uint64_t n,
					    enum cut how,
					    const struct cutter cutter)
{
	struct frag_pp *pp = player->state;
	uint64_t done = 0;

	while (done < n) {
		uint32_t n_in = 0;
		word at;

		while (n_in < RING && push_lot(player, pp, 1, how, cutter))
			n_in++;
		if (n_in == 0)
			return 0;
		while (hop_get(pp->hop, &at, 1) == 1)
			cutter.give(pp->state, 0, &at, 1);
		done += n_in;
	}
	return done;
}

/* How it is cut is a constant in each of the loops. */
static ALWAYS_INLINE uint64_t run_how(struct player *player, uint32_t thread,
				      uint64_t n, enum cut how,
				      const struct cutter cutter)
{
	const uint32_t hop = (uint32_t)player->param[HOP];

	if (player->param[THREADS] == 1)
		return push_then_pop(player, n, how, cutter);
	n = n_of_run(n, hop);
	if (thread != 0)
		hop == 1 ? pop(player, n, 1, cutter) :
			   pop(player, n, MAX_HOP, cutter);
	else
		return hop == 1 ? push(player, n, 1, how, cutter) :
				  push(player, n, MAX_HOP, how, cutter);
	return 0;
}

static ALWAYS_INLINE uint64_t run(struct player *player, uint32_t thread,
				  uint64_t n, const struct cutter cutter)
{
	switch ((enum cut)player->param[HOW]) {
	case CUT_ALLOC:
		return run_how(player, thread, n, CUT_ALLOC, cutter);
	case CUT_COMMIT:
		return run_how(player, thread, n, CUT_COMMIT, cutter);
	default:
		return run_how(player, thread, n, CUT_PROBE, cutter);
	}
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, OURS_CUTTER);
}

static uint64_t run_kernel(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, KERNEL_CUTTER);
}

static uint64_t run_malloc(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, MALLOC_CUTTER);
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, DPDK_CUTTER);
}
#else
#define run_dpdk NULL
#endif

/* Once as it comes, and once aligned to 64 bytes. */
static void add_both(struct bench *bench, struct row *row,
		     const struct player *like, const char *name,
		     const char *name_aligned)
{
	struct player player = *like;

	player.name = name;
	player.param[ALIGN] = 1;
	bench_add(bench, row->players, &row->n_players, &player);
	player.name = name_aligned;
	player.param[ALIGN] = 64;
	bench_add(bench, row->players, &row->n_players, &player);
}

static void row_of(struct bench *bench, const struct player *like)
{
	static const char *const hows[] = { "alloc", "prepare+commit",
					    "probe+prepare+commit" };
	struct player players[MAX_PLAYERS], player = *like;
	char name[96], plot[64];
	struct row row = { .name = name,
			   .unit = "frag",
			   .n_threads = (uint32_t)player.param[THREADS],
			   .plot = plot,
			   .x_name = "bytes of a frag",
			   .x = (double)player.param[SIZE],
			   .players = players };

	snprintf(plot, sizeof(plot), "threads=%u hop=%u %s", row.n_threads,
		 (uint32_t)player.param[HOP], hows[player.param[HOW]]);
	snprintf(name, sizeof(name), "len=%u %s", (uint32_t)player.param[SIZE],
		 plot);
	player.side = SIDE_OURS;
	player.run = run_ours;
	add_both(bench, &row, &player, "frag cache", "frag cache, aligned");
	player.side = SIDE_KERNEL;
	player.run = run_kernel;
	add_both(bench, &row, &player, "model of page_frag_cache",
		 "model of page_frag_cache, aligned");
	if (player.param[HOW] == CUT_ALLOC) { /* the others know no more */
		takers_add_dpdk(bench, &row, &player, run_dpdk);
		player.side = SIDE_MALLOC;
		player.run = run_malloc;
		add_both(bench, &row, &player, "malloc", "malloc, aligned");
	}
	bench_row(bench, &row);
}

static void rows_of(struct bench *bench, uint32_t n_threads, uint32_t hop,
		    enum cut how)
{
	static const uint32_t sizes[] = { 12, 75, 256, 1024, 2048 };

	for (uint32_t i = 0; i < 5; i++)
		row_of(bench, &(struct player){ .setup = set_up,
						.count = count,
						.teardown = tear_down,
						.param = { sizes[i], 1, how,
							   hop, n_threads } });
}

static void rows(struct bench *bench)
{
	for (uint32_t n_threads = 2; n_threads > 0; n_threads--)
		for (uint32_t how = CUT_ALLOC; how <= CUT_PROBE; how++)
			rows_of(bench, n_threads, 1, (enum cut)how);
	rows_of(bench, 2, MAX_HOP, CUT_ALLOC);
}

const struct workload b09_frag_pp = {
	.name = "B09",
	.title = "frag_pp",
	.what = "frags through a ring of 512 from one core to another",
	.source = "Linux, selftests/mm/page_frag/page_frag_test.c",
	.rows = rows,
};

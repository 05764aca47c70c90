/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B10: frags of mixed sizes that live for different times. Sizes are those of
 * the simple Internet mix (64 bytes 7 times, 576 4 times, 1500 once); a frag is
 * freed after 0 to 4096 others were cut, evenly spread. With two threads one
 * cuts and sends, the other one holds and frees: no two of its frees in a row
 * are of the same block.
 *
 * pinned_by_live: bytes that nobody else can use, by bytes of frags alive.
 */
#include <stdio.h>

#include "cutters.h"
#include "usual.h"
#include "workloads.h"

enum { THREADS }; /* of player.param */

enum {
	STEPS = 65536, /* of the schedule; it goes round */
	MAX_DELAY = 4096,
	ALIGN = 64,
	BURST = 32,
	RING = 512,
	MEMORY = 16 << 20,
};

/* The same for all players: what is cut at a step, and what freed after it. */
struct schedule {
	uint16_t sizes[STEPS], delays[STEPS];
	uint32_t first[STEPS + 1]; /* in ends, by step */
	uint16_t ends[STEPS];      /* what ends there was cut at that step */
	uint16_t n_filled[STEPS];
};

struct frag_mix {
	void *state; /* of the allocator */
	struct hop *hop;
	struct schedule *schedule;
	uint32_t is_dead;
	alignas(64) uint32_t at_cut; /* the next step */
	alignas(64) uint32_t at_hold;
	word frags[STEPS];
};

static struct schedule *make_schedule(void)
{
	struct schedule *s = calloc(1, sizeof(*s));
	uint64_t state = RANDOM_SEED;

	if (s == NULL)
		return NULL;
	for (uint32_t i = 0; i < STEPS; i++) {
		const uint32_t of12 = random_u32(&state) % 12;

		s->sizes[i] = of12 < 7 ? 64 : of12 < 11 ? 576 : 1500;
		s->delays[i] = (uint16_t)(random_u32(&state) % (MAX_DELAY + 1));
		s->first[(i + s->delays[i]) % STEPS + 1]++;
	}
	for (uint32_t i = 0; i < STEPS; i++)
		s->first[i + 1] += s->first[i];
	for (uint32_t i = 0; i < STEPS; i++) {
		const uint32_t end = (i + s->delays[i]) % STEPS;

		s->ends[s->first[end] + s->n_filled[end]++] = (uint16_t)i;
	}
	return s;
}

static void free_mix(const struct player *player, struct frag_mix *mix)
{
	if (mix->state != NULL)
		cutter_free(player, mix->state);
	free(mix->schedule);
	free(mix->hop);
	free(mix);
}

static int set_up(struct player *player, struct mr_reason *why)
{
	struct frag_mix *mix = aligned_alloc(64, sizeof(*mix));

	if (mix == NULL)
		return -1;
	memset(mix, 0, sizeof(*mix));
	for (uint32_t i = 0; i < STEPS; i++)
		mix->frags[i] = MR_ADDR_NONE;
	mix->hop = hop_make(RING);
	mix->schedule = make_schedule();
	if (mix->hop != NULL && mix->schedule != NULL)
		mix->state = cutter_make(player, MEMORY, why);
	if (mix->state == NULL) {
		free_mix(player, mix);
		return -1;
	}
	player->state = mix;
	return 0;
}

/* Keep the frag of this step, and free those whose time is over. */
static ALWAYS_INLINE void hold(struct frag_mix *mix, uint32_t thread, word frag,
			       give_fn give)
{
	const struct schedule *s = mix->schedule;
	const uint32_t step = mix->at_hold;
	word over[BURST];
	uint32_t n = 0;

	mix->frags[step] = frag;
	for (uint32_t i = s->first[step]; i < s->first[step + 1]; i++) {
		word *at = &mix->frags[s->ends[i]];

		if (*at == MR_ADDR_NONE) /* in the first round only */
			continue;
		over[n++] = *at;
		*at = MR_ADDR_NONE;
		if (n == BURST) {
			give(mix->state, thread, over, n);
			n = 0;
		}
	}
	give(mix->state, thread, over, n);
	mix->at_hold = (step + 1) % STEPS;
}

static ALWAYS_INLINE bool cut(struct frag_mix *mix, word *ret_frag,
			      const struct cutter cutter)
{
	const uint32_t size = mix->schedule->sizes[mix->at_cut];

	if (cutter.cut(mix->state, ret_frag, 1, size, ALIGN, CUT_ALLOC) != 1)
		return false;
	mix->at_cut = (mix->at_cut + 1) % STEPS;
	return true;
}

static bool gives_up(struct frag_mix *mix, struct patience *patience)
{
	if (__atomic_load_n(&mix->is_dead, __ATOMIC_RELAXED) == 0 &&
	    !patience_ends(patience))
		return false;
	__atomic_store_n(&mix->is_dead, 1, __ATOMIC_RELAXED);
	return true;
}

static ALWAYS_INLINE uint64_t cut_and_send(struct frag_mix *mix, uint64_t n,
					   const struct cutter cutter)
{
	struct patience patience = { 0 };
	word words[BURST];

	for (uint64_t done = 0; done < n; done += BURST) {
		for (uint32_t i = 0; i < BURST; i++)
			while (!cut(mix, &words[i], cutter))
				if (gives_up(mix, &patience))
					return 0;
		while (!hop_put(mix->hop, words, BURST))
			if (gives_up(mix, &patience))
				return 0;
		patience = (struct patience){ 0 };
	}
	return n;
}

static ALWAYS_INLINE void get_and_hold(struct frag_mix *mix, uint64_t n,
				       const struct cutter cutter)
{
	struct patience patience = { 0 };
	word words[BURST];

	for (uint64_t done = 0; done < n;) {
		const uint32_t got = hop_get(mix->hop, words, BURST);

		if (got == 0 && gives_up(mix, &patience))
			return;
		if (got > 0)
			patience = (struct patience){ 0 };
		for (uint32_t i = 0; i < got; i++)
			hold(mix, 1, words[i], cutter.give);
		done += got;
	}
}

static ALWAYS_INLINE uint64_t run(struct player *player, uint32_t thread,
				  uint64_t n, const struct cutter cutter)
{
	struct frag_mix *mix = player->state;

	if (player->param[THREADS] == 2) {
		n = n_of_run(n, BURST);
		if (thread == 0)
			return cut_and_send(mix, n, cutter);
		get_and_hold(mix, n, cutter);
		return 0;
	}
	for (uint64_t i = 0; i < n; i++) {
		word frag;

		if (!cut(mix, &frag, cutter))
			return 0;
		hold(mix, 0, frag, cutter.give);
	}
	return n;
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

static void count(struct player *player, struct counts *counts)
{
	struct frag_mix *mix = player->state;
	uint64_t n_bytes = 0, n = 0, pinned;

	for (uint32_t i = 0; i < STEPS; i++) {
		if (mix->frags[i] == MR_ADDR_NONE)
			continue;
		n_bytes += mix->schedule->sizes[i];
		n++;
	}
	pinned = player->side == SIDE_DPDK ? n * OBJECT_BYTES :
					     cutter_pinned(player, mix->state);
	if (n_bytes == 0 || pinned == 0)
		return;
	count_add(counts, "live_bytes", (double)n_bytes);
	count_add(counts, "pinned_by_live", (double)pinned / (double)n_bytes);
}

static void tear_down(struct player *player)
{
	struct frag_mix *mix = player->state;
	word frag;

	if (player->side == SIDE_OURS) {
		while (hop_get(mix->hop, &frag, 1) == 1)
			ours_give(mix->state, 0, &frag, 1);
		for (uint32_t i = 0; i < STEPS; i++)
			if (mix->frags[i] != MR_ADDR_NONE)
				ours_give(mix->state, 0, &mix->frags[i], 1);
	}
	free_mix(player, mix);
}

static void rows(struct bench *bench)
{
	for (uint32_t n_threads = 1; n_threads <= 2; n_threads++) {
		struct player players[MAX_PLAYERS];
		struct row row = { .name = n_threads == 1 ? "threads=1" :
							    "threads=2",
				   .unit = "frag",
				   .n_threads = n_threads,
				   .players = players };
		struct player player = { .name = "frag cache",
					 .side = SIDE_OURS,
					 .setup = set_up,
					 .run = run_ours,
					 .count = count,
					 .teardown = tear_down,
					 .param = { n_threads } };

		bench_add(bench, players, &row.n_players, &player);
		player.name = "model of page_frag_cache";
		player.side = SIDE_KERNEL;
		player.run = run_kernel;
		bench_add(bench, players, &row.n_players, &player);
		takers_add_dpdk(bench, &row, &player, run_dpdk);
		player.name = "malloc";
		player.side = SIDE_MALLOC;
		player.run = run_malloc;
		bench_add(bench, players, &row.n_players, &player);
		bench_row(bench, &row);
	}
}

const struct workload b10_frag_mix = {
	.name = "B10",
	.title = "frag_mix",
	.what = "frags of mixed sizes, freed in another order",
	.source = "sizes of the simple Internet mix",
	.rows = rows,
};

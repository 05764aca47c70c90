/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B14: one core takes pages in bursts of 32, the other one touches their bytes
 * and gives them back:
 *
 *     core 0: take -> ring -> core 1: touch -> give
 *
 * With back=ring the pages come back through a second ring, and core 0 gives
 * them back where it took them. The rows by ring size show what a longer queue
 * costs (the advice of founding document 4): as a driver that completes late,
 * core 1 waits until the ring is three quarters full, then empties it. Such a
 * queue holds, and returns at once, pages that no cache has room for.
 *
 * What is taken is room for a frame of Ethernet behind a headroom, out of 2048
 * bytes: ours begins at one of the lines that are left over, an object of
 * rte_mempool has a header and padding that spread them.
 */
#include <stdio.h>

#include "pipe.h"
#include "takers.h"
#include "workloads.h"

/* A frame of Ethernet behind a headroom, in a buffer of OBJECT_BYTES. */
enum { FRAG_BYTES = 128 + 1518 };

enum { PAGES, TOUCH, RING, IS_BACK, MAGAZINE, IS_LATE }; /* of player.param */

static const char *const touch_names[] = { "none", "header", "header+64" };

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct pool_wish wish = {
		.n_objects = (uint32_t)player->param[PAGES],
		.n_threads = 2,
		.kind = player->param[MAGAZINE],
		.frag_bytes = FRAG_BYTES,
	};

	return pipe_make(player, &wish, (uint32_t)player->param[RING],
			 player->param[IS_BACK] != 0, why);
}

static ALWAYS_INLINE void touch_all(struct pipe *pipe, const word *words,
				    uint32_t n, uint64_t touch,
				    const struct taker taker)
{
	for (uint32_t i = 0; i < n && touch > 0; i++) {
		uint64_t *data = taker.data(pipe->pool, words[i]);

		data[0]++; /* as a forwarder writes the header */
		if (touch > 1)
			pipe->sum += data[8];
	}
}

/* Whether so much is there that a late core begins; left: what is to come. */
static bool is_time(const struct pipe *pipe, uint64_t left)
{
	const uint32_t most = (pipe->hop->mask + 1) / 4 * 3;

	return hop_count(pipe->hop) >= (left < most ? left : most);
}

/* Touch n objects, and give them back or send them back. */
static ALWAYS_INLINE void consume(struct pipe *pipe, uint64_t n, uint64_t touch,
				  bool is_late, const struct taker taker)
{
	struct patience patience = { 0 };
	word words[PIPE_BURST];
	bool is_on = !is_late;

	for (uint64_t done = 0; done < n;) {
		uint32_t got = 0;

		is_on = is_on || is_time(pipe, n - done);
		if (is_on)
			got = hop_get(pipe->hop, words, PIPE_BURST);
		if (got == 0) {
			is_on = !is_late;
			taker.idle(pipe->pool, 1);
			if (pipe_is_dead(pipe, &patience))
				return;
			continue;
		}
		patience = (struct patience){ 0 };
		touch_all(pipe, words, got, touch, taker);
		done += got;
		if (pipe->back == NULL)
			taker.give(pipe->pool, 1, words, got);
		else
			while (!hop_put(pipe->back, words, got))
				if (pipe_is_dead(pipe, &patience))
					return;
	}
	taker.idle(pipe->pool, 1);
}

static ALWAYS_INLINE uint64_t run(struct player *player, uint32_t thread,
				  uint64_t n, const struct taker taker)
{
	const bool is_late = player->param[IS_LATE] != 0;
	struct pipe *pipe = player->state;

	n = n_of_run(n, PIPE_BURST);
	if (thread == 0)
		return pipe_produce(pipe, n, taker);
	/* One copy of the loop for each: the touch is a constant in it. */
	switch (player->param[TOUCH]) {
	case 0:
		consume(pipe, n, 0, is_late, taker);
		break;
	case 1:
		consume(pipe, n, 1, is_late, taker);
		break;
	default:
		consume(pipe, n, 2, is_late, taker);
	}
	return 0;
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, OURS_TAKER);
}

static uint64_t run_malloc(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, MALLOC_TAKER);
}

/* The ring alone: objects of a fixed round that stays in the first cache. */
static ALWAYS_INLINE bool round_take(void *pool, uint32_t thread, word *words,
				     uint32_t n)
{
	struct round *round = pool;

	(void)thread;
	memcpy(words, round->words + round->next, n * sizeof(*words));
	round->next = (round->next + n) % ROUND_OBJECTS;
	return true;
}

static ALWAYS_INLINE void round_give(void *pool, uint32_t thread,
				     const word *words, uint32_t n)
{
	(void)pool;
	(void)thread;
	(void)words;
	(void)n;
}

static uint64_t run_round(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n,
		   (struct taker){ round_take, round_give, pointer_data,
				   no_idle });
}

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, DPDK_TAKER);
}
#else
#define run_dpdk NULL
#endif

static void row_of(struct bench *bench, uint32_t n_pages, uint32_t touch,
		   uint32_t ring, bool is_back, bool is_rings)
{
	struct player players[MAX_PLAYERS];
	char name[96], plot[48];
	struct row row = { .name = name,
			   .unit = "page",
			   .n_threads = 2,
			   .plot = plot,
			   .plot_count = is_rings ? "in_flight" : NULL,
			   .x_name = is_rings ? "entries of the ring" :
						"pages of the pool",
			   .x = is_rings ? ring : n_pages,
			   .players = players };
	struct player player = { .setup = set_up,
				 .count = pipe_count,
				 .teardown = pipe_free,
				 .param = { n_pages, touch, ring, is_back, 0,
					    is_rings } };

	snprintf(name, sizeof(name), "pages=%u touch=%s%s", n_pages,
		 touch_names[touch], is_back ? " back=ring" : "");
	if (is_rings) /* else it is 1024 */
		snprintf(name, sizeof(name), "ring=%u touch=%s", ring,
			 touch_names[touch]);
	snprintf(plot, sizeof(plot), "%s touch=%s%s",
		 is_rings ? "ring sizes" : "pool sizes", touch_names[touch],
		 is_back ? " back=ring" : "");
	takers_add_ours(bench, &row, &player, MAGAZINE, run_ours);
	takers_add_dpdk(bench, &row, &player, run_dpdk);
	player.name = "ring alone";
	player.side = SIDE_PLAIN;
	player.run = run_round;
	bench_add(bench, players, &row.n_players, &player);
	player.name = "malloc";
	player.side = SIDE_MALLOC;
	player.run = run_malloc;
	bench_add(bench, players, &row.n_players, &player);
	bench_row(bench, &row);
}

static void rows(struct bench *bench)
{
	static const uint32_t pools[] = { 2048, 16384, 32768, 65536, 131072 };

	for (uint32_t touch = 0; touch < 3; touch++)
		for (uint32_t i = 0; i < 5; i++)
			row_of(bench, pools[i], touch, 1024, false, false);
	for (uint32_t i = 0; i < 5; i++)
		row_of(bench, pools[i], 1, 1024, true, false);
	for (uint32_t ring = 64; ring <= 4096; ring *= 2)
		row_of(bench, 32768, 1, ring, false, true);
}

const struct workload b14_pipeline = {
	.name = "B14",
	.title = "pipeline",
	.what = "one core takes pages, another one touches and frees them",
	.source = "DPDK 57faf30b07; netdev, order-0 frees (ring sizes)",
	.rows = rows,
};

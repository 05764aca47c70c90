/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B15: as B14, but the second core queues the pages before it frees them, as a
 * traffic shaper does. How many it queues is a random walk between 0 and 16 Ki:
 * with each burst that comes the aim moves by up to 256, and all that is above
 * it goes. So pages come back in clumps, which no cache of a fixed size holds:
 * the figures beside the time say how often each went behind its cache.
 */
#include <stdio.h>

#include "pipe.h"
#include "usual.h"
#include "workloads.h"

enum { MAGAZINE }; /* of player.param */

enum {
	N_PAGES = 32768,
	RING = 1024,
	QUEUE = 32768,
	MAX_AIM = 16384,
	STEP = 256
};

/* First in, first out; stays filled from run to run. */
struct queue {
	uint32_t head, tail, aim;
	uint64_t random;
	word words[QUEUE];
};

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct pool_wish wish = {
		.n_objects = N_PAGES,
		.n_threads = 2,
		.kind = player->param[MAGAZINE],
	};
	struct queue *queue = calloc(1, sizeof(*queue));

	if (queue == NULL)
		return -1;
	queue->random = RANDOM_SEED;
	if (pipe_make(player, &wish, RING, false, why) < 0) {
		free(queue);
		return -1;
	}
	((struct pipe *)player->state)->extra = queue;
	return 0;
}

static void tear_down(struct player *player)
{
	struct pipe *pipe = player->state;
	struct queue *queue = pipe->extra;

	for (; queue->head != queue->tail; queue->head++)
		if (player->side == SIDE_OURS)
			ours_give(pipe->pool, 1,
				  &queue->words[queue->head % QUEUE], 1);
	free(queue);
	pipe_free(player);
}

/* Where the walk is now; at both ends it turns round. */
static uint32_t next_aim(struct queue *queue)
{
	int32_t aim;

	aim = (int32_t)queue->aim - STEP +
	      (int32_t)(random_u32(&queue->random) % (2 * STEP + 1));
	if (aim < 0)
		aim = -aim;
	if (aim > MAX_AIM)
		aim = 2 * MAX_AIM - aim;
	queue->aim = (uint32_t)aim;
	return queue->aim;
}

/* Queue what came, and free the oldest above the aim, in bursts. */
static ALWAYS_INLINE void shape(struct pipe *pipe, const word *words,
				uint32_t n, const struct taker taker)
{
	struct queue *queue = pipe->extra;
	const uint32_t aim = next_aim(queue);

	for (uint32_t i = 0; i < n; i++)
		queue->words[queue->tail++ % QUEUE] = words[i];
	while (queue->tail - queue->head > aim) {
		const uint32_t over = queue->tail - queue->head - aim;
		const uint32_t at = queue->head % QUEUE;
		uint32_t go = over < PIPE_BURST ? over : PIPE_BURST;

		if (go > QUEUE - at)
			go = QUEUE - at;
		taker.give(pipe->pool, 1, &queue->words[at], go);
		queue->head += go;
	}
}

static ALWAYS_INLINE uint64_t run(struct player *player, uint32_t thread,
				  uint64_t n, const struct taker taker)
{
	struct pipe *pipe = player->state;
	struct patience patience = { 0 };
	word words[PIPE_BURST];

	n = n_of_run(n, PIPE_BURST);
	if (thread == 0)
		return pipe_produce(pipe, n, taker);
	for (uint64_t done = 0; done < n;) {
		const uint32_t got = hop_get(pipe->hop, words, PIPE_BURST);

		if (got > 0) {
			shape(pipe, words, got, taker);
			done += got;
			patience = (struct patience){ 0 };
			continue;
		}
		taker.idle(pipe->pool, 1);
		if (pipe_is_dead(pipe, &patience))
			break;
	}
	taker.idle(pipe->pool, 1);
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

#ifdef BENCH_DPDK
static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	return run(player, thread, n, DPDK_TAKER);
}
#else
#define run_dpdk NULL
#endif

static void rows(struct bench *bench)
{
	struct player players[MAX_PLAYERS];
	struct row row = { .name = "queue=0..16384",
			   .unit = "page",
			   .n_threads = 2,
			   .players = players };
	struct player player = { .setup = set_up,
				 .count = pipe_count,
				 .teardown = tear_down };

	takers_add_ours(bench, &row, &player, MAGAZINE, run_ours);
	takers_add_dpdk(bench, &row, &player, run_dpdk);
	player.name = "malloc";
	player.side = SIDE_MALLOC;
	player.run = run_malloc;
	bench_add(bench, players, &row.n_players, &player);
	bench_row(bench, &row);
}

const struct workload b15_pipeline_qos = {
	.name = "B15",
	.title = "pipeline_qos",
	.what = "a pipeline with a queue in the middle that grows and shrinks",
	.source = "DPDK f5e1310f16",
	.rows = rows,
};

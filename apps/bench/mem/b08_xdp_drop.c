/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B08: receive and drop: bursts from an rx ring of 1024 buffers, all dropped,
 * and the ring refilled 64 at a time. The ring is an array: a device that is
 * never the bottleneck.
 *
 * And the ladder of the founding document on recycling (netdev, page_pool:
 * recycling and inlining): a NAT-like forward of single frames, in which one
 * of 16 pages is kept by somebody else and goes back to the page allocator, on
 * the model of the kernel's pool in five steps, beside ours. There a change of
 * one step was a loss (572 to 540 Mbit/s); here every step is a player of its
 * own.
 */
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ours.h"
#include "peer_dpdk.h"
#include "usual.h"
#include "workloads.h"

enum {
	N_RING = 1024,
	REFILL = 64,
	MAX_BURST = 256,
	N_PAGES = 16384,
	PAGE_BYTES = 2048,
};

enum { BURST }; /* of player.param */

/* What take and give are for a pool; inlined into the loop of each player. */
typedef uint32_t take_fn(struct player *player, uint64_t *pages, uint32_t n);
typedef void give_fn(struct player *player, const uint64_t *pages, uint32_t n);

/*
 * The rx ring: what is posted lies between tail and head. It begins full, and
 * ends empty, so that all pages are at home after each sample.
 */
static inline __attribute__((always_inline)) uint64_t
receive_and_drop(struct player *player, uint64_t n, take_fn *take,
		 give_fn *give)
{
	const uint32_t burst = (uint32_t)player->param[BURST];
	uint64_t ring[N_RING];
	uint32_t head = 0, tail = 0;
	uint64_t done;

	while (head < N_RING)
		if (take(player, ring + head, REFILL) == REFILL)
			head += REFILL;
		else
			break;
	for (done = 0; done < n && head - tail >= burst; done += burst) {
		give(player, ring + tail % N_RING, burst);
		tail += burst;
		while (N_RING - (head - tail) >= REFILL &&
		       take(player, ring + head % N_RING, REFILL) == REFILL)
			head += REFILL;
	}
	for (; tail != head; tail += REFILL / 8)
		give(player, ring + tail % N_RING, REFILL / 8);
	return done;
}

static uint32_t take_ours(struct player *player, uint64_t *pages, uint32_t n)
{
	struct ours *ours = player->state;

	return mr_frag_alloc_bulk(ours->caches[0], pages, n, PAGE_BYTES);
}

static void give_ours(struct player *player, const uint64_t *pages, uint32_t n)
{
	struct ours *ours = player->state;

	mr_frag_free_bulk(ours->caches[0], pages, n);
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return receive_and_drop(player, n, take_ours, give_ours);
}

static void give_frames(struct player *player, const uint64_t *pages,
			uint32_t n)
{
	struct ours *ours = player->state;
	struct mr_frame frames[MAX_BURST];

	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ .addr = pages[i], .len = 64 };
	keep(frames);
	mr_frame_free_bulk(ours->caches[0], frames, n);
}

static uint64_t run_frames(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return receive_and_drop(player, n, take_ours, give_frames);
}

#ifdef BENCH_DPDK
static uint32_t take_dpdk(struct player *player, uint64_t *pages, uint32_t n)
{
	struct dpdk_pool *pool = player->state;

	return rte_mempool_get_bulk(pool->mp, (void **)pages, n) == 0 ? n : 0;
}

static void give_dpdk(struct player *player, const uint64_t *pages, uint32_t n)
{
	struct dpdk_pool *pool = player->state;

	rte_mempool_put_bulk(pool->mp, (void *const *)pages, n);
}

static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return receive_and_drop(player, n, take_dpdk, give_dpdk);
}
#else
static player_run_fn *const run_dpdk;
#endif

static uint32_t take_model(struct player *player, uint64_t *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		pages[i] = model_alloc(player->state, true);
		if (pages[i] == MODEL_NONE)
			return i;
	}
	return n;
}

/* XDP_DROP: directly, in the poll loop. */
static void give_model(struct player *player, const uint64_t *pages, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		model_put_direct(player->state, (uint32_t)pages[i]);
}

static uint64_t run_model(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return receive_and_drop(player, n, take_model, give_model);
}

static void row_of(struct bench *bench, uint32_t burst)
{
	struct player players[MAX_PLAYERS];
	char name[32];
	struct row row = { .name = name,
			   .unit = "frame",
			   .plot = "drop",
			   .x_name = "frames in a burst",
			   .x = burst,
			   .players = players };
	struct player ours = { .name = "addresses",
			       .side = SIDE_OURS,
			       .setup = ours_set_up,
			       .run = run_ours,
			       .count = ours_player_count,
			       .teardown = ours_tear_down,
			       .param = { burst } };

	snprintf(name, sizeof(name), "drop burst=%u", burst);
	bench_add(bench, players, &row.n_players, &ours);
	ours.name = "frames";
	ours.run = run_frames;
	bench_add(bench, players, &row.n_players, &ours);
	dpdk_add_all(bench, &row, C_ALL,
		     &(struct player){ .run = run_dpdk, .param = { burst } });
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "model of page_pool",
				    .side = SIDE_KERNEL,
				    .setup = model_set_up,
				    .run = run_model,
				    .teardown = model_tear_down,
				    .param = { burst } });
	bench_row(bench, &row);
}

/*
 * The ladder. Frames are received one by one, changed as NAT changes them, sent
 * through a tx ring of 256, and their pages come back 256 frames later, outside
 * of the poll loop: what the kernel calls no allow_direct.
 */
enum { N_TX = 256, KEPT = 16 };

struct ladder {
	struct model_page_pool *model;
	struct ours ours;
	uint8_t *memory; /* the headers of the model's pages */
};

/* A new source address, and the checksum of the header by what it changes. */
static inline void nat(uint8_t *header, uint32_t address)
{
	uint32_t old, sum;
	uint16_t checksum;

	memcpy(&old, header + 26, sizeof(old));
	memcpy(&checksum, header + 24, sizeof(checksum));
	sum = (uint16_t)~checksum + (uint16_t)~old + (uint16_t)(~old >> 16) +
	      (uint16_t)address + (address >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	checksum = (uint16_t) ~((sum & 0xffff) + (sum >> 16));
	memcpy(header + 26, &address, sizeof(address));
	memcpy(header + 24, &checksum, sizeof(checksum));
	header[22]--; /* TTL */
}

typedef uint64_t take_one_fn(struct ladder *ladder);
typedef void give_one_fn(struct ladder *ladder, uint64_t page, bool is_kept);
typedef uint8_t *bytes_fn(struct ladder *ladder, uint64_t page);

static inline __attribute__((always_inline)) uint64_t
forward(struct player *player, uint64_t n, take_one_fn *take, give_one_fn *give,
	bytes_fn *bytes)
{
	struct ladder *ladder = player->state;
	uint64_t tx[N_TX];

	if (n < N_TX)
		n = N_TX;
	for (uint64_t i = 0; i < n + N_TX; i++) {
		uint64_t *slot = &tx[i % N_TX];

		if (i >= N_TX)
			give(ladder, *slot, i % KEPT == 0);
		if (i < n) {
			*slot = take(ladder);
			nat(bytes(ladder, *slot), (uint32_t)i);
		}
	}
	return n;
}

static uint8_t *bytes_of_model(struct ladder *ladder, uint64_t page)
{
	return ladder->memory + (page - 1) * PAGE_BYTES;
}

/* Step 1: every page from the page allocator and back to it. */
static uint64_t take_1(struct ladder *ladder)
{
	uint32_t page = MODEL_NONE;

	model_buddy_alloc(ladder->model, &page, 1);
	return page;
}

static void give_1(struct ladder *ladder, uint64_t page, bool is_kept)
{
	const uint32_t number = (uint32_t)page;

	(void)is_kept;
	model_buddy_free(ladder->model, &number, 1);
}

/* Called and not inlined, as before steps 4 and 5. */
static __attribute__((noinline)) bool outlined_refill(struct ladder *ladder)
{
	return model_refill(ladder->model);
}

static __attribute__((noinline)) uint32_t
outlined_bulk(struct model_page_pool *pool, uint32_t *pages, uint32_t n)
{
	return model_buddy_alloc(pool, pages, n);
}

static __attribute__((noinline)) uint32_t slow(struct ladder *ladder,
					       bool is_bulk, bool is_inline)
{
	struct model_page_pool *pool = ladder->model;
	uint32_t page;

	pool->n_slow++;
	if (!is_bulk)
		return model_buddy_alloc(pool, &page, 1) == 1 ? page :
								MODEL_NONE;
	pool->n_cached =
		is_inline ? model_buddy_alloc(pool, pool->cache, MODEL_REFILL) :
			    outlined_bulk(pool, pool->cache, MODEL_REFILL);
	return pool->n_cached > 0 ? pool->cache[--pool->n_cached] : MODEL_NONE;
}

static __attribute__((noinline)) void outlined_put(struct ladder *ladder,
						   uint32_t page)
{
	model_put_ring(ladder->model, page);
}

/* Step 2: one page at a time through the locked ring. */
static uint64_t take_2(struct ladder *ladder)
{
	if (ladder->model->n_cached > 0 || outlined_refill(ladder))
		return ladder->model->cache[--ladder->model->n_cached];
	return slow(ladder, false, false);
}

static void give_2(struct ladder *ladder, uint64_t page, bool is_kept)
{
	if (is_kept)
		give_1(ladder, page, true);
	else
		outlined_put(ladder, (uint32_t)page);
}

/* Step 3: what is missing comes 64 at a time. */
static uint64_t take_3(struct ladder *ladder)
{
	if (ladder->model->n_cached > 0 || outlined_refill(ladder))
		return ladder->model->cache[--ladder->model->n_cached];
	return slow(ladder, true, false);
}

/* Step 4: and without a call for that. */
static uint64_t take_4(struct ladder *ladder)
{
	if (ladder->model->n_cached > 0 || outlined_refill(ladder))
		return ladder->model->cache[--ladder->model->n_cached];
	return slow(ladder, true, true);
}

/* Step 5: all of it inlined. */
static uint64_t take_5(struct ladder *ladder)
{
	return model_alloc(ladder->model, true);
}

static uint8_t *bytes_of_ours(struct ladder *ladder, uint64_t page)
{
	return (uint8_t *)mr_region_base(mr_pool_region(ladder->ours.pool)) +
	       page;
}

static uint64_t take_cached(struct ladder *ladder)
{
	uint64_t page = 0;

	mr_frag_alloc_bulk(ladder->ours.caches[0], &page, 1, PAGE_BYTES);
	return page;
}

/* What is kept goes back through another cache, as another thread's. */
static void give_cached(struct ladder *ladder, uint64_t page, bool is_kept)
{
	mr_frag_free_bulk(ladder->ours.caches[is_kept], &page, 1);
}

static uint64_t run_1(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return forward(player, n, take_1, give_1, bytes_of_model);
}

static uint64_t run_2(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return forward(player, n, take_2, give_2, bytes_of_model);
}

static uint64_t run_3(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return forward(player, n, take_3, give_2, bytes_of_model);
}

static uint64_t run_4(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return forward(player, n, take_4, give_2, bytes_of_model);
}

static void give_5(struct ladder *ladder, uint64_t page, bool is_kept)
{
	if (is_kept)
		give_1(ladder, page, true);
	else
		model_put_ring(ladder->model, (uint32_t)page);
}

static uint64_t run_5(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return forward(player, n, take_5, give_5, bytes_of_model);
}

static uint64_t run_cached(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return forward(player, n, take_cached, give_cached, bytes_of_ours);
}

static int set_up_ladder(struct player *player, struct mr_reason *why)
{
	struct ladder *ladder = calloc(1, sizeof(*ladder));
	int result = -1;

	if (ladder == NULL)
		return -1;
	player->state = ladder;
	if (player->side == SIDE_OURS) {
		result = ours_make(&ladder->ours, player->bench, NULL, 2, why);
	} else {
		ladder->model = model_make(N_PAGES, 1024);
		ladder->memory = calloc(N_PAGES, PAGE_BYTES);
		if (ladder->model != NULL && ladder->memory != NULL)
			return 0;
		free(ladder->memory);
		if (ladder->model != NULL)
			model_free(ladder->model);
	}
	if (result < 0)
		free(ladder);
	return result;
}

static void tear_down_ladder(struct player *player)
{
	struct ladder *ladder = player->state;

	if (ladder->model != NULL)
		model_free(ladder->model);
	else
		ours_free(&ladder->ours);
	free(ladder->memory);
	free(ladder);
}

static void count_ladder(struct player *player, struct counts *counts)
{
	const struct ladder *ladder = player->state;

	if (ladder->model == NULL) {
		ours_count(&ladder->ours, player, counts);
		return;
	}
	model_count(ladder->model, player, counts);
}

static void rows_of_ladder(struct bench *bench)
{
	static const struct {
		const char *name;
		enum side side;
		player_run_fn *run;
	} steps[] = {
		{ "recycling", SIDE_OURS, run_cached },
		{ "1 no recycling", SIDE_KERNEL, run_1 },
		{ "2 recycling, one by one", SIDE_KERNEL, run_2 },
		{ "3 + bulk refill", SIDE_KERNEL, run_3 },
		{ "4 + bulk path inlined", SIDE_KERNEL, run_4 },
		{ "5 + refill inlined", SIDE_KERNEL, run_5 },
	};
	struct player players[MAX_PLAYERS];
	struct row row = { .name = "ladder of a forward",
			   .unit = "frame",
			   .players = players };

	for (uint32_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
		bench_add(bench, players, &row.n_players,
			  &(struct player){ .name = steps[i].name,
					    .side = steps[i].side,
					    .setup = set_up_ladder,
					    .run = steps[i].run,
					    .count = count_ladder,
					    .teardown = tear_down_ladder });
	bench_row(bench, &row);
}

static void rows(struct bench *bench)
{
	for (uint32_t burst = 8; burst <= MAX_BURST; burst *= 2)
		row_of(bench, burst);
	rows_of_ladder(bench);
}

const struct workload b08_xdp_drop = {
	.name = "B08",
	.title = "xdp_drop",
	.what = "receive and drop; recycling on and off in a forward",
	.source = "founding documents 2, 3 and 5",
	.rows = rows,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ladder of B08, of the founding document on recycling (netdev, page_pool:
 * recycling and inlining): a NAT-like forward of single frames, in which one
 * of 16 pages is kept by somebody else and goes back to the page allocator.
 * Frames are received one by one, changed as NAT changes them, sent through a
 * tx ring of 256, and their pages come back 256 frames later, outside of the
 * poll loop: what the kernel calls no allow_direct.
 *
 * On the model of the kernel's pool in five steps, of which one was a loss
 * there (572 to 540 Mbit/s); on ours with recycling and without, with the path
 * of one page inlined (mr_frag_alloc()) and called (mr_frag_alloc_bulk() for
 * 1), and by bursts.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ours.h"
#include "usual.h"
#include "workloads.h"

enum {
	N_TX = 256,
	KEPT = 16, /* one of so many is kept */
	BURST = 32,
	N_PAGES = 16384,
	PAGE_BYTES = 2048,
};

struct ladder {
	struct model_page_pool *model;
	struct ours ours;
	uint8_t *base; /* of the pages */
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
	return ladder->base + (page - 1) * PAGE_BYTES;
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
	return ladder->base + page;
}

/* What is kept goes back through another cache, as another thread's. */
static uint64_t take_inline(struct ladder *ladder)
{
	return mr_frag_alloc(ladder->ours.caches[0], PAGE_BYTES);
}

static void give_inline(struct ladder *ladder, uint64_t page, bool is_kept)
{
	mr_frag_free(ladder->ours.caches[is_kept], page);
}

static uint64_t take_outlined(struct ladder *ladder)
{
	uint64_t page = MR_ADDR_NONE;

	mr_frag_alloc_bulk(ladder->ours.caches[0], &page, 1, PAGE_BYTES);
	return page;
}

static void give_outlined(struct ladder *ladder, uint64_t page, bool is_kept)
{
	mr_frag_free_bulk(ladder->ours.caches[is_kept], &page, 1);
}

/* No page comes back where it was taken: the kernel's no allow_direct. */
static void give_away(struct ladder *ladder, uint64_t page, bool is_kept)
{
	(void)is_kept;
	mr_frag_free(ladder->ours.caches[1], page);
}

static uint64_t take_uncached(struct ladder *ladder)
{
	uint64_t page = MR_ADDR_NONE;

	mr_page_alloc_bulk(ladder->ours.pool, 0, &page, 1);
	return page;
}

static void give_uncached(struct ladder *ladder, uint64_t page, bool is_kept)
{
	(void)is_kept;
	mr_page_free_bulk(ladder->ours.pool, 0, &page, 1);
}

static uint64_t run_inline(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return forward(player, n, take_inline, give_inline, bytes_of_ours);
}

static uint64_t run_outlined(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return forward(player, n, take_outlined, give_outlined, bytes_of_ours);
}

static uint64_t run_away(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return forward(player, n, take_inline, give_away, bytes_of_ours);
}

static uint64_t run_uncached(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return forward(player, n, take_uncached, give_uncached, bytes_of_ours);
}

/* The last BURST of the tx ring completed; KEPT of them are others' still. */
static void complete_burst(struct ladder *ladder, const uint64_t *pages)
{
	uint64_t own[BURST];
	uint32_t n = 0;

	for (uint32_t i = 0; i < BURST; i++) {
		if (i % KEPT == 0)
			mr_frag_free(ladder->ours.caches[1], pages[i]);
		else
			own[n++] = pages[i];
	}
	mr_frag_free_bulk(ladder->ours.caches[0], own, n);
}

/* As a program of ours would do it: what a receive burst brings at once. */
static uint64_t run_bursts(struct player *player, uint32_t thread, uint64_t n)
{
	struct ladder *ladder = player->state;
	uint64_t tx[N_TX];

	(void)thread;
	n = n < N_TX ? N_TX : (n + BURST - 1) / BURST * BURST;
	for (uint64_t done = 0; done < n + N_TX; done += BURST) {
		uint64_t *slots = &tx[done % N_TX];

		if (done >= N_TX)
			complete_burst(ladder, slots);
		if (done >= n)
			continue;
		if (mr_frag_alloc_bulk(ladder->ours.caches[0], slots, BURST,
				       PAGE_BYTES) != BURST)
			return 0; /* cannot be: there are 16 Ki */
		for (uint32_t i = 0; i < BURST; i++)
			nat(ladder->base + slots[i], (uint32_t)(done + i));
	}
	return n;
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

static int set_up_ladder(struct player *player, struct mr_reason *why)
{
	struct ladder *ladder = calloc(1, sizeof(*ladder));
	int result = -1;

	if (ladder == NULL)
		return -1;
	player->state = ladder;
	if (player->side == SIDE_OURS) {
		result = ours_make(&ladder->ours, player->bench, NULL, 2, why);
		if (result == 0)
			ladder->base = mr_region_base(
				mr_pool_region(ladder->ours.pool));
	} else {
		ladder->model = model_make(N_PAGES, 1024);
		ladder->base = calloc(N_PAGES, PAGE_BYTES);
		if (ladder->model != NULL && ladder->base != NULL)
			return 0;
		free(ladder->base);
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

	if (ladder->model != NULL) {
		model_free(ladder->model);
		free(ladder->base);
	} else {
		ours_free(&ladder->ours);
	}
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

void b08_rows_of_ladder(struct bench *bench)
{
	static const struct {
		const char *name;
		enum side side;
		player_run_fn *run;
	} steps[] = {
		{ "recycling", SIDE_OURS, run_inline },
		{ "recycling, outlined", SIDE_OURS, run_outlined },
		{ "recycling, 32 at a time", SIDE_OURS, run_bursts },
		{ "recycling through the depot", SIDE_OURS, run_away },
		{ "no recycling", SIDE_OURS, run_uncached },
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

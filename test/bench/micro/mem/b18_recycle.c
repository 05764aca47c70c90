/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B18: pages from a completion ring into a fill ring.
 *
 * Once straight, as DPDK's rte_eth_recycle_mbufs() does for a pair of queues,
 * and once through the thread's cache, as our drivers do. The rings are arrays
 * of 64-bit addresses as AF_XDP has them, 2048 entries, without a kernel at the
 * other end: what comes out of the fill ring is what completes next. The
 * difference is what the pool costs such a round, and all that a straight copy
 * could win.
 */
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "ours.h"
#include "workloads.h"

enum { N_RING = 2048 };

struct wire {
	struct ours ours;
	uint32_t at; /* next to complete, and next to fill, behind it */
	uint64_t ring[N_RING];
	uint64_t burst[MR_BURST_MAX];
};

static int set_up(struct player *player, struct mr_reason *why)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 8192,
					       .page_bytes = 2048 };
	struct wire *wire = calloc(1, sizeof(*wire));

	if (wire == NULL)
		return -1;
	player->state = wire;
	if (ours_make(&wire->ours, player->bench, &config, 1, why) < 0) {
		free(wire);
		return -1;
	}
	/* 8192 pages: there are enough. */
	mr_frag_alloc_bulk(wire->ours.caches[0], wire->ring, N_RING, 2048);
	return 0;
}

static void tear_down(struct player *player)
{
	struct wire *wire = player->state;

	mr_frag_free_bulk(wire->ours.caches[0], wire->ring, N_RING);
	ours_free(&wire->ours);
	free(wire);
}

/* The next n completed addresses, which lie in one piece: n divides N_RING. */
static uint64_t *complete(struct wire *wire, uint32_t n)
{
	uint64_t *at = &wire->ring[wire->at];

	wire->at = (wire->at + n) % N_RING;
	return at;
}

/*
 * Straight: what completed is copied, offset masked away, into the fill ring.
 * The entry goes to the place that it came from, so both rings stay valid.
 */
static uint64_t run_straight(struct player *player, uint32_t thread, uint64_t n)
{
	struct wire *wire = player->state;
	const uint32_t burst = (uint32_t)player->param[0];

	(void)thread;
	for (uint64_t i = 0; i < n; i += burst) {
		uint64_t *completed = complete(wire, burst);

		for (uint32_t k = 0; k < burst; k++)
			wire->burst[k] = completed[k] & ~UINT64_C(2047);
		keep(wire->burst);
		memcpy(completed, wire->burst, burst * sizeof(*completed));
		keep(completed);
	}
	return n;
}

/* Through the cache: freed, and as many allocated again. */
static uint64_t run_pool(struct player *player, uint32_t thread, uint64_t n)
{
	struct wire *wire = player->state;
	struct mr_cache *cache = wire->ours.caches[0];
	const uint32_t burst = (uint32_t)player->param[0];

	(void)thread;
	for (uint64_t i = 0; i < n; i += burst) {
		uint64_t *completed = complete(wire, burst);

		mr_frag_free_bulk(cache, completed, burst);
		if (mr_frag_alloc_bulk(cache, completed, burst, 2048) != burst)
			return i; /* cannot be: they have just come back */
		keep(completed);
	}
	return n;
}

static void count(struct player *player, struct counts *counts)
{
	const struct wire *wire = player->state;

	ours_count(&wire->ours, player, counts);
}

static void rows(struct bench *bench)
{
	static const struct {
		const char *name;
		uint32_t burst;
	} bursts[] = { { "burst=32", 32 },
		       { "burst=64", 64 },
		       { "burst=256", 256 } };

	for (uint32_t b = 0; b < 3; b++) {
		struct player players[2];
		struct row row = { .name = bursts[b].name,
				   .unit = "page",
				   .players = players };

		bench_add(bench, players, &row.n_players,
			  &(struct player){ .name = "through the cache",
					    .side = SIDE_OURS,
					    .setup = set_up,
					    .run = run_pool,
					    .count = count,
					    .teardown = tear_down,
					    .param = { bursts[b].burst } });
		bench_add(bench, players, &row.n_players,
			  &(struct player){ .name = "straight",
					    .side = SIDE_PLAIN,
					    .setup = set_up,
					    .run = run_straight,
					    .count = count,
					    .teardown = tear_down,
					    .param = { bursts[b].burst } });
		bench_row(bench, &row);
	}
}

const struct workload b18_recycle = {
	.name = "B18",
	.title = "recycle",
	.what = "completion ring to fill ring: straight, or through the pool",
	.source = "DPDK rte_eth_recycle_mbufs(), e43d2b89dd",
	.rows = rows,
};

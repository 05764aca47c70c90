/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive and drop of B08 as a driver and an application do it: what a receive
 * burst writes for each frame is written, the application reads the lengths
 * and gives all of them back.
 *
 *                  written per frame             given back with
 *     ours         16 bytes, all frames' in one  mr_frame_free_bulk()
 *     DPDK         8, its pointer, in one, and   rte_pktmbuf_free_bulk()
 *                  32 in the frame's own line
 *     DPDK's, raw  the same                      rte_mempool_put_bulk()
 *
 * The 32 bytes are those that DPDK's drivers with vectors write: rearm_data,
 * ol_flags and rx_descriptor_fields1. "raw" is right for a sender that was
 * promised one pool and one owner (RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE). Ours
 * looks at the pool of each frame, and at its owners once one of the pool has
 * had two. What a driver writes to its device when it refills the ring is left
 * out on all sides; there DPDK's read the frame's own line once more.
 */
#include <stdio.h>
#include <string.h>

#include "bench.h"
#include "drop.h"
#include "ours.h"
#include "peer_dpdk.h"
#include "workloads.h"

enum { N_BUFFERS = 4096, FRAME_BYTES = 60, NAME_BYTES = 40 };

/* What the device reports, which the compiler must not know. */
static inline uint32_t frame_bytes(void)
{
	uint32_t n_bytes = FRAME_BYTES;

	__asm__("" : "+r"(n_bytes));
	return n_bytes;
}

/* Somebody looks at the sum. */
static inline void use(uint64_t sum)
{
	__asm__ __volatile__("" : : "r"(sum));
}

static uint32_t take_pages(struct player *player, uint64_t *pages, uint32_t n)
{
	struct ours *ours = player->state;

	return mr_frag_alloc_bulk(ours->caches[0], pages, n, DROP_BYTES);
}

static void give_frames(struct player *player, uint64_t *pages, uint32_t n)
{
	struct ours *ours = player->state;
	struct mr_frame frames[DROP_MAX_BURST];
	const uint32_t n_bytes = frame_bytes();
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		frames[i] =
			(struct mr_frame){ .addr = pages[i], .len = n_bytes };
	keep(frames); /* the driver returns */
	for (uint32_t i = 0; i < n; i++)
		sum += frames[i].len;
	use(sum);
	mr_frame_free_bulk(ours->caches[0], frames, n);
}

static uint64_t run_frames(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return drop_run(player, n, take_pages, give_frames);
}

#ifdef BENCH_DPDK
/* These 32 bytes, behind the address that the line begins with. */
struct rx_half {
	uint16_t data_off, refcnt, nb_segs, port;
	uint64_t ol_flags;
	uint32_t packet_type, pkt_len;
	uint16_t data_len, vlan_tci;
	uint32_t rss_hash;
};

_Static_assert(sizeof(struct rx_half) == 32 &&
		       offsetof(dpdk_frame, rx_descriptor_fields1) -
				       offsetof(dpdk_frame, rearm_data) ==
			       offsetof(struct rx_half, packet_type) &&
		       offsetof(dpdk_frame, pkt_len) -
				       offsetof(dpdk_frame, rearm_data) ==
			       offsetof(struct rx_half, pkt_len),
	       "as DPDK has them");

static uint32_t take_theirs(struct player *player, uint64_t *frames, uint32_t n)
{
	struct dpdk_pool *pool = player->state;

	return rte_mempool_get_bulk(pool->mp, (void **)frames, n) == 0 ? n : 0;
}

/* What the driver's burst does, and the application's look at the lengths. */
static inline __attribute__((always_inline)) void
receive_theirs(dpdk_frame **frames, const uint64_t *ring, uint32_t n)
{
	const uint32_t n_bytes = frame_bytes();
	const struct rx_half half = { .data_off = RTE_PKTMBUF_HEADROOM,
				      .refcnt = 1,
				      .nb_segs = 1,
				      .pkt_len = n_bytes,
				      .data_len = (uint16_t)n_bytes };
	uint64_t sum = 0;

	memcpy(frames, ring, n * sizeof(frames[0]));
	for (uint32_t i = 0; i < n; i++)
		memcpy(&frames[i]->rearm_data, &half, sizeof(half));
	keep(frames); /* the driver returns */
	for (uint32_t i = 0; i < n; i++)
		sum += frames[i]->pkt_len;
	use(sum);
}

static void give_theirs(struct player *player, uint64_t *ring, uint32_t n)
{
	dpdk_frame *frames[DROP_MAX_BURST];

	(void)player;
	receive_theirs(frames, ring, n);
	rte_pktmbuf_free_bulk(frames, n);
}

static void give_raw(struct player *player, uint64_t *ring, uint32_t n)
{
	struct dpdk_pool *pool = player->state;
	dpdk_frame *frames[DROP_MAX_BURST];

	receive_theirs(frames, ring, n);
	rte_mempool_put_bulk(pool->mp, (void *const *)frames, n);
}

static uint64_t run_theirs(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return drop_run(player, n, take_theirs, give_theirs);
}

static uint64_t run_raw(struct player *player, uint32_t thread, uint64_t n)
{
	(void)thread;
	return drop_run(player, n, take_theirs, give_raw);
}

/* A player for each handler with a cache, by its name and what it is given. */
static void add_theirs(struct bench *bench, struct row *row, uint32_t burst,
		       player_run_fn *run, const char *what,
		       char names[MAX_PLAYERS][NAME_BYTES])
{
	const struct player like = {
		.run = run,
		.param = { [DROP_BURST] = burst, [P_PAGES] = N_BUFFERS }
	};
	uint32_t i = row->n_players;

	dpdk_add_all(bench, row, C512 | C256, &like);
	for (; i < row->n_players; i++) {
		struct player *player = &row->players[i];

		snprintf(names[i], NAME_BYTES, "%s%s", player->name, what);
		player->name = names[i];
		player->setup = dpdk_frames_set_up;
	}
}
#endif

static void row_of(struct bench *bench, uint32_t burst)
{
	struct player players[MAX_PLAYERS];
	char name[32];
	struct row row = { .name = name,
			   .unit = "frame",
			   .plot = "receive and drop",
			   .x_name = "frames in a burst",
			   .x = burst,
			   .players = players };
#ifdef BENCH_DPDK
	char names[MAX_PLAYERS][NAME_BYTES];
#endif

	snprintf(name, sizeof(name), "frames burst=%u", burst);
	bench_add(bench, players, &row.n_players,
		  &(struct player){ .name = "frames",
				    .side = SIDE_OURS,
				    .setup = ours_set_up,
				    .run = run_frames,
				    .count = ours_player_count,
				    .teardown = ours_tear_down,
				    .param = { [DROP_BURST] = burst,
					       [P_PAGES] = N_BUFFERS } });
#ifdef BENCH_DPDK
	add_theirs(bench, &row, burst, run_theirs, ", frames", names);
	add_theirs(bench, &row, burst, run_raw, ", raw", names);
#endif
	bench_row(bench, &row);
}

void b08_rows_of_frames(struct bench *bench)
{
	for (uint32_t burst = 8; burst <= DROP_MAX_BURST; burst *= 2)
		row_of(bench, burst);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * B11: a frag that turns out not to be wanted, as when XDP drops a packet of a
 * tun device: undo the cut (abort), undo the reference only (abort_ref), or
 * free it as any other.
 */
#include <stdio.h>

#include "cutters.h"
#include "workloads.h"

enum { SIZE }; /* of player.param */

enum { ALIGN = 64, MEMORY = 8 << 20 };

static int set_up(struct player *player, struct mr_reason *why)
{
	player->state = cutter_make(player, MEMORY, why);
	return player->state == NULL ? -1 : 0;
}

static void tear_down(struct player *player)
{
	cutter_free(player, player->state);
}

static uint64_t run_ours_abort(struct player *player, uint32_t thread,
			       uint64_t n)
{
	const struct our_frags *ours = player->state;
	const uint32_t size = (uint32_t)player->param[SIZE];
	uint64_t addr;

	(void)thread;
	for (uint64_t i = 0; i < n; i++)
		if (mr_frag_cache_alloc(ours->frags, size, ALIGN, &addr) < 0 ||
		    mr_frag_cache_abort(ours->frags, addr, size) < 0)
			return 0;
	return n;
}

static uint64_t run_ours_abort_ref(struct player *player, uint32_t thread,
				   uint64_t n)
{
	const struct our_frags *ours = player->state;
	const uint32_t size = (uint32_t)player->param[SIZE];
	uint64_t addr;

	(void)thread;
	for (uint64_t i = 0; i < n; i++)
		if (mr_frag_cache_alloc(ours->frags, size, ALIGN, &addr) < 0 ||
		    mr_frag_cache_abort_ref(ours->frags, addr, size) < 0)
			return 0;
	return n;
}

static uint64_t run_kernel_abort(struct player *player, uint32_t thread,
				 uint64_t n)
{
	const uint32_t size = (uint32_t)player->param[SIZE];

	(void)thread;
	for (uint64_t i = 0; i < n; i++) {
		void *data = kernel_frag_alloc(player->state, size, ALIGN);

		if (data == NULL)
			return 0;
		kernel_frag_abort(player->state, data, size);
	}
	return n;
}

static ALWAYS_INLINE uint64_t run_free(struct player *player, uint64_t n,
				       const struct cutter cutter)
{
	const uint32_t size = (uint32_t)player->param[SIZE];
	word frag;

	for (uint64_t i = 0; i < n; i++) {
		if (cutter.cut(player->state, &frag, 1, size, ALIGN,
			       CUT_ALLOC) != 1)
			return 0;
		cutter.give(player->state, 0, &frag, 1);
	}
	return n;
}

static uint64_t run_ours_free(struct player *player, uint32_t thread,
			      uint64_t n)
{
	(void)thread;
	return run_free(player, n, OURS_CUTTER);
}

static uint64_t run_kernel_free(struct player *player, uint32_t thread,
				uint64_t n)
{
	(void)thread;
	return run_free(player, n, KERNEL_CUTTER);
}

static void rows(struct bench *bench)
{
	static const uint32_t sizes[] = { 64, 256, 1500, 2048 };
	static const struct {
		const char *name;
		enum side side;
		uint64_t (*run)(struct player *, uint32_t, uint64_t);
	} ways[] = {
		{ "alloc + abort", SIDE_OURS, run_ours_abort },
		{ "alloc + abort_ref", SIDE_OURS, run_ours_abort_ref },
		{ "alloc + free", SIDE_OURS, run_ours_free },
		{ "page_frag_cache alloc + abort", SIDE_KERNEL,
		  run_kernel_abort },
		{ "page_frag_cache alloc + free", SIDE_KERNEL,
		  run_kernel_free },
	};

	for (uint32_t s = 0; s < 4; s++) {
		struct player players[MAX_PLAYERS];
		char name[32];
		struct row row = { .name = name,
				   .unit = "frag",
				   .players = players };

		snprintf(name, sizeof(name), "len=%u", sizes[s]);
		for (uint32_t i = 0; i < 5; i++)
			bench_add(bench, players, &row.n_players,
				  &(struct player){ .name = ways[i].name,
						    .side = ways[i].side,
						    .setup = set_up,
						    .run = ways[i].run,
						    .teardown = tear_down,
						    .param = { sizes[s] } });
		bench_row(bench, &row);
	}
}

const struct workload b11_frag_abort = {
	.name = "B11",
	.title = "frag_abort",
	.what = "undo the last cut, or free it",
	.source = "netdev, page_frag_cache part 2: tun, XDP_DROP",
	.rows = rows,
};

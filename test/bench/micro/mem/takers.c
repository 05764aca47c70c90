/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "takers.h"
#include "usual.h"

static void *make_ours(struct bench *bench, const struct pool_wish *wish,
		       struct mr_reason *why)
{
	const struct mr_pool_config config = { .n_pages = wish->n_objects,
					       .page_bytes = OBJECT_BYTES,
					       .magazine_pages =
						       (uint32_t)wish->kind,
					       .safety = wish->safety };
	struct our_pool *our = malloc(sizeof(*our));

	if (our == NULL)
		return NULL;
	if (ours_make(&our->ours, bench, &config, wish->n_threads, why) < 0) {
		free(our);
		return NULL;
	}
	our->frag_bytes =
		wish->frag_bytes > 0 ? wish->frag_bytes : OBJECT_BYTES;
	our->base = mr_region_base(mr_pool_region(our->ours.pool));
	return our;
}

#ifdef BENCH_DPDK
static void *make_dpdk(const struct pool_wish *wish,
		       const struct dpdk_kind *kind, struct mr_reason *why)
{
	struct dpdk_pool *pool = malloc(sizeof(*pool));

	if (pool == NULL)
		return NULL;
	if (dpdk_pool_make(pool, kind, wish->n_objects, OBJECT_BYTES, 0, why) ==
	    0)
		return pool;
	free(pool);
	return NULL;
}
#endif

void *taker_pool_make(enum side side, struct bench *bench,
		      const struct pool_wish *wish,
		      const struct dpdk_kind *kind, struct mr_reason *why)
{
	switch (side) {
	case SIDE_OURS:
		return make_ours(bench, wish, why);
#ifdef BENCH_DPDK
	case SIDE_DPDK:
		return make_dpdk(wish, kind, why);
#endif
	case SIDE_KERNEL:
		return model_make(wish->n_objects, MODEL_RING);
	default:
		(void)kind;
		return calloc(1, 1); /* nothing to be made, but not nothing */
	}
}

void taker_pool_free(enum side side, void *pool)
{
	if (pool != NULL && side == SIDE_OURS)
		ours_free(&((struct our_pool *)pool)->ours);
#ifdef BENCH_DPDK
	if (pool != NULL && side == SIDE_DPDK)
		dpdk_pool_free(pool);
#endif
	if (pool != NULL && side == SIDE_KERNEL)
		model_free(pool);
	else
		free(pool);
}

void taker_pool_count(void *pool, struct player *player, struct counts *counts)
{
	if (player->side == SIDE_OURS)
		ours_count(&((struct our_pool *)pool)->ours, player, counts);
	if (player->side == SIDE_KERNEL)
		model_count(pool, player, counts);
#ifdef BENCH_DPDK
	if (player->side == SIDE_DPDK)
		dpdk_pool_count(pool, player, counts);
#endif
}

void takers_add_ours(struct bench *bench, struct row *row,
		     const struct player *player, uint32_t kind_param,
		     uint64_t (*run)(struct player *, uint32_t, uint64_t))
{
	/* Without a number, what a pool of that size has by default. */
	static const struct {
		const char *name;
		uint64_t kind;
	} kinds[] = {
		{ "ours", 0 },
		{ "ours, magazines of 64", 64 },
	};
	struct player ours = *player;

	ours.side = SIDE_OURS;
	ours.run = run;
	for (uint32_t i = 0; i < 2; i++) {
		ours.name = kinds[i].name;
		ours.param[kind_param] = kinds[i].kind;
		bench_add(bench, row->players, &row->n_players, &ours);
	}
}

void takers_add_dpdk(struct bench *bench, struct row *row,
		     const struct player *player,
		     uint64_t (*run)(struct player *, uint32_t, uint64_t))
{
#ifdef BENCH_DPDK
	struct player dpdk = *player;

	dpdk.side = SIDE_DPDK;
	dpdk.run = run;
	for (uint32_t i = 0; i < DPDK_KINDS; i++) {
		dpdk.name = dpdk_kinds[i].name;
		dpdk.opaque = &dpdk_kinds[i];
		bench_add(bench, row->players, &row->n_players, &dpdk);
	}
#else
	(void)bench;
	(void)row;
	(void)player;
	(void)run;
#endif
}

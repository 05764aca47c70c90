/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>

#include "support/text.h"
#include "txcompl.h"
#ifdef BENCH_DPDK
#include <rte_errno.h>
#endif

static int make_our_pool(struct txcompl *tx, const struct player *player,
			 uint32_t p, struct mr_reason *why)
{
	const struct mr_pool_config config = {
		.size = sizeof(config),
		.n_pages = TX_PAGES * tx->n_pairs,
		.page_bytes = OBJECT_BYTES,
		.magazine_pages = (uint32_t)player->param[MAGAZINE],
		/* One region for all: a cache takes back frames of each. */
		.region = p == 0 ? tx->region : mr_pool_region(tx->pools[0]),
	};

	if (mr_pool_create(bench_ctx(player->bench), &config, &tx->pools[p],
			   why) < 0)
		return -1;
	for (uint32_t t = 0; t < 2 * tx->n_pairs; t++)
		if (mr_cache_create(tx->pools[p], &tx->caches[p][t], why) < 0)
			return -1;
	return 0;
}

static void free_our_pools(struct txcompl *tx)
{
	struct mr_reason why = { .text = "" };

	/* All caches first: each may hold pages of any pool. */
	for (uint32_t p = 0; p < MAX_POOLS; p++)
		for (uint32_t t = 0; t < MAX_THREADS; t++)
			mr_cache_destroy(tx->caches[p][t]);
	for (uint32_t p = MAX_POOLS; p > 0; p--)
		if (mr_pool_destroy(tx->pools[p - 1], &why) < 0)
			print_error("mr-bench: %s", why.text);
	if (mr_region_destroy(tx->region, &why) < 0)
		print_error("mr-bench: %s", why.text);
}

#ifdef BENCH_DPDK
static int make_dpdk_pool(struct txcompl *tx, const struct player *player,
			  uint32_t p, struct mr_reason *why)
{
	const struct dpdk_kind *kind = player->opaque;
	static uint32_t number;
	char name[RTE_MEMPOOL_NAMESIZE];

	snprintf(name, sizeof(name), "frames%u", number++);
	tx->dpdk_pools[p] = rte_pktmbuf_pool_create_by_ops(
		name, TX_PAGES * tx->n_pairs, kind->cache, 0, OBJECT_BYTES,
		SOCKET_ID_ANY, kind->ops);
	if (tx->dpdk_pools[p] != NULL)
		return 0;
	snprintf(why->text, sizeof(why->text), "rte_pktmbuf_pool_create: %s",
		 rte_strerror(rte_errno));
	return -1;
}
#endif

static void free_tx(struct txcompl *tx)
{
	free_our_pools(tx);
#ifdef BENCH_DPDK
	for (uint32_t p = 0; p < MAX_POOLS; p++)
		rte_mempool_free(tx->dpdk_pools[p]);
#endif
	for (uint32_t i = 0; i < tx->n_pairs; i++)
		free(tx->lanes[i].hop);
	free(tx);
}

int txcompl_make(struct player *player, struct mr_reason *why)
{
	const uint32_t n_pairs = (uint32_t)player->param[PER_CORE];
	const size_t n_bytes =
		sizeof(struct txcompl) + n_pairs * sizeof(struct lane);
	struct txcompl *tx = aligned_alloc(64, (n_bytes + 63) / 64 * 64);
	int result = 0;

	if (tx == NULL)
		return -1;
	memset(tx, 0, n_bytes);
	tx->n_pairs = n_pairs;
	tx->n_pools = (uint32_t)player->param[POOLS];
	for (uint32_t i = 0; i < n_pairs; i++) {
		tx->lanes[i].hop = hop_make(TX_RING);
		if (tx->lanes[i].hop == NULL)
			result = -1;
	}
	if (player->side == SIDE_OURS && result == 0)
		result = ours_small_region(player->bench, &tx->region, why);
	for (uint32_t p = 0; p < tx->n_pools && result == 0; p++) {
		if (player->side == SIDE_OURS)
			result = make_our_pool(tx, player, p, why);
#ifdef BENCH_DPDK
		if (player->side == SIDE_DPDK)
			result = make_dpdk_pool(tx, player, p, why);
#endif
	}
	if (result < 0) {
		free_tx(tx);
		return -1;
	}
	player->state = tx;
	return 0;
}

void txcompl_free(struct player *player)
{
	struct txcompl *tx = player->state;

	for (uint32_t i = 0; i < tx->n_pairs && player->side == SIDE_OURS; i++)
		for (uint32_t p = 0; p < tx->n_pools; p++) {
			const struct stock *stock = &tx->lanes[i].stocks[p];

			if (player->param[IS_PAGES] != 0)
				pages_tx_complete(tx, 0, stock->words,
						  stock->n);
			else
				ours_tx_complete(tx, 0, stock->words, stock->n);
		}
	free_tx(tx);
}

void txcompl_count_ours(struct player *player, struct counts *counts)
{
	const struct txcompl *tx = player->state;
	const double by = (double)player->n_done;
	double n_depot = 0, n_failed = 0, n_ring = 0, n_full = 0;

	for (uint32_t p = 0; p < tx->n_pools; p++) {
		struct mr_pool_stats s = { .size = sizeof(s) };

		mr_pool_stats(tx->pools[p], &s);
		n_depot += (double)(s.alloc_refill + s.recycle_cache_full);
		n_failed += (double)s.depot_cas_failed;
		n_ring += (double)s.recycle_ring;
		n_full += (double)s.recycle_ring_full;
	}
	count_add(counts, "depot_ops_per_32", 32 * n_depot / by);
	count_add(counts, "cas_failed_per_1000", 1000 * n_failed / by);
	count_add(counts, "ring_per_1000", 1000 * n_ring / by);
	count_add(counts, "ring_full_per_1000", 1000 * n_full / by);
	count_huge(tx->pools[0], counts);
}

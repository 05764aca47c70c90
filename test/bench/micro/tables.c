/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "peer_dpdk.h"
#include "tables.h"

/*
 * Draw the keys to look up. Zipf with exponent 1, in its continuous form: rank
 * n^u, with u uniform. Ranks are scattered, so that neighbours are far apart in
 * memory. Misses are the numbers after those of existing keys.
 */
static uint32_t draw_one(enum draw draw, uint32_t n, uint64_t *random)
{
	const uint64_t r = random_u64(random) >> 11;
	const double u = (double)r / (double)(UINT64_C(1) << 53);
	const uint64_t prime = 2654435761;

	if (draw == DRAW_ZIPF)
		return (uint32_t)((uint64_t)pow(n, u) * prime % n);
	return (uint32_t)(u * n) + (draw == DRAW_MISS ? n : 0);
}

static uint32_t *make_draws(enum draw draw, uint32_t n)
{
	uint32_t *draws = malloc(N_DRAWS * sizeof(*draws));
	uint64_t random = 88172645463325252;

	for (uint32_t i = 0; i < N_DRAWS && draws != NULL; i++)
		draws[i] = draw_one(draw, n, &random);
	return draws;
}

#ifdef BENCH_DPDK
#include <rte_errno.h>
#include <rte_hash.h>

static bool make_peer(struct table *table, struct mr_reason *why)
{
	static uint32_t number;
	char name[RTE_HASH_NAMESIZE];
	/* It cannot grow, and may fail before it is full. */
	const struct rte_hash_parameters parameters = {
		.name = name,
		.entries = table->n_records + table->n_records / 8 + 64,
		.key_len = KEY_BYTES,
		.socket_id = SOCKET_ID_ANY,
	};

	snprintf(name, sizeof(name), "bench%u", number++);
	table->peer = rte_hash_create(&parameters);
	if (table->peer == NULL)
		snprintf(why->text, sizeof(why->text), "rte_hash_create: %s",
			 rte_strerror(rte_errno));
	return table->peer != NULL;
}

static void free_peer(struct rte_hash *peer)
{
	rte_hash_free(peer);
}

static bool add_to_peer(struct rte_hash *peer, const struct key *key,
			struct record *record)
{
	*record = (struct record){ .key = *key };
	return rte_hash_add_key_data(peer, key, record) == 0;
}

static bool remove_from_peer(struct rte_hash *peer, const struct key *key)
{
	return rte_hash_del_key(peer, key) >= 0;
}
#else
/* Never called: there is no variant of DPDK. */
#define make_peer(table, why) ((void)(table), (void)(why), false)
#define free_peer(peer) ((void)(peer))
#define add_to_peer(peer, key, record) ((void)(key), (void)(record), false)
#define remove_from_peer(peer, key) ((void)(key), false)
#endif

static bool make_ours(struct table *table, struct mr_ctx *ctx,
		      struct mr_reason *why)
{
	const struct mr_flow_config config = { .size = sizeof(config),
					       .key_bytes = KEY_BYTES,
					       .record_bytes = RECORD_BYTES,
					       .n_max = table->n_records + 1,
					       .seed = 1 };

	/* Huge pages for both tables or for none. */
	prctl(PR_SET_THP_DISABLE, dpdk_has_small_pages(), 0, 0, 0);
	return mr_flow_create(ctx, &config, &table->ours, why) == 0;
}

bool table_add(struct table *table, uint64_t i)
{
	struct key key;

	key_of(i, &key);
	if (table->ours == NULL)
		return add_to_peer(table->peer, &key,
				   &table->records[i % table->n_records]);
	return mr_flow_add(table->ours, &key,
			   &table->ids[i % table->n_records]) == 0;
}

bool table_remove(struct table *table, uint64_t i)
{
	struct key key;

	if (table->ours == NULL) {
		key_of(i, &key);
		return remove_from_peer(table->peer, &key);
	}
	mr_flow_remove(table->ours, table->ids[i % table->n_records]);
	return true;
}

void table_tear_down(struct variant *variant)
{
	struct table *table = variant->state;

	mr_flow_destroy(table->ours);
	if (table->peer != NULL)
		free_peer(table->peer);
	free(table->ids);
	free(table->records);
	free(table->draws);
	free(table);
}

/* In huge pages, if there are any, like ours. */
static struct record *records_of(uint32_t n)
{
	const size_t n_bytes = n * sizeof(struct record);
	void *memory;

	if (posix_memalign(&memory, 1 << 21, n_bytes) != 0)
		return NULL;
	madvise(memory, n_bytes, MADV_HUGEPAGE);
	return memory;
}

int table_set_up(struct variant *variant, struct mr_reason *why)
{
	struct table *table = calloc(1, sizeof(*table));
	const uint32_t n = (uint32_t)variant->param[P_RECORDS];
	bool is_made;

	if (table == NULL)
		return -1;
	variant->state = table;
	table->n_records = n;
	table->draws = make_draws((enum draw)variant->param[P_DRAW], n);
	table->ids = calloc(n, sizeof(*table->ids));
	is_made = table->draws != NULL && table->ids != NULL &&
		  (variant->side != SIDE_OURS ||
		   make_ours(table, bench_ctx(variant->bench), why)) &&
		  (variant->side != SIDE_DPDK || make_peer(table, why));
	if (is_made && variant->side == SIDE_DPDK) {
		table->records = records_of(n);
		is_made = table->records != NULL;
	}
	while (is_made && variant->side != SIDE_PLAIN &&
	       variant->param[P_IS_EMPTY] == 0 && table->next < n) {
		if (table_add(table, table->next++))
			continue;
		snprintf(why->text, sizeof(why->text), "full at %llu of %u",
			 (unsigned long long)table->next, n);
		is_made = false;
	}
	if (is_made)
		return 0;
	table_tear_down(variant);
	return -1;
}

void table_count(struct variant *variant, struct counts *counts)
{
	const struct table *table = variant->state;
	struct mr_flow_stats s = { .size = sizeof(s) };

	if (table->ours == NULL || mr_flow_stats(table->ours, &s) < 0 ||
	    s.n == 0)
		return;
	count_add(counts, "bytes_per_record", (double)s.bytes / s.n);
	count_add(counts, "overflows_per_1000", 1000.0 * s.n_overflows / s.n);
}

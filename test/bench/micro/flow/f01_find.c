/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * F01, F02: lookups by burst, of keys that are there and of keys that are not.
 * An operation is a key that is made from its number and looked up; making it
 * alone is the floor. A burst of one is a call for one key on both sides.
 *
 * Of ours the keys are in the records, and a word of each is read. The peer has
 * its own copy of the key and returns a pointer to the record: beside the bare
 * lookup there is one that reads a word of it, too, which is what a program
 * does that looks up a flow.
 */
#include <stdio.h>

#include "peer_dpdk.h"
#include "tables.h"
#include "workloads.h"

static inline void draw_keys(struct table *table, struct key *keys, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		key_of(table->draws[table->next++ & (N_DRAWS - 1)], &keys[i]);
}

static inline const struct record *record_of(const struct table *table,
					     uint32_t id)
{
	return mr_flow_record(table->ours, id);
}

static uint64_t run_ours(struct player *player, uint32_t thread, uint64_t n)
{
	struct table *table = player->state;
	const uint32_t burst = (uint32_t)player->param[P_BURST];
	const uint32_t n_wanted =
		player->param[P_DRAW] == DRAW_MISS ? 0 : burst;
	struct key keys[MAX_BURST];
	uint32_t ids[MAX_BURST];
	uint64_t done, sum = 0;

	(void)thread;
	for (done = 0; done < n; done += burst) {
		draw_keys(table, keys, burst);
		if (mr_flow_find_bulk(table->ours, keys, burst, ids) !=
		    n_wanted)
			return 0;
		for (uint32_t i = 0; i < n_wanted; i++)
			sum += record_of(table, ids[i])->words[0];
	}
	keep(&sum);
	return done;
}

static uint64_t run_ours_single(struct player *player, uint32_t thread,
				uint64_t n)
{
	struct table *table = player->state;
	const bool is_miss = player->param[P_DRAW] == DRAW_MISS;
	uint64_t done, sum = 0;

	(void)thread;
	for (done = 0; done < n; done++) {
		struct key key;
		uint32_t id;

		draw_keys(table, &key, 1);
		id = mr_flow_find(table->ours, &key);
		if ((id == MR_FLOW_NONE) != is_miss)
			return 0;
		sum += is_miss ? 0 : record_of(table, id)->words[0];
	}
	keep(&sum);
	return done;
}

#ifdef BENCH_DPDK
#include <rte_hash.h>

/* As many calls as it needs: one takes 64 keys at most. */
static inline uint32_t find_in_peer(const struct rte_hash *peer,
				    const void **keys, uint32_t n, void **data)
{
	uint32_t n_found = 0;

	for (uint32_t i = 0; i < n; i += RTE_HASH_LOOKUP_BULK_MAX) {
		const uint32_t left = n - i;
		uint64_t hits = 0;

		rte_hash_lookup_bulk_data(peer, &keys[i],
					  left < RTE_HASH_LOOKUP_BULK_MAX ?
						  left :
						  RTE_HASH_LOOKUP_BULK_MAX,
					  &hits, &data[i]);
		n_found += (uint32_t)__builtin_popcountll(hits);
	}
	return n_found;
}

static uint64_t read_records(void *const *data, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(data[i]);
	for (uint32_t i = 0; i < n; i++)
		sum += ((const struct record *)data[i])->words[0];
	return sum;
}

static uint64_t run_dpdk(struct player *player, uint32_t thread, uint64_t n)
{
	struct table *table = player->state;
	const uint32_t burst = (uint32_t)player->param[P_BURST];
	const uint32_t n_wanted =
		player->param[P_DRAW] == DRAW_MISS ? 0 : burst;
	const uint32_t n_read = player->param[P_IS_READ] != 0 ? n_wanted : 0;
	struct key keys[MAX_BURST];
	const void *pointers[MAX_BURST];
	void *data[MAX_BURST];
	uint64_t done, sum = 0;

	(void)thread;
	for (uint32_t i = 0; i < MAX_BURST; i++)
		pointers[i] = &keys[i];
	for (done = 0; done < n; done += burst) {
		draw_keys(table, keys, burst);
		if (find_in_peer(table->peer, pointers, burst, data) !=
		    n_wanted)
			return 0;
		sum += read_records(data, n_read);
	}
	keep(&sum);
	return done;
}

static uint64_t run_dpdk_single(struct player *player, uint32_t thread,
				uint64_t n)
{
	struct table *table = player->state;
	const bool is_miss = player->param[P_DRAW] == DRAW_MISS;
	const bool is_read = player->param[P_IS_READ] != 0 && !is_miss;
	uint64_t done, sum = 0;

	(void)thread;
	for (done = 0; done < n; done++) {
		struct key key;
		void *data;

		draw_keys(table, &key, 1);
		if ((rte_hash_lookup_data(table->peer, &key, &data) < 0) !=
		    is_miss)
			return 0;
		if (is_read)
			sum += ((const struct record *)data)->words[0];
	}
	keep(&sum);
	return done;
}
#else
static player_run_fn *const run_dpdk, *const run_dpdk_single;
#endif

static uint64_t run_keys(struct player *player, uint32_t thread, uint64_t n)
{
	struct table *table = player->state;
	const uint32_t burst = (uint32_t)player->param[P_BURST];
	struct key keys[MAX_BURST];
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += burst) {
		draw_keys(table, keys, burst);
		keep(keys);
	}
	return done;
}

static void row_of(struct bench *bench, uint32_t n_records, uint32_t burst,
		   enum draw draw)
{
	static const char *const draws[] = { "uniform", "zipf", "uniform" };
	struct player players[MAX_PLAYERS];
	char name[64], plot[32];
	struct row row = { .name = name,
			   .unit = "key",
			   .plot = plot,
			   .x_name = "records",
			   .x = n_records,
			   .players = players };
	struct player player = { .name = burst == 1 ? "single" : "bulk",
				 .side = SIDE_OURS,
				 .setup = table_set_up,
				 .run = burst == 1 ? run_ours_single : run_ours,
				 .count = table_count,
				 .teardown = table_tear_down,
				 .param = { [P_RECORDS] = n_records,
					    [P_BURST] = burst,
					    [P_DRAW] = draw } };

	snprintf(plot, sizeof(plot), "%s burst=%u", draws[draw], burst);
	snprintf(name, sizeof(name), "%s records=%u", plot, n_records);
	bench_add(bench, players, &row.n_players, &player);
	player.name = burst == 1 ? "rte_hash single" : "rte_hash bulk";
	player.side = SIDE_DPDK;
	player.run = burst == 1 ? run_dpdk_single : run_dpdk;
	player.count = NULL;
	bench_add(bench, players, &row.n_players, &player);
	if (draw != DRAW_MISS) {
		player.name = burst == 1 ? "rte_hash single, record" :
					   "rte_hash bulk, record";
		player.param[P_IS_READ] = 1;
		bench_add(bench, players, &row.n_players, &player);
	}
	player.name = "keys alone";
	player.side = SIDE_PLAIN;
	player.run = run_keys;
	bench_add(bench, players, &row.n_players, &player);
	bench_row(bench, &row);
}

static const uint32_t sizes[] = { 1000, 10000, 100000, 1000000, 10000000 };
static const uint32_t bursts[] = { 1, 8, 32, 256 };

static void rows_of(struct bench *bench, enum draw draw)
{
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
		for (size_t b = 0; b < sizeof(bursts) / sizeof(bursts[0]); b++)
			row_of(bench, sizes[s], bursts[b], draw);
}

static void rows_hit(struct bench *bench)
{
	rows_of(bench, DRAW_UNIFORM);
	rows_of(bench, DRAW_ZIPF);
}

static void rows_miss(struct bench *bench)
{
	rows_of(bench, DRAW_MISS);
}

const struct workload f01_hit = {
	.name = "F01",
	.title = "hit",
	.what = "lookups of keys that are there",
	.source = "DPDK, app/test/test_hash_perf.c",
	.rows = rows_hit,
};

const struct workload f02_miss = {
	.name = "F02",
	.title = "miss",
	.what = "lookups of keys that are not there",
	.source = "DPDK, app/test/test_hash_perf.c",
	.rows = rows_miss,
};

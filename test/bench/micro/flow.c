/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow tables beside rte_hash.
 *
 * F01, F02: lookups by burst, of existing keys and of others. An operation
 * makes a key from its number and looks it up; making it alone is the floor. In
 * a burst of one, both sides make one call per key.
 *
 * Our keys are in the records, and a word of each record is read. The peer has
 * its own copy of the key and returns a pointer to the record; besides the bare
 * lookup, a variant reads a word of it, as a program that looks up a flow does.
 */
#include <stdio.h>
#include <stdlib.h>

#include "latency.h"
#include "peer_dpdk.h"
#include "tables.h"

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

static uint64_t run_ours(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct table *table = variant->state;
	const uint32_t burst = (uint32_t)variant->param[P_BURST];
	const uint32_t n_wanted =
		variant->param[P_DRAW] == DRAW_MISS ? 0 : burst;
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

static uint64_t run_ours_single(struct variant *variant, uint32_t thread,
				uint64_t n)
{
	struct table *table = variant->state;
	const bool is_miss = variant->param[P_DRAW] == DRAW_MISS;
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

/* A call takes at most 64 keys. */
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

static uint64_t run_dpdk(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct table *table = variant->state;
	const uint32_t burst = (uint32_t)variant->param[P_BURST];
	const uint32_t n_wanted =
		variant->param[P_DRAW] == DRAW_MISS ? 0 : burst;
	const uint32_t n_read = variant->param[P_IS_READ] != 0 ? n_wanted : 0;
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

static uint64_t run_dpdk_single(struct variant *variant, uint32_t thread,
				uint64_t n)
{
	struct table *table = variant->state;
	const bool is_miss = variant->param[P_DRAW] == DRAW_MISS;
	const bool is_read = variant->param[P_IS_READ] != 0 && !is_miss;
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
#define run_dpdk NULL
#define run_dpdk_single NULL
#endif

static uint64_t run_keys(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct table *table = variant->state;
	const uint32_t burst = (uint32_t)variant->param[P_BURST];
	struct key keys[MAX_BURST];
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += burst) {
		draw_keys(table, keys, burst);
		keep(keys);
	}
	return done;
}

static void find_row(struct bench *bench, uint32_t n_records, uint32_t burst,
		     enum draw draw)
{
	static const struct {
		const char *name;
		enum side side;
		variant_run_fn *single, *bulk;
		bool is_read;
	} ways[] = {
		{ "%s", SIDE_OURS, run_ours_single, run_ours, false },
		{ "rte_hash %s", SIDE_DPDK, run_dpdk_single, run_dpdk, false },
		{ "rte_hash %s, record", SIDE_DPDK, run_dpdk_single, run_dpdk,
		  true },
		{ "keys alone", SIDE_PLAIN, run_keys, run_keys, false },
	};
	struct row row = { .unit = "key" };

	NAME(row.plot, "%s burst=%u", draw == DRAW_ZIPF ? "zipf" : "uniform",
	     burst);
	NAME(row.name, "%s records=%u", row.plot, n_records);
	for (uint32_t i = 0; i < N_OF(ways); i++) {
		struct variant variant = {
			.side = ways[i].side,
			.setup = table_set_up,
			.run = burst == 1 ? ways[i].single : ways[i].bulk,
			.count = ways[i].side == SIDE_OURS ? table_count : NULL,
			.teardown = table_tear_down,
			.param = { [P_RECORDS] = n_records,
				   [P_BURST] = burst,
				   [P_DRAW] = draw,
				   [P_IS_READ] = ways[i].is_read },
		};

		NAME(variant.name, ways[i].name,
		     burst == 1 ? "single" : "bulk");
		if (!ways[i].is_read || draw != DRAW_MISS)
			bench_add(bench, &row, &variant);
	}
	bench_row(bench, &row);
}

static void find_rows(struct bench *bench, enum draw draw)
{
	static const uint32_t bursts[] = { 1, 8, 32, 256 };

	for (uint32_t n = 1000; n <= 10000000; n *= 10)
		for (uint32_t i = 0; i < N_OF(bursts); i++)
			find_row(bench, n, bursts[i], draw);
}

void rows_f01(struct bench *bench)
{
	find_rows(bench, DRAW_UNIFORM);
	find_rows(bench, DRAW_ZIPF);
}

void rows_f02(struct bench *bench)
{
	find_rows(bench, DRAW_MISS);
}

/*
 * F03: records come and go in a table that remains as full as it is: remove the
 * oldest, add a new one; that is one operation.
 *
 * F04: fill a table and empty it again. An operation is a record that was added
 * and removed. Ours grows and shrinks, the peer has its final size from the
 * start. Beside the time: how long single adds took, from another filling.
 */
static uint64_t run_replace(struct variant *variant, uint32_t thread,
			    uint64_t n)
{
	struct table *table = variant->state;

	(void)thread;
	for (uint64_t i = 0; i < n; i++, table->next++)
		if (!table_remove(table, table->next - table->n_records) ||
		    !table_add(table, table->next))
			return 0;
	return n;
}

/* n is rounded up to whole tables. */
static uint64_t run_fill(struct variant *variant, uint32_t thread, uint64_t n)
{
	struct table *table = variant->state;
	uint64_t done;

	(void)thread;
	for (done = 0; done < n; done += table->n_records) {
		for (uint32_t i = 0; i < table->n_records; i++)
			if (!table_add(table, i))
				return 0;
		for (uint32_t i = 0; i < table->n_records; i++)
			if (!table_remove(table, i))
				return 0;
	}
	return done;
}

static void count_adds(struct variant *variant, struct counts *counts)
{
	struct table *table = variant->state;
	static struct latency latency;

	latency = (struct latency){ 0 };
	for (uint32_t i = 0; i < table->n_records; i++) {
		const uint64_t start = latency_now();

		table_add(table, i);
		latency_add(&latency, latency_now() - start);
	}
	latency_count(&latency, 1, counts);
	table_count(variant, counts);
	for (uint32_t i = 0; i < table->n_records; i++)
		table_remove(table, i);
}

static void change_rows(struct bench *bench, bool is_fill, uint32_t most)
{
	for (uint32_t n = 1000; n <= most; n *= 10) {
		struct row row = { .unit = "record", .plot = "replace" };
		struct variant variant = {
			.name = "millrace",
			.side = SIDE_OURS,
			.setup = table_set_up,
			.run = is_fill ? run_fill : run_replace,
			.count = is_fill ? count_adds : table_count,
			.teardown = table_tear_down,
			.param = { [P_RECORDS] = n, [P_IS_EMPTY] = is_fill },
		};

		if (is_fill)
			NAME(row.plot, "fill and empty");
		NAME(row.name, "records=%u", n);
		bench_add(bench, &row, &variant);
		NAME(variant.name, "rte_hash");
		variant.side = SIDE_DPDK;
		bench_add(bench, &row, &variant);
		bench_row(bench, &row);
	}
}

void rows_f03(struct bench *bench)
{
	change_rows(bench, false, 10000000);
}

void rows_f04(struct bench *bench)
{
	change_rows(bench, true, 1000000);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * F03: records come and go in a table that stays as full as it is: the oldest
 * is removed, a new one is added, which is one operation.
 *
 * F04: a table is filled and emptied again; an operation is a record that was
 * added and removed. Ours grows and shrinks, the peer has its size from the
 * start. Beside the time, from one more filling: how long single adds took.
 */
#include <stdio.h>

#include "latency.h"
#include "tables.h"
#include "workloads.h"

static uint64_t run_replace(struct player *player, uint32_t thread, uint64_t n)
{
	struct table *table = player->state;

	(void)thread;
	for (uint64_t i = 0; i < n; i++, table->next++)
		if (!table_remove(table, table->next - table->n_records) ||
		    !table_add(table, table->next))
			return 0;
	return n;
}

/* n is rounded up to tables. */
static uint64_t run_fill(struct player *player, uint32_t thread, uint64_t n)
{
	struct table *table = player->state;
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

static void count_adds(struct player *player, struct counts *counts)
{
	struct table *table = player->state;
	static struct latency latency;

	latency = (struct latency){ 0 };
	for (uint32_t i = 0; i < table->n_records; i++) {
		const uint64_t start = latency_now();

		table_add(table, i);
		latency_add(&latency, latency_now() - start);
	}
	latency_count(&latency, 1, counts);
	table_count(player, counts);
	for (uint32_t i = 0; i < table->n_records; i++)
		table_remove(table, i);
}

static void row_of(struct bench *bench, uint32_t n_records, bool is_fill)
{
	struct player players[MAX_PLAYERS];
	char name[64];
	struct row row = { .name = name,
			   .unit = "record",
			   .plot = is_fill ? "fill and empty" : "replace",
			   .x_name = "records",
			   .x = n_records,
			   .players = players };
	struct player player = {
		.name = "millrace",
		.side = SIDE_OURS,
		.setup = table_set_up,
		.run = is_fill ? run_fill : run_replace,
		.count = is_fill ? count_adds : table_count,
		.teardown = table_tear_down,
		.param = { [P_RECORDS] = n_records, [P_IS_EMPTY] = is_fill }
	};

	snprintf(name, sizeof(name), "records=%u", n_records);
	bench_add(bench, players, &row.n_players, &player);
	player.name = "rte_hash";
	player.side = SIDE_DPDK;
	bench_add(bench, players, &row.n_players, &player);
	bench_row(bench, &row);
}

static void rows_replace(struct bench *bench)
{
	for (uint32_t n = 1000; n <= 10000000; n *= 10)
		row_of(bench, n, false);
}

static void rows_fill(struct bench *bench)
{
	for (uint32_t n = 1000; n <= 1000000; n *= 10)
		row_of(bench, n, true);
}

const struct workload f03_replace = {
	.name = "F03",
	.title = "replace",
	.what = "the oldest record goes, a new one comes",
	.source = "DPDK, app/test/test_hash_perf.c",
	.rows = rows_replace,
};

const struct workload f04_fill = {
	.name = "F04",
	.title = "fill",
	.what = "a table filled and emptied; single adds while it grows",
	.source = "issue 5: growth without a pause",
	.rows = rows_fill,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* Goals: the worst row counts, and what was not measured is not judged. */
#include "support/unit.h"

#include <string.h>

#include "goals.h"

static const struct workload b06 = { .name = "B06" }, b08 = { .name = "B08" },
			     b09 = { .name = "B09" }, b12 = { .name = "B12" },
			     b17 = { .name = "B17" };

static struct player_result player(const char *name, enum side side, double ns,
				   double to_ours)
{
	struct player_result p = {
		.side = side,
		.ns = { .n = 5,
			.median = ns,
			.low = ns - 0.1,
			.high = ns + 0.1 },
		.to_ours = { to_ours, to_ours - 0.1, to_ours + 0.1 },
	};

	strcpy(p.name, name);
	return p;
}

static struct row_result row(const struct workload *workload, const char *name,
			     struct player_result *players, uint32_t n)
{
	struct row_result r = { .workload = workload,
				.players = players,
				.n_players = n };

	strcpy(r.name, name);
	return r;
}

static struct counts depot_ops(double value)
{
	return (struct counts){ .n = 1,
				.of = { { "depot_ops_per_32", value } } };
}

static uint32_t look(struct row_result *rows, uint32_t n,
		     struct goal_result ret[MAX_GOALS])
{
	return goals_look(&(struct results){ .rows = rows, .n_rows = n }, ret);
}

TEST(time_is_compared_with_its_limit)
{
	struct player_result p[] = { player("array", SIDE_OURS, 0.9, 1),
				     player("single", SIDE_OURS, 2.5, 2.7) };
	struct row_result r = row(&b06, "from=cache bulk=1", p, 2);
	struct goal_result goals[MAX_GOALS];

	assert_int_equal(look(&r, 1, goals), 1);
	assert_string_equal(goals[0].goal->what, "2: single from the cache");
	assert_string_equal(goal_unit(goals[0].goal), "ns");
	assert_ptr_equal(goals[0].player, &p[1]);
	assert_false(goals[0].is_reached); /* 2 ns */
	assert_false(goals[0].is_close);
	p[1].ns = (struct summary){
		.n = 5, .median = 1.9, .low = 1.8, .high = 2.1
	};
	look(&r, 1, goals);
	assert_true(goals[0].is_reached);
	assert_true(goals[0].is_close);
}

TEST(a_row_that_was_not_run_is_not_judged)
{
	struct player_result p = player("single", SIDE_OURS, 1, 1);
	struct row_result r = row(&b06, "from=cache bulk=2", &p, 1);
	struct goal_result goals[MAX_GOALS];

	assert_int_equal(look(&r, 1, goals), 0);
	strcpy(r.name, "from=cache bulk=1");
	assert_int_equal(look(&r, 1, goals), 1);
	p.ns.n = 0; /* it did not take part */
	assert_int_equal(look(&r, 1, goals), 0);
}

TEST(the_worst_row_and_player_count)
{
	struct player_result a[] = { player("frag cache", SIDE_OURS, 4, 1),
				     player("frag cache, aligned", SIDE_OURS,
					    4.2, 1.05) };
	struct player_result b[] = { player("frag cache", SIDE_OURS, 9, 1),
				     player("frag cache, aligned", SIDE_OURS,
					    8.9, 0.99) };
	struct row_result rows[] = {
		row(&b09, "len=12 threads=2 hop=1 alloc", a, 2),
		row(&b09, "len=75 threads=2 hop=1 alloc", b, 2),
	};
	struct goal_result goals[MAX_GOALS];

	assert_int_equal(look(rows, 2, goals), 2);
	assert_int_equal(goals[0].n_rows, 2);
	assert_ptr_equal(goals[0].player, &b[0]);
	assert_false(goals[0].is_reached);
	/* Aligned by unaligned: the other row is the worse one. */
	assert_ptr_equal(goals[1].player, &a[1]);
	assert_false(goals[1].is_reached);
	assert_true(goals[1].is_close);
}

TEST(a_figure_beside_the_time_is_compared)
{
	struct player_result p[] = { player("return=local", SIDE_OURS, 2, 1),
				     player("return=home", SIDE_OURS, 2, 1) };
	struct row_result r = row(&b17, "burst=32 pools=1", p, 2);
	struct goal_result goals[MAX_GOALS];

	assert_int_equal(look(&r, 1, goals), 0);
	p[0].counts = depot_ops(0.5);
	p[1].counts = depot_ops(7); /* no default */
	assert_int_equal(look(&r, 1, goals), 1);
	assert_true(goals[0].is_reached);
	assert_true(goals[0].measured == 0.5);
	p[0].counts.of[0].value = 1.5;
	look(&r, 1, goals);
	assert_false(goals[0].is_reached);
	p[0].counts.of[0].value = 1; /* the limit itself */
	look(&r, 1, goals);
	assert_true(goals[0].is_reached);
	assert_false(goals[0].is_close); /* it has no interval */
}

TEST(the_best_of_dpdk_is_what_counts)
{
	struct player_result p[] = { player("addresses", SIDE_OURS, 1, 1),
				     player("frames", SIDE_OURS, 4, 4),
				     player("ring", SIDE_DPDK, 1.5, 1.5),
				     player("stack", SIDE_DPDK, 1.15, 1.15),
				     player("none", SIDE_DPDK, 0, 0),
				     player("plain", SIDE_PLAIN, 0.1, 0.1) };
	struct row_result r = row(&b08, "drop burst=64", p, 6);
	struct goal_result goals[MAX_GOALS];

	p[4].ns.n = 0;
	assert_ptr_equal(goals_best_of_dpdk(&r), &p[3]);
	assert_ptr_equal(goals_best_of_ours(&r), &p[0]);
	p[1].ns.median = 0.5;
	assert_ptr_equal(goals_best_of_ours(&r), &p[1]);
	assert_int_equal(look(&r, 1, goals), 1);
	assert_false(goals[0].is_reached); /* 1.2 */
	assert_true(goals[0].is_close);
	assert_false(goal_is_at_most(goals[0].goal));
	p[3].ns.median = 2;
	p[3].to_ours = (struct ratio){ 2, 1.9, 2.1 };
	look(&r, 1, goals);
	assert_ptr_equal(goals[0].player, &p[2]);
	assert_true(goals[0].is_reached);
}

/* In a run of one player, on n threads; the plot is what rows share. */
static struct row_result point(struct player_result *player, const char *plot,
			       uint32_t n_threads)
{
	struct row_result r = row(&b12, "fast threads=?", player, 1);

	strcpy(r.plot, plot);
	r.n_threads = n_threads;
	return r;
}

TEST(growth_is_by_the_same_player_on_one_thread)
{
	struct player_result one = player("millrace objects", SIDE_OURS, 4, 1),
			     two = player("millrace objects", SIDE_OURS, 4.4,
					  1),
			     eight = player("millrace objects", SIDE_OURS, 5.2,
					    1),
			     other = player("millrace objects", SIDE_OURS, 1,
					    1);
	struct row_result rows[] = { point(&one, "fast", 1),
				     point(&two, "fast", 2),
				     point(&eight, "fast", 8),
				     point(&other, "N=128", 1) };
	struct goal_result goals[MAX_GOALS];

	assert_int_equal(look(rows, 1, goals), 0); /* nothing to compare */
	assert_int_equal(look(rows, 2, goals), 1);
	assert_true(goals[0].measured > 1.0999 && goals[0].measured < 1.1001);
	assert_true(goals[0].low < 1.1 && goals[0].high > 1.1);
	assert_true(goals[0].is_reached);
	assert_true(goal_is_at_most(goals[0].goal));
	assert_int_equal(look(rows, 4, goals), 1);
	assert_ptr_equal(goals[0].player, &eight);
	assert_true(goals[0].measured > 1.2999 && goals[0].measured < 1.3001);
	assert_string_equal(goal_state(&goals[0]), "missed");
	one.ns.n = 0;
	assert_int_equal(look(rows, 4, goals), 0);
}

static const struct goal_result *of(const struct goal_result *goals, uint32_t n,
				    const char *what)
{
	for (uint32_t i = 0; i < n; i++)
		if (strcmp(goals[i].goal->what, what) == 0)
			return &goals[i];
	return NULL;
}

TEST(all_goals_of_a_command_are_listed)
{
	struct player_result p = player("single", SIDE_OURS, 1, 1);
	struct row_result r = row(&b06, "from=pages bulk=64", &p, 1);
	struct results results = {
		.rows = &r, .n_rows = 1, .has_all_goals = true, .command = "mem"
	};
	const char *flow = "bulk lookup of 1 M: rte_hash by ours";
	struct goal_result goals[MAX_GOALS];
	uint32_t n;

	n = goals_look(&results, goals);
	assert_true(n > 30);
	assert_string_equal(goal_state(of(goals, n, "burst of 32 by address")),
			    "not run");
	assert_string_equal(
		goal_state(of(goals, n, "2: single by array of 64, allocator")),
		"reported");
	assert_null(of(goals, n, flow));
	results.command = "flow";
	results.n_rows = 0;
	n = goals_look(&results, goals);
	assert_non_null(of(goals, n, flow));
	assert_null(of(goals, n, "burst of 32 by address"));
	assert_int_equal(goals[0].n_rows, 0);
}

TEST(goals_choose_rows_and_players)
{
	assert_true(goals_want_row("B06", "from=pages bulk=1"));
	assert_false(goals_want_row("B06", "from=pages bulk=2"));
	assert_false(goals_want_row("B01", "1 core"));
	assert_true(goals_want_player("rte_mempool ring c512"));
	assert_true(goals_want_player("rte_mempool stack c256, in bulk"));
	assert_false(goals_want_player("rte_mempool bucket c256"));
	assert_false(goals_want_player("rte_mempool ring c0"));
	assert_false(goals_want_player("return=home, magazines of 64"));
}

TEST(slower_rows_are_counted)
{
	struct player_result a[] = { player("ours", SIDE_OURS, 1, 1),
				     player("ring", SIDE_DPDK, 0.9, 0.9) };
	struct player_result b[] = { player("ours", SIDE_OURS, 1, 1),
				     player("ring", SIDE_DPDK, 1.1, 1.1) };
	struct player_result alone = player("ring", SIDE_DPDK, 1, 0);
	struct player_result ours = player("ours", SIDE_OURS, 1, 1);
	struct row_result rows[] = {
		row(&b06, "x", a, 2),
		row(&b06, "y", b, 2),
		row(&b06, "without ours", &alone, 1),
		row(&b06, "without DPDK", &ours, 1),
	};
	uint32_t n_rows, n_slower;

	goals_count_slower(&(struct results){ .rows = rows, .n_rows = 4 },
			   &n_rows, &n_slower);
	assert_int_equal(n_rows, 2);
	assert_int_equal(n_slower, 1);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The players of a row in turn, A B C, B C A, ..., so that none always follows
 * the same one. A sample during which the thread was moved off its core, or
 * the hypervisor took time, is put aside; where too few clean ones are to be
 * had, all count, and the report says so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "goals.h"
#include "harness.h"
#include "team.h"

enum {
	MAX_ROUNDS_FACTOR = 2, /* how much longer to try for clean samples */
	MIN_CLEAN = 5,
	/* A long sample is several runs of this: Ctrl-C is not to wait. */
	MAX_RUN_MS = 200,
};

/* Progress where there is no terminal, but a log: a line now and then. */
static const uint64_t NS_BY_LINE = 10000000000;

int bench_end_signal;

/* The samples of one player. */
struct book {
	double ns[MAX_SAMPLES], cycles[MAX_SAMPLES];
	bool is_clean[MAX_SAMPLES];
	uint32_t n, n_clean;
	uint64_t n_ops; /* to ask for in one run */
	bool is_out;    /* its setup failed */
	bool is_stuck;  /* its run() failed */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

struct mr_ctx *bench_ctx(struct bench *bench)
{
	return bench->ctx;
}

uint32_t bench_n_cores(const struct bench *bench)
{
	return bench->n_cores;
}

bool bench_has_dpdk(const struct bench *bench)
{
	return bench->has_dpdk;
}

struct player *bench_add(struct bench *bench, struct player *players,
			 uint32_t *n_players, const struct player *player)
{
	struct player *added;

	if ((bench->options->sides & 1u << player->side) == 0 ||
	    (player->side == SIDE_DPDK && !bench->has_dpdk) ||
	    (bench->options->is_goals && !goals_want_player(player->name)) ||
	    *n_players == MAX_PLAYERS)
		return NULL;
	added = &players[(*n_players)++];
	*added = *player;
	return added;
}

uint64_t bench_run_again(struct player *player, uint64_t n_most)
{
	/* A sample's at most: threads that wait for each other may be slow. */
	const uint64_t n =
		player->n_sample < n_most ? player->n_sample : n_most;
	struct team_run run;

	if (bench_is_ending())
		return 0;
	team_run(player->bench->team, player, n, &run);
	return run.n_ops;
}

void count_add(struct counts *counts, const char *name, double value)
{
	if (counts->n == MAX_COUNTS)
		return;
	counts->of[counts->n].name = name;
	counts->of[counts->n++].value = value;
}

void count_per_1000(struct counts *counts, const char *name, uint64_t n,
		    const struct player *player)
{
	const uint64_t by = player->n_done > 0 ? player->n_done : 1;

	count_add(counts, name, 1000.0 * (double)n / (double)by);
}

/* Is the row asked for? By "B06" or by a part of "B06/from=depot bulk=64". */
static bool is_wanted(const struct bench *bench, const struct row *row)
{
	const struct options *options = bench->options;
	char full[160];

	if (options->is_goals &&
	    !goals_want_row(bench->workload->name, row->name))
		return false;
	snprintf(full, sizeof(full), "%s/%s", bench->workload->name, row->name);
	for (uint32_t i = 0; i < options->n_names; i++) {
		const char *name = options->names[i];

		if (strcmp(name, bench->workload->name) == 0 ||
		    strstr(full, name) != NULL)
			return true;
	}
	return options->n_names == 0;
}

static uint32_t n_runs_of_sample(const struct bench *bench)
{
	return (bench->options->sample_ms + MAX_RUN_MS - 1) / MAX_RUN_MS;
}

/*
 * How many operations make one run: double until it takes long enough. A
 * player that stops before it has done them cannot be measured.
 */
static bool calibrate(struct bench *bench, struct team *team,
		      struct player *player, struct book *book)
{
	const uint64_t wanted_ns = bench->options->sample_ms * 1000000ull /
				   n_runs_of_sample(bench);
	struct team_run run;
	uint64_t n = 64;

	for (;;) {
		team_run(team, player, n, &run);
		if (run.n_ops < n)
			return false;
		if (bench_is_ending())
			return true;
		if (run.ns >= wanted_ns / 8)
			break;
		n *= run.ns < wanted_ns / 128 ? 8 : 2;
	}
	book->n_ops = n * wanted_ns / (run.ns + 1) + 1;
	/* The first estimate was on cold caches: look again. */
	team_run(team, player, book->n_ops, &run);
	book->n_ops = book->n_ops * wanted_ns / (run.ns + 1) + 1;
	player->n_sample = book->n_ops;
	return run.n_ops > 0;
}

/* All runs of one sample, unless a signal comes. */
static void run_sample(const struct bench *bench, struct team *team,
		       struct player *player, uint64_t n_ops,
		       struct team_run *ret)
{
	*ret = (struct team_run){ 0 };
	for (uint32_t i = n_runs_of_sample(bench); i > 0; i--) {
		struct team_run run;

		team_run(team, player, n_ops, &run);
		ret->ns += run.ns;
		ret->cycles += run.cycles;
		ret->n_ops += run.n_ops;
		ret->n_switched += run.n_switched;
		ret->n_stolen += run.n_stolen;
		if (run.n_ops == 0 || bench_is_ending())
			return;
	}
}

static void take_sample(const struct bench *bench, struct team *team,
			struct player *player, struct book *book)
{
	const struct row *row = player->row;
	struct team_run run;
	double by;

	run_sample(bench, team, player, book->n_ops, &run);
	if (run.n_ops == 0 || book->n == MAX_SAMPLES || bench_is_ending())
		return;
	by = (double)run.n_ops;
	if (row->is_per_thread)
		by /= row->n_threads < bench->n_cores ? row->n_threads :
							bench->n_cores;
	book->ns[book->n] = (double)run.ns / by;
	book->cycles[book->n] = (double)run.cycles / by;
	book->is_clean[book->n] = run.n_switched == 0 && run.n_stolen == 0;
	book->n_clean += book->is_clean[book->n];
	book->n++;
}

/* No time to try for clean samples: --goals has a limit. */
static bool is_late(const struct bench *bench, const struct row *row)
{
	const double share = (double)(now_ns() - bench->start_ns) / 1e9 /
			     GOALS_LIMIT_S * bench->n_jobs;

	return bench->options->is_goals &&
	       share > bench->n_jobs_done + row->n_players;
}

static void progress(struct bench *bench, const struct row *row)
{
	const uint64_t ns = now_ns() - bench->start_ns;
	const bool is_terminal = isatty(STDERR_FILENO) != 0;
	const double left =
		bench->n_jobs_done == 0 ?
			0 :
			(double)ns / 1e9 / bench->n_jobs_done *
				(bench->n_jobs - bench->n_jobs_done);

	if (bench->options->is_quiet ||
	    (!is_terminal && ns < bench->line_ns + NS_BY_LINE))
		return;
	bench->line_ns = ns;
	fprintf(stderr, "%s%s %s, %u of %u, %u:%02u left%s",
		is_terminal ? "\r\033[K" : "", bench->workload->name, row->name,
		bench->n_jobs_done, bench->n_jobs, (uint32_t)left / 60,
		(uint32_t)left % 60, is_terminal ? "" : "\n");
	fflush(stderr);
}

/* All samples of all players, interleaved. */
static void take_samples(struct bench *bench, struct team *team,
			 struct row *row, struct book *books,
			 struct row_result *result)
{
	const uint32_t n_wanted = bench->options->n_samples;

	for (uint32_t i = 0; i < row->n_players && !bench_is_ending(); i++) {
		if (books[i].is_out ||
		    calibrate(bench, team, &row->players[i], &books[i]))
			continue;
		books[i].is_stuck = true;
		snprintf(result->players[i].why_not,
			 sizeof(result->players[i].why_not),
			 "it found too little to allocate");
	}
	for (uint32_t round = 0; round < MAX_ROUNDS_FACTOR * n_wanted;
	     round++) {
		bool is_done = true;

		for (uint32_t i = 0; i < row->n_players; i++) {
			const uint32_t who = (i + round) % row->n_players;
			struct book *book = &books[who];

			if (book->is_out || book->is_stuck ||
			    book->n_clean >= n_wanted)
				continue;
			if (bench_is_ending())
				return;
			take_sample(bench, team, &row->players[who], book);
			is_done = is_done && book->n_clean >= n_wanted;
		}
		if (is_done || (round + 1 >= n_wanted && is_late(bench, row)))
			return;
	}
}

/* Put the samples that count first; return how many those are. */
static uint32_t choose(struct book *book, bool *ret_is_noisy)
{
	uint32_t n = 0;

	*ret_is_noisy = book->n_clean < MIN_CLEAN && book->n_clean < book->n;
	if (*ret_is_noisy)
		return book->n;
	for (uint32_t i = 0; i < book->n; i++) {
		if (!book->is_clean[i])
			continue;
		book->ns[n] = book->ns[i];
		book->cycles[n++] = book->cycles[i];
	}
	return n;
}

static struct row_result *new_result(struct bench *bench, const struct row *row)
{
	struct results *results = &bench->results;
	struct row_result *result;

	if (results->n_rows == results->n_room) {
		const uint32_t n =
			results->n_room == 0 ? 64 : 2 * results->n_room;
		void *rows = realloc(results->rows, n * sizeof(*results->rows));

		if (rows == NULL)
			return NULL;
		results->rows = rows;
		results->n_room = n;
	}
	result = &results->rows[results->n_rows];
	*result = (struct row_result){ .workload = bench->workload,
				       .x = row->x,
				       .n_threads = row->n_threads,
				       .is_per_thread = row->is_per_thread };
	result->players = calloc(row->n_players, sizeof(*result->players));
	if (result->players == NULL)
		return NULL;
	results->n_rows++;
	result->n_players = row->n_players;
	snprintf(result->name, sizeof(result->name), "%s", row->name);
	snprintf(result->unit, sizeof(result->unit), "%s", row->unit);
	if (row->plot != NULL) {
		snprintf(result->plot, sizeof(result->plot), "%s", row->plot);
		snprintf(result->plot_count, sizeof(result->plot_count), "%s",
			 row->plot_count != NULL ? row->plot_count : "");
		snprintf(result->x_name, sizeof(result->x_name), "%s",
			 row->x_name);
	}
	return result;
}

static void evaluate(struct row *row, struct book *books,
		     struct row_result *result)
{
	const struct book *ours = NULL;
	uint32_t n_ours = 0;

	for (uint32_t i = 0; i < row->n_players; i++) {
		struct player_result *player = &result->players[i];
		struct book *book = &books[i];
		const uint32_t n = choose(book, &player->is_noisy);

		snprintf(player->name, sizeof(player->name), "%s",
			 row->players[i].name);
		player->side = row->players[i].side;
		player->n_samples = book->n;
		player->n_disturbed = book->n - book->n_clean;
		player->n_done = row->players[i].n_done;
		sample_summary(book->ns, n, &player->ns);
		player->cycles = sample_median(book->cycles, n);
		if (ours == NULL && player->side == SIDE_OURS && n > 0) {
			ours = book;
			n_ours = n;
		}
	}
	for (uint32_t i = 0; i < row->n_players && ours != NULL; i++)
		result->players[i].to_ours = sample_ratio(
			books[i].ns, result->players[i].ns.n, ours->ns, n_ours);
}

static void set_up(struct bench *bench, struct row *row, struct book *books,
		   struct row_result *result)
{
	for (uint32_t i = 0; i < row->n_players; i++) {
		struct player *player = &row->players[i];
		struct mr_reason why = { .text = "" };

		player->bench = bench;
		player->row = row;
		player->n_done = 0;
		player->state = NULL;
		if (bench_is_ending())
			snprintf(why.text, sizeof(why.text),
				 "a signal came first");
		else if (player->setup == NULL ||
			 player->setup(player, &why) >= 0)
			continue;
		books[i].is_out = true;
		snprintf(result->players[i].why_not,
			 sizeof(result->players[i].why_not), "%.150s",
			 why.text[0] != '\0' ? why.text : "setup failed");
	}
}

static void tear_down(struct row *row, const struct book *books,
		      struct row_result *result)
{
	for (uint32_t i = 0; i < row->n_players; i++) {
		struct player *player = &row->players[i];

		if (books[i].is_out)
			continue;
		if (player->count != NULL && books[i].n > 0)
			player->count(player, &result->players[i].counts);
		if (player->teardown != NULL)
			player->teardown(player);
	}
}

static void measure(struct bench *bench, struct row *row)
{
	struct book *books = calloc(row->n_players, sizeof(*books));
	struct row_result *result = new_result(bench, row);
	struct team *team = team_start(bench->cores, bench->n_cores,
				       row->n_threads, bench->has_dpdk);

	if (books != NULL && result != NULL && team != NULL) {
		bench->team = team;
		team_pin(bench->cores[0]);
		set_up(bench, row, books, result);
		take_samples(bench, team, row, books, result);
		tear_down(row, books, result);
		evaluate(row, books, result);
	}
	team_stop(team);
	free(books);
	if (!bench->options->is_quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
	if (bench->show != NULL && result != NULL)
		bench->show(result);
}

void bench_row(struct bench *bench, struct row *row)
{
	if (row->n_threads == 0)
		row->n_threads = 1;
	if (row->n_players == 0 || bench_is_ending() || !is_wanted(bench, row))
		return;
	if (bench->is_counting) {
		bench->n_jobs += row->n_players;
		if (bench->is_listing)
			printf("  %s/%s\n", bench->workload->name, row->name);
		return;
	}
	progress(bench, row);
	measure(bench, row);
	bench->n_jobs_done += row->n_players;
	if (bench_is_ending())
		bench->results.is_cut_short = true;
}

void bench_run(struct bench *bench, const struct workload *workload)
{
	bench->workload = workload;
	if (bench->start_ns == 0)
		bench->start_ns = now_ns();
	workload->rows(bench);
}

void bench_free(struct bench *bench)
{
	for (uint32_t i = 0; i < bench->results.n_rows; i++)
		free(bench->results.rows[i].players);
	free(bench->results.rows);
	mr_ctx_destroy(bench->ctx);
}

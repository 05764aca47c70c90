/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The variants of a row in turn, A B C, B C A, ..., so that none always follows
 * the same one. A sample during which the thread was moved off its core, or
 * the hypervisor took time, is put aside; where too few clean ones are to be
 * had, all count, and the report says so.
 */
#include <fnmatch.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "thread_group.h"

enum {
	MAX_ROUNDS_FACTOR = 2, /* how much longer to try for clean samples */
	/* A long sample is several runs of this: Ctrl-C is not to wait. */
	MAX_RUN_MS = 200,
};

int bench_end_signal;

struct mr_ctx *bench_ctx(struct bench *bench)
{
	return bench->ctx;
}

uint32_t bench_n_cores(const struct bench *bench)
{
	return bench->n_cores;
}

void bench_add(struct bench *bench, struct row *row,
	       const struct variant *variant)
{
	if ((bench->sides & 1u << variant->side) == 0 ||
	    (variant->side == SIDE_DPDK && !bench->has_dpdk) ||
	    row->n_variants == MAX_PLAYERS)
		return;
	for (uint32_t i = 0; i < bench->n_without; i++)
		if (fnmatch(bench->without[i], variant->name, 0) == 0)
			return;
	row->variants[row->n_variants++] = *variant;
}

void print_name(char *to, size_t n, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(to, n, format, arguments);
	va_end(arguments);
}

uint64_t bench_run_again(struct variant *variant, uint64_t n_most)
{
	/* A sample's at most: threads that wait for each other may be slow. */
	const uint64_t n =
		variant->n_sample < n_most ? variant->n_sample : n_most;
	struct thread_group_run run;

	if (bench_is_ending())
		return 0;
	thread_group_run(variant->bench->thread_group, variant, n, &run);
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
		    const struct variant *variant)
{
	const uint64_t by = variant->n_done > 0 ? variant->n_done : 1;

	count_add(counts, name, 1000.0 * (double)n / (double)by);
}

/* Is the row asked for? By "B06/from=depot bulk=64". */
static bool is_wanted(const struct bench *bench, const struct row *row)
{
	char full[160];

	snprintf(full, sizeof(full), "%s/%s", bench->workload->name, row->name);
	for (uint32_t i = 0; i < bench->n_names; i++)
		if (strcmp(full, bench->names[i]) == 0)
			return true;
	return bench->n_names == 0;
}

static uint32_t n_runs_of_sample(const struct bench *bench)
{
	return (bench->sample_ms + MAX_RUN_MS - 1) / MAX_RUN_MS;
}

/*
 * How many operations make one run: double until it takes long enough. A
 * variant that stops before it has done them cannot be measured.
 */
static bool calibrate(struct bench *bench, struct thread_group *thread_group,
		      struct variant *variant, struct book *book)
{
	const uint64_t wanted_ns =
		bench->sample_ms * 1000000ull / n_runs_of_sample(bench);
	struct thread_group_run run;
	uint64_t n = 64;

	for (;;) {
		thread_group_run(thread_group, variant, n, &run);
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
	thread_group_run(thread_group, variant, book->n_ops, &run);
	book->n_ops = book->n_ops * wanted_ns / (run.ns + 1) + 1;
	variant->n_sample = book->n_ops;
	return run.n_ops > 0;
}

/* All runs of one sample, unless a signal comes. */
static void run_sample(const struct bench *bench,
		       struct thread_group *thread_group,
		       struct variant *variant, uint64_t n_ops,
		       struct thread_group_run *ret)
{
	*ret = (struct thread_group_run){ 0 };
	for (uint32_t i = n_runs_of_sample(bench); i > 0; i--) {
		struct thread_group_run run;

		thread_group_run(thread_group, variant, n_ops, &run);
		ret->ns += run.ns;
		ret->cycles += run.cycles;
		ret->n_ops += run.n_ops;
		ret->n_switched += run.n_switched;
		ret->n_stolen += run.n_stolen;
		if (run.n_ops == 0 || bench_is_ending())
			return;
	}
}

static void take_sample(const struct bench *bench,
			struct thread_group *thread_group,
			struct variant *variant, struct book *book)
{
	const struct row *row = variant->row;
	struct thread_group_run run;
	double by;

	run_sample(bench, thread_group, variant, book->n_ops, &run);
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

/* No time to try for clean samples: there is a limit. */
static bool is_late(const struct bench *bench, const struct row *row)
{
	const double share = (double)(clock_ns() - bench->start_ns) / 1e9 /
			     bench->limit_s * bench->n_jobs;

	return bench->limit_s > 0 &&
	       share > bench->n_jobs_done + row->n_variants;
}

/* All samples of all variants, interleaved. */
static void take_samples(struct bench *bench, struct thread_group *thread_group,
			 struct row *row, struct book *books)
{
	const uint32_t n_wanted = bench->n_samples;

	for (uint32_t i = 0; i < row->n_variants && !bench_is_ending(); i++) {
		if (books[i].is_out || calibrate(bench, thread_group,
						 &row->variants[i], &books[i]))
			continue;
		books[i].is_stuck = true;
		snprintf(books[i].why_not, sizeof(books[i].why_not),
			 "it found too little to allocate");
	}
	for (uint32_t round = 0; round < MAX_ROUNDS_FACTOR * n_wanted;
	     round++) {
		bool is_done = true;

		for (uint32_t i = 0; i < row->n_variants; i++) {
			const uint32_t who = (i + round) % row->n_variants;
			struct book *book = &books[who];

			if (book->is_out || book->is_stuck ||
			    book->n_clean >= n_wanted)
				continue;
			if (bench_is_ending())
				return;
			take_sample(bench, thread_group, &row->variants[who],
				    book);
			is_done = is_done && book->n_clean >= n_wanted;
		}
		if (is_done || (round + 1 >= n_wanted && is_late(bench, row)))
			return;
	}
}

static void set_up(struct bench *bench, struct row *row, struct book *books)
{
	for (uint32_t i = 0; i < row->n_variants; i++) {
		struct variant *variant = &row->variants[i];
		struct mr_reason why = { .text = "" };

		variant->bench = bench;
		variant->row = row;
		variant->n_done = 0;
		variant->state = NULL;
		if (bench_is_ending())
			snprintf(why.text, sizeof(why.text),
				 "a signal came first");
		else if (variant->setup == NULL ||
			 variant->setup(variant, &why) >= 0)
			continue;
		books[i].is_out = true;
		snprintf(books[i].why_not, sizeof(books[i].why_not), "%.150s",
			 why.text[0] != '\0' ? why.text : "setup failed");
	}
}

static void tear_down(struct row *row, struct book *books)
{
	for (uint32_t i = 0; i < row->n_variants; i++) {
		struct variant *variant = &row->variants[i];

		if (books[i].is_out)
			continue;
		if (variant->count != NULL && books[i].n > 0)
			variant->count(variant, &books[i].counts);
		if (variant->teardown != NULL)
			variant->teardown(variant);
	}
}

static void measure(struct bench *bench, struct row *row)
{
	struct book *books = calloc(row->n_variants, sizeof(*books));
	struct thread_group *thread_group = thread_group_start(
		bench->cores, bench->n_cores, row->n_threads, bench->has_dpdk);

	if (books != NULL && thread_group != NULL) {
		bench->thread_group = thread_group;
		thread_group_pin(bench->cores[0]);
		set_up(bench, row, books);
		take_samples(bench, thread_group, row, books);
		tear_down(row, books);
		bench->show(bench, row, books);
	}
	thread_group_stop(thread_group);
	free(books);
}

void bench_row(struct bench *bench, struct row *row)
{
	if (row->n_threads == 0)
		row->n_threads = 1;
	if (row->n_variants == 0 || bench_is_ending() || !is_wanted(bench, row))
		return;
	if (bench->is_listing) {
		bench->show(bench, row, NULL);
	} else if (bench->is_counting) {
		bench->n_jobs += row->n_variants;
	} else {
		measure(bench, row);
		bench->n_jobs_done += row->n_variants;
	}
}

void bench_run(struct bench *bench, const struct workload *workload)
{
	bench->workload = workload;
	if (bench->start_ns == 0)
		bench->start_ns = clock_ns();
	workload->rows(bench);
}

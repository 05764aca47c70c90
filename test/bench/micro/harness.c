/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures the variants of a row in turn, A B C, B C A, ..., so that none
 * always follows the same one. A sample is disturbed if the thread was moved
 * off its core or the hypervisor took time. Disturbed samples count only if
 * there are too few others; the report says so.
 *
 * Threads sleep between runs, so a row of one thread has the machine for
 * itself. Before each run they meet at a counter, so that all begin together.
 */
#include <fnmatch.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "harness.h"
#include "peer_dpdk.h"

enum {
	MAX_ROUNDS_FACTOR = 2, /* of time, to get undisturbed samples */
	/* A long sample consists of such runs, so that Ctrl-C need not wait. */
	MAX_RUN_MS = 200,
};

int bench_end_signal;

/* One run of all threads. */
struct run {
	uint64_t ns;
	uint64_t cycles;     /* of the TSC; 0: there is none */
	uint64_t n_ops;      /* sum over the threads */
	uint64_t n_switched; /* involuntary context switches of the threads */
	uint64_t n_stolen;   /* ticks that the hypervisor took from the cores */
};

struct member {
	struct thread_group *thread_group;
	pthread_t thread;
	sem_t wake;
	uint32_t number, core;
	uint64_t n_ops, n_switched;
};

struct thread_group {
	uint32_t n_threads;
	bool is_registered, is_ending;
	struct variant *variant;
	uint64_t n;
	/*
	 * Members that are ready, and done. Touched only before and after the
	 * timed part, so they may share a cache line.
	 */
	uint32_t n_ready, n_done;
	struct member members[MAX_THREADS];
};

void pin_to_core(uint32_t core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	/* A core that went offline costs precision, not correctness. */
	(void)sched_setaffinity(0, sizeof(set), &set);
}

/* Spin, then yield: there may be more threads than cores. */
static void wait_for(const uint32_t *counter, uint32_t n)
{
	uint32_t n_spins = 0;

	while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < n) {
		if (++n_spins > 10000)
			sched_yield();
	}
}

static uint64_t read_cycles(void)
{
#if defined(__x86_64__)
	uint64_t now;

	/* Neither earlier nor later instructions cross this point. */
	_mm_lfence();
	now = __rdtsc();
	_mm_lfence();
	return now;
#else
	return 0;
#endif
}

static uint64_t n_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nivcsw;
}

/* Ticks that the hypervisor took so far from the group's cores. */
static uint64_t n_stolen(const struct thread_group *thread_group)
{
	char line[256];
	uint64_t sum = 0;
	FILE *file = fopen("/proc/stat", "re");

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL &&
	       strncmp(line, "cpu", 3) == 0) {
		unsigned int core;
		unsigned long long stolen;

		if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %llu",
			   &core, &stolen) != 2)
			continue;
		for (uint32_t i = 0; i < thread_group->n_threads; i++) {
			if (thread_group->members[i].core == core) {
				sum += stolen;
				break;
			}
		}
	}
	fclose(file);
	return sum;
}

static void take_part(struct member *member)
{
	struct thread_group *thread_group = member->thread_group;
	const uint64_t before = n_switches();

	__atomic_add_fetch(&thread_group->n_ready, 1, __ATOMIC_ACQ_REL);
	wait_for(&thread_group->n_ready, thread_group->n_threads);
	member->n_ops = thread_group->variant->run(
		thread_group->variant, member->number, thread_group->n);
	member->n_switched = n_switches() - before;
	__atomic_add_fetch(&thread_group->n_done, 1, __ATOMIC_ACQ_REL);
}

static void *member_main(void *opaque)
{
	struct member *member = opaque;
	struct thread_group *thread_group = member->thread_group;

	pin_to_core(member->core);
	if (thread_group->is_registered)
		dpdk_thread_begin();
	for (;;) {
		while (sem_wait(&member->wake) != 0)
			;
		if (thread_group->is_ending)
			break;
		take_part(member);
	}
	if (thread_group->is_registered)
		dpdk_thread_end();
	return NULL;
}

static void thread_group_stop(struct thread_group *thread_group)
{
	if (thread_group == NULL)
		return;
	thread_group->is_ending = true;
	for (uint32_t i = 1; i < thread_group->n_threads; i++) {
		sem_post(&thread_group->members[i].wake);
		pthread_join(thread_group->members[i].thread, NULL);
		sem_destroy(&thread_group->members[i].wake);
	}
	free(thread_group);
}

/*
 * Start n_threads - 1 threads beside the calling one. Thread i runs on core
 * cores[i % n_cores]. is_registered: each thread registers with DPDK. Returns
 * NULL if a thread does not start.
 */
static struct thread_group *thread_group_start(const uint32_t *cores,
					       uint32_t n_cores,
					       uint32_t n_threads,
					       bool is_registered)
{
	struct thread_group *thread_group = calloc(1, sizeof(*thread_group));

	if (thread_group == NULL)
		return NULL;
	thread_group->n_threads = n_threads;
	thread_group->is_registered = is_registered;
	for (uint32_t i = 0; i < n_threads; i++) {
		struct member *member = &thread_group->members[i];

		*member = (struct member){ .thread_group = thread_group,
					   .number = i,
					   .core = cores[i % n_cores] };
		if (i == 0)
			continue;
		sem_init(&member->wake, 0, 0);
		if (pthread_create(&member->thread, NULL, member_main,
				   member) != 0) {
			sem_destroy(&member->wake);
			thread_group->n_threads = i;
			thread_group_stop(thread_group);
			return NULL;
		}
	}
	return thread_group;
}

/* Run the variant once on all threads. */
static void thread_group_run(struct thread_group *thread_group,
			     struct variant *variant, uint64_t n,
			     struct run *ret)
{
	const uint64_t stolen = n_stolen(thread_group);
	uint64_t start_ns, start_cycles;

	*ret = (struct run){ 0 };
	thread_group->variant = variant;
	thread_group->n = n;
	thread_group->n_ready = thread_group->n_done = 0;
	for (uint32_t i = 1; i < thread_group->n_threads; i++)
		sem_post(&thread_group->members[i].wake);
	wait_for(&thread_group->n_ready, thread_group->n_threads - 1);
	start_ns = clock_ns();
	start_cycles = read_cycles();
	take_part(&thread_group->members[0]);
	wait_for(&thread_group->n_done, thread_group->n_threads);
	ret->cycles = read_cycles() - start_cycles;
	ret->ns = clock_ns() - start_ns;
	for (uint32_t i = 0; i < thread_group->n_threads; i++) {
		ret->n_ops += thread_group->members[i].n_ops;
		ret->n_switched += thread_group->members[i].n_switched;
	}
	ret->n_stolen = n_stolen(thread_group) - stolen;
	variant->n_done += ret->n_ops;
}

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
	/* At most a sample: threads that wait for each other may be slow. */
	const uint64_t n =
		variant->n_sample < n_most ? variant->n_sample : n_most;
	struct run run;

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

/* Whether the row was asked for, by a name like "B06/from=depot bulk=64". */
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
 * The number of operations of a run: doubled until it takes long enough. A
 * variant that stops before it has done them cannot be measured.
 */
static bool calibrate_variant(struct bench *bench,
			      struct thread_group *thread_group,
			      struct variant *variant, struct book *book)
{
	const uint64_t wanted_ns =
		bench->sample_ms * 1000000ull / n_runs_of_sample(bench);
	struct run run;
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
	/* The first estimate was made on cold caches: repeat it. */
	thread_group_run(thread_group, variant, book->n_ops, &run);
	book->n_ops = book->n_ops * wanted_ns / (run.ns + 1) + 1;
	variant->n_sample = book->n_ops;
	return run.n_ops > 0;
}

/* All runs of a sample, unless a signal comes. */
static void run_sample(const struct bench *bench,
		       struct thread_group *thread_group,
		       struct variant *variant, uint64_t n_ops, struct run *ret)
{
	*ret = (struct run){ 0 };
	for (uint32_t i = n_runs_of_sample(bench); i > 0; i--) {
		struct run run;

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
	struct run run;
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

/* There is a time limit: do not try again for undisturbed samples. */
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
		if (books[i].is_out ||
		    calibrate_variant(bench, thread_group, &row->variants[i],
				      &books[i]))
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

static void measure_row(struct bench *bench, struct row *row)
{
	struct book *books = calloc(row->n_variants, sizeof(*books));
	struct thread_group *thread_group = thread_group_start(
		bench->cores, bench->n_cores, row->n_threads, bench->has_dpdk);

	if (books != NULL && thread_group != NULL) {
		bench->thread_group = thread_group;
		pin_to_core(bench->cores[0]);
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
		measure_row(bench, row);
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

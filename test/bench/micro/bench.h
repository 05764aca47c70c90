/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a workload sees: rows, and players that compete in a row.
 *
 * A row is one piece of work with all its parameters. Its players do the same
 * work in different ways, and are measured in turn, sample by sample, so that
 * what the machine does meanwhile happens to all of them.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

enum {
	MAX_PLAYERS = 48, /* in one row */
	MAX_COUNTS = 24,  /* of one player */
	MAX_THREADS = 64,
};

/* Whose code a player runs. */
enum side {
	SIDE_OURS,
	SIDE_DPDK,
	SIDE_KERNEL, /* a model of the kernel's algorithm, in user space */
	SIDE_PLAIN,  /* the least that could be done: a floor, no peer */
	SIDE_MALLOC,
};

/* Figures beside the time, by name. */
struct counts {
	uint32_t n;
	struct {
		const char *name; /* a constant string */
		double value;
	} of[MAX_COUNTS];
};

struct bench;
struct player;
struct row;

/*
 * Do about n operations; return how many were done. Called on each of the row's
 * threads at once, which have the numbers 0 to n_threads - 1.
 */
typedef uint64_t player_run_fn(struct player *player, uint32_t thread,
			       uint64_t n);

struct player {
	const char *name;
	enum side side;
	/*
	 * Make what run() needs, in state. Runs on thread 0. Negative: the
	 * player does not take part, and the report says why.
	 */
	int (*setup)(struct player *player, struct mr_reason *why);
	player_run_fn *run;
	/* Say what happened, after the last sample; or NULL. */
	void (*count)(struct player *player, struct counts *counts);
	void (*teardown)(struct player *player); /* or NULL; after a setup() */
	uint64_t param[8];                       /* the workload's */
	const void *opaque;                      /* the workload's */
	void *state;                             /* the player's */
	struct bench *bench; /* set by the harness, as what follows */
	const struct row *row;
	uint64_t n_done;   /* operations so far, of all threads */
	uint64_t n_sample; /* operations of a thread in one sample */
};

struct row {
	const char *name; /* parameters, as "from=depot bulk=64" */
	const char *unit; /* what an operation is: "page" */
	uint32_t
		n_threads; /* 0: 1; each on a core of its own while there are */
	/*
	 * Time of a row of several threads: 0: wall time by operation, for
	 * pipelines; 1: time of one core by operation, for threads that all do
	 * the same.
	 */
	bool is_per_thread;
	/* Place in a chart: rows of the same plot are points by x. */
	const char *plot;       /* NULL: in none */
	const char *plot_count; /* of this figure beside the time, too */
	const char *x_name;     /* "pages per call" */
	double x;
	struct player *players;
	uint32_t n_players;
};

/* Whether it is a point of a chart of lines. */
static inline bool has_plot(const struct row *row)
{
	return row->plot != NULL;
}

/* A family of rows: one line in the tables of workloads.c. */
struct workload {
	const char *name;   /* "B06" */
	const char *title;  /* "bulk" */
	const char *what;   /* one line for --list and the report */
	const char *source; /* where the workload comes from */
	/* Call bench_row() for each row. Nothing else may be slow. */
	void (*rows)(struct bench *bench);
};

/*
 * Measure a row, or count it where only the number of rows is wanted. The row
 * and its players may be the caller's locals: names are copied.
 */
void bench_row(struct bench *bench, struct row *row);

/* Add a player to players, unless the command line leaves its side out. */
struct player *bench_add(struct bench *bench, struct player *players,
			 uint32_t *n_players, const struct player *player);

/* The context for pools. */
struct mr_ctx *bench_ctx(struct bench *bench);

/* Cores that may be used; at least 1. */
uint32_t bench_n_cores(const struct bench *bench);

/* Rows of 1, 2, 4, ... threads, up to most, which is one of them. */
static inline uint32_t next_n_threads(uint32_t n, uint32_t most)
{
	return n < most && 2 * n > most ? most : 2 * n;
}

/*
 * From count(): one more sample of the player on all threads, or a shorter one,
 * without a clock. Returns the operations done.
 */
uint64_t bench_run_again(struct player *player, uint64_t n_most);

void count_add(struct counts *counts, const char *name, double value);

/* n, of all runs, by 1000 operations of the player. */
void count_per_1000(struct counts *counts, const char *name, uint64_t n,
		    const struct player *player);

/* Set by a signal: end after this run, with what there is. */
extern int bench_end_signal;

/* For loops that may take longer than asked for, as with more threads than
 * cores: return now, the sample does not count.
 */
static inline bool bench_is_ending(void)
{
	return __atomic_load_n(&bench_end_signal, __ATOMIC_RELAXED) != 0;
}

/* Keep the compiler from leaving out what was computed. */
static inline void keep(const void *p)
{
	__asm__ __volatile__("" : : "r"(p) : "memory");
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes the samples of rows. bench.h is its interface for workloads. */
#ifndef HARNESS_H
#define HARNESS_H

#include "bench.h"

struct thread_group;

enum { MAX_SAMPLES = 512, MAX_WITHOUT = 16 };

/* The samples of a variant. */
struct book {
	double ns[MAX_SAMPLES], cycles[MAX_SAMPLES]; /* per operation */
	bool is_clean[MAX_SAMPLES];                  /* it was not disturbed */
	uint32_t n, n_clean;
	uint64_t n_ops;    /* operations of a run */
	char why_not[160]; /* why it does not take part; "" if it does */
	bool is_out;       /* its setup failed */
	bool is_stuck;     /* its run() failed */
	struct counts counts;
};

struct bench {
	struct mr_ctx *ctx;
	char *const *names; /* like "B06/from=depot bulk=64"; empty: all rows */
	uint32_t n_names;
	uint32_t sides;                   /* a bit for each enum side */
	const char *without[MAX_WITHOUT]; /* patterns of variants */
	uint32_t n_without;
	uint32_t n_samples, sample_ms;
	uint32_t limit_s; /* when to end, with what there is; 0: never */
	uint32_t n_cores;
	uint32_t cores[MAX_THREADS];
	bool has_dpdk;
	char why_no_dpdk[160];
	bool is_listing;                   /* list rows, measure none */
	bool is_counting;                  /* only count variants */
	const struct workload *workload;   /* the workload whose rows are run */
	struct thread_group *thread_group; /* in this row */
	uint32_t n_jobs;                   /* in all rows */
	uint32_t n_jobs_done;
	uint64_t start_ns;
	/* Called with each row that was measured. */
	void (*show)(const struct bench *bench, const struct row *row,
		     const struct book *books);
};

/* Pin the calling thread, which becomes thread 0 of all rows, to a core. */
void pin_to_core(uint32_t core);

/* Run the rows of a workload, or count them. */
void bench_run(struct bench *bench, const struct workload *workload);

#endif

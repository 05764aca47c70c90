/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes the samples of rows. The workloads see its other side, bench.h. */
#ifndef HARNESS_H
#define HARNESS_H

#include "bench.h"

struct thread_group;

enum { MAX_SAMPLES = 512, MAX_WITHOUT = 16 };

/* The samples of one variant. */
struct book {
	double ns[MAX_SAMPLES], cycles[MAX_SAMPLES]; /* by operation */
	bool is_clean[MAX_SAMPLES];                  /* nothing disturbed it */
	uint32_t n, n_clean;
	uint64_t n_ops;    /* to ask for in one run */
	char why_not[160]; /* it does not take part; "" if it does */
	bool is_out;       /* its setup failed */
	bool is_stuck;     /* its run() failed */
	struct counts counts;
};

struct bench {
	struct mr_ctx *ctx;
	char *const *names; /* "B06/from=depot bulk=64"; none: all rows */
	uint32_t n_names;
	uint32_t sides;                   /* bit by enum side */
	const char *without[MAX_WITHOUT]; /* patterns of variants */
	uint32_t n_without;
	uint32_t n_samples, sample_ms;
	uint32_t limit_s; /* ends then, with what there is; 0: none */
	uint32_t n_cores;
	uint32_t cores[MAX_THREADS];
	bool has_dpdk;
	char why_no_dpdk[160];
	bool is_listing;                   /* show rows, and measure none */
	bool is_counting;                  /* only count variants */
	const struct workload *workload;   /* whose rows are run */
	struct thread_group *thread_group; /* of this row */
	uint32_t n_jobs;                   /* variants in all rows */
	uint32_t n_jobs_done;
	uint64_t start_ns;
	/* Called with each row that is done. */
	void (*show)(const struct bench *bench, const struct row *row,
		     const struct book *books);
};

/* Put the calling thread, which becomes thread 0 of all rows, on a core. */
void pin_to_core(uint32_t core);

/* Run (or count) the rows of one workload. */
void bench_run(struct bench *bench, const struct workload *workload);

#endif

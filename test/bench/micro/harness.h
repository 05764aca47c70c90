/* SPDX-License-Identifier: BSD-3-Clause */
/* Takes the samples of rows. The workloads see its other side, bench.h. */
#ifndef HARNESS_H
#define HARNESS_H

#include "bench.h"
#include "options.h"
#include "result.h"

struct team;

/* --goals ends then, with what there is. */
enum { GOALS_LIMIT_S = 660 };

struct bench {
	const struct options *options;
	struct mr_ctx *ctx;
	uint32_t n_cores;
	uint32_t cores[MAX_THREADS];
	bool has_dpdk;
	char why_no_dpdk[160];
	bool is_counting;                /* only count rows and samples */
	bool is_listing;                 /* print the names of rows */
	const struct workload *workload; /* whose rows are run */
	struct team *team;               /* of this row */
	uint32_t n_jobs;                 /* players in all rows */
	uint32_t n_jobs_done;
	uint64_t start_ns;
	uint64_t line_ns; /* of the last line of progress, since the start */
	struct results results;
	/* Called with each row that is done; or NULL. */
	void (*show)(const struct row_result *row);
};

/* Run (or count) the rows of one workload. */
void bench_run(struct bench *bench, const struct workload *workload);

void bench_free(struct bench *bench);

#endif

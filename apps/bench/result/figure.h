/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figures of documents, by name, and whether those of two sets of documents
 * differ.
 */
#ifndef RESULT_FIGURE_H
#define RESULT_FIGURE_H

#include <stdbool.h>
#include <stdint.h>

#include "result/read.h"
#include "sample.h"

enum { MAX_RUNS = 256 }; /* of a side; more are left out */

/* One side's values of a figure: one for each run, with its own bounds. */
struct figure_side {
	double values[MAX_RUNS], lows[MAX_RUNS], highs[MAX_RUNS];
	uint32_t n;
	bool is_limited_by_tester; /* at least once */
};

struct figure {
	char name[224]; /* "64 B ndr", "B06 bulk=32: array" */
	char unit[24];
	/* Changes up to this count as none; 0: use the unit's floor. */
	double floor;
	struct figure_side sides[2]; /* baseline, compared */
};

struct figures {
	struct figure **of;
	uint32_t n;
};

/*
 * Add the figures of a document to a side: its rows, or, if it has none, what
 * its trials came to. Owner: figures, freed by figures_free().
 */
void figures_add(struct figures *figures, const struct read_document *document,
		 uint32_t side);
void figures_free(struct figures *figures);

enum verdict {
	VERDICT_SAME, /* differs by no more than the threshold */
	VERDICT_BETTER,
	VERDICT_WORSE,
	VERDICT_UNCLEAR, /* a side has one run, or the difference is no
			  * larger than that of runs, or one of them is the
			  * tester's limit */
	VERDICT_ALONE,   /* one side does not have it */
};

/* Compared by baseline. */
struct comparison {
	double medians[2];
	/* value 0: no ratio, for the baseline is 0. */
	struct ratio ratio;
	/* The interval is 95 % of bootstrap; else from the lowest to the
	 * highest ratio of any two runs, with their own bounds, and wider
	 * where a side has 2 or 3 runs. */
	bool is_bootstrap;
	bool has_few_runs; /* a side has one run, which shows no spread */
	enum verdict verdict;
};

/* threshold: share by which figures may differ, as 0.01. */
void figure_compare(const struct figure *figure, double threshold,
		    struct comparison *ret);

const char *verdict_name(enum verdict verdict);

#endif

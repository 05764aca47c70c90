/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench compare: what two sets of documents differ in. */
#ifndef RESULT_COMPARE_H
#define RESULT_COMPARE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <millrace/millrace.h>

#include "result/figure.h"
#include "result/read.h"

enum { COMPARE_MAX_FILES = 256, COMPARE_MAX_DIFFERENCES = 64 };

/* Something beside the figures that is not the same on both sides. */
struct difference {
	char what[64]; /* "machine.kernel" */
	char values[2][160];
	bool is_refused; /* unless --anyway: figures would not tell why */
};

struct compare {
	struct read_document documents[COMPARE_MAX_FILES];
	uint32_t sides[COMPARE_MAX_FILES]; /* 0: baseline, 1: compared */
	uint32_t n_documents;
	double threshold;
	bool is_anyway; /* judge what was measured differently, too */
	struct difference differences[COMPARE_MAX_DIFFERENCES];
	uint32_t n_differences;
	struct figures figures;
	struct comparison *comparisons; /* by figure */
	uint32_t n_by_verdict[VERDICT_ALONE + 1];
};

/* Look for what differs, and compare all figures. */
void compare_all(struct compare *compare);
/* Measured differently, so that figures would not tell why they differ. */
bool compare_is_refused(const struct compare *compare);

/* For people, and for programs: mr-bench-compare.schema.json. */
bool compare_print(const struct compare *compare, FILE *to);
bool compare_print_json(const struct compare *compare, FILE *to);

/* Exit status: 0; 1: something is worse; 2: there is nothing to compare;
 * 3: nothing is worse, but some figure has only one run on a side. */
int compare_main(int argc, char **argv);

#endif

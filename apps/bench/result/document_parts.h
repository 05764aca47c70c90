/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of a document share. */
#ifndef RESULT_DOCUMENT_PARTS_H
#define RESULT_DOCUMENT_PARTS_H

#include "result/document.h"
#include "support/json_text.h"

#define DOCUMENT_SCHEMA "mr-bench-net"
#define DOCUMENT_VERSION 1

/* What HDR logs need of a trial: its histogram is large, and this is not. */
struct document_hdr {
	char *log_line, *percentiles; /* NULL: it has no latencies */
};

struct document {
	json_t *root;
	double start_s; /* since the epoch */
	/* Of testing, so far: where the next trial, or interval, begins. A
	 * virtual clock has them, too. */
	double trials_s, intervals_s;
	struct document_hdr *hdr; /* by trial */
	uint32_t n_hdr;
};

json_t *document_count(uint64_t n);

/* JSON has no infinity; what is none, of 0 seconds or frames, is 0. */
json_t *document_real(double value);

#endif

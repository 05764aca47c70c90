/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as a document: refused with a reason, or compared and drawn. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "result/compare.h"
#include "result/page.h"

#define HEAD                                                                   \
	"{\"schema\":\"mr-bench-net\",\"v\":1,\"kind\":\"frameloss\","         \
	"\"machine\":{},\"ports\":[{\"name\":\"a\",\"mode\":\"b\"}],"          \
	"\"line_bps\":1e9,"
#define TIMES "{\"n\":9,\"p50\":7,\"p99\":8,\"max\":9}"
#define TRIAL                                                                  \
	"{\"frame_bytes\":60,\"asked_pps\":9,\"start_s\":0,\"duration_s\":1,"  \
	"\"tx\":{\"sent\":9,\"pps\":9},\"rx\":{\"lost\":1},"                   \
	"\"latency\":" TIMES ",\"lateness\":" TIMES ","                        \
	"\"percentiles\":{\"latency\":[[0,1],[50,7],[100,9]]},"                \
	"\"histogram\":{\"latency\":[[1,2,4],[8,9,5]]}}"
#define ROW                                                                    \
	"{\"frame_bytes\":60,\"goal\":\"ndr\",\"unit\":\"frames/s\","          \
	"\"value\":9,\"low\":8,\"high\":10,\"trials\":[0]}"
#define POINT                                                                  \
	"{\"frame_bytes\":60,\"start_s\":1,\"tx_pps\":9,\"rx_pps\":9,"         \
	"\"latency\":" TIMES "}"

const struct fuzz_seed fuzz_seeds[] = {
	SEED(HEAD "\"selftest\":[{\"frame_bytes\":60,\"ceiling_pps\":99}],"
		  "\"rows\":[" ROW "],\"trials\":[" TRIAL "],"
		  "\"series\":[" POINT "," POINT "]}"),
	SEED(HEAD "\"selftest\":[],\"rows\":[],\"trials\":[" TRIAL "],"
		  "\"series\":[]}"),
	SEED("{\"v\":1,\"command\":\"mem\",\"machine\":{},\"rows\":["
	     "{\"workload\":\"<script>\",\"name\":\"x\",\"unit\":\"y\","
	     "\"players\":[{\"name\":\"z\",\"ns\":{\"median\":1}}]}]}"),
	SEED("{\"v\":1,\"command\":\"mem\",\"machine\":{},\"rows\":["
	     "{\"workload\":\"B01\",\"name\":\"x\",\"unit\":\"y\","
	     "\"players\":[{\"name\":\"z\",\"ns\":{\"median\":1}}]}]}"),
	{ NULL, 0 },
};

/* With itself there is nothing that could be worse. */
static void compare(const struct read_document *document, FILE *to)
{
	struct compare *compare = calloc(1, sizeof(*compare));

	FUZZ_CHECK(compare != NULL);
	compare->documents[0] = compare->documents[1] = *document;
	compare->sides[1] = 1;
	compare->n_documents = 2;
	compare->threshold = 0.01;
	compare_all(compare);
	FUZZ_CHECK(!compare_is_refused(compare));
	FUZZ_CHECK(compare->n_by_verdict[VERDICT_WORSE] == 0);
	FUZZ_CHECK(compare->n_by_verdict[VERDICT_BETTER] == 0);
	FUZZ_CHECK(compare_print(compare, to));
	FUZZ_CHECK(compare_print_json(compare, to));
	figures_free(&compare->figures);
	free(compare->comparisons);
	free(compare);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct mr_reason why = { .text = "" };
	struct read_document document;
	char *text = NULL;
	size_t n_text = 0, page_at;
	FILE *to;

	if (document_read_bytes("x", bytes, n_bytes, &document, &why) < 0) {
		FUZZ_CHECK(strncmp(why.text, "x: ", 3) == 0);
		FUZZ_CHECK(strchr(why.text, '\n') == NULL);
		return 0;
	}
	to = open_memstream(&text, &n_text);
	FUZZ_CHECK(to != NULL);
	compare(&document, to);
	fflush(to);
	page_at = n_text; /* only the rest is HTML */
	if (document.schema == SCHEMA_NET)
		FUZZ_CHECK(page_write(&document, 1, "title", to));
	fclose(to);
	FUZZ_CHECK(strstr(text + page_at, "<script") == NULL);
	free(text);
	read_document_free(&document);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr-bench-engine serve: the requests of a front end, one JSON object per line
 * on stdin, and the answers on stdout (mr-bench-engine.schema.json).
 *
 *     begin --> [ open --> trial, alone ... ] --> finish
 *
 * The front end reads options, searches, and writes the document; the engine
 * opens ports, describes them, and runs trials. One thread.
 */
#ifndef ENGINE_SERVE_H
#define ENGINE_SERVE_H

#include <jansson.h>

#include "net/tester.h"
#include "result/document.h"
#include "stream/compiled.h"

#define SERVE_VERSION 5

struct serving {
	struct tester_config config;
	json_t *document;      /* describes the open ports */
	struct tester *tester; /* NULL: no ports are open */
	struct trial_result *result;
	struct nat_path *nat; /* NULL: none is open */
	const char *specs[2]; /* of its ports */
	/* Arrays that config points to; texts are never freed. */
	const char *tx[MAX_PORTS], *rx[MAX_PORTS];
	struct device_config device;
	/* Of the running trial: when the next line of progress is due, the
	 * interval between lines, and the latencies reported so far (by
	 * receiver; NULL: none are). */
	uint64_t line_ns, interval_ns;
	struct hist *told;
};

/* Answer a request: fill reply and return 0; or return the exit status that the
 * front end may end with, and a reason. */
typedef int request_fn(struct serving *serving, const json_t *request,
		       json_t *reply, struct mr_reason *why);

request_fn serve_open, serve_trial, serve_alone;
request_fn serve_nat_open, serve_nat_phase;

/* A member of a request; 0 if it is missing. */
uint64_t serve_count(const json_t *request, const char *key);
struct device_config serve_device(const json_t *device);

/* Returns 0, or 1 if pages are missing, with a line on stderr. */
int serve_nat_close(struct serving *serving);

/* Serve a front end. Returns the exit status. */
int serve_main(int argc, char **argv);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a command measured, and on what: one JSON object that others can repeat
 * and compare, mr-bench-net.schema.json. CSV and HDR logs are made of the same.
 *
 * One thread. Texts are copied. Lengths of frames are without FCS.
 */
#ifndef RESULT_DOCUMENT_H
#define RESULT_DOCUMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include <millrace/millrace.h>

struct document;
struct hist;
struct tester;
struct trial_result;

/*
 * kind: the command, "throughput". label: what people call it; "" for none.
 * command: as typed. Looks at the machine at once, before it is busy.
 * Never NULL. Owner: the caller, who calls document_free().
 */
struct document *document_new(const char *kind, const char *label,
			      const char *command);
void document_free(struct document *document);

/* A port as it was opened, and who uses it. */
struct document_port {
	struct mr_port_info info;
	struct mr_link link; /* zeros: unknown */
	bool sends, receives;
	const uint32_t *cores; /* of the threads that use it */
	uint32_t n_cores;      /* 0: not known */
};

/* Add a port, with its NIC. */
void document_port(struct document *document, const struct document_port *port);

/* source: constant. error_ns: what a reading may be off by. Once. */
void document_clock(struct document *document, const char *source,
		    uint64_t error_ns);

/* The cores that the threads which measure ran on. */
void document_cores(struct document *document, const uint32_t *cores,
		    uint32_t n);

/* All of a tester: ports, the clock, streams and the simulated DUT. Once. */
void document_ports(struct document *document, const struct tester *tester);

/* In "config": what was asked for. Takes value over. */
void document_set(struct document *document, const char *key, json_t *value);

/* Everything of a trial that began start_s after the first; frame_bytes 0: a
 * mix. Owner: the caller. */
json_t *document_trial_json(double start_s, uint32_t frame_bytes,
			    const struct trial_result *result);

/* Add it. Returns its number, from 0. */
uint32_t document_trial(struct document *document, uint32_t frame_bytes,
			const struct trial_result *result);

/*
 * What a trial has counted so far, as one line of JSON: "definitions/line" of
 * the schema; and latencies, unless they are NULL. Returns false: it was not
 * written.
 */
bool document_line(const struct trial_result *so_far, bool has_tx, bool has_rx,
		   const struct hist *latency, FILE *to);

/* A point of a time series, where a trial would say too much. */
void document_interval(struct document *document, uint32_t frame_bytes,
		       const struct trial_result *result);

/* Add the "rows", "selftest", "config" and "measured" of an object: findings of
 * a front end, as the schema has them. */
void document_add(struct document *document, const json_t *found);

/* Not all was measured, because of why. The first reason stays. */
void document_fail(struct document *document, const char *why);

/*
 * Write it: path "-" is standard output, a file is complete or not touched.
 * CSV: a line per row, or, where there are none, per trial.
 * HDR: path is the log of all trials; path.N.hgrm the percentiles of trial N.
 * Return 0, or -errno with the reason.
 */
int document_write(const struct document *document, const char *path,
		   struct mr_reason *why);
int document_write_csv(const struct document *document, const char *path,
		       struct mr_reason *why);
int document_write_hdr(const struct document *document, const char *path,
		       struct mr_reason *why);

/* The same in one line. */
bool document_write_line(const struct document *document, FILE *to);

/* The whole, to look at. Owner: the document. */
const json_t *document_json(const struct document *document);

#endif

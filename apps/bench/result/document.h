/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The document of a command: its results, and the machine and ports that they
 * were measured on, as one JSON object (mr-bench-net.schema.json). The front
 * end completes it and writes it, also as CSV and HDR logs
 * (front/mr_bench/result.py).
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

struct dataplane;
struct hist;
struct tester;
struct trial_result;

/* Describes the build, and has an empty "config"; the front end adds the
 * machine. Never NULL. Owner: the caller. */
json_t *document_begin(void);

/* source: constant. error_ns: what a reading may be off by. Once. */
void document_clock(json_t *document, const char *source, uint64_t error_ns);

/* Add the ports of a plane, whose NICs the front end adds, and the cores of the
 * measuring threads. sends and receives have a bit per port. */
void document_plane(json_t *document, const struct dataplane *plane,
		    const uint32_t *cores, uint32_t n_cores, uint32_t sends,
		    uint32_t receives);

/* Add a tester's ports, clock and streams. Call it once. */
void document_ports(json_t *document, const struct tester *tester);

/* In "config": what was asked for. Takes value over. */
void document_set(json_t *document, const char *key, json_t *value);

/* Everything of a trial, as of the first; frame_bytes 0: a mix. Owner: the
 * caller. */
json_t *document_trial_json(uint32_t frame_bytes,
			    const struct trial_result *result);

/* Add it: the only one. */
void document_trial(json_t *document, uint32_t frame_bytes,
		    const struct trial_result *result);

/* [bucket, values] of those that are not empty, for HDR logs. Owner: the
 * caller. */
json_t *document_buckets(const struct hist *hist);

/*
 * What a trial has counted so far, as one line of JSON: "definitions/line" of
 * the schema; and latencies, unless they are NULL. Returns false: it was not
 * written.
 */
bool document_line(const struct trial_result *so_far, bool has_tx, bool has_rx,
		   const struct hist *latency, FILE *to);

/* Not all was measured, because of why. The first reason stays. */
void document_fail(json_t *document, const char *why);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine knows of a document (mr-bench-net.schema.json), as JSON. The
 * front end adds statistics of histograms, the machine and NICs
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
struct dataplane_config;
struct hist;
struct tester;
struct trial_result;

/* Describes the build, and has the configuration of ports and threads in
 * "config". Never NULL. Owner: the caller. */
json_t *document_begin(const struct dataplane_config *plane);

/* source: constant. error_ns: what a reading may be off by. Once. */
void document_clock(json_t *document, const char *source, uint64_t error_ns);

/* Add the ports of a plane, and the cores of the measuring threads. sends and
 * receives have a bit per port. */
void document_plane(json_t *document, const struct dataplane *plane,
		    const uint32_t *cores, uint32_t n_cores, uint32_t sends,
		    uint32_t receives);

/* Add a tester's ports, clock and streams. Call it once. */
void document_ports(json_t *document, const struct tester *tester);

/* Everything of a trial. Owner: the caller. */
json_t *document_trial(const struct trial_result *result);

/*
 * Write what a trial has counted so far as one line of JSON, "progress" of the
 * engine's schema, with latencies unless they are NULL. Returns false: it was
 * not written.
 */
bool document_line(const struct trial_result *so_far, bool has_tx, bool has_rx,
		   const struct hist *latency, FILE *to);

json_t *document_count(uint64_t n);

/* An object of counts; names are separated by spaces. Owner: the caller. */
json_t *document_counts(const char *names, const uint64_t *values);

/* JSON has no infinity and no NaN: these are 0. */
json_t *document_real(double value);

#endif

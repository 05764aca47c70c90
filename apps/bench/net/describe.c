/* SPDX-License-Identifier: BSD-3-Clause */
/* What was asked for, in a document. */
#include "net/describe.h"

static void set_number(struct document *document, const char *key, uint64_t n)
{
	document_set(document, key, json_integer((json_int_t)n));
}

static void set_seconds(struct document *document, const char *key, uint64_t ns)
{
	document_set(document, key, json_real((double)ns / 1e9));
}

void traffic_describe(const struct traffic_options *options,
		      struct document *document)
{
	static const char *const paces[] = { "constant", "poisson", "bursts" };
	const struct tester_config *tester = &options->tester;
	const struct trial_config *trial = &options->trial;
	char rate[40];

	rate_print(&trial->rate, rate, sizeof(rate));
	document_set(document, "rate", json_string(rate));
	document_set(document, "pace", json_string(paces[trial->pace]));
	if (trial->pace == PACE_BURSTS)
		set_number(document, "pace_frames", trial->burst_frames);
	set_seconds(document, "duration_s", trial->duration_ns);
	set_number(document, "count", trial->n_frames);
	set_seconds(document, "settle_s", trial->settle_ns);
	set_seconds(document, "max_lag_s", trial->max_lag_ns);
	set_number(document, "size", tester->frame_bytes);
	set_number(document, "seed", tester->seed);
	set_number(document, "queues", tester->plane.port.n_queues);
	set_number(document, "workers", tester->plane.n_workers);
	set_number(document, "burst", tester->plane.burst);
	set_number(document, "ring", tester->plane.port.n_ring);
	document_set(document, "virtual", json_boolean(tester->is_virtual));
	document_set(document, "bidirectional",
		     json_boolean(options->is_bidirectional));
	document_set(document, "unstamped", json_boolean(tester->is_unstamped));
}

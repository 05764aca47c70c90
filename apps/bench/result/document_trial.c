/* SPDX-License-Identifier: BSD-3-Clause */
/* Describes trials, for the front end to complete. */
#include "net/hist.h"
#include "net/trial.h"
#include "result/document.h"
#include "support/json_text.h"

enum { LINE_VERSION = 1 };

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

/* All buckets: the front end computes statistics. */
static json_t *histogram(const struct hist *hist)
{
	json_t *counts, *object;

	if (hist->n == 0)
		return json_null();
	counts = json_array();
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		if (hist->counts[i] > 0)
			json_array_append_new(
				counts, json_pack("[I, I]", (json_int_t)i,
						  (json_int_t)hist->counts[i]));
	object = document_counts(
		"n n_over min max",
		(uint64_t[]){ hist->n, hist->n_over, hist->min, hist->max });
	json_object_set_new(object, "sum", document_real(hist->sum));
	json_object_set_new(object, "sum_sq", document_real(hist->sum_sq));
	json_object_set_new(object, "counts", counts);
	return object;
}

static json_t *tx_object(const struct trial_result *r)
{
	json_t *object = document_counts(
		"due sent unsent bytes",
		(uint64_t[]){ r->due, r->sent, r->unsent, r->tx_bytes });

	json_object_set_new(object, "pps", document_real(r->tx_pps));
	return object;
}

static json_t *rx_object(const struct trial_result *r)
{
	json_t *object = document_counts(
		"runs received unique lost duplicates reordered too_old "
		"foreign bytes",
		(uint64_t[]){ r->n_runs, r->received, r->all.unique,
			      r->all.lost, r->all.duplicates, r->all.reordered,
			      r->all.too_old, r->foreign, r->rx_bytes });

	json_object_set_new(object, "pps", document_real(r->rx_pps));
	return object;
}

bool document_line(const struct trial_result *so_far, bool has_tx, bool has_rx,
		   const struct hist *latency, FILE *to)
{
	json_t *line = json_pack("{s:i, s:o}", "v", LINE_VERSION, "t",
				 document_real(seconds(so_far->whole_ns)));
	bool is_good;

	if (has_tx)
		json_object_set_new(line, "tx", tx_object(so_far));
	if (has_rx)
		json_object_set_new(line, "rx", rx_object(so_far));
	/* What is on its way is not lost. */
	if (has_tx && has_rx)
		json_object_del(json_object_get(line, "rx"), "lost");
	if (latency != NULL)
		json_object_set_new(line, "latency", histogram(latency));
	is_good = json_dumpf(line, to,
			     JSON_COMPACT | JSON_REAL_PRECISION(10)) == 0 &&
		  fputc('\n', to) != EOF && fflush(to) == 0;
	json_decref(line);
	return is_good;
}

/* The fate of a lane's frames, or of those of several lanes. */
static json_t *arrivals(const struct trial_lane *lane)
{
	return document_counts("received unique lost duplicates reordered "
			       "too_old",
			       (uint64_t[]){ lane->received, lane->unique,
					     lane->lost, lane->duplicates,
					     lane->reordered, lane->too_old });
}

static json_t *streams_array(const struct trial_result *r)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < r->n_streams; i++) {
		const struct trial_lane *lane = &r->streams[i];
		json_t *object = document_counts(
			"stream run sent",
			(uint64_t[]){ lane->stream, lane->run, lane->sent });

		json_object_update_new(object, arrivals(lane));
		json_object_set_new(object, "longest_gap",
				    document_count(lane->longest_gap));
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *directions_array(const struct trial_result *r)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < r->n_directions; i++) {
		const struct trial_direction *d = &r->directions[i];
		json_t *object =
			json_pack("{so so}", "from", json_text(d->from), "to",
				  json_text(d->to));
		json_t *latency = document_counts(
			"p50 p99 max",
			(uint64_t[]){ d->latency_p50_ns, d->latency_p99_ns,
				      d->latency_max_ns });

		json_object_update_new(
			object, document_counts("sent unsent",
						(uint64_t[]){ d->sum.sent,
							      d->unsent }));
		json_object_update_new(object, arrivals(&d->sum));
		json_object_set_new(object, "latency",
				    d->n_latencies > 0 ? latency : json_null());
		if (d->n_latencies == 0)
			json_decref(latency);
		json_array_append_new(array, object);
	}
	return array;
}

static json_t *drops_array(const struct trial_result *r)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < r->n_drops; i++)
		json_array_append_new(
			array,
			json_pack("{so ss ss so sb}", "port",
				  json_text(r->drops[i].port), "side",
				  r->drops[i].side, "name", r->drops[i].name,
				  "n", document_count(r->drops[i].n),
				  "is_receivers", r->drops[i].is_receivers));
	return array;
}

/* What the tester itself contributes to latencies. */
static json_t *tail_object(const struct trial_result *r)
{
	const struct trial_tail *const tail = &r->tail;

	return document_counts(
		"late_ns waited_ns still_ns called_ns tx_away_ns rx_away_ns "
		"all_waited_ns all_still_ns least_ns",
		(uint64_t[]){ tail->late_ns, tail->waited_ns, tail->still_ns,
			      tail->called_ns, tail->tx_away_ns,
			      tail->rx_away_ns, tail->all_waited_ns,
			      tail->all_still_ns, tail->least_ns });
}

json_t *document_trial(const struct trial_result *r)
{
	return json_pack(
		"{so so so so so so so so so so so so so sb so so}",
		"asked_pps", document_real(r->asked_pps), "duration_s",
		document_real(seconds(r->sending_ns)), "whole_s",
		document_real(seconds(r->whole_ns)), "tx", tx_object(r), "rx",
		rx_object(r), "lateness", histogram(&r->lateness), "latency",
		histogram(&r->latency), "tail", tail_object(r),
		"clock_error_ns", document_count(r->clock_error_ns), "streams",
		streams_array(r), "directions", directions_array(r), "drops",
		drops_array(r), "cpu_share", document_real(r->cpu_share),
		"complete", r->why_incomplete[0] == '\0', "why_incomplete",
		json_text(r->why_incomplete), "why_stopped",
		json_text(r->why_stopped));
}

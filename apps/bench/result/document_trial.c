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
	json_t *counts;

	if (hist->n == 0)
		return json_null();
	counts = json_array();
	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		if (hist->counts[i] > 0)
			json_array_append_new(
				counts, json_pack("[I, I]", (json_int_t)i,
						  (json_int_t)hist->counts[i]));
	return json_pack("{so so so so so so so}", "n", document_count(hist->n),
			 "n_over", document_count(hist->n_over), "min",
			 document_count(hist->min), "max",
			 document_count(hist->max), "sum",
			 document_real(hist->sum), "sum_sq",
			 document_real(hist->sum_sq), "counts", counts);
}

static json_t *tx_object(const struct trial_result *r)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o}", "due", document_count(r->due),
		"sent", document_count(r->sent), "unsent",
		document_count(r->unsent), "bytes", document_count(r->tx_bytes),
		"pps", document_real(r->tx_pps));
}

static json_t *rx_object(const struct trial_result *r)
{
	return json_pack(
		"{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "runs",
		document_count(r->n_runs), "received",
		document_count(r->received), "unique",
		document_count(r->unique), "lost", document_count(r->lost),
		"duplicates", document_count(r->duplicates), "reordered",
		document_count(r->reordered), "too_old",
		document_count(r->too_old), "foreign",
		document_count(r->foreign), "bytes",
		document_count(r->rx_bytes), "pps", document_real(r->rx_pps));
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
	return json_pack("{so so so so so so}", "received",
			 document_count(lane->received), "unique",
			 document_count(lane->unique), "lost",
			 document_count(lane->lost), "duplicates",
			 document_count(lane->duplicates), "reordered",
			 document_count(lane->reordered), "too_old",
			 document_count(lane->too_old));
}

static json_t *streams_array(const struct trial_result *r)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < r->n_streams; i++) {
		const struct trial_lane *lane = &r->streams[i];
		json_t *object = json_pack("{s:o, s:o, s:o}", "stream",
					   document_count(lane->stream), "run",
					   document_count(lane->run), "sent",
					   document_count(lane->sent));

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
			json_pack("{s:o, s:o, s:o, s:o}", "from",
				  json_text(d->from), "to", json_text(d->to),
				  "sent", document_count(d->sum.sent), "unsent",
				  document_count(d->unsent));
		json_t *latency =
			d->n_latencies == 0 ?
				json_null() :
				json_pack("{s:o, s:o, s:o}", "p50",
					  document_count(d->latency_p50_ns),
					  "p99",
					  document_count(d->latency_p99_ns),
					  "max",
					  document_count(d->latency_max_ns));

		json_object_update_new(object, arrivals(&d->sum));
		json_object_set_new(object, "latency", latency);
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

	return json_pack("{so so so so so so so so so}", "late_ns",
			 document_count(tail->late_ns), "waited_ns",
			 document_count(tail->waited_ns), "still_ns",
			 document_count(tail->still_ns), "called_ns",
			 document_count(tail->called_ns), "tx_away_ns",
			 document_count(tail->tx_away_ns), "rx_away_ns",
			 document_count(tail->rx_away_ns), "all_waited_ns",
			 document_count(tail->all_waited_ns), "all_still_ns",
			 document_count(tail->all_still_ns), "least_ns",
			 document_count(tail->least_ns));
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

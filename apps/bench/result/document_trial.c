/* SPDX-License-Identifier: BSD-3-Clause */
/* Trials in the document. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "net/hist.h"
#include "net/trial.h"
#include "result/document_parts.h"

/* Steps per power of two of the histograms in JSON: 3 %, for charts. The exact
 * one is in the HDR log. */
enum { COARSE_STEPS = 32 };

/* Of HdrHistogram's table of percentiles. */
enum { STEPS_PER_HALVING = 5 };

static double seconds(uint64_t ns)
{
	return (double)ns / 1e9;
}

static json_t *summary(const struct hist *hist)
{
	if (hist->n == 0)
		return json_null();
	return json_pack("{so so so so so so so so so so so}", "n",
			 document_count(hist->n), "n_over",
			 document_count(hist->n_over), "min",
			 document_count(hist->min), "mean",
			 document_real(hist_mean(hist)), "stddev",
			 document_real(hist_stddev(hist)), "p50",
			 document_count(hist_at(hist, 50)), "p90",
			 document_count(hist_at(hist, 90)), "p99",
			 document_count(hist_at(hist, 99)), "p999",
			 document_count(hist_at(hist, 99.9)), "p9999",
			 document_count(hist_at(hist, 99.99)), "max",
			 document_count(hist->max));
}

/*
 * The next step of such a table behind percentile p (0..100), 100 after the
 * last that n values can tell.
 */
static double next_percentile(double p, double n)
{
	const double halvings = floor(log2(100 / (100 - p)));
	const double next = p + 100 / (STEPS_PER_HALVING * exp2(halvings + 1));

	return next < 100 && (100 - next) / 100 * n >= 0.5 ? next : 100;
}

/* [percentile, ns] by the steps of HdrHistogram's table, where ns moves. */
static json_t *percentiles(const struct hist *hist)
{
	json_t *array = json_array();
	double p = 0;

	while (hist->n > 0) {
		json_array_append_new(
			array,
			json_pack("[f, I]", p, (json_int_t)hist_at(hist, p)));
		if (p >= 100)
			break;
		p = next_percentile(p, (double)hist->n);
	}
	return array;
}

/* The first value of the next coarser bucket. */
static uint64_t coarse_end(uint64_t ns)
{
	uint64_t step = 1;

	while (ns / step >= 2 * COARSE_STEPS)
		step *= 2;
	return (ns / step + 1) * step;
}

/* [from, to, values] of coarser buckets that are not empty. */
static json_t *coarse(const struct hist *hist)
{
	json_t *array = json_array();
	uint32_t i = 0;

	while (hist->n > 0 && i < HIST_BUCKETS) {
		const uint64_t low = hist_low(i), end = coarse_end(low);
		uint64_t n = 0;

		for (; i < HIST_BUCKETS && hist_low(i) < end; i++)
			n += hist->counts[i];
		if (n > 0)
			json_array_append_new(array, json_pack("[I, I, I]",
							       (json_int_t)low,
							       (json_int_t)end,
							       (json_int_t)n));
	}
	return array;
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
	json_t *line = json_pack("{s:i, s:o}", "v", DOCUMENT_VERSION, "t",
				 document_real(seconds(so_far->whole_ns)));
	bool is_good;

	if (has_tx)
		json_object_set_new(line, "tx", tx_object(so_far));
	if (has_rx)
		json_object_set_new(line, "rx", rx_object(so_far));
	/* What is on its way is not lost. */
	if (has_tx && has_rx)
		json_object_del(json_object_get(line, "rx"), "lost");
	if (latency != NULL) {
		json_object_set_new(line, "latency", summary(latency));
		json_object_set_new(line, "histogram", coarse(latency));
	}
	is_good = json_dumpf(line, to,
			     JSON_COMPACT | JSON_REAL_PRECISION(10)) == 0 &&
		  fputc('\n', to) != EOF && fflush(to) == 0;
	json_decref(line);
	return is_good;
}

/* What came of a lane's frames, or of those of several lanes. */
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
			array, json_pack("{s:o, s:o, s:o, s:o}", "port",
					 json_text(r->drops[i].port), "side",
					 json_text(r->drops[i].side), "name",
					 json_text(r->drops[i].name), "n",
					 document_count(r->drops[i].n)));
	return array;
}

/* What the tester itself has a part in. */
static json_t *tail_object(const struct trial_result *r)
{
	const struct trial_tail *const tail = &r->tail;

	return json_pack("{so so so so so so so so}", "late_ns",
			 document_count(tail->late_ns), "waited_ns",
			 document_count(tail->waited_ns), "still_ns",
			 document_count(tail->still_ns), "called_ns",
			 document_count(tail->called_ns), "tx_away_ns",
			 document_count(tail->tx_away_ns), "rx_away_ns",
			 document_count(tail->rx_away_ns), "all_waited_ns",
			 document_count(tail->all_waited_ns), "all_still_ns",
			 document_count(tail->all_still_ns));
}

json_t *document_trial_json(uint32_t frame_bytes, const struct trial_result *r)
{
	return json_pack(
		"{so so so so so so so so so so s{so so} s{so} so so so so so"
		" sb so}",
		"frame_bytes", document_count(frame_bytes), "asked_pps",
		document_real(r->asked_pps), "start_s", document_real(0),
		"duration_s", document_real(seconds(r->sending_ns)), "whole_s",
		document_real(seconds(r->whole_ns)), "tx", tx_object(r), "rx",
		rx_object(r), "lateness", summary(&r->lateness), "latency",
		summary(&r->latency), "tail", tail_object(r), "percentiles",
		"lateness", percentiles(&r->lateness), "latency",
		percentiles(&r->latency), "histogram", "latency",
		coarse(&r->latency), "clock_error_ns",
		document_count(r->clock_error_ns), "streams", streams_array(r),
		"directions", directions_array(r), "drops", drops_array(r),
		"cpu_share", document_real(r->cpu_share), "complete",
		!r->is_cut_short, "why_stopped", json_text(r->why_stopped));
}

void document_trial(json_t *document, uint32_t frame_bytes,
		    const struct trial_result *result)
{
	json_array_append_new(json_object_get(document, "trials"),
			      document_trial_json(frame_bytes, result));
}

json_t *document_buckets(const struct hist *hist)
{
	json_t *array = json_array();

	for (uint32_t i = 0; i < HIST_BUCKETS; i++)
		if (hist->counts[i] > 0)
			json_array_append_new(
				array, json_pack("[I, I]", (json_int_t)i,
						 (json_int_t)hist->counts[i]));
	return array;
}

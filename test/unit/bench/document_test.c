/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench/result: document.c, document_trial.c. With an argument it
 * prints its parts of one and the buckets, for document_test.py.
 */
#include "support/unit.h"

#include <math.h>

#include "net/trial.h"
#include "result/document.h"

static struct trial_result result; /* large: two histograms */

static void fill(uint64_t n_latencies)
{
	static struct trial_lane lane = { .sent = 1000, .unique = 990 };
	static struct trial_drop drop = {
		.port = "xdp:v0", .side = "dev", .name = "rx \"missed\"", .n = 7
	};

	static struct trial_direction way = { .from = "xdp:v0",
					      .to = "xdp:v1",
					      .sum = { .sent = 600,
						       .received = 595,
						       .unique = 590,
						       .duplicates = 5,
						       .lost = 10 },
					      .unsent = 6,
					      .n_latencies = 9,
					      .latency_p99_ns = 77 };

	memset(&result, 0, sizeof(result));
	result.directions = &way;
	result.n_directions = 1;
	result.asked_pps = 1e6;
	result.sending_ns = 2000000000;
	result.whole_ns = 2100000000;
	result.due = 1010;
	result.sent = 1000;
	result.unsent = 10;
	result.received = 995;
	result.unique = 990;
	result.lost = 10;
	result.duplicates = 5;
	result.tx_pps = 500;
	result.rx_pps = 495.25;
	result.streams = &lane;
	result.n_streams = 1;
	result.drops = &drop;
	result.n_drops = 1;
	for (uint64_t i = 0; i < n_latencies; i++)
		hist_add(&result.latency, i * i);
	hist_add(&result.lateness, 1000);
}

/* What the front end begins, as far as it matters here. */
static json_t *begun(void)
{
	json_t *document = document_begin();

	json_object_set_new(document, "complete", json_true());
	json_object_set_new(document, "trials", json_array());
	return document;
}

static json_t *filled(void)
{
	json_t *document = begun();

	fill(0);
	document_trial(document, 1514, &result);
	fill(1000);
	document_trial(document, 60, &result);
	return document;
}

static const json_t *at(const json_t *array, const char *key, size_t i)
{
	return json_array_get(json_object_get(array, key), i);
}

static double number(const json_t *object, const char *key)
{
	return json_number_value(json_object_get(object, key));
}

TEST(a_trial_has_the_figures_of_its_result)
{
	json_t *document = filled();
	const json_t *trial = at(document, "trials", 1);
	const json_t *latency = json_object_get(trial, "latency");
	const json_t *way;

	assert_int_equal(number(json_object_get(trial, "tx"), "unsent"), 10);
	assert_int_equal(number(json_object_get(trial, "rx"), "lost"), 10);
	assert_true(number(json_object_get(trial, "rx"), "pps") == 495.25);
	assert_int_equal(number(latency, "n"), 1000);
	assert_int_equal(number(latency, "max"), 999 * 999);
	assert_int_equal(number(latency, "p50"),
			 hist_at(&result.latency, 0) + 249087);
	assert_int_equal(number(at(trial, "drops", 0), "n"), 7);
	way = at(trial, "directions", 0);
	assert_string_equal(json_string_value(json_object_get(way, "to")),
			    "xdp:v1");
	assert_int_equal(number(way, "received"), 595);
	assert_int_equal(number(way, "lost"), 10);
	assert_int_equal(number(way, "unsent"), 6);
	assert_int_equal(number(json_object_get(way, "latency"), "p99"), 77);
	/* The first had no arrivals. */
	trial = at(document, "trials", 0);
	assert_true(json_is_null(json_object_get(trial, "latency")));
	json_decref(document);
}

/* Coarser buckets lie side by side and have all values. */
TEST(the_coarse_histogram_loses_no_value)
{
	json_t *document = begun();
	const json_t *histogram, *bucket;
	double n = 0, end = 0;
	size_t i;

	fill(0);
	for (uint64_t ns = 1; ns < 1ull << 41; ns = ns * 21 / 20 + 1)
		hist_add(&result.latency, ns);
	document_trial(document, 60, &result);
	histogram = json_object_get(
		json_object_get(at(document, "trials", 0), "histogram"),
		"latency");
	json_array_foreach(histogram, i, bucket)
	{
		const double low =
			json_integer_value(json_array_get(bucket, 0));

		assert_true(low >= end);
		end = json_integer_value(json_array_get(bucket, 1));
		assert_true(low < 64 || (end - low) / low <= 1.0 / 32);
		n += json_integer_value(json_array_get(bucket, 2));
		if (low < 64)
			assert_true(end == low + 1);
	}
	assert_true(n == (double)result.latency.n);
	assert_true(json_array_size(histogram) > 300);
	json_decref(document);
}

TEST(only_the_first_reason_stays)
{
	json_t *document = begun();

	assert_true(json_is_true(json_object_get(document, "complete")));
	document_fail(document, "link down");
	document_fail(document, "later");
	assert_true(json_is_false(json_object_get(document, "complete")));
	assert_string_equal(
		json_string_value(json_object_get(document, "why_incomplete")),
		"link down");
	json_decref(document);
}

/* A trial of no time has no rate, and the document no infinity. */
TEST(what_is_not_finite_is_0)
{
	json_t *document = begun();

	fill(0);
	result.tx_pps = result.rx_pps = INFINITY;
	document_trial(document, 60, &result);
	assert_true(json_is_real(json_object_get(
		json_object_get(at(document, "trials", 0), "rx"), "pps")));
	assert_true(number(json_object_get(at(document, "trials", 0), "tx"),
			   "sent") == 1000);
	json_decref(document);
}

static int print_all(void)
{
	json_t *document = filled();
	json_t *all = json_pack("{s:O, s:o}", "document", document, "buckets",
				document_buckets(&result.latency));
	const int ret = json_dumpf(all, stdout, JSON_REAL_PRECISION(17));

	json_decref(all);
	json_decref(document);
	return ret;
}

int main(int argc, char **argv)
{
	(void)argv;
	return argc > 1 ? print_all() : test_run(NULL, NULL, NULL);
}

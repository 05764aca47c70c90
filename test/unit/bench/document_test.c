/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/bench/result: document.c, document_trial.c, document_write.c,
 * file.c. With a folder as argument it writes a document there in all forms,
 * for document_test.py.
 */
#include "support/unit.h"

#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "net/trial.h"
#include "result/document.h"
#include "result/file.h"

static struct trial_result result; /* large: two histograms */
static char folder[] = "/tmp/mr-document-XXXXXX";

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

static struct document *filled(void)
{
	struct document *document =
		document_new("throughput", "a \"b\"", "mr-bench throughput x");
	json_t *found = json_pack(
		"{s:[{s:i, s:s, s:s, s:s, s:f, s:f, s:f, s:b, s:[ii]}],"
		" s:[{s:i, s:i, s:f}], s:{s:f}, s:{s:f}}",
		"rows", "frame_bytes", 60, "goal", "ndr", "unit", "frames/s",
		"note", "comma, \"quote\"", "value", 1234567.5, "low",
		1234000.0, "high", 1235000.0, "is_limited_by_tester", 0,
		"trials", 0, 1, "selftest", "frame_bytes", 60, "mean_bytes", 60,
		"ceiling_pps", 2.5e6, "config", "resolution", 0.005, "measured",
		"slope", -1.5);

	assert_non_null(found);
	fill(1000);
	assert_int_equal(document_trial(document, 60, &result), 0);
	fill(0);
	assert_int_equal(document_trial(document, 1514, &result), 1);
	fill(10);
	document_interval(document, 60, &result);
	document_interval(document, 60, &result);
	document_add(document, found);
	json_decref(found);
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
	struct document *document = filled();
	const json_t *root = document_json(document);
	const json_t *trial = at(root, "trials", 0);
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
	/* The second begins where the first one ended, and had no arrivals. */
	trial = at(root, "trials", 1);
	assert_true(number(trial, "start_s") == 2.1);
	assert_true(json_is_null(json_object_get(trial, "latency")));
	assert_true(number(at(root, "series", 1), "start_s") == 2.1);
	document_free(document);
}

/* Coarser buckets lie side by side and have all values. */
TEST(the_coarse_histogram_loses_no_value)
{
	struct document *document = document_new("tx", NULL, "mr-bench tx");
	const json_t *histogram, *bucket;
	double n = 0, end = 0;
	size_t i;

	fill(0);
	for (uint64_t ns = 1; ns < 1ull << 41; ns = ns * 21 / 20 + 1)
		hist_add(&result.latency, ns);
	document_trial(document, 60, &result);
	histogram = json_object_get(
		json_object_get(at(document_json(document), "trials", 0),
				"histogram"),
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
	document_free(document);
}

TEST(only_the_first_reason_stays)
{
	struct document *document = document_new("tx", NULL, "mr-bench tx");
	const json_t *root = document_json(document);

	assert_true(json_is_true(json_object_get(root, "complete")));
	document_fail(document, "link down");
	document_fail(document, "later");
	assert_true(json_is_false(json_object_get(root, "complete")));
	assert_string_equal(
		json_string_value(json_object_get(root, "why_incomplete")),
		"link down");
	document_free(document);
}

/* A trial of no time has no rate, and the document no infinity. */
TEST(what_is_not_finite_is_0)
{
	struct document *document = document_new("tx", NULL, "mr-bench tx");
	const json_t *root = document_json(document);

	fill(0);
	result.tx_pps = result.rx_pps = INFINITY;
	document_trial(document, 60, &result);
	document_interval(document, 60, &result);
	assert_true(
		json_is_real(json_object_get(at(root, "series", 0), "rx_pps")));
	assert_true(number(json_object_get(at(root, "trials", 0), "tx"),
			   "sent") == 1000);
	document_free(document);
}

TEST(bytes_that_are_no_text_are_not_lost)
{
	struct document *document = document_new("tx", "\xff", "mr-bench tx");

	assert_string_equal(json_string_value(json_object_get(
				    document_json(document), "label")),
			    "\\xff");
	document_free(document);
}

static bool half(const void *opaque, FILE *to)
{
	fputs(opaque, to);
	return false;
}

TEST(a_file_is_whole_or_as_it_was)
{
	struct document *document = document_new("tx", NULL, "mr-bench tx");
	struct mr_reason why = { .text = "" };
	char path[64], text[8] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/x.json", folder);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(write(fd, "old", 3), 3);
	close(fd);
	assert_true(file_write(path, half, "new", &why) < 0);
	assert_non_null(strstr(why.text, path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(read(fd, text, sizeof(text)), 3);
	assert_string_equal(text, "old");
	close(fd);
	assert_int_equal(document_write(document, path, &why), 0);
	assert_int_equal(unlink(path), 0);
	/* Nothing is left beside it. */
	assert_int_equal(rmdir(folder), 0);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(document_write(document, "/dev/full", &why), -ENOSPC);
	assert_non_null(strstr(why.text, "/dev/full: No space left"));
	assert_int_equal(document_write(document, "/nowhere/x", &why), -ENOENT);
	document_free(document);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return rmdir(folder);
}

static int write_all_forms(const char *to)
{
	struct document *document = filled();
	struct mr_reason why = { .text = "" };
	char json[256], csv[256], hdr[256];
	int ret;

	snprintf(json, sizeof(json), "%s/a.json", to);
	snprintf(csv, sizeof(csv), "%s/a.csv", to);
	snprintf(hdr, sizeof(hdr), "%s/a.hlog", to);
	ret = document_write(document, json, &why) |
	      document_write_csv(document, csv, &why) |
	      document_write_hdr(document, hdr, &why);
	document_free(document);
	if (ret != 0)
		fprintf(stderr, "%s\n", why.text);
	return ret != 0;
}

int main(int argc, char **argv)
{

	if (argc > 1)
		return write_all_forms(argv[1]);
	return test_run(NULL, make_folder, remove_folder);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "result/compare.h"
#include "support/options.h"
#include "support/text.h"

/* What figures hang on. The version of Millrace is what one wants to compare,
 * and when and how busy a machine was is said by the spread. */
static const char *const of_machine[] = {
	"cpu",
	"cores",
	"microcode",
	"governor",
	"smt",
	"isolated",
	"nohz_full",
	"guest",
	"kernel",
	"kernel_words",
	"thp",
	"clock_source",
	"vulnerabilities",
	"compiler",
	"flags",
	"dpdk",
};
static const char *const of_root[] = { "kind",   "command", "streams",
				       "device", "config",  "line_bps" };
static const char *const of_port[] = { "mode", "mtu", "rx_queues", "tx_queues",
				       "link_mbps" };
static const char *const of_nic[] = { "driver",   "firmware", "rings",
				      "coalesce", "pci",      "numa_distance" };

static void print_value(const json_t *value, char *ret, size_t n)
{
	char *text;

	if (json_is_string(value)) {
		snprintf(ret, n, "%.*s", (int)n - 1, json_string_value(value));
		return;
	}
	text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
					 JSON_REAL_PRECISION(10));
	snprintf(ret, n, "%.*s", (int)n - 1, text != NULL ? text : "none");
	free(text);
}

static void look_at(struct compare *compare, const char *what, const json_t *a,
		    const json_t *b, bool is_refused)
{
	struct difference *d;

	if (a == b || (a != NULL && b != NULL && json_equal(a, b)))
		return;
	for (uint32_t i = 0; i < compare->n_differences; i++)
		if (strcmp(compare->differences[i].what, what) == 0)
			return;
	if (compare->n_differences == COMPARE_MAX_DIFFERENCES)
		return;
	d = &compare->differences[compare->n_differences++];
	snprintf(d->what, sizeof(d->what), "%s", what);
	print_value(a, d->values[0], sizeof(d->values[0]));
	print_value(b, d->values[1], sizeof(d->values[1]));
	d->is_refused = is_refused;
}

static void look_at_members(struct compare *compare, const char *prefix,
			    const json_t *a, const json_t *b,
			    const char *const *keys, uint32_t n)
{
	char what[64];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(what, sizeof(what), "%.30s%s", prefix, keys[i]);
		look_at(compare, what, json_object_get(a, keys[i]),
			json_object_get(b, keys[i]), true);
	}
}

enum {
	N_OF_MACHINE = sizeof(of_machine) / sizeof(*of_machine),
	N_OF_ROOT = sizeof(of_root) / sizeof(*of_root),
	N_OF_PORT = sizeof(of_port) / sizeof(*of_port),
	N_OF_NIC = sizeof(of_nic) / sizeof(*of_nic)
};

static void look_at_ports(struct compare *compare, const json_t *a,
			  const json_t *b)
{
	const json_t *port;
	size_t i;

	if (json_array_size(a) != json_array_size(b)) {
		look_at(compare, "ports", a, b, true);
		return;
	}
	json_array_foreach(a, i, port)
	{
		const json_t *other = json_array_get(b, i);
		char prefix[48];

		snprintf(prefix, sizeof(prefix), "ports[%zu].", i);
		look_at_members(compare, prefix, port, other, of_port,
				N_OF_PORT);
		snprintf(prefix, sizeof(prefix), "ports[%zu].nic.", i);
		look_at_members(compare, prefix, json_object_get(port, "nic"),
				json_object_get(other, "nic"), of_nic,
				N_OF_NIC);
	}
}

/* Of mem, "command" is the kind; of the others it is what was typed, and what
 * of it matters is in "config". */
static void look_at_pair(struct compare *compare, const struct read_document *a,
			 const struct read_document *b)
{
	for (uint32_t i = 0; i < N_OF_ROOT; i++)
		if (strcmp(of_root[i], "command") != 0 ||
		    a->schema == SCHEMA_MEM)
			look_at(compare, of_root[i],
				json_object_get(a->root, of_root[i]),
				json_object_get(b->root, of_root[i]), true);
	look_at_members(
		compare, "machine.", json_object_get(a->root, "machine"),
		json_object_get(b->root, "machine"), of_machine, N_OF_MACHINE);
	look_at_ports(compare, json_object_get(a->root, "ports"),
		      json_object_get(b->root, "ports"));
	/* To be told, and no reason to refuse. */
	look_at(compare, "label", json_object_get(a->root, "label"),
		json_object_get(b->root, "label"), false);
	look_at(compare, "cores", json_object_get(a->root, "cores"),
		json_object_get(b->root, "cores"), false);
	look_at(compare, "millrace",
		json_object_get(a->schema == SCHEMA_MEM ?
					json_object_get(a->root, "machine") :
					a->root,
				"millrace"),
		json_object_get(b->schema == SCHEMA_MEM ?
					json_object_get(b->root, "machine") :
					b->root,
				"millrace"),
		false);
}

/* What a search found before it was ended is not confirmed; what was measured
 * without one is what it is, and told. */
static void look_at_end(struct compare *compare,
			const struct read_document *document, uint32_t side)
{
	const bool is_search =
		json_array_size(json_object_get(document->root, "rows")) > 0;
	struct difference *d;

	if (!json_is_false(json_object_get(document->root, "complete")) ||
	    compare->n_differences == COMPARE_MAX_DIFFERENCES)
		return;
	d = &compare->differences[compare->n_differences++];
	snprintf(d->what, sizeof(d->what), "complete");
	print_value(json_object_get(document->root, "why_incomplete"),
		    d->values[side], sizeof(d->values[side]));
	snprintf(d->values[!side], sizeof(d->values[!side]), "(whole)");
	d->is_refused = is_search;
}

void compare_all(struct compare *compare)
{
	struct figures *figures = &compare->figures;

	for (uint32_t i = 0; i < compare->n_documents; i++) {
		figures_add(figures, &compare->documents[i], compare->sides[i]);
		look_at_end(compare, &compare->documents[i], compare->sides[i]);
		if (i > 0)
			look_at_pair(compare, &compare->documents[0],
				     &compare->documents[i]);
	}
	compare->comparisons =
		calloc(figures->n + 1, sizeof(*compare->comparisons));
	if (compare->comparisons == NULL)
		abort();
	for (uint32_t i = 0; i < figures->n; i++) {
		struct comparison *c = &compare->comparisons[i];

		figure_compare(figures->of[i], compare->threshold, c);
		compare->n_by_verdict[c->verdict]++;
	}
}

bool compare_is_refused(const struct compare *compare)
{
	for (uint32_t i = 0; i < compare->n_differences; i++)
		if (compare->differences[i].is_refused && !compare->is_anyway)
			return true;
	return false;
}

struct compare_options {
	const char *baseline[COMPARE_MAX_FILES];
	uint32_t n_baseline;
	double threshold;
	bool is_json, is_anyway;
};

static const struct option_row rows[] = {
	{ "baseline", 'b', "FILE", "what to compare with (repeatable)" },
	{ "threshold", 't', "PERCENT",
	  "changes up to that are no difference (1)" },
	{ "anyway", 'a', NULL, "compare what was measured differently, too" },
	{ "json", 'j', NULL, "one JSON object on stdout" },
	{ "help", OPTION_HELP, NULL, "print this" },
	{ "version", OPTION_VERSION, NULL, "print the version" },
};

static const char usage[] =
	"usage: mr-bench compare [options] BASELINE FILE...\n"
	"       mr-bench compare [options] --baseline FILE... FILE...\n"
	"Compare what mr-bench --json wrote. Several files of one side are "
	"runs\n"
	"of the same thing, and make its median and its interval.\n"
	"Exit status: 1 if something is worse, 2 if they cannot be compared,\n"
	"3 if nothing is worse but figures are unclear, as a side has one "
	"run.\n";

static enum parse_result take_threshold(const char *arg,
					struct compare_options *options,
					struct mr_reason *error)
{
	char *end;
	const double percent = strtod(arg, &end);

	/* Not by its negation: a NaN is wrong, too. */
	if (end == arg || *end != '\0' || !(percent >= 0 && percent <= 1000))
		return parse_wrong(error,
				   "--threshold: '%s' is no share in percent, "
				   "0 to 1000",
				   arg);
	options->threshold = percent / 100;
	return PARSE_RUN;
}

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *opaque, struct mr_reason *error)
{
	struct compare_options *options = opaque;

	switch (row->id) {
	case 'b':
		if (options->n_baseline == COMPARE_MAX_FILES)
			return parse_wrong(error, "--baseline: more than %d",
					   COMPARE_MAX_FILES);
		options->baseline[options->n_baseline++] = arg;
		return PARSE_RUN;
	case 't':
		return take_threshold(arg, options, error);
	case 'a':
		options->is_anyway = true;
		return PARSE_RUN;
	default: /* 'j' */
		options->is_json = true;
		return PARSE_RUN;
	}
}

static int complain(const char *text)
{
	print_error("mr-bench compare: %s", text);
	return 2;
}

static int read_all(struct compare *compare,
		    const struct compare_options *options, int n_words,
		    char **words, struct mr_reason *why)
{
	const uint32_t n_baseline = options->n_baseline;
	const uint32_t n = n_baseline + (uint32_t)n_words;

	if (n > COMPARE_MAX_FILES || n < 2 || n_words < 1) {
		snprintf(why->text, sizeof(why->text),
			 "%u file%s given; it takes 2 to %d, one of them the "
			 "baseline",
			 n, n == 1 ? "" : "s", COMPARE_MAX_FILES);
		return -1;
	}
	for (uint32_t i = 0; i < n; i++) {
		const char *path = i < n_baseline ? options->baseline[i] :
						    words[i - n_baseline];

		if (document_read(path, &compare->documents[i], why) < 0)
			return -1;
		compare->n_documents++;
		compare->sides[i] = i >= (n_baseline > 0 ? n_baseline : 1);
		if (compare->documents[i].schema !=
		    compare->documents[0].schema) {
			snprintf(why->text, sizeof(why->text),
				 "%.80s and %.80s are of different commands; "
				 "compare like with like",
				 compare->documents[0].name,
				 compare->documents[i].name);
			return -1;
		}
	}
	return 0;
}

static int status_of(const struct compare *compare)
{
	if (compare_is_refused(compare))
		return complain("measured differently, so not compared; "
				"--anyway does");
	if (compare->figures.n == compare->n_by_verdict[VERDICT_ALONE])
		return complain("no figure is on both sides");
	if (compare->n_by_verdict[VERDICT_WORSE] > 0)
		return 1;
	for (uint32_t i = 0; i < compare->figures.n; i++)
		if (compare->comparisons[i].has_few_runs)
			return 3;
	return 0;
}

static int run(struct compare *compare, const struct compare_options *options,
	       int n_words, char **words)
{
	struct mr_reason why = { .text = "" };
	bool is_written;
	int status;

	if (read_all(compare, options, n_words, words, &why) < 0)
		return complain(why.text);
	compare_all(compare);
	is_written = options->is_json ? compare_print_json(compare, stdout) :
					compare_print(compare, stdout);
	status = status_of(compare);
	if (!is_written || fflush(stdout) != 0)
		return complain("cannot write to stdout");
	return status;
}

int compare_main(int argc, char **argv)
{
	static const struct option_table table = {
		.program = "mr-bench",
		.usage = usage,
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(*rows),
		.take = take,
	};
	struct compare_options options = { .threshold = 0.01 };
	struct compare *compare = calloc(1, sizeof(*compare));
	struct mr_reason why = { .text = "" };
	int first = 0, status = 0;

	if (compare == NULL)
		return complain("no memory");
	switch (option_table_parse(&table, argc - 1, argv + 1, &options, &first,
				   &why)) {
	case PARSE_DONE:
		break;
	case PARSE_WRONG:
		status = complain(why.text);
		break;
	case PARSE_RUN:
		compare->threshold = options.threshold;
		compare->is_anyway = options.is_anyway;
		status = run(compare, &options, argc - 1 - first,
			     argv + 1 + first);
		break;
	}
	for (uint32_t i = 0; i < compare->n_documents; i++)
		read_document_free(&compare->documents[i]);
	figures_free(&compare->figures);
	free(compare->comparisons);
	free(compare);
	return status;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan file: which keys it has, and what must be true of them together. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/plan.h"
#include "support/values.h"
#include "support/yaml_keys.h"

enum { DEFAULT_TIME_S = 60, MAX_BYTES = 65535 };

static bool read_duration(const char *text, void *to, struct mr_reason *why)
{
	uint32_t s;

	if (!value_duration(text, &s, why))
		return false;
	memcpy(to, &s, sizeof(s));
	return true;
}

/* Names are parts of file names. */
static bool read_name(const char *text, void *to, struct mr_reason *why)
{
	const size_t n = strlen(text);

	if (n == 0 || n >= PLAN_NAME_CHARS || text[0] == '.')
		return value_wrong(why,
				   "'%.40s' is no name of 1 to %d letters, "
				   "digits, '-', '_' or '.'",
				   text, PLAN_NAME_CHARS - 1);
	for (const char *c = text; *c != '\0'; c++)
		if (!isalnum((unsigned char)*c) && strchr("-_.", *c) == NULL)
			return value_wrong(why,
					   "'%.40s' has '%c' in it; letters, "
					   "digits, '-', '_' and '.' make a "
					   "name",
					   text, *c);
	memcpy(to, text, n + 1);
	return true;
}

static bool read_size(const char *text, void *to, struct mr_reason *why)
{
	uint32_t n;

	if (!value_number(text, 14, MAX_BYTES, &n, why))
		return false;
	memcpy(to, &n, sizeof(n));
	return true;
}

/* What a rate is, the command that gets it knows. */
static bool read_rate(const char *text, void *to, struct mr_reason *why)
{
	const size_t n = strlen(text);

	if (n == 0 || n >= PLAN_NAME_CHARS ||
	    strspn(text, "abcdefghijklmnopqrstuvwxyz"
			 "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.%-") != n)
		return value_wrong(
			why, "'%.40s' is no rate, as 1.2M, 10Gbit or 25%%",
			text);
	memcpy(to, text, n + 1);
	return true;
}

/* An element of a list of values, which has no name of its own. */
static int take_one(struct yaml_reader *reader, const struct yaml_key *key,
		    yaml_node_t *node, void *to)
{
	const struct yaml_key here = { .name = key->name, .read = key->read };

	return yaml_take_value(reader, &here, node, to);
}

#define TEXT(struct_, member)                                                  \
	.take = yaml_take_text, .offset = offsetof(struct struct_, member),    \
	.max = sizeof(((struct struct_ *)NULL)->member)
#define VALUE(struct_, member, reader_)                                        \
	.take = yaml_take_value, .read = (reader_),                            \
	.offset = offsetof(struct struct_, member)
#define LIST(struct_, member, n_member)                                        \
	.take = yaml_take_list, .offset = offsetof(struct struct_, member),    \
	.n_offset = offsetof(struct struct_, n_member),                        \
	.n_bytes = sizeof(*((struct struct_ *)NULL)->member)

static const struct yaml_key device_keys[] = {
	{ .name = "name", VALUE(plan_device, name, read_name) },
	{ .name = "start", TEXT(plan_device, start) },
	{ .name = "ready", TEXT(plan_device, ready) },
	{ .name = "stop", TEXT(plan_device, stop) },
	{ .name = "wait", VALUE(plan_device, wait_s, read_duration) },
	{ .name = NULL },
};

static const struct yaml_key measure_keys[] = {
	{ .name = "name", VALUE(plan_measure, name, read_name) },
	{ .name = "run", TEXT(plan_measure, run) },
	{ .name = "sizes",
	  LIST(plan_measure, sizes, n_sizes),
	  .max = PLAN_MAX_VALUES,
	  .take_item = take_one,
	  .read = read_size },
	{ .name = "rates",
	  LIST(plan_measure, rates, n_rates),
	  .max = PLAN_MAX_VALUES,
	  .take_item = take_one,
	  .read = read_rate },
	{ .name = "time", VALUE(plan_measure, time_s, read_duration) },
	{ .name = "limit", VALUE(plan_measure, limit_s, read_duration) },
	{ .name = NULL },
};

static int take_device(struct yaml_reader *reader, const struct yaml_key *key,
		       yaml_node_t *node, void *to)
{
	struct plan_device *device = to;

	(void)key;
	device->line = (uint32_t)node->start_mark.line + 1;
	return yaml_take_keys(reader, device_keys, node, to);
}

static int take_measure(struct yaml_reader *reader, const struct yaml_key *key,
			yaml_node_t *node, void *to)
{
	struct plan_measure *measure = to;
	int err;

	(void)key;
	measure->line = (uint32_t)node->start_mark.line + 1;
	err = yaml_take_keys(reader, measure_keys, node, to);
	if (err < 0) {
		/* It is not counted yet, so nobody else frees them. */
		free(measure->sizes);
		free(measure->rates);
	}
	return err;
}

static const struct yaml_key plan_keys[] = {
	{ .name = "folder", TEXT(plan, folder) },
	{ .name = "before", TEXT(plan, before) },
	{ .name = "after", TEXT(plan, after) },
	{ .name = "prefix", TEXT(plan, prefix) },
	{ .name = "repeat",
	  .take = yaml_take_u32,
	  .offset = offsetof(struct plan, repeat),
	  .min = 1,
	  .max = PLAN_MAX_REPEAT },
	{ .name = "devices",
	  LIST(plan, devices, n_devices),
	  .max = PLAN_MAX_DEVICES,
	  .take_item = take_device },
	{ .name = "measures",
	  LIST(plan, measures, n_measures),
	  .max = PLAN_MAX_MEASURES,
	  .take_item = take_measure },
	{ .name = NULL },
};

static int wrong(struct mr_reason *why, const char *file, uint32_t line,
		 const char *text)
{
	snprintf(why->text, sizeof(why->text), "%.120s:%u: %s", file, line,
		 text);
	return -EINVAL;
}

/* Their steps would have the same file. */
static bool has_twins(const struct plan_measure *measure)
{
	for (uint32_t i = 0; i < measure->n_sizes; i++)
		for (uint32_t j = 0; j < i; j++)
			if (measure->sizes[i] == measure->sizes[j])
				return true;
	for (uint32_t i = 0; i < measure->n_rates; i++)
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(measure->rates[i].text,
				   measure->rates[j].text) == 0)
				return true;
	return false;
}

/* Words of one command: over several lines in the file, on one to the shell. */
static void join_lines(char *text)
{
	for (char *at = text; *at != '\0'; at++)
		if (*at == '\n')
			*at = ' ';
}

/* Whether the command writes a document of one measurement with --out. */
static bool has_document(const char *run)
{
	static const char *const without[] = { "mem",    "flow",    "fwd",
					       "plan",   "compare", "report",
					       "reflect" };

	run += strspn(run, " ");
	for (size_t i = 0; i < sizeof(without) / sizeof(without[0]); i++)
		if (strlen(without[i]) == strcspn(run, " ") &&
		    strncmp(run, without[i], strlen(without[i])) == 0)
			return false;
	return true;
}

/* {size} is in the command if there are sizes, and only then. */
static const char *misfit(const struct plan_measure *measure)
{
	const bool has_size = strstr(measure->run, "{size}") != NULL;
	const bool has_rate = strstr(measure->run, "{rate}") != NULL;

	if (measure->name[0] == '\0')
		return "a measure without a name; add 'name: ...'";
	if (measure->run[0] == '\0')
		return "a measure that runs nothing; add 'run: throughput ...'";
	if (!has_document(measure->run))
		return "run: that command writes no document of what was "
		       "measured; a plan has tx, rx, loop, replay, nat, "
		       "selftest and those that search";
	if (strstr(measure->run, "--out") != NULL)
		return "run: --out is set here; leave it out";
	if (has_size && measure->n_sizes == 0)
		return "run has {size}, but there are none; add 'sizes: [60, "
		       "1514]'";
	if (has_rate && measure->n_rates == 0)
		return "run has {rate}, but there are none; add 'rates: [1M, "
		       "2M]'";
	if (!has_size && measure->n_sizes > 0)
		return "there are sizes, but run has no {size}, as in '--size "
		       "{size}'";
	if (!has_rate && measure->n_rates > 0)
		return "there are rates, but run has no {rate}, as in '--rate "
		       "{rate}'";
	if (has_twins(measure))
		return "a size or a rate is there twice; use 'repeat' to "
		       "measure again";
	return NULL;
}

static int check_measures(struct plan *plan, const char *file,
			  struct mr_reason *why)
{
	for (uint32_t i = 0; i < plan->n_measures; i++) {
		struct plan_measure *measure = &plan->measures[i];
		const char *objection;

		join_lines(measure->run);
		objection = misfit(measure);
		for (uint32_t j = 0; j < i && objection == NULL; j++)
			if (strcmp(plan->measures[j].name, measure->name) == 0)
				objection = "two measures have this name; give "
					    "each its own";
		if (objection != NULL)
			return wrong(why, file, measure->line, objection);
		if (measure->time_s == 0)
			measure->time_s = DEFAULT_TIME_S;
		if (measure->limit_s == 0)
			measure->limit_s = 10 * measure->time_s + 60;
	}
	return 0;
}

static int check_devices(const struct plan *plan, const char *file,
			 struct mr_reason *why)
{
	for (uint32_t i = 0; i < plan->n_devices; i++) {
		const struct plan_device *device = &plan->devices[i];

		if (device->name[0] == '\0')
			return wrong(
				why, file, device->line,
				"a device without a name; add 'name: ...'");
		if (device->start[0] == '\0' &&
		    (device->ready[0] != '\0' || device->stop[0] != '\0'))
			return wrong(why, file, device->line,
				     "a device with ready or stop, but without "
				     "start; add 'start: ...'");
		for (uint32_t j = 0; j < i; j++)
			if (strcmp(plan->devices[j].name, device->name) == 0)
				return wrong(why, file, device->line,
					     "two devices have this name; give "
					     "each its own");
	}
	return 0;
}

uint64_t plan_count_steps(const struct plan *plan)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < plan->n_measures; i++) {
		const struct plan_measure *measure = &plan->measures[i];

		n += (uint64_t)(measure->n_sizes > 0 ? measure->n_sizes : 1) *
		     (measure->n_rates > 0 ? measure->n_rates : 1);
	}
	return n * plan->n_devices * plan->repeat;
}

/* Where nothing is said: results beside the plan, in a folder of its name. */
static void set_folder(const char *file, struct plan *plan)
{
	const char *slash = strrchr(file, '/');
	const char *dot = strrchr(slash != NULL ? slash : file, '.');
	const int n = dot != NULL && dot != file ? (int)(dot - file) :
						   (int)strlen(file);

	if (plan->folder[0] == '\0')
		snprintf(plan->folder, sizeof(plan->folder), "%.*s.results",
			 n < 200 ? n : 200, file);
}

static int check_all(const char *file, struct plan *plan, struct mr_reason *why)
{
	int err;

	join_lines(plan->prefix);
	if (plan->n_measures == 0)
		return wrong(why, file, 1,
			     "nothing is measured; add 'measures: [{name: "
			     "throughput, run: throughput PORT PORT}]'");
	err = check_measures(plan, file, why);
	if (err == 0)
		err = check_devices(plan, file, why);
	if (err < 0)
		return err;
	if (plan->n_devices == 0) {
		plan->devices = calloc(1, sizeof(*plan->devices));
		if (plan->devices == NULL)
			return -ENOMEM;
		plan->n_devices = 1;
	}
	if (plan_count_steps(plan) > PLAN_MAX_STEPS)
		return wrong(why, file, 1,
			     "more than 10000 steps; split the plan");
	set_folder(file, plan);
	return 0;
}

int plan_parse(const char *file, const char *bytes, size_t n_bytes,
	       struct plan *ret, struct mr_reason *why)
{
	struct plan plan = { .repeat = 1 };
	struct yaml_reader reader;
	int err = yaml_open(&reader, file, bytes, n_bytes, why);

	if (err < 0)
		return err;
	if (yaml_root(&reader) != NULL)
		err = yaml_take_keys(&reader, plan_keys, yaml_root(&reader),
				     &plan);
	yaml_close(&reader);
	if (err == 0)
		err = check_all(file, &plan, why);
	if (err == -ENOMEM)
		wrong(why, file, 1, "no memory");
	if (err < 0) {
		plan_free(&plan);
		return err;
	}
	*ret = plan;
	return 0;
}

void plan_free(struct plan *plan)
{
	for (uint32_t i = 0; i < plan->n_measures; i++) {
		free(plan->measures[i].sizes);
		free(plan->measures[i].rates);
	}
	free(plan->measures);
	free(plan->devices);
	*plan = (struct plan){ .repeat = 1 };
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of every application with a data plane. */
#include <string.h>

#include "run.h"
#include "values.h"

/* It becomes part of a file name. */
static bool read_instance(const char *text, void *to, struct mr_reason *why)
{
	if (text[0] == '\0' || strlen(text) > CONTROL_MAX_NAME ||
	    strspn(text,
		   "abcdefghijklmnopqrstuvwxyz"
		   "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != strlen(text))
		return value_wrong(why,
				   "'%s' is not 1 to 32 letters, digits, - or "
				   "_",
				   text);
	*(const char **)to = text;
	return true;
}

static bool read_metrics(const char *text, void *to, struct mr_reason *why)
{
	*(const char **)to = text;
	return value_place(text, why);
}

static bool read_duration(const char *text, void *to, struct mr_reason *why)
{
	return value_seconds(text, to, why);
}

#define ROW(name_, letter_, taker, member, arg_, help_, ...)                   \
	{                                                                      \
		.name = name_, .letter = letter_, .take = taker,               \
		.offset = offsetof(struct run_options, member), .arg = arg_,   \
		.help = help_, __VA_ARGS__                                     \
	}

const struct yaml_key run_control_keys[] = {
	ROW("config", 0, option_take_string, config_path, "FILE",
	    "configuration file, in YAML"),
	ROW("check", 0, yaml_take_bool, is_check, NULL,
	    "check the configuration and exit"),
	ROW("schema", 0, yaml_take_bool, is_schema, NULL,
	    "print the JSON schema of configuration files"),
	ROW("instance", 0, yaml_take_value, control.name, "NAME",
	    "name of the instance, for mrctl", .read = read_instance),
	ROW("control", 0, option_take_string, control.path, "PATH",
	    "control socket (default /run/millrace/NAME.sock)"),
	ROW("metrics", 0, yaml_take_value, control.metrics, "WHERE",
	    "serve Prometheus at unix:PATH or tcp:ADDRESS:PORT",
	    .read = read_metrics),
	{ .name = NULL },
};

const struct yaml_key run_keys[] = {
	ROW("json", 'j', yaml_take_bool, is_json, NULL,
	    "one JSON object per second on stdout"),
	ROW("duration", 'd', yaml_take_value, duration_ms, "S",
	    "exit after S seconds, such as 10 or 0.5", .read = read_duration),
	ROW("exit-on-port-loss", 0, yaml_take_bool, is_ending_on_loss, NULL,
	    "exit with status 1 if a port is down or gone"),
	ROW("quiet", 'q', yaml_take_bool, is_quiet, NULL,
	    "print only errors (with a file, warnings) and a summary"),
	ROW("verbose", 'v', option_take_count, n_verbose, NULL,
	    "log library messages; twice: debug messages too"),
	{ .name = NULL },
};

enum parse_result run_complete_options(const struct run_options *run,
				       struct dataplane_config *plane,
				       struct mr_reason *ret_error)
{
	/* With a file it is a service, whose warnings are read later. */
	plane->log_level = option_log_level(
		run->n_verbose, run->is_quiet && run->config_path == NULL);
	return dataplane_check_options(plane, ret_error);
}

enum parse_result run_complete_file(struct run_options *run,
				    struct dataplane_config *plane,
				    struct mr_reason *ret_error)
{
	const enum mr_log_level level = plane->log_level;
	const enum parse_result result =
		run_complete_options(run, plane, ret_error);

	if (run->n_verbose == 0)
		plane->log_level = level;
	if (run->control.metrics == NULL && plane->metrics[0] != '\0')
		run->control.metrics = plane->metrics;
	return result;
}

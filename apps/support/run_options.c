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

const struct yaml_key run_control_keys[] = {
	YAML_ROW("config", option_take_string, run_options, config_path,
		 YAML_OPTION("FILE", "configuration file, in YAML")),
	YAML_BOOL("check", run_options, is_check,
		  YAML_OPTION(NULL, "check the configuration and exit")),
	YAML_BOOL("schema", run_options, is_schema,
		  YAML_OPTION(NULL, "print the JSON schema of configuration "
				    "files")),
	YAML_VALUE("instance", run_options, control.name, read_instance, NULL,
		   YAML_OPTION("NAME", "name of the instance, for mrctl")),
	YAML_ROW("control", option_take_string, run_options, control.path,
		 YAML_OPTION("PATH", "control socket (default "
				     "/run/millrace/NAME.sock)")),
	YAML_VALUE("metrics", run_options, control.metrics, read_metrics, NULL,
		   YAML_OPTION("WHERE", "serve Prometheus at unix:PATH or "
					"tcp:ADDRESS:PORT")),
	YAML_END,
};

const struct yaml_key run_keys[] = {
	YAML_BOOL("json", run_options, is_json, .letter = 'j',
		  YAML_OPTION(NULL, "one JSON object per second on stdout")),
	YAML_VALUE("duration", run_options, duration_ms, read_duration, NULL,
		   .letter = 'd',
		   YAML_OPTION("S", "exit after S seconds, such as 10 or 0.5")),
	YAML_BOOL("exit_on_port_loss", run_options, is_ending_on_loss,
		  YAML_OPTION(NULL, "exit with status 1 if a port is down or "
				    "gone")),
	YAML_BOOL("quiet", run_options, is_quiet, .letter = 'q',
		  YAML_OPTION(NULL, "print only errors (with a file, warnings) "
				    "and a summary")),
	YAML_ROW("verbose", option_take_count, run_options, n_verbose,
		 .letter = 'v',
		 YAML_OPTION(NULL, "log library messages; twice: debug "
				   "messages too")),
	YAML_END,
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

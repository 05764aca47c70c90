/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of every application with a data plane. */
#include <string.h>

#include "run.h"
#include "values.h"

const struct option_row run_option_rows[N_RUN_OPTION_ROWS] = {
	{ "cores", OPTION_CORES, "LIST",
	  "cores to use, such as 1,3-5, or auto (default)" },
	{ "burst", OPTION_BURST, "N",
	  "entries per burst, 1 to 256 (default 256)" },
	{ "idle", OPTION_IDLE, "HOW",
	  "without work: poll, adaptive (default), interrupt" },
	{ "json", OPTION_JSON, NULL, "one JSON object per second on stdout" },
	{ "config", OPTION_CONFIG, "FILE", "configuration file, in YAML" },
	{ "check", OPTION_CHECK, NULL, "check the configuration and exit" },
	{ "schema", OPTION_SCHEMA, NULL,
	  "print the JSON schema of configuration files" },
	{ "instance", OPTION_INSTANCE, "NAME",
	  "name of the instance, for mrctl" },
	{ "control", OPTION_CONTROL, "PATH",
	  "control socket (default /run/millrace/NAME.sock)" },
	{ "metrics", OPTION_METRICS, "WHERE",
	  "serve Prometheus at unix:PATH or tcp:ADDRESS:PORT" },
	{ "queues", OPTION_QUEUES, "N",
	  "queues per port (default: the port's own)" },
	{ "ring", OPTION_RING, "N",
	  "entries per device ring (default: the port's)" },
	{ "pool-pages", OPTION_POOL_PAGES, "N",
	  "pages in the pool (default: as many as needed)" },
	{ "page-bytes", OPTION_PAGE_BYTES, "N",
	  "page size, 2048 to 32768 (default 4096)" },
	{ "safety", OPTION_SAFETY, "LEVEL",
	  "pool checks: counts (default), states, poison" },
	{ "duration", OPTION_DURATION, "S",
	  "exit after S seconds, such as 10 or 0.5" },
	{ "exit-on-port-loss", OPTION_EXIT_ON_PORT_LOSS, NULL,
	  "exit with status 1 if a port is down or gone" },
	{ "quiet", OPTION_QUIET, NULL,
	  "print only errors (with a file, warnings) and a summary" },
	{ "verbose", OPTION_VERBOSE, NULL,
	  "log library messages; twice: debug messages too" },
	{ "help", OPTION_HELP, NULL, "print this help" },
	{ "version", OPTION_VERSION, NULL, "print the version" },
};

/* It becomes part of a file name. */
static bool is_name(const char *text)
{
	return text[0] != '\0' && strlen(text) <= CONTROL_MAX_NAME &&
	       strspn(text,
		      "abcdefghijklmnopqrstuvwxyz"
		      "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == strlen(text);
}

enum parse_result run_take_option(const struct option_row *row, const char *arg,
				  struct run_options *run,
				  struct dataplane_config *plane,
				  struct mr_reason *ret_error)
{
	struct mr_reason why;

	switch (row->id) {
	case OPTION_INSTANCE:
		run->control.name = arg;
		if (is_name(arg))
			return PARSE_RUN;
		return parse_wrong(ret_error,
				   "--instance: '%s' is not 1 to 32 letters, "
				   "digits, - or _",
				   arg);
	case OPTION_CONFIG:
		run->config_path = arg;
		return PARSE_RUN;
	case OPTION_CHECK:
		run->is_check = true;
		return PARSE_RUN;
	case OPTION_SCHEMA:
		run->is_schema = true;
		return PARSE_RUN;
	case OPTION_CONTROL:
		run->control.path = arg;
		return PARSE_RUN;
	case OPTION_METRICS:
		run->control.metrics = arg;
		if (value_place(arg, &why))
			return PARSE_RUN;
		return parse_wrong(ret_error, "--metrics: %s", why.text);
	case OPTION_DURATION:
		return parse_seconds(row->name, arg, &run->duration_ms,
				     ret_error);
	case OPTION_JSON:
		run->is_json = true;
		return PARSE_RUN;
	case OPTION_EXIT_ON_PORT_LOSS:
		run->is_ending_on_loss = true;
		return PARSE_RUN;
	case OPTION_QUIET:
		run->is_quiet = true;
		return PARSE_RUN;
	case OPTION_VERBOSE:
		run->n_verbose++;
		return PARSE_RUN;
	default:
		return dataplane_take_option(row, arg, plane, ret_error);
	}
}

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

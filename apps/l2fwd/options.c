/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of mr-l2fwd. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/values.h"

#include "options.h"

static bool read_count(const char *text, void *to, struct mr_reason *why)
{
	uint64_t *n_frames = to;
	char *end;

	errno = 0;
	*n_frames = strtoull(text, &end, 10);
	return (text[0] >= '0' && text[0] <= '9' && *end == '\0' &&
		errno == 0 && *n_frames > 0) ||
	       value_wrong(why, "'%s' is not a whole number above 0", text);
}

/* Options that files do not have. */
static const struct yaml_key own_keys[] = {
	YAML_VALUE("count", options, n_frames, read_count, NULL,
		   YAML_OPTION("N", "exit after N frames, or up to a burst "
				    "more")),
	YAML_END,
};

static const struct option_keys sets[] = {
	{ l2fwd_keys, 0, true, 0 },
	{ own_keys, 0, false, 0 },
	{ dataplane_keys, offsetof(struct options, plane), true,
	  DATAPLANE_WORKERS | DATAPLANE_IDLE | DATAPLANE_MTU |
		  DATAPLANE_PROMISC },
	{ run_control_keys, offsetof(struct options, run), false, 0 },
	{ run_keys, offsetof(struct options, run), false, 0 },
};

static const char usage[] =
	"usage: mr-l2fwd [options] PORT [PORT...]\n"
	"       mr-l2fwd [options] --config FILE\n"
	"Forward Ethernet frames between ports without copying them.\n"
	"\n"
	"PORT is an interface name, or driver:device[,key=value...].\n"
	"Modes: patch connects ports in pairs; macswap also swaps the MAC\n"
	"addresses, and one port sends back; learn is a learning bridge;\n"
	"drop drops all frames.\n"
	"FILE lists the ports, and settings with the names of options.\n";

static enum parse_result take_ports(struct options *o, int n, char **specs,
				    struct mr_reason *error)
{
	struct mr_reason why;

	if (n > MAX_PORTS)
		return parse_wrong(error, "%d ports are more than %d", n,
				   MAX_PORTS);
	for (int i = 0; i < n; i++)
		if (!options_add_port(o, specs[i], &why))
			return parse_wrong(error, "%.300s", why.text);
	return PARSE_RUN;
}

/* Of the command line alone. */
static enum parse_result check_together(const struct options *o,
					struct mr_reason *error)
{
	struct objections objections = { .n = 0 };

	if (options_check(o, &objections) == 0)
		return PARSE_RUN;
	if (strcmp(objections.list[0].section, "ports") != 0)
		return objection_of_option(&objections.list[0], error);
	return parse_wrong(error, "%.300s; see mr-l2fwd --help",
			   objections.list[0].why.text);
}

static const struct option_table table = {
	.program = "mr-l2fwd",
	.usage = usage,
	.sets = sets,
	.n_sets = sizeof(sets) / sizeof(sets[0]),
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error)
{
	struct option_given given = { .n = 0 };
	enum parse_result result;
	int first;

	options_init(options);
	result = option_table_parse(&table, argc, argv, options, &first, &given,
				    ret_error);
	if (result != PARSE_RUN || options->run.is_schema)
		return result;
	result = take_ports(options, argc - first, argv + first, ret_error);
	if (result != PARSE_RUN)
		return result;
	if (options->run.config_path == NULL) {
		result = run_complete_options(&options->run, &options->plane,
					      ret_error);
		return result == PARSE_RUN ?
			       check_together(options, ret_error) :
			       result;
	}
	if (options->plane.n_ports > 0)
		return parse_wrong(ret_error,
				   "--config does not go with ports: the file "
				   "has them");
	/* With a file, its keys are set there. */
	if (given.n > 0)
		return parse_wrong(ret_error,
				   "--config does not go with --%s: set it in "
				   "the file",
				   given.list[given.n - 1].name);
	return PARSE_RUN;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of mr-l2fwd. */
#include <errno.h>
#include <string.h>

#include "options.h"

enum {
	ID_MODE = OPTION_LONG,
	ID_COUNT,
	ID_AGE,
	ID_FDB_LIMIT,
	ID_OFFLOAD,
	ID_PUNT
};

static const struct option_row rows[] = {
	{ "mode", ID_MODE, "MODE", "patch (default), macswap, learn or drop" },
	{ "workers", OPTION_WORKERS, "N",
	  "threads (default: one per queue of a port)" },
	{ "mtu", OPTION_MTU, "N", "set the ports' MTU; restored at exit" },
	{ "promisc", OPTION_PROMISC, "auto|on|off",
	  "promiscuous mode (auto: on in patch and learn)" },
	{ "count", ID_COUNT, "N",
	  "exit after N frames, or up to a burst more" },
	{ "age", ID_AGE, "S",
	  "learn: forget addresses after S seconds (default 300)" },
	{ "fdb-limit", ID_FDB_LIMIT, "N",
	  "learn: most addresses to keep (default 8192)" },
	{ "offload", ID_OFFLOAD, "off|auto|on",
	  "let the kernel forward known traffic (default off)" },
	{ "punt", ID_PUNT, "FILTER",
	  "leave frames that match a pcap filter to the kernel" },
};

static const char usage[] =
	"usage: mr-l2fwd [options] PORT PORT [PORT...]\n"
	"       mr-l2fwd [options] --config FILE\n"
	"Forward Ethernet frames between ports without copying them.\n"
	"\n"
	"PORT is an interface name, or driver:device[,key=value...].\n"
	"Modes: patch connects ports in pairs; macswap also swaps the MAC\n"
	"addresses; learn is a learning bridge; drop drops all frames.\n"
	"FILE lists the ports, and settings with the names of options.\n";

/* What is being parsed. */
struct parsing {
	struct options *options;
	const char *in_file; /* an option that is a key; NULL: none */
};

static enum parse_result take_option(const struct option_row *row,
				     const char *arg, void *opaque,
				     struct mr_reason *error)
{
	struct parsing *parsing = opaque;
	struct options *o = parsing->options;
	int err;

	if (row->id == ID_COUNT)
		return parse_u64(row->name, arg, 1, UINT64_MAX, &o->n_frames,
				 error);
	/* With a file, the option overrides the key. */
	if (arg == NULL || row->id == OPTION_METRICS)
		return run_take_option(row, arg, &o->run, &o->plane, error);
	err = yaml_take_option(l2fwd_keys, row->name, arg, o, error);
	if (err == -ENOENT)
		err = yaml_take_option(dataplane_keys, row->name, arg,
				       &o->plane, error);
	if (err == -ENOENT)
		return run_take_option(row, arg, &o->run, &o->plane, error);
	parsing->in_file = row->name;
	return err == 0 ? PARSE_RUN : PARSE_WRONG;
}

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
	.rows = rows,
	.n_rows = sizeof(rows) / sizeof(rows[0]),
	.take = take_option,
	.shared_rows = run_option_rows,
	.n_shared_rows = N_RUN_OPTION_ROWS,
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error)
{
	struct parsing parsing = { .options = options };
	enum parse_result result;
	int first;

	options_init(options);
	result = option_table_parse(&table, argc, argv, &parsing, &first,
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
	if (parsing.in_file != NULL)
		return parse_wrong(ret_error,
				   "--config does not go with --%s: set it in "
				   "the file",
				   parsing.in_file);
	return PARSE_RUN;
}

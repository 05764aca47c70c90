/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of mr-l2fwd. */
#include <string.h>

#include "options.h"

enum {
	MAX_FDB = 1 << 20,
	MAX_AGE_S = 1000000, /* IEEE 802.1Q-2018, table 8-3 */
};
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
	{ "cores", OPTION_CORES, "LIST",
	  "cores to use, such as 1,3-5, or auto (default)" },
	{ "burst", OPTION_BURST, "N",
	  "entries per burst, 1 to 256 (default 256)" },
	{ "mtu", OPTION_MTU, "N", "set the ports' MTU; restored at exit" },
	{ "promisc", OPTION_PROMISC, "auto|on|off",
	  "promiscuous mode (auto: on in patch and learn)" },
	{ "idle", OPTION_IDLE, "HOW",
	  "without work: poll, adaptive (default), interrupt" },
	{ "max-cpu", OPTION_MAX_CPU, "PERCENT",
	  "adaptive: limit of a core's CPU time (default 100)" },
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
	{ "json", OPTION_JSON, NULL, "one JSON object per second on stdout" },
	{ "csv", OPTION_CSV, NULL,
	  "CSV on stdout, one line per queue and second" },
};

static const char *const mode_names[] = { "patch", "macswap", "learn", "drop" };
static const char usage[] =
	"usage: mr-l2fwd [options] PORT PORT [PORT...]\n"
	"Forward Ethernet frames between ports without copying them.\n"
	"\n"
	"PORT is an interface name, or driver:device[,key=value...].\n"
	"Modes: patch connects ports in pairs; macswap also swaps the MAC\n"
	"addresses; learn is a learning bridge; drop drops all frames.\n";

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *options, struct mr_reason *error)
{
	const char *const name = row->name;
	struct options *o = options;
	enum parse_result r;
	uint32_t word = 0;

	switch (row->id) {
	case ID_MODE:
		r = parse_word(name, arg, mode_names, 4, &word, error);
		o->mode = (enum mode)word;
		return r;
	case ID_COUNT:
		return parse_u64(name, arg, 1, UINT64_MAX, &o->n_frames, error);
	case ID_AGE:
		return parse_u32(name, arg, 1, MAX_AGE_S, &o->age_s, error);
	case ID_FDB_LIMIT:
		return parse_u32(name, arg, 1, MAX_FDB, &o->fdb_limit, error);
	case ID_PUNT:
		o->plane.port.punt = arg;
		if (strlen(arg) > 0 && strlen(arg) <= MAX_PUNT_BYTES)
			return PARSE_RUN;
		return parse_wrong(error,
				   "--%s: a filter has 1 to %d characters",
				   name, MAX_PUNT_BYTES);
	case ID_OFFLOAD:
		return offload_take(row, arg, &o->offload, error);
	default:
		return run_take_option(row, arg, &o->run, &o->plane, error);
	}
}

static enum parse_result check_together(struct options *o,
					struct mr_reason *error)
{
	const uint32_t n_ports = o->plane.n_ports;
	const uint32_t n_least = o->mode == MODE_DROP ? 1 : 2;

	if (run_complete_options(&o->run, &o->plane, error) != PARSE_RUN)
		return PARSE_WRONG;
	if (n_ports < n_least)
		return parse_wrong(error,
				   "%s ports: mode %s needs %s; "
				   "see mr-l2fwd --help",
				   n_ports == 0 ? "no" : "too few",
				   mode_names[o->mode],
				   n_least == 1 ? "one" : "two");
	if (n_ports > MAX_PORTS)
		return parse_wrong(error, "%u ports are more than %d", n_ports,
				   MAX_PORTS);
	if ((o->mode == MODE_PATCH || o->mode == MODE_MACSWAP) &&
	    n_ports % 2 != 0)
		return parse_wrong(error,
				   "%u ports: mode %s needs pairs; add one, or "
				   "use --mode learn",
				   n_ports, mode_names[o->mode]);
	if (o->offload != OFFLOAD_OFF && o->mode == MODE_MACSWAP)
		return parse_wrong(error, "--offload: mode macswap is done in "
					  "user space only");
	if (o->offload != OFFLOAD_OFF && o->n_frames > 0)
		return parse_wrong(error, "--offload: --count cannot count "
					  "frames that the kernel forwards");
	return specs_differ(o->plane.specs, n_ports, error) ? PARSE_RUN :
							      PARSE_WRONG;
}

static const struct option_table table = {
	.program = "mr-l2fwd",
	.usage = usage,
	.rows = rows,
	.n_rows = sizeof(rows) / sizeof(rows[0]),
	.take = take,
	.shared_rows = run_option_rows,
	.n_shared_rows = N_RUN_OPTION_ROWS,
};

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error)
{
	enum parse_result result;
	int first;

	*options = (struct options){
		.plane = { .program = table.program,
			   .burst = MR_BURST_MAX,
			   .page_bytes = 4096 },
		.age_s = 300, /* IEEE 802.1Q, table 8-3 */
		.fdb_limit = 8192,
	};
	result = option_table_parse(&table, argc, argv, options, &first,
				    ret_error);
	if (result != PARSE_RUN)
		return result;
	options->plane.specs = (const char *const *)argv + first;
	options->plane.n_ports = (uint32_t)(argc - first);
	return check_together(options, ret_error);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of mr-l2fwd. */
#include <string.h>

#include "options.h"

enum {
	MAX_QUEUES = 64,
	MAX_RING = 32768,
	MAX_PAGES = 1 << 26,
	MAX_MTU = 65535,
	MAX_FDB = 1 << 20,
	MAX_AGE_S = 1000000, /* IEEE 802.1Q-2018, table 8-3 */
};

static const struct option_row rows[] = {
	{ "mode", 'm', "MODE", "patch (default), macswap, learn or drop" },
	{ "queues", 'q', "N", "queues per port (default: the port's own)" },
	{ "workers", 'w', "N", "threads (default: one per queue of a port)" },
	{ "cores", 'c', "LIST", "cores for them, as 1,3-5, or auto (default)" },
	{ "burst", 'b', "N", "entries per burst, 1 to 256 (default 256)" },
	{ "ring", 'r', "N",
	  "entries of each device ring (default: the port's)" },
	{ "pool-pages", 'p', "N",
	  "pages in the pool (default: what is needed)" },
	{ "page-bytes", 'P', "N", "2048 to 32768 (default 4096)" },
	{ "safety", 's', "LEVEL", "counts (default), states, poison or guard" },
	{ "mtu", 'M', "N", "set the ports' MTU, and put it back at the end" },
	{ "promisc", 'o', "auto|on|off",
	  "promiscuous (auto: on in patch and learn)" },
	{ "idle", 'i', "HOW", "poll, adaptive (default) or interrupt" },
	{ "duration", 'd', "S", "end after S seconds, as 10 or 0.5" },
	{ "count", 'n', "N", "end after N frames, up to a burst more" },
	{ "age", 'a', "S", "learn: forget an address after S (default 300)" },
	{ "fdb-limit", 'l', "N", "learn: addresses kept (default 8192)" },
	{ "json", 'j', NULL, "one JSON object per second on stdout" },
	{ "csv", 'C', NULL, "CSV lines, one per queue and second, on stdout" },
	{ "quiet", 'Q', NULL, "only errors and the summary at the end" },
	{ "verbose", 'v', NULL, "log what the library says; twice: all of it" },
	{ "help", OPTION_HELP, NULL, "print this" },
	{ "version", OPTION_VERSION, NULL, "print the version" },
};

static const char *const mode_names[] = { "patch", "macswap", "learn", "drop" };
static const char *const safety_names[] = { "counts", "states", "poison",
					    "guard" };
static const char *const idle_names[] = { "adaptive", "poll", "interrupt" };

const char *mode_name(enum mode mode)
{
	return mode_names[mode];
}

const char *idle_name(enum mr_idle_mode idle)
{
	return idle_names[idle];
}

static const char usage[] =
	"usage: mr-l2fwd [options] PORT PORT [PORT...]\n"
	"Forward Ethernet frames between ports, without copying them.\n"
	"\n"
	"PORT is an interface name, or driver:device[,key=value...].\n"
	"Modes: patch joins ports in pairs, frames unchanged; macswap does "
	"that\n"
	"and swaps the addresses; learn is a learning bridge; drop takes "
	"all.\n";

/* An option whose argument is one of a few words. */
static enum parse_result take_choice(const struct option_row *row,
				     const char *arg, struct options *o,
				     struct mr_reason *error)
{
	static const char *const on_off[] = { "auto", "on", "off" };
	uint32_t word = 0;
	enum parse_result r;

	switch (row->id) {
	case 'm':
		r = parse_word(row->name, arg, mode_names, 4, &word, error);
		o->mode = (enum mode)word;
		return r;
	case 'i':
		r = parse_word(row->name, arg, idle_names, 3, &word, error);
		o->idle = (enum mr_idle_mode)word;
		return r;
	case 's':
		r = parse_word(row->name, arg, safety_names, 4, &word, error);
		o->safety = (enum mr_safety)word;
		return r;
	default: /* 'o' */
		r = parse_word(row->name, arg, on_off, 3, &word, error);
		o->promisc = (enum promisc)word;
		return r;
	}
}

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *options, struct mr_reason *error)
{
	const char *const name = row->name;
	struct options *o = options;

	switch (row->id) {
	case 'm':
	case 'i':
	case 's':
	case 'o':
		return take_choice(row, arg, o, error);
	case 'q':
		return parse_u32(name, arg, 1, MAX_QUEUES, &o->n_queues, error);
	case 'w':
		return parse_u32(name, arg, 1, MR_WORKERS_MAX, &o->n_workers,
				 error);
	case 'c':
		return parse_cores(name, arg, true, o->cores, &o->n_cores,
				   error);
	case 'b':
		return parse_u32(name, arg, 1, MR_BURST_MAX, &o->burst, error);
	case 'r':
		return parse_u32(name, arg, 64, MAX_RING, &o->n_ring, error);
	case 'p':
		return parse_u32(name, arg, 1, MAX_PAGES, &o->n_pages, error);
	case 'P':
		return parse_u32(name, arg, 2048, 32768, &o->page_bytes, error);
	case 'M':
		return parse_u32(name, arg, 68, MAX_MTU, &o->mtu_bytes, error);
	case 'd':
		return parse_seconds(name, arg, &o->duration_ms, error);
	case 'n':
		return parse_u64(name, arg, 1, UINT64_MAX, &o->n_frames, error);
	case 'a':
		return parse_u32(name, arg, 1, MAX_AGE_S, &o->age_s, error);
	case 'l':
		return parse_u32(name, arg, 1, MAX_FDB, &o->fdb_limit, error);
	case 'j':
		o->output = OUTPUT_JSON;
		return PARSE_RUN;
	case 'C':
		o->output = OUTPUT_CSV;
		return PARSE_RUN;
	case 'Q':
		o->is_quiet = true;
		return PARSE_RUN;
	default: /* 'v' */
		o->n_verbose++;
		return PARSE_RUN;
	}
}

/*
 * The device of a spec that only one port can have: an interface or a PCI
 * address. NULL: the driver decides.
 */
static const char *sole_device(const char *spec)
{
	if (strncmp(spec, "xdp:", 4) == 0)
		return spec + 4;
	if (strncmp(spec, "vfio:", 5) == 0)
		return spec + 5;
	/* A colon behind a name is a driver's; a PCI address has no letters
	 * before its first one that are not hexadecimal. */
	if (strchr(spec, ':') == NULL ||
	    strspn(spec, "0123456789abcdefABCDEF:.") == strcspn(spec, ","))
		return spec;
	return NULL;
}

static enum parse_result check_ports(const struct options *o,
				     struct mr_reason *error)
{
	const uint32_t n_least = o->mode == MODE_DROP ? 1 : 2;

	if (o->n_ports < n_least)
		return parse_wrong(error,
				   "%s ports: mode %s needs %s; "
				   "mr-l2fwd --help shows how",
				   o->n_ports == 0 ? "no" : "too few",
				   mode_name(o->mode),
				   n_least == 1 ? "one" : "two");
	if (o->n_ports > MAX_PORTS)
		return parse_wrong(error, "%u ports are more than %d",
				   o->n_ports, MAX_PORTS);
	if ((o->mode == MODE_PATCH || o->mode == MODE_MACSWAP) &&
	    o->n_ports % 2 != 0)
		return parse_wrong(
			error,
			"%u ports: mode %s joins them in pairs; add one, "
			"or use --mode learn",
			o->n_ports, mode_name(o->mode));
	for (uint32_t i = 0; i < o->n_ports; i++) {
		const char *a = sole_device(o->specs[i]);

		for (uint32_t j = 0; a != NULL && j < i; j++) {
			const char *b = sole_device(o->specs[j]);
			const size_t n = strcspn(a, ",");

			if (b != NULL && n == strcspn(b, ",") &&
			    strncmp(a, b, n) == 0)
				return parse_wrong(
					error,
					"%.*s is there twice; a port can "
					"be used once",
					(int)n, a);
		}
	}
	return PARSE_RUN;
}

static enum parse_result check_together(const struct options *o,
					struct mr_reason *error)
{
	if ((o->page_bytes & (o->page_bytes - 1)) != 0)
		return parse_wrong(error,
				   "--page-bytes: %u is not a power of two",
				   o->page_bytes);
	if ((o->n_ring & (o->n_ring - 1)) != 0)
		return parse_wrong(error, "--ring: %u is not a power of two",
				   o->n_ring);
	if (o->n_cores > 0 && o->n_workers > o->n_cores)
		return parse_wrong(error,
				   "--workers %u: --cores has %u; one for each",
				   o->n_workers, o->n_cores);
	return check_ports(o, error);
}

static const struct option_table table = {
	.program = "mr-l2fwd",
	.usage = usage,
	.rows = rows,
	.n_rows = sizeof(rows) / sizeof(rows[0]),
	.take = take,
};

void options_print_help(FILE *to)
{
	option_table_print_help(&table, to);
}

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error)
{
	enum parse_result result;
	int first;

	*options = (struct options){ .burst = MR_BURST_MAX,
				     .page_bytes = 4096,
				     .age_s = 300, /* IEEE 802.1Q, table 8-3 */
				     .fdb_limit = 8192 };
	result = option_table_parse(&table, argc, argv, options, &first,
				    ret_error);
	if (result != PARSE_RUN)
		return result;
	options->specs = argv + first;
	options->n_ports = (uint32_t)(argc - first);
	options->log_level =
		option_log_level(options->n_verbose, options->is_quiet);
	return check_together(options, ret_error);
}

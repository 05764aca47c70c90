/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: one table makes the parser and the help. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
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

struct option_row {
	const char *name;
	char id;         /* also the short option, if it is a letter */
	const char *arg; /* NULL: none */
	const char *help;
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
	{ "safety", 's', "LEVEL",
	  "counts (default), states, poison or guard" },
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
	{ "help", 'h', NULL, "print this" },
	{ "version", 'V', NULL, "print the version" },
};

enum { N_ROWS = sizeof(rows) / sizeof(rows[0]) };

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

void options_print_help(FILE *to)
{
	fprintf(to, "usage: mr-l2fwd [options] PORT PORT [PORT...]\n"
		    "Forward Ethernet frames between ports, without copying "
		    "them.\n"
		    "\n"
		    "PORT is an interface name, or driver:device[,key=value...]"
		    ".\n"
		    "Modes: patch joins ports in pairs, frames unchanged; "
		    "macswap does that\n"
		    "and swaps the addresses; learn is a learning bridge; drop "
		    "takes all.\n"
		    "\n");
	for (uint32_t i = 0; i < N_ROWS; i++) {
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", rows[i].name,
			 rows[i].arg != NULL ? " " : "",
			 rows[i].arg != NULL ? rows[i].arg : "");
		fprintf(to, "  -%c, %-18s %s\n", rows[i].id, left,
			rows[i].help);
	}
	fprintf(to, "\nExit status: 0; 1 on failure; 2 if the command line is "
		    "wrong.\n");
}

__attribute__((format(printf, 2, 3))) static enum parse_result
wrong(struct mr_reason *ret_error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(ret_error->text, sizeof(ret_error->text), format, args);
	va_end(args);
	return PARSE_WRONG;
}

/* A whole number in min..max. */
static enum parse_result parse_u64(const char *name, const char *text,
				   uint64_t min, uint64_t max, uint64_t *ret,
				   struct mr_reason *ret_error)
{
	unsigned long long value;
	char *end;

	errno = 0;
	value = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0')
		return wrong(ret_error, "--%s: '%s' is not a whole number",
			     name, text);
	if (errno != 0 || value < min || value > max)
		return wrong(ret_error,
			     "--%s: %s is out of range, %llu to %llu", name,
			     text, (unsigned long long)min,
			     (unsigned long long)max);
	*ret = value;
	return PARSE_RUN;
}

static enum parse_result parse_u32(const char *name, const char *text,
				   uint32_t min, uint32_t max, uint32_t *ret,
				   struct mr_reason *ret_error)
{
	uint64_t value = 0;
	const enum parse_result result =
		parse_u64(name, text, min, max, &value, ret_error);

	if (result == PARSE_RUN)
		*ret = (uint32_t)value;
	return result;
}

static enum parse_result parse_word(const char *name, const char *text,
				    const char *const *words, uint32_t n_words,
				    uint32_t *ret, struct mr_reason *ret_error)
{
	char known[80] = "";

	for (uint32_t i = 0; i < n_words; i++) {
		const size_t n = strlen(known);

		if (strcmp(text, words[i]) == 0) {
			*ret = i;
			return PARSE_RUN;
		}
		snprintf(known + n, sizeof(known) - n, " %s", words[i]);
	}
	return wrong(ret_error, "--%s: no '%s'; there are:%s", name, text,
		     known);
}

/* "1,3-5". Whether the cores are there is the library's to say. */
static enum parse_result parse_cores(const char *text, struct options *options,
				     struct mr_reason *ret_error)
{
	const char *at = text;

	options->n_cores = 0;
	if (strcmp(text, "auto") == 0)
		return PARSE_RUN;
	for (;;) {
		unsigned long first, last;
		char *end;

		if (*at < '0' || *at > '9')
			break;
		first = last = strtoul(at, &end, 10);
		if (*end == '-' && end[1] >= '0' && end[1] <= '9')
			last = strtoul(end + 1, &end, 10);
		if (last < first || last >= 1024)
			break;
		for (unsigned long core = first; core <= last; core++) {
			if (options->n_cores == MR_WORKERS_MAX)
				return wrong(ret_error, "--cores: more than %d",
					     MR_WORKERS_MAX);
			options->cores[options->n_cores++] = (uint32_t)core;
		}
		if (*end == '\0')
			return PARSE_RUN;
		if (*end != ',')
			break;
		at = end + 1;
	}
	return wrong(ret_error,
		     "--cores: '%s' is no list of cores, as 1,3-5, or auto",
		     text);
}

static enum parse_result parse_seconds(const char *text, uint64_t *ret_ms,
				       struct mr_reason *ret_error)
{
	char *end;
	const double s = strtod(text, &end);

	/* Not by its negation: a NaN is wrong, too. */
	if (end == text || *end != '\0' || !(s >= 0.001 && s <= 1e9))
		return wrong(ret_error,
			     "--duration: '%s' is not a number of seconds, "
			     "0.001 to 1e9",
			     text);
	*ret_ms = (uint64_t)(s * 1000 + 0.5);
	return PARSE_RUN;
}

/* An option whose argument is one of a few words. */
static enum parse_result parse_choice(char id, const char *name,
				      const char *arg, struct options *o,
				      struct mr_reason *error)
{
	static const char *const on_off[] = { "auto", "on", "off" };
	uint32_t word = 0;
	enum parse_result r;

	switch (id) {
	case 'm':
		r = parse_word(name, arg, mode_names, 4, &word, error);
		o->mode = (enum mode)word;
		return r;
	case 'i':
		r = parse_word(name, arg, idle_names, 3, &word, error);
		o->idle = (enum mr_idle_mode)word;
		return r;
	case 's':
		r = parse_word(name, arg, safety_names, 4, &word, error);
		o->safety = (enum mr_safety)word;
		return r;
	default: /* 'o' */
		r = parse_word(name, arg, on_off, 3, &word, error);
		o->promisc = (enum promisc)word;
		return r;
	}
}

static enum parse_result parse_one(char id, const char *name, const char *arg,
				   struct options *o, struct mr_reason *error)
{
	switch (id) {
	case 'm':
	case 'i':
	case 's':
	case 'o':
		return parse_choice(id, name, arg, o, error);
	case 'q':
		return parse_u32(name, arg, 1, MAX_QUEUES, &o->n_queues, error);
	case 'w':
		return parse_u32(name, arg, 1, MR_WORKERS_MAX, &o->n_workers,
				 error);
	case 'c':
		return parse_cores(arg, o, error);
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
		return parse_seconds(arg, &o->duration_ms, error);
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
		return wrong(error,
			     "%s ports: mode %s needs %s; "
			     "mr-l2fwd --help shows how",
			     o->n_ports == 0 ? "no" : "too few",
			     mode_name(o->mode), n_least == 1 ? "one" : "two");
	if (o->n_ports > MAX_PORTS)
		return wrong(error, "%u ports are more than %d", o->n_ports,
			     MAX_PORTS);
	if ((o->mode == MODE_PATCH || o->mode == MODE_MACSWAP) &&
	    o->n_ports % 2 != 0)
		return wrong(error,
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
				return wrong(error,
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
		return wrong(error, "--page-bytes: %u is not a power of two",
			     o->page_bytes);
	if ((o->n_ring & (o->n_ring - 1)) != 0)
		return wrong(error, "--ring: %u is not a power of two",
			     o->n_ring);
	if (o->n_cores > 0 && o->n_workers > o->n_cores)
		return wrong(error,
			     "--workers %u: --cores has %u; one for each",
			     o->n_workers, o->n_cores);
	return check_ports(o, error);
}

/* Asking for what the library says outdoes asking for quiet. */
static enum mr_log_level log_level(const struct options *o)
{
	if (o->n_verbose == 0)
		return o->is_quiet ? MR_LOG_ERROR : MR_LOG_WARNING;
	return o->n_verbose == 1 ? MR_LOG_INFO : MR_LOG_DEBUG;
}

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error)
{
	struct option table[N_ROWS + 1] = { 0 };
	char letters[2 * N_ROWS + 2] = ":";
	size_t n_letters = 1;
	int id;

	*options = (struct options){ .burst = MR_BURST_MAX,
				     .page_bytes = 4096,
				     .age_s = 300, /* IEEE 802.1Q, table 8-3 */
				     .fdb_limit = 8192 };
	for (uint32_t i = 0; i < N_ROWS; i++) {
		table[i] = (struct option){ .name = rows[i].name,
					    .has_arg = rows[i].arg != NULL,
					    .val = rows[i].id };
		letters[n_letters++] = rows[i].id;
		if (rows[i].arg != NULL)
			letters[n_letters++] = ':';
	}
	optind = 0; /* GNU: begin afresh, for tests that parse twice */
	opterr = 0;
	while ((id = getopt_long(argc, argv, letters, table, NULL)) != -1) {
		const char *name = "";
		enum parse_result result;

		if (id == '?')
			return wrong(ret_error,
				     "no option '%s'; mr-l2fwd --help lists "
				     "them",
				     argv[optind > 1 ? optind - 1 : 1]);
		if (id == ':')
			return wrong(ret_error, "option '%s' needs a value",
				     argv[optind - 1]);
		if (id == 'h') {
			options_print_help(stdout);
			return PARSE_DONE;
		}
		if (id == 'V') {
			printf("mr-l2fwd %s\n", mr_version());
			return PARSE_DONE;
		}
		for (uint32_t i = 0; i < N_ROWS; i++)
			if (rows[i].id == id)
				name = rows[i].name;
		result = parse_one((char)id, name, optarg, options, ret_error);
		if (result != PARSE_RUN)
			return result;
	}
	options->specs = argv + optind;
	options->n_ports = (uint32_t)(argc - optind);
	options->log_level = log_level(options);
	return check_together(options, ret_error);
}

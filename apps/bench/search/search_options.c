/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of the commands that search. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/session.h"
#include "support/specs.h"
#include "support/text.h"

enum {
	OPTION_METHOD = TRAFFIC_OWN,
	OPTION_SIZES,
	OPTION_LOSS,
	OPTION_PARTIAL,
	OPTION_RESOLUTION,
	OPTION_UNSENT,
	OPTION_EXCEED,
	OPTION_STEP,
	OPTION_TRIAL,
	OPTION_CONFIRM,
	OPTION_SUM,
	OPTION_INTERVAL,
	OPTION_MAX_BURST,
	OPTION_VERIFY,
	OPTION_TESTS,
	OPTION_SHARES_,
	OPTION_CEILING,
	OPTION_PID,
};

static const struct {
	uint32_t groups;
	struct option_row row;
} all_rows[] = {
	{ OPTIONS_SEARCH,
	  { "method", OPTION_METHOD, "HOW",
	    "binary (default), tst009 or mlr" } },
	{ OPTIONS_SIZES,
	  { "sizes", OPTION_SIZES, "LIST",
	    "frames with FCS, as 64,512,1518, or rfc2544" } },
	{ OPTIONS_TRIAL,
	  { "trial", OPTION_TRIAL, "S", "length of a trial (default 1)" } },
	{ OPTIONS_SEARCH,
	  { "confirm", OPTION_CONFIRM, "S",
	    "binary, tst009: of the last one, which confirms" } },
	{ OPTIONS_SEARCH,
	  { "verify", OPTION_VERIFY, "N",
	    "tst009, back2back: trials with loss again (default 2)" } },
	{ OPTIONS_SEARCH | OPTIONS_BURSTS,
	  { "resolution", OPTION_RESOLUTION, "P%",
	    "of the rate found (default 0.5%)" } },
	{ OPTIONS_SEARCH | OPTIONS_INTERVAL,
	  { "loss-tolerance", OPTION_LOSS, "P%",
	    "binary, tst009, soak: of the frames sent (default 0%)" } },
	{ OPTIONS_SEARCH,
	  { "pdr", OPTION_PARTIAL, "P%",
	    "mlr: loss of its second goal (default 0.5%)" } },
	{ OPTIONS_SEARCH,
	  { "duration-sum", OPTION_SUM, "S",
	    "mlr: of trials at a load (default 21 trials)" } },
	{ OPTIONS_SEARCH,
	  { "exceed-ratio", OPTION_EXCEED, "P%",
	    "mlr: of bad trials that is let pass (default 50%)" } },
	{ OPTIONS_TRIAL,
	  { "unsent-tolerance", OPTION_UNSENT, "P%",
	    "more unsent: a trial says nothing (default 0.5%)" } },
	{ OPTIONS_STEP,
	  { "step", OPTION_STEP, "P%", "of the rate (default 10%)" } },
	{ OPTIONS_BURSTS,
	  { "tests", OPTION_TESTS, "N", "repetitions (default 50)" } },
	{ OPTIONS_BURSTS,
	  { "max-burst", OPTION_MAX_BURST, "S", "longest burst (default 2)" } },
	{ OPTIONS_SHARES,
	  { "shares", OPTION_SHARES_, "LIST",
	    "of the throughput, as 10,50,90 (default)" } },
	{ OPTIONS_INTERVAL,
	  { "interval", OPTION_INTERVAL, "S",
	    "length of an interval (default 10)" } },
	{ OPTIONS_INTERVAL,
	  { "pid", OPTION_PID, "N", "of the device: its memory is watched" } },
	{ OPTIONS_CEILING,
	  { "ceiling", OPTION_CEILING, "RATE|FILE",
	    "of the tester: a rate, or a document of selftest" } },
};

enum { N_ROWS = sizeof(all_rows) / sizeof(all_rows[0]) };

static const char *const methods[] = { "binary", "tst009", "mlr" };
static const uint32_t rfc2544_sizes[] = { 64, 128, 256, 512, 1024, 1280, 1518 };

static uint32_t given_bit(int id)
{
	return 1u << (id - TRAFFIC_OWN);
}

static const char *name_of(int id)
{
	uint32_t i = 0;

	while (all_rows[i].row.id != id)
		i++;
	return all_rows[i].row.name;
}

enum parse_result parse_percent(const char *name, const char *text, double max,
				double *ret, struct mr_reason *why)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || strcmp(end, "%") != 0 || errno != 0 ||
	    !(value >= 0 && value <= max))
		return parse_wrong(why,
				   "--%s %s: write per cent of 0 to %g, "
				   "as 0.5%%",
				   name, text, max);
	*ret = value / 100;
	return PARSE_RUN;
}

/* Numbers with commas between them. */
static enum parse_result parse_list(const char *name, const char *text,
				    double min, double max, uint32_t room,
				    double *ret, uint32_t *ret_n,
				    struct mr_reason *why)
{
	uint32_t n = 0;
	char *end;

	for (const char *at = text;; at = end + 1) {
		const double value = strtod(at, &end);

		if (end == at || (*end != ',' && *end != '\0') ||
		    !(value >= min && value <= max))
			return parse_wrong(why,
					   "--%s %s: \"%s\" is no number of "
					   "%g to %g",
					   name, text, at, min, max);
		if (n == room)
			return parse_wrong(why, "--%s %s: more than %u", name,
					   text, room);
		ret[n++] = value;
		if (*end == '\0')
			break;
	}
	*ret_n = n;
	return PARSE_RUN;
}

enum parse_result parse_sizes(const char *name, const char *text, uint32_t *ret,
			      uint32_t *ret_n, struct mr_reason *why)
{
	double values[MAX_SIZES];
	uint32_t n = 0;

	if (strcmp(text, "rfc2544") == 0) {
		n = sizeof(rfc2544_sizes) / sizeof(*rfc2544_sizes);
		for (uint32_t i = 0; i < n; i++)
			values[i] = rfc2544_sizes[i];
	} else if (parse_list(name, text, 64, 9728, MAX_SIZES, values, &n,
			      why) != PARSE_RUN) {
		return PARSE_WRONG;
	}
	for (uint32_t i = 0; i < n; i++)
		ret[i] = (uint32_t)values[i] - FCS_BYTES;
	*ret_n = n;
	return PARSE_RUN;
}

enum parse_result parse_shares(const char *name, const char *text, double *ret,
			       uint32_t *ret_n, struct mr_reason *why)
{
	if (parse_list(name, text, 0.001, 100, MAX_SHARES, ret, ret_n, why) !=
	    PARSE_RUN)
		return PARSE_WRONG;
	for (uint32_t i = 0; i < *ret_n; i++)
		ret[i] /= 100;
	return PARSE_RUN;
}

static enum parse_result parse_ns(const char *name, const char *text,
				  uint64_t *ret, struct mr_reason *why)
{
	uint64_t ms = 0;
	const enum parse_result result = parse_seconds(name, text, &ms, why);

	*ret = ms * 1000000;
	return result;
}

/* How a search goes. */
static enum parse_result take_search(const struct option_row *row,
				     const char *arg, struct search_options *o,
				     struct mr_reason *why)
{
	const char *const name = row->name;
	enum parse_result result;
	uint32_t word = 0;

	switch (row->id) {
	case OPTION_METHOD:
		result = parse_word(name, arg, methods, 3, &word, why);
		o->method = (enum method)word;
		return result;
	case OPTION_LOSS:
		return parse_percent(name, arg, 50, &o->loss_tolerance, why);
	case OPTION_PARTIAL:
		return parse_percent(name, arg, 50, &o->partial_tolerance, why);
	case OPTION_RESOLUTION:
		return parse_percent(name, arg, 50, &o->resolution, why);
	case OPTION_UNSENT:
		return parse_percent(name, arg, 50, &o->unsent_tolerance, why);
	case OPTION_EXCEED:
		return parse_percent(name, arg, 90, &o->exceed_ratio, why);
	case OPTION_CONFIRM:
		return parse_ns(name, arg, &o->confirm_ns, why);
	case OPTION_SUM:
		return parse_ns(name, arg, &o->duration_sum_ns, why);
	default:
		return parse_u32(name, arg, 0, 100, &o->n_verify, why);
	}
}

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *options, struct mr_reason *why)
{
	struct search_options *o = options;
	const char *const name = row->name;

	o->given |= given_bit(row->id);
	switch (row->id) {
	case OPTION_SIZES:
		o->is_rfc2544 = strcmp(arg, "rfc2544") == 0;
		return parse_sizes(name, arg, o->sizes, &o->n_sizes, why);
	case OPTION_TRIAL:
		return parse_ns(name, arg, &o->trial_ns, why);
	case OPTION_STEP:
		return parse_percent(name, arg, 50, &o->step, why);
	case OPTION_TESTS:
		return parse_u32(name, arg, 1, 1000, &o->n_tests, why);
	case OPTION_MAX_BURST:
		return parse_ns(name, arg, &o->max_burst_ns, why);
	case OPTION_SHARES_:
		return parse_shares(name, arg, o->shares, &o->n_shares, why);
	case OPTION_INTERVAL:
		return parse_ns(name, arg, &o->interval_ns, why);
	case OPTION_PID:
		return parse_u32(name, arg, 1, INT32_MAX, &o->pid, why);
	case OPTION_CEILING:
		o->ceiling = arg;
		return PARSE_RUN;
	default:
		return take_search(row, arg, o, why);
	}
}

static const struct search_options defaults = {
	.partial_tolerance = 0.005,
	.resolution = 0.005,
	.unsent_tolerance = 0.005,
	.exceed_ratio = 0.5,
	.step = 0.1,
	.trial_ns = 1000000000,
	.interval_ns = 10000000000,
	.max_burst_ns = 2000000000,
	.n_verify = 2,
	.n_tests = 50,
	.shares = { 0.1, 0.5, 0.9 },
	.n_shares = 3,
};

/* A trial has its own length, and without stamps nothing is told of frames. */
static const char *const without[] = { "count", "unstamped", NULL };

/* What says how long frames are. */
static int check_sizes(const struct search_options *o, struct mr_reason *why)
{
	const struct tester_config *tester = &o->traffic.tester;

	if (o->n_sizes > 0 && tester->frame_bytes != 0)
		return fail_with(why, -EINVAL,
				 "--size and --sizes: one of them says how "
				 "long frames are");
	for (uint32_t i = 0; i < tester->n_streams && o->n_sizes > 0; i++)
		if (strstr(tester->streams[i], "size=") != NULL ||
		    strstr(tester->streams[i], "pcap=") != NULL)
			return fail_with(why, -EINVAL,
					 "--sizes: the stream '%.200s' has "
					 "lengths of its own",
					 tester->streams[i]);
	return 0;
}

/* An option of another method would do nothing. */
static int check_methods(const struct search_command *command,
			 const struct search_options *o, struct mr_reason *why)
{
	enum {
		BINARY = 1u << METHOD_BINARY,
		TST009 = 1u << METHOD_TST009,
		MLR = 1u << METHOD_MLR,
	};
	static const struct {
		int id;
		uint32_t methods;
		const char *names;
		uint32_t beside; /* groups that use it for themselves, too */
	} rows[] = {
		{ OPTION_CONFIRM, BINARY | TST009, "binary or tst009", 0 },
		{ OPTION_VERIFY, TST009, "tst009", OPTIONS_BURSTS },
		{ OPTION_LOSS, BINARY | TST009, "binary or tst009",
		  OPTIONS_INTERVAL },
		{ OPTION_PARTIAL, MLR, "mlr", 0 },
		{ OPTION_SUM, MLR, "mlr", 0 },
		{ OPTION_EXCEED, MLR, "mlr", 0 },
	};

	for (uint32_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if ((o->given & given_bit(rows[i].id)) != 0 &&
		    (rows[i].methods & 1u << o->method) == 0 &&
		    (rows[i].beside & command->groups) == 0)
			return fail_with(why, -EINVAL,
					 "--%s belongs to --method %s; this is "
					 "%s",
					 name_of(rows[i].id), rows[i].names,
					 methods[o->method]);
	return 0;
}

/* What is taken one by one, and does not go together. */
static int check(const struct search_command *command,
		 const struct search_options *o, struct mr_reason *why)
{
	/* Without that option its name would be short for --duration-sum. */
	if (o->traffic.trial.duration_ns != 0 &&
	    (command->groups & OPTIONS_INTERVAL) == 0)
		return fail_with(why, -EINVAL,
				 "--duration: %s makes trials of --trial "
				 "seconds",
				 command->name);
	if (o->duration_sum_ns != 0 && o->duration_sum_ns < o->trial_ns)
		return fail_with(why, -EINVAL,
				 "--duration-sum: shorter than one --trial");
	return check_methods(command, o, why) < 0 ? -EINVAL :
						    check_sizes(o, why);
}

int search_options_main(const struct search_command *command, int argc,
			char **argv, struct search_options *ret)
{
	struct option_row rows[N_ROWS];
	struct traffic_command traffic = {
		.name = command->name,
		.usage = command->usage,
		.ports = command->needs_no_ports ? TRAFFIC_PAIRS_OR_NONE :
						   TRAFFIC_PAIRS,
		.without = without,
		.rows = rows,
		.take = take,
		.own = ret,
	};
	struct mr_reason why;
	int status;

	*ret = defaults;
	for (uint32_t i = 0; i < N_ROWS; i++)
		if ((all_rows[i].groups & command->groups) != 0)
			rows[traffic.n_rows++] = all_rows[i].row;
	status = traffic_options_main(&traffic, argc, argv, &ret->traffic);
	if (status >= 0)
		return status;
	if (check(command, ret, &why) < 0) {
		print_error("mr-bench: %s", why.text);
		return 2;
	}
	if (ret->resolution < 1e-5)
		ret->resolution = 1e-5;
	if (ret->step < 0.02)
		ret->step = 0.02;
	if (ret->duration_sum_ns == 0)
		ret->duration_sum_ns = 21 * ret->trial_ns;
	return -1;
}

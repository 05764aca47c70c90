/* SPDX-License-Identifier: BSD-3-Clause */
/* The options that all commands that send or receive share. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/options.h"
#include "support/text.h"

enum {
	OPTION_RATE = OPTION_LONG,
	OPTION_PACE,
	OPTION_PACE_FRAMES,
	OPTION_COUNT,
	OPTION_STREAM,
	OPTION_SIZE,
	OPTION_DST_MAC,
	OPTION_UNSTAMPED,
	OPTION_SEED,
	OPTION_SETTLE,
	OPTION_MAX_LAG,
	OPTION_DEVICE,
	OPTION_VIRTUAL,
	OPTION_BIDIRECTIONAL,
	OPTION_OUT,
	OPTION_CSV,
	OPTION_HDR,
	OPTION_LABEL,
	OPTION_DURATION = 'd',
	OPTION_JSON = 'j',
	OPTION_QUIET = 'q',
	OPTION_VERBOSE = 'v',
	MIN_SIZE = 14,
	MAX_SIZE = 32768,
};

const char *const pace_names[] = { "constant", "poisson", "bursts" };

/* A command without ports has none of the data plane's. */
static const struct option_row shared[] = {
	{ "rate", OPTION_RATE, "RATE",
	  "1.2M (frames/s), 10Gbit, 10Gbit-l2, 25%, max (default)" },
	{ "pace", OPTION_PACE, "HOW", "constant (default), poisson or bursts" },
	{ "pace-frames", OPTION_PACE_FRAMES, "N",
	  "frames per burst of --pace bursts (default 32)" },
	{ "duration", OPTION_DURATION, "S",
	  "send for S seconds, such as 10 or 0.5" },
	{ "count", OPTION_COUNT, "N", "frames to send, or to receive" },
	{ "stream", OPTION_STREAM, "TEXT",
	  "what to send, e.g. 'ip.src=10.0.0.0/16'; repeatable" },
	{ "size", OPTION_SIZE, "BYTES",
	  "length of other streams' frames, without FCS (60)" },
	{ "dst-mac", OPTION_DST_MAC, "MAC",
	  "destination (default: receiving port's, or broadcast)" },
	{ "unstamped", OPTION_UNSTAMPED, NULL,
	  "write no stamps: received frames cannot be identified" },
	{ "seed", OPTION_SEED, "N",
	  "for random fields and gaps; rx: that of its tx (0)" },
	{ "settle", OPTION_SETTLE, "S",
	  "wait S seconds for late frames (0.1; searches: 1)" },
	{ "max-lag", OPTION_MAX_LAG, "S",
	  "give up frames that are S seconds late (default 0.01)" },
	{ "bidirectional", OPTION_BIDIRECTIONAL, NULL,
	  "both ports of a pair send and receive" },
	{ "device", OPTION_DEVICE, "TEXT",
	  "simulate a DUT between two pair: ports: loss=N,dup=N..." },
	{ "virtual", OPTION_VIRTUAL, NULL,
	  "simulated time, one thread; pair: ports only" },
	{ "queues", OPTION_QUEUES, "N",
	  "queues per port (default: the port's own)" },
	{ "workers", OPTION_WORKERS, "N",
	  "threads (default: one to send, one to receive)" },
	{ "cores", OPTION_CORES, "LIST",
	  "cores to use, such as 1,3-5, or auto (default)" },
	{ "burst", OPTION_BURST, "N",
	  "entries per burst, 1 to 256 (default 64)" },
	{ "ring", OPTION_RING, "N",
	  "ring size (default: the port's; 16384 to receive)" },
	{ "pool-pages", OPTION_POOL_PAGES, "N",
	  "pages in the pool (default: as many as needed)" },
	{ "page-bytes", OPTION_PAGE_BYTES, "N",
	  "page size, 2048 to 32768 (default 4096)" },
	{ "mtu", OPTION_MTU, "N", "set the ports' MTU; restored at exit" },
	{ "promisc", OPTION_PROMISC, "auto|on|off",
	  "promiscuous mode (auto: on)" },
	{ "json", OPTION_JSON, NULL, "print JSON instead of text" },
	{ "out", OPTION_OUT, "FILE", "write the JSON document to FILE" },
	{ "csv", OPTION_CSV, "FILE",
	  "write results, or else the trials, as CSV" },
	{ "hdr", OPTION_HDR, "FILE", "write latencies as an HdrHistogram log" },
	{ "label", OPTION_LABEL, "TEXT", "name of the document in reports" },
	{ "quiet", OPTION_QUIET, NULL, "print no progress" },
	{ "verbose", OPTION_VERBOSE, NULL,
	  "log library messages; twice: debug messages too" },
	{ "help", OPTION_HELP, NULL, "print this help" },
};

enum { N_SHARED = sizeof(shared) / sizeof(shared[0]) };

/* What the parser hands to take(). */
struct taking {
	const struct traffic_command *command;
	struct traffic_options *options;
};

static enum parse_result take_ns(const char *name, const char *arg,
				 uint64_t *ret_ns, struct mr_reason *why)
{
	uint64_t ms;
	const enum parse_result result = parse_seconds(name, arg, &ms, why);

	if (result == PARSE_RUN)
		*ret_ns = ms * 1000000;
	return result;
}

static enum parse_result take_mac(const char *name, const char *arg,
				  uint8_t *ret, struct mr_reason *why)
{
	unsigned int b[6];
	int n = 0;

	if (sscanf(arg, "%2x:%2x:%2x:%2x:%2x:%2x%n", &b[0], &b[1], &b[2], &b[3],
		   &b[4], &b[5], &n) != 6 ||
	    n != 17 || arg[n] != '\0')
		return parse_wrong(why,
				   "--%s: '%s' is not a MAC address such "
				   "as 02:00:00:00:00:01",
				   name, arg);
	for (uint32_t i = 0; i < 6; i++)
		ret[i] = (uint8_t)b[i];
	return PARSE_RUN;
}

static enum parse_result take_trial(const struct option_row *row,
				    const char *arg, struct trial_config *trial,
				    struct mr_reason *why)
{
	enum parse_result result;
	uint32_t pace = 0;

	switch (row->id) {
	case OPTION_RATE:
		return rate_parse(row->name, arg, &trial->rate, why);
	case OPTION_PACE:
		result = parse_word(row->name, arg, pace_names, 3, &pace, why);
		trial->pace = (enum pace)pace;
		return result;
	case OPTION_PACE_FRAMES:
		return parse_u32(row->name, arg, 1, 1000000,
				 &trial->burst_frames, why);
	case OPTION_DURATION:
		return take_ns(row->name, arg, &trial->duration_ns, why);
	case OPTION_COUNT:
		return parse_u64(row->name, arg, 1, 1ull << 47,
				 &trial->n_frames, why);
	case OPTION_SETTLE:
		return take_ns(row->name, arg, &trial->settle_ns, why);
	default: /* OPTION_MAX_LAG */
		return take_ns(row->name, arg, &trial->max_lag_ns, why);
	}
}

static enum parse_result take_stream(const char *arg, struct traffic_options *o,
				     struct mr_reason *why)
{
	if (o->tester.n_streams == TRAFFIC_MAX_STREAMS)
		return parse_wrong(why, "--stream: more than %d",
				   TRAFFIC_MAX_STREAMS);
	o->streams[o->tester.n_streams++] = arg;
	return PARSE_RUN;
}

static enum parse_result take_traffic(const struct option_row *row,
				      const char *arg,
				      struct traffic_options *o,
				      struct mr_reason *why)
{
	switch (row->id) {
	case OPTION_STREAM:
		return take_stream(arg, o, why);
	case OPTION_SIZE:
		return parse_u32(row->name, arg, MIN_SIZE, MAX_SIZE,
				 &o->tester.frame_bytes, why);
	case OPTION_DST_MAC:
		o->tester.has_dst_mac = true;
		return take_mac(row->name, arg, o->tester.dst_mac, why);
	case OPTION_UNSTAMPED:
		o->tester.is_unstamped = true;
		return PARSE_RUN;
	case OPTION_SEED:
		return parse_u64(row->name, arg, 0, UINT64_MAX, &o->tester.seed,
				 why);
	case OPTION_DEVICE:
		o->tester.device = arg;
		return PARSE_RUN;
	case OPTION_VIRTUAL:
		o->tester.is_virtual = true;
		return PARSE_RUN;
	case OPTION_BIDIRECTIONAL:
		o->is_bidirectional = true;
		return PARSE_RUN;
	default:
		return dataplane_take_option(row, arg, &o->tester.plane, why);
	}
}

static enum parse_result take_output(const struct option_row *row,
				     const char *arg, struct traffic_options *o)
{
	switch (row->id) {
	case OPTION_JSON:
		o->is_json = true;
		break;
	case OPTION_OUT:
		o->json_out = arg;
		break;
	case OPTION_CSV:
		o->csv = arg;
		break;
	case OPTION_HDR:
		o->hdr = arg;
		break;
	case OPTION_LABEL:
		o->label = arg;
		break;
	case OPTION_QUIET:
		o->is_quiet = true;
		break;
	default: /* OPTION_VERBOSE */
		o->n_verbose++;
		break;
	}
	return PARSE_RUN;
}

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *taking, struct mr_reason *why)
{
	const struct traffic_command *command =
		((struct taking *)taking)->command;
	struct traffic_options *o = ((struct taking *)taking)->options;

	if (row->id >= TRAFFIC_OWN)
		return command->take(row, arg, command->own, why);
	switch (row->id) {
	case OPTION_RATE:
	case OPTION_PACE:
	case OPTION_PACE_FRAMES:
	case OPTION_DURATION:
	case OPTION_COUNT:
	case OPTION_SETTLE:
	case OPTION_MAX_LAG:
		return take_trial(row, arg, &o->trial, why);
	case OPTION_JSON:
	case OPTION_OUT:
	case OPTION_CSV:
	case OPTION_HDR:
	case OPTION_LABEL:
	case OPTION_QUIET:
	case OPTION_VERBOSE:
		return take_output(row, arg, o);
	default:
		return take_traffic(row, arg, o, why);
	}
}

static void add_pair(struct traffic_options *o, const char *a, const char *b)
{
	struct tester_config *tester = &o->tester;

	o->tx[tester->n_tx++] = a;
	o->rx[tester->n_rx++] = b;
	if (!o->is_bidirectional)
		return;
	o->tx[tester->n_tx++] = b;
	o->rx[tester->n_rx++] = a;
}

static enum parse_result take_ports(const struct traffic_command *command,
				    int n, char **words,
				    struct traffic_options *o,
				    struct mr_reason *why)
{
	const bool has_pairs = command->ports == TRAFFIC_PAIRS ||
			       command->ports == TRAFFIC_PAIRS_OR_NONE;

	if (n == 0 && command->ports != TRAFFIC_PAIRS_OR_NONE)
		return parse_wrong(why,
				   "%s: no port; name one, such as eth0 or "
				   "pair:a; see --help",
				   command->name);
	if (has_pairs && n % 2 != 0)
		return parse_wrong(why,
				   "%s: '%s' has no partner; ports come "
				   "in pairs: one sends, one receives",
				   command->name, words[n - 1]);
	if (n > MAX_PORTS / 4)
		return parse_wrong(why, "%d ports are more than %d", n,
				   MAX_PORTS / 4);
	for (int i = 0; i < n; i++) {
		if (command->ports == TRAFFIC_SENDS)
			o->tx[o->tester.n_tx++] = words[i];
		else if (command->ports == TRAFFIC_RECEIVES)
			o->rx[o->tester.n_rx++] = words[i];
		else if (i % 2 == 1)
			add_pair(o, words[i - 1], words[i]);
	}
	return PARSE_RUN;
}

static bool has_shared(const struct traffic_command *command, const char *name)
{
	const char *const *without = command->without;

	for (; without != NULL && *without != NULL; without++)
		if (strcmp(*without, name) == 0)
			return false;
	return true;
}

/* Those that the command has; returns how many. */
static uint32_t gather_shared(const struct traffic_command *command,
			      struct option_row *ret)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < N_SHARED; i++)
		if (has_shared(command, shared[i].name))
			ret[n++] = shared[i];
	return n;
}

/* argv[0] is the command's name. */
static enum parse_result parse(const struct traffic_command *command, int argc,
			       char **argv, struct traffic_options *ret,
			       struct mr_reason *why)
{
	struct option_row rows[N_SHARED];
	char program[40];
	struct taking taking = { command, ret };
	const struct option_table table = {
		.program = program,
		.usage = command->usage,
		.rows = command->rows,
		.n_rows = command->n_rows,
		.take = take,
		.shared_rows = rows,
		.n_shared_rows = gather_shared(command, rows),
	};
	enum parse_result result;
	int first;

	*ret = (struct traffic_options){ 0 };
	ret->tester.tx = ret->tx;
	ret->tester.rx = ret->rx;
	ret->tester.streams = ret->streams;
	snprintf(program, sizeof(program), "mr-bench %s", command->name);
	result = option_table_parse(&table, argc, argv, &taking, &first, why);
	if (result != PARSE_RUN)
		return result;
	ret->tester.has_unstamped = has_shared(command, "unstamped");
	ret->tester.plane.program = "mr-bench";
	ret->tester.plane.log_level =
		option_log_level(ret->n_verbose, ret->is_quiet);
	if (dataplane_check_options(&ret->tester.plane, why) != PARSE_RUN)
		return PARSE_WRONG;
	return take_ports(command, argc - first, argv + first, ret, why);
}

/* The lengths of RFC 2544, which are with it. */
static bool is_with_fcs(uint32_t bytes)
{
	static const uint32_t sizes[] = { 64, 128, 256, 512, 1024, 1280, 1518 };

	for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		if (sizes[i] == bytes)
			return true;
	return false;
}

int traffic_options_main(const struct traffic_command *command, int argc,
			 char **argv, struct traffic_options *ret)
{
	struct mr_reason why = { .text = "" };

	switch (parse(command, argc - 1, argv + 1, ret, &why)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : 1;
	case PARSE_WRONG:
		print_error("mr-bench: %s", why.text);
		return 2;
	case PARSE_RUN:
		break;
	}
	if (!ret->is_quiet && is_with_fcs(ret->tester.frame_bytes))
		fprintf(stderr,
			"mr-bench: --size is without the FCS: frames of %u "
			"bytes on the wire; %u makes those of %u\n",
			ret->tester.frame_bytes + FCS_BYTES,
			ret->tester.frame_bytes - FCS_BYTES,
			ret->tester.frame_bytes);
	return -1;
}

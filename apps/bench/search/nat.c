/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench nat: RFC 9693 on a NAT between two ports. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "machine.h"
#include "net/options.h"
#include "net/tester_parts.h"
#include "result/document.h"
#include "search/commands.h"
#include "search/nat_path.h"
#include "search/session.h"
#include "support/text.h"

enum {
	OPTION_CLIENT = TRAFFIC_OWN,
	OPTION_CLIENTS,
	OPTION_GATEWAY,
	OPTION_SERVER,
	OPTION_PROTOCOL,
	OPTION_CONNECTIONS,
	OPTION_MAX_CONNECTIONS,
	OPTION_RESET,
	OPTION_RESOLUTION,
	MAX_COMMAND = 1024,
	RESET_S = 60, /* for --reset to end */
	/* Of the established rate, so that the table alone is the limit. */
	SAFE_SHARE = 2,
};

struct nat_options {
	struct traffic_options traffic;
	struct nat_plan plan;
	const char *reset;
	double resolution;
	uint32_t n, n_max;
};

/* Of the time that emptying takes: more is the command's figure, not the
 * NAT's. */
static const double own_share = 0.1;

/* What a run has, to report. */
struct nat_run {
	const struct nat_options *options;
	struct document *document;
	struct nat_search search;
	struct progress progress;
	uint32_t n_told;
};

static const struct option_row rows[] = {
	{ "client", OPTION_CLIENT, "ADDR",
	  "first client's address (default 10.0.0.2)" },
	{ "clients", OPTION_CLIENTS, "N", "addresses from there on (16)" },
	{ "gateway", OPTION_GATEWAY, "ADDR",
	  "the NAT's inside address (10.0.0.1)" },
	{ "server", OPTION_SERVER, "ADDR",
	  "server outside (default 192.0.2.2)" },
	{ "protocol", OPTION_PROTOCOL, "udp|tcp",
	  "udp (default), or tcp: SYN and its answer" },
	{ "connections", OPTION_CONNECTIONS, "N",
	  "of a trial of the rate (default 10000)" },
	{ "max-connections", OPTION_MAX_CONNECTIONS, "N",
	  "ever at once (default 1048576)" },
	{ "reset", OPTION_RESET, "COMMAND",
	  "empties the NAT's table, as 'mr-nat clear all --now'" },
	{ "resolution", OPTION_RESOLUTION, "P%",
	  "of the rate found (default 1%)" },
};

static enum parse_result parse_address(const char *name, const char *text,
				       uint32_t *ret, struct mr_reason *why)
{
	struct in_addr addr;

	if (inet_pton(AF_INET, text, &addr) != 1)
		return parse_wrong(why, "--%s %s: no IPv4 address", name, text);
	*ret = ntohl(addr.s_addr);
	return PARSE_RUN;
}

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *options, struct mr_reason *why)
{
	static const char *const protocols[] = { "udp", "tcp" };
	struct nat_options *o = options;
	const char *const name = row->name;
	enum parse_result result;
	uint32_t word = 0;

	switch (row->id) {
	case OPTION_CLIENT:
		return parse_address(name, arg, &o->plan.client, why);
	case OPTION_CLIENTS:
		return parse_u32(name, arg, 1, 65536, &o->plan.n_clients, why);
	case OPTION_GATEWAY:
		return parse_address(name, arg, &o->plan.gateway, why);
	case OPTION_SERVER:
		return parse_address(name, arg, &o->plan.server, why);
	case OPTION_PROTOCOL:
		result = parse_word(name, arg, protocols, 2, &word, why);
		o->plan.is_tcp = word == 1;
		return result;
	case OPTION_CONNECTIONS:
		return parse_u32(name, arg, 100, 1 << 24, &o->n, why);
	case OPTION_MAX_CONNECTIONS:
		return parse_u32(name, arg, 100, 1 << 24, &o->n_max, why);
	case OPTION_RESET:
		o->reset = arg;
		return PARSE_RUN;
	default:
		return parse_percent(name, arg, 50, &o->resolution, why);
	}
}

static void show_progress(void *observer, const char *what, double value,
			  uint32_t n_left)
{
	struct nat_run *run = observer;
	const double so_far_s = progress_seconds(&run->progress);

	progress_show(&run->progress,
		      run->n_told > 0 ? so_far_s / run->n_told * n_left : 0,
		      "trial %u: %s %.0f", run->n_told + 1, what, value);
	run->n_told++;
}

static void say(const struct nat_run *run, const char *what, double value,
		const char *unit, const char *note)
{
	progress_clear(&run->progress);
	if (!run->options->traffic.is_json)
		printf("%-24s %14.0f %-13s %s\n", what, value, unit, note);
}

static void add_row(struct nat_run *run, const char *goal, const char *unit,
		    double value, double low, double high, bool is_limited,
		    const char *note)
{
	const struct document_row row = { .frame_bytes = NAT_FRAME_BYTES,
					  .goal = goal,
					  .unit = unit,
					  .note = note,
					  .value = value,
					  .low = low,
					  .high = high,
					  .is_limited_by_tester = is_limited };

	document_row(run->document, &row);
}

static int measure_rate(struct nat_run *run, double *ret_pps,
			struct mr_reason *why)
{
	struct nat_rate rate;
	char note[200] = "no loss at the highest rate";
	const int err = search_nat_rate(&run->search, &rate, why);

	*ret_pps = rate.pps;
	if (rate.is_by_sender)
		snprintf(note, sizeof(note),
			 "above, the sender does not keep up");
	else if (rate.is_by_receiver)
		snprintf(note, sizeof(note),
			 "at %.0f, the tester's own ports dropped %llu frames: "
			 "a longer --ring",
			 rate.high, (unsigned long long)rate.n_dropped_here);
	else if (rate.high > 0)
		snprintf(note, sizeof(note),
			 "at %.0f, %llu were not seen outside, %llu did not "
			 "answer from there",
			 rate.high, (unsigned long long)rate.n_lost_above,
			 (unsigned long long)rate.n_stale_above);
	say(run, "set-up rate", rate.pps, "connections/s", note);
	add_row(run, "set-up-rate", "connections/s", rate.pps, rate.low,
		rate.high,
		rate.is_by_sender || rate.is_by_receiver || rate.high <= 0,
		note);
	if (err == 0 && rate.pps <= 0)
		return fail_with(why, 1,
				 "no rate at which all connections are set up: "
				 "%s",
				 note);
	return err;
}

static int measure_capacity(struct nat_run *run, double pps,
			    struct mr_reason *why)
{
	struct nat_capacity c;
	char note[160];
	const int err = search_nat_capacity(&run->search, pps, &c, why);

	if (err != 0)
		return err;
	snprintf(note, sizeof(note), "answer from outside, of %llu%s",
		 (unsigned long long)c.n_made,
		 c.is_by_receiver ? ": the tester's own ports dropped most of "
				    "the others; a longer --ring" :
		 c.is_full        ? "" :
				    ": there may be room for more");
	if (c.n == 0)
		return fail_with(why, 1,
				 "table capacity: none of %llu connections is "
				 "reachable from outside: does the NAT let "
				 "packets from --server in?",
				 (unsigned long long)c.n_made);
	say(run, "table capacity", (double)c.n, "connections", note);
	add_row(run, "table-capacity", "connections", (double)c.n, 0, 0,
		!c.is_full || c.is_by_receiver, note);
	return 0;
}

static int measure_tear_down(struct nat_run *run, double pps,
			     struct mr_reason *why)
{
	struct nat_tear_down t;
	char note[160];
	int err;

	if (run->search.ops->reset == NULL) {
		say(run, "tear-down rate", 0, "connections/s",
		    "not measured: --reset is the command that empties the "
		    "table");
		return 0;
	}
	err = search_nat_tear_down(&run->search, pps, &t, why);
	if (err != 0)
		return err;
	snprintf(note, sizeof(note),
		 "%llu in %.3f s, of which the command takes up to %.3f s on "
		 "an empty table",
		 (unsigned long long)t.n, t.seconds, t.empty_seconds);
	if (t.n == 0)
		return fail_with(why, 1,
				 "tear-down rate: no connection is reachable "
				 "from outside: does the NAT let packets from "
				 "--server in?");
	if (t.n_after > 0)
		return fail_with(why, 1,
				 "--reset does not empty the table: %llu of "
				 "%llu connections still answer",
				 (unsigned long long)t.n_after,
				 (unsigned long long)t.n);
	say(run, "tear-down rate", t.pps, "connections/s", note);
	/* Where an empty table takes as long nobody knows how fast it is. */
	add_row(run, "tear-down-rate", "connections/s", t.pps,
		t.high_pps > 0 ? t.pps : 0, t.high_pps,
		t.empty_seconds > own_share * t.seconds, note);
	return 0;
}

static int measure(struct nat_run *run, struct mr_reason *why)
{
	double pps = 0;
	int err = measure_rate(run, &pps, why);

	if (err == 0)
		err = measure_tear_down(run, pps / SAFE_SHARE, why);
	if (err == 0)
		err = measure_capacity(run, pps / SAFE_SHARE, why);
	return err;
}

static json_t *json_address(uint32_t address)
{
	const struct in_addr addr = { htonl(address) };
	char text[INET_ADDRSTRLEN];

	return json_string(inet_ntop(AF_INET, &addr, text, sizeof(text)));
}

static void describe_ports(const struct nat_path *path,
			   struct document *document)
{
	document_cores(document, &path->core, path->has_core);
	for (uint32_t p = 0; p < path->plane.n_ports; p++) {
		struct document_port port = {
			.info.size = sizeof(port.info),
			.sends = true,
			.receives = true,
			.cores = &path->core,
			.n_cores = path->has_core,
		};

		mr_port_info(path->plane.ports[p], &port.info);
		if (mr_port_link(path->plane.ports[p], &port.link) < 0)
			port.link = (struct mr_link){ 0 };
		document_port(document, &port);
	}
	document_clock(document, clock_source(&path->clock),
		       clock_error_ns(&path->clock));
}

static void describe(const struct nat_run *run)
{
	const struct nat_options *o = run->options;
	struct document *d = run->document;
	char rate[40];

	rate_print(&o->traffic.trial.rate, rate, sizeof(rate));
	document_set(d, "inside", json_string(o->traffic.tx[0]));
	document_set(d, "outside", json_string(o->traffic.rx[0]));
	document_set(d, "protocol",
		     json_string(o->plan.is_tcp ? "tcp" : "udp"));
	document_set(d, "connections", json_integer(o->n));
	document_set(d, "max_connections", json_integer(o->n_max));
	document_set(d, "rate", json_string(rate));
	document_set(d, "client", json_address(o->plan.client));
	document_set(d, "clients", json_integer(o->plan.n_clients));
	document_set(d, "gateway", json_address(o->plan.gateway));
	document_set(d, "server", json_address(o->plan.server));
	document_set(d, "reset", json_string(o->reset ? o->reset : ""));
	document_set(d, "resolution", json_real(o->resolution));
}

static int write_files(const struct nat_run *run, struct mr_reason *why)
{
	const struct traffic_options *o = &run->options->traffic;
	int err = 0;

	if (o->is_json)
		err = document_write(run->document, "-", why);
	if (err == 0 && o->json_out != NULL)
		err = document_write(run->document, o->json_out, why);
	if (err == 0 && o->csv != NULL)
		err = document_write_csv(run->document, o->csv, why);
	return err;
}

static int complain(const struct mr_reason *why, int status)
{
	print_error("mr-bench: %s", why->text);
	return status;
}

/* Everything behind the options. */
static int run_options(const struct nat_options *o, const char *line)
{
	struct nat_path path = { .plan = o->plan,
				 .reset_command = o->reset,
				 .reset_limit_s = RESET_S };
	struct nat_run run = { .options = o };
	struct mr_reason why = { .text = "" };
	double max_pps = rate_pps(&o->traffic.trial.rate, NAT_FRAME_BYTES, 0);
	int status;

	if (max_pps < 0) {
		fail_with(&why, 2,
			  "--rate: nat takes no %%; give frames or "
			  "bits per second");
		return complain(&why, 2);
	}
	status = nat_path_open(&path, &o->traffic.tester.plane, o->n_max, &why);
	if (status != 0)
		return complain(&why, status);
	run.document = document_new(
		"nat", o->traffic.label != NULL ? o->traffic.label : "", line);
	describe(&run);
	describe_ports(&path, run.document);
	if (max_pps <= 0)
		max_pps = 1e6;
	run.search = (struct nat_search){
		.ops = o->reset != NULL ? &nat_path_ops :
					  &nat_path_ops_without_reset,
		.opaque = &path,
		.max_pps = max_pps,
		.resolution = o->resolution,
		.n = o->n,
		.n_max = o->n_max,
		.on_trial = show_progress,
		.observer = &run,
	};
	progress_open(&run.progress, o->traffic.is_quiet);
	status = measure(&run, &why);
	progress_clear(&run.progress);
	if (status != 0) {
		document_fail(run.document, why.text);
		complain(&why, 1);
	}
	if (nat_path_close(&path) != 0)
		status = 1;
	if (write_files(&run, &why) != 0)
		status = complain(&why, 1);
	document_free(run.document);
	return status != 0;
}

/* What is sent, when, and by whom, is the RFC's. */
static const char *const without[] = {
	"pace",    "pace-frames",   "duration",  "count",   "stream",
	"size",    "dst-mac",       "unstamped", "seed",    "settle",
	"max-lag", "bidirectional", "device",    "virtual", "workers",
	"burst",   "hdr",           NULL,
};

int nat_main(int argc, char **argv)
{
	static struct nat_options options = {
		.plan = { .client = 0x0a000002,
			  .n_clients = 16,
			  .gateway = 0x0a000001,
			  .server = 0xc0000202 },
		.resolution = 0.01,
		.n = 10000,
		.n_max = 1 << 20,
	};
	static const struct traffic_command command = {
		.name = "nat",
		.usage = "usage: mr-bench nat [options] INSIDE OUTSIDE\n"
			 "RFC 9693 on a NAT between two ports: how fast it "
			 "sets connections up and\n"
			 "takes them down, and how many it holds.\n",
		.ports = TRAFFIC_PAIRS,
		.without = without,
		.rows = rows,
		.n_rows = sizeof(rows) / sizeof(rows[0]),
		.take = take,
		.own = &options,
	};
	static const char *specs[2];
	char line[MAX_COMMAND];
	int status;

	machine_command(argc, argv, line, sizeof(line));
	status = traffic_options_main(&command, argc, argv, &options.traffic);
	if (status >= 0)
		return status;
	specs[0] = options.traffic.tx[0];
	specs[1] = options.traffic.rx[0];
	options.traffic.tester.plane.specs = specs;
	options.traffic.tester.plane.n_ports =
		options.traffic.tester.n_tx + options.traffic.tester.n_rx;
	options.traffic.tester.plane.n_workers = 1;
	options.traffic.tester.plane.n_kept_pages = 4096;
	/* Finer than any rate can be told. */
	if (options.resolution < 1e-5)
		options.resolution = 1e-5;
	options.plan.magic = (uint32_t)time(NULL);
	ending_open();
	status = run_options(&options, line);
	return fflush(stdout) == 0 ? status : 1;
}

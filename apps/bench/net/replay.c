/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr-bench replay: sends the frames of a capture with their gaps.
 *
 *     pcap: port --rx burst, times--> due when? --tx burst--> port
 *
 * Open loop: when a frame is due depends on the capture alone, not on when the
 * previous one left. Frames that are given up are counted by name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net/replay.h"
#include "support/dataplane_keys.h"
#include "support/json_text.h"
#include "support/signals.h"
#include "support/values.h"

enum { MAX_PASSES = 1000000000 }; /* as the pcap driver has it */

static bool read_speed(const char *text, void *to, struct mr_reason *why)
{
	double *speed = to;
	char *end;

	*speed = 0;
	if (strcmp(text, "max") == 0)
		return true;
	*speed = strtod(text, &end);
	return (end != text && *end == '\0' && *speed >= 1e-6 &&
		*speed <= 1e6) ||
	       value_wrong(why,
			   "'%s' is neither max nor a factor such as 1 or 0.5",
			   text);
}

static bool read_ns(const char *text, void *to, struct mr_reason *why)
{
	uint64_t *ns = to, ms;

	if (!value_seconds(text, &ms, why))
		return false;
	*ns = ms * 1000000;
	return true;
}

static const struct yaml_key keys[] = {
	YAML_VALUE("speed", replay, speed, read_speed, NULL,
		   YAML_OPTION("X|max", "X times as fast as captured (default "
					"1), or full speed")),
	YAML_NUMBER("loop", replay, n_loops, 0, MAX_PASSES,
		    YAML_OPTION("N", "send the capture N times (default 1); 0: "
				     "endlessly")),
	YAML_VALUE("max_lag", replay, max_lag_ns, read_ns, NULL,
		   YAML_OPTION("S", "give up frames that are S seconds late "
				    "(default 0.01)")),
	YAML_VALUE("max_gap", replay, timing.max_gap_ns, read_ns, NULL,
		   YAML_OPTION("S", "shorten longer gaps of the capture to S "
				    "seconds (default: none)")),
	YAML_ROW("out", option_take_string, replay, out,
		 YAML_OPTION("FILE", "write the document of the run to FILE")),
	YAML_ROW("csv", option_take_string, replay, csv,
		 YAML_OPTION("FILE", "write its trial as CSV")),
	YAML_ROW("label", option_take_string, replay, options.label,
		 YAML_OPTION("TEXT", "name of the document in reports")),
	YAML_END,
};

static const struct relay_command command = {
	.program = "mr-bench replay",
	.usage = "usage: mr-bench replay [options] FILE PORT\n"
		 "Send the frames of a capture unchanged, with its gaps.\n",
	.keys = keys,
	.groups = DATAPLANE_PROMISC,
};

static bool end_run(void *app)
{
	(void)app;
	return true;
}

static void describe_run(struct replay *replay)
{
	json_t *found = relay_found(
		&replay->options, &replay->plane, 1 << TO_PORT,
		1 << CAPTURE_PORT,
		json_pack("{so sf si sf sf}", "file", json_text(replay->path),
			  "speed", replay->speed, "loop", (int)replay->n_loops,
			  "max_lag_s", (double)replay->max_lag_ns / 1e9,
			  "max_gap_s",
			  (double)replay->timing.max_gap_ns / 1e9));

	replay_count_before(replay);
	document_clock(found, clock_source(&replay->clock),
		       replay->clock.error_ns);
	replay->document = relay_ask(&replay->options, found);
}

/* The front end, which is our child, writes the files. Returns the exit status.
 */
static int write_files(const struct replay *replay)
{
	int status = 1;

	json_decref(relay_ask(
		&replay->options,
		json_pack("{so so ss}", "out", relay_path(replay->out), "csv",
			  relay_path(replay->csv), "why_incomplete",
			  replay->has_ended ? "" : "it did not run")));
	close(replay->options.document_fd);
	fflush(stdout);
	while (wait(&status) < 0 && errno == EINTR)
		;
	return status == 0 ? 0 : 1;
}

/* The spec of the capture's port: special characters get a backslash. */
static bool make_spec(const char *path, uint32_t n_loops, char *ret)
{
	int n = snprintf(ret, MAX_SPEC_BYTES, "pcap:rx=");

	for (; *path != '\0' && n < MAX_SPEC_BYTES - 32; path++) {
		if (strchr("\\,=", *path) != NULL)
			ret[n++] = '\\';
		ret[n++] = *path;
	}
	snprintf(ret + n, (size_t)(MAX_SPEC_BYTES - n), ",loop=%u", n_loops);
	return *path == '\0';
}

static int replay_to_port(struct replay *replay)
{
	const struct run_fd fds[] = { { replay->done_fd, end_run } };
	struct run_config config = { .plane = &replay->plane,
				     .counters = &replay_counters,
				     .options = replay->options.run,
				     .work = replay_run,
				     .drop = replay_drop_at_end,
				     .workers = replay,
				     .app = replay,
				     .each_second = replay_warn,
				     .give_up = replay_add_trial,
				     .fds = fds,
				     .n_fds = 1,
				     .ends_by_fd = true };
	struct mr_reason why;
	int status;

	config.signal_fd = signals_open(&why);
	if (config.signal_fd < 0)
		return relay_complain(&command, 1, why.text);
	clock_open(&replay->clock, false);
	status = dataplane_open(&replay->plane, &replay->options.plane, &why);
	if (status == 0) {
		/* Without a link, the run counts what did not leave. */
		(void)mr_ports_wait_link(&replay->plane.ports[TO_PORT], 1,
					 LINK_WAIT_MS);
		describe_run(replay);
		status = run(&config);
		if (replay->why_failed.text[0] != '\0')
			status = relay_complain(&command, 1,
						replay->why_failed.text);
		if (write_files(replay) != 0)
			status = 1;
		json_decref(replay->document);
		(void)dataplane_close(&replay->plane, NULL);
	} else {
		relay_complain(&command, status, why.text);
	}
	close(config.signal_fd);
	return status;
}

static int parse_and_replay(struct replay *replay, int argc, char **argv)
{
	static const uint32_t sends_to[] = { TO_PORT, TO_PORT };
	struct dataplane_config *plane = &replay->options.plane;
	char spec[MAX_SPEC_BYTES];
	const char *specs[N_PORTS];
	int first;
	int status = relay_options_main(&command, argc, argv, &replay->options,
					&first);

	if (status >= 0)
		return status;
	if (argc - first != N_PORTS)
		return relay_complain(
			&command, 2,
			"give a file and a port: mr-bench replay FILE PORT");
	if (!make_spec(argv[first], replay->n_loops, spec))
		return relay_complain(&command, 2,
				      "the file's name is too long");
	replay->path = argv[first];
	specs[CAPTURE_PORT] = spec;
	specs[TO_PORT] = argv[first + 1];
	plane->specs = specs;
	plane->n_ports = N_PORTS;
	plane->n_workers = 1; /* a capture has one order */
	plane->sends_to = sends_to;
	replay->done_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (replay->done_fd < 0)
		return relay_complain(&command, 1, mr_strerror(errno));
	status = replay_to_port(replay);
	close(replay->done_fd);
	return status;
}

int replay_main(int argc, char **argv)
{
	struct replay *replay = calloc(1, sizeof(*replay));
	int status;

	if (replay == NULL)
		return relay_complain(&command, 1, "no memory");
	replay->speed = 1;
	replay->n_loops = 1;
	replay->max_lag_ns = DEFAULT_LAG_MS * UINT64_C(1000000);
	status = parse_and_replay(replay, argc, argv);
	free(replay);
	return status;
}

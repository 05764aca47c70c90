/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench tx, rx and loop: one trial, shown as it goes. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "net/describe.h"
#include "net/screen.h"
#include "net/traffic.h"
#include "net/view.h"
#include "result/document.h"
#include "stream/stream.h"
#include "support/text.h"

enum { OPTION_JSON_LINES = TRAFFIC_OWN };

static const struct option_row own_rows[] = {
	{ "json-lines", OPTION_JSON_LINES, NULL,
	  "one JSON object per second, then the document" },
};

static enum parse_result take_own(const struct option_row *row, const char *arg,
				  void *own, struct mr_reason *why)
{
	struct traffic_options *options = own;

	(void)row;
	(void)arg;
	(void)why;
	options->is_json = options->has_json_lines = true;
	return PARSE_RUN;
}

static const struct traffic_command tx_command = {
	.name = "tx",
	.usage =
		"usage: mr-bench tx [options] PORT...\n"
		"Send frames until Ctrl-C, or as --duration or --count says.\n",
	.ports = TRAFFIC_SENDS,
};

static const struct traffic_command rx_command = {
	.name = "rx",
	.usage = "usage: mr-bench rx [options] PORT...\n"
		 "Receive the frames of mr-bench tx and report losses, up to "
		 "the last\n"
		 "number received. Another program sends, so there are no "
		 "latencies.\n",
	.ports = TRAFFIC_RECEIVES,
};

static const struct traffic_command loop_command = {
	.name = "loop",
	.usage = "usage: mr-bench loop [options] PORT PORT [PORT PORT...]\n"
		 "Send on the first port of each pair and receive on the "
		 "second, with the\n"
		 "device between them: loss, order and latency.\n",
	.ports = TRAFFIC_PAIRS,
};

#define SECOND 1000000000ull

static int complain(const char *text)
{
	print_error("mr-bench: %s", text);
	return 1;
}

/* What each second is a line of, for programs. */
struct lines {
	bool has_tx, has_rx;
	uint64_t next_ns;
	uint64_t n_skipped; /* stdout would have had to be waited for */
};

static void write_line(void *opaque, const struct trial_result *so_far)
{
	struct lines *lines = opaque;

	if (so_far->whole_ns < lines->next_ns)
		return;
	if (view_can_write(stdout))
		document_line(so_far, lines->has_tx, lines->has_rx,
			      lines->n_skipped, stdout);
	else
		lines->n_skipped++;
	while (lines->next_ns <= so_far->whole_ns)
		lines->next_ns += SECOND;
}

static uint32_t frame_bytes_of(const struct tester *tester)
{
	const struct streams *streams = tester_streams(tester);
	const uint32_t longest = streams_max_bytes(streams);

	return (double)longest == streams_mean_bytes(streams) ? longest : 0;
}

/* Without a bound it is watched: frames may come later. */
static bool is_bounded(const struct trial_config *trial)
{
	return trial->duration_ns > 0 || trial->n_frames > 0;
}

/* After a trial: tell, write, close. Returns the exit status. */
static int finish(const struct traffic_options *options, struct tester *tester,
		  struct document *document, const struct view *view,
		  const struct trial_result *result)
{
	char line[400];
	int status = 0;

	view_summary(view, tester, result);
	document_trial(document, frame_bytes_of(tester), result);
	if (result->why_stopped[0] != '\0') {
		document_fail(document, result->why_stopped);
		status = complain(result->why_stopped);
	} else if (result->is_cut_short && options->trial.duration_ns > 0) {
		document_fail(document, "ended by a signal");
	}
	if (tester_explain(tester, result, line, sizeof(line)))
		complain(line);
	if (is_bounded(&options->trial) && !result->is_cut_short &&
	    tester_is_silent(tester, result)) {
		document_fail(document, "nothing came");
		status = 1;
	}
	if (traffic_write(options, document) != 0)
		status = 1;
	if (view->to != NULL && fflush(view->to) != 0)
		status = complain("cannot write to stdout");
	return status;
}

/*
 * Of a software device that takes redirected frames: a socket's are handed over
 * one by one, and the kernel copies each.
 */
static void point_at_live(const struct document *document)
{
	const json_t *port;
	size_t i;

	json_array_foreach(json_object_get(document_json(document), "ports"), i,
			   port)
	{
		const json_t *nic = json_object_get(port, "nic");
		const char *driver =
			json_string_value(json_object_get(nic, "driver"));
		const char *name =
			json_string_value(json_object_get(port, "name"));

		if (driver == NULL || strncmp(name, "xdp:", 4) != 0 ||
		    (strcmp(driver, "veth") != 0 && strcmp(driver, "tun") != 0))
			continue;
		print_error(
			"mr-bench: live:%s is faster than %s on this software "
			"device: there the kernel makes the frames itself, and "
			"copies none out of a socket (docs/streams.md: what it "
			"can vary)",
			name + 4, name);
	}
}

/* What was asked for as imix is another mix here. */
static void tell_raised(const struct tester *tester)
{
	char line[120];

	if (imix_raised_print(tester_streams(tester), line, sizeof(line)))
		complain(line);
}

static int run(const char *name, const struct traffic_options *options,
	       struct tester *tester, struct document *document)
{
	/* Half a megabyte of histograms. */
	struct trial_result *result = malloc(sizeof(*result));
	struct view view = {
		.to = options->is_json ? NULL : stdout,
		.has_tx = options->tester.n_tx > 0,
		.has_rx = options->tester.n_rx > 0,
		.mean_bytes = streams_mean_bytes(tester_streams(tester)),
		.duration_ns = options->trial.duration_ns,
	};
	struct lines lines = { .has_tx = view.has_tx,
			       .has_rx = view.has_rx,
			       .next_ns = SECOND };
	struct screen *screen = NULL;
	struct mr_reason why;
	int status;

	if (result == NULL)
		return complain("no memory for a result");
	if (view.has_tx)
		tell_raised(tester);
	document_ports(document, tester);
	traffic_describe(options, document);
	if (!options->is_quiet)
		tester_print_map(tester);
	if (!options->is_quiet && !view.has_rx)
		point_at_live(document);
	if (!options->is_quiet && !options->is_json)
		screen = screen_open(name, tester, &options->trial,
				     view.mean_bytes);
	if (screen != NULL)
		tester_on_progress(tester, screen_progress, screen);
	else if (!options->is_quiet && !options->is_json)
		tester_on_progress(tester, view_progress, &view);
	else if (!options->is_quiet && options->has_json_lines)
		tester_on_progress(tester, write_line, &lines);
	status = tester_run(tester, &options->trial, result, &why);
	screen_close(screen);
	if (status != 0) {
		complain(why.text);
	} else {
		status = finish(options, tester, document, &view, result);
		trial_result_free(result);
	}
	free(result);
	return status;
}

/* What has a meaning only where frames are due at times. */
static bool check_pace(const struct traffic_options *options,
		       struct mr_reason *why)
{
	const struct trial_config *trial = &options->trial;

	if (trial->burst_frames > 0 && trial->pace != PACE_BURSTS) {
		fail_with(why, 2, "--pace-frames belongs to --pace bursts");
		return false;
	}
	if (trial->pace != PACE_CONSTANT && trial->rate.unit == RATE_FULL &&
	    !options->tester.is_virtual) {
		fail_with(why, 2,
			  "--pace: full speed has none; --rate is "
			  "missing");
		return false;
	}
	return true;
}

static int traffic_main(const struct traffic_command *command, int argc,
			char **argv)
{
	struct traffic_options options;
	struct traffic_command with_own = *command;
	struct document *document;
	struct tester *tester;
	struct mr_reason why;
	char typed[512];
	int status;

	machine_command(argc, argv, typed, sizeof(typed));
	with_own.rows = own_rows;
	with_own.n_rows = sizeof(own_rows) / sizeof(own_rows[0]);
	with_own.take = take_own;
	with_own.own = &options;
	status = traffic_options_main(&with_own, argc, argv, &options);
	if (status >= 0)
		return status;
	if (!check_pace(&options, &why)) {
		complain(why.text);
		return 2;
	}
	options.tester.has_unstamped = true;
	status = tester_open(&options.tester, &tester, &why);
	if (status != 0) {
		complain(why.text);
		return status;
	}
	document =
		document_new(command->name,
			     options.label != NULL ? options.label : "", typed);
	status = run(command->name, &options, tester, document);
	document_free(document);
	if (tester_close(tester) != 0)
		status = 1;
	return status;
}

int tx_main(int argc, char **argv)
{
	return traffic_main(&tx_command, argc, argv);
}

int rx_main(int argc, char **argv)
{
	return traffic_main(&rx_command, argc, argv);
}

int loop_main(int argc, char **argv)
{
	return traffic_main(&loop_command, argc, argv);
}

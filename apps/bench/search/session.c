/* SPDX-License-Identifier: BSD-3-Clause */
/* A command that searches, from its options to its files. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "net/describe.h"
#include "search/session.h"
#include "stream/stream.h"
#include "support/text.h"

static const uint64_t ms = 1000000;

enum {
	SETTLE_MS = 1000,    /* it ends sooner, when all have come */
	FULL_SPEED_MS = 200, /* to see what the sender can do */
	MAX_COMMAND = 1024,
	/* Where neither --rate nor a link says what the highest rate is. */
	VIRTUAL_PPS = 10000000,
	LEAST_SHARE = 100000, /* of the highest rate: the lowest */
};

void session_print(const struct session *session, const char *format, ...)
{
	va_list args;

	if (session->options.traffic.is_json)
		return;
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
}

void print_rate(double pps, char *ret, size_t n_bytes)
{
	if (pps >= 1e6)
		snprintf(ret, n_bytes, "%.4f M", pps / 1e6);
	else if (pps >= 1e3)
		snprintf(ret, n_bytes, "%.3f k", pps / 1e3);
	else
		snprintf(ret, n_bytes, "%.1f ", pps);
}

/* The sizes to come take as long as those that were, and this one. */
static double all_left_s(const struct session *session, double left_s)
{
	const double so_far_s = progress_seconds(&session->progress) + left_s;
	const uint32_t n_begun = session->n_done + 1;

	if (left_s <= 0 || session->options.n_sizes <= n_begun)
		return left_s;
	return left_s +
	       so_far_s / n_begun * (session->options.n_sizes - n_begun);
}

static void show_progress(struct session *session, const struct search *s,
			  const struct trial_result *r)
{
	char rate[32];

	print_rate(r->tx_pps, rate, sizeof(rate));
	progress_show(&session->progress,
		      all_left_s(session, (double)s->left_ns / 1e9),
		      "%s: trial %u, %sframe/s, lost %.4f %%",
		      session->size_text, s->n_trials + 1, rate,
		      r->sent > 0 ? 100 * (double)r->lost / (double)r->sent :
				    0);
}

static int make_trial(void *opaque, const struct trial_config *config,
		      struct trial_result *ret, struct mr_reason *why)
{
	struct session *session = opaque;

	return tester_run(session->tester, config, ret, why);
}

static uint32_t on_trial(void *observer, const struct search *s,
			 const struct trial_result *result)
{
	struct session *session = observer;

	*session->latency = result->latency;
	session->tail = result->tail;
	show_progress(session, s, result);
	return document_trial(session->document, session->frame_bytes, result);
}

static bool explain(void *opaque, const struct trial_result *result, char *ret,
		    size_t n_bytes)
{
	const struct session *session = opaque;

	return tester_explain(session->tester, result, ret, n_bytes);
}

/* Frames of this size, or as the streams are. */
static void take_size(struct session *session, uint32_t bytes)
{
	const struct streams *streams = tester_streams(session->tester);
	const struct search_options *o = &session->options;

	session->mean_bytes = bytes != 0 ? bytes : streams_mean_bytes(streams);
	session->frame_bytes = (uint32_t)session->mean_bytes;
	if (bytes == 0 &&
	    fabs(session->mean_bytes - streams_max_bytes(streams)) > 0.01)
		session->frame_bytes = 0;
	if (session->frame_bytes == 0)
		snprintf(session->size_text, sizeof(session->size_text), "mix");
	else
		snprintf(session->size_text, sizeof(session->size_text), "%u B",
			 session->frame_bytes + FCS_BYTES);
	session->search = (struct search){
		.run = make_trial,
		.opaque = session,
		.trial = o->traffic.trial,
		.resolution = o->resolution,
		.loss_tolerance = o->loss_tolerance,
		.unsent_tolerance = o->unsent_tolerance,
		.max_trials = MAX_TRIALS,
		.on_trial = on_trial,
		.observer = session,
		.explain = explain,
	};
	session->search.trial.frame_bytes = bytes;
	session->search.trial.duration_ns = o->trial_ns;
	if (session->search.trial.settle_ns == 0)
		session->search.trial.settle_ns = SETTLE_MS * ms;
}

/*
 * The highest rate of the search: what was asked for, else what the link takes,
 * else what the sender reaches at full speed, which is measured.
 */
static int find_highest(struct session *session, struct mr_reason *why)
{
	const struct search_options *o = &session->options;
	/* Of the mean: a mix has no length of its own. */
	const double line_pps = tester_line_rate_pps(session->tester, 1000) *
				(1000 + WIRE_BYTES) /
				(session->mean_bytes + WIRE_BYTES);
	const double asked =
		rate_pps(&o->traffic.trial.rate, session->mean_bytes, line_pps);
	struct search *s = &session->search;
	struct outcome full;
	int err;

	session->is_own_ceiling = false;
	s->max_pps = asked;
	if (asked < 0)
		return fail_with(why, -EINVAL,
				 "--rate in %% of a link of unknown speed: "
				 "give frames or bits per second");
	if (asked <= 0 && o->traffic.tester.is_virtual)
		s->max_pps = line_pps > 0 ? line_pps : VIRTUAL_PPS;
	if (s->max_pps <= 0) {
		err = search_trial(s, 0, FULL_SPEED_MS * ms, 0, &full, why);
		if (err != 0)
			return err;
		/* Within 2 %, it is the link that ends it. */
		session->is_own_ceiling =
			line_pps <= 0 || full.load_pps < 0.98 * line_pps;
		s->max_pps = session->is_own_ceiling ? full.load_pps : line_pps;
	}
	s->min_pps = s->max_pps / LEAST_SHARE;
	return 0;
}

static int run_size(struct session *session, uint32_t bytes,
		    struct mr_reason *why)
{
	int err;

	take_size(session, bytes);
	session->ceiling_pps = 0;
	if (session->options.ceiling != NULL) {
		err = ceiling_read(session->options.ceiling,
				   document_json(session->document),
				   session->frame_bytes, session->mean_bytes,
				   &session->ceiling_pps, why);
		if (err != 0)
			return err;
	}
	err = search_check_path(&session->search, why);
	if (err == 0)
		err = find_highest(session, why);
	/* No result rests on what was tried so far. */
	session->search.n_trials = session->search.n_before = 0;
	if (err == 0)
		err = session->command->run(session, why);
	progress_clear(&session->progress);
	return err;
}

/*
 * Headers may need more than a size has. One that was named is the user's own;
 * those of RFC 2544 were made for IPv4 and UDP: the shortest possible stands
 * for their first, and the second has room for all headers. Streams, which say
 * no lengths, were opened with the shortest.
 */
static int fit_sizes(struct session *session, struct mr_reason *why)
{
	struct search_options *o = &session->options;
	const uint32_t n_least =
		streams_max_bytes(tester_streams(session->tester));
	uint32_t least = UINT32_MAX;

	for (uint32_t i = 0; i < o->n_sizes; i++)
		least = o->sizes[i] < least ? o->sizes[i] : least;
	if (least >= n_least)
		return 0;
	if (!o->is_rfc2544)
		return fail_with(why, 2,
				 "--sizes: %u bytes: headers and the stamp "
				 "need %u; rfc2544 takes these instead",
				 least + FCS_BYTES, n_least + FCS_BYTES);
	raised_print(least, n_least, 1, session->raised,
		     sizeof(session->raised));
	print_error("mr-bench: rfc2544: %s", session->raised);
	o->sizes[0] = n_least;
	return 0;
}

/* Streams may have a mix, and that another one than was asked for. */
static void tell_mix(struct session *session)
{
	if (imix_raised_print(tester_streams(session->tester), session->raised,
			      sizeof(session->raised)))
		print_error("mr-bench: imix: %s", session->raised);
}

static int run_sizes(struct session *session)
{
	const uint32_t *const sizes = session->options.sizes;
	struct mr_reason why = { .text = "" };
	int status = 0, err;
	uint32_t n;

	err = fit_sizes(session, &why);
	if (err != 0) {
		document_fail(session->document, why.text);
		print_error("mr-bench: %s", why.text);
		return err;
	}
	n = session->options.n_sizes;
	if (n == 0)
		tell_mix(session);
	for (uint32_t i = 0; i < (n > 0 ? n : 1); i++) {
		err = run_size(session, n > 0 ? sizes[i] : 0, &why);
		if (err < 0 || err > 1 || (err == 1 && why.text[0] != '\0')) {
			document_fail(session->document, why.text);
			print_error("mr-bench: %s: %s", session->size_text,
				    why.text);
			return err > 1 ? err : 1;
		}
		status |= err;
		session->n_done++;
		session->raised[0] = '\0';
	}
	return status;
}

static int write_files(const struct session *session, struct mr_reason *why)
{
	const struct traffic_options *o = &session->options.traffic;
	int err = 0;

	if (o->is_json)
		err = document_write(session->document, "-", why);
	if (err == 0 && o->json_out != NULL)
		err = document_write(session->document, o->json_out, why);
	if (err == 0 && o->csv != NULL)
		err = document_write_csv(session->document, o->csv, why);
	if (err == 0 && o->hdr != NULL)
		err = document_write_hdr(session->document, o->hdr, why);
	return err;
}

static void set_seconds(struct document *document, const char *key, uint64_t ns)
{
	document_set(document, key, json_real((double)ns / 1e9));
}

/* All that the figures depend on, so that unlike runs are told apart. */
static void record_config(const struct session *session)
{
	static const char *const methods[] = { "binary", "tst009", "mlr" };
	const struct search_options *o = &session->options;
	const uint32_t groups = session->command->groups;
	struct document *d = session->document;

	traffic_describe(&o->traffic, d);
	set_seconds(d, "settle_s",
		    o->traffic.trial.settle_ns != 0 ?
			    o->traffic.trial.settle_ns :
			    SETTLE_MS * ms);
	if ((groups & OPTIONS_SEARCH) != 0) {
		document_set(d, "method", json_string(methods[o->method]));
		set_seconds(d, "confirm_s", o->confirm_ns);
		document_set(d, "verify", json_integer(o->n_verify));
		document_set(d, "pdr", json_real(o->partial_tolerance));
		set_seconds(d, "duration_sum_s", o->duration_sum_ns);
		document_set(d, "exceed_ratio", json_real(o->exceed_ratio));
	}
	if ((groups & (OPTIONS_SEARCH | OPTIONS_BURSTS)) != 0)
		document_set(d, "resolution", json_real(o->resolution));
	if ((groups & (OPTIONS_SEARCH | OPTIONS_INTERVAL)) != 0)
		document_set(d, "loss_tolerance", json_real(o->loss_tolerance));
	if ((groups & OPTIONS_TRIAL) != 0) {
		set_seconds(d, "trial_s", o->trial_ns);
		document_set(d, "unsent_tolerance",
			     json_real(o->unsent_tolerance));
	}
}

/* What single commands have. */
static void record_own_config(const struct session *session)
{
	const struct search_options *o = &session->options;
	const uint32_t groups = session->command->groups;
	struct document *d = session->document;
	json_t *shares;

	if ((groups & OPTIONS_STEP) != 0)
		document_set(d, "step", json_real(o->step));
	if ((groups & OPTIONS_BURSTS) != 0) {
		document_set(d, "tests", json_integer(o->n_tests));
		set_seconds(d, "max_burst_s", o->max_burst_ns);
	}
	if ((groups & OPTIONS_SHARES) != 0) {
		shares = json_array();
		for (uint32_t i = 0; i < o->n_shares; i++)
			json_array_append_new(shares, json_real(o->shares[i]));
		document_set(d, "shares", shares);
	}
	if ((groups & OPTIONS_INTERVAL) != 0)
		set_seconds(d, "interval_s", o->interval_ns);
	if ((groups & OPTIONS_CEILING) != 0)
		document_set(d, "ceiling",
			     json_string(o->ceiling ? o->ceiling : ""));
}

/* The streams of imix are mixes, unless they say what they are. */
static int add_mix(struct session *session, struct mr_reason *why)
{
	struct traffic_options *o = &session->options.traffic;
	const uint32_t room =
		sizeof(session->streams) / sizeof(session->streams[0]);

	if (o->tester.n_streams > room)
		return fail_with(why, -E2BIG, "more than %u streams", room);
	if (o->tester.n_streams == 0)
		o->streams[o->tester.n_streams++] = "";
	for (uint32_t i = 0; i < o->tester.n_streams; i++) {
		if (strstr(o->streams[i], "size=") != NULL)
			continue;
		snprintf(session->streams[i], sizeof(session->streams[i]),
			 "%s size=imix", o->streams[i]);
		o->streams[i] = session->streams[i];
	}
	o->tester.streams = o->streams;
	return 0;
}

/* Ports, and those in the document. Returns the exit status. */
static int open_tester(struct session *session)
{
	struct traffic_options *o = &session->options.traffic;
	struct mr_reason why = { .text = "" };
	int status = 0;

	if (session->command->is_mix && add_mix(session, &why) != 0)
		status = 2;
	if (status == 0)
		status = tester_open(&o->tester, &session->tester, &why);
	if (status != 0) {
		print_error("mr-bench: %s", why.text);
		return status;
	}
	document_ports(session->document, session->tester);
	return 0;
}

/* Returns 0 or 1, with a line on stderr. */
static int write_or_complain(const struct session *session)
{
	struct mr_reason why;

	if (session->has_no_result || write_files(session, &why) == 0)
		return 0;
	print_error("mr-bench: %s", why.text);
	return 1;
}

/* The searches. Without ports, what came before them was all. */
static int run_on_ports(struct session *session)
{
	int status;

	if (session->options.traffic.tester.n_tx == 0)
		return 0;
	status = open_tester(session);
	if (status != 0) {
		session->has_no_result = true;
		return status;
	}
	status = run_sizes(session);
	/* What there is, for it ends the process then. */
	if (tester_is_hung(session->tester)) {
		write_or_complain(session);
		fflush(stdout);
	}
	return tester_close(session->tester) != 0 ? 1 : status;
}

/* The whole, into the files. */
static int run_and_write(struct session *session, const char *line)
{
	const char *const label = session->options.traffic.label;
	int status = 0;

	session->document = document_new(session->command->name,
					 label != NULL ? label : "", line);
	progress_open(&session->progress, session->options.traffic.is_quiet);
	record_config(session);
	record_own_config(session);
	if (session->command->before != NULL)
		status = session->command->before(session);
	if (status != 0)
		document_fail(session->document, "a check before it failed");
	else
		status = run_on_ports(session);
	if (write_or_complain(session) != 0)
		status = 1;
	document_free(session->document);
	return status;
}

int search_command_main(const struct search_command *command, int argc,
			char **argv)
{
	static struct session session; /* points into itself, and is large */
	static struct hist latency;
	char line[MAX_COMMAND];
	int status;

	machine_command(argc, argv, line, sizeof(line));
	session = (struct session){ .command = command, .latency = &latency };
	status = search_options_main(command, argc, argv, &session.options);
	if (status >= 0)
		return status;
	status = run_and_write(&session, line);
	if (fflush(stdout) != 0) {
		fprintf(stderr, "mr-bench: cannot write to stdout\n");
		status = 1;
	}
	return status;
}

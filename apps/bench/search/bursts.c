/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench back2back: the longest burst, and the device's buffer. */
#include <stdio.h>

#include "search/commands.h"
#include "search/session.h"
#include "support/specs.h"

static void print_found(struct session *session, const struct burst_found *b,
			const char *note)
{
	if (session->n_rows == 0)
		session_print(session,
			      "%-7s %6s %11s %11s %11s %9s %12s %12s\n",
			      "frames", "tests", "mean", "min", "max",
			      "deviation", "implied", "corrected");
	session_print(session,
		      "%-7s %6u %11.1f %11.0f %11.0f %9.1f %9.3f us %9.3f us",
		      session->size_text, b->n, b->mean, b->min, b->max, b->sd,
		      1e6 * b->implied_s, 1e6 * b->corrected_s);
	session_print(session, "%s%s\n", note[0] != '\0' ? "  " : "", note);
}

static void report(struct session *session, const struct burst_found *b,
		   const char *limit)
{
	char note[160], near[80] = "";
	/* Bursts go at the highest rate. */
	const bool is_near = session_is_near_ceiling(
		session, session->search.max_pps, near, sizeof(near));
	const bool is_limited = is_near || b->limit != LIMIT_DEVICE;
	const struct document_row rows[] = {
		{ .goal = "back2back",
		  .unit = "frames",
		  .note = note,
		  .value = b->mean,
		  .low = b->min,
		  .high = b->max,
		  .is_limited_by_tester = is_limited },
		{ .goal = "buffer-time",
		  .unit = "s",
		  .note = "corrected as RFC 9004, 6 has it",
		  .value = b->corrected_s,
		  .is_limited_by_tester = is_limited },
	};

	snprintf(note, sizeof(note), "%s%s%s", limit,
		 limit[0] != '\0' && is_near ? "; " : "", near);
	print_found(session, b, note);
	session_row(session, &rows[0]);
	if (b->corrected_s > 0)
		session_row(session, &rows[1]);
}

/* No buffer fills where all that can be sent is forwarded (RFC 9004, 5.2). */
static int report_none(struct session *session, const struct found *f,
		       struct mr_reason *why)
{
	static const char *const notes[] = {
		[LIMIT_HIGHEST] = "no loss at the highest rate: no buffer "
				  "fills, and the burst is as long as the "
				  "trial",
		[LIMIT_SENDER] = "no loss up to what the sender can do: the "
				 "burst is as long as the trial",
		[LIMIT_RECEIVER] = "above that rate the receiver loses frames: "
				   "the burst is as long as the trial",
	};
	const double frames =
		f->value * (double)session->options.trial_ns / 1e9;
	const struct burst_found b = { .n = 1,
				       .mean = frames,
				       .min = frames,
				       .max = frames,
				       .implied_s = frames / f->value,
				       .limit = f->limit };

	if (f->value <= 0)
		return fail_with(why, 1,
				 "the receiver loses frames at all "
				 "rates");
	report(session, &b, notes[f->limit]);
	return 0;
}

static int run(struct session *session, struct mr_reason *why)
{
	const struct search_options *o = &session->options;
	static const char *const notes[] = {
		[LIMIT_DEVICE] = "",
		[LIMIT_HIGHEST] = "the longest burst was passed",
		[LIMIT_SENDER] = "longer ones, the sender does not keep up",
		[LIMIT_RECEIVER] = "of longer ones, the receiver loses frames",
	};
	struct back2back config = { .n_tests = o->n_tests,
				    .max_burst_ns = o->max_burst_ns,
				    .n_verify = o->n_verify };
	struct burst_found b;
	struct found f[MAX_FOUND];
	uint32_t n;
	int err = session_throughput(session, f, &n, why);

	if (err != 0)
		return err;
	if (f[0].limit != LIMIT_DEVICE)
		return report_none(session, &f[0], why);
	config.throughput_pps = f[0].value;
	err = search_back2back(&session->search, &config, &b, why);
	if (b.n > 0)
		report(session, &b,
		       b.is_complete ? notes[b.limit] : "incomplete");
	return err;
}

int back2back_main(int argc, char **argv)
{
	static const struct search_command command = {
		.name = "back2back",
		.usage = "usage: mr-bench back2back [options] TX RX [TX "
			 "RX...]\n"
			 "The longest burst at the highest rate of which no "
			 "frame is lost (RFC 9004),\n"
			 "behind a search for the throughput.\n",
		.groups = OPTIONS_SEARCH | OPTIONS_SIZES | OPTIONS_TRIAL |
			  OPTIONS_BURSTS | OPTIONS_CEILING,
		.run = run,
	};

	return search_command_main(&command, argc, argv);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench latency: at shares of the throughput. */
#include <stdio.h>

#include "net/away.h"
#include "search/commands.h"
#include "search/session.h"
#include "search/tail.h"
#include "support/specs.h"

static const struct {
	const char *name;
	double percentile;
} points[] = {
	{ "min", 0 },  { "p50", 50 },     { "p90", 90 },
	{ "p99", 99 }, { "p99.9", 99.9 }, { "max", 100 },
};

enum { N_POINTS = sizeof(points) / sizeof(points[0]) };

static double value_at(const struct hist *hist, uint32_t point)
{
	if (point == 0)
		return (double)hist->min;
	return (double)hist_at(hist, points[point].percentile);
}

static void print_head(const struct session *session)
{
	session_print(session, "%-7s %7s %15s %15s", "frames", "share",
		      "asked frames/s", "sent frames/s");
	for (uint32_t i = 0; i < N_POINTS; i++)
		session_print(session, " %9s us", points[i].name);
	session_print(session, " %10s\n", "lost");
}

static void report(struct session *session, double share,
		   const struct outcome *outcome)
{
	const struct hist *hist = session->latency;
	const uint32_t last = session->search.n_trials - 1;
	char asked[32], rate[32], goal[48], note[96] = "";

	if (session->n_rows == 0)
		print_head(session);
	print_rate(outcome->load_pps, rate, sizeof(rate));
	print_rate(outcome->asked_pps, asked, sizeof(asked));
	session_print(session, "%-7s %5.1f %% %15s %15s", session->size_text,
		      100 * share, asked, rate);
	if (outcome->is_unsent)
		snprintf(note, sizeof(note), "the sender missed its rate");
	else if (outcome->n_lost > 0)
		snprintf(note, sizeof(note),
			 "of the frames that came; %llu "
			 "were lost",
			 (unsigned long long)outcome->n_lost);
	for (uint32_t i = 0; i < N_POINTS; i++) {
		const struct document_row row = {
			.goal = goal,
			.unit = "ns",
			.note = note,
			.value = value_at(hist, i),
			.is_limited_by_tester = outcome->is_unsent,
			.trials = &session->search.trials[last],
			.n_trials = 1,
		};

		snprintf(goal, sizeof(goal), "latency-%s-at-%g%%",
			 points[i].name, 100 * share);
		session_print(session, " %12.3f", row.value / 1e3);
		session_row(session, &row);
	}
	session_print(session, " %10llu%s\n",
		      (unsigned long long)outcome->n_lost,
		      outcome->is_unsent ? "  the sender missed its rate" : "");
	if (!session->options.traffic.is_json)
		tail_print(&session->tail, "       ", stdout);
}

/* What the shares are of: --rate, or what a search finds. */
static int find_whole(struct session *session, double *ret_pps,
		      struct mr_reason *why)
{
	struct found f[MAX_FOUND];
	uint32_t n;
	int err;

	*ret_pps = session->search.max_pps;
	if (session->options.traffic.trial.rate.unit != RATE_FULL)
		return 0;
	err = session_throughput(session, f, &n, why);
	*ret_pps = f[0].value;
	if (err == 0 && f[0].value <= 0)
		return fail_with(why, 1, "no throughput: %s", f[0].note);
	return err;
}

static double most_of(const struct search_options *o)
{
	double most = 0;

	for (uint32_t i = 0; i < o->n_shares; i++)
		most = o->shares[i] > most ? o->shares[i] : most;
	return most;
}

static int run(struct session *session, struct mr_reason *why)
{
	const struct search_options *o = &session->options;
	struct outcome outcome;
	double whole;
	int err = find_whole(session, &whole, why);

	if (err == 0 && session->n_done == 0 && !o->traffic.tester.is_virtual)
		err = tail_measure_own(session, whole * most_of(o), why);
	for (uint32_t i = 0; err == 0 && i < o->n_shares; i++) {
		err = search_trial(&session->search, whole * o->shares[i],
				   o->trial_ns, 0, &outcome, why);
		if (err == 0 && session->latency->n == 0)
			err = fail_with(why, 1,
					"nothing came back of %llu frames at "
					"%.0f frames/s: there is no latency",
					(unsigned long long)outcome.n_sent,
					outcome.asked_pps);
		if (err == 0)
			report(session, o->shares[i], &outcome);
	}
	return err;
}

int latency_main(int argc, char **argv)
{
	static const struct search_command command = {
		.name = "latency",
		.usage = "usage: mr-bench latency [options] TX RX [TX RX...]\n"
			 "Latency at shares of --rate, or of the throughput, "
			 "which is searched first.\n"
			 "One way; the same port as TX and RX, with mr-bench "
			 "reflect behind it: there\n"
			 "and back.\n",
		.groups = OPTIONS_SEARCH | OPTIONS_SIZES | OPTIONS_TRIAL |
			  OPTIONS_SHARES,
		.run = run,
	};

	return search_command_main(&command, argc, argv);
}

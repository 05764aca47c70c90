/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench throughput and imix: the highest rate that holds. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "search/commands.h"
#include "search/mlr.h"
#include "search/session.h"

static int run_mlr(struct session *session, struct found *ret, uint32_t *ret_n,
		   struct mr_reason *why)
{
	const struct search_options *o = &session->options;
	struct mlr_goal goals[MAX_FOUND] = {
		{ .name = "ndr", .loss_ratio = 0 },
		{ .name = "pdr", .loss_ratio = o->partial_tolerance },
	};

	*ret_n = o->partial_tolerance > 0 ? 2 : 1;
	for (uint32_t i = 0; i < *ret_n; i++) {
		goals[i].exceed_ratio = o->exceed_ratio;
		goals[i].width = o->resolution;
		goals[i].final_trial_ns = o->trial_ns;
		goals[i].duration_sum_ns = o->duration_sum_ns;
	}
	return search_mlr(&session->search, goals, *ret_n, o->trial_ns, ret,
			  why);
}

int session_throughput(struct session *session, struct found *ret,
		       uint32_t *ret_n, struct mr_reason *why)
{
	const struct search_options *o = &session->options;
	const uint32_t n_verify = o->method == METHOD_TST009 ? o->n_verify : 0;

	if (o->method == METHOD_MLR)
		return run_mlr(session, ret, ret_n, why);
	*ret_n = 1;
	return search_binary(&session->search, n_verify, o->confirm_ns, ret,
			     why);
}

/* Notes of the search and of the judge, in one line. */
static void join(char *to, size_t n_bytes, const char *more)
{
	const size_t n = strlen(to);

	if (more[0] != '\0')
		snprintf(to + n, n_bytes - n, "%s%s", n > 0 ? "; " : "", more);
}

static void print_line(struct session *session, const struct found *f,
		       const struct document_row *row)
{
	char value[32], low[32], high[32];

	if (session->n_rows == 0)
		session_print(session, "%-7s %-5s %15s %13s %9s %28s %7s\n",
			      "frames", "goal", "frames/s", "layer 1", "loss",
			      "holds .. does not", "trials");
	print_rate(row->value, value, sizeof(value));
	print_rate(f->low, low, sizeof(low));
	print_rate(f->high, high, sizeof(high));
	session_print(session,
		      "%-7s %-5s %15s %7.3f Gbit/s %7.4f %% %12s .. %12s %7u",
		      session->size_text, f->goal, value,
		      rate_l1_bps(row->value, session->mean_bytes) / 1e9,
		      100 * f->loss, low, f->high > 0 ? high : "-",
		      session->search.n_trials);
	session_print(session, "%s%s\n", row->note[0] != '\0' ? "  " : "",
		      row->note);
}

/* 0, or 1: there is no such rate, or none that may be told. */
static int report(struct session *session, struct found *f)
{
	char note[320] = "", judged[160] = "";
	struct document_row row = { .goal = f->goal,
				    .unit = "frames/s",
				    .note = note,
				    .value = f->value,
				    .low = f->low,
				    .high = f->high };

	if (f->value > 0 &&
	    !session_judge(session, f->value, f->limit,
			   &row.is_limited_by_tester, judged, sizeof(judged)))
		row.value = row.low = row.high = f->low = f->high = 0;
	if (!f->is_complete)
		join(note, sizeof(note), "incomplete");
	join(note, sizeof(note), f->note);
	join(note, sizeof(note), judged);
	print_line(session, f, &row);
	session_row(session, &row);
	return row.value > 0 && f->is_complete ? 0 : 1;
}

static int run(struct session *session, struct mr_reason *why)
{
	struct found found[MAX_FOUND];
	uint32_t n = 0;
	int err = session_throughput(session, found, &n, why);
	int status = 0;

	/* Also of a search that was ended: what there is. */
	for (uint32_t i = 0; i < n; i++)
		status |= report(session, &found[i]);
	return err != 0 ? err : status;
}

enum {
	GROUPS = OPTIONS_SEARCH | OPTIONS_SIZES | OPTIONS_TRIAL |
		 OPTIONS_CEILING,
};

int throughput_main(int argc, char **argv)
{
	static const struct search_command command = {
		.name = "throughput",
		.usage = "usage: mr-bench throughput [options] TX RX [TX "
			 "RX...]\n"
			 "Find the highest rate at which the device between "
			 "the ports loses nothing.\n",
		.groups = GROUPS,
		.run = run,
	};

	return search_command_main(&command, argc, argv);
}

int imix_main(int argc, char **argv)
{
	static const struct search_command command = {
		.name = "imix",
		.usage = "usage: mr-bench imix [options] TX RX [TX RX...]\n"
			 "Throughput with a mix of sizes (--stream size=...; "
			 "imix where it is not said).\n",
		.groups = GROUPS & ~OPTIONS_SIZES,
		.run = run,
		.is_mix = true,
	};

	return search_command_main(&command, argc, argv);
}

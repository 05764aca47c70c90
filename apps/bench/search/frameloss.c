/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench frameloss: loss by rate, down to where there is none. */
#include <stdio.h>

#include "search/commands.h"
#include "search/session.h"

/* The goal of a point: "loss-at-90%". */
static void report(struct session *session, const struct outcome *point)
{
	const double share = point->asked_pps / session->search.max_pps;
	char goal[32], rate[32], note[80] = "";
	struct document_row row = {
		.goal = goal,
		.unit = "ratio",
		.note = note,
		.value = point->loss,
	};

	if (point->is_unsent)
		snprintf(note, sizeof(note), "the sender did not keep up");
	else if (point->is_by_receiver)
		snprintf(note, sizeof(note), "the receiver lost frames");
	else
		session_is_near_ceiling(session, point->load_pps, note,
					sizeof(note));
	row.is_limited_by_tester = note[0] != '\0';

	if (session->n_rows == 0)
		session_print(session, "%-7s %7s %15s %12s %12s %10s\n",
			      "frames", "share", "frames/s", "sent", "lost",
			      "loss");
	snprintf(goal, sizeof(goal), "loss-at-%g%%", 100 * share);
	print_rate(point->load_pps, rate, sizeof(rate));
	session_print(session, "%-7s %5.1f %% %15s %12llu %12llu %8.4f %%",
		      session->size_text, 100 * share, rate,
		      (unsigned long long)point->n_sent,
		      (unsigned long long)point->n_lost, 100 * point->loss);
	session_print(session, "%s%s\n", note[0] != '\0' ? "  " : "", note);
	session_row(session, &row);
}

static int run(struct session *session, struct mr_reason *why)
{
	struct loss_curve curve;
	const int err = search_frame_loss(&session->search,
					  session->options.step, &curve, why);

	for (uint32_t i = 0; i < curve.n; i++)
		report(session, &curve.points[i]);
	return err;
}

int frameloss_main(int argc, char **argv)
{
	static const struct search_command command = {
		.name = "frameloss",
		.usage = "usage: mr-bench frameloss [options] TX RX [TX "
			 "RX...]\n"
			 "Loss by rate: from --rate, or the highest one, down "
			 "in steps until two are clean.\n",
		.groups = OPTIONS_SIZES | OPTIONS_TRIAL | OPTIONS_STEP |
			  OPTIONS_CEILING,
		.run = run,
	};

	return search_command_main(&command, argc, argv);
}

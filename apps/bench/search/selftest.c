/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr-bench: whether the tester finds what the known device does, and
 * what the tester itself can do on these ports, with nothing between them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/commands.h"
#include "search/known.h"
#include "search/session.h"
#include "support/text.h"

static int try_case(const struct search_options *o, const struct known_case *c,
		    double *ret_found, struct mr_reason *why)
{
	static const char *const from = "pair:selftest-a";
	static const char *const to = "pair:selftest-b";
	struct tester_config config = { .tx = &from,
					.n_tx = 1,
					.rx = &to,
					.n_rx = 1,
					.device = c->device,
					.is_virtual = true,
					.plane = o->traffic.tester.plane };
	const struct trial_config trial = { .rate = { RATE_PPS, c->pps },
					    .n_frames = KNOWN_FRAMES };
	struct trial_result *result = calloc(1, sizeof(*result));
	struct tester *tester;
	int err;

	if (result == NULL)
		return fail_with(why, 1, "out of memory");
	err = tester_open(&config, &tester, why);
	if (err == 0) {
		err = tester_run(tester, &trial, result, why);
		if (err == 0) {
			*ret_found = c->found(result);
			trial_result_free(result);
		}
		if (tester_close(tester) != 0 && err == 0)
			err = fail_with(why, 1, "its accounts do not add up");
	}
	free(result);
	return err;
}

/* "known-loss-1000" for "loss=1000". Between low and high it is right. */
static void add_row(struct session *session, const struct known_case *c,
		    double found)
{
	char goal[48];
	const struct document_row row = {
		.frame_bytes = KNOWN_BYTES,
		.goal = goal,
		.unit = c->row_unit,
		.note = known_agrees(c, found) ? "" : "wrong",
		.value = c->row_scale * found,
		.low = c->row_scale * (c->injected - c->error),
		.high = c->row_scale * (c->injected + c->error),
	};

	snprintf(goal, sizeof(goal), "known-%s", c->device);
	*strchr(goal, '=') = '-';
	document_row(session->document, &row);
}

/* Injected beside found. */
static int check_known(struct session *session)
{
	struct mr_reason why = { .text = "" };
	const struct known_case *cases;
	double found = 0;
	int status = 0;
	uint32_t n;

	cases = known_cases(&n);
	session_print(session, "%-12s %-16s %-9s %10s %10s %10s\n", "device",
		      "figure", "unit", "injected", "found", "error");
	for (uint32_t i = 0; i < n; i++) {
		const struct known_case *c = &cases[i];
		const int err = try_case(&session->options, c, &found, &why);

		if (err != 0) {
			print_error("mr-bench: %s: %s", c->device, why.text);
			return err;
		}
		session_print(
			session, "%-12s %-16s %-9s %10.10g %10.10g %10g%s\n",
			c->device, c->figure, c->unit, c->injected, found,
			c->error, known_agrees(c, found) ? "" : "  WRONG");
		add_row(session, c, found);
		if (!known_agrees(c, found)) {
			print_error("mr-bench: %s: %g %s were injected, "
				    "and %g found",
				    c->device, c->injected, c->unit, found);
			status = 1;
		}
	}
	return status;
}

/* The tester alone: the highest rate at which it loses nothing itself. */
static int run(struct session *session, struct mr_reason *why)
{
	const char *const words[] = { "", " (the link)", " (the sender)",
				      " (the receiver)" };
	struct document_row row = { .goal = "ceiling", .unit = "frames/s" };
	struct found f[MAX_FOUND];
	char rate[32];
	uint32_t n;
	int err = session_throughput(session, f, &n, why);

	row.value = f[0].value;
	row.low = f[0].low;
	row.high = f[0].high;
	row.note = f[0].is_complete ? f[0].note : "incomplete";
	print_rate(row.value, rate, sizeof(rate));
	if (session->n_rows == 0)
		session_print(session, "\n%-7s %15s\n", "frames", "ceiling");
	session_print(session, "%-7s %15s frames/s%s\n", session->size_text,
		      rate, words[f[0].limit]);
	session_row(session, &row);
	if (err == 0)
		document_selftest(session->document, session->frame_bytes,
				  session->mean_bytes, row.value);
	return err != 0 ? err : row.value > 0 ? 0 : 1;
}

int selftest_main(int argc, char **argv)
{
	static const struct search_command command = {
		.name = "selftest",
		.usage = "usage: mr-bench selftest [options] [TX RX]\n"
			 "Whether the tester finds what a known device does; "
			 "and, with ports and\n"
			 "nothing but a cable between them, the highest rate "
			 "that the tester itself\n"
			 "sends and receives: give it to searches with "
			 "--ceiling.\n",
		.groups = OPTIONS_SEARCH | OPTIONS_SIZES | OPTIONS_TRIAL,
		.before = check_known,
		.run = run,
		.needs_no_ports = true,
	};

	return search_command_main(&command, argc, argv);
}

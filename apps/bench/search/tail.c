/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/away.h"
#include "search/tail.h"

enum { OWN_TRIAL_MS = 1000 };

static void report_own(const struct session *session,
		       const struct trial_result *result)
{
	static const struct {
		const char *name, *key;
		double percentile;
	} points[] = {
		{ "p50", "own_p50_ns", 50 },
		{ "p99", "own_p99_ns", 99 },
		{ "p99.9", "own_p999_ns", 99.9 },
		{ "max", "own_max_ns", 100 },
	};
	char rate[32];

	print_rate(result->tx_pps, rate, sizeof(rate));
	session_print(session, "the tester alone, at %sframe/s:", rate);
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
		const double ns =
			(double)hist_at(&result->latency, points[i].percentile);

		session_print(session, "%s %s %.1f us", i > 0 ? "," : "",
			      points[i].name, ns / 1e3);
		document_measured(session->document, points[i].key, ns);
	}
	session_print(session, "\n");
	if (!session->options.traffic.is_json)
		tail_print(&result->tail, "       ", stdout);
}

int tail_measure_own(struct session *session, double pps, struct mr_reason *why)
{
	static const char *const ports[] = { "pair:tester" };
	static struct trial_result result; /* large */
	struct tester_config config = session->options.traffic.tester;
	struct trial_config trial = session->search.trial;
	struct tester *tester;
	int status;

	config.tx = config.rx = ports;
	config.n_tx = config.n_rx = 1;
	config.device = NULL; /* of the ports that are measured */
	config.plane.port = (struct port_options){ 0 };
	config.plane.n_pages = 0;
	config.plane.log_level = MR_LOG_ERROR;
	config.plane.n_cores = tester_cores(session->tester, config.plane.cores,
					    MR_WORKERS_MAX);
	config.plane.n_workers = config.plane.n_cores;
	trial.rate = (struct rate){ RATE_PPS, pps };
	trial.settle_ns = 0;
	if (trial.duration_ns > OWN_TRIAL_MS * 1000000ull)
		trial.duration_ns = OWN_TRIAL_MS * 1000000ull;
	status = tester_open(&config, &tester, why);
	if (status != 0)
		return status;
	status = tester_run(tester, &trial, &result, why);
	if (status == 0) {
		report_own(session, &result);
		trial_result_free(&result);
	}
	return tester_close(tester) != 0 ? 1 : status;
}

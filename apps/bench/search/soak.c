/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr-bench soak: a long run at one rate, as trials one after the other, so that
 * the losses of each interval are exact; between them is the time to settle.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "search/commands.h"
#include "search/drift.h"
#include "search/session.h"

struct soak {
	struct session *session;
	uint32_t n;
	uint64_t sent, lost, unsent, elapsed_ns;
	uint32_t n_lossy; /* intervals */
	struct drift median_ns, p99_ns, own_bytes, device_bytes;
};

/* Resident memory of a process; 0: unknown. */
static double resident_bytes(const char *pid)
{
	unsigned long long pages = 0;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%s/statm", pid);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	if (fscanf(file, "%*u %llu", &pages) != 1)
		pages = 0;
	fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void add(struct soak *soak, const struct trial_result *r)
{
	const double hours = (double)soak->elapsed_ns / 3.6e12;
	char pid[16];

	soak->elapsed_ns += r->whole_ns;
	soak->n++;
	soak->sent += r->sent;
	soak->lost += r->lost;
	soak->unsent += r->unsent;
	soak->n_lossy += r->lost > 0;
	if (r->latency.n > 0) {
		drift_add(&soak->median_ns, hours,
			  (double)hist_at(&r->latency, 50));
		drift_add(&soak->p99_ns, hours,
			  (double)hist_at(&r->latency, 99));
	}
	drift_add(&soak->own_bytes, hours, resident_bytes("self"));
	if (soak->session->options.pid != 0) {
		snprintf(pid, sizeof(pid), "%u", soak->session->options.pid);
		drift_add(&soak->device_bytes, hours, resident_bytes(pid));
	}
}

/* Without --duration nobody knows when it ends. */
static void show_progress(const struct soak *soak)
{
	struct session *session = soak->session;
	const double whole_s =
		(double)session->options.traffic.trial.duration_ns / 1e9;

	progress_show(
		&session->progress, whole_s - (double)soak->elapsed_ns / 1e9,
		"soak: %u intervals, %u with loss", soak->n, soak->n_lossy);
}

static void print_interval(const struct soak *soak,
			   const struct trial_result *r)
{
	const struct session *session = soak->session;
	char rate[32];

	progress_clear(&session->progress);

	if (soak->n == 1)
		session_print(session, "%9s %15s %12s %10s %10s %9s %9s %9s\n",
			      "interval", "frames/s", "sent", "lost", "unsent",
			      "p50 us", "p99 us", "memory");
	print_rate(r->tx_pps, rate, sizeof(rate));
	session_print(
		session, "%9u %15s %12llu %10llu %10llu %9.1f %9.1f %6.1f MB\n",
		soak->n, rate, (unsigned long long)r->sent,
		(unsigned long long)r->lost, (unsigned long long)r->unsent,
		soak->median_ns.last / 1e3, soak->p99_ns.last / 1e3,
		(soak->session->options.pid != 0 ? soak->device_bytes.last :
						   soak->own_bytes.last) /
			1e6);
}

/* How much it moved, by the line through all of its values. */
static void print_drift(const struct soak *soak, const char *name,
			const struct drift *d, double unit, const char *text)
{
	const double hours = (double)soak->elapsed_ns / 3.6e12;

	if (d->n == 0)
		return;
	session_print(soak->session,
		      "%-22s %.1f to %.1f %s, a trend of %+.3f %s%s\n", name,
		      d->min / unit, d->max / unit, text,
		      drift_slope(d) * hours / unit, text,
		      drift_is_real(d) ? ": it drifts" : "");
}

static void summarize(struct soak *soak)
{
	struct session *session = soak->session;
	const double loss =
		soak->sent > 0 ? (double)soak->lost / (double)soak->sent : 0;
	const bool is_unsent = (double)soak->unsent >
			       session->options.unsent_tolerance *
				       (double)(soak->sent + soak->unsent);
	const char *const note = is_unsent ? "the sender did not keep up" : "";
	const struct document_row rows[] = {
		{ .goal = "loss",
		  .unit = "ratio",
		  .note = note,
		  .value = loss,
		  .is_limited_by_tester = is_unsent },
		{ .goal = "intervals-with-loss",
		  .unit = "ratio",
		  .note = note,
		  .value = soak->n > 0 ? (double)soak->n_lossy / soak->n : 0,
		  .is_limited_by_tester = is_unsent },
		{ .goal = "latency-p50",
		  .unit = "ns",
		  .value = soak->median_ns.mean_v,
		  .low = soak->median_ns.min,
		  .high = soak->median_ns.max },
		{ .goal = "latency-p99",
		  .unit = "ns",
		  .value = soak->p99_ns.mean_v,
		  .low = soak->p99_ns.min,
		  .high = soak->p99_ns.max },
	};

	session_print(session,
		      "%u intervals, %llu frames sent, %llu lost (%.6f %%) in "
		      "%u of them, %llu unsent\n",
		      soak->n, (unsigned long long)soak->sent,
		      (unsigned long long)soak->lost, 100 * loss, soak->n_lossy,
		      (unsigned long long)soak->unsent);
	print_drift(soak, "latency, median", &soak->median_ns, 1e3, "us");
	print_drift(soak, "latency, p99", &soak->p99_ns, 1e3, "us");
	print_drift(soak, "memory of mr-bench", &soak->own_bytes, 1e6, "MB");
	print_drift(soak, "memory of the device", &soak->device_bytes, 1e6,
		    "MB");
	/* Where nothing came back there is no latency. */
	for (uint32_t i = 0; soak->sent > 0 && i < 4; i++)
		if (i < 2 || soak->median_ns.n > 0)
			session_row(session, &rows[i]);
	document_measured(session->document, "memory_slope_bytes_per_hour",
			  drift_slope(&soak->own_bytes));
	document_measured(session->document, "latency_p50_slope_ns_per_hour",
			  drift_slope(&soak->median_ns));
}

/* One interval. 0, -EINTR: the last one, or another error. */
static int one(struct soak *soak, const struct trial_config *config,
	       struct trial_result *result, struct mr_reason *why)
{
	struct session *session = soak->session;
	int err = session->search.run(session, config, result, why);

	if (err != 0)
		return err;
	add(soak, result);
	document_interval(session->document, session->frame_bytes, result);
	print_interval(soak, result);
	show_progress(soak);
	if (result->why_stopped[0] != '\0')
		err = fail_with(why, -EIO, "it broke off: %s",
				result->why_stopped);
	else if (result->is_cut_short)
		err = fail_with(why, -EINTR, "ended by a signal");
	trial_result_free(result);
	return err;
}

/* Until --duration is over; without it, until a signal. */
static int run(struct session *session, struct mr_reason *why)
{
	const struct search_options *o = &session->options;
	const uint64_t whole_ns = o->traffic.trial.duration_ns;
	struct trial_config config = session->search.trial;
	struct trial_result *result = calloc(1, sizeof(*result));
	struct soak soak = { .session = session };
	uint64_t left_ns = whole_ns != 0 ? whole_ns : UINT64_MAX;
	int err = 0;

	if (result == NULL)
		return fail_with(why, -ENOMEM, "out of memory");
	config.rate = (struct rate){ RATE_PPS, session->search.max_pps };
	while (err == 0 && left_ns > 0) {
		config.duration_ns =
			left_ns < o->interval_ns ? left_ns : o->interval_ns;
		err = one(&soak, &config, result, why);
		config.goes_on = true;
		left_ns -= whole_ns != 0 ? config.duration_ns : 0;
	}
	free(result);
	summarize(&soak);
	if (err == -EINTR && whole_ns == 0)
		err = 0; /* as it was to end */
	if (err == 0 && soak.median_ns.n == 0)
		err = fail_with(why, 1, "of %llu frames sent none came back",
				(unsigned long long)soak.sent);
	return err != 0                                                  ? err :
	       (double)soak.lost > o->loss_tolerance * (double)soak.sent ? 1 :
									   0;
}

int soak_main(int argc, char **argv)
{
	static const struct search_command command = {
		.name = "soak",
		.usage = "usage: mr-bench soak [options] TX RX [TX RX...]\n"
			 "A long run at --rate: loss and latency of each "
			 "interval, and what drifts.\n",
		.groups = OPTIONS_INTERVAL,
		.run = run,
	};

	return search_command_main(&command, argc, argv);
}

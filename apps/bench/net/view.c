/* SPDX-License-Identifier: BSD-3-Clause */
/* What tx, rx and loop show. */
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#include "net/away.h"
#include "net/device.h"
#include "net/view.h"
#include "stream/stream.h"

enum { TEXT = 32, MAX_STREAM_LINES = 16 };

#define SECOND 1000000000ull

const char *view_scaled(double value, char *text, size_t n_bytes)
{
	static const char *const units[] = { "", "k", "M", "G" };
	uint32_t i = 0;

	while (value >= 999.9995 && i < 3) {
		value /= 1000;
		i++;
	}
	snprintf(text, n_bytes, "%.*f %s",
		 value >= 100 ? 1 :
		 value >= 10  ? 2 :
				3,
		 value, units[i]);
	return text;
}

const char *view_time(double ns, char *text, size_t n_bytes)
{
	if (ns < 1e3)
		snprintf(text, n_bytes, "%.0f ns", ns);
	else if (ns < 1e6)
		snprintf(text, n_bytes, "%.2f us", ns / 1e3);
	else if (ns < 1e9)
		snprintf(text, n_bytes, "%.2f ms", ns / 1e6);
	else
		snprintf(text, n_bytes, "%.3f s", ns / 1e9);
	return text;
}

static void print_left(const struct view *view, uint64_t now_ns)
{
	if (view->duration_ns > now_ns)
		fprintf(view->to, "  %.0f s left",
			(double)(view->duration_ns - now_ns) / 1e9);
}

bool view_can_write(FILE *to)
{
	/* A pipe is ready if it has room for a page: no line is longer. */
	struct pollfd fd = { .fd = fileno(to), .events = POLLOUT };

	return poll(&fd, 1, 0) == 1;
}

void view_progress(void *opaque, const struct trial_result *r)
{
	struct view *view = opaque;
	const uint64_t now = r->whole_ns;
	const double seconds = (double)(now - view->then_ns) / 1e9;
	char rate[TEXT], bits[TEXT];

	if (view->next_ns == 0)
		view->next_ns = SECOND;
	if (view->to == NULL || now < view->next_ns ||
	    !view_can_write(view->to))
		return;
	if (r->n_runs > view->n_runs && r->n_runs > 1)
		fprintf(view->to,
			"%5.0f s  another run of tx has begun: number %" PRIu32
			"\n",
			(double)now / 1e9, r->n_runs);
	view->n_runs = r->n_runs;
	fprintf(view->to, "%5.0f s", (double)now / 1e9);
	if (view->has_tx) {
		const double pps = (double)(r->sent - view->sent) / seconds;

		fprintf(view->to, "  tx %sframes/s %sbit/s",
			view_scaled(pps, rate, TEXT),
			view_scaled(rate_l1_bps(pps, view->mean_bytes), bits,
				    TEXT));
		if (r->unsent > view->unsent)
			fprintf(view->to, "  unsent %" PRIu64,
				r->unsent - view->unsent);
	}
	if (view->has_rx) {
		fprintf(view->to, "  rx %sframes/s",
			view_scaled((double)(r->unique - view->unique) /
					    seconds,
				    rate, TEXT));
		if (!view->has_tx)
			fprintf(view->to, "  lost %" PRIu64, r->lost);
		if (r->foreign > view->foreign)
			fprintf(view->to, "  foreign %" PRIu64,
				r->foreign - view->foreign);
	}
	print_left(view, now);
	fprintf(view->to, "\n");
	fflush(view->to);
	view->then_ns = now;
	view->sent = r->sent;
	view->unsent = r->unsent;
	view->unique = r->unique;
	view->foreign = r->foreign;
	/* A line that came late is no reason for two at once. */
	while (view->next_ns <= now)
		view->next_ns += SECOND;
}

static void print_times(FILE *to, const char *name, const struct hist *hist)
{
	static const struct {
		const char *name;
		double at;
	} points[] = { { "p50", 50 },
		       { "p90", 90 },
		       { "p99", 99 },
		       { "p99.9", 99.9 },
		       { "p99.99", 99.99 } };
	char text[TEXT];

	if (hist->n == 0)
		return;
	fprintf(to, "%-10s min %s", name,
		view_time((double)hist->min, text, TEXT));
	for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++)
		fprintf(to, "  %s %s", points[i].name,
			view_time((double)hist_at(hist, points[i].at), text,
				  TEXT));
	fprintf(to, "  max %s\n", view_time((double)hist->max, text, TEXT));
}

static void print_sent(const struct view *view, const struct trial_result *r)
{
	char rate[TEXT], l1[TEXT], l2[TEXT], asked[TEXT];

	fprintf(view->to,
		"%-10s %" PRIu64 " frames in %.3f s: %sframes/s, %sbit/s with "
		"preamble, gap and FCS, %sbit/s with FCS\n",
		"sent", r->sent, (double)r->sending_ns / 1e9,
		view_scaled(r->tx_pps, rate, TEXT),
		view_scaled(rate_l1_bps(r->tx_pps, view->mean_bytes), l1, TEXT),
		view_scaled(rate_l2_bps(r->tx_pps, view->mean_bytes), l2,
			    TEXT));
	if (r->asked_pps == 0)
		return;
	fprintf(view->to,
		"%-10s %sframes/s; unsent %" PRIu64 " of %" PRIu64 "\n",
		"asked", view_scaled(r->asked_pps, asked, TEXT), r->unsent,
		r->due);
	print_times(view->to, "late by", &r->lateness);
}

static void print_received(const struct view *view, const struct tester *tester,
			   const struct trial_result *r)
{
	const double all = (double)(r->unique + r->lost);
	char rate[TEXT], error[TEXT];

	fprintf(view->to,
		"%-10s %" PRIu64 ": %sframes/s; lost %" PRIu64
		" (%.4g %%), twice %" PRIu64 ", out of order %" PRIu64
		", too old to tell %" PRIu64 ", foreign %" PRIu64 "\n",
		"received", r->received, view_scaled(r->rx_pps, rate, TEXT),
		r->lost, all > 0 ? 100 * (double)r->lost / all : 0,
		r->duplicates, r->reordered, r->too_old, r->foreign);
	if (r->n_runs > 1)
		fprintf(view->to, "%-10s %" PRIu32 " of tx, apart below\n",
			"runs", r->n_runs);
	print_times(view->to, "latency", &r->latency);
	if (r->latency.n > 0 && r->tail.rx_away_ns > 0)
		tail_print(&r->tail, "          ", view->to);
	if (r->latency.n > 0 || r->lateness.n > 0)
		fprintf(view->to, "%-10s %s, times are within %s\n", "clock",
			tester_clock_source(tester),
			view_time((double)r->clock_error_ns, error, TEXT));
}

static void print_directions(const struct view *view,
			     const struct trial_result *r)
{
	char p50[TEXT], p99[TEXT], max[TEXT];

	for (uint32_t i = 0; i < r->n_directions; i++) {
		const struct trial_direction *d = &r->directions[i];

		fprintf(view->to,
			"%-10s %s to %s: sent %" PRIu64 ", unsent %" PRIu64
			", received %" PRIu64 ", lost %" PRIu64
			" (%.4g %%), twice %" PRIu64 ", out of order %" PRIu64,
			"direction", d->from, d->to, d->sum.sent, d->unsent,
			d->sum.received, d->sum.lost,
			d->sum.sent > 0 ? 100 * (double)d->sum.lost /
						  (double)d->sum.sent :
					  0,
			d->sum.duplicates, d->sum.reordered);
		if (d->n_latencies > 0)
			fprintf(view->to, "; latency p50 %s  p99 %s  max %s",
				view_time((double)d->latency_p50_ns, p50, TEXT),
				view_time((double)d->latency_p99_ns, p99, TEXT),
				view_time((double)d->latency_max_ns, max,
					  TEXT));
		fprintf(view->to, "\n");
	}
}

static void print_streams(const struct view *view, const struct tester *tester,
			  const struct trial_result *r)
{
	for (uint32_t i = 0; r->n_streams > 1 && i < r->n_streams; i++) {
		const struct trial_lane *lane = &r->streams[i];
		char run[TEXT] = "";

		if (lane->run > 0 && r->n_runs > 1)
			snprintf(run, sizeof(run), "of run %" PRIu32 ", ",
				 lane->run);
		if (i == MAX_STREAM_LINES) {
			fprintf(view->to, "%-10s %u more: --json has them\n",
				"stream", r->n_streams - i);
			return;
		}
		fprintf(view->to,
			"%-10s %s%u: sent %" PRIu64 ", received %" PRIu64
			", lost %" PRIu64 ", twice %" PRIu64
			", out of order %" PRIu64 "%s%s\n",
			"stream", run, lane->stream, lane->sent, lane->received,
			lane->lost, lane->duplicates, lane->reordered,
			view->has_tx ? "  " : "",
			view->has_tx ? streams_text(tester_streams(tester), i) :
				       "");
	}
}

static void print_device(const struct view *view, const struct tester *tester)
{
	struct device_counts c;

	for (uint32_t i = 0; tester_device_counts(tester, i, &c); i++)
		if (c.received > 0)
			fprintf(view->to,
				"%-10s %s: received %" PRIu64
				", forwarded %" PRIu64 ", lost %" PRIu64
				", doubled %" PRIu64 ", reordered %" PRIu64
				", corrupted %" PRIu64
				", over its rate %" PRIu64 ", held %" PRIu64
				"\n",
				"device", i == 0 ? "there" : "back", c.received,
				c.forwarded, c.lost, c.duplicated, c.reordered,
				c.corrupted, c.overrun, c.held);
}

/* At full speed what a thread does is for frames: what does one cost? */
static void print_threads(const struct view *view, const struct trial_result *r)
{
	const double n = (double)(r->sent + r->received);

	fprintf(view->to, "%-10s %.0f %% of the time with frames", "threads",
		100 * r->cpu_share);
	if (r->asked_pps == 0 && view->has_tx && n > 0)
		fprintf(view->to,
			"; CPU per frame sent or received: %.1f ns here, "
			"%.1f ns in the kernel",
			(double)r->user_ns / n, (double)r->system_ns / n);
	fprintf(view->to, "\n");
}

void view_summary(const struct view *view, const struct tester *tester,
		  const struct trial_result *r)
{
	if (view->to == NULL)
		return;
	if (view->has_tx)
		print_sent(view, r);
	if (view->has_rx)
		print_received(view, tester, r);
	print_directions(view, r);
	print_streams(view, tester, r);
	for (uint32_t i = 0; i < r->n_drops; i++)
		fprintf(view->to, "%-10s %s %s %s: %" PRIu64 "\n", "dropped",
			r->drops[i].port, r->drops[i].side, r->drops[i].name,
			r->drops[i].n);
	print_device(view, tester);
	print_threads(view, r);
}

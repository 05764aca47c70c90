/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the output formats. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report.h"

const struct report *report_choose(enum output output, bool is_quiet)
{
	if (output == OUTPUT_JSON)
		return &report_json;
	if (output == OUTPUT_CSV)
		return &report_csv;
	if (isatty(STDOUT_FILENO) && isatty(STDIN_FILENO) &&
	    getenv("TERM") != NULL && !is_quiet)
		return &report_live;
	return &report_text;
}

struct rates report_rates(const struct totals *now, const struct totals *before,
			  double seconds)
{
	const uint64_t drops = now->rx_drops + now->tx_drops +
			       now->device_drops - before->rx_drops -
			       before->tx_drops - before->device_drops;

	if (seconds <= 0)
		return (struct rates){ 0 };
	return (struct rates){
		.rx_pps = (now->rx_frames - before->rx_frames) / seconds,
		.rx_bps = 8 * (now->rx_bytes - before->rx_bytes) / seconds,
		.tx_pps = (now->tx_frames - before->tx_frames) / seconds,
		.tx_bps = 8 * (now->tx_bytes - before->tx_bytes) / seconds,
		.drops = drops / seconds,
		.rx_offloaded =
			(now->rx_offloaded - before->rx_offloaded) / seconds,
		.tx_offloaded =
			(now->tx_offloaded - before->tx_offloaded) / seconds,
		.offloaded_bps =
			8 * (now->offloaded_bytes - before->offloaded_bytes) /
			seconds,
	};
}

double report_drop_rate(const struct snapshot *now,
			const struct snapshot *before)
{
	const struct totals none = { 0 };
	const struct totals t = snapshot_totals(now);
	const struct totals b = before != NULL ? snapshot_totals(before) : none;
	const double seconds = now->t_s - (before != NULL ? before->t_s : 0);
	const uint64_t n_worker_drops =
		snapshot_worker_drops(now) -
		(before != NULL ? snapshot_worker_drops(before) : 0);

	return report_rates(&t, &b, seconds).drops +
	       (seconds > 0 ? n_worker_drops / seconds : 0);
}

void report_rates_row(const char *name, const struct rates *rates,
		      int n_columns, char *text, size_t n_bytes)
{
	static const char *const headings[] = { "rx frames/s", "rx bit/s",
						"tx frames/s", "tx bit/s",
						"drops/s" };
	const double values[] = {
		rates != NULL ? rates->rx_pps : 0,
		rates != NULL ? rates->rx_bps : 0,
		rates != NULL ? rates->tx_pps : 0,
		rates != NULL ? rates->tx_bps : 0,
		rates != NULL ? rates->drops : 0,
	};
	static const int widths[] = { 12, 9, 12, 9, 9 };
	int n_left = n_columns < REPORT_MIN_COLUMNS ? REPORT_MIN_COLUMNS :
		     n_columns > REPORT_MAX_COLUMNS ? REPORT_MAX_COLUMNS :
						      n_columns;
	size_t n = 0;

	for (uint32_t i = 0; i < 5; i++)
		n_left -= widths[i];
	n = (size_t)snprintf(text, n_bytes, "%-*.*s", n_left, n_left, name);
	for (uint32_t i = 0; i < 5 && n < n_bytes; i++) {
		char number[16];

		n += (size_t)snprintf(text + n, n_bytes - n, "%*s", widths[i],
				      rates == NULL ?
					      headings[i] :
					      report_scaled(values[i], number,
							    sizeof(number)));
	}
}

size_t report_fitting(const char *text, size_t width)
{
	const size_t n_text = strlen(text);
	size_t n = width;

	if (n_text <= width)
		return n_text;
	/* Leading blanks are indentation, not an end. */
	while (n > 0 && text[n] != ' ')
		n--;
	return n > strspn(text, " ") ? n : width;
}

const char *report_scaled(double value, char *text, size_t n_bytes)
{
	static const char *const units[] = { "", " k", " M", " G", " T" };
	uint32_t unit = 0;

	while (value >= 1000 && unit < 4) {
		value /= 1000;
		unit++;
	}
	snprintf(text, n_bytes, "%.*f%s",
		 unit == 0   ? 0 :
		 value < 10  ? 3 :
		 value < 100 ? 2 :
			       1,
		 value, units[unit]);
	return text;
}

double report_idle_percent(const struct worker_snapshot *now,
			   const struct worker_snapshot *before)
{
	const uint64_t busy = now->stats.busy_ns -
			      (before != NULL ? before->stats.busy_ns : 0);
	const uint64_t idle = now->stats.idle_ns -
			      (before != NULL ? before->stats.idle_ns : 0);

	/* No time counted: it sleeps longer than the interval. */
	return busy + idle == 0 ? 100 : 100.0 * idle / (busy + idle);
}

double report_awake_percent(const struct worker_snapshot *now,
			    const struct worker_snapshot *before)
{
	const struct mr_worker_stats none = { 0 };
	const struct mr_worker_stats *n = &now->stats;
	const struct mr_worker_stats *b = before ? &before->stats : &none;
	const uint64_t all = n->busy_ns - b->busy_ns + n->idle_ns - b->idle_ns;

	return all == 0 ? 0 : 100 - 100.0 * (n->asleep_ns - b->asleep_ns) / all;
}

double report_mean_burst(const struct worker_snapshot *now,
			 const struct worker_snapshot *before)
{
	const uint64_t bursts =
		now->bursts - (before != NULL ? before->bursts : 0);
	const uint64_t entries =
		now->entries - (before != NULL ? before->entries : 0);

	return bursts == 0 ? 0 : (double)entries / bursts;
}

void report_each_drop(const struct snapshot *snapshot, report_drop_fn *fn,
		      void *opaque)
{
	for (uint32_t p = 0; p < snapshot->n_ports; p++) {
		const struct port_snapshot *port = &snapshot->ports[p];

		for (uint32_t i = 0; i < port->n_device_drops; i++)
			if (port->device_drops[i].value > 0)
				fn(opaque, port->info.name,
				   port->device_drops[i].name,
				   port->device_drops[i].value);
		for (uint32_t d = 0; d < MR_STATS_SLOTS; d++) {
			uint64_t rx = 0, tx = 0;

			for (uint32_t i = 0; i < port->n_queues; i++) {
				rx += port->queues[i].rx.drops[d];
				tx += port->queues[i].tx.drops[d];
			}
			if (rx > 0)
				fn(opaque, port->info.name, mr_rx_drop_name(d),
				   rx);
			if (tx > 0)
				fn(opaque, port->info.name, mr_tx_drop_name(d),
				   tx);
		}
	}
	for (uint32_t d = 0; d < snapshot->app->n_drops; d++) {
		uint64_t n = 0;

		for (uint32_t w = 0; w < snapshot->n_workers; w++)
			n += snapshot->workers[w].drops[d];
		if (n > 0)
			fn(opaque, "workers", snapshot->app->drop_names[d], n);
	}
}

bool report_group(const struct snapshot *now, const struct snapshot *before,
		  uint32_t group, bool is_live, char *text, size_t n_bytes)
{
	const struct count_group *g = &now->app->groups[group];
	const double seconds = now->t_s - (before != NULL ? before->t_s : 0);
	const char *separator = ":";

	snprintf(text, n_bytes, "%s", g->label);
	for (uint32_t i = 0; i < g->n_rows; i++) {
		const struct count_row *row = &g->rows[i];
		const bool is_rate = is_live && row->live == LIVE_RATE;
		const uint64_t n = now->groups[group][i];
		const uint64_t b =
			before != NULL ? before->groups[group][i] : 0;
		const size_t n_text = strlen(text);
		char number[24];

		if (is_live && row->live == LIVE_NOTHING)
			continue;
		if (is_rate)
			report_scaled(seconds > 0 ? (n - b) / seconds : 0,
				      number, sizeof(number));
		else
			snprintf(number, sizeof(number), "%" PRIu64, n);
		snprintf(text + n_text, n_bytes - n_text, "%s %s %s%s",
			 separator, number, row->label, is_rate ? "/s" : "");
		separator = ",";
	}
	return separator[0] == ',';
}

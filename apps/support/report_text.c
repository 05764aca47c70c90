/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines for people: a short one per second, and the summary at the end. */
#include <inttypes.h>
#include <stdio.h>

#include "report.h"
#include "text.h"

static bool text_begin(void)
{
	return true;
}

static bool text_show(const struct snapshot *now, const struct snapshot *before)
{
	const struct totals t = snapshot_totals(now);
	const struct totals b =
		before != NULL ? snapshot_totals(before) : (struct totals){ 0 };
	const double seconds = now->t_s - (before != NULL ? before->t_s : 0);
	const struct rates rates = report_rates(&t, &b, seconds);
	double idle = 0, awake = 0;
	char rx[16], tx[16], rx_bits[16], tx_bits[16];

	for (uint32_t w = 0; w < now->n_workers; w++) {
		const struct worker_snapshot *then =
			before != NULL ? &before->workers[w] : NULL;

		idle += report_idle_percent(&now->workers[w], then);
		awake += report_awake_percent(&now->workers[w], then);
	}
	printf("%6.1f s  rx %sframes/s %sbit/s  tx %sframes/s %sbit/s  drops "
	       "%.0f/s  "
	       "idle %.0f %%, awake %.0f %%\n",
	       now->t_s, report_scaled(rates.rx_pps, rx, sizeof(rx)),
	       report_scaled(rates.rx_bps, rx_bits, sizeof(rx_bits)),
	       report_scaled(rates.tx_pps, tx, sizeof(tx)),
	       report_scaled(rates.tx_bps, tx_bits, sizeof(tx_bits)),
	       report_drop_rate(now, before), idle / now->n_workers,
	       awake / now->n_workers);
	return fflush(stdout) == 0;
}

static void print_drop(void *opaque, const char *where, const char *name,
		       uint64_t n_frames)
{
	(void)opaque;
	char escaped[4 * sizeof(((struct mr_port_info *)NULL)->name)];

	printf("  dropped %s: %s %" PRIu64 "\n",
	       text_escape(where, escaped, sizeof(escaped)), name, n_frames);
}

static void print_port(const struct port_snapshot *port, double seconds)
{
	const struct totals t = snapshot_port_totals(port);
	char rx[16], tx[16], name[4 * sizeof(port->info.name)];

	if (seconds <= 0)
		seconds = 1;
	printf("%s (%s%s%s): rx %" PRIu64 " frames (%sframes/s), tx %" PRIu64
	       " frames (%sframes/s)\n",
	       text_escape(port->info.name, name, sizeof(name)),
	       port->info.mode, port->info.why[0] != '\0' ? "; " : "",
	       port->info.why, t.rx_frames,
	       report_scaled(t.rx_frames / seconds, rx, sizeof(rx)),
	       t.tx_frames,
	       report_scaled(t.tx_frames / seconds, tx, sizeof(tx)));
}

bool report_summary(const struct snapshot *final)
{
	const struct totals t = snapshot_totals(final);
	const double seconds = final->t_s > 0 ? final->t_s : 1;
	char frames[16], bits[16], group[800];

	for (uint32_t p = 0; p < final->n_ports; p++)
		print_port(&final->ports[p], final->t_s);
	report_each_drop(final, print_drop, NULL);
	for (uint32_t w = 0; w < final->n_workers; w++)
		printf("worker %u: core %u, idle %.1f %%, awake %.1f %%, "
		       "mean burst %.1f\n",
		       w, final->workers[w].core,
		       report_idle_percent(&final->workers[w], NULL),
		       report_awake_percent(&final->workers[w], NULL),
		       report_mean_burst(&final->workers[w], NULL));
	for (uint32_t i = 0; i < final->app->n_groups; i++)
		if (report_group(final, NULL, i, false, group, sizeof(group)))
			printf("%s\n", group);
	if (final->app->note.text != NULL)
		printf("%s: %s\n", final->app->note.label,
		       final->app->note.text);
	printf("forwarded %" PRIu64 " frames in %.1f s: %sframes/s, %sbit/s\n",
	       t.tx_frames, final->t_s,
	       report_scaled(t.tx_frames / seconds, frames, sizeof(frames)),
	       report_scaled(8 * t.tx_bytes / seconds, bits, sizeof(bits)));
	printf("accounting invariants %s%s\n",
	       final->invariants_hold ? "hold" : "DO NOT hold: ",
	       final->broken_invariant);
	printf("pages: %" PRIu64 " of %" PRIu64 " came back%s\n",
	       final->pool.n_free, final->pool.n_pages,
	       final->is_conserved ? "" : ": NOT conserved");
	return fflush(stdout) == 0;
}

const struct report report_text = {
	.begin = text_begin,
	.show = text_show,
	.end = report_summary,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines for people: a short one per second, and the summary at the end. */
#include <inttypes.h>
#include <stdio.h>

#include "report.h"
#include "text.h"

enum { RATE_BYTES = 32 };

/* "4.000 kframes/s", "0 frames/s". */
static const char *rate(double value, const char *unit, char *text,
			size_t n_bytes)
{
	char number[16];

	snprintf(text, n_bytes, "%s%s%s",
		 report_scaled(value, number, sizeof(number)),
		 value < 1000 ? " " : "", unit);
	return text;
}

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
	char rx[RATE_BYTES], tx[RATE_BYTES];
	char rx_bits[RATE_BYTES], tx_bits[RATE_BYTES];

	for (uint32_t w = 0; w < now->n_workers; w++) {
		const struct worker_snapshot *then =
			before != NULL ? &before->workers[w] : NULL;

		idle += report_idle_percent(&now->workers[w], then);
		awake += report_awake_percent(&now->workers[w], then);
	}
	printf("%6.1f s  rx %s %s  tx %s %s  ", now->t_s,
	       rate(rates.rx_pps + rates.rx_offloaded, "frames/s", rx,
		    sizeof(rx)),
	       rate(rates.rx_bps + rates.offloaded_bps, "bit/s", rx_bits,
		    sizeof(rx_bits)),
	       rate(rates.tx_pps + rates.tx_offloaded, "frames/s", tx,
		    sizeof(tx)),
	       rate(rates.tx_bps + rates.offloaded_bps, "bit/s", tx_bits,
		    sizeof(tx_bits)));
	if (snapshot_has_rules(now))
		printf("offloaded rx %s tx %s  ",
		       rate(rates.rx_offloaded, "frames/s", rx, sizeof(rx)),
		       rate(rates.tx_offloaded, "frames/s", tx, sizeof(tx)));
	printf("drops %.0f/s  idle %.0f %%, awake %.0f %%\n",
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
	char rx[RATE_BYTES], tx[RATE_BYTES], name[4 * sizeof(port->info.name)];

	if (seconds <= 0)
		seconds = 1;
	printf("%s (%s%s%s): rx %" PRIu64 " frames (%s), tx %" PRIu64
	       " frames (%s)",
	       text_escape(port->info.name, name, sizeof(name)),
	       port->info.mode, port->info.why[0] != '\0' ? "; " : "",
	       port->info.why, t.rx_frames,
	       rate(t.rx_frames / seconds, "frames/s", rx, sizeof(rx)),
	       t.tx_frames,
	       rate(t.tx_frames / seconds, "frames/s", tx, sizeof(tx)));
	if (port->has_rules)
		printf(", and by rules: rx %" PRIu64 ", tx %" PRIu64,
		       t.rx_offloaded, t.tx_offloaded);
	printf("\n");
}

static void print_forwarded(const struct snapshot *final)
{
	const struct totals t = snapshot_totals(final);
	const double seconds = final->t_s > 0 ? final->t_s : 1;
	const double n_frames = (double)(t.tx_frames + t.tx_offloaded);
	const double n_bytes = (double)(t.tx_bytes + t.offloaded_bytes);
	char frames[RATE_BYTES], bits[RATE_BYTES];

	printf("forwarded %" PRIu64 " frames in %.1f s: %s, %s",
	       t.tx_frames + t.tx_offloaded, final->t_s,
	       rate(n_frames / seconds, "frames/s", frames, sizeof(frames)),
	       rate(8 * n_bytes / seconds, "bit/s", bits, sizeof(bits)));
	if (snapshot_has_rules(final))
		printf("; %" PRIu64 " of them by rules", t.tx_offloaded);
	printf("\n");
}

bool report_summary(const struct snapshot *final)
{
	char group[800];

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
	print_forwarded(final);
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

/* SPDX-License-Identifier: BSD-3-Clause */
/* Lines for people: a short one per second, and the summary at the end. */
#include <inttypes.h>
#include <stdio.h>

#include "report.h"
#include "text.h"

enum { RATE_BYTES = 32 };

/* Rates between two snapshots, per second. */
struct rates {
	double rx_pps, rx_bps, tx_pps, tx_bps;
	double drops;                      /* of ports and workers */
	double rx_offloaded, tx_offloaded; /* frames; not in rx_pps, tx_pps */
	double offloaded_bps;
};

static struct rates rates_between(const struct snapshot *now,
				  const struct snapshot *before)
{
	const struct totals n = snapshot_totals(now);
	struct totals b = { 0 };
	double seconds = now->t_s;
	uint64_t n_drops = n.rx_drops + n.tx_drops + n.device_drops +
			   snapshot_worker_drops(now);

	if (before != NULL) {
		b = snapshot_totals(before);
		seconds -= before->t_s;
		n_drops -= b.rx_drops + b.tx_drops + b.device_drops +
			   snapshot_worker_drops(before);
	}
	if (seconds <= 0)
		return (struct rates){ 0 };
	return (struct rates){
		.rx_pps = (n.rx_frames - b.rx_frames) / seconds,
		.rx_bps = 8 * (n.rx_bytes - b.rx_bytes) / seconds,
		.tx_pps = (n.tx_frames - b.tx_frames) / seconds,
		.tx_bps = 8 * (n.tx_bytes - b.tx_bytes) / seconds,
		.drops = n_drops / seconds,
		.rx_offloaded = (n.rx_offloaded - b.rx_offloaded) / seconds,
		.tx_offloaded = (n.tx_offloaded - b.tx_offloaded) / seconds,
		.offloaded_bps =
			8 * (n.offloaded_bytes - b.offloaded_bytes) / seconds,
	};
}

/* "12.3 M" for 12300000. */
static const char *scale_number(double value, char *text, size_t n_bytes)
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

/* "4.000 kframes/s", "0 frames/s". */
static const char *rate_text(double value, const char *unit, char *text,
			     size_t n_bytes)
{
	char number[16];

	snprintf(text, n_bytes, "%s%s%s",
		 scale_number(value, number, sizeof(number)),
		 value < 1000 ? " " : "", unit);
	return text;
}

/* What a worker did between two snapshots. */
struct work {
	double idle_percent;  /* of the time, without work or asleep */
	double awake_percent; /* of the time */
	double mean_burst;    /* frames */
};

static struct work work_between(const struct worker_snapshot *now,
				const struct worker_snapshot *before)
{
	const struct worker_snapshot none = { 0 };
	const struct worker_snapshot *b = before != NULL ? before : &none;
	const uint64_t idle = now->stats.idle_ns - b->stats.idle_ns;
	const uint64_t all = now->stats.busy_ns - b->stats.busy_ns + idle;
	const uint64_t asleep = now->stats.asleep_ns - b->stats.asleep_ns;
	const uint64_t n_bursts = now->bursts - b->bursts;
	/* No time counted: it sleeps longer than the interval. */
	struct work work = { .idle_percent = 100 };

	if (all > 0) {
		work.idle_percent = 100.0 * idle / all;
		work.awake_percent = 100 - 100.0 * asleep / all;
	}
	if (n_bursts > 0)
		work.mean_burst =
			(double)(now->entries - b->entries) / n_bursts;
	return work;
}

static bool show_text(const struct snapshot *now, const struct snapshot *before)
{
	const struct rates rates = rates_between(now, before);
	double idle = 0, awake = 0;
	char rx[RATE_BYTES], tx[RATE_BYTES];
	char rx_bits[RATE_BYTES], tx_bits[RATE_BYTES];

	for (uint32_t w = 0; w < now->n_workers; w++) {
		const struct work work = work_between(
			&now->workers[w],
			before != NULL ? &before->workers[w] : NULL);

		idle += work.idle_percent;
		awake += work.awake_percent;
	}
	printf("%6.1f s  rx %s %s  tx %s %s  ", now->t_s,
	       rate_text(rates.rx_pps + rates.rx_offloaded, "frames/s", rx,
			 sizeof(rx)),
	       rate_text(rates.rx_bps + rates.offloaded_bps, "bit/s", rx_bits,
			 sizeof(rx_bits)),
	       rate_text(rates.tx_pps + rates.tx_offloaded, "frames/s", tx,
			 sizeof(tx)),
	       rate_text(rates.tx_bps + rates.offloaded_bps, "bit/s", tx_bits,
			 sizeof(tx_bits)));
	if (snapshot_has_rules(now))
		printf("offloaded rx %s tx %s  ",
		       rate_text(rates.rx_offloaded, "frames/s", rx,
				 sizeof(rx)),
		       rate_text(rates.tx_offloaded, "frames/s", tx,
				 sizeof(tx)));
	printf("drops %.0f/s  idle %.0f %%, awake %.0f %%\n", rates.drops,
	       idle / now->n_workers, awake / now->n_workers);
	return fflush(stdout) == 0;
}

static void print_drop(const char *where, const char *name, uint64_t n_frames)
{
	char escaped[4 * sizeof(((struct mr_port_info *)NULL)->name)];

	if (n_frames == 0)
		return;
	printf("  dropped %s: %s %" PRIu64 "\n",
	       text_escape(where, escaped, sizeof(escaped)), name, n_frames);
}

/* Each named drop of ports and workers. */
static void print_drops(const struct snapshot *snapshot)
{
	for (uint32_t p = 0; p < snapshot->n_ports; p++) {
		const struct port_snapshot *port = &snapshot->ports[p];

		for (uint32_t i = 0; i < port->n_device_drops; i++)
			print_drop(port->info.name, port->device_drops[i].name,
				   port->device_drops[i].value);
		for (uint32_t d = 0; d < MR_STATS_SLOTS; d++) {
			uint64_t rx = 0, tx = 0;

			for (uint32_t i = 0; i < port->n_queues; i++) {
				rx += port->queues[i].rx.drops[d];
				tx += port->queues[i].tx.drops[d];
			}
			print_drop(port->info.name, mr_rx_drop_name(d), rx);
			print_drop(port->info.name, mr_tx_drop_name(d), tx);
		}
	}
	for (uint32_t d = 0; d < snapshot->app->n_drops; d++) {
		uint64_t n = 0;

		for (uint32_t w = 0; w < snapshot->n_workers; w++)
			n += snapshot->workers[w].drops[d];
		print_drop("workers", snapshot->app->drop_names[d], n);
	}
}

/* A line: "addresses: 2 known, 1 learned". */
static void print_group(const struct count_group *group, const uint64_t *counts)
{
	printf("%s", group->label);
	for (uint32_t i = 0; i < group->n_rows; i++)
		printf("%s %" PRIu64 " %s", i == 0 ? ":" : ",", counts[i],
		       group->rows[i].label);
	printf("\n");
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
	       rate_text(t.rx_frames / seconds, "frames/s", rx, sizeof(rx)),
	       t.tx_frames,
	       rate_text(t.tx_frames / seconds, "frames/s", tx, sizeof(tx)));
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
	       rate_text(n_frames / seconds, "frames/s", frames,
			 sizeof(frames)),
	       rate_text(8 * n_bytes / seconds, "bit/s", bits, sizeof(bits)));
	if (snapshot_has_rules(final))
		printf("; %" PRIu64 " of them by rules", t.tx_offloaded);
	printf("\n");
}

static bool show_summary(const struct snapshot *final)
{
	for (uint32_t p = 0; p < final->n_ports; p++)
		print_port(&final->ports[p], final->t_s);
	print_drops(final);
	for (uint32_t w = 0; w < final->n_workers; w++) {
		const struct work work = work_between(&final->workers[w], NULL);

		printf("worker %u: core %u, idle %.1f %%, awake %.1f %%, "
		       "mean burst %.1f\n",
		       w, final->workers[w].core, work.idle_percent,
		       work.awake_percent, work.mean_burst);
	}
	for (uint32_t i = 0; i < final->app->n_groups; i++)
		print_group(&final->app->groups[i], final->groups[i]);
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
	.show = show_text,
	.end = show_summary,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* What the forms have in common. */
#include "report.h"

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
	};
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

	/* No time counted: it is in a sleep longer than the interval. */
	return busy + idle == 0 ? 100 : 100.0 * idle / (busy + idle);
}

double report_mean_burst(const struct worker_snapshot *now,
			 const struct worker_snapshot *before)
{
	const uint64_t bursts = now->forward.bursts -
				(before != NULL ? before->forward.bursts : 0);
	const uint64_t entries = now->forward.entries -
				 (before != NULL ? before->forward.entries : 0);

	return bursts == 0 ? 0 : (double)entries / bursts;
}

void report_each_drop(const struct snapshot *snapshot, report_drop_fn *fn,
		      void *opaque)
{
	for (uint32_t p = 0; p < snapshot->n_ports; p++) {
		const struct port_snapshot *port = &snapshot->ports[p];

		for (uint32_t i = 0; i < port->n_device_drops; i++)
			if (port->device_drops[i].n_frames > 0)
				fn(opaque, port->info.name,
				   port->device_drops[i].name,
				   port->device_drops[i].n_frames);
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
	for (uint32_t d = 0; d < N_FORWARD_DROPS; d++) {
		uint64_t n = 0;

		for (uint32_t w = 0; w < snapshot->n_workers; w++)
			n += snapshot->workers[w].forward.drops[d];
		if (n > 0)
			fn(opaque, "workers", forward_drop_name(d), n);
	}
}

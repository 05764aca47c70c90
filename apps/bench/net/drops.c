/* SPDX-License-Identifier: BSD-3-Clause */
/* Loss counters of ports. */
#include <stdio.h>
#include <string.h>

#include "net/drops.h"

enum { MAX_DEVICE_DROPS = 32 };

static void add_row(struct drop_rows *to, const struct trial_drop *row)
{
	if (to->n < to->room)
		to->rows[to->n++] = *row;
}

static void add_named(struct drop_rows *to, struct trial_drop row,
		      const char *side, const char *name, uint64_t n)
{
	snprintf(row.side, sizeof(row.side), "%s", side);
	snprintf(row.name, sizeof(row.name), "%s", name);
	row.n = n;
	row.is_departure = side[0] == 't' || strncmp(name, "tx", 2) == 0;
	add_row(to, &row);
}

static void add_queues(struct drop_rows *to, struct mr_port *port,
		       struct trial_drop row)
{
	uint64_t rx[MR_STATS_SLOTS] = { 0 }, tx[MR_STATS_SLOTS] = { 0 };
	struct mr_rx_stats rx_stats = { .size = sizeof(rx_stats) };
	struct mr_tx_stats tx_stats = { .size = sizeof(tx_stats) };
	struct mr_rxq *rxq;
	struct mr_txq *txq;

	for (uint32_t q = 0; (rxq = mr_port_rxq(port, q)) != NULL; q++) {
		mr_rxq_stats(rxq, &rx_stats);
		for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
			rx[i] += rx_stats.drops[i];
	}
	for (uint32_t q = 0; (txq = mr_port_txq(port, q)) != NULL; q++) {
		mr_txq_stats(txq, &tx_stats);
		for (uint32_t i = 0; i < MR_STATS_SLOTS; i++)
			tx[i] += tx_stats.drops[i];
	}
	for (uint32_t i = 0; mr_rx_drop_name(i) != NULL; i++)
		add_named(to, row, "rx", mr_rx_drop_name(i), rx[i]);
	for (uint32_t i = 0; mr_tx_drop_name(i) != NULL; i++)
		add_named(to, row, "tx", mr_tx_drop_name(i), tx[i]);
}

/* Add all loss counters of a port, always in the same order. */
static void add_port(struct drop_rows *to, struct mr_port *port,
		     bool is_receivers)
{
	struct trial_drop row = { .from = port, .is_receivers = is_receivers };
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_named_count lost[MAX_DEVICE_DROPS];
	const uint32_t n = mr_port_device_drops(port, lost, MAX_DEVICE_DROPS);

	mr_port_info(port, &info);
	snprintf(row.port, sizeof(row.port), "%s", info.name);
	add_queues(to, port, row);
	for (uint32_t i = 0; i < n && i < MAX_DEVICE_DROPS; i++)
		add_named(to, row, "dev", lost[i].name, lost[i].value);
}

void drops_since(struct drop_rows *now, const struct trial_drop *before)
{
	const uint32_t n = now->n;

	now->n = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct trial_drop row = now->rows[i];

		/* A device's counter may fall: after a reset, or if it is the
		 * difference of two counters that are read one by one. */
		row.n = row.n > before[i].n ? row.n - before[i].n : 0;
		if (row.n > 0)
			add_row(now, &row);
	}
}

void drops_read(struct drop_rows *ret, struct mr_port *const *ports,
		uint32_t n_ports, uint32_t receivers,
		const struct trial_drop *before)
{
	ret->n = 0;
	for (uint32_t p = 0; p < n_ports; p++)
		add_port(ret, ports[p], receivers >> p & 1);
	if (before != NULL)
		drops_since(ret, before);
}

/* A device without a link keeps the frames in its queues. With a link it sends
 * them, even if it reports that late. */
static uint64_t n_stuck(struct mr_port *port)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };
	struct mr_link link;
	struct mr_txq *txq;
	uint64_t n = 0;

	if (mr_port_link(port, &link) < 0 || (link.is_up && !link.is_gone))
		return 0;
	for (uint32_t q = 0; (txq = mr_port_txq(port, q)) != NULL; q++) {
		mr_txq_stats(txq, &stats);
		n += stats.pending;
	}
	return n;
}

static uint64_t sum_of(const struct drop_rows *moved,
		       const struct mr_port *port, bool is_departure)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < moved->n; i++)
		if (moved->rows[i].from == port &&
		    moved->rows[i].is_departure == is_departure)
			n += moved->rows[i].n;
	return n;
}

uint64_t drops_unsent(const struct drop_rows *moved, struct mr_port *port)
{
	return sum_of(moved, port, true) + n_stuck(port);
}

uint64_t drops_received(const struct drop_rows *moved, struct mr_port *port)
{
	return sum_of(moved, port, false);
}

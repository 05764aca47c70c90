/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The module's driver table: opening, closing, statistics.
 *
 * Opening: start EAL -> find the device -> register the region -> view ->
 * create queues -> configure and start the device. Closing is the reverse. Both
 * hold the lock of mri_dpdk_enter(), which is global, but not while waiting for
 * the link.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "dpdk.h"

static int alloc_queue(struct dpdk_port *port, uint32_t i)
{
	struct mr_port *base = port->base;
	struct dpdk_rxq *rxq = &port->rxqs[i];
	struct dpdk_txq *txq = &port->txqs[i];

	rxq->port = txq->port = port;
	rxq->view = txq->view = port->view;
	rxq->port_id = txq->port_id = port->port_id;
	rxq->region = base->base;
	rxq->base.burst = mri_dpdk_rx_burst;
	rxq->base.queue.arm = mri_dpdk_rx_arm;
	txq->base.burst = mri_dpdk_tx_burst;
	txq->base.queue.arm = mri_dpdk_tx_arm;
	rxq->stash =
		mr_alloc(base->ctx, 0, MR_BURST_MAX * sizeof(rxq->stash[0]));
	/* More than the ring takes, so that the device runs out first. */
	txq->tally = mri_dpdk_tally_open(
		port->view, port->options.ring_entries + MR_MAX_SEGS);
	if (rxq->stash == NULL || txq->tally == NULL)
		return -ENOMEM;
	txq->tag = txq->tally->tag;
	txq->extras = &txq->tally->extras;
	return 0;
}

static int alloc_queues(struct dpdk_port *port, struct mr_reason *reason)
{
	struct mr_port *base = port->base;
	const uint32_t n = port->options.n_queues;
	int err = mr_port_make_queues(base, n, sizeof(port->rxqs[0]),
				      sizeof(port->txqs[0]), reason);

	if (err < 0)
		return err;
	port->rxqs = (struct dpdk_rxq *)base->rxqs[0];
	port->txqs = (struct dpdk_txq *)base->txqs[0];
	port->n_queues = n;
	for (uint32_t i = 0; i < n && err == 0; i++)
		err = alloc_queue(port, i);
	if (err < 0)
		return mr_fail(reason, err, "%s: no memory for %u queues",
			       base->info->name, n);
	return 0;
}

static void free_queues(struct dpdk_port *port)
{
	const struct mr_ctx *ctx = port->base->ctx;

	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct dpdk_txq *txq = &port->txqs[i];

		mr_free(ctx, port->rxqs[i].stash);
		if (txq->tally != NULL)
			mri_dpdk_tally_close(txq->tally,
					     mri_dpdk_tx_awaited(txq),
					     txq->n_inner);
	}
}

/* Undo as much of opening as was done. */
static void tear_down(struct dpdk_port *port)
{
	mri_dpdk_queues_close(port);
	mri_dpdk_control_close(port);
	mri_dpdk_device_stop(port);
	free_queues(port);
	mri_dpdk_memory_close(port);
	mri_dpdk_device_give_back(port);
}

static int open_steps(struct dpdk_port *port, const struct mr_spec *spec,
		      struct mr_reason *reason)
{
	struct mr_ctx *ctx = port->base->ctx;
	int err;

	if ((err = mri_dpdk_read_options(spec, &port->options, reason)) < 0 ||
	    (err = mri_dpdk_eal_start(ctx, port->options.eal, reason)) < 0 ||
	    (err = mri_dpdk_device_find(port, mr_spec_device(spec), reason)) <
		    0 ||
	    (err = mri_dpdk_memory_open(port, reason)) < 0 ||
	    (err = alloc_queues(port, reason)) < 0 ||
	    (err = mri_dpdk_device_start(port, reason)) < 0 ||
	    (err = mri_dpdk_control_open(port, reason)) < 0)
		return err;
	return 0;
}

static int dpdk_open(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_reason *reterr_reason)
{
	struct dpdk_port *port = mr_alloc(base->ctx, 0, sizeof(*port));
	int err;

	if (port == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "%s: no memory for a port", base->info->name);
	((struct mri_dpdk_room *)base)->port = port;
	port->base = base;
	port->port_id = RTE_MAX_ETHPORTS;
	mri_dpdk_enter(base->ctx);
	mri_dpdk_tally_sweep();
	err = open_steps(port, spec, reterr_reason);
	if (err < 0)
		tear_down(port);
	else
		mri_dpdk_add_port(port);
	mri_dpdk_leave();
	if (err < 0)
		mr_free(base->ctx, port);
	return err;
}

static void dpdk_close(struct mr_port *base)
{
	struct dpdk_port *port = dpdk_port_of(base);

	mri_dpdk_enter(base->ctx);
	mri_dpdk_remove_port(port);
	tear_down(port);
	mri_dpdk_leave();
	mr_free(base->ctx, port);
}

static void dpdk_txq_stats(const struct mr_txq *base, struct mr_tx_stats *stats)
{
	const struct dpdk_txq *txq = (const struct dpdk_txq *)base;

	stats->completed +=
		__atomic_load_n(&txq->tally->n_elsewhere, __ATOMIC_RELAXED);
	stats->pending = stats->accepted - stats->completed;
	for (int i = 0; i < MR_STATS_SLOTS; i++)
		stats->pending -= stats->drops[i];
}

static const struct mr_driver driver = {
	.name = "dpdk",
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.port_bytes = sizeof(struct mri_dpdk_room),
	.open = dpdk_open,
	.close = dpdk_close,
	.poll = mri_dpdk_poll,
	.link = mri_dpdk_link,
	.device_drops = mri_dpdk_device_drops,
	.set_promisc = mri_dpdk_set_promisc,
	.set_allmulti = mri_dpdk_set_allmulti,
	.set_mtu = mri_dpdk_set_mtu,
	.set_mac = mri_dpdk_set_mac,
	.set_mac_filter = mri_dpdk_set_mac_filter,
	.set_rss = mri_dpdk_set_rss,
	.steer = mri_dpdk_steer,
	.unsteer = mri_dpdk_unsteer,
	.device_stats = mri_dpdk_device_stats,
	.rxq_stats = mri_dpdk_rules_stats,
	.txq_stats = dpdk_txq_stats,
	.rules = &mri_dpdk_rules_ops,
};

extern MR_API const struct mri_dpdk_module mri_dpdk_module;
const struct mri_dpdk_module mri_dpdk_module = {
	.version = MRI_DPDK_VERSION,
	.driver = &driver,
};

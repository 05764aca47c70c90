/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open a port again after its device has gone, at the same address, so that the
 * program's pointer stays valid and its counters continue. If that fails, the
 * port has no device, and one queue of each kind that moves no frames. Also:
 * add queues to a port.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "pool/hand_over.h"
#include "port/events.h"
#include "port/hand_over.h"
#include "port/offload.h"
#include "port/open.h"

static void absent_close(struct mr_port *port)
{
	(void)port;
}

static int absent_link(const struct mr_port *port, struct mr_link *ret_link)
{
	(void)port;
	*ret_link = (struct mr_link){ .is_gone = 1 };
	return 0;
}

static uint32_t absent_rx(struct mr_rxq *rxq, struct mr_cache *cache,
			  struct mr_frame *frames, struct mr_meta *meta,
			  uint32_t n)
{
	(void)rxq, (void)cache, (void)frames, (void)meta, (void)n;
	return 0;
}

static uint32_t absent_tx(struct mr_txq *txq, struct mr_cache *cache,
			  const struct mr_frame *frames,
			  const struct mr_meta *meta, uint32_t n)
{
	(void)meta;
	return mr_txq_lose(txq, cache, frames, n, MR_TX_DROP_PORT_GONE);
}

/* No event will come. */
static int absent_arm(struct mr_queue *queue)
{
	(void)queue;
	return 0;
}

static const struct mr_driver absent = {
	.name = "absent",
	.close = absent_close,
	.link = absent_link,
};

/* All members after the first 8 bytes are counters. */
static void add_counters(void *to, const void *from, size_t n_bytes)
{
	const uint64_t *f = from;
	uint64_t *t = to;

	for (size_t i = 1; i < n_bytes / sizeof(*t); i++)
		t[i] += f[i];
}

void mri_kept_add_rx(const struct mr_rxq *rxq, struct mr_rx_stats *stats)
{
	const struct mri_events *events = rxq->queue.port->events;

	if (rxq->queue.idx == 0 && events != NULL)
		add_counters(stats, &events->kept.rx, sizeof(*stats));
}

void mri_kept_add_tx(const struct mr_txq *txq, struct mr_tx_stats *stats)
{
	const struct mri_events *events = txq->queue.port->events;

	if (txq->queue.idx == 0 && events != NULL)
		add_counters(stats, &events->kept.tx, sizeof(*stats));
}

static struct mri_kept *kept_of(const struct mr_port *port)
{
	struct mri_events *events = port->events;

	return &events->kept;
}

/* Keep the counters of all queues. Pending frames are lost with the device. */
static void keep_counters(struct mr_port *port)
{
	struct mri_kept *kept = kept_of(port);
	struct mr_rx_stats rx = { .size = sizeof(rx) }, one_rx = rx;
	struct mr_tx_stats tx = { .size = sizeof(tx) }, one_tx = tx;

	for (uint32_t i = 0; i < port->info->n_rxqs; i++)
		if (mr_rxq_stats(port->rxqs[i], &one_rx) == 0)
			add_counters(&rx, &one_rx, sizeof(rx));
	for (uint32_t i = 0; i < port->info->n_txqs; i++)
		if (mr_txq_stats(port->txqs[i], &one_tx) == 0)
			add_counters(&tx, &one_tx, sizeof(tx));
	tx.drops[MR_TX_DROP_PORT_GONE] += tx.pending;
	tx.pending = 0;
	kept->rx = rx;
	kept->tx = tx;
}

/* Keep the device drops, with their names, which drivers may free. */
static void keep_drops(const struct mr_port *port)
{
	struct mri_kept *kept = kept_of(port);
	struct mr_named_count counts[MRI_KEPT_DROPS];
	struct mri_kept_drop drops[MRI_KEPT_DROPS];
	const uint32_t n = mri_min_u32(
		mr_port_device_drops(port, counts, MRI_KEPT_DROPS),
		MRI_KEPT_DROPS);

	for (uint32_t i = 0; i < n; i++) {
		snprintf(drops[i].name, sizeof(drops[i].name), "%s",
			 counts[i].name);
		drops[i].value = counts[i].value;
	}
	memcpy(kept->drops, drops, n * sizeof(drops[0]));
	kept->n_drops = n;
}

static uint32_t find_count(const struct mr_named_count *counts, uint32_t n,
			   const char *name)
{
	uint32_t i = 0;

	while (i < n && strcmp(counts[i].name, name) != 0)
		i++;
	return i;
}

uint32_t mr_port_device_drops(const struct mr_port *port,
			      struct mr_named_count *ret_counts, uint32_t n)
{
	const struct mri_kept *kept =
		port->events != NULL ? kept_of(port) : NULL;
	uint32_t n_all = port->driver->device_drops == NULL ?
				 0 :
				 port->driver->device_drops(port, ret_counts,
							    n);

	for (uint32_t k = 0; kept != NULL && k < kept->n_drops; k++) {
		const struct mri_kept_drop *drop = &kept->drops[k];
		const uint32_t n_there = n_all < n ? n_all : n;
		const uint32_t i = find_count(ret_counts, n_there, drop->name);

		if (i < n_there) {
			ret_counts[i].value += drop->value;
		} else {
			if (n_all < n)
				ret_counts[n_all] = (struct mr_named_count){
					drop->name, drop->value
				};
			n_all++;
		}
	}
	return n_all;
}

/* Reset a port to its state before it was opened, except what is kept. Other
 * threads may read its pointers to the events and the driver meanwhile. */
static void reset_port(struct mr_port *port, const struct mr_driver *driver,
		       const struct mr_spec *spec)
{
	struct mri_events *events = port->events;
	const struct mr_port_config config = { .size = sizeof(config),
					       .n_workers = port->n_workers,
					       .pool = port->pool };
	struct mr_ctx *ctx = port->ctx;
	char text[MRI_SPEC_MAX_BYTES];

	memcpy(text, events->kept.spec, sizeof(text));
	memset(&events->info, 0, sizeof(events->info));
	memset(port + 1, 0, (size_t)((char *)events - (char *)(port + 1)));
	port->n_committed_pages = port->n_queues_made = 0;
	port->rxqs = NULL;
	port->txqs = NULL;
	port->queue_memory = port->offload = NULL;
	mri_port_fill_head(port, ctx, driver, &config, spec, text);
}

/* Make it a port without a device. */
static void make_absent(struct mr_port *port, const struct mr_spec *spec)
{
	reset_port(port, &absent, spec);
	/* No pages, but mri_pool_commit() also counts ports. */
	(void)mri_pool_commit(port->pool, port->info->name, 0, port->n_workers,
			      NULL);
	if (mr_port_make_queues(port, 1, sizeof(struct mr_rxq),
				sizeof(struct mr_txq), NULL) == 0) {
		port->rxqs[0]->burst = absent_rx;
		port->rxqs[0]->n_min = 1;
		port->rxqs[0]->queue.arm = absent_arm;
		port->txqs[0]->burst = absent_tx;
		port->txqs[0]->queue.arm = absent_arm;
	}
	snprintf(port->info->mode, sizeof(port->info->mode), "absent");
	(void)mri_events_publish(port);
}

int mr_port_reopen(struct mr_port *port, struct mr_reason *reterr_reason)
{
	struct mri_kept *kept = kept_of(port);
	const struct mr_driver *driver;
	struct mr_spec spec;
	uint32_t n_pages;
	int err;

	if (port->rules != NULL)
		return mr_fail(reterr_reason, -EBUSY,
			       "%s: it has rules: close them first",
			       port->info->name);
	err = mri_pool_check_frozen(port->pool, reterr_reason);
	if (err == 0)
		err = mri_port_read(port->ctx, kept->spec, port->page_bytes,
				    &spec, &driver, &n_pages, reterr_reason);
	if (err < 0)
		return err;
	if (kept->driver == NULL)
		kept->driver = port->driver;
	/* The port's memory has the size that the first driver needs. By name:
	 * a module supplies a table of its own. */
	if (strcmp(driver->name, kept->driver->name) != 0)
		return mr_fail(reterr_reason, -ENODEV,
			       "%s: the device now needs another driver",
			       port->info->name);
	keep_counters(port);
	keep_drops(port);
	mri_port_end(port);
	reset_port(port, driver, &spec);
	err = mri_port_start(port, &spec, n_pages, NULL, reterr_reason);
	if (err < 0)
		make_absent(port, &spec);
	else
		mri_settings_repeat(port);
	return err;
}

/* Pages that each queue holds at most. */
static uint64_t pages_per_queue(const struct mr_port *port)
{
	const uint64_t n_bursts = (uint64_t)port->n_workers * MR_BURST_MAX;

	return (port->n_committed_pages - n_bursts) / port->info->n_rxqs;
}

int mr_port_add_queues(struct mr_port *port, struct mr_reason *reterr_reason)
{
	const struct mr_port_info *info = port->info;
	const uint32_t n = info->n_channels > info->n_rxqs ?
				   info->n_channels - info->n_rxqs :
				   0;
	uint64_t n_pages;
	int err;

	if (n == 0)
		return 0;
	if (port->driver->add_queues == NULL)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: driver %s cannot add queues to an open port",
			       info->name, port->driver->name);
	n_pages = n * pages_per_queue(port);
	err = mri_pool_commit(port->pool, info->name, n_pages, port->n_workers,
			      reterr_reason);
	if (err < 0)
		return err;
	err = mri_port_change(port)->add_queues(port, n, reterr_reason);
	if (err == 0)
		mri_offload_enter(port);
	/* mri_pool_commit() also counted a port; it still is only one. */
	mri_pool_uncommit(port->pool, err < 0 ? n_pages : 0);
	if (err < 0)
		return err;
	port->n_committed_pages += (uint32_t)n_pages; /* a pool has fewer */
	(void)mri_events_publish(port);
	return (int)n;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of the port's queues, and adding queues later. */
#include <errno.h>
#include <string.h>

#include "socket/queue.h"
#include "socket/socket.h"
#include "xdp.h"

static void free_queue(struct xdp_port *port, uint32_t i)
{
	const struct mr_ctx *ctx = port->base.ctx;

	mr_free(ctx, port->rxqs[i].posted);
	mr_free(ctx, port->txqs[i].postings);
	mr_free(ctx, port->txqs[i].ends);
	mr_free(ctx, port->txqs[i].times.ring);
}

void mri_xdp_queues_free(struct xdp_port *port)
{
	const struct mr_ctx *ctx = port->base.ctx;

	for (uint32_t i = 0; i < port->n_queues; i++)
		free_queue(port, i);
	mr_free(ctx, port->fds);
}

/* How many queues the port may have at most, after channels were added. */
static uint32_t most_queues(const struct xdp_port *port)
{
	const struct xdp_options *o = &port->options;
	const uint32_t n = o->n_queues, n_most = port->dev.n_most_rx_channels;

	if (port->role == XDP_CLIENT || o->partial || o->prog != NULL ||
	    o->map != NULL || n_most < n)
		return n;
	return n_most < XDP_MAX_QUEUES ? n_most : XDP_MAX_QUEUES;
}

static int alloc_queue(struct xdp_port *port, uint32_t i)
{
	struct mr_port *base = &port->base;
	const uint32_t chunk_shift = (uint32_t)__builtin_ctz(base->chunk_bytes);
	const uint64_t n_chunks = port->n_registered_bytes >> chunk_shift;
	struct xdp_rxq *rxq = &port->rxqs[i];
	struct xdp_txq *txq = &port->txqs[i];

	rxq->port = txq->port = port;
	rxq->chunk_shift = txq->chunk_shift = chunk_shift;
	txq->chunk_mask = base->chunk_bytes - 1;
	rxq->tailroom_bytes = base->tailroom_bytes;
	rxq->has_partial_csums = mri_xdp_has_partial_csums(port);
	rxq->base.burst = mri_xdp_rx_burst;
	rxq->base.queue.arm = mri_xdp_rx_arm;
	txq->base.burst = mri_xdp_tx_burst;
	txq->base.queue.arm = mri_xdp_tx_arm;
	rxq->posted = mr_alloc(base->ctx, 0, n_chunks);
	txq->postings =
		mr_alloc(base->ctx, 0, xdp_posting(port->n_registered_bytes));
	txq->ends = mr_alloc(base->ctx, 0,
			     (port->options.ring_entries + 63) / 64 * 8);
	if (rxq->posted == NULL || txq->postings == NULL || txq->ends == NULL)
		return -ENOMEM;
	return 0;
}

/* The number of tx queues: queue i sends by the device's tx channel i. */
static uint32_t count_txqs(const struct xdp_port *port,
			   const struct xdp_netdev *dev)
{
	const uint32_t first = port->options.first_queue;
	const uint32_t n =
		dev->n_tx_channels > first ? dev->n_tx_channels - first : 0;

	return n < port->n_queues ? n : port->n_queues;
}

int mri_xdp_queues_alloc(struct xdp_port *port, struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	const uint32_t n = port->options.n_queues;
	const uint32_t n_max = most_queues(port);
	int err = 0;

	if (mr_region_pin(base->region, base->info->name, 0) == -ENOTSUP)
		return mr_fail(reason, -ENOTSUP,
			       "%s: its pool is guarded (MR_SAFETY_GUARD), and "
			       "the device cannot register such memory: choose "
			       "a lower safety level",
			       base->info->name);
	/* Looked up once: tables and registration must agree. */
	port->n_registered_bytes = mr_region_n_contiguous_bytes(base->region);
	if (!mr_pool_is_below(base->pool, port->n_registered_bytes))
		return mr_fail(reason, -EINVAL,
			       "%s: its pool lies behind a gap of its region, "
			       "and a device can only register what is in one "
			       "piece from the region's start: make that pool "
			       "the first of the region, or give it a region",
			       base->info->name);
	err = mr_port_make_queues(base, n_max, sizeof(port->rxqs[0]),
				  sizeof(port->txqs[0]), reason);
	if (err < 0)
		return err;
	base->info->n_rxqs = n;
	port->rxqs = (struct xdp_rxq *)base->rxqs[0];
	port->txqs = (struct xdp_txq *)base->txqs[0];
	port->fds = mr_alloc(base->ctx, 0, n_max * sizeof(port->fds[0]));
	if (port->fds == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for %u queues",
			       base->info->name, n);
	memset(port->fds, 0xff, n_max * sizeof(port->fds[0])); /* -1 */
	port->n_queues_max = n_max;
	port->n_queues = n; /* from here on mri_xdp_release() has queues */
	for (uint32_t i = 0; i < n && err == 0; i++)
		err = alloc_queue(port, i);
	if (err < 0)
		return mr_fail(reason, err, "%s: no memory for %u queues",
			       base->info->name, n);
	base->info->n_txqs = count_txqs(port, &port->dev);
	return 0;
}

/* Add a queue while the sockets of the others are in use. */
static int add_queue(struct xdp_port *port, struct mr_reason *reason)
{
	const struct xdp_bind_mode bind_mode = {
		.is_zc = port->n_zc_queues > 0, .max_segs = port->max_segs
	};
	const uint32_t i = port->n_queues;
	bool is_final;
	int err = alloc_queue(port, i);

	if (err < 0)
		mr_fail(reason, err, "%s: no memory for queue %u",
			port->base.info->name, i);
	if (err == 0)
		err = mri_xdp_times_open_queue(port, i, reason);
	if (err == 0)
		err = mri_xdp_socket_open(port, i, bind_mode, &is_final,
					  reason);
	if (err < 0) {
		mri_xdp_socket_close(port, i);
		free_queue(port, i);
		memset((uint8_t *)&port->rxqs[i] + sizeof(struct mr_rxq), 0,
		       sizeof(port->rxqs[i]) - sizeof(struct mr_rxq));
		memset((uint8_t *)&port->txqs[i] + sizeof(struct mr_txq), 0,
		       sizeof(port->txqs[i]) - sizeof(struct mr_txq));
		return err;
	}
	if (port->rxqs[0].is_busy && mri_xdp_busy_poll(port, port->fds[i]))
		port->rxqs[i].is_busy = port->txqs[i].is_busy = true;
	port->n_queues++;
	return 0;
}

/* Close unused queues, all but the first n_kept. */
static void drop_queues(struct xdp_port *port, uint32_t n_kept)
{
	while (port->n_queues > n_kept) {
		mri_xdp_socket_close(port, --port->n_queues);
		free_queue(port, port->n_queues);
	}
	/* Places in the map end with their sockets. */
	if (port->prog.n_steered > n_kept)
		port->prog.n_steered = n_kept;
}

int mri_xdp_add_queues(struct mr_port *base, uint32_t n,
		       struct mr_reason *reterr_reason)
{
	struct xdp_port *port = (struct xdp_port *)base;
	const uint32_t n_before = port->n_queues;
	struct xdp_netdev dev = port->dev;
	int err = 0;

	if (n_before + n > port->n_queues_max)
		return mr_fail(reterr_reason, -ENOTSUP,
			       "%s: cannot add %u queues: the port was opened "
			       "for at most %u (none can be added if a broker "
			       "opened it, or with 'prog', 'map' or "
			       "'partial')",
			       base->info->name, n, port->n_queues_max);
	for (uint32_t i = 0; i < n && err == 0; i++)
		err = add_queue(port, reterr_reason);
	if (err == 0)
		err = mri_xdp_prog_steer(port, reterr_reason);
	if (err < 0) {
		drop_queues(port, n_before);
		return err;
	}
	mri_xdp_netdev_channels(&dev);
	__atomic_store_n(&base->info->n_txqs, count_txqs(port, &dev),
			 __ATOMIC_RELEASE);
	__atomic_store_n(&base->info->n_rxqs, port->n_queues,
			 __ATOMIC_RELEASE);
	return 0;
}

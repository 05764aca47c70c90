/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When frames leave and when they left, with the option "meta".
 *
 * A request in front of the frame asks the kernel for its time, and identifies
 * the frame: mr_txq_times(). The kernel writes the time there before it
 * completes the frame: in zero-copy mode the device's, in copy mode its own.
 *
 * A zero-copy device may also delay a frame until a time of its own clock
 * (LAUNCH_TIME_FIFO). The kernel takes such times in copy mode, too, but
 * ignores them without such a device; there, lib/port waits.
 *
 * Source: linux/Documentation/networking/xsk-tx-metadata.rst.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "socket/queue.h"
#include "xdp.h"

/* Of a device: NETDEV_XSK_FLAGS_*. */
enum {
	TELLS_TIMES = 1 << 0,   /* TX_TIMESTAMP */
	DELAYS_FRAMES = 1 << 2, /* TX_LAUNCH_TIME_FIFO */
};

/* Requests that the kernel grants, as MR_META_*. */
static uint32_t granted_requests(bool is_zc, uint64_t features)
{
	if (!is_zc)
		return MR_META_TX_TIME;
	return (features & TELLS_TIMES ? MR_META_TX_TIME : 0u) |
	       (features & DELAYS_FRAMES ? MR_META_LAUNCH_TIME : 0u);
}

uint32_t mri_xdp_request_bytes(const struct xdp_port *port, bool is_zc,
			       uint64_t features)
{
	/* Only veth and tap pass the mark of a partial checksum on to their
	 * peer; what a NIC does with it depends on the NIC. */
	const bool has_csum =
		port->rxqs[0].has_partial_csums && port->is_software;
	const uint32_t n_max = port->base.headroom_bytes;

	if (port->options.meta && granted_requests(is_zc, features) != 0 &&
	    n_max >= sizeof(struct xdp_tx_request))
		return sizeof(struct xdp_tx_request);
	return has_csum && n_max >= sizeof(struct xsk_tx_meta) ?
		       sizeof(struct xsk_tx_meta) :
		       0;
}

static uint32_t asks_of(const struct xdp_port *port)
{
	uint64_t features = 0;

	if (port->lease.tx_metadata_bytes < sizeof(struct xdp_tx_request) ||
	    (port->lease.n_zc_queues > 0 &&
	     mri_xdp_tx_metadata(port->dev.ifindex, &features) < 0))
		return 0;
	return granted_requests(port->lease.n_zc_queues > 0, features);
}

static int open_queue(struct xdp_port *port, uint32_t i, uint32_t asks,
		      struct mr_reason *reterr_reason)
{
	const uint32_t n = port->lease.n_entries;
	struct xdp_times *times = &port->txqs[i].times;

	times->asks = asks;
	if (!(asks & MR_META_TX_TIME))
		return 0;
	if (getrandom(&times->magic, sizeof(times->magic), 0) < 0)
		times->magic = 0x9e3779b9;
	times->magic |= 1; /* not 0, which pages contain */
	times->clock =
		port->lease.n_zc_queues > 0 ? MR_CLOCK_DEVICE : CLOCK_TAI;
	times->mask = n - 1;
	times->ring = mr_alloc(port->base.ctx, 0, n * sizeof(times->ring[0]));
	if (times->ring == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "%s: no memory for the times of frames",
			       port->base.info->name);
	return 0;
}

int mri_xdp_times_open(struct xdp_port *port, struct mr_reason *reterr_reason)
{
	const uint32_t asks = asks_of(port);
	int err = 0;

	for (uint32_t i = 0; i < port->lease.n_queues && err == 0; i++)
		err = open_queue(port, i, asks, reterr_reason);
	return err;
}

int mri_xdp_times_open_queue(struct xdp_port *port, uint32_t i,
			     struct mr_reason *reterr_reason)
{
	return open_queue(port, i, port->txqs[0].times.asks, reterr_reason);
}

void mri_xdp_times_ask(struct xdp_txq *txq, const struct mr_meta *meta,
		       struct xdp_tx_request *request)
{
	request->kernel.flags |= XSK_TXMD_TIMESTAMP;
	request->magic = txq->times.magic;
	request->mark = meta->mark;
	txq->times.n_asked++;
}

static void note_time(struct xdp_txq *txq, const struct xdp_tx_request *request)
{
	struct xdp_times *times = &txq->times;
	/* What we wrote there ourselves, for a checksum, has 32 bits. */
	const bool has_time = request->kernel.sent_ns >> 32 != 0;

	times->n_asked--;
	if (!has_time || times->head - times->tail > times->mask) {
		mr_counter_add(&txq->base.stats.events[MR_TX_EVENT_TIME_LOST],
			       1);
		return;
	}
	times->ring[times->head++ & times->mask] = (struct xdp_time){
		.ns = request->kernel.sent_ns,
		.mark = request->mark,
	};
}

void mri_xdp_times_note(struct xdp_txq *txq, uint32_t n)
{
	uint8_t *base = txq->port->base.base;
	struct xdp_tx_request request;

	/* A stale magic number must not match later. */
	for (uint32_t i = 0; i < n && txq->times.n_asked > 0; i++) {
		const struct mr_frame *entry =
			xring_frame_at(&txq->tx, txq->n_reaped + i);
		uint8_t *at = base + entry->addr - sizeof(request);

		memcpy(&request, at, sizeof(request));
		if (request.magic != txq->times.magic)
			continue;
		memset(at, 0, sizeof(request));
		note_time(txq, &request);
	}
}

uint32_t mri_xdp_times_take(struct mr_txq *base, struct mr_meta *ret_metas,
			    uint32_t n)
{
	struct xdp_times *times = &xdp_txq_of(base)->times;
	uint32_t i;

	for (i = 0; i < n && times->tail != times->head; i++) {
		const struct xdp_time *time =
			&times->ring[times->tail++ & times->mask];

		ret_metas[i] = (struct mr_meta){
			.valid = MR_META_TX_TIME | MR_META_MARK,
			.tx_ns = time->ns,
			.tx_clock = times->clock,
			.mark = time->mark,
		};
	}
	return i;
}

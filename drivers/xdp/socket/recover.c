/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues whose process handed them over, or was killed at any instruction.
 *
 * Both processes map the rings with their positions, the marks of buffers that
 * the kernel has, and the tx entries. Only the middle of a burst looks
 * different, and what a burst stores, in which order, shows how far it came:
 *
 *     rx    entries of fill, marks; then fill's producer; then rx's consumer
 *     tx    entries of tx; then its producer
 *     reap  a completed entry changes places with the oldest one; pages are
 *           freed; then comp's consumer
 *
 * A burst that did not publish its buffers is undone, so its frames are
 * received again: the program never had them. After that it is completed, and
 * its frames are lost with the process.
 */
#include <errno.h>

#include <millrace/experimental/driver_hand_over.h>

#include "socket/queue.h"
#include "socket/socket.h"
#include "xdp.h"

void mri_xdp_find_positions(struct xdp_rxq *rxq, struct xdp_txq *txq)
{
	rxq->rx.cached = __atomic_load_n(rxq->rx.consumer, __ATOMIC_ACQUIRE);
	rxq->rx.seen = __atomic_load_n(rxq->rx.producer, __ATOMIC_ACQUIRE);
	rxq->fill.cached =
		__atomic_load_n(rxq->fill.producer, __ATOMIC_ACQUIRE);
	rxq->fill.seen = __atomic_load_n(rxq->fill.consumer, __ATOMIC_ACQUIRE);
	txq->comp.cached = txq->comp.seen =
		__atomic_load_n(txq->comp.consumer, __ATOMIC_ACQUIRE);
	if (txq->tx.map == NULL) /* the socket has none */
		return;
	txq->tx.cached = __atomic_load_n(txq->tx.producer, __ATOMIC_ACQUIRE);
	txq->tx.seen = __atomic_load_n(txq->tx.consumer, __ATOMIC_ACQUIRE);
}

int mri_xdp_claim_posted(const struct xdp_rxq *rxq, struct mr_reason *reason)
{
	const struct xdp_port *port = rxq->port;
	const uint64_t n_chunks = port->lease.n_bytes >> rxq->chunk_shift;
	uint32_t n = 0;

	for (uint64_t chunk = 0; chunk < n_chunks; chunk++) {
		if (rxq->posted[chunk] == 0)
			continue;
		if (!mr_pool_claim(port->base.pool, chunk << rxq->chunk_shift))
			return mr_fail(reason, -EPROTO,
				       "%s: queue %u: the kernel has what is "
				       "no page",
				       port->base.info->name,
				       rxq->base.queue.idx);
		n++;
	}
	if (n == rxq->n_bufs)
		return 0;
	return mr_fail(reason, -EPROTO,
		       "%s: queue %u: the kernel has %u buffers, and not %u",
		       port->base.info->name, rxq->base.queue.idx, n,
		       rxq->n_bufs);
}

/* The mark of a buffer in the fill ring or in the rx ring; NULL: there is no
 * such buffer. */
static uint8_t *mark_of(const struct xdp_rxq *rxq, uint64_t addr)
{
	return addr < rxq->port->lease.n_bytes ?
		       &rxq->posted[addr >> rxq->chunk_shift] :
		       NULL;
}

static uint64_t fill_addr(const struct xdp_rxq *rxq, uint32_t number)
{
	const uint64_t *entries = rxq->fill.entries;

	return entries[number & rxq->fill.mask];
}

/* A burst has exchanged the buffers of the first entries: how many. */
static uint32_t n_exchanged(const struct xdp_rxq *rxq)
{
	uint32_t n = 0;

	while (rxq->rx.cached + n != rxq->rx.seen) {
		const uint8_t *mark = mark_of(
			rxq,
			xring_frame_at(&rxq->rx, rxq->rx.cached + n)->addr);

		if (mark == NULL || *mark != 0)
			break;
		n++;
	}
	return n;
}

static uint64_t n_marked(const struct xdp_rxq *rxq)
{
	const uint64_t n_chunks = rxq->port->lease.n_bytes >> rxq->chunk_shift;
	uint64_t n = 0;

	for (uint64_t chunk = 0; chunk < n_chunks; chunk++)
		n += rxq->posted[chunk] != 0;
	return n;
}

/* Undo the exchange of a burst that gave the kernel no buffers. Of the last
 * pair, the fresh buffer may have a mark beside the old one. */
static void undo_exchange(struct xdp_rxq *rxq)
{
	const uint32_t n = n_exchanged(rxq);
	uint8_t *mark;

	for (uint32_t i = 0; i < n; i++) {
		*mark_of(rxq, xring_frame_at(&rxq->rx, rxq->rx.cached + i)
				      ->addr) = 1;
		mark = mark_of(rxq, fill_addr(rxq, rxq->fill.cached + i));
		if (mark != NULL)
			*mark = 0;
	}
	mark = mark_of(rxq, fill_addr(rxq, rxq->fill.cached + n));
	if (mark != NULL && n_marked(rxq) == (uint64_t)rxq->n_bufs + 1)
		*mark = 0;
}

/* Whether all buffers that the rings show are marked. */
static bool are_marked(const struct xdp_rxq *rxq)
{
	const uint8_t *mark;

	for (uint32_t at = rxq->rx.cached; at != rxq->rx.seen; at++) {
		mark = mark_of(rxq, xring_frame_at(&rxq->rx, at)->addr);
		if (mark == NULL || *mark == 0)
			return false;
	}
	for (uint32_t at = rxq->fill.seen; at != rxq->fill.cached; at++) {
		mark = mark_of(rxq, fill_addr(rxq, at));
		if (mark == NULL || *mark == 0)
			return false;
	}
	return true;
}

/* Whether the last entry that left the rx ring continues in the next one. In a
 * full ring, another entry has its place. */
static bool ends_in_frame(const struct xdp_rxq *rxq)
{
	return rxq->base.n_min > 1 &&
	       rxq->rx.seen - rxq->rx.cached < rxq->rx.n_entries &&
	       xring_frame_at(&rxq->rx, rxq->rx.cached - 1)->flags &
		       XSK_PKT_CONTD;
}

static int recover_rx(struct xdp_rxq *rxq, struct mr_reason *reason)
{
	/* More than there are: a burst had not released them in the rx ring. */
	const uint32_t n_taken =
		rxq->fill.cached - rxq->rx.cached - rxq->n_bufs;
	const bool is_likely = n_taken <= MR_BURST_MAX &&
			       n_taken <= rxq->rx.seen - rxq->rx.cached;

	if (is_likely && n_taken > 0)
		xring_release(&rxq->rx, n_taken);
	else if (is_likely)
		undo_exchange(rxq);
	if (!is_likely || !are_marked(rxq))
		return mr_fail(reason, -EPROTO,
			       "%s: queue %u: its rings contradict each other",
			       rxq->port->base.info->name,
			       rxq->base.queue.idx);
	rxq->in_long_frame = ends_in_frame(rxq);
	return mri_xdp_claim_posted(rxq, reason);
}

/* How many completions were for no entry. The last one counts only if it has
 * left the ring. */
static uint32_t n_unknown(const struct xdp_txq *txq)
{
	const uint32_t n = (uint32_t)*txq->unknown;

	return n > 0 && *txq->unknown >> 32 == txq->comp.cached ? n - 1 : n;
}

/* Claim the pages of the entries, until the kernel completes them. The other
 * pages of a block are free since the crash. */
static int recover_tx(struct xdp_txq *txq, struct mr_reason *reason)
{
	const struct xdp_port *port = txq->port;
	uint32_t n_frames = 0;

	txq->n_reaped = txq->comp.cached - n_unknown(txq);
	if (txq->tx.cached - txq->n_reaped > txq->tx.n_entries)
		return mr_fail(reason, -EPROTO,
			       "%s: queue %u: it has completed more than it "
			       "has sent",
			       port->base.info->name, txq->base.queue.idx);
	mri_xdp_tx_mend(txq);
	for (uint32_t at = txq->n_reaped; at != txq->tx.cached; at++) {
		const struct mr_frame *entry = xring_frame_at(&txq->tx, at);

		if (!mr_pool_claim(port->base.pool, entry->addr))
			return mr_fail(reason, -EPROTO,
				       "%s: queue %u: the kernel sends what is "
				       "no page",
				       port->base.info->name,
				       txq->base.queue.idx);
		n_frames += !(entry->flags & XSK_PKT_CONTD);
	}
	txq->n_before = n_frames;
	return 0;
}

int mri_xdp_recover_queue(struct xdp_port *port, uint32_t i,
			  struct mr_reason *reason)
{
	int err;

	mri_xdp_find_positions(&port->rxqs[i], &port->txqs[i]);
	err = recover_rx(&port->rxqs[i], reason);
	return err < 0 ? err : recover_tx(&port->txqs[i], reason);
}

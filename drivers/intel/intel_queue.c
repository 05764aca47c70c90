/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings: memory, first buffers, and taking back what they hold. */
#include <errno.h>

#include "intel.h"

/* The command of a data descriptor for a single-entry frame. */
static void set_command(struct intel_txq *txq)
{
	const uint64_t common = INTEL_TX_DEXT | INTEL_TX_IFCS | INTEL_TX_EOP;

	if (txq->is_igb) {
		txq->command = common | INTEL_TX_DTYP_DATA;
		txq->per_byte = 1 + (UINT64_C(1) << INTEL_TX_PAYLEN_SHIFT);
	} else {
		txq->command = common | INTEL_TX_DTYP_82574;
		txq->per_byte = 1;
	}
}

static int open_rxq(struct intel_port *port, uint32_t i,
		    struct mr_reason *reason)
{
	const struct mr_port *base = &port->base;
	const uint32_t n = port->options.n_rx_entries;
	struct intel_rxq *rxq = &port->rxqs[i];

	rxq->base.burst =
		base->info->has_sg ? mri_intel_rx_burst_sg : mri_intel_rx_burst;
	rxq->base.n_min = base->info->has_sg ? MR_MAX_SEGS : 1;
	rxq->port = port;
	rxq->mask = n - 1;
	/* A doorbell per 32 buffers, but never for all of a small ring. */
	rxq->n_owed_max = n / 4 < 32 ? n / 4 : 32;
	rxq->page_bytes = base->page_bytes;
	rxq->headroom_bytes = base->headroom_bytes;
	rxq->buf_bytes = port->buf_bytes;
	rxq->vlan_mask = port->options.vlan ? INTEL_RX_VP : 0;
	rxq->data_iova = mr_pci_region_iova(port->pci) + base->headroom_bytes;
	rxq->tail_reg = intel_rx_ring(i) + INTEL_DT;
	rxq->bufs = mr_alloc(base->ctx, 0, n * sizeof(rxq->bufs[0]));
	if (rxq->bufs == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for rx queue %u",
			       base->info->name, i);
	return mr_pci_dma_alloc(port->pci, n * sizeof(rxq->ring[0]), &rxq->dma,
				reason);
}

static int open_txq(struct intel_port *port, uint32_t i,
		    struct mr_reason *reason)
{
	const struct mr_port *base = &port->base;
	const uint32_t n = port->options.n_tx_entries;
	const uint64_t ring_bytes = n * sizeof(struct intel_desc);
	struct intel_txq *txq = &port->txqs[i];
	struct mr_segment_info segment;
	int err = mr_region_segment(base->region, 0, &segment);

	if (err < 0)
		return err; /* cannot happen once there is a pool */
	txq->base.queue.arm = mri_intel_tx_arm;
	txq->base.burst = mri_intel_tx_burst;
	txq->port = port;
	txq->mask = n - 1;
	txq->region_iova = mr_pci_region_iova(port->pci);
	txq->segment_begin = segment.addr;
	txq->segment_bytes = segment.n_bytes;
	txq->tail_reg = intel_tx_ring(i) + INTEL_DT;
	txq->max_bytes = port->mtu_bytes + INTEL_LINK_BYTES;
	txq->is_igb = port->chip->is_igb;
	/* CTRL.VME covers both: tags are inserted only if they are stripped. */
	txq->has_vlan = port->options.vlan;
	txq->max_entry_bytes = port->chip->max_entry_bytes;
	set_command(txq);
	txq->posted = mr_alloc(base->ctx, 0, n * sizeof(txq->posted[0]));
	txq->group_end = mr_alloc(base->ctx, 0, n * sizeof(txq->group_end[0]));
	if (txq->posted == NULL || txq->group_end == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for tx queue %u",
			       base->info->name, i);
	err = mr_pci_dma_alloc(port->pci, ring_bytes + sizeof(uint64_t),
			       &txq->dma, reason);
	if (err < 0)
		return err;
	txq->ring = txq->dma.memory;
	if (txq->is_igb && port->options.head_wb != INTEL_OFF)
		txq->head = (const uint32_t *)((const uint8_t *)txq->ring +
					       ring_bytes);
	return 0;
}

/* Give each place a buffer, straight from the pool. */
static int fill(struct intel_port *port, struct intel_rxq *rxq,
		struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	const uint32_t n = rxq->mask + 1;
	uint64_t addrs[MR_BURST_MAX];

	rxq->ring = rxq->dma.memory;
	while (rxq->n_bufs < n) {
		uint32_t n_got = n - rxq->n_bufs;

		n_got = n_got < MR_BURST_MAX ? n_got : MR_BURST_MAX;
		n_got = mr_pool_frag_alloc_bulk(base->pool, addrs, n_got);
		if (n_got == 0)
			return mr_fail(reason, -ENOMEM,
				       "%s: the pool has too few pages for rx "
				       "queue %u, which needs %u",
				       base->info->name, rxq->base.queue.idx,
				       n);
		for (uint32_t i = 0; i < n_got; i++)
			intel_rx_post(rxq, rxq->n_bufs++, addrs[i]);
	}
	return 0;
}

int mri_intel_queues_open(struct intel_port *port, struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	const uint32_t n = port->options.n_queues;
	int err = mr_port_make_queues(base, n, sizeof(port->rxqs[0]),
				      sizeof(port->txqs[0]), reason);

	if (err < 0)
		return err;
	port->rxqs = (struct intel_rxq *)base->rxqs[0];
	port->txqs = (struct intel_txq *)base->txqs[0];
	port->n_queues = n; /* from here on, there are queues to close */
	for (uint32_t i = 0; i < n && err == 0; i++) {
		err = open_rxq(port, i, reason);
		if (err == 0)
			err = open_txq(port, i, reason);
		if (err == 0)
			err = fill(port, &port->rxqs[i], reason);
	}
	return err;
}

/* Free what was posted but not collected, sent or not. */
static void take_back(struct intel_txq *txq)
{
	for (; txq->clean != txq->tail; txq->clean++) {
		uint64_t addr = txq->posted[txq->clean & txq->mask];

		if (addr == INTEL_POSTED_CONTEXT)
			continue;
		addr &= ~INTEL_POSTED_MORE;
		mr_pool_frag_free_bulk(txq->port->base.pool, &addr, 1);
	}
}

void mri_intel_queues_close(struct intel_port *port)
{
	const struct mr_ctx *ctx = port->base.ctx;

	for (uint32_t i = 0; i < port->n_queues; i++) {
		struct intel_rxq *rxq = &port->rxqs[i];
		struct intel_txq *txq = &port->txqs[i];

		if (rxq->n_bufs > 0)
			mr_pool_frag_free_bulk(port->base.pool, rxq->bufs,
					       rxq->n_bufs);
		take_back(txq);
		mr_pci_dma_free(port->pci, &rxq->dma);
		mr_pci_dma_free(port->pci, &txq->dma);
		mr_free(ctx, rxq->bufs);
		mr_free(ctx, txq->posted);
		mr_free(ctx, txq->group_end);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The queues: memory, start, taking back buffers.
 *
 *     split    desc[] | avail, on its own line | used: its ring on a line
 *     packed   desc[] | our event word | the device's
 *
 * If the device wrote invalid entries into a queue, its user marks it broken at
 * the end of the burst, and stays away from then on. mr_port_poll() requests
 * its reset (RING_RESET); the call that finds it done posts its buffers again
 * and returns the queue to its user.
 *
 * mr_port_poll() itself breaks the queues of a vhost-user back end that is
 * gone, and resets them once nobody is inside and a back end is there.
 *
 * Source: virtio 1.2, 2.6.1 "Virtqueue Reset", 2.7.2, 2.8.10.
 */
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "virtio.h"

enum {
	LINE = 64,
	/* A chain of the longest frame must fit. */
	MIN_ENTRIES = 32,
	LAZY_DESCS = 64, /* virtio_tx.c */
};

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* Offsets of the parts in one piece of memory. */
struct layout {
	uint64_t driver, device; /* avail and used, or the two event words */
	uint64_t n_bytes;
};

static struct layout layout_of(uint32_t n, bool is_packed)
{
	const uint64_t driver = (uint64_t)n * sizeof(struct virtio_desc);
	uint64_t device;

	if (is_packed)
		return (struct layout){ driver, driver + LINE,
					driver + 2 * LINE };
	/* flags, idx, n places, used_event. */
	device = round_up(driver + (3 + (uint64_t)n) * sizeof(uint16_t), LINE);
	/* The ring, not its head, is line-aligned: an entry is one load and
	 * never crosses pages, where QEMU would tear it behind an IOMMU. */
	device += LINE - sizeof(struct virtio_used);
	return (struct layout){ driver, device,
				device + sizeof(struct virtio_used) +
					(uint64_t)n * sizeof(uint64_t) +
					sizeof(uint16_t) };
}

/* Make it as fresh as the device expects it. */
static void clear_vq(struct virtio_vq *vq)
{
	memset(vq->dma.memory, 0, vq->dma.n_bytes);
	vq->n_avail = vq->n_used = 0;
	virtio_disable(vq);
}

int mri_virtio_vq_alloc(struct virtio_port *port, struct virtio_vq *vq,
			uint32_t number, uint32_t n_entries,
			struct mr_reason *reason)
{
	const bool is_packed = virtio_has(port, VIRTIO_F_RING_PACKED);
	const struct layout layout = layout_of(n_entries, is_packed);
	uint8_t *memory;
	int err;

	err = port->transport->alloc_dma(port, layout.n_bytes, &vq->dma,
					 reason);
	if (err < 0)
		return err;
	memory = vq->dma.memory;
	vq->number = number;
	vq->vector = VIRTIO_NO_VECTOR;
	vq->kick_fd = -1;
	vq->n_entries = n_entries;
	vq->mask = (uint16_t)(n_entries - 1);
	vq->is_packed = is_packed;
	vq->has_event_idx = virtio_has(port, VIRTIO_F_EVENT_IDX);
	vq->desc_iova = vq->dma.iova;
	vq->driver_iova = vq->dma.iova + layout.driver;
	vq->device_iova = vq->dma.iova + layout.device;
	if (is_packed) {
		vq->packed = (void *)memory;
		vq->driver_event = (void *)(memory + layout.driver);
		vq->device_event = (void *)(memory + layout.device);
	} else {
		vq->desc = (void *)memory;
		vq->avail = (void *)(memory + layout.driver);
		vq->used = (void *)(memory + layout.device);
		vq->used_ring = (void *)(vq->used + 1);
		vq->used_event = &vq->avail->ring[n_entries];
		vq->avail_event = (uint16_t *)(vq->used_ring + n_entries);
	}
	if (!port->base.is_away)
		clear_vq(vq);
	return 0;
}

/* Choose the number of entries of queue `number`, or say why not. */
static int choose_entries(const struct virtio_port *port, uint32_t number,
			  uint32_t wanted, const char *what, uint32_t *ret_n,
			  struct mr_reason *reason)
{
	const uint32_t max = port->transport->max_entries(port, number);
	uint32_t n = wanted != 0 ? wanted : VIRTIO_DEFAULT_ENTRIES;

	if (wanted > max)
		return mr_fail(reason, -EINVAL,
			       "%s: %s of %u: the device has at most %u",
			       port->base.info->name, what, wanted, max);
	/* The device's packed rings may have any size; ours, powers of two. */
	while (n > max)
		n /= 2;
	if (n < MIN_ENTRIES)
		return mr_fail(reason, -ENOTSUP,
			       "%s: queue %u of the device has %u entries; a "
			       "port needs %d",
			       port->base.info->name, number, max, MIN_ENTRIES);
	*ret_n = n;
	return 0;
}

/* The interrupt of this number, if it exists. */
static void set_vector(struct virtio_port *port, struct virtio_vq *vq,
		       struct mr_queue *queue, uint32_t vector)
{
	queue->fd = -1;
	if (vector < port->n_irqs) {
		vq->vector = vector;
		queue->fd = port->irq_fds[vector];
	}
}

static int alloc_rxq(struct virtio_port *port, uint32_t i,
		     struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	struct virtio_rxq *rxq = &port->rxqs[i];
	struct virtio_rx_kind kind;
	uint32_t n = 0, n_now;
	int err;

	rxq->port = port;
	rxq->base.queue.arm = mri_virtio_rx_arm;
	err = choose_entries(port, 2 * i, port->options.n_rx_entries,
			     "an rx ring", &n, reason);
	if (err == 0)
		err = mri_virtio_vq_alloc(port, &rxq->vq, 2 * i, n, reason);
	if (err < 0)
		return err;
	set_vector(port, &rxq->vq, &rxq->base.queue, 1 + i);
	rxq->memory = base->base;
	rxq->page_bytes = base->page_bytes;
	rxq->header_bytes = port->header_bytes;
	rxq->post_offset = base->headroom_bytes - port->header_bytes;
	rxq->post_bytes =
		base->page_bytes - rxq->post_offset - base->tailroom_bytes;
	rxq->iova = port->transport->region_iova(port) + rxq->post_offset;
	rxq->has_hash = virtio_has(port, VIRTIO_F_HASH_REPORT);
	rxq->base.n_min = base->info->has_sg ? MR_MAX_SEGS : 1;
	kind = (struct virtio_rx_kind){
		.is_packed = rxq->vq.is_packed,
		.is_in_order = virtio_has(port, VIRTIO_F_IN_ORDER),
		.has_headers = base->info->has_sg || rxq->has_hash ||
			       virtio_has(port, VIRTIO_F_GUEST_CSUM),
		.is_merged = base->info->has_sg,
	};
	rxq->base.burst = mri_virtio_rx_burst_of(kind);
	rxq->bufs = mr_alloc(base->ctx, 0, n * sizeof(rxq->bufs[0]));
	if (rxq->bufs == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for queues",
			       base->info->name);
	for (; !base->is_away && rxq->n_bufs < n; rxq->n_bufs += n_now) {
		n_now = n - rxq->n_bufs;
		n_now = mr_pool_frag_alloc_bulk(
			base->pool, rxq->bufs + rxq->n_bufs,
			n_now < MR_BURST_MAX ? n_now : MR_BURST_MAX);
		if (n_now == 0)
			return mr_fail(reason, -ENOMEM,
				       "%s: the pool has no more pages",
				       base->info->name);
	}
	return 0;
}

void mri_virtio_queues_set_mtu(struct virtio_port *port, uint32_t mtu_bytes)
{
	const uint32_t max = mtu_bytes + VIRTIO_LINK_BYTES;

	for (uint32_t i = 0; i < port->options.n_queues; i++) {
		struct virtio_rxq *rxq = &port->rxqs[i];
		struct virtio_txq *txq = &port->txqs[i];
		const uint32_t room = port->base.page_bytes - txq->header_bytes;

		__atomic_store_n(&rxq->has_batches,
				 port->base.info->has_sg ||
					 rxq->post_bytes - rxq->header_bytes <=
						 max,
				 __ATOMIC_RELAXED);
		__atomic_store_n(&txq->max_bytes, max, __ATOMIC_RELAXED);
		__atomic_store_n(&txq->max_plain_bytes, max < room ? max : room,
				 __ATOMIC_RELAXED);
	}
}

static int alloc_txq(struct virtio_port *port, uint32_t i,
		     struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	struct virtio_txq *txq = &port->txqs[i];
	uint32_t n = 0;
	int err;

	txq->port = port;
	txq->base.queue.arm = mri_virtio_tx_arm;
	err = choose_entries(port, 2 * i + 1, port->options.n_tx_entries,
			     "a tx ring", &n, reason);
	if (err == 0)
		err = mri_virtio_vq_alloc(port, &txq->vq, 2 * i + 1, n, reason);
	if (err == 0)
		err = port->transport->alloc_dma(
			port, (uint64_t)(n + 1) * VIRTIO_HEADER_SLOT_BYTES,
			&txq->headers, reason);
	if (err < 0)
		return err;
	set_vector(port, &txq->vq, &txq->base.queue,
		   1 + port->options.n_queues + i);
	txq->memory = base->base;
	txq->iova = port->transport->region_iova(port);
	txq->header_bytes = port->header_bytes;
	txq->is_in_order = virtio_has(port, VIRTIO_F_IN_ORDER);
	txq->n_lazy = n / 2 < LAZY_DESCS ? n / 2 : LAZY_DESCS;
	txq->base.burst = mri_virtio_tx_burst_of((struct virtio_tx_kind){
		txq->vq.is_packed, port->header_bytes });
	txq->bufs = mr_alloc(base->ctx, 0, n * sizeof(txq->bufs[0]));
	txq->chains = mr_alloc(base->ctx, 0, n);
	if (txq->bufs == NULL || txq->chains == NULL)
		return mr_fail(reason, -ENOMEM, "%s: no memory for queues",
			       base->info->name);
	memset(txq->chains, 1, n);
	return 0;
}

int mri_virtio_queues_alloc(struct virtio_port *port, struct mr_reason *reason)
{
	struct mr_port *base = &port->base;
	const uint32_t n = port->options.n_queues;
	int err = mr_port_make_queues(base, n, sizeof(port->rxqs[0]),
				      sizeof(port->txqs[0]), reason);

	if (err < 0)
		return err;
	port->rxqs = (struct virtio_rxq *)base->rxqs[0];
	port->txqs = (struct virtio_txq *)base->txqs[0];
	for (uint32_t i = 0; i < n && err == 0; i++) {
		err = alloc_rxq(port, i, reason);
		if (err == 0)
			err = alloc_txq(port, i, reason);
	}
	mri_virtio_queues_set_mtu(port, base->info->mtu_bytes);
	return err;
}

void mri_virtio_queues_clear(struct virtio_port *port)
{
	for (uint32_t i = 0; i < port->options.n_queues; i++) {
		clear_vq(&port->rxqs[i].vq);
		clear_vq(&port->txqs[i].vq);
	}
}

int mri_virtio_queues_start(struct virtio_port *port, struct mr_reason *reason)
{
	int err = 0;

	for (uint32_t i = 0; i < port->options.n_queues && err == 0; i++) {
		err = port->transport->start_queue(port, &port->rxqs[i].vq,
						   reason);
		if (err == 0)
			err = port->transport->start_queue(
				port, &port->txqs[i].vq, reason);
	}
	return err;
}

void mri_virtio_queues_fill(struct virtio_port *port)
{
	for (uint32_t i = 0; i < port->options.n_queues; i++)
		mri_virtio_rx_fill(&port->rxqs[i]);
}

void mri_virtio_queues_free(struct virtio_port *port)
{
	const struct mr_ctx *ctx = port->base.ctx;
	const uint32_t n = port->rxqs != NULL ? port->options.n_queues : 0;

	for (uint32_t i = 0; i < n; i++) {
		struct virtio_rxq *rxq = &port->rxqs[i];
		struct virtio_txq *txq = &port->txqs[i];

		if (!port->base.is_away) {
			mr_pool_frag_free_bulk(port->base.pool, rxq->bufs,
					       rxq->n_bufs);
			mri_virtio_tx_take_back(txq);
		}
		port->transport->free_dma(port, &rxq->vq.dma);
		port->transport->free_dma(port, &txq->vq.dma);
		port->transport->free_dma(port, &txq->headers);
		mr_free(ctx, rxq->bufs);
		mr_free(ctx, txq->bufs);
		mr_free(ctx, txq->chains);
	}
}

void mri_virtio_kick(int fd)
{
	const uint64_t one = 1;

	if (fd >= 0 && write(fd, &one, sizeof(one)) < 0)
		return; /* its counter is full: there are enough wake-ups */
}

/* Make whoever sleeps on the queue look at it again. */
static void wake(const struct mr_queue *queue)
{
	mri_virtio_kick(queue->fd);
}

static void hand_over(const struct virtio_port *port, uint32_t *state)
{
	virtio_break(state);
	/* Part of the port's fd; a device without is polled. */
	if (port->n_irqs > 0)
		mri_virtio_kick(port->irq_fds[0]);
}

void mri_virtio_rxq_hand_over(struct virtio_rxq *rxq)
{
	rxq->is_broken = false;
	hand_over(rxq->port, &rxq->state);
}

void mri_virtio_txq_hand_over(struct virtio_txq *txq)
{
	txq->is_broken = false;
	hand_over(txq->port, &txq->state);
}

static uint32_t state_of(const uint32_t *state)
{
	return __atomic_load_n(state, __ATOMIC_ACQUIRE);
}

static void set_state(uint32_t *state, enum virtio_state value,
		      const struct mr_queue *queue)
{
	__atomic_store_n(state, value, __ATOMIC_RELEASE);
	wake(queue);
}

/* Begin or continue its reset; -EAGAIN: not finished yet. */
static int restart(struct virtio_port *port, struct virtio_vq *vq)
{
	const int err = port->transport->reset_queue(port, vq);

	if (err < 0)
		return err;
	clear_vq(vq);
	return port->transport->start_queue(port, vq, NULL);
}

static int recover_rxq(struct virtio_port *port, struct virtio_rxq *rxq)
{
	const int err = restart(port, &rxq->vq);

	if (err < 0)
		return err;
	rxq->n_skip = 0;
	mri_virtio_rx_fill(rxq);
	set_state(&rxq->state, VIRTIO_RUNS, &rxq->base.queue);
	return 0;
}

static int recover_txq(struct virtio_port *port, struct virtio_txq *txq)
{
	const int err = restart(port, &txq->vq);

	if (err < 0)
		return err;
	mr_counter_add(&txq->base.stats.drops[MR_TX_DROP_DEVICE],
		       txq->n_frames);
	mri_virtio_tx_take_back(txq);
	set_state(&txq->state, port->is_up ? VIRTIO_RUNS : VIRTIO_NO_LINK,
		  &txq->base.queue);
	return 0;
}

uint32_t mri_virtio_queues_mend(struct virtio_port *port)
{
	uint32_t n_mended = 0;
	int err = 0;

	for (uint32_t i = 0; i < 2 * port->options.n_queues; i++) {
		struct virtio_rxq *rxq = &port->rxqs[i / 2];
		struct virtio_txq *txq = &port->txqs[i / 2];

		if (state_of(i % 2 ? &txq->state : &rxq->state) !=
		    VIRTIO_BROKEN)
			continue;
		err = i % 2 ? recover_txq(port, txq) : recover_rxq(port, rxq);
		n_mended += err != -EAGAIN;
		if (err < 0 && err != -EAGAIN)
			break;
	}
	if (n_mended == 0)
		return 0;
	if (err == -EAGAIN)
		err = 0;
	if (err < 0 || !port->transport->is_user)
		mr_log(port->base.ctx, MR_LOG_ERROR,
		       "%s: the device wrote invalid entries into %u queues: "
		       "%s",
		       port->base.info->name, n_mended,
		       err == 0 ? "they were reset" :
				  "they could not be reset");
	if (err < 0)
		mri_virtio_queues_lose(port);
	return n_mended;
}

bool mri_virtio_can_break(void)
{
	return syscall(SYS_membarrier,
		       MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void break_queue(struct virtio_port *port, struct virtio_vq *vq,
			uint32_t *state)
{
	virtio_break(state);
	port->n_resets += vq->reset_until_tick == 0;
	vq->reset_until_tick = 1;
}

void mri_virtio_queues_break(struct virtio_port *port)
{
	for (uint32_t i = 0; i < port->options.n_queues; i++) {
		break_queue(port, &port->rxqs[i].vq, &port->rxqs[i].state);
		break_queue(port, &port->txqs[i].vq, &port->txqs[i].state);
	}
	/* Each user sees that, or is_busy is visible here. */
	(void)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

void mri_virtio_queues_link(struct virtio_port *port, bool is_up)
{
	const uint32_t after = is_up ? VIRTIO_LINKED : VIRTIO_NO_LINK;

	for (uint32_t i = 0; i < port->options.n_queues; i++) {
		struct virtio_txq *txq = &port->txqs[i];
		uint32_t before = is_up ? VIRTIO_NO_LINK : VIRTIO_RUNS;

		/* One that is broken or gone stays so. */
		if (__atomic_compare_exchange_n(&txq->state, &before, after,
						false, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE))
			wake(&txq->base.queue);
	}
}

void mri_virtio_queues_lose(struct virtio_port *port)
{
	__atomic_store_n(&port->is_gone, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&port->is_up, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&port->speed_mbps, 0, __ATOMIC_RELAXED);
	for (uint32_t i = 0; i < port->options.n_queues; i++) {
		struct virtio_rxq *rxq = &port->rxqs[i];
		struct virtio_txq *txq = &port->txqs[i];

		set_state(&rxq->state, VIRTIO_GONE, &rxq->base.queue);
		set_state(&txq->state, VIRTIO_GONE, &txq->base.queue);
	}
}

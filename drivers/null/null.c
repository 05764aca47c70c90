/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * null: a bottomless source and sink.
 *
 *     pool --> rx burst --> application --> tx burst --> pool
 *
 * Every rx burst is full, of frames with whatever their buffers held; a tx
 * burst takes and frees everything. A burst costs only what the library costs:
 * use this driver to measure applications, and read it first.
 */
#include <stdio.h>

#include <millrace/driver.h>
#include <millrace/experimental/driver_hand_over.h>

enum { DEFAULT_FRAME_BYTES = 60, MAX_QUEUES = 64 };

struct null_rxq {
	_Alignas(64) struct mr_rxq base;
	uint32_t frame_bytes;
	uint32_t buffer_bytes;
	uint32_t data_offset; /* the pool's headroom */
};

struct null_txq {
	_Alignas(64) struct mr_txq base;
};

static uint32_t null_rx_burst(struct mr_rxq *base, struct mr_cache *cache,
			      struct mr_frame *frames, struct mr_meta *meta,
			      uint32_t n)
{
	const struct null_rxq *rxq = (const struct null_rxq *)base;
	uint64_t addrs[MR_BURST_MAX];
	const uint32_t n_rx =
		mr_frag_alloc_bulk(cache, addrs, n, rxq->buffer_bytes);

	for (uint32_t i = 0; i < n_rx; i++)
		frames[i] = (struct mr_frame){ addrs[i] + rxq->data_offset,
					       rxq->frame_bytes, 0 };
	for (uint32_t i = 0; meta != NULL && i < n_rx; i++)
		meta[i].valid = 0;

	mr_counter_add(&base->stats.received, n_rx);
	mr_counter_add(&base->stats.delivered, n_rx);
	mr_counter_add(&base->stats.bytes, (uint64_t)n_rx * rxq->frame_bytes);
	if (n_rx < n)
		mr_counter_add(&base->stats.events[MR_RX_EVENT_POOL_EMPTY], 1);
	return n_rx;
}

static uint32_t null_tx_burst(struct mr_txq *txq, struct mr_cache *cache,
			      const struct mr_frame *frames,
			      const struct mr_meta *meta, uint32_t n)
{
	uint64_t n_frames = 0, n_bytes = 0;

	(void)meta;
	n = mr_frame_n_whole(frames, n);
	for (uint32_t i = 0; i < n; i++) {
		n_frames += !(frames[i].flags & MR_FRAME_MORE);
		n_bytes += frames[i].len;
	}
	mr_frame_free_bulk(cache, frames, n);

	mr_counter_add(&txq->stats.accepted, n_frames);
	mr_counter_add(&txq->stats.completed, n_frames);
	mr_counter_add(&txq->stats.bytes, n_bytes);
	return n;
}

/* There is always room, and nothing is pending. */
static int null_tx_arm(struct mr_queue *queue)
{
	(void)queue;
	return 0;
}

static int null_open(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_reason *reterr_reason)
{
	uint32_t n, frame_bytes;
	int err;

	err = mr_spec_get_u32(spec, "queues", 1, 1, MAX_QUEUES, &n,
			      reterr_reason);
	if (err == 0)
		err = mr_spec_get_u32(spec, "len", DEFAULT_FRAME_BYTES, 14,
				      mr_port_room_bytes(base), &frame_bytes,
				      reterr_reason);
	if (err == 0)
		err = mr_port_make_queues(base, n, sizeof(struct null_rxq),
					  sizeof(struct null_txq),
					  reterr_reason);
	if (err < 0)
		return err;

	for (uint32_t i = 0; i < n; i++) {
		struct null_rxq *rxq = (struct null_rxq *)base->rxqs[i];

		rxq->base.burst = null_rx_burst;
		rxq->base.n_min = 1;
		rxq->frame_bytes = frame_bytes;
		rxq->buffer_bytes = base->page_bytes;
		rxq->data_offset = base->headroom_bytes;
		base->txqs[i]->queue.arm = null_tx_arm;
		base->txqs[i]->burst = null_tx_burst;
	}
	snprintf(base->info->mode, sizeof(base->info->mode), "memory");
	return 0;
}

static void null_close(struct mr_port *base)
{
	(void)base; /* its only queues are the library's */
}

static int null_take(struct mr_port *base, const struct mr_spec *spec,
		     struct mr_parcel *parcel, struct mr_reason *reterr_reason)
{
	(void)parcel;
	return null_open(base, spec, reterr_reason);
}

static const struct mr_hand_over_ops null_hand_over = {
	.offer = mr_hand_over_nothing,
	.take = null_take,
	.give = mr_hand_over_nothing,
	.resume = mr_hand_over_nothing,
	.recover = mr_hand_over_nothing,
};

static const char *const null_keys[] = { "queues", "len", NULL };

extern const struct mr_driver mr_driver_null;
const struct mr_driver mr_driver_null = {
	.name = "null",
	.keys = null_keys,
	.port_bytes = sizeof(struct mr_port),
	.open = null_open,
	.close = null_close,
	.hand_over = &null_hand_over,
};

/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "far_port.h"

enum { BURST = 64 };

struct far_port {
	struct mr_port *port;
	struct mr_cache *cache;
	uint8_t *base;
	uint32_t room; /* for a frame's bytes in a page */
	uint32_t headroom;
	uint32_t n_rxqs, n_txqs;
	/* Queues take turns. */
	uint32_t rx_turn, tx_turn;
	/* Received, but not yet returned. */
	struct mr_frame frames[BURST];
	uint32_t n, at;
};

struct far_port *far_port_open(struct mr_ctx *ctx, struct mr_pool *pool,
			       const char *spec, uint32_t n_txqs,
			       struct mr_reason *why)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = pool };
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mr_port_info info = { .size = sizeof(info) };
	struct far_port *far = calloc(1, sizeof(*far));

	assert_non_null(far);
	if (mr_cache_create(pool, &far->cache, why) < 0 ||
	    mr_port_open(ctx, spec, &config, &far->port, why) < 0) {
		far_port_close(far);
		return NULL;
	}
	assert_int_equal(mr_pool_stats(pool, &stats), 0);
	assert_int_equal(mr_port_info(far->port, &info), 0);
	far->base = mr_region_base(mr_pool_region(pool));
	far->headroom = stats.headroom_bytes;
	far->room = stats.page_bytes - stats.headroom_bytes;
	far->n_rxqs = info.n_rxqs;
	far->n_txqs = n_txqs;
	return far;
}

void far_port_close(struct far_port *far)
{
	if (far == NULL)
		return;
	mr_frame_free_bulk(far->cache, far->frames + far->at, far->n - far->at);
	mr_port_close(far->port);
	mr_cache_destroy(far->cache);
	free(far);
}

struct mr_port *far_port_get(const struct far_port *far)
{
	return far->port;
}

bool far_port_inject(struct harness *harness, const uint8_t *bytes,
		     uint32_t n_bytes)
{
	struct far_port *far = harness->far;
	const uint32_t room = far->room - harness->wish.tailroom_bytes;
	const uint32_t n = (n_bytes + room - 1) / room;
	uint64_t addrs[MR_MAX_SEGS];
	struct mr_frame frames[MR_MAX_SEGS];
	uint32_t n_got;

	n_got = mr_frag_alloc_bulk(far->cache, addrs, n,
				   far->room + far->headroom);
	if (n_got < n) {
		mr_frag_free_bulk(far->cache, addrs, n_got);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t len = n_bytes < room ? n_bytes : room;

		frames[i] = (struct mr_frame){
			.addr = addrs[i] + far->headroom,
			.len = len,
			.flags = i + 1 < n ? MR_FRAME_MORE : 0,
		};
		memcpy(far->base + frames[i].addr, bytes, len);
		bytes += len;
		n_bytes -= len;
	}
	if (mr_tx_burst(mr_port_txq(far->port, far->tx_turn++ % far->n_txqs),
			far->cache, frames, n) > 0)
		return true;
	mr_frame_free_bulk(far->cache, frames, n);
	return false;
}

static uint32_t collect_frame(struct far_port *far, uint8_t *bytes,
			      uint32_t room)
{
	uint32_t n_bytes = 0, flags;

	do {
		const struct mr_frame *frame = &far->frames[far->at++];

		assert_true(n_bytes + frame->len <= room);
		memcpy(bytes + n_bytes, far->base + frame->addr, frame->len);
		n_bytes += frame->len;
		flags = frame->flags;
		mr_frame_free_bulk(far->cache, frame, 1);
	} while (flags & MR_FRAME_MORE);
	return n_bytes;
}

/* Receive, unless there are frames; whether there are. */
static bool receive_next(struct far_port *far)
{
	for (uint32_t i = 0; far->at == far->n && i < far->n_rxqs; i++) {
		far->at = 0;
		far->n = mr_rx_burst(
			mr_port_rxq(far->port, far->rx_turn++ % far->n_rxqs),
			far->cache, far->frames, BURST);
	}
	return far->at < far->n;
}

uint32_t far_port_collect(struct harness *harness, uint8_t *bytes,
			  uint32_t room)
{
	while (receive_next(harness->far)) {
		const uint32_t n = collect_frame(harness->far, bytes, room);

		if (traffic_is_ours(bytes, n))
			return n;
	}
	return 0;
}

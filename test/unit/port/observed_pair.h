/* SPDX-License-Identifier: BSD-3-Clause */
/* Pair, as a device that the tests observe and whose features they choose. */
#ifndef OBSERVED_PAIR_H
#define OBSERVED_PAIR_H

#include <arpa/inet.h>
#include <stdbool.h>
#include <time.h>

#include <millrace/net.h>
#include <millrace/port.h>
#include <millrace/port_device.h>

#include "port/driver_list.h"
#include "support/packet.h"
#include "support/pool_unit.h"

enum {
	RING = 64,
	PAGES = 1024,
	PAGE = 2048,
	MSS = 1000,
	TCI = 0x2005,
	MAX_BYTES = 20000,
	MAX_PIECES = 256,
};

static struct {
	struct pool_fixture f;
	struct mr_port *near, *far;
	struct mr_txq *txq;
	struct mr_frame got[MAX_PIECES];
	uint32_t n_got;
} b;

struct kind {
	bool is_v6, is_udp;
};

/* The driver behind it. */
static const struct mr_driver *pair;
static mr_tx_burst_fn *burst_of_pair;
static struct {
	uint32_t n_bursts;
	bool is_early;       /* a queue was shown before it was ready */
	struct mr_meta meta; /* of the last burst's first frame */
} seen;
static struct {
	uint32_t offloads;
	uint32_t launch_clock;
	bool has_no_wakeups;
	uint32_t n_txqs; /* how many it shows; 0: all */
} device;

static inline uint32_t observe_burst(struct mr_txq *txq, struct mr_cache *cache,
				     const struct mr_frame *frames,
				     const struct mr_meta *meta, uint32_t n)
{
	seen.n_bursts++;
	if (meta != NULL && n > 0)
		seen.meta = meta[0];
	return burst_of_pair(txq, cache, frames, meta, n);
}

static inline int arm_nothing(struct mr_queue *queue)
{
	(void)queue;
	return 0;
}

static inline int observed_open(struct mr_port *port,
				const struct mr_spec *spec,
				struct mr_reason *reterr_reason)
{
	const int err = pair->open(port, spec, reterr_reason);

	if (err < 0)
		return err;
	burst_of_pair = port->txqs[0]->burst;
	port->txqs[0]->burst = observe_burst;
	if (device.has_no_wakeups)
		port->txqs[0]->queue.arm = arm_nothing;
	port->info->offloads = device.offloads;
	port->info->launch_clock = device.launch_clock;
	if (device.n_txqs != 0) {
		port->info->n_rxqs = 1;
		port->info->n_txqs = device.n_txqs;
	}
	return 0;
}

/* Show other queues, like a device whose channels were changed. */
static inline int observed_add_queues(struct mr_port *port, uint32_t n,
				      struct mr_reason *reterr_reason)
{
	const uint32_t n_before = port->info->n_txqs;

	(void)reterr_reason;
	port->info->n_txqs = device.n_txqs;
	port->info->n_rxqs += n;
	seen.is_early = device.n_txqs > n_before &&
			mr_port_txq(port, device.n_txqs - 1) != NULL;
	return 0;
}

static inline void add_observed(struct mr_ctx *ctx)
{
	struct mr_driver observed;

	for (uint32_t i = 0; (pair = mri_driver_at(ctx, i)) != NULL; i++)
		if (strcmp(pair->name, "pair") == 0)
			break;
	assert_non_null(pair);
	observed = *pair;
	observed.name = "observed";
	observed.version = MR_DRIVER_VERSION;
	observed.size = sizeof(observed);
	observed.open = observed_open;
	observed.add_queues = observed_add_queues;
	assert_int_equal(mr_ctx_add_driver(ctx, &observed, NULL), 0);
}

static inline void open_ports_as(uint32_t headroom_bytes, const char *near,
				 const char *far)
{
	struct mr_port_config config = { .size = sizeof(config) };

	fixture_open_with(&b.f, (struct mr_pool_config){
					.n_pages = PAGES,
					.page_bytes = PAGE,
					.headroom_bytes = headroom_bytes });
	config.pool = b.f.pool;
	add_observed(b.f.ctx);
	assert_int_equal(mr_port_open(b.f.ctx, near, &config, &b.near, NULL),
			 0);
	assert_int_equal(mr_port_open(b.f.ctx, far, &config, &b.far, NULL), 0);
	b.txq = mr_port_txq(b.near, 0);
	b.n_got = 0;
}

static inline void open_ports(uint32_t headroom_bytes)
{
	open_ports_as(headroom_bytes, "observed:o,ring=64,sg=on",
		      "pair:o,ring=64,sg=on");
}

static inline void close_ports(void)
{
	mr_frame_free_bulk(b.f.cache, b.got, b.n_got);
	mr_port_close(b.near);
	mr_port_close(b.far);
	fixture_close(&b.f);
}

/* Receive what is in the ring now. */
static inline uint32_t receive_frames(void)
{
	const uint32_t n = mr_rx_burst(mr_port_rxq(b.far, 0), b.f.cache,
				       b.got + b.n_got, MAX_PIECES - b.n_got);

	b.n_got += n;
	return n;
}

/* Make a frame with FIN, PSH, CWR and ACK, and any checksum. */
static inline uint32_t make_bytes(uint8_t *bytes, struct kind kind,
				  uint32_t n_payload)
{
	static const uint8_t mac[6] = { 2 };
	const uint32_t n = packet_make(bytes, mac, kind.is_v6 ? 6 : 4,
				       kind.is_udp ? 17 : 6, n_payload);
	uint8_t *l4 = bytes + (kind.is_v6 ? 54 : 34);

	if (!kind.is_v6) /* the identification wraps in a byte */
		packet_put16(bytes + 18, 0xff);
	if (!kind.is_udp) {
		memset(l4 + 4, 0xff, 4);
		l4[13] = 0x99;
	}
	return n;
}

/* Put the bytes into entries of at most n_each; returns how many. */
static inline uint32_t put_bytes(const uint8_t *bytes, uint32_t n_bytes,
				 uint32_t n_each, struct mr_frame *frames)
{
	uint32_t n = 0;

	for (uint32_t at = 0; at < n_bytes; at += n_each, n++) {
		const uint32_t k =
			n_bytes - at < n_each ? n_bytes - at : n_each;

		frames[n] = (struct mr_frame){ alloc_one(b.f.cache, PAGE) + 128,
					       k, MR_FRAME_MORE };
		memcpy(b.f.base + frames[n].addr, bytes + at, k);
	}
	frames[n - 1].flags = 0;
	return n;
}

#endif

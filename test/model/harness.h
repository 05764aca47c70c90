/* SPDX-License-Identifier: BSD-3-Clause */
/* A port of a driver on a model. The test is at the other end of its wire. */
#ifndef MODEL_HARNESS_H
#define MODEL_HARNESS_H

#include <time.h>

#include <millrace/driver.h>
#include <millrace/experimental/pci.h>
#include <millrace/millrace.h>

#include "model/device.h"
#include "support/invariants.h"
#include "support/unit.h"

enum { HARNESS_BURST = 32, HARNESS_PAGES = 2560, HARNESS_OFFSET = 256 };

struct harness {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_region *region;
	struct mr_cache *cache;
	uint8_t *base;
	uint32_t n_pages;
	struct model *m;
	struct vnet *v;    /* the model, if it is a virtio device */
	struct intel *nic; /* if it is an Intel NIC */
	struct model_wire *wire;
	struct mr_port *port;
	struct mr_rxq *rxq;
	struct mr_txq *txq;
};

static inline uint64_t harness_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline uint64_t harness_free_pages(const struct harness *harness)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_pool_stats(harness->pool, &stats), 0);
	return stats.n_free;
}

/*
 * All but the device, at end 0, and opening it. No model: the test opens
 * something else. No clock: real time.
 */
static inline void harness_begin(struct harness *harness, struct model *m,
				 struct mr_pool_config pool_config,
				 mr_clock_fn *clock)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.max_bytes = UINT64_C(1) << 30,
	};

	memset(harness, 0, sizeof(*harness));
	harness->ctx = test_ctx_with(&harness->allocator, clock);
	assert_int_equal(mr_region_create(harness->ctx, &region_config,
					  &harness->region, NULL),
			 0);
	harness->base = mr_region_base(harness->region);
	pool_config.size = sizeof(pool_config);
	pool_config.region = harness->region;
	if (pool_config.n_pages == 0)
		pool_config.n_pages = HARNESS_PAGES;
	harness->n_pages = pool_config.n_pages;
	assert_int_equal(mr_pool_create(harness->ctx, &pool_config,
					&harness->pool, NULL),
			 0);
	assert_int_equal(mr_cache_create(harness->pool, &harness->cache, NULL),
			 0);
	harness->wire = model_wire_create(256);
	assert_non_null(harness->wire);
	harness->m = m;
	if (m == NULL)
		return;
	model_wire_attach(harness->wire, 0, m);
	assert_int_equal(mr_ctx_add_pci_device(harness->ctx, "model",
					       model_backend(), m),
			 0);
}

static inline int harness_try_open_spec(struct harness *harness,
					const char *spec, struct mr_reason *why)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = harness->pool };
	const int err =
		mr_port_open(harness->ctx, spec, &config, &harness->port, why);

	if (err < 0)
		return err;
	harness->rxq = mr_port_rxq(harness->port, 0);
	harness->txq = mr_port_txq(harness->port, 0);
	return 0;
}

/* Open the port of the device of that name. */
static inline int harness_try_open_as(struct harness *harness,
				      const char *device, const char *options,
				      struct mr_reason *why)
{
	char spec[512];

	snprintf(spec, sizeof(spec), "vfio:%s%s%s", device,
		 options[0] != '\0' ? "," : "", options);
	return harness_try_open_spec(harness, spec, why);
}

static inline int harness_try_open(struct harness *harness, const char *options,
				   struct mr_reason *why)
{
	return harness_try_open_as(harness, "model", options, why);
}

static inline void harness_open(struct harness *harness, const char *options)
{
	struct mr_reason why = { "" };

	if (harness_try_open(harness, options, &why) < 0)
		fail_msg("%s: %s", options, why.text);
}

/* Close; every page and block of memory must be free. The model stays. */
static inline void harness_close(struct harness *harness)
{
	mr_port_close(harness->port);
	mr_cache_destroy(harness->cache);
	assert_int_equal(harness_free_pages(harness), harness->n_pages);
	assert_int_equal(mr_pool_destroy(harness->pool, NULL), 0);
	assert_int_equal(mr_region_destroy(harness->region, NULL), 0);
	mr_ctx_destroy(harness->ctx);
	assert_int_equal(harness->allocator.n_out, 0);
	if (harness->m != NULL)
		assert_string_equal(model_violations(harness->m), "");
}

static inline struct mr_rx_stats harness_rx_stats(const struct harness *harness)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_rxq_stats(harness->rxq, &stats), 0);
	return stats;
}

static inline struct mr_tx_stats harness_tx_stats(const struct harness *harness)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_txq_stats(harness->txq, &stats), 0);
	return stats;
}

/* The counters' invariants, which hold whatever the device does. */
static inline void harness_check_invariants(const struct harness *harness)
{
	const struct mr_rx_stats rx = harness_rx_stats(harness);
	const struct mr_tx_stats tx = harness_tx_stats(harness);

	assert_true(invariants_of_rx_hold(&rx));
	assert_true(invariants_of_tx_hold(&tx));
}

/* Copy the bytes of a received frame into one piece. */
static inline uint32_t harness_copy(const struct harness *harness,
				    const struct mr_frame *frames,
				    uint8_t *bytes)
{
	uint32_t n = 0, i = 0;

	do {
		memcpy(bytes + n, harness->base + frames[i].addr,
		       frames[i].len);
		n += frames[i].len;
	} while (frames[i++].flags & MR_FRAME_MORE);
	return n;
}

/* Make a frame of pages with these bytes; returns its entries. */
static inline uint32_t harness_frame(struct harness *harness,
				     const uint8_t *bytes, uint32_t n_bytes,
				     struct mr_frame *frames)
{
	const uint32_t room = 4096 - HARNESS_OFFSET;
	const uint32_t n = (n_bytes + room - 1) / room;
	uint64_t addrs[MR_MAX_SEGS];

	assert_true(n <= MR_MAX_SEGS);
	assert_int_equal(mr_frag_alloc_bulk(harness->cache, addrs, n, 4096), n);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t len = n_bytes < room ? n_bytes : room;

		frames[i] = (struct mr_frame){
			.addr = addrs[i] + HARNESS_OFFSET,
			.len = len,
			.flags = i + 1 < n ? MR_FRAME_MORE : 0,
		};
		memcpy(harness->base + frames[i].addr, bytes, len);
		bytes += len;
		n_bytes -= len;
	}
	return n;
}

/* Send n plain frames; refused ones are freed. Returns how many were taken. */
static inline uint32_t harness_send(struct harness *harness, uint32_t n)
{
	const uint8_t bytes[60] = { 2, 0, 0, 0, 0, 9, 2 };
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_tx;

	for (uint32_t i = 0; i < n; i++)
		harness_frame(harness, bytes, sizeof(bytes), &frames[i]);
	n_tx = mr_tx_burst(harness->txq, harness->cache, frames, n);
	mr_frame_free_bulk(harness->cache, frames + n_tx, n - n_tx);
	return n_tx;
}

/* Send frames to the driver. */
static inline void harness_inject(struct harness *harness, uint32_t n)
{
	const uint8_t bytes[60] = { 2, 0, 0, 0, 0, 1, 2 };

	for (uint32_t i = 0; i < n; i++)
		model_wire_send(harness->wire, 1, bytes, sizeof(bytes));
}

/* Receive and free what is there. Returns entries. */
static inline uint32_t harness_drain(struct harness *harness)
{
	struct mr_frame frames[HARNESS_BURST];
	uint32_t n, n_all = 0;

	while ((n = mr_rx_burst(harness->rxq, harness->cache, frames,
				HARNESS_BURST)) > 0) {
		assert_int_equal(mr_frame_n_whole(frames, n), n);
		mr_frame_free_bulk(harness->cache, frames, n);
		n_all += n;
	}
	return n_all;
}

static inline bool harness_is_up(const struct harness *harness)
{
	struct mr_link link = { 0 };

	assert_int_equal(mr_port_link(harness->port, &link), 0);
	return link.is_up;
}

/* Discard what came out at the wire's end. Returns how many. */
static inline uint32_t harness_collect(struct harness *harness)
{
	uint8_t bytes[WIRE_MAX_BYTES];
	uint32_t n = 0;

	while (model_wire_receive(harness->wire, 1, bytes, sizeof(bytes)) > 0)
		n++;
	return n;
}

#endif

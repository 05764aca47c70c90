/* SPDX-License-Identifier: BSD-3-Clause */
/* One port of a driver over a model. The test is at the other end of its wire.
 */
#ifndef MODEL_BED_H
#define MODEL_BED_H

#include <time.h>

#include <millrace/driver.h>
#include <millrace/millrace.h>
#include <millrace/pci.h>

#include "model/device.h"
#include "support/laws.h"
#include "support/unit.h"

enum { BED_BURST = 32, BED_PAGES = 4096, BED_OFFSET = 256 };

struct bed {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_region *region;
	struct mr_cache *cache;
	uint8_t *base;
	uint32_t n_pages;
	struct model *m;
	struct vnet *v; /* of a virtio device: the model */
	struct model_wire *wire;
	struct mr_port *port;
	struct mr_rxq *rxq;
	struct mr_txq *txq;
};

static inline uint64_t bed_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline uint64_t bed_free_pages(const struct bed *bed)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_pool_stats(bed->pool, &stats), 0);
	return stats.n_free;
}

/* All but the device, which is to be at end 0, and opening it. NULL: real time.
 */
static inline void bed_begin(struct bed *bed, struct model *m,
			     struct mr_pool_config pool_config,
			     mr_clock_fn *clock)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.max_bytes = UINT64_C(1) << 30,
	};

	memset(bed, 0, sizeof(*bed));
	bed->ctx = test_ctx_with(&bed->allocator, clock);
	assert_int_equal(
		mr_region_create(bed->ctx, &region_config, &bed->region, NULL),
		0);
	bed->base = mr_region_base(bed->region);
	pool_config.size = sizeof(pool_config);
	pool_config.region = bed->region;
	if (pool_config.n_pages == 0)
		pool_config.n_pages = BED_PAGES;
	bed->n_pages = pool_config.n_pages;
	assert_int_equal(
		mr_pool_create(bed->ctx, &pool_config, &bed->pool, NULL), 0);
	assert_int_equal(mr_cache_create(bed->pool, &bed->cache, NULL), 0);
	bed->wire = model_wire_create(256);
	assert_true(m != NULL && bed->wire != NULL);
	bed->m = m;
	model_wire_attach(bed->wire, 0, m);
	assert_int_equal(
		mr_ctx_add_pci_device(bed->ctx, "model", model_backend(), m),
		0);
}

/* The port of the device of that name. */
static inline int bed_try_open_as(struct bed *bed, const char *device,
				  const char *options, struct mr_reason *why)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = bed->pool };
	char spec[512];
	int err;

	snprintf(spec, sizeof(spec), "vfio:%s%s%s", device,
		 options[0] != '\0' ? "," : "", options);
	err = mr_port_open(bed->ctx, spec, &config, &bed->port, why);
	if (err < 0)
		return err;
	bed->rxq = mr_port_rxq(bed->port, 0);
	bed->txq = mr_port_txq(bed->port, 0);
	return 0;
}

static inline int bed_try_open(struct bed *bed, const char *options,
			       struct mr_reason *why)
{
	return bed_try_open_as(bed, "model", options, why);
}

static inline void bed_open(struct bed *bed, const char *options)
{
	struct mr_reason why = { "" };

	if (bed_try_open(bed, options, &why) < 0)
		fail_msg("%s: %s", options, why.text);
}

/* Close; every page and every block of memory is back. The model stays. */
static inline void bed_close(struct bed *bed)
{
	mr_port_close(bed->port);
	mr_cache_destroy(bed->cache);
	assert_int_equal(bed_free_pages(bed), bed->n_pages);
	assert_int_equal(mr_pool_destroy(bed->pool, NULL), 0);
	assert_int_equal(mr_region_destroy(bed->region, NULL), 0);
	mr_ctx_destroy(bed->ctx);
	assert_int_equal(bed->allocator.n_out, 0);
	assert_string_equal(model_violations(bed->m), "");
}

static inline struct mr_rx_stats bed_rx_stats(const struct bed *bed)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_rxq_stats(bed->rxq, &stats), 0);
	return stats;
}

static inline struct mr_tx_stats bed_tx_stats(const struct bed *bed)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_txq_stats(bed->txq, &stats), 0);
	return stats;
}

/* The laws of the counters, which hold whatever the device does. */
static inline void bed_check_laws(const struct bed *bed)
{
	const struct mr_rx_stats rx = bed_rx_stats(bed);
	const struct mr_tx_stats tx = bed_tx_stats(bed);

	assert_true(laws_of_rx_hold(&rx));
	assert_true(laws_of_tx_hold(&tx));
}

/* The bytes of a frame that was received, in one piece. */
static inline uint32_t bed_copy(const struct bed *bed,
				const struct mr_frame *frames, uint8_t *bytes)
{
	uint32_t n = 0, i = 0;

	do {
		memcpy(bytes + n, bed->base + frames[i].addr, frames[i].len);
		n += frames[i].len;
	} while (frames[i++].flags & MR_FRAME_MORE);
	return n;
}

/* A frame of pages that hold the bytes; how many entries it has. */
static inline uint32_t bed_frame(struct bed *bed, const uint8_t *bytes,
				 uint32_t n_bytes, struct mr_frame *frames)
{
	const uint32_t room = 4096 - BED_OFFSET;
	const uint32_t n = (n_bytes + room - 1) / room;
	uint64_t addrs[MR_MAX_SEGS];

	assert_true(n <= MR_MAX_SEGS);
	assert_int_equal(mr_frag_alloc_bulk(bed->cache, addrs, n, 4096), n);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t len = n_bytes < room ? n_bytes : room;

		frames[i] = (struct mr_frame){
			.addr = addrs[i] + BED_OFFSET,
			.len = len,
			.flags = i + 1 < n ? MR_FRAME_MORE : 0,
		};
		memcpy(bed->base + frames[i].addr, bytes, len);
		bytes += len;
		n_bytes -= len;
	}
	return n;
}

/* Send n plain frames; those refused are freed. How many were taken. */
static inline uint32_t bed_send(struct bed *bed, uint32_t n)
{
	const uint8_t bytes[60] = { 2, 0, 0, 0, 0, 9, 2 };
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_tx;

	for (uint32_t i = 0; i < n; i++)
		bed_frame(bed, bytes, sizeof(bytes), &frames[i]);
	n_tx = mr_tx_burst(bed->txq, bed->cache, frames, n);
	mr_frame_free_bulk(bed->cache, frames + n_tx, n - n_tx);
	return n_tx;
}

/* Frames towards the driver. */
static inline void bed_inject(struct bed *bed, uint32_t n)
{
	const uint8_t bytes[60] = { 2, 0, 0, 0, 0, 1, 2 };

	for (uint32_t i = 0; i < n; i++)
		model_wire_send(bed->wire, 1, bytes, sizeof(bytes));
}

/* Receive and free what is there. How many entries. */
static inline uint32_t bed_drain(struct bed *bed)
{
	struct mr_frame frames[BED_BURST];
	uint32_t n, n_all = 0;

	while ((n = mr_rx_burst(bed->rxq, bed->cache, frames, BED_BURST)) > 0) {
		assert_int_equal(mr_frame_n_whole(frames, n), n);
		mr_frame_free_bulk(bed->cache, frames, n);
		n_all += n;
	}
	return n_all;
}

static inline bool bed_is_up(const struct bed *bed)
{
	struct mr_link link = { 0 };

	assert_int_equal(mr_port_link(bed->port, &link), 0);
	return link.is_up;
}

/* What came out at the wire's end is thrown away. How many. */
static inline uint32_t bed_collect(struct bed *bed)
{
	uint8_t bytes[WIRE_MAX_BYTES];
	uint32_t n = 0;

	while (model_wire_receive(bed->wire, 1, bytes, sizeof(bytes)) > 0)
		n++;
	return n;
}

#endif

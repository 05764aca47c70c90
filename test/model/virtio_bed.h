/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The virtio driver on the model, for tests of what goes wrong and of what
 * applications that read no metadata never see. The far side is the test.
 */
#ifndef MODEL_VIRTIO_BED_H
#define MODEL_VIRTIO_BED_H

#include <time.h>

#include <millrace/driver.h>
#include <millrace/millrace.h>
#include <millrace/pci.h>

#include "model/virtio.h"
#include "packets.h"
#include "support/laws.h"
#include "support/unit.h"

enum { VBED_BURST = 32, VBED_PAGES = 4096, VBED_OFFSET = 256 };

struct vbed {
	struct test_allocator allocator;
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_region *region;
	struct mr_cache *cache;
	uint8_t *base;
	struct vnet *v;
	struct model *m;
	struct model_wire *wire;
	struct mr_port *port;
	struct mr_rxq *rxq;
	struct mr_txq *txq;
};

/* The kinds of rings, as options. */
static const char *const vbed_rings[] = {
	"packed=off,in-order=off",
	"packed=off,in-order=on",
	"packed=on,in-order=off",
	"packed=on,in-order=on",
};
enum { VBED_N_RINGS = 4 };

static inline uint64_t vbed_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static inline uint64_t vbed_free_pages(const struct vbed *bed)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_pool_stats(bed->pool, &stats), 0);
	return stats.n_free;
}

/* All but opening the port. */
static inline void vbed_make(struct vbed *bed, const struct vnet_config *config)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.max_bytes = UINT64_C(1) << 30,
	};
	struct mr_pool_config pool_config = { .size = sizeof(pool_config),
					      .n_pages = VBED_PAGES };

	memset(bed, 0, sizeof(*bed));
	bed->ctx = test_ctx(&bed->allocator);
	assert_int_equal(
		mr_region_create(bed->ctx, &region_config, &bed->region, NULL),
		0);
	bed->base = mr_region_base(bed->region);
	pool_config.region = bed->region;
	assert_int_equal(
		mr_pool_create(bed->ctx, &pool_config, &bed->pool, NULL), 0);
	assert_int_equal(mr_cache_create(bed->pool, &bed->cache, NULL), 0);
	bed->v = vnet_create(config);
	bed->wire = model_wire_create(256, false);
	assert_true(bed->v != NULL && bed->wire != NULL);
	bed->m = vnet_model(bed->v);
	model_wire_attach(bed->wire, 0, bed->m);
	assert_int_equal(mr_ctx_add_pci_device(bed->ctx, "model",
					       model_backend(), bed->m),
			 0);
}

static inline int vbed_try_open(struct vbed *bed, const char *options,
				struct mr_reason *why)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = bed->pool };
	char spec[256];
	int err;

	snprintf(spec, sizeof(spec), "vfio:model%s%s",
		 options[0] != '\0' ? "," : "", options);
	err = mr_port_open(bed->ctx, spec, &config, &bed->port, why);
	if (err < 0)
		return err;
	bed->rxq = mr_port_rxq(bed->port, 0);
	bed->txq = mr_port_txq(bed->port, 0);
	return 0;
}

static inline void vbed_open(struct vbed *bed, const char *options)
{
	struct mr_reason why = { "" };

	if (vbed_try_open(bed, options, &why) < 0)
		fail_msg("%s: %s", options, why.text);
}

/* Close; every page and every block of memory is back. */
static inline void vbed_end(struct vbed *bed)
{
	mr_port_close(bed->port);
	mr_cache_destroy(bed->cache);
	assert_int_equal(vbed_free_pages(bed), VBED_PAGES);
	assert_int_equal(mr_pool_destroy(bed->pool, NULL), 0);
	assert_int_equal(mr_region_destroy(bed->region, NULL), 0);
	mr_ctx_destroy(bed->ctx);
	assert_int_equal(bed->allocator.n_out, 0);
	assert_string_equal(model_violations(bed->m), "");
	vnet_destroy(bed->v);
	model_wire_destroy(bed->wire);
}

/* No fault any more. */
static inline void vbed_heal(struct vbed *bed)
{
	static const struct model_faults faults;
	static const struct vnet_faults more;

	model_set_faults(bed->m, &faults);
	vnet_set_faults(bed->v, &more);
}

static inline struct mr_rx_stats vbed_rx_stats(const struct vbed *bed)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_rxq_stats(bed->rxq, &stats), 0);
	return stats;
}

static inline struct mr_tx_stats vbed_tx_stats(const struct vbed *bed)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_txq_stats(bed->txq, &stats), 0);
	return stats;
}

/* The laws of the counters, which hold whatever the device does. */
static inline void vbed_check_laws(const struct vbed *bed)
{
	const struct mr_rx_stats rx = vbed_rx_stats(bed);
	const struct mr_tx_stats tx = vbed_tx_stats(bed);

	assert_true(laws_of_rx_hold(&rx));
	assert_true(laws_of_tx_hold(&tx));
}

/* The bytes of a frame that was received, in one piece. */
static inline uint32_t vbed_copy(const struct vbed *bed,
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
static inline uint32_t vbed_frame(struct vbed *bed, const uint8_t *bytes,
				  uint32_t n_bytes, struct mr_frame *frames)
{
	const uint32_t room = 4096 - VBED_OFFSET;
	const uint32_t n = (n_bytes + room - 1) / room;
	uint64_t addrs[MR_MAX_SEGS];

	assert_true(n <= MR_MAX_SEGS);
	assert_int_equal(mr_frag_alloc_bulk(bed->cache, addrs, n, 4096), n);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t len = n_bytes < room ? n_bytes : room;

		frames[i] = (struct mr_frame){
			.addr = addrs[i] + VBED_OFFSET,
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
static inline uint32_t vbed_send(struct vbed *bed, uint32_t n)
{
	const uint8_t bytes[60] = { 2, 0, 0, 0, 0, 9, 2 };
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n_tx;

	for (uint32_t i = 0; i < n; i++)
		vbed_frame(bed, bytes, sizeof(bytes), &frames[i]);
	n_tx = mr_tx_burst(bed->txq, bed->cache, frames, n);
	mr_frame_free_bulk(bed->cache, frames + n_tx, n - n_tx);
	return n_tx;
}

/* Frames towards the driver. */
static inline void vbed_inject(struct vbed *bed, uint32_t n)
{
	const uint8_t bytes[60] = { 2, 0, 0, 0, 0, 1, 2 };

	for (uint32_t i = 0; i < n; i++)
		model_wire_send(bed->wire, 1, bytes, sizeof(bytes));
}

/* Receive and free what is there. How many entries. */
static inline uint32_t vbed_drain(struct vbed *bed)
{
	struct mr_frame frames[VBED_BURST];
	uint32_t n, n_all = 0;

	while ((n = mr_rx_burst(bed->rxq, bed->cache, frames, VBED_BURST)) >
	       0) {
		assert_int_equal(mr_frame_n_whole(frames, n), n);
		mr_frame_free_bulk(bed->cache, frames, n);
		n_all += n;
	}
	return n_all;
}

static inline bool vbed_is_up(const struct vbed *bed)
{
	struct mr_link link = { 0 };

	assert_int_equal(mr_port_link(bed->port, &link), 0);
	return link.is_up;
}

/* What came out at the wire's end is thrown away. How many. */
static inline uint32_t vbed_collect(struct vbed *bed)
{
	uint8_t bytes[WIRE_MAX_BYTES];
	uint32_t n = 0;

	while (model_wire_receive(bed->wire, 1, bytes, sizeof(bytes)) > 0)
		n++;
	return n;
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A virtio device that does what the input says, whatever the specification
 * does: no page is lost, none is handed out twice, the counters add up, and
 * every call returns.
 *
 * The first byte chooses the port's options, the second what the device is,
 * then there are three bytes for each step.
 */
#include <stdio.h>
#include <string.h>

#include <millrace/driver.h>
#include <millrace/millrace.h>
#include <millrace/pci.h>

#include "fuzz.h"
#include "model/virtio.h"
#include "support/invariants.h"

const struct fuzz_seed fuzz_seeds[] = {
	/* Frames in, frames out, and again. */
	SEED("\0\0\0\5\0\1\3\0\2\5\0\3\0\0\0\5\0\1\3\0\2\5\0\3\0\0"),
	SEED("\3\0\0\x20\3\1\3\0\2\5\0\3\0\0\0\5\0\1\3\0\2\5\0\3\0\0"),
	SEED("\5\3\5\1\1\0\5\0\1\3\0\2\5\0\3\0\0\0\5\0\1\3\0\2\5\0\3\0\0"),
	SEED("\1\1\0\5\0\6\1\2\0\7\2\1\3\0\2\5\0\3\0\0\4\0\0"),
	SEED("\2\2\0\x20\xff\1\x20\0\5\4\2\0\x20\x10\1\x20\0\4\0\0\1\1\0"),
	SEED("\7\0\5\x08\1\0\x20\3\1\3\0\4\0\0\5\0\0\0\5\0\1\3\0\6\0\2"),
	SEED("\4\5\0\5\0\7\0\1\3\0\2\4\0\0\7\1\0\4\0\0\0\5\0\1\3\0"),
	{ NULL, 0 },
};

static const char *const options[] = {
	"packed=off,in-order=off",
	"packed=off,in-order=on",
	"packed=on,in-order=off",
	"packed=on,in-order=on",
	"packed=off,in-order=off,mtu=9000,csum=on,hash=on",
	"packed=off,in-order=on,mtu=9000,tso=on",
	"packed=on,in-order=off,mtu=9000,tso=on,hash=on",
	"packed=on,in-order=on,mtu=9000,csum=on",
};

enum { BURST = 32, N_PAGES = 2048, MAX_STEPS = 400 };

struct harness {
	struct mr_ctx *ctx;
	struct mr_region *region;
	struct mr_pool *pool;
	struct mr_cache *cache;
	struct vnet *v;
	struct model_wire *wire;
	struct mr_port *port;
	struct mr_rxq *rxq;
	struct mr_txq *txq;
	struct model_faults faults;
	struct vnet_faults more;
};

static void inject(struct harness *harness, uint32_t n, uint32_t len)
{
	static uint8_t bytes[9018];

	for (uint32_t i = 0; i < n % 40; i++)
		model_wire_send(harness->wire, 1, bytes, 14 + len * 36 % 9000);
}

static void receive(struct harness *harness)
{
	struct mr_frame frames[BURST];
	struct mr_meta meta[BURST];
	const uint32_t n = mr_rx_burst_meta(harness->rxq, harness->cache,
					    frames, meta, BURST);
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	FUZZ_CHECK(n <= BURST);
	FUZZ_CHECK(mr_frame_n_whole(frames, n) == n);
	for (uint32_t i = 0; i < n; i++) {
		FUZZ_CHECK(frames[i].len > 0 && frames[i].len <= 4096);
		for (uint32_t k = 0; k < i; k++)
			FUZZ_CHECK(frames[k].addr != frames[i].addr);
	}
	mr_frame_free_bulk(harness->cache, frames, n);
	mr_rxq_stats(harness->rxq, &stats);
	FUZZ_CHECK(invariants_of_rx_hold(&stats));
}

static void send(struct harness *harness, uint32_t n, uint32_t n_segs)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };
	struct mr_frame frames[BURST];
	uint64_t addrs[BURST];
	uint32_t n_tx;

	n = mr_frag_alloc_bulk(harness->cache, addrs, n % (BURST + 1), 4096);
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){
			.addr = addrs[i] + 256,
			.len = 60,
			.flags = i % (n_segs % 19 + 1) != 0 && i + 1 < n ?
					 MR_FRAME_MORE :
					 0,
		};
	n_tx = mr_tx_burst(harness->txq, harness->cache, frames, n);
	FUZZ_CHECK(n_tx <= n);
	mr_frame_free_bulk(harness->cache, frames + n_tx, n - n_tx);
	mr_txq_stats(harness->txq, &stats);
	FUZZ_CHECK(invariants_of_tx_hold(&stats));
}

static void collect(struct harness *harness)
{
	uint8_t bytes[WIRE_MAX_BYTES];

	while (model_wire_receive(harness->wire, 1, bytes, sizeof(bytes)) > 0)
		;
	model_step(vnet_model(harness->v));
}

/* Another thing goes wrong, one time in n; or ceases to. */
static void set_fault(struct harness *harness, uint32_t which, uint32_t n)
{
	uint32_t *const numbers[] = {
		&harness->faults.late_completions,
		&harness->faults.wrong_completion,
		&harness->faults.lost_irqs,
		&harness->faults.spurious_irqs,
		&harness->faults.bad_length,
		&harness->faults.bad_id,
		&harness->faults.bad_count,
		&harness->faults.bad_hash,
		&harness->faults.dma_unmapped,
		&harness->faults.link_down,
		&harness->more.needs_reset,
		&harness->more.reordered,
		&harness->more.doubled,
		&harness->more.idx_jumps,
		&harness->more.bad_header,
	};

	*numbers[which % (sizeof(numbers) / sizeof(numbers[0]))] = n % 16;
	vnet_set_faults(harness->v, &harness->more);
	model_set_faults(vnet_model(harness->v), &harness->faults);
}

static void step(struct harness *harness, const uint8_t *bytes)
{
	switch (bytes[0] % 8) {
	case 0:
		inject(harness, bytes[1], bytes[2]);
		break;
	case 1:
		send(harness, bytes[1], bytes[2]);
		break;
	case 2:
		receive(harness);
		break;
	case 3:
		collect(harness);
		break;
	case 4:
		mr_port_poll(harness->port);
		break;
	case 5:
		set_fault(harness, bytes[1], bytes[2]);
		break;
	case 6:
		vnet_scribble(harness->v, bytes[1] & 3, bytes[1] >> 2 & 3,
			      (bytes[1] >> 4) * 2u,
			      (uint16_t)(bytes[2] * 0x101));
		break;
	default:
		mr_queue_arm(&harness->rxq->queue);
		mr_queue_arm(&harness->txq->queue);
	}
}

/* A context knows its devices for good, so each input has its own. */
static void make_pool(struct harness *harness)
{
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.max_bytes = UINT64_C(1) << 30,
	};
	struct mr_pool_config pool_config = { .size = sizeof(pool_config),
					      .n_pages = N_PAGES };

	FUZZ_CHECK(mr_ctx_create(NULL, &harness->ctx, NULL) == 0);
	FUZZ_CHECK(mr_region_create(harness->ctx, &region_config,
				    &harness->region, NULL) == 0);
	pool_config.region = harness->region;
	FUZZ_CHECK(mr_pool_create(harness->ctx, &pool_config, &harness->pool,
				  NULL) == 0);
	FUZZ_CHECK(mr_cache_create(harness->pool, &harness->cache, NULL) == 0);
}

/* All that the device had is back. */
static void destroy_pool(struct harness *harness)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	mr_cache_destroy(harness->cache);
	mr_pool_stats(harness->pool, &stats);
	FUZZ_CHECK(stats.n_in_flight == 0);
	FUZZ_CHECK(stats.n_free == stats.n_pages);
	FUZZ_CHECK(mr_pool_destroy(harness->pool, NULL) == 0);
	FUZZ_CHECK(mr_region_destroy(harness->region, NULL) == 0);
	mr_ctx_destroy(harness->ctx);
}

/* The device of an input: its features, and whether it is sound. */
static struct vnet *make_device(uint8_t byte)
{
	const uint64_t must =
		VNET_BIT(VNET_VERSION_1) | VNET_BIT(VNET_ACCESS_PLATFORM) |
		VNET_BIT(VNET_RING_PACKED) | VNET_BIT(VNET_IN_ORDER);
	const uint64_t all = vnet_all_features();
	const struct vnet_config config = {
		.features = (byte & 1) != 0 ? all & ~VNET_BIT(VNET_EVENT_IDX) :
			    (byte & 2) != 0 ? must | (all & 0x1f0ff) :
					      all,
		.mtu_bytes = 9000,
		.queue_size = 64,
		.polls_tx = byte >> 2 & 1,
		.caps = byte >= 128 ? byte % VNET_N_CAPS : VNET_CAPS_GOOD,
	};

	return vnet_create(&config);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	struct harness harness = { .port = NULL };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why = { .text = "" };
	char spec[128];

	if (n_bytes < 2)
		return 0;
	make_pool(&harness);
	config.pool = harness.pool;
	harness.v = make_device(bytes[1]);
	harness.wire = model_wire_create(64);
	FUZZ_CHECK(harness.v != NULL && harness.wire != NULL);
	model_wire_attach(harness.wire, 0, vnet_model(harness.v));
	FUZZ_CHECK(mr_ctx_add_pci_device(harness.ctx, "fuzz", model_backend(),
					 vnet_model(harness.v)) == 0);
	snprintf(spec, sizeof(spec), "vfio:fuzz,%s", options[bytes[0] % 8]);
	if (mr_port_open(harness.ctx, spec, &config, &harness.port, &why) ==
	    0) {
		harness.rxq = mr_port_rxq(harness.port, 0);
		harness.txq = mr_port_txq(harness.port, 0);
		for (size_t i = 2, n = 0; i + 3 <= n_bytes && n < MAX_STEPS;
		     i += 3, n++)
			step(&harness, bytes + i);
		mr_port_close(harness.port);
	} else {
		FUZZ_CHECK(why.text[0] != '\0');
	}
	destroy_pool(&harness);
	vnet_destroy(harness.v);
	model_wire_destroy(harness.wire);
	return 0;
}

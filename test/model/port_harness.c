/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <millrace/pci.h>

#include "model/port_harness.h"
#include "support/invariants.h"

enum { LINK_NS = 200000, SEGMENT_BYTES = 2000 };

/* Failing to create the harness is not a test result. */
static void need(bool is_there, const char *what)
{
	if (is_there)
		return;
	fprintf(stderr, "port_harness: no %s\n", what);
	abort();
}

void port_harness_make(struct port_harness *harness,
		       const struct intel_chip *chip0,
		       const struct intel_chip *chip1,
		       uint64_t (*clock_ns)(void *opaque))
{
	const struct intel_chip *const chips[] = { chip0, chip1 };
	const struct mr_ctx_config ctx_config = { .size = sizeof(ctx_config),
						  .clock = clock_ns };
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.max_bytes = UINT64_C(1) << 30,
	};
	struct mr_pool_config config = { .size = sizeof(config),
					 .n_pages = PORT_BED_PAGES };
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mr_reason why;
	char name[8];

	memset(harness, 0, sizeof(*harness));
	need(mr_ctx_create(&ctx_config, &harness->ctx, NULL) == 0, "context");
	need(mr_region_create(harness->ctx, &region_config, &harness->region,
			      &why) == 0,
	     "region");
	config.region = harness->region;
	need(mr_pool_create(harness->ctx, &config, &harness->pool, &why) == 0,
	     "pool");
	need(mr_cache_create(harness->pool, &harness->cache, &why) == 0,
	     "cache");
	harness->base = mr_region_base(harness->region);
	harness->wire = model_wire_create(512);
	need(harness->wire != NULL, "wire");
	for (uint32_t i = 0; i < PORT_BED_NICS && chips[i] != NULL; i++) {
		const uint8_t mac[6] = { 2, 0x4d, 0x52, 0, 0, (uint8_t)i };

		harness->nics[i] = intel_create(chips[i], mac);
		need(harness->nics[i] != NULL, "model");
		harness->nics[i]->link_delay_ns = LINK_NS;
		model_wire_attach(harness->wire, i, &harness->nics[i]->m);
		harness->nics[i]->m.now = clock_ns;
		need(clock_ns != NULL || model_start(&harness->nics[i]->m) == 0,
		     "thread");
		snprintf(name, sizeof(name), "nic%u", i);
		need(mr_ctx_add_pci_device(harness->ctx, name, model_backend(),
					   &harness->nics[i]->m) == 0,
		     "device");
	}
}

int port_harness_open(struct port_harness *harness, uint32_t i,
		      const char *options, struct mr_reason *why)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = harness->pool };
	char spec[256];

	snprintf(spec, sizeof(spec), "vfio:nic%u%s", i, options);
	return mr_port_open(harness->ctx, spec, &config, &harness->ports[i],
			    why);
}

bool port_harness_wait_link(struct port_harness *harness, uint32_t i,
			    bool is_up)
{
	const struct timespec nap = { .tv_nsec = 100000 };

	for (uint32_t n = 0; n < 50000; n++) {
		struct mr_link link = { .is_up = 0 };

		mr_port_poll(harness->ports[i]);
		if (mr_port_link(harness->ports[i], &link) == 0 &&
		    (link.is_up != 0) == is_up)
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

static void get_stats(struct port_harness *harness, uint32_t i,
		      struct mr_rx_stats *rx, struct mr_tx_stats *tx)
{
	rx->size = sizeof(*rx);
	tx->size = sizeof(*tx);
	mr_rxq_stats(mr_port_rxq(harness->ports[i], 0), rx);
	mr_txq_stats(mr_port_txq(harness->ports[i], 0), tx);
}

bool port_harness_invariants_hold(struct port_harness *harness, uint32_t i)
{
	struct mr_rx_stats rx;
	struct mr_tx_stats tx;

	get_stats(harness, i, &rx, &tx);
	return invariants_of_rx_hold(&rx) && invariants_of_tx_hold(&tx);
}

void port_harness_close(struct port_harness *harness, uint32_t i)
{
	struct mr_rx_stats rx;
	struct mr_tx_stats tx;

	if (harness->ports[i] == NULL)
		return;
	get_stats(harness, i, &rx, &tx);
	harness->n_drops += invariants_sum(rx.drops) + invariants_sum(tx.drops);
	harness->n_events +=
		invariants_sum(rx.events) + invariants_sum(tx.events);
	mr_port_close(harness->ports[i]);
	harness->ports[i] = NULL;
}

bool port_harness_end(struct port_harness *harness)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	bool is_whole;

	for (uint32_t i = 0; i < PORT_BED_NICS; i++)
		port_harness_close(harness, i);
	mr_cache_destroy(harness->cache);
	mr_pool_stats(harness->pool, &stats);
	is_whole = stats.n_in_flight == 0 && stats.n_free == stats.n_pages &&
		   stats.n_committed == 0;
	is_whole &= mr_pool_destroy(harness->pool, NULL) == 0;
	is_whole &= mr_region_destroy(harness->region, NULL) == 0;
	mr_ctx_destroy(harness->ctx);
	for (uint32_t i = 0; i < PORT_BED_NICS; i++)
		intel_destroy(harness->nics[i]);
	model_wire_destroy(harness->wire);
	return is_whole;
}

uint32_t port_harness_frame(struct port_harness *harness,
			    struct mr_frame *frames, const uint8_t *bytes,
			    uint32_t n_bytes)
{
	const uint32_t n = (n_bytes + SEGMENT_BYTES - 1) / SEGMENT_BYTES;
	uint64_t addrs[MR_MAX_SEGS];

	need(n <= MR_MAX_SEGS &&
		     mr_frag_alloc_bulk(harness->cache, addrs, n, 4096) == n,
	     "pages");
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t len =
			n_bytes < SEGMENT_BYTES ? n_bytes : SEGMENT_BYTES;

		frames[i] = (struct mr_frame){
			.addr = addrs[i] + 128,
			.len = len,
			.flags = i + 1 < n ? MR_FRAME_MORE : 0,
		};
		memcpy(harness->base + frames[i].addr, bytes, len);
		bytes += len;
		n_bytes -= len;
	}
	return n;
}

int32_t port_harness_bytes(const struct port_harness *harness,
			   const struct mr_frame *frames, uint8_t *bytes,
			   uint32_t room)
{
	uint32_t n_bytes = 0, i = 0;

	do {
		if (i == MR_MAX_SEGS || frames[i].len > room - n_bytes)
			return -1;
		memcpy(bytes + n_bytes, harness->base + frames[i].addr,
		       frames[i].len);
		n_bytes += frames[i].len;
	} while (frames[i++].flags & MR_FRAME_MORE);
	return (int32_t)n_bytes;
}

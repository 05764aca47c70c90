/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dpdk driver: frames of any kind through a pair of rings in memory.
 *
 *     8 bytes a frame: which page, where in it, how long, flags, metadata
 *
 * All share their pages with others. Each is received, a named drop, or the
 * caller's still; and at the end every page is free.
 */
#include <stdio.h>
#include <string.h>

#include <rte_eth_ring.h>
#include <rte_ring.h>

#include <millrace/millrace.h>

#include "fuzz.h"
#include "support/invariants.h"

enum { N_PAGES = 4096, RING = 64, BURST = 32, FRAME_BYTES = 8 };

const struct fuzz_seed fuzz_seeds[] = {
	/* Plain, a clone, in two entries, tagged, to be summed, and bad ones.
	 */
	SEED("\0\x80\0\x40\0\0\0\0\0\x80\0\x40\0\0\0\0"
	     "\1\x80\0\x40\0\1\0\0\2\x80\0\x40\0\0\0\0"),
	SEED("\3\x80\0\x64\0\0\1\0\4\x80\0\x64\0\2\2\0\5\xff\x0f\xff\xff\0\0"),
	{ NULL, 0 },
};

static struct mr_ctx *ctx;
static struct mr_pool *pool;
static struct mr_cache *cache;
static struct mr_port *ports[2];

static struct mr_port *open_port(const char *spec)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = pool };
	struct mr_port *port = NULL;
	struct mr_reason why;

	if (mr_port_open(ctx, spec, &config, &port, &why) < 0)
		fprintf(stderr, "%s\n", why.text);
	FUZZ_CHECK(port != NULL);
	return port;
}

/* Once: EAL does not end. */
static void set_up(void)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = N_PAGES };
	struct rte_ring *rings[2];

	FUZZ_CHECK(mr_ctx_create(NULL, &ctx, NULL) == 0);
	FUZZ_CHECK(mr_pool_create(ctx, &config, &pool, NULL) == 0);
	FUZZ_CHECK(mr_cache_create(pool, &cache, NULL) == 0);
	mr_port_close(open_port("dpdk:net_null0,eal=--no-huge -m 64"));
	for (int i = 0; i < 2; i++)
		rings[i] = rte_ring_create(i == 0 ? "fz0" : "fz1", RING,
					   SOCKET_ID_ANY, RING_F_EXACT_SZ);
	for (int i = 0; i < 2; i++) {
		char name[32], spec[64];

		snprintf(name, sizeof(name), "fz%d", i);
		FUZZ_CHECK(rte_eth_from_rings(name, &rings[i], 1, &rings[1 - i],
					      1, 0) >= 0);
		snprintf(spec, sizeof(spec), "dpdk:net_ring_%s,ring=%d", name,
			 RING);
		ports[i] = open_port(spec);
	}
}

/* A frame out of 8 bytes, with a reference of its own on one of the pages. */
static void make_frame(const uint8_t *bytes, const uint64_t *pages,
		       uint32_t n_pages, struct mr_frame *frame,
		       struct mr_meta *meta)
{
	const uint64_t page = pages[bytes[0] % n_pages];
	const uint32_t at = bytes[1] | (uint32_t)(bytes[2] & 0xf) << 8;
	struct mr_frame whole = { page, 64, 0 };

	FUZZ_CHECK(mr_frame_ref(cache, &whole, 1) == 0);
	*frame = (struct mr_frame){
		.addr = page + at,
		.len = bytes[3] | (uint32_t)bytes[4] << 8,
		.flags = (bytes[5] & 1 ? MR_FRAME_MORE : 0) |
			 (bytes[5] & 2 ? MR_FRAME_CSUM_PARTIAL : 0),
	};
	*meta = (struct mr_meta){
		.valid = (bytes[6] & 1 ? MR_META_VLAN : 0) |
			 (bytes[6] & 2 ? MR_META_CSUM : 0) |
			 (bytes[6] & 4 ? MR_META_GSO : 0),
		.vlan_tci = bytes[7],
		.csum_start_bytes = bytes[7],
		.csum_offset_bytes = bytes[6] >> 3,
		.gso_bytes = bytes[7],
	};
}

static struct mr_tx_stats stats_of(struct mr_port *port)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	FUZZ_CHECK(mr_txq_stats(mr_port_txq(port, 0), &stats) == 0);
	return stats;
}

static void send_frames(struct mr_frame *frames, struct mr_meta *meta,
			uint32_t n)
{
	struct mr_frame got[BURST];
	struct mr_tx_stats stats;
	uint32_t n_rx, n_tx;

	frames[n - 1].flags &= ~(uint32_t)MR_FRAME_MORE;
	n_tx = mr_tx_burst_meta(mr_port_txq(ports[0], 0), cache, frames, meta,
				n);
	FUZZ_CHECK(n_tx <= n);
	/* One by one: an address of a bad frame names its page alone. */
	for (uint32_t i = n_tx; i < n; i++) {
		frames[i].flags = 0;
		mr_frame_free_bulk(cache, &frames[i], 1);
	}
	while ((n_rx = mr_rx_burst(mr_port_rxq(ports[1], 0), cache, got,
				   BURST)) > 0)
		mr_frame_free_bulk(cache, got, n_rx);
	stats = stats_of(ports[0]);
	FUZZ_CHECK(invariants_of_tx_hold(&stats));
	FUZZ_CHECK(stats.pending == 0);
}

static void try_frames(const uint8_t *bytes, size_t n_bytes)
{
	enum { N_SHARED = 8 };
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct mr_frame frames[BURST];
	struct mr_meta meta[BURST];
	uint64_t pages[N_SHARED];
	uint32_t n = 0;

	FUZZ_CHECK(mr_frag_alloc_bulk(cache, pages, N_SHARED, 4096) ==
		   N_SHARED);
	for (; n_bytes >= FRAME_BYTES;
	     bytes += FRAME_BYTES, n_bytes -= FRAME_BYTES) {
		make_frame(bytes, pages, N_SHARED, &frames[n], &meta[n]);
		if (++n == BURST || n_bytes < 2 * FRAME_BYTES) {
			send_frames(frames, meta, n);
			n = 0;
		}
	}
	mr_frag_free_bulk(cache, pages, N_SHARED);
	FUZZ_CHECK(mr_pool_stats(pool, &stats) == 0);
	FUZZ_CHECK(stats.n_in_flight == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
	if (ctx == NULL)
		set_up();
	try_frames(bytes, n_bytes);
	return 0;
}

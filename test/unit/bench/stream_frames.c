/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writes frames of streams to a capture, for stream_frames.py:
 *
 *     stream-frames OUT.pcap N_FRAMES STAMPED TEXT...
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <millrace/millrace.h>

#include "stream/stream.h"

enum { MAGIC = 0x5eed1234, BURST = 37 };

/* Through a port, as the tester sends. */
static void send_frames(struct mr_port *port, struct mr_pool *pool,
			struct builder *builder, uint32_t max_bytes, uint32_t n)
{
	void *base = mr_region_base(mr_pool_region(pool));
	struct mr_txq *txq = mr_port_txq(port, 0);
	struct mr_cache *cache;
	struct mr_reason why;

	if (mr_cache_create(pool, &cache, &why) < 0)
		errx(1, "%s", why.text);
	while (n > 0) {
		const uint32_t n_burst = n < BURST ? n : BURST;
		struct mr_frame frames[BURST];
		uint64_t addrs[BURST], due_ns[BURST];

		if (mr_frag_alloc_bulk(cache, addrs, n_burst, max_bytes) !=
		    n_burst)
			errx(1, "no pages");
		for (uint32_t i = 0; i < n_burst; i++) {
			frames[i].addr = addrs[i];
			due_ns[i] = UINT64_C(1000000007) * (n - i);
		}
		builder_fill(builder, base, frames, due_ns, n_burst);
		if (mr_tx_burst(txq, cache, frames, n_burst) != n_burst)
			errx(1, "the port takes no more");
		n -= n_burst;
	}
	mr_cache_destroy(cache);
}

int main(int argc, char **argv)
{
	const struct stream_defaults defaults = {
		.src_mac = { 2, 0, 0, 0, 0, 1 },
		.dst_mac = { 2, 0, 0, 0, 0, 2 },
		.is_stamped = argc > 3 && strcmp(argv[3], "1") == 0,
		.magic = MAGIC,
	};
	struct mr_reason why = { .text = "" };
	struct mr_pool_config pool_config = { .size = sizeof(pool_config),
					      .n_pages = 512 };
	struct mr_port_config port_config = { .size = sizeof(port_config) };
	struct streams *streams;
	struct builder *builder;
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_port *port;
	char spec[512];

	if (argc < 4)
		errx(2, "usage: %s OUT.pcap N_FRAMES STAMPED TEXT...", argv[0]);
	if (streams_parse((const char *const *)argv + 4, (uint32_t)argc - 4,
			  &defaults, &streams, &why) < 0 ||
	    builder_open(streams, 0, 1, 1, &builder, &why) < 0 ||
	    mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_pool_create(ctx, &pool_config, &pool, &why) < 0)
		errx(1, "%s", why.text);
	port_config.pool = pool;
	snprintf(spec, sizeof(spec), "pcap:tx=%s", argv[1]);
	if (mr_port_open(ctx, spec, &port_config, &port, &why) < 0)
		errx(1, "%s", why.text);
	send_frames(port, pool, builder, streams_max_bytes(streams),
		    (uint32_t)strtoul(argv[2], NULL, 10));
	mr_port_close(port);
	if (mr_pool_destroy(pool, &why) < 0)
		errx(1, "%s", why.text);
	mr_ctx_destroy(ctx);
	builder_free(builder);
	streams_free(streams);
	return 0;
}

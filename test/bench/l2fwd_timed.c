/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs examples/l2fwd.c for some seconds, then prints its rate, as the same
 * example in Rust does.
 *
 *     l2fwd-timed PORT PORT SECONDS
 */
#define main l2fwd_main
#include "l2fwd.c" /* of examples/ */
#undef main

#include <stdlib.h>

int main(int argc, char **argv)
{
	struct mr_pool_config pool_config = { .size = sizeof(pool_config) };
	struct mr_port_config port_config = { .size = sizeof(port_config) };
	struct mr_rx_stats stats = { .size = sizeof(stats) };
	struct mr_ctx *ctx;
	struct mr_cache *cache;
	struct mr_port *port[2];
	struct mr_reason why;
	uint64_t start, now, limit_ns, n_dropped = 0, n_frames = 0;

	if (argc != 4)
		errx(2, "usage: %s PORT PORT SECONDS", argv[0]);
	limit_ns = (uint64_t)(atof(argv[3]) * 1e9);
	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_pool_size_for(ctx, (const char **)argv + 1, 2, 1, 1,
			     &pool_config, &why) < 0 ||
	    mr_pool_create(ctx, &pool_config, &port_config.pool, &why) < 0 ||
	    mr_cache_create(port_config.pool, &cache, &why) < 0 ||
	    mr_port_open(ctx, argv[1], &port_config, &port[0], &why) < 0 ||
	    mr_port_open(ctx, argv[2], &port_config, &port[1], &why) < 0)
		errx(1, "%s", why.text);

	now = start = mr_ctx_now_ns(ctx);
	while (now - start < limit_ns) {
		for (int i = 0; i < 256; i++) {
			n_dropped += forward(port[0], port[1], cache);
			n_dropped += forward(port[1], port[0], cache);
		}
		now = mr_ctx_now_ns(ctx);
	}
	for (int i = 0; i < 2; i++) {
		mr_rxq_stats(mr_port_rxq(port[i], 0), &stats);
		n_frames += stats.delivered;
		mr_port_close(port[i]);
	}
	printf("%.0f frames/s, dropped %" PRIu64 " entries\n",
	       n_frames / ((now - start) / 1e9), n_dropped);
	mr_cache_destroy(cache);
	mr_pool_destroy(port_config.pool, NULL);
	mr_ctx_destroy(ctx);
	return 0;
}

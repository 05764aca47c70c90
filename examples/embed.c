/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * embed: receive one burst on a port. The README shows the inside of main().
 *
 *     ./embed null:
 */
#include <err.h>
#include <stdio.h>

#include <millrace/millrace.h>

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: %s PORT, for example null:", argv[0]);

	struct mr_pool_config pool = { .size = sizeof(pool) };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_frame frames[32];
	struct mr_reason why;
	struct mr_cache *cache;
	struct mr_port *port;
	struct mr_ctx *ctx;

	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_pool_size_for(ctx, (const char **)argv + 1, 1, 1, 1, &pool,
			     &why) < 0 ||
	    mr_pool_create(ctx, &pool, &config.pool, &why) < 0 ||
	    mr_cache_create(config.pool, &cache, &why) < 0 ||
	    mr_port_open(ctx, argv[1], &config, &port, &why) < 0)
		errx(1, "%s", why.text);

	uint32_t n = mr_rx_burst(mr_port_rxq(port, 0), cache, frames, 32);
	printf("%u entries, %u bytes in the first\n", n, n ? frames->len : 0);
	mr_frame_free_bulk(cache, frames, n);

	mr_port_close(port);
	mr_cache_destroy(cache);
	mr_pool_destroy(config.pool, NULL);
	mr_ctx_destroy(ctx);
	return 0;
}

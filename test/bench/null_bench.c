/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * null_bench: what the library itself costs per frame.
 *
 *     null: --> mr_rx_burst() --> mr_tx_burst() --> null:     and back
 *
 *     null_bench [--seconds 1] [--burst 32]
 *
 * Two null ports, both directions, one thread: allocating a page, handing a
 * frame over and freeing it. Built against an installed Millrace with
 * pkg-config, as any program would be. Prints one line of JSON.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <millrace/millrace.h>

enum { ROUNDS_PER_CLOCK = 4096 };

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec * 1e-9;
}

static uint32_t forward(struct mr_rxq *rxq, struct mr_txq *txq,
			struct mr_cache *cache, uint32_t n)
{
	struct mr_frame frames[MR_BURST_MAX];
	const uint32_t n_rx = mr_rx_burst(rxq, cache, frames, n);
	const uint32_t n_tx = mr_tx_burst(txq, cache, frames, n_rx);

	mr_frame_free_bulk(cache, frames + n_tx, n_rx - n_tx);
	return n_tx;
}

static void measure(struct mr_port *const port[2], struct mr_cache *cache,
		    uint32_t burst, double seconds)
{
	const double begin = now_s();
	uint64_t n_frames = 0;
	double elapsed;

	do {
		for (int i = 0; i < ROUNDS_PER_CLOCK; i++) {
			n_frames +=
			    forward(mr_port_rxq(port[0], 0),
				    mr_port_txq(port[1], 0), cache, burst);
			n_frames +=
			    forward(mr_port_rxq(port[1], 0),
				    mr_port_txq(port[0], 0), cache, burst);
		}
		elapsed = now_s() - begin;
	} while (elapsed < seconds);
	printf("{\"burst\":%u,\"frames\":%" PRIu64 ",\"seconds\":%.6f,"
	       "\"ns_per_frame\":%.4f}\n",
	       burst, n_frames, elapsed, elapsed * 1e9 / (double)n_frames);
}

int main(int argc, char **argv)
{
	struct mr_port_config config = {.size = sizeof(config)};
	struct mr_pool_config pool_config = {.size = sizeof(pool_config)};
	struct mr_port *port[2];
	struct mr_cache *cache;
	struct mr_reason why;
	struct mr_ctx *ctx;
	double seconds = 1;
	uint32_t burst = 32;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (strcmp(argv[i], "--seconds") == 0)
			seconds = strtod(argv[i + 1], NULL);
		else if (strcmp(argv[i], "--burst") == 0)
			burst = (uint32_t)strtoul(argv[i + 1], NULL, 10);
	}
	/* What is no number is 0, and 0 is refused. */
	if (argc % 2 != 1 || burst < 1 || burst > MR_BURST_MAX || seconds <= 0)
		errx(2, "usage: null_bench [--seconds S] [--burst N]");

	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_pool_create(ctx, &pool_config, &config.pool, &why) < 0 ||
	    mr_cache_create(config.pool, &cache, &why) < 0)
		errx(1, "%s", why.text);
	for (int i = 0; i < 2; i++)
		if (mr_port_open(ctx, "null:", &config, &port[i], &why) < 0)
			errx(1, "null: %s", why.text);

	measure(port, cache, burst, seconds / 10); /* warm-up */
	measure(port, cache, burst, seconds);

	for (int i = 0; i < 2; i++)
		mr_port_close(port[i]);
	mr_cache_destroy(cache);
	if (mr_pool_destroy(config.pool, &why) < 0)
		errx(1, "%s", why.text);
	mr_ctx_destroy(ctx);
	return 0;
}

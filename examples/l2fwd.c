/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * l2fwd: forward every frame between two ports, in both directions.
 *
 *     sudo ./l2fwd xdp:eth0 xdp:eth1
 *     ./l2fwd pcap:rx=in.pcap pcap:tx=out.pcap      (no hardware, no root)
 */
#include <err.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include <millrace/millrace.h>

enum { BURST = 32 }; /* MR_MAX_SEGS or more */

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	stop = sig;
}

/*
 * Move one burst of each queue. Frames that `to` does not take are still ours,
 * and we drop them: a forwarder that waits turns overload into latency. Returns
 * the number of entries dropped.
 */
static uint64_t forward(struct mr_port *from, struct mr_port *to,
			struct mr_cache *cache)
{
	struct mr_txq *txq = mr_port_txq(to, 0);
	struct mr_frame frames[BURST];
	uint64_t n_dropped = 0;
	struct mr_rxq *rxq;

	for (uint32_t i = 0; (rxq = mr_port_rxq(from, i)) != NULL; i++) {
		uint32_t n_rx = mr_rx_burst(rxq, cache, frames, BURST);
		uint32_t n_tx = mr_tx_burst(txq, cache, frames, n_rx);

		mr_frame_free_bulk(cache, frames + n_tx, n_rx - n_tx);
		n_dropped += n_rx - n_tx;
	}
	return n_dropped;
}

int main(int argc, char **argv)
{
	/* Members that are not named are 0: the default. */
	struct mr_pool_config pool_config = { .size = sizeof(pool_config) };
	struct mr_port_config port_config = { .size = sizeof(port_config) };
	struct mr_ctx *ctx;
	struct mr_cache *cache; /* this thread's share of the pool */
	struct mr_port *port[2];
	struct mr_reason why;
	uint64_t n_dropped = 0;

	if (argc != 3)
		errx(2, "usage: %s PORT PORT, for example xdp:eth0", argv[0]);

	if (mr_ctx_create(NULL, &ctx, &why) < 0)
		errx(1, "context: %s", why.text);
	if (mr_pool_size_for(ctx, (const char **)argv + 1, 2, 1, 1,
			     &pool_config, &why) < 0 ||
	    mr_pool_create(ctx, &pool_config, &port_config.pool, &why) < 0 ||
	    mr_cache_create(port_config.pool, &cache, &why) < 0)
		errx(1, "pool: %s", why.text);
	for (int i = 0; i < 2; i++)
		if (mr_port_open(ctx, argv[1 + i], &port_config, &port[i],
				 &why) < 0)
			errx(1, "%s: %s", argv[1 + i], why.text);

	signal(SIGINT, on_signal);
	while (!stop) {
		n_dropped += forward(port[0], port[1], cache);
		n_dropped += forward(port[1], port[0], cache);
	}

	printf("dropped %" PRIu64 " entries\n", n_dropped);
	for (int i = 0; i < 2; i++)
		mr_port_close(port[i]);
	mr_cache_destroy(cache);
	mr_pool_destroy(port_config.pool, NULL);
	mr_ctx_destroy(ctx);
	return 0;
}

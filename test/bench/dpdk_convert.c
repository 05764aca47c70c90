/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpdk_convert: what a frame costs between DPDK's burst and ours.
 *
 *     rte_eth_rx_burst() -> rx callback | mr_rx_burst() returns
 *     mr_tx_burst() is called | tx callback -> rte_eth_tx_burst()
 *
 * Callbacks of DPDK read the clock where its part ends and begins; what lies
 * between that and our call's end or beginning is ours. On net_null, in bursts,
 * one line of JSON: ns per frame, rx and tx, and of a whole round.
 *
 *     dpdk_convert [BURST [SECONDS]]
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>

#include <millrace/millrace.h>

static uint64_t at_callback;

static uint16_t rx_callback(uint16_t port, uint16_t queue,
			    struct rte_mbuf **mbufs, uint16_t n, uint16_t room,
			    void *opaque)
{
	(void)port;
	(void)queue;
	(void)mbufs;
	(void)room;
	(void)opaque;
	at_callback = rte_rdtsc_precise();
	return n;
}

static uint16_t tx_callback(uint16_t port, uint16_t queue,
			    struct rte_mbuf **mbufs, uint16_t n, void *opaque)
{
	return rx_callback(port, queue, mbufs, n, n, opaque);
}

/* What reading the clock twice in a row takes: the least of many times. */
static uint64_t clock_cost(void)
{
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < 100000; i++) {
		const uint64_t from = rte_rdtsc_precise();
		const uint64_t took = rte_rdtsc_precise() - from;

		least = took < least ? took : least;
	}
	return least;
}

static struct mr_port *open_port(struct mr_ctx *ctx, struct mr_cache **cache)
{
	const struct mr_pool_config pool = { .size = sizeof(pool) };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why;
	struct mr_port *port;

	if (mr_pool_create(ctx, &pool, &config.pool, &why) < 0 ||
	    mr_cache_create(config.pool, cache, &why) < 0 ||
	    mr_port_open(ctx, "dpdk:net_null0", &config, &port, &why) < 0)
		errx(1, "%s", why.text);
	return port;
}

struct times {
	uint64_t rx, tx, all; /* ticks */
	uint64_t n_frames;
};

static void round_trip(struct mr_port *port, struct mr_cache *cache,
		       uint32_t burst, uint64_t clock, struct times *times)
{
	struct mr_frame frames[MR_BURST_MAX];
	const uint64_t begin = rte_rdtsc_precise();
	const uint32_t n =
		mr_rx_burst(mr_port_rxq(port, 0), cache, frames, burst);
	const uint64_t received = rte_rdtsc_precise();

	times->rx += received - at_callback - clock;
	if (mr_tx_burst(mr_port_txq(port, 0), cache, frames, n) != n)
		errx(1, "net_null did not take all");
	times->tx += at_callback - received - clock;
	times->all += rte_rdtsc_precise() - begin;
	times->n_frames += n;
}

int main(int argc, char **argv)
{
	const uint32_t burst = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 32;
	const double seconds = argc > 2 ? strtod(argv[2], NULL) : 1;
	struct times times = { 0 };
	struct mr_cache *cache;
	struct mr_reason why;
	struct mr_ctx *ctx;
	uint64_t clock, end;
	uint16_t id;
	double ns;

	if (burst == 0 || burst > MR_BURST_MAX)
		errx(2, "usage: %s [BURST [SECONDS]]", argv[0]);
	if (mr_ctx_create(NULL, &ctx, &why) < 0)
		errx(1, "%s", why.text);
	struct mr_port *port = open_port(ctx, &cache);

	if (rte_eth_dev_get_port_by_name("net_null0", &id) < 0 ||
	    rte_eth_add_rx_callback(id, 0, rx_callback, NULL) == NULL ||
	    rte_eth_add_tx_callback(id, 0, tx_callback, NULL) == NULL)
		errx(1, "DPDK was built without callbacks");
	clock = clock_cost();
	ns = 1e9 / (double)rte_get_tsc_hz();
	for (int i = 0; i < 10000; i++)
		round_trip(port, cache, burst, clock, &times);
	times = (struct times){ 0 };
	end = rte_rdtsc() + (uint64_t)(seconds * 1e9 / ns);
	while (rte_rdtsc() < end)
		round_trip(port, cache, burst, clock, &times);
	ns /= (double)times.n_frames;
	printf("{\"burst\":%u,\"rx_ns\":%.3f,\"tx_ns\":%.3f,\"round_ns\":%.3f,"
	       "\"n_frames\":%llu}\n",
	       burst, (double)times.rx * ns, (double)times.tx * ns,
	       (double)times.all * ns, (unsigned long long)times.n_frames);
	mr_port_close(port);
	return 0;
}

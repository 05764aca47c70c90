/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpdk_convert: what a frame costs between DPDK's burst and ours.
 *
 *     rte_eth_rx_burst() -> rx callback | mr_rx_burst() returns
 *     mr_tx_burst() is called | tx callback -> rte_eth_tx_burst()
 *
 * Callbacks of DPDK read the clock where its part ends and begins; what lies
 * between that and our call's end or beginning is ours. On net_null, in bursts,
 * one line of JSON: ns per frame, rx and tx; and of a whole round, without
 * callbacks, of ours, and of DPDK alone on mempools of its own, the usual one
 * and one of pinned external buffers, as our view is. Those three take turns.
 * Of all, the median turn counts.
 *
 *     dpdk_convert [BURST]
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include <millrace/millrace.h>

enum { N_TURNS = 300, ROUNDS = 1000, N_MBUFS = 8191 };

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

/* The least time between two reads of the clock, of many. */
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

/* A port used by DPDK alone, on a mempool of its own with a cache. */
static uint16_t open_plain(const char *name, struct rte_mempool *mempool)
{
	const struct rte_eth_conf conf = { 0 };
	uint16_t id;

	if (mempool == NULL || rte_dev_probe(name) < 0 ||
	    rte_eth_dev_get_port_by_name(name, &id) < 0 ||
	    rte_eth_dev_configure(id, 1, 1, &conf) < 0 ||
	    rte_eth_rx_queue_setup(id, 0, 512, 0, NULL, mempool) < 0 ||
	    rte_eth_tx_queue_setup(id, 0, 512, 0, NULL) < 0 ||
	    rte_eth_dev_start(id) < 0)
		errx(1, "no port %s of DPDK's alone", name);
	return id;
}

static struct rte_mempool *pinned_mempool(void)
{
	const size_t n_bytes = (size_t)(N_MBUFS + 1) * 4096;
	struct rte_pktmbuf_extmem memory = {
		.buf_ptr = aligned_alloc(2 << 20, n_bytes),
		.buf_iova = RTE_BAD_IOVA, /* net_null does not use it */
		.buf_len = n_bytes,
		.elt_size = 4096,
	};

	return rte_pktmbuf_pool_create_extbuf("pinned", N_MBUFS, 250, 0, 4096,
					      0, &memory, 1);
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

static void round_trip(struct mr_port *port, struct mr_cache *cache,
		       uint32_t burst, uint64_t clock, uint64_t *rx,
		       uint64_t *tx)
{
	struct mr_frame frames[MR_BURST_MAX];
	const uint32_t n =
		mr_rx_burst(mr_port_rxq(port, 0), cache, frames, burst);
	const uint64_t received = rte_rdtsc_precise();

	*rx += received - at_callback - clock;
	if (mr_tx_burst(mr_port_txq(port, 0), cache, frames, n) != n)
		errx(1, "net_null did not take all");
	*tx += at_callback - received - clock;
}

/* Measure our side once: ticks of ROUNDS bursts in each direction. */
static uint64_t our_turn(struct mr_port *port, struct mr_cache *cache,
			 uint32_t burst)
{
	const uint64_t begin = rte_rdtsc();

	for (int i = 0; i < ROUNDS; i++) {
		struct mr_frame frames[MR_BURST_MAX];
		const uint32_t n =
			mr_rx_burst(mr_port_rxq(port, 0), cache, frames, burst);

		if (n != burst ||
		    mr_tx_burst(mr_port_txq(port, 0), cache, frames, n) != n)
			errx(1, "net_null did not take all");
	}
	return rte_rdtsc() - begin;
}

static uint64_t dpdks_turn(uint16_t id, uint32_t burst)
{
	const uint64_t begin = rte_rdtsc();

	for (int i = 0; i < ROUNDS; i++) {
		struct rte_mbuf *mbufs[MR_BURST_MAX];
		const uint16_t n =
			rte_eth_rx_burst(id, 0, mbufs, (uint16_t)burst);

		if (n != burst || rte_eth_tx_burst(id, 0, mbufs, n) != n)
			errx(1, "net_null did not take all");
	}
	return rte_rdtsc() - begin;
}

static int compare_ticks(const void *a, const void *b)
{
	const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static double median(uint64_t *ticks)
{
	qsort(ticks, N_TURNS, sizeof(ticks[0]), compare_ticks);
	return (double)ticks[N_TURNS / 2];
}

/* Measure between the bursts; print the first half of the line. */
static void convert(struct mr_port *port, struct mr_cache *cache,
		    uint32_t burst, double ns)
{
	static uint64_t rx[N_TURNS], tx[N_TURNS];
	const uint64_t clock = clock_cost();

	for (int i = 0; i < N_TURNS; i++)
		for (int k = 0; k < ROUNDS; k++)
			round_trip(port, cache, burst, clock, &rx[i], &tx[i]);
	ns /= (double)burst * ROUNDS;
	printf("{\"burst\":%u,\"rx_ns\":%.3f,\"tx_ns\":%.3f", burst,
	       median(rx) * ns, median(tx) * ns);
}

/* Measure whole rounds in turn; print the second half. */
static void compare(struct mr_port *port, struct mr_cache *cache,
		    uint32_t burst, double ns)
{
	static uint64_t ours[N_TURNS], usual[N_TURNS], pinned[N_TURNS];
	uint16_t usual_id, pinned_id;

	/* DPDK's mempools have caches only for registered threads. */
	if (rte_thread_register() < 0)
		errx(1, "the thread cannot be registered");
	usual_id = open_plain(
		"net_null1",
		rte_pktmbuf_pool_create("usual", N_MBUFS, 250, 0, 2176, 0));
	pinned_id = open_plain("net_null2", pinned_mempool());
	for (int i = 0; i < N_TURNS; i++) {
		ours[i] = our_turn(port, cache, burst);
		usual[i] = dpdks_turn(usual_id, burst);
		pinned[i] = dpdks_turn(pinned_id, burst);
	}
	ns /= (double)burst * ROUNDS;
	printf(",\"round_ns\":%.3f,\"usual_ns\":%.3f,\"pinned_ns\":%.3f}\n",
	       median(ours) * ns, median(usual) * ns, median(pinned) * ns);
}

int main(int argc, char **argv)
{
	const uint32_t burst =
		argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 32;
	const struct rte_eth_rxtx_callback *on_rx, *on_tx;
	struct mr_cache *cache;
	struct mr_reason why;
	struct mr_ctx *ctx;
	uint16_t id;
	double ns;

	if (burst == 0 || burst > MR_BURST_MAX)
		errx(2, "usage: %s [BURST]", argv[0]);
	if (mr_ctx_create(NULL, &ctx, &why) < 0)
		errx(1, "%s", why.text);
	struct mr_port *port = open_port(ctx, &cache);

	if (rte_eth_dev_get_port_by_name("net_null0", &id) < 0 ||
	    (on_rx = rte_eth_add_rx_callback(id, 0, rx_callback, NULL)) ==
		    NULL ||
	    (on_tx = rte_eth_add_tx_callback(id, 0, tx_callback, NULL)) == NULL)
		errx(1, "DPDK was built without callbacks");
	ns = 1e9 / (double)rte_get_tsc_hz();
	convert(port, cache, burst, ns);
	rte_eth_remove_rx_callback(id, 0, on_rx);
	rte_eth_remove_tx_callback(id, 0, on_tx);
	compare(port, cache, burst, ns);
	mr_port_close(port);
	return 0;
}

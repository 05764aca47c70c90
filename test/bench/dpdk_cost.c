/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpdk_cost: both ends of a vhost-user socket in one process, and one thread
 * that works for both, so that callgrind counts the same bursts in each run.
 *
 *     dpdk_cost EAL-OPTIONS -- NAME PEER BYTES BURST N_FRAMES
 *
 * PEER is a device of DPDK's (a vdev, with options); NAME is what is measured:
 * another one, or after "mr:" the spec of a port. One of both listens:
 * NAME, if that is a back end (vhost). Each frame goes from PEER to NAME and
 * back. Prints "frames N". What is counted is in measured_rx() and
 * measured_tx().
 */
#include <err.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>

#include <millrace/millrace.h>

#include "dpdk_port.h"

enum { MAX_BURST = 256, N_DESCRIPTORS = 512, LIMIT_S = 60, MS = 1000000 };

/* Of DPDK's, or ours if port is not NULL. */
struct end {
	uint16_t id;
	struct rte_mempool *mempool;
	struct mr_port *port;
	struct mr_cache *cache;
	union {
		struct rte_mbuf *mbufs[MAX_BURST];
		struct mr_frame frames[MAX_BURST];
	};
};

/* Neither inlined nor cloned, so that callgrind finds them by name. */
__attribute__((noipa)) uint32_t measured_rx(struct end *end, uint32_t n);
__attribute__((noipa)) uint32_t measured_tx(struct end *end, uint32_t n);

static inline uint32_t receive(struct end *end, uint32_t n)
{
	return end->port != NULL ?
		       mr_rx_burst(mr_port_rxq(end->port, 0), end->cache,
				   end->frames, n) :
		       rte_eth_rx_burst(end->id, 0, end->mbufs, (uint16_t)n);
}

static inline uint32_t transmit(struct end *end, uint32_t n)
{
	return end->port != NULL ?
		       mr_tx_burst(mr_port_txq(end->port, 0), end->cache,
				   end->frames, n) :
		       rte_eth_tx_burst(end->id, 0, end->mbufs, (uint16_t)n);
}

uint32_t measured_rx(struct end *end, uint32_t n)
{
	return receive(end, n);
}

uint32_t measured_tx(struct end *end, uint32_t n)
{
	return transmit(end, n);
}

static void open_dpdk(struct end *end, const char *vdev)
{
	char name[64];

	if (rte_dev_probe(vdev) < 0)
		errx(1, "%s: no such device", vdev);
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(vdev, ","), vdev);
	end->id = dpdk_port_open(name, N_DESCRIPTORS, &end->mempool);
}

static void open_ours(struct end *end, const char *spec)
{
	/* Valgrind has no room for the usual 64 GiB. */
	const struct mr_region_config region = { .size = sizeof(region),
						 .max_bytes = UINT64_C(1)
							      << 30 };
	struct mr_pool_config pool = { .size = sizeof(pool) };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why;
	struct mr_ctx *ctx;

	if (mr_ctx_create(NULL, &ctx, &why) < 0 ||
	    mr_region_create(ctx, &region, &pool.region, &why) < 0 ||
	    mr_pool_create(ctx, &pool, &config.pool, &why) < 0 ||
	    mr_cache_create(config.pool, &end->cache, &why) < 0 ||
	    mr_port_open(ctx, spec, &config, &end->port, &why) < 0)
		errx(1, "%s: %s", spec, why.text);
}

static void open_end(struct end *end, const char *name)
{
	if (strncmp(name, "mr:", 3) == 0)
		open_ours(end, name + 3);
	else
		open_dpdk(end, name);
}

static bool is_over;

/* DPDK's front end blocks until the port has answered. */
static void *poll_port(void *port)
{
	const struct timespec pause = { .tv_nsec = MS };

	while (!__atomic_load_n(&is_over, __ATOMIC_ACQUIRE)) {
		mr_port_poll(port);
		nanosleep(&pause, NULL);
	}
	return NULL;
}

/* The back end first, because it listens. */
static void connect_ends(struct end *end, const char *name, struct end *peer,
			 const char *peer_name)
{
	pthread_t thread;

	if (strstr(peer_name, "vhost") != NULL) {
		open_end(peer, peer_name);
		open_end(end, name);
		return;
	}
	open_end(end, name);
	if (end->port != NULL &&
	    pthread_create(&thread, NULL, poll_port, end->port) != 0)
		errx(1, "no thread");
	open_end(peer, peer_name);
	if (end->port == NULL)
		return;
	__atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

/* Send frames until one arrives; then all of them, there and back. */
static void warm_up(struct end *end, struct end *peer, uint16_t n_bytes)
{
	const time_t limit = time(NULL) + LIMIT_S;
	uint32_t n, n_left = 1;

	do {
		if (time(NULL) > limit)
			errx(1, "no frame arrives");
		if (end->port != NULL)
			mr_port_poll(end->port);
		dpdk_frames_make(peer->mempool, peer->mbufs, 1, n_bytes);
		if (transmit(peer, 1) == 0)
			rte_pktmbuf_free(peer->mbufs[0]);
		n = receive(end, MAX_BURST);
	} while (n == 0);
	while ((n = transmit(end, n)) > 0 || n_left > 0) {
		n_left = receive(peer, MAX_BURST);
		rte_pktmbuf_free_bulk(peer->mbufs, n_left);
		n = receive(end, MAX_BURST);
	}
}

/*
 * A burst of frames from the peer to the other end and back. DPDK's front end
 * may return some in a second burst, so that the next begins at a cache line.
 */
static void round_trip(struct end *end, struct end *peer, uint32_t burst,
		       uint16_t n_bytes)
{
	uint32_t n, n_out = 0, n_back = 0;

	dpdk_frames_make(peer->mempool, peer->mbufs, (uint16_t)burst, n_bytes);
	if (transmit(peer, burst) != burst)
		errx(1, "the peer's ring is full");
	for (uint32_t i = 0; i < 2 && n_out < burst; i++) {
		n = measured_rx(end, burst);
		n_out += measured_tx(end, n);
	}
	for (uint32_t i = 0; i < 2 && n_back < burst; i++) {
		n = receive(peer, burst);
		rte_pktmbuf_free_bulk(peer->mbufs, n);
		n_back += n;
	}
	if (n_back != burst)
		errx(1, "of %u frames, %u were sent back and %u arrived", burst,
		     n_out, n_back);
}

int main(int argc, char **argv)
{
	static struct end end, peer;
	const int n_eal = rte_eal_init(argc, argv);
	uint32_t n_bytes, burst;
	uint64_t n, n_done;

	if (n_eal < 0 || argc - n_eal != 6)
		errx(2, "usage: %s EAL-OPTIONS -- NAME PEER BYTES BURST N",
		     argv[0]);
	argv += n_eal;
	n_bytes = (uint32_t)strtoul(argv[3], NULL, 10);
	burst = (uint32_t)strtoul(argv[4], NULL, 10);
	n = strtoull(argv[5], NULL, 10);
	if (burst == 0 || burst > MAX_BURST)
		errx(2, "a burst has 1 to %d frames", MAX_BURST);
	connect_ends(&end, argv[1], &peer, argv[2]);
	warm_up(&end, &peer, (uint16_t)n_bytes);
	for (n_done = 0; n_done < n; n_done += burst)
		round_trip(&end, &peer, burst, (uint16_t)n_bytes);
	printf("frames %" PRIu64 "\n", n_done);
	if (end.port != NULL)
		mr_port_close(end.port);
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/pair: an end closes while the other end's thread is in the
 * middle of a burst. test/conformance has the rest.
 */
#include <pthread.h>
#include <stdbool.h>

#include <millrace/millrace.h>

#include "support/unit.h"

enum { BURST = 256, RING = 4096, N_ROUNDS = 3000 };

struct bench {
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_cache *cache;
	struct mr_port *far;
	bool stop; /* atomic */
};

static struct mr_port *open_end(struct bench *bench)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = bench->pool };
	struct mr_reason why;
	struct mr_port *port;

	if (mr_port_open(bench->ctx, "pair:race,ring=4096", &config, &port,
			 &why) < 0)
		fail_msg("%s", why.text);
	return port;
}

/* Receives without a pause, so that it nearly always is in a burst. */
static void *receive_frames(void *opaque)
{
	struct bench *bench = opaque;
	struct mr_rxq *rxq = mr_port_rxq(bench->far, 0);
	struct mr_frame frames[BURST];
	struct mr_cache *cache;

	if (mr_cache_create(bench->pool, &cache, NULL) < 0)
		return opaque;
	while (!__atomic_load_n(&bench->stop, __ATOMIC_ACQUIRE)) {
		const uint32_t n = mr_rx_burst(rxq, cache, frames, BURST);

		mr_frame_free_bulk(cache, frames, n);
	}
	mr_cache_destroy(cache);
	return NULL;
}

/* As many frames as the ring takes, and at times fewer. */
static void fill_ring(struct bench *bench, struct mr_port *port, uint32_t n)
{
	struct mr_frame frames[BURST];
	uint64_t addrs[BURST];

	while (n > 0) {
		const uint32_t n_got = mr_frag_alloc_bulk(
			bench->cache, addrs, n < BURST ? n : BURST, 4096);
		uint32_t n_tx;

		for (uint32_t i = 0; i < n_got; i++)
			frames[i] = (struct mr_frame){ addrs[i] + 128, 60, 0 };
		n_tx = mr_tx_burst(mr_port_txq(port, 0), bench->cache, frames,
				   n_got);
		mr_frame_free_bulk(bench->cache, frames + n_tx, n_got - n_tx);
		if (n_tx < BURST)
			return;
		n -= n_tx;
	}
}

/*
 * What the closed end had sent is either received or given back, once: a page
 * that was lost, or freed twice, shows in the pool's count.
 */
TEST(each_frame_is_received_or_given_back)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 16384 };
	struct mr_pool_stats stats = { .size = sizeof(stats) };
	struct bench bench = { .stop = false };
	struct mr_reason why;
	pthread_t thread;
	void *failed;

	assert_int_equal(mr_ctx_create(NULL, &bench.ctx, NULL), 0);
	assert_int_equal(mr_pool_create(bench.ctx, &config, &bench.pool, NULL),
			 0);
	assert_int_equal(mr_cache_create(bench.pool, &bench.cache, NULL), 0);
	bench.far = open_end(&bench);
	assert_int_equal(pthread_create(&thread, NULL, receive_frames, &bench),
			 0);
	for (uint32_t round = 0; round < N_ROUNDS; round++) {
		struct mr_port *near = open_end(&bench);

		fill_ring(&bench, near, RING - round % 1000);
		mr_port_close(near);
	}
	__atomic_store_n(&bench.stop, true, __ATOMIC_RELEASE);
	pthread_join(thread, &failed);
	assert_null(failed);
	mr_port_close(bench.far);
	mr_cache_destroy(bench.cache);
	mr_pool_stats(bench.pool, &stats);
	assert_int_equal(stats.n_in_flight, 0);
	assert_int_equal(stats.n_free, stats.n_pages);
	if (mr_pool_destroy(bench.pool, &why) < 0)
		fail_msg("%s", why.text);
	mr_ctx_destroy(bench.ctx);
}

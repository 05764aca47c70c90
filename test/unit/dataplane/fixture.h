/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A data plane whose ports are pair:0, pair:1, ...; the test has the other ends
 * and a cache of its own. What open_plane() made is closed when the test ends,
 * and every page must be back.
 *
 *     test --> pair:0 --> workers --> pair:1 --> test
 */
#ifndef DATAPLANE_FIXTURE_H
#define DATAPLANE_FIXTURE_H

#include <sched.h>

#include <millrace/millrace.h>

#include "support/unit_ctx.h"

enum { MAX_PEERS = 2, DATA_BYTES = 60 };

static struct mr_dataplane *dp; /* NULL: not open */
static struct mr_port *peers[MAX_PEERS];
static struct mr_cache *cache; /* the test's own */

static inline void need_two_cores(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	if (CPU_COUNT(&set) >= 2)
		return;
	print_message("needs two cores\n");
	skip();
}

static inline struct mr_dataplane_config config_of(const char *const *specs)
{
	return (struct mr_dataplane_config){
		.size = sizeof(struct mr_dataplane_config),
		.specs = specs,
		.ctx = ctx,
		.n_workers = 1
	};
}

static inline void open_plane(const struct mr_dataplane_config *config)
{
	struct mr_reason why = { "" };

	if (mr_dataplane_open(config, &dp, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(mr_cache_create(dp->pool, &cache, NULL), 0);
	for (uint32_t p = 0; p < dp->n_ports && p < MAX_PEERS; p++) {
		const struct mr_port_config port = { .size = sizeof(port),
						     .pool = dp->pool };

		if (strncmp(config->specs[p], "pair:", 5) == 0 &&
		    mr_port_open(ctx, config->specs[p], &port, &peers[p],
				 &why) < 0)
			fail_msg("%s", why.text);
	}
}

/* Take what a port has sent. Returns the number of frames. */
static inline uint32_t receive_from(uint32_t port)
{
	struct mr_frame frames[MR_BURST_MAX];
	uint32_t n, n_all = 0;

	for (uint32_t q = 0; mr_port_rxq(peers[port], q) != NULL; q++)
		do {
			n = mr_rx_burst(mr_port_rxq(peers[port], q), cache,
					frames, MR_BURST_MAX);
			mr_frame_free_bulk(cache, frames, n);
			n_all += n;
		} while (n > 0);
	return n_all;
}

static inline void close_plane(void)
{
	struct mr_pool_stats pool = { .size = sizeof(pool) };
	struct mr_reason why = { "" };

	mr_dataplane_close_ports(dp);
	for (uint32_t p = 0; p < MAX_PEERS; p++)
		mr_port_close(peers[p]);
	memset(peers, 0, sizeof(peers));
	mr_cache_destroy(cache);
	assert_int_equal(mr_pool_stats(dp->pool, &pool), 0);
	assert_int_equal(pool.n_free, pool.n_pages);
	if (mr_dataplane_close(dp, &why) < 0)
		fail_msg("%s", why.text);
	dp = NULL;
}

static inline int plane_tear_down(void **state)
{
	if (dp != NULL)
		close_plane();
	return ctx_tear_down(state);
}

#define PLANE_TEST(name) TEST_WITH(ctx_set_up, plane_tear_down, name)
#define PLANE_TEST_MT(name) TEST_AS(ctx_set_up, plane_tear_down, name, true)

/* Fresh frames of one entry. */
static inline void take_frames(struct mr_cache *from, struct mr_frame *frames,
			       uint32_t n)
{
	uint64_t addrs[MR_BURST_MAX];

	assert_int_equal(mr_frag_alloc_bulk(from, addrs, n, 4096), n);
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ addrs[i], DATA_BYTES, 0 };
}

/* Put frames where a queue of a port receives them. */
static inline void send_to(uint32_t port, uint32_t queue, uint32_t n)
{
	struct mr_frame frames[MR_BURST_MAX];

	take_frames(cache, frames, n);
	assert_int_equal(
		mr_tx_burst(mr_port_txq(peers[port], queue), cache, frames, n),
		n);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports for tests of workers: the workers have one end of each pair, the test
 * has the other, and a cache of its own.
 *
 *     test --> pair:0 --> workers --> pair:1 --> test
 */
#ifndef WORKER_RIG_H
#define WORKER_RIG_H

#include <sched.h>

#include <millrace/millrace.h>

#include "support/unit.h"
#include "worker/worker.h"

enum { RIG_PORTS = 3, RIG_PAGES = 16384, RIG_RING = 256 };

struct rig {
	struct mr_ctx *ctx;
	struct mr_pool *pool;
	struct mr_port *near[RIG_PORTS], *far[RIG_PORTS];
	struct mr_cache *cache; /* the test's own */
	struct mr_workers *workers;
	uint32_t n_ports;
	char warnings[2048];
};

static inline void rig_log(void *opaque, enum mr_log_level level,
			   const char *line)
{
	struct rig *rig = opaque;
	const size_t n = strlen(rig->warnings);

	if (level == MR_LOG_WARNING)
		snprintf(rig->warnings + n, sizeof(rig->warnings) - n, "%s\n",
			 line);
}

static inline uint32_t rig_n_cores(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	return (uint32_t)CPU_COUNT(&set);
}

/* Skips the test where there is one. */
static inline void rig_need_two_cores(void)
{
	if (rig_n_cores() >= 2)
		return;
	print_message("needs two cores\n");
	skip();
}

static inline struct mr_port *rig_port(struct rig *rig, uint32_t i)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .n_workers = 2,
					       .pool = rig->pool };
	struct mr_reason why = { "" };
	struct mr_port *port = NULL;
	char spec[48];

	snprintf(spec, sizeof(spec), "pair:%u,ring=%d,sg=on", i, RIG_RING);
	if (mr_port_open(rig->ctx, spec, &config, &port, &why) < 0)
		fail_msg("%s", why.text);
	return port;
}

static inline void rig_open(struct rig *rig, mr_clock_fn *clock,
			    uint32_t n_workers, enum mr_idle_mode idle)
{
	const struct mr_ctx_config ctx_config = { .size = sizeof(ctx_config),
						  .opaque = rig,
						  .log = rig_log,
						  .clock = clock };
	const struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						    .n_pages = RIG_PAGES };
	struct mr_workers_config config = { .size = sizeof(config),
					    .n_workers = n_workers,
					    .n_ports = RIG_PORTS,
					    .handoff_entries = 64,
					    .idle = idle };
	struct mr_reason why = { "" };

	memset(rig, 0, sizeof(*rig));
	assert_int_equal(mr_ctx_create(&ctx_config, &rig->ctx, NULL), 0);
	assert_int_equal(
		mr_pool_create(rig->ctx, &pool_config, &rig->pool, NULL), 0);
	for (uint32_t i = 0; i < RIG_PORTS; i++) {
		rig->near[i] = rig_port(rig, i);
		rig->far[i] = rig_port(rig, i);
	}
	assert_int_equal(mr_cache_create(rig->pool, &rig->cache, NULL), 0);
	config.pool = rig->pool;
	config.ports = rig->near;
	if (mr_workers_create(rig->ctx, &config, &rig->workers, &why) < 0)
		fail_msg("%s", why.text);
}

/* Everything is closed; and every page came back. */
static inline void rig_close(struct rig *rig)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	for (uint32_t i = 0; i < RIG_PORTS; i++) {
		mr_port_close(rig->near[i]);
		mr_port_close(rig->far[i]);
	}
	mr_workers_destroy(rig->workers);
	mr_cache_destroy(rig->cache);
	assert_int_equal(mr_pool_stats(rig->pool, &stats), 0);
	assert_int_equal(stats.n_in_flight, 0);
	assert_int_equal(stats.n_free, stats.n_pages);
	assert_int_equal(mr_pool_destroy(rig->pool, NULL), 0);
	mr_ctx_destroy(rig->ctx);
}

/* Fresh entries of one frame each; data is 64 bytes. */
static inline void rig_frames(struct rig *rig, struct mr_cache *cache,
			      struct mr_frame *frames, uint32_t n)
{
	uint64_t addrs[MR_BURST_MAX];

	(void)rig;
	assert_int_equal(mr_frag_alloc_bulk(cache, addrs, n, 4096), n);
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ addrs[i] + 128, 64, 0 };
}

/* The number that a test writes into a frame. */
static inline uint64_t *rig_number(struct rig *rig,
				   const struct mr_frame *frame)
{
	return (uint64_t *)mr_frame_data(
		mr_region_base(mr_pool_region(rig->pool)), frame);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports for tests of workers: the workers have one end of each pair, the test
 * has the other, and a cache of its own. What fixture_open() made is closed
 * when the test ends.
 *
 *     test --> pair:0 --> workers --> pair:1 --> test
 */
#ifndef WORKER_FIXTURE_H
#define WORKER_FIXTURE_H

#include <sched.h>

#include <millrace/millrace.h>

#include "support/unit.h"
#include "worker/worker.h"

enum { FIXTURE_PORTS = 3, FIXTURE_PAGES = 16384, FIXTURE_RING = 256 };

#define FIXTURE_TEST(name) TEST_WITH(NULL, fixture_tear_down, name)

static struct fixture {
	struct mr_ctx *ctx; /* NULL: not open */
	struct mr_pool *pool;
	struct mr_port *near[FIXTURE_PORTS], *far[FIXTURE_PORTS];
	struct mr_cache *cache; /* the test's own */
	struct mr_workers *workers;
	char warnings[2048];
} fixture;

/* Of fixture_open(): hand-off rings carry metadata. */
static bool fixture_has_meta;

static inline void fixture_log(void *opaque, enum mr_log_level level,
			       const char *line)
{
	const size_t n = strlen(fixture.warnings);

	(void)opaque;
	if (level == MR_LOG_WARNING)
		snprintf(fixture.warnings + n, sizeof(fixture.warnings) - n,
			 "%s\n", line);
}

static inline uint32_t fixture_n_cores(void)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	return (uint32_t)CPU_COUNT(&set);
}

/* Skips the test where there is one. */
static inline void fixture_need_two_cores(void)
{
	if (fixture_n_cores() >= 2)
		return;
	print_message("needs two cores\n");
	skip();
}

static inline struct mr_port *fixture_port(uint32_t i)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .n_workers = 2,
					       .pool = fixture.pool };
	struct mr_reason why = { "" };
	struct mr_port *port = NULL;
	char spec[48];

	snprintf(spec, sizeof(spec), "pair:%u,ring=%d,sg=on", i, FIXTURE_RING);
	if (mr_port_open(fixture.ctx, spec, &config, &port, &why) < 0)
		fail_msg("%s", why.text);
	return port;
}

static inline void fixture_open(mr_clock_fn *clock, uint32_t n_workers,
				enum mr_idle_mode idle)
{
	const struct mr_ctx_config ctx_config = { .size = sizeof(ctx_config),
						  .log = fixture_log,
						  .clock = clock };
	const struct mr_pool_config pool_config = { .size = sizeof(pool_config),
						    .n_pages = FIXTURE_PAGES };
	struct mr_workers_config config = { .size = sizeof(config),
					    .n_workers = n_workers,
					    .n_ports = FIXTURE_PORTS,
					    .handoff_entries = 64,
					    .has_meta = fixture_has_meta,
					    .idle = idle };
	struct mr_reason why = { "" };

	memset(&fixture, 0, sizeof(fixture));
	assert_int_equal(mr_ctx_create(&ctx_config, &fixture.ctx, NULL), 0);
	assert_int_equal(
		mr_pool_create(fixture.ctx, &pool_config, &fixture.pool, NULL),
		0);
	for (uint32_t i = 0; i < FIXTURE_PORTS; i++) {
		fixture.near[i] = fixture_port(i);
		fixture.far[i] = fixture_port(i);
	}
	assert_int_equal(mr_cache_create(fixture.pool, &fixture.cache, NULL),
			 0);
	config.pool = fixture.pool;
	config.ports = fixture.near;
	if (mr_workers_create(fixture.ctx, &config, &fixture.workers, &why) < 0)
		fail_msg("%s", why.text);
}

/* Two workers. Returns one that has no tx queue of a port, and that port. */
static inline struct mr_worker *fixture_open_handoff(mr_clock_fn *clock,
						     enum mr_idle_mode idle,
						     uint32_t *ret_port)
{
	fixture_need_two_cores();
	fixture_open(clock, 2, idle);
	for (uint32_t w = 0; w < 2; w++)
		for (uint32_t p = 0; p < FIXTURE_PORTS; p++) {
			struct mr_worker *worker =
				mr_workers_get(fixture.workers, w);

			*ret_port = p;
			if (worker->routes[p].handoff != NULL)
				return worker;
		}
	fail_msg("no hand-off in a map that needs one");
	return NULL;
}

/* Everything is closed; and every page came back. */
static inline void fixture_close(void)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	for (uint32_t i = 0; i < FIXTURE_PORTS; i++) {
		mr_port_close(fixture.near[i]);
		mr_port_close(fixture.far[i]);
	}
	mr_workers_destroy(fixture.workers);
	mr_cache_destroy(fixture.cache);
	assert_int_equal(mr_pool_stats(fixture.pool, &stats), 0);
	assert_int_equal(stats.n_in_flight, 0);
	assert_int_equal(stats.n_free, stats.n_pages);
	assert_int_equal(mr_pool_destroy(fixture.pool, NULL), 0);
	mr_ctx_destroy(fixture.ctx);
	fixture.ctx = NULL;
}

static inline int fixture_tear_down(void **state)
{
	(void)state;
	if (fixture.ctx != NULL)
		fixture_close();
	return 0;
}

static inline void fixture_start(mr_worker_fn *fn, void *opaque)
{
	assert_int_equal(mr_workers_start(fixture.workers, fn, opaque, NULL),
			 0);
}

static inline void fixture_join(void)
{
	assert_int_equal(
		mr_workers_join(fixture.workers, test_limit_ms(5000), NULL), 0);
}

/* Fresh entries of one frame each; data is 64 bytes. */
static inline void fixture_frames(struct mr_cache *cache,
				  struct mr_frame *frames, uint32_t n)
{
	uint64_t addrs[MR_BURST_MAX];

	assert_int_equal(mr_frag_alloc_bulk(cache, addrs, n, 4096), n);
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ addrs[i] + 128, 64, 0 };
}

/* The number that a test writes into a frame. */
static inline uint64_t *fixture_number(const struct mr_frame *frame)
{
	return (uint64_t *)mr_frame_data(
		mr_region_base(mr_pool_region(fixture.pool)), frame);
}

#endif

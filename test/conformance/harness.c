/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "harness.h"
#include "support/limit.h"

static const struct fixture *the_fixture;
static const char *the_options;
static struct harness the_harness, the_second;

const struct fixture *harness_fixture(void)
{
	return the_fixture;
}

void harness_set_fixture(const struct fixture *fixture, const char *options)
{
	the_fixture = fixture;
	the_options = options;
}

uint32_t harness_max_page_bytes(void)
{
	const uint32_t n = harness_fixture()->max_page_bytes;

	return n != 0 ? n : 32768;
}

uint32_t harness_min_bytes(void)
{
	return the_fixture->min_frame_bytes != 0 ?
		       the_fixture->min_frame_bytes :
		       TRAFFIC_MIN_BYTES;
}

void harness_need(uint32_t traits, const char *why_not)
{
	if ((the_fixture->traits & traits) == traits)
		return;
	print_message("skipped on %s: %s\n", the_fixture->driver, why_not);
	skip();
}

void harness_lack(uint32_t traits, const char *why_not)
{
	if ((the_fixture->traits & traits) == 0)
		return;
	print_message("skipped on %s: %s\n", the_fixture->driver, why_not);
	skip();
}

uint64_t harness_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint32_t harness_deadline_ms(void)
{
	return test_limit_ms(30000);
}

uint64_t harness_deadline_ns(void)
{
	return harness_now_ns() + harness_deadline_ms() * UINT64_C(1000000);
}

void harness_nap(void)
{
	const struct timespec nap = { .tv_nsec = 50000 };

	nanosleep(&nap, NULL);
}

uint32_t harness_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n - 3; /* ".", ".." and dir itself */
}

void harness_await_fds(uint32_t n)
{
	const uint64_t until_ns = harness_deadline_ns();

	while (harness_count_fds() != n && harness_now_ns() < until_ns)
		harness_nap();
	assert_int_equal(harness_count_fds(), n);
}

static void *counting_alloc(void *opaque, size_t align_bytes, size_t n_bytes)
{
	struct harness *harness = opaque;
	void *block;

	if (harness->n_until_refused > 0 && --harness->n_until_refused == 0)
		return NULL;
	block = aligned_alloc(align_bytes, (n_bytes + align_bytes - 1) /
						   align_bytes * align_bytes);
	/* Nobody may rely on memory being zero. */
	if (block != NULL)
		memset(block, 0xa5, n_bytes);
	/* Two threads may open two ports in one test. */
	__atomic_fetch_add(&harness->n_blocks, block != NULL, __ATOMIC_RELAXED);
	return block;
}

static void counting_free(void *opaque, void *block)
{
	struct harness *harness = opaque;

	__atomic_fetch_sub(&harness->n_blocks, block != NULL, __ATOMIC_RELAXED);
	free(block);
}

struct wish wish_frames(uint32_t n)
{
	return (struct wish){
		.n_in = harness_fixture()->traits & FIXTURE_IN ? n : 0,
	};
}

static void make_pool(struct harness *harness)
{
	const struct wish *wish = &harness->wish;
	const struct mr_region_config region_config = {
		.size = sizeof(region_config),
		.max_bytes = UINT64_C(1) << 30,
	};
	struct mr_pool_config pool_config = {
		.size = sizeof(pool_config),
		.n_pages = wish->n_pages,
		.page_bytes = wish->page_bytes,
		.headroom_bytes = wish->headroom_bytes,
		.tailroom_bytes = wish->tailroom_bytes,
	};
	struct mr_reason why;

	if (mr_region_create(harness->ctx, &region_config, &harness->region,
			     &why) < 0)
		fail_msg("region: %s", why.text);
	harness->base = mr_region_base(harness->region);
	pool_config.region = harness->region;
	if (mr_pool_create(harness->ctx, &pool_config, &harness->pool, &why) <
	    0)
		fail_msg("pool: %s", why.text);
	if (mr_cache_create(harness->pool, &harness->cache, &why) < 0)
		fail_msg("cache: %s", why.text);
}

static void end_pool(struct harness *harness)
{
	struct mr_pool_stats stats;
	struct mr_reason why;

	mr_cache_destroy(harness->cache);
	harness->cache = NULL;
	stats = harness_pool_stats(harness);
	assert_int_equal(stats.n_in_flight, 0);
	assert_int_equal(stats.n_free, stats.n_pages);
	assert_int_equal(stats.n_committed, 0);
	if (mr_pool_destroy(harness->pool, &why) < 0)
		fail_msg("%s", why.text);
	harness->pool = NULL;
	if (mr_region_destroy(harness->region, &why) < 0)
		fail_msg("%s", why.text);
	harness->region = NULL;
}

const char *harness_try(const char *spec, int *ret_err)
{
	static struct mr_reason why;
	const struct mr_pool_config pool = { .size = sizeof(pool) };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_port *port;
	struct mr_ctx *ctx;

	if ((*ret_err = mr_ctx_create(NULL, &ctx, &why)) < 0 ||
	    (*ret_err = mr_pool_create(ctx, &pool, &config.pool, &why)) < 0)
		return why.text;
	*ret_err = mr_port_open(ctx, spec, &config, &port, &why);
	if (*ret_err == 0)
		mr_port_close(port);
	mr_pool_destroy(config.pool, NULL);
	mr_ctx_destroy(ctx);
	return *ret_err < 0 ? why.text : NULL;
}

/* Set up the fixture's peer and, if the test wants it open, the port. */
static void set_up(struct harness *harness)
{
	harness->fixture->setup(harness);
	snprintf(harness->spec + strlen(harness->spec),
		 sizeof(harness->spec) - strlen(harness->spec), "%s",
		 the_options);
	if (!harness->wish.is_closed)
		harness_open(harness);
}

struct harness *harness_make(const struct wish *wish)
{
	struct harness *harness = &the_harness;
	const struct mr_ctx_config config = {
		.size = sizeof(config),
		.opaque = harness,
		.alloc = counting_alloc,
		.free = counting_free,
	};

	memset(harness, 0, sizeof(*harness));
	harness->fixture = the_fixture;
	harness->wish = *wish;
	if (harness->wish.page_bytes == 0)
		harness->wish.page_bytes = 4096;
	if (harness->wish.n_queues == 0)
		harness->wish.n_queues = 1;
	if (harness->wish.ring_entries == 0)
		harness->wish.ring_entries = the_fixture->ring_entries;
	harness->n_fds = harness_count_fds();
	assert_int_equal(mr_ctx_create(&config, &harness->ctx, NULL), 0);
	make_pool(harness);
	set_up(harness);
	return harness;
}

struct harness *harness_make_second(const struct harness *first)
{
	struct harness *harness = &the_second;

	*harness = *first;
	harness->number = 1;
	harness->far = NULL;
	harness->port = NULL;
	harness->spec[0] = '\0';
	set_up(harness);
	return harness;
}

/* It may be open, or may not exist. */
static void end_second(void)
{
	if (the_second.fixture == NULL)
		return;
	harness_close(&the_second);
	harness_tear_down(&the_second);
	memset(&the_second, 0, sizeof(the_second));
}

int harness_try_open(struct harness *harness, struct mr_reason *why)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = harness->pool };
	int err = mr_port_open(harness->ctx, harness->spec, &config,
			       &harness->port, why);

	if (err < 0)
		return err;
	harness->rxq = mr_port_rxq(harness->port, 0);
	harness->txq = mr_port_txq(harness->port, 0);
	harness->n_injected = harness->fixture->traits & FIXTURE_LIVE ?
				      0 :
				      harness->wish.n_in;
	if (harness->fixture->opened != NULL)
		harness->fixture->opened(harness);
	return 0;
}

void harness_open(struct harness *harness)
{
	struct mr_reason why;

	if (harness_try_open(harness, &why) < 0)
		fail_msg("%s: %s", harness->spec, why.text);
	assert_non_null(harness->rxq);
	assert_non_null(harness->txq);
}

void harness_close(struct harness *harness)
{
	mr_port_close(harness->port);
	harness->port = NULL;
	harness->rxq = NULL;
	harness->txq = NULL;
}

void harness_renew_pool(struct harness *harness)
{
	struct harness old = *harness;

	make_pool(harness); /* while the old one exists: elsewhere */
	end_pool(&old);
}

void harness_receive_rest(struct harness *harness)
{
	enum { QUIET_NS = 1000000000 };
	const uint64_t until_ns = harness_deadline_ns();
	uint64_t last_ns = harness_now_ns();
	struct mr_frame frames[MR_BURST_MAX];

	if (!(harness->fixture->traits & FIXTURE_LIVE))
		return;
	while (harness_rx_stats(harness).received < harness->n_injected &&
	       harness_now_ns() < last_ns + QUIET_NS &&
	       harness_now_ns() < until_ns) {
		const uint32_t n = mr_rx_burst(harness->rxq, harness->cache,
					       frames, MR_BURST_MAX);

		harness_free(harness, frames, n);
		if (n > 0)
			last_ns = harness_now_ns();
		else
			harness_nap();
	}
}

void harness_tear_down(struct harness *harness)
{
	if (harness->fixture->teardown != NULL)
		harness->fixture->teardown(harness);
}

void harness_end(struct harness *harness)
{
	if (harness->port != NULL)
		harness_receive_rest(harness);
	end_second();
	harness_close(harness);
	harness_tear_down(harness);
	end_pool(harness);
	mr_ctx_destroy(harness->ctx);
	harness->ctx = NULL;
	assert_int_equal(harness->n_blocks, 0);
	harness_await_fds(harness->n_fds);
}

int harness_abandon(void **state)
{
	struct harness *harness = &the_harness;

	(void)state;
	if (harness->ctx == NULL)
		return 0;
	/* Pages may be lost: what cannot be destroyed stays, which is fine. */
	harness->n_until_refused = 0;
	end_second();
	mr_port_close(harness->port);
	harness_tear_down(harness);
	mr_cache_destroy(harness->cache);
	if (harness->pool == NULL || mr_pool_destroy(harness->pool, NULL) == 0)
		mr_region_destroy(harness->region, NULL);
	memset(harness, 0, sizeof(*harness));
	return 0;
}

void harness_assert_completed(struct harness *harness, uint64_t n)
{
	const uint64_t until_ns = harness_deadline_ns();

	for (;;) {
		struct mr_tx_stats stats;

		mr_tx_burst(harness->txq, harness->cache, NULL, 0);
		stats = harness_tx_stats(harness);
		assert_int_equal(stats.completed + stats.pending, n);
		if (stats.pending == 0 ||
		    harness->fixture->traits & FIXTURE_LAZY)
			return;
		/* A file or a ring in this process cannot be late. */
		if (!(harness->fixture->traits & FIXTURE_REGISTERS) ||
		    harness_now_ns() > until_ns)
			fail_msg("%llu of %llu frames do not complete",
				 (unsigned long long)stats.pending,
				 (unsigned long long)n);
		harness_nap();
	}
}

struct mr_rx_stats harness_rx_stats(const struct harness *harness)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_rxq_stats(harness->rxq, &stats), 0);
	return stats;
}

struct mr_tx_stats harness_tx_stats(const struct harness *harness)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_txq_stats(harness->txq, &stats), 0);
	return stats;
}

struct mr_pool_stats harness_pool_stats(const struct harness *harness)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_pool_stats(harness->pool, &stats), 0);
	return stats;
}

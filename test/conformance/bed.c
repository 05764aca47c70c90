/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bed.h"
#include "support/limit.h"

/*
 * Frames that the far side has under way at most. A veth's own ring has 256
 * places and drops what comes on top, before the port sees it.
 */
enum { WINDOW_FRAMES = 128 };

static const struct rig *the_rig;
static const char *the_options;
static struct bed the_bed;

const struct rig *bed_rig(void)
{
	return the_rig;
}

void bed_set_rig(const struct rig *rig, const char *options)
{
	the_rig = rig;
	the_options = options;
}

uint32_t bed_min_bytes(void)
{
	return the_rig->min_frame_bytes != 0 ? the_rig->min_frame_bytes :
					       TRAFFIC_MIN_BYTES;
}

void bed_need(uint32_t traits, const char *why_not)
{
	if ((the_rig->traits & traits) == traits)
		return;
	print_message("skipped on %s: %s\n", the_rig->driver, why_not);
	skip();
}

void bed_lack(uint32_t traits, const char *why_not)
{
	if ((the_rig->traits & traits) == 0)
		return;
	print_message("skipped on %s: %s\n", the_rig->driver, why_not);
	skip();
}

uint64_t bed_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

uint32_t bed_deadline_ms(void)
{
	return test_limit_ms(30000);
}

uint64_t bed_deadline_ns(void)
{
	return bed_now_ns() + bed_deadline_ms() * UINT64_C(1000000);
}

void bed_nap(void)
{
	const struct timespec nap = { .tv_nsec = 50000 };

	nanosleep(&nap, NULL);
}

uint32_t bed_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	uint32_t n = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		n++;
	closedir(dir);
	return n - 3; /* ".", ".." and dir itself */
}

static void *counting_alloc(void *opaque, size_t align_bytes, size_t n_bytes)
{
	struct bed *bed = opaque;
	void *block;

	if (bed->n_until_refused > 0 && --bed->n_until_refused == 0)
		return NULL;
	block = aligned_alloc(align_bytes, (n_bytes + align_bytes - 1) /
						   align_bytes * align_bytes);
	/* Nobody may count on memory that happens to be zero. */
	if (block != NULL)
		memset(block, 0xa5, n_bytes);
	/* Two ports may be opened by two threads in one test. */
	__atomic_fetch_add(&bed->n_blocks, block != NULL, __ATOMIC_RELAXED);
	return block;
}

static void counting_free(void *opaque, void *block)
{
	struct bed *bed = opaque;

	__atomic_fetch_sub(&bed->n_blocks, block != NULL, __ATOMIC_RELAXED);
	free(block);
}

static void make_pool(struct bed *bed)
{
	const struct wish *wish = &bed->wish;
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

	if (mr_region_create(bed->ctx, &region_config, &bed->region, &why) < 0)
		fail_msg("region: %s", why.text);
	bed->base = mr_region_base(bed->region);
	pool_config.region = bed->region;
	if (mr_pool_create(bed->ctx, &pool_config, &bed->pool, &why) < 0)
		fail_msg("pool: %s", why.text);
	if (mr_cache_create(bed->pool, &bed->cache, &why) < 0)
		fail_msg("cache: %s", why.text);
}

/* Each page is free. */
static void end_pool(struct bed *bed)
{
	struct mr_pool_stats stats;
	struct mr_reason why;

	mr_cache_destroy(bed->cache);
	bed->cache = NULL;
	stats = bed_pool_stats(bed);
	assert_int_equal(stats.n_in_flight, 0);
	assert_int_equal(stats.n_free, stats.n_pages);
	assert_int_equal(stats.n_committed, 0);
	if (mr_pool_destroy(bed->pool, &why) < 0)
		fail_msg("%s", why.text);
	bed->pool = NULL;
	if (mr_region_destroy(bed->region, &why) < 0)
		fail_msg("%s", why.text);
	bed->region = NULL;
}

struct bed *bed_make(const struct wish *wish)
{
	struct bed *bed = &the_bed;
	const struct mr_ctx_config config = {
		.size = sizeof(config),
		.opaque = bed,
		.alloc = counting_alloc,
		.free = counting_free,
	};

	memset(bed, 0, sizeof(*bed));
	bed->rig = the_rig;
	bed->wish = *wish;
	if (bed->wish.page_bytes == 0)
		bed->wish.page_bytes = 4096;
	bed->n_fds = bed_count_fds();
	assert_int_equal(mr_ctx_create(&config, &bed->ctx, NULL), 0);
	make_pool(bed);
	bed->rig->setup(bed);
	snprintf(bed->spec + strlen(bed->spec),
		 sizeof(bed->spec) - strlen(bed->spec), "%s", the_options);
	if (!wish->is_closed)
		bed_open(bed);
	return bed;
}

int bed_try_open(struct bed *bed, struct mr_reason *why)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = bed->pool };
	int err = mr_port_open(bed->ctx, bed->spec, &config, &bed->port, why);

	if (err < 0)
		return err;
	bed->rxq = mr_port_rxq(bed->port, 0);
	bed->txq = mr_port_txq(bed->port, 0);
	bed->n_injected = bed->rig->traits & RIG_LIVE ? 0 : bed->wish.n_in;
	if (bed->rig->opened != NULL)
		bed->rig->opened(bed);
	return 0;
}

void bed_open(struct bed *bed)
{
	struct mr_reason why;

	if (bed_try_open(bed, &why) < 0)
		fail_msg("%s: %s", bed->spec, why.text);
	assert_non_null(bed->rxq);
	assert_non_null(bed->txq);
}

void bed_close(struct bed *bed)
{
	mr_port_close(bed->port);
	bed->port = NULL;
	bed->rxq = NULL;
	bed->txq = NULL;
}

void bed_renew_pool(struct bed *bed)
{
	struct bed old = *bed;

	make_pool(bed); /* while the old one is there: not in its place */
	end_pool(&old);
}

void bed_receive_rest(struct bed *bed)
{
	enum { QUIET_NS = 1000000000 };
	const uint64_t until_ns = bed_deadline_ns();
	uint64_t last_ns = bed_now_ns();
	struct mr_frame frames[MR_BURST_MAX];

	if (!(bed->rig->traits & RIG_LIVE))
		return;
	while (bed_rx_stats(bed).received < bed->n_injected &&
	       bed_now_ns() < last_ns + QUIET_NS && bed_now_ns() < until_ns) {
		const uint32_t n =
			mr_rx_burst(bed->rxq, bed->cache, frames, MR_BURST_MAX);

		bed_free(bed, frames, n);
		if (n > 0)
			last_ns = bed_now_ns();
		else
			bed_nap();
	}
}

void bed_end(struct bed *bed)
{
	if (bed->port != NULL)
		bed_receive_rest(bed);
	bed_close(bed);
	bed->rig->teardown(bed);
	end_pool(bed);
	mr_ctx_destroy(bed->ctx);
	bed->ctx = NULL;
	assert_int_equal(bed->n_blocks, 0);
	assert_int_equal(bed_count_fds(), bed->n_fds);
}

int bed_abandon(void **state)
{
	struct bed *bed = &the_bed;

	(void)state;
	if (bed->ctx == NULL)
		return 0;
	/* Pages may be lost: what cannot be destroyed stays, and is no matter.
	 */
	bed->n_until_refused = 0;
	mr_port_close(bed->port);
	bed->rig->teardown(bed);
	mr_cache_destroy(bed->cache);
	if (bed->pool == NULL || mr_pool_destroy(bed->pool, NULL) == 0)
		mr_region_destroy(bed->region, NULL);
	memset(bed, 0, sizeof(*bed));
	return 0;
}

void bed_assert_completed(struct bed *bed, uint64_t n)
{
	const uint64_t until_ns = bed_deadline_ns();

	for (;;) {
		struct mr_tx_stats stats;

		mr_tx_burst(bed->txq, bed->cache, NULL, 0);
		stats = bed_tx_stats(bed);
		assert_int_equal(stats.completed + stats.pending, n);
		if (stats.pending == 0 || bed->rig->traits & RIG_LAZY)
			return;
		/* A file or a ring in this process has no way to be late. */
		if (!(bed->rig->traits & RIG_REGISTERS) ||
		    bed_now_ns() > until_ns)
			fail_msg("%llu of %llu frames do not complete",
				 (unsigned long long)stats.pending,
				 (unsigned long long)n);
		bed_nap();
	}
}

struct mr_rx_stats bed_rx_stats(const struct bed *bed)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_rxq_stats(bed->rxq, &stats), 0);
	return stats;
}

struct mr_tx_stats bed_tx_stats(const struct bed *bed)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_txq_stats(bed->txq, &stats), 0);
	return stats;
}

struct mr_pool_stats bed_pool_stats(const struct bed *bed)
{
	struct mr_pool_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_pool_stats(bed->pool, &stats), 0);
	return stats;
}

void bed_pump(struct bed *bed)
{
	uint8_t bytes[BED_MAX_BYTES];
	int64_t n_under_way;

	if (bed->n_injected == bed->wish.n_in)
		return;
	n_under_way =
		(int64_t)bed->n_injected - (int64_t)bed_rx_stats(bed).received;
	while (bed->n_injected < bed->wish.n_in &&
	       n_under_way < WINDOW_FRAMES) {
		const uint32_t id = bed->n_injected;
		const uint32_t len =
			bed->wish.len_of != NULL ? bed->wish.len_of(id) : 60;

		traffic_make(bytes, len, id);
		if (!bed->rig->inject(bed, bytes, len))
			return;
		bed->n_injected++;
		n_under_way++;
	}
}

uint32_t bed_rx(struct bed *bed, struct mr_frame *frames, uint32_t n)
{
	const uint64_t until_ns = bed_deadline_ns();

	for (;;) {
		uint32_t n_rx;

		bed_pump(bed);
		n_rx = mr_rx_burst(bed->rxq, bed->cache, frames, n);
		/* Asserted here, so that each test of the suite does. */
		assert_true(n_rx <= n);
		if (n_rx > 0) {
			assert_false(frames[n_rx - 1].flags & MR_FRAME_MORE);
			return n_rx;
		}
		if (bed_rx_is_done(bed))
			return 0;
		if (bed_now_ns() > until_ns)
			fail_msg(
				"nothing was received for %u ms; %u of %u "
				"frames sent, %llu received",
				bed_deadline_ms(), bed->n_injected,
				bed->wish.n_in,
				(unsigned long long)bed_rx_stats(bed).received);
		bed_nap();
	}
}

bool bed_rx_is_done(struct bed *bed)
{
	return bed->n_injected == bed->wish.n_in &&
	       bed_rx_stats(bed).received >= bed->wish.n_in;
}

void bed_tx(struct bed *bed, const struct mr_frame *frames, uint32_t n)
{
	bed_tx_meta(bed, frames, NULL, n);
}

void bed_tx_meta(struct bed *bed, const struct mr_frame *frames,
		 const struct mr_meta *meta, uint32_t n)
{
	const uint64_t until_ns = bed_deadline_ns();
	uint32_t n_sent = 0;

	while (n_sent < n) {
		const uint32_t n_tx = mr_tx_burst_meta(
			bed->txq, bed->cache, frames + n_sent,
			meta != NULL ? meta + n_sent : NULL, n - n_sent);

		assert_true(n_tx <= n - n_sent);
		n_sent += n_tx;
		if (n_tx > 0)
			continue;
		if (bed_now_ns() > until_ns)
			fail_msg("no room to send for %u ms",
				 bed_deadline_ms());
		bed_nap();
	}
}

uint32_t bed_collect_bytes(struct bed *bed, uint8_t *bytes)
{
	const uint64_t until_ns = bed_deadline_ns();
	uint32_t n_bytes;

	while ((n_bytes = bed->rig->collect(bed, bytes, BED_MAX_BYTES)) == 0) {
		if (bed_now_ns() > until_ns)
			fail_msg("nothing arrived for %u ms",
				 bed_deadline_ms());
		if (bed->txq != NULL)
			mr_tx_burst(bed->txq, bed->cache, NULL, 0);
		bed_nap();
	}
	return n_bytes;
}

int64_t bed_collect(struct bed *bed, uint32_t *ret_n_bytes)
{
	uint8_t bytes[BED_MAX_BYTES];

	*ret_n_bytes = bed_collect_bytes(bed, bytes);
	return traffic_check(bytes, *ret_n_bytes);
}

uint32_t bed_collect_rest(struct bed *bed)
{
	uint8_t bytes[BED_MAX_BYTES];
	uint32_t n_bytes, n = 0;

	/* Quiet for some 20 ms. */
	for (int n_quiet = 0; n_quiet < 200; n_quiet++) {
		if (bed->txq != NULL)
			mr_tx_burst(bed->txq, bed->cache, NULL, 0);
		while ((n_bytes = bed->rig->collect(bed, bytes,
						    sizeof(bytes))) > 0) {
			assert_true(traffic_check(bytes, n_bytes) >= 0);
			n++;
			n_quiet = 0;
		}
		if (!(bed->rig->traits & RIG_LIVE))
			return n;
		bed_nap();
	}
	return n;
}

void bed_collect_last(struct bed *bed, uint64_t n_sent, uint64_t n_collected)
{
	assert_true(n_collected <= n_sent); /* none came twice */
	for (uint64_t i = n_collected; i < n_sent; i++) {
		uint32_t n_bytes;

		assert_true(bed_collect(bed, &n_bytes) >= 0);
	}
	assert_int_equal(bed_collect_rest(bed), 0);
}

void bed_write_frame(struct bed *bed, uint64_t addr, uint32_t n_bytes,
		     uint32_t id)
{
	traffic_make(bed->base + addr, n_bytes, id);
}

void bed_make_frame(struct bed *bed, struct mr_frame *frames, uint32_t n_segs,
		    uint32_t offset, uint32_t n_bytes, uint32_t id)
{
	uint8_t bytes[BED_MAX_BYTES];
	uint64_t addrs[MR_MAX_SEGS];
	uint32_t n_done = 0;

	assert_true(n_segs <= MR_MAX_SEGS && n_bytes >= n_segs);
	assert_int_equal(mr_frag_alloc_bulk(bed->cache, addrs, n_segs,
					    bed->wish.page_bytes),
			 n_segs);
	traffic_make(bytes, n_bytes, id);
	for (uint32_t i = 0; i < n_segs; i++) {
		const uint32_t len = (n_bytes - n_done) / (n_segs - i);

		assert_true(offset + len <= bed->wish.page_bytes);
		frames[i] = (struct mr_frame){
			.addr = addrs[i] + offset,
			.len = len,
			.flags = i + 1 < n_segs ? MR_FRAME_MORE : 0,
		};
		memcpy(bed->base + frames[i].addr, bytes + n_done, len);
		n_done += len;
	}
}

int64_t bed_check_frame(const struct bed *bed, const struct mr_frame *frames,
			uint32_t *ret_n_segs, uint32_t *ret_n_bytes)
{
	uint8_t bytes[BED_MAX_BYTES];
	uint32_t n = 0, n_bytes = 0;

	do {
		assert_true(n < MR_MAX_SEGS);
		assert_true(n_bytes + frames[n].len <= sizeof(bytes));
		memcpy(bytes + n_bytes, bed->base + frames[n].addr,
		       frames[n].len);
		n_bytes += frames[n].len;
	} while (frames[n++].flags & MR_FRAME_MORE);
	*ret_n_segs = n;
	*ret_n_bytes = n_bytes;
	return traffic_check(bytes, n_bytes);
}

void bed_free(struct bed *bed, const struct mr_frame *frames, uint32_t n)
{
	mr_frame_free_bulk(bed->cache, frames, n);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/pair/pair_hand_over.c. */
#include <millrace/experimental/frag.h>

#include "support/heir.h"

enum { N_SENT = 8, N_ENTRIES = N_SENT + 2, RING = 32 };

extern const struct mr_driver mr_driver_pair;

static const char *const both_ends[] = { "liar:a,sg=on,ring=32,queues=2",
					 "liar:a", NULL };
static struct test_allocator allocator;
static struct mr_ctx *ctx;
static struct mr_dataplane *dp;
static struct mr_cache *cache;
static struct mr_frame sent[N_ENTRIES]; /* last */

static struct mr_dataplane_config config_of(const char *const *specs)
{
	return (struct mr_dataplane_config){
		.size = sizeof(struct mr_dataplane_config),
		.specs = specs,
		.ctx = liar_ctx(&allocator, &mr_driver_pair),
		.n_workers = 1,
	};
}

static void begin(const char *const *specs)
{
	const struct mr_dataplane_config config = config_of(specs);
	struct mr_reason why = { "" };

	lie = NULL;
	ctx = config.ctx;
	if (mr_dataplane_open(&config, &dp, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(mr_cache_create(dp->pool, &cache, NULL), 0);
}

static void end(void)
{
	mr_cache_destroy(cache);
	close_plane(dp, ctx); /* which finds all pages */
	assert_int_equal(allocator.n_out, 0);
}

/* Returns the heir's error. */
static int hand_over(const char *const *specs, struct mr_reason *why)
{
	const struct mr_dataplane_config config = config_of(specs);
	struct mr_reason old_why = { "" };
	struct heir heir;

	if (heir_hand_over(dp, &config, &heir, &old_why) < 0) {
		close_plane(heir.dp, config.ctx);
		*why = heir.why;
		return heir.err;
	}
	mr_cache_destroy(cache);
	close_plane(dp, ctx);
	dp = heir.dp;
	ctx = config.ctx;
	assert_int_equal(mr_cache_create(dp->pool, &cache, NULL), 0);
	return 0;
}

static uint8_t *bytes_at(uint64_t addr)
{
	return (uint8_t *)mr_region_base(mr_pool_region(dp->pool)) + addr;
}

/* A frame of three pages, one that is sent twice, and frags of a block. */
static void send_all_kinds(uint32_t end, uint32_t queue)
{
	struct mr_frame frames[N_ENTRIES];
	struct mr_frag_cache *frags;
	uint64_t addrs[4];

	assert_int_equal(mr_frag_alloc_bulk(cache, addrs, 4, 2048), 4);
	assert_int_equal(mr_frag_cache_create(cache, &frags, NULL), 0);
	for (uint32_t i = 0; i < N_ENTRIES; i++) {
		frames[i] = (struct mr_frame){ i < 4 ? addrs[i] : 0, 100, 0 };
		if (i == 4) {
			assert_int_equal(mr_frame_ref(cache, &frames[3], 1), 0);
			frames[4] = frames[3];
		} else if (i > 4) {
			assert_int_equal(
				mr_frag_cache_alloc(frags, 600, 1,
						    &frames[i].addr),
				0);
		}
		*bytes_at(frames[i].addr) = (uint8_t)(queue * 16 + i);
	}
	frames[0].flags = frames[1].flags = MR_FRAME_MORE;
	mr_frag_cache_destroy(frags);
	memcpy(sent, frames, sizeof(sent));
	assert_int_equal(mr_tx_burst(mr_port_txq(dp->ports[end], queue), cache,
				     frames, N_ENTRIES),
			 N_ENTRIES);
}

static void receive_all_kinds(uint32_t end, uint32_t queue)
{
	struct mr_frame frames[RING];
	const uint32_t n =
		mr_rx_burst(mr_port_rxq(dp->ports[end], queue), cache, frames,
			    RING);

	assert_int_equal(n, N_ENTRIES);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(*bytes_at(frames[i].addr),
				 queue * 16 + (i == 3 ? 4 : i));
		assert_int_equal(frames[i].flags, i < 2 ? MR_FRAME_MORE : 0);
	}
	mr_frame_free_bulk(cache, frames, n);
}

static void check_pending(uint32_t end, uint64_t n_completed, uint64_t n)
{
	struct mr_tx_stats stats = { .size = sizeof(stats) };

	mr_txq_stats(mr_port_txq(dp->ports[end], 0), &stats);
	assert_int_equal(stats.completed, n_completed);
	assert_int_equal(stats.pending, n);
}

TEST(frames_wait_in_the_rings)
{
	struct mr_reason why = { "" };

	begin(both_ends);
	for (uint32_t i = 0; i < 3; i++) {
		send_all_kinds(0, 0);
		send_all_kinds(0, 1);
		send_all_kinds(1, 1);
		check_pending(0, i * N_SENT, N_SENT);
		if (hand_over(both_ends, &why) < 0)
			fail_msg("%s", why.text);
		check_pending(0, i * N_SENT, N_SENT);
		receive_all_kinds(1, 0);
		receive_all_kinds(1, 1);
		receive_all_kinds(0, 1);
	}
	send_all_kinds(0, 0); /* of which the last end is closed */
	end();
}

TEST(one_end_alone_is_refused)
{
	static const char *const one_end[] = { "liar:a", NULL };
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why = { "" };
	struct mr_port *other;

	begin(one_end);
	config.pool = dp->pool;
	assert_int_equal(mr_port_open(ctx, "liar:a", &config, &other, NULL), 0);
	assert_int_equal(hand_over(one_end, &why), -ENOTSUP);
	assert_reason_has(&why, "its other end");
	mr_port_close(other);
	end();
}

TEST(damaged_frames_are_refused)
{
	static const uint64_t others[N_ENTRIES];
	static const struct mr_frame many[RING + 1];
	struct mr_frame no_end[N_ENTRIES], too_long[N_ENTRIES];
	const struct {
		struct lie lie;
		const char *text;
	} lies[] = {
		{ { "posted/0", others, sizeof(others), 0, false }, "damaged" },
		{ { "posted/0", others, 72, 0, false }, "9 references" },
		{ { "frames/0", no_end, sizeof(sent), 0, false }, "damaged" },
		{ { "frames/0", too_long, sizeof(sent), 0, false }, "damaged" },
		{ { "frames/1", many, sizeof(many), 0, false }, "0 references" },
		{ { "completed/0", many, 16, 0, false }, "16 bytes" },
	};
	struct mr_reason why = { "" };

	begin(both_ends);
	send_all_kinds(0, 0);
	memcpy(no_end, sent, sizeof(sent));
	no_end[N_ENTRIES - 1].flags = MR_FRAME_MORE;
	memcpy(too_long, sent, sizeof(sent));
	too_long[3].len = UINT32_MAX;
	for (uint32_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		lie = &lies[i].lie;
		assert_int_equal(hand_over(both_ends, &why), -EPROTO);
		assert_reason_has(&why, lies[i].text);
	}
	lie = NULL;
	receive_all_kinds(1, 0);
	end();
}

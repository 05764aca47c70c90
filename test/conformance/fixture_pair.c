/* SPDX-License-Identifier: BSD-3-Clause */
/* pair: the peer is the other end, with its own cache. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "support/soft_rules.h"

enum { BURST = 64 };

struct far {
	struct mr_port *port;
	struct mr_cache *cache;
	/* Received, but not yet returned. */
	struct mr_frame frames[BURST];
	uint32_t n, at;
	/* Queues take turns. */
	uint32_t rx_turn, tx_turn;
};

/* The next queue's number, round robin. */
static uint32_t next_queue(const struct harness *harness, uint32_t *turn)
{
	return (*turn)++ % harness->wish.n_queues;
}

static void setup(struct harness *harness)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = harness->pool };
	struct far *far = calloc(1, sizeof(*far));
	struct mr_reason why;

	assert_non_null(far);
	snprintf(harness->spec, sizeof(harness->spec),
		 "%s:conformance%s,ring=%u,queues=%u%s",
		 harness->fixture->driver,
		 harness->number == 0 ? "" : "-second",
		 harness->wish.ring_entries, harness->wish.n_queues,
		 harness->wish.is_sg ? ",sg=on" : "");
	harness->far = far;
	if (mr_cache_create(harness->pool, &far->cache, &why) < 0 ||
	    mr_port_open(harness->ctx, harness->spec, &config, &far->port,
			 &why) < 0)
		fail_msg("%s", why.text);
}

static void setup_ruled(struct harness *harness)
{
	const int err = soft_rules_add_driver(harness->ctx);

	assert_true(err == 0 || err == -EEXIST);
	setup(harness);
}

static void teardown(struct harness *harness)
{
	struct far *far = harness->far;

	if (far == NULL)
		return;
	mr_frame_free_bulk(far->cache, far->frames + far->at, far->n - far->at);
	mr_port_close(far->port);
	mr_cache_destroy(far->cache);
	free(far);
	harness->far = NULL;
}

static bool inject(struct harness *harness, const uint8_t *bytes,
		   uint32_t n_bytes)
{
	struct far *far = harness->far;
	struct mr_pool_stats stats = harness_pool_stats(harness);
	const uint32_t room = harness->wish.page_bytes - stats.headroom_bytes -
			      harness->wish.tailroom_bytes;
	const uint32_t n = (n_bytes + room - 1) / room;
	uint64_t addrs[MR_MAX_SEGS];
	struct mr_frame frames[MR_MAX_SEGS];
	uint32_t n_got;

	n_got = mr_frag_alloc_bulk(far->cache, addrs, n,
				   harness->wish.page_bytes);
	if (n_got < n) {
		mr_frag_free_bulk(far->cache, addrs, n_got);
		return false;
	}
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t len = n_bytes < room ? n_bytes : room;

		frames[i] = (struct mr_frame){
			.addr = addrs[i] + stats.headroom_bytes,
			.len = len,
			.flags = i + 1 < n ? MR_FRAME_MORE : 0,
		};
		memcpy(harness->base + frames[i].addr, bytes, len);
		bytes += len;
		n_bytes -= len;
	}
	if (mr_tx_burst(
		    mr_port_txq(far->port, next_queue(harness, &far->tx_turn)),
		    far->cache, frames, n) > 0)
		return true;
	mr_frame_free_bulk(far->cache, frames, n);
	return false;
}

static uint32_t collect(struct harness *harness, uint8_t *bytes, uint32_t room)
{
	struct far *far = harness->far;
	uint32_t n_bytes = 0, flags;

	if (far->at == far->n) {
		far->at = 0;
		far->n = mr_rx_burst(
			mr_port_rxq(far->port,
				    next_queue(harness, &far->rx_turn)),
			far->cache, far->frames, BURST);
		if (far->n == 0)
			return 0;
	}
	do {
		const struct mr_frame *frame = &far->frames[far->at++];

		assert_true(n_bytes + frame->len <= room);
		memcpy(bytes + n_bytes, harness->base + frame->addr,
		       frame->len);
		n_bytes += frame->len;
		flags = frame->flags;
		mr_frame_free_bulk(far->cache, frame, 1);
	} while (flags & MR_FRAME_MORE);
	return n_bytes;
}

static const struct bad_spec bad_specs[] = {
	{ "pair:", -EINVAL, "name" },
	{ "pair:x,queues=0", -EINVAL, "queues" },
	{ "pair:x,queues=65", -EINVAL, "64" },
	{ "pair:x,ring=3", -EINVAL, "power of two" },
	{ "pair:x,ring=1", -EINVAL, "range" },
	{ "pair:x,ring=16,sg=on", -EINVAL, "range" },
	{ "pair:x,sg=maybe", -EINVAL, "maybe" },
	/* The peer has the other end. */
	{ "pair:conformance,queues=2", -EINVAL, "queues=1" },
	{ "pair:conformance,ring=64", -EINVAL, "ring=1024" },
	{ "pair:conformance,sg=on", -EINVAL, "sg=off" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_pair = {
	.driver = "pair",
	.ring_entries = 1024,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_STALLS | FIXTURE_EXCLUSIVE |
		  FIXTURE_QUEUES | FIXTURE_SAME_POOL,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_sleeps = 1000000,
	.n_reopens = 200,
	.bad_specs = bad_specs,
	.setup = setup,
	.teardown = teardown,
	.inject = inject,
	.collect = collect,
};

/* pair: with rules in software: only tests of rules run on it. */
const struct fixture fixture_ruled = {
	.driver = "ruled",
	.ring_entries = 1024,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_STALLS | FIXTURE_EXCLUSIVE |
		  FIXTURE_QUEUES | FIXTURE_SAME_POOL,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.setup = setup_ruled,
	.teardown = teardown,
	.inject = inject,
	.collect = collect,
};

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of support/soft_rules.c: what "ruled:" ports refuse.
 * conformance/rules_test.c has the rest. */
#include <millrace/experimental/offload.h>
#include <millrace/millrace.h>

#include "support/soft_rules.h"
#include "support/unit_ctx.h"

static struct mr_pool *pool;

static struct mr_port *open_end(const char *spec)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = pool };
	struct mr_reason why;
	struct mr_port *port;

	if (mr_port_open(ctx, spec, &config, &port, &why) < 0)
		fail_msg("%s", why.text);
	return port;
}

/* Ports 0 and 1 of sets, and the other end of each. Port 1 takes frames of one
 * entry. */
static struct mr_port *ports[2], *peers[2];

static void open_ports(void)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 2048,
					       .magazine_pages = 64 };

	assert_int_equal(soft_rules_add_driver(ctx), 0);
	assert_int_equal(mr_pool_create(ctx, &config, &pool, NULL), 0);
	ports[0] = open_end("ruled:a,ring=64,sg=on");
	peers[0] = open_end("ruled:a,ring=64,sg=on");
	ports[1] = open_end("ruled:b,ring=64");
	peers[1] = open_end("ruled:b,ring=64");
}

static void close_ports(void)
{
	for (int i = 0; i < 2; i++) {
		mr_port_close(ports[i]);
		mr_port_close(peers[i]);
	}
	assert_int_equal(mr_pool_destroy(pool, NULL), 0);
}

static const struct mr_rule all_to_1 = { .match = MR_RULE_ANY, .to = 1 };

/* Send a frame of n entries to port 0. Returns how many entries the application
 * gets. */
static uint32_t pass_frame(struct mr_cache *cache, uint32_t n)
{
	struct mr_frame frames[MR_MAX_SEGS];
	uint64_t addrs[2];

	assert_int_equal(mr_frag_alloc_bulk(cache, addrs, n, 64), n);
	for (uint32_t i = 0; i < n; i++)
		frames[i] = (struct mr_frame){ addrs[i], 64,
					       i + 1 < n ? MR_FRAME_MORE : 0 };
	assert_int_equal(
		mr_tx_burst(mr_port_txq(peers[0], 0), cache, frames, n), n);
	n = mr_rx_burst(mr_port_rxq(ports[0], 0), cache, frames, MR_MAX_SEGS);
	mr_frame_free_bulk(cache, frames, n);
	return n;
}

TEST_CTX(what_the_target_cannot_send_goes_to_the_application)
{
	const struct mr_rules_config config = {
		.size = sizeof(config), .n_ports = 2, .ports = ports, .n_max = 1
	};
	struct mr_rx_stats stats = { .size = sizeof(stats) };
	struct mr_rules *rules;
	struct mr_cache *cache;
	uint32_t id;

	open_ports();
	assert_int_equal(mr_cache_create(pool, &cache, NULL), 0);
	assert_int_equal(mr_rules_open(&config, &rules, NULL), 0);
	assert_int_equal(mr_rules_add(rules, &all_to_1, 1, &id), 1);
	mr_rules_set(rules, id, 1, true);
	assert_int_equal(pass_frame(cache, 1), 0);
	assert_int_equal(pass_frame(cache, 2), 2);
	mr_port_close(peers[1]);
	peers[1] = NULL;
	mr_rules_poll(rules);
	assert_int_equal(pass_frame(cache, 1), 1);
	assert_int_equal(mr_rxq_stats(mr_port_rxq(ports[0], 0), &stats), 0);
	assert_int_equal(stats.offloaded, 1);
	assert_int_equal(stats.delivered, 2);
	assert_int_equal(stats.events[MR_RX_EVENT_OFFLOAD_TOO_LONG], 1);
	assert_int_equal(stats.events[MR_RX_EVENT_OFFLOAD_NO_TARGET], 1);
	mr_rules_close(rules);
	mr_cache_destroy(cache);
	close_ports();
}

TEST_CTX(a_set_without_memory_leaves_nothing)
{
	const struct mr_rules_config config = {
		.size = sizeof(config), .n_ports = 2, .ports = ports, .n_max = 4
	};
	struct mr_rules *rules = NULL;
	struct mr_reason why;
	uint32_t n_failed = 0;
	int32_t n_out;

	open_ports();
	n_out = allocator.n_out;
	for (allocator.fail_at = 1; rules == NULL; allocator.fail_at++) {
		allocator.n_calls = 0;
		if (mr_rules_open(&config, &rules, &why) == 0)
			break;
		assert_reason_has(&why, "no memory");
		assert_int_equal(allocator.n_out, n_out);
		n_failed++;
	}
	assert_true(n_failed >= 2); /* the driver's own */
	allocator.fail_at = 0;
	mr_rules_close(rules);
	close_ports();
}

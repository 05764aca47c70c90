/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/port/soft_rules.c on pair: ports that test/conformance lacks:
 * targets that cannot send, and a tx queue that rules and the application
 * share.
 */
#include <pthread.h>
#include <sched.h>

#include <millrace/experimental/offload.h>

#include "support/invariants.h"
#include "support/pool_unit.h"

enum { N_PORTS = 2, RING = 64, PAGE = 2048 };

static struct pool_fixture f;
static struct mr_port *ports[N_PORTS], *peers[N_PORTS];
static struct mr_rules *rules;

static struct mr_port *open_port(struct mr_pool *pool, const char *spec)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = pool };
	struct mr_port *port;
	struct mr_reason why;

	if (mr_port_open(f.ctx, spec, &config, &port, &why) < 0)
		fail_msg("%s", why.text);
	return port;
}

static int open_rules(struct mr_reason *why)
{
	const struct mr_rules_config config = { .size = sizeof(config),
						.n_ports = N_PORTS,
						.ports = ports,
						.n_max = 4 };

	return mr_rules_open(&config, &rules, why);
}

/* Forward all frames from port 0 to port 1. */
static void open_bench(const char *first, const char *second)
{
	const struct mr_rule rule = { .match = MR_RULE_ANY, .to = 1 };
	struct mr_reason why;
	uint32_t id;

	fixture_open(&f, 8192, PAGE);
	ports[0] = open_port(f.pool, first);
	peers[0] = open_port(f.pool, first);
	ports[1] = open_port(f.pool, second);
	peers[1] = open_port(f.pool, second);
	assert_int_equal(open_rules(&why), 0);
	assert_int_equal(mr_rules_add(rules, &rule, 1, &id), 1);
	mr_rules_set(rules, id, 1, true);
}

static void close_bench(void)
{
	mr_rules_close(rules);
	for (uint32_t i = 0; i < N_PORTS; i++) {
		mr_port_close(ports[i]);
		mr_port_close(peers[i]);
	}
	fixture_close(&f);
}

/* n frames of n_entries each. */
static uint32_t send_from(struct mr_port *port, uint32_t n, uint32_t n_entries)
{
	struct mr_frame frames[2 * RING];
	uint32_t n_sent;

	for (uint32_t i = 0; i < n * n_entries; i++)
		frames[i] = (struct mr_frame){
			.addr = alloc_one(f.cache, PAGE) + 128,
			.len = 60,
			.flags = (i + 1) % n_entries == 0 ? 0 : MR_FRAME_MORE,
		};
	n_sent = mr_tx_burst(mr_port_txq(port, 0), f.cache, frames,
			     n * n_entries);
	mr_frame_free_bulk(f.cache, frames + n_sent, n * n_entries - n_sent);
	return n_sent;
}

/* Entries received. */
static uint32_t receive_at(struct mr_port *port)
{
	struct mr_frame frames[MR_BURST_MAX];
	const uint32_t n = mr_rx_burst(mr_port_rxq(port, 0), f.cache, frames,
				       MR_BURST_MAX);

	mr_frame_free_bulk(f.cache, frames, n);
	return n;
}

static struct mr_rx_stats rx_stats(void)
{
	struct mr_rx_stats stats = { .size = sizeof(stats) };

	assert_int_equal(mr_rxq_stats(mr_port_rxq(ports[0], 0), &stats), 0);
	assert_true(invariants_of_rx_hold(&stats));
	return stats;
}

static struct mr_rules_sent rules_sent(void)
{
	struct mr_rules_sent sent = { .size = sizeof(sent) };

	assert_int_equal(mr_rules_sent(rules, 1, &sent), 0);
	assert_int_equal(sent.has_drops, 1);
	return sent;
}

static struct mr_tx_stats tx_stats(void)
{
	const struct mr_tx_stats stats =
		fixture_tx_stats(mr_port_txq(ports[1], 0));

	assert_int_equal(stats.bytes, 60 * stats.accepted);
	return stats;
}

TEST(a_target_is_used_while_its_link_is_up)
{
	open_bench("pair:a", "pair:b");
	mr_port_close(peers[1]);
	assert_int_equal(mr_rules_poll(rules), 1);
	assert_int_equal(mr_rules_poll(rules), 0);
	assert_int_equal(rules_sent().can_send, 0);
	send_from(peers[0], 5, 1);
	assert_int_equal(receive_at(ports[0]), 5);
	assert_int_equal(rx_stats().bytes, 5 * 60);
	assert_int_equal(rx_stats().events[MR_RX_EVENT_OFFLOAD_NO_TARGET], 5);
	peers[1] = open_port(f.pool, "pair:b");
	assert_int_equal(mr_rules_poll(rules), 1);
	send_from(peers[0], 5, 1);
	assert_int_equal(receive_at(ports[0]), 0);
	assert_int_equal(receive_at(peers[1]), 5);
	assert_int_equal(rx_stats().offloaded, 5);
	assert_int_equal(rx_stats().bytes, 5 * 60);
	close_bench();
}

/* A device that only receives, and says that its link is up. */
TEST(target_without_tx_queues_is_not_used)
{
	open_bench("pair:a", "pair:b");
	ports[1]->info->n_txqs = 0;
	mr_rules_poll(rules);
	assert_int_equal(rules_sent().can_send, 0);
	assert_int_equal(send_from(peers[0], 3, 1), 3);
	assert_int_equal(receive_at(ports[0]), 3);
	assert_int_equal(rx_stats().events[MR_RX_EVENT_OFFLOAD_NO_TARGET], 3);
	ports[1]->info->n_txqs = 1;
	close_bench();
}

TEST(frames_beyond_a_full_ring_are_lost)
{
	open_bench("pair:a", "pair:b,ring=64");
	assert_int_equal(send_from(peers[0], RING + 10, 1), RING + 10);
	assert_int_equal(receive_at(ports[0]), 0);
	assert_int_equal(receive_at(peers[1]), RING);
	assert_int_equal(rx_stats().offloaded, RING + 10);
	assert_int_equal(rules_sent().attempted, RING + 10);
	assert_int_equal(rules_sent().drops, 10);
	assert_int_equal(tx_stats().accepted, 0);
	close_bench();
}

TEST(frames_of_several_entries_go_where_they_fit)
{
	struct mr_frame frames[MR_BURST_MAX];

	open_bench("pair:a,sg=on", "pair:b,sg=on");
	send_from(peers[0], 5, 3);
	assert_int_equal(receive_at(ports[0]), 0);
	assert_int_equal(receive_at(peers[1]), 15);
	assert_int_equal(rx_stats().offloaded, 5);
	close_bench();

	open_bench("pair:a,sg=on", "pair:b,sg=off");
	send_from(peers[0], 5, 1);
	send_from(peers[0], 5, 3);
	send_from(peers[0], 5, 1);
	/* The remaining entries move to the front. */
	assert_int_equal(mr_rx_burst(mr_port_rxq(ports[0], 0), f.cache, frames,
				     MR_BURST_MAX),
			 15);
	for (uint32_t i = 0; i < 15; i++)
		assert_int_equal(frames[i].flags,
				 i % 3 == 2 ? 0 : MR_FRAME_MORE);
	mr_frame_free_bulk(f.cache, frames, 15);
	assert_int_equal(receive_at(peers[1]), 10);
	close_bench();
}

/* It slept because a rule had filled the ring, which has room again. */
TEST(an_application_that_waits_for_room_is_not_forgotten)
{
	struct mr_txq *txq;

	open_bench("pair:a", "pair:b,ring=64");
	txq = mr_port_txq(ports[1], 0);
	assert_int_equal(send_from(ports[1], RING + 1, 1), RING);
	assert_int_equal(receive_at(peers[1]), RING);
	send_from(peers[0], 5, 1);
	assert_int_equal(receive_at(ports[0]), 0);
	assert_int_equal(mr_queue_arm(&txq->queue), 1);
	assert_int_equal(mr_queue_arm(&txq->queue), 0);
	assert_int_equal(send_from(ports[1], RING, 1), RING - 5);
	assert_int_equal(mr_queue_arm(&txq->queue), 0);
	close_bench();
}

/* They share a ring, so it is not known at once whose frames have left. */
TEST(frames_sent_by_rules_are_not_counted_as_the_applications)
{
	open_bench("pair:a", "pair:b");
	send_from(ports[1], 3, 1);
	assert_int_equal(receive_at(peers[1]), 3);
	assert_int_equal(tx_stats().completed, 3);
	send_from(peers[0], 5, 1);
	assert_int_equal(receive_at(ports[0]), 0);
	assert_int_equal(tx_stats().completed, 3);
	assert_int_equal(tx_stats().pending, 0);
	send_from(ports[1], 2, 1);
	assert_int_equal(tx_stats().completed, 3);
	assert_int_equal(tx_stats().pending, 2);
	assert_int_equal(receive_at(peers[1]), 7);
	assert_int_equal(tx_stats().completed, 5);
	mr_rules_close(rules);
	rules = NULL;
	assert_int_equal(tx_stats().completed, 5);
	close_bench();
}

/* Sends N frames from port 1 for the application, beside the rules. */
enum { N = 3000 };

static void *send_beside(void *opaque)
{
	struct mr_txq *txq = mr_port_txq(ports[1], 0);
	struct mr_cache *cache = opaque;

	for (uint32_t n = 0; n < N; n++) {
		const struct mr_frame frame = {
			.addr = alloc_one(cache, PAGE) + 128, .len = 60
		};

		while (mr_tx_burst(txq, cache, &frame, 1) == 0)
			sched_yield();
	}
	return NULL;
}

TEST_AS(NULL, NULL, rules_send_beside_another_thread, true)
{
	uint64_t n_arrived = 0;
	struct mr_cache *cache;
	pthread_t thread;

	open_bench("pair:a", "pair:b,ring=64");
	assert_int_equal(mr_cache_create(f.pool, &cache, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, send_beside, cache), 0);
	while (tx_stats().accepted < N ||
	       n_arrived < N + rules_sent().attempted - rules_sent().drops) {
		send_from(peers[0], 8, 1);
		assert_int_equal(receive_at(ports[0]), 0);
		n_arrived += receive_at(peers[1]);
	}
	pthread_join(thread, NULL);
	n_arrived += receive_at(peers[1]);
	assert_int_equal(n_arrived,
			 N + rules_sent().attempted - rules_sent().drops);
	assert_int_equal(rx_stats().offloaded, rules_sent().attempted);
	assert_int_equal(tx_stats().completed, N);
	mr_cache_destroy(cache);
	close_bench();
}

TEST(ports_of_two_regions_are_refused)
{
	const struct mr_pool_config config = { .size = sizeof(config),
					       .n_pages = 1024 };
	struct mr_pool *other;
	struct mr_reason why;

	fixture_open(&f, 8192, PAGE);
	assert_int_equal(mr_pool_create(f.ctx, &config, &other, NULL), 0);
	ports[0] = open_port(f.pool, "null:");
	ports[1] = open_port(other, "null:");
	assert_int_equal(open_rules(&why), -EINVAL);
	assert_reason_has(&why, "share a region");
	mr_port_close(ports[0]);
	mr_port_close(ports[1]);
	assert_int_equal(mr_pool_destroy(other, NULL), 0);
	fixture_close(&f);
}

TEST(without_memory_nothing_has_changed)
{
	mr_rx_burst_fn *burst;
	struct mr_reason why;
	int err = -ENOMEM;

	fixture_open(&f, 8192, PAGE);
	for (uint32_t i = 0; i < N_PORTS; i++)
		ports[i] = open_port(f.pool, "null:");
	burst = mr_port_rxq(ports[0], 0)->burst;
	for (uint32_t i = 1; err == -ENOMEM; i++) {
		f.allocator.fail_at = f.allocator.n_calls + i;
		err = open_rules(&why);
		assert_true(err == 0 ||
			    mr_port_rxq(ports[0], 0)->burst == burst);
	}
	assert_int_equal(err, 0);
	mr_rules_close(rules);
	assert_ptr_equal(mr_port_rxq(ports[0], 0)->burst, burst);
	for (uint32_t i = 0; i < N_PORTS; i++)
		mr_port_close(ports[i]);
	fixture_close(&f);
}

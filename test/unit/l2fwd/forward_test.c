/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of apps/l2fwd: forward.c, session.c and counters.c together.
 * The program has one end of each pair, the test has the other and looks at
 * what comes out, by address too: a frame that is forwarded is not copied.
 */
#include <sched.h>
#include <time.h>

#include "support/soft_rules.h"
#include "support/unit.h"

#include "session.h"

enum {
	MAX_FRAMES = 64,
	MAX_NAPS = 50000, /* 10 s at least */
};

struct host {
	struct mr_port *port;
	struct mr_frame frames[MAX_FRAMES]; /* what it received */
	uint32_t n;
};

static struct harness {
	struct session session;
	struct options options;
	char *words[15]; /* the options point to them */
	struct mr_cache *cache;
	uint8_t *base;
	struct host hosts[3];
	uint32_t n_hosts;
	uint64_t n_sent; /* frames, by hosts */
} harness;

static struct snapshot *last; /* of the harness, when it was closed */

int __real_mr_ctx_create(const struct mr_ctx_config *config,
			 struct mr_ctx **ret_ctx,
			 struct mr_reason *reterr_reason);

int __wrap_mr_ctx_create(const struct mr_ctx_config *config,
			 struct mr_ctx **ret_ctx,
			 struct mr_reason *reterr_reason);

/* The program's context has a driver with rules. */
int __wrap_mr_ctx_create(const struct mr_ctx_config *config,
			 struct mr_ctx **ret_ctx,
			 struct mr_reason *reterr_reason)
{
	const int err = __real_mr_ctx_create(config, ret_ctx, reterr_reason);
	static bool is_inside; /* the driver itself makes a context */

	if (err == 0 && !is_inside) {
		is_inside = true;
		assert_int_equal(soft_rules_add_driver(*ret_ctx), 0);
		is_inside = false;
	}
	return err;
}

static void open_with(const char *mode, uint32_t n_ports, const char *n_workers,
		      const char *offload)
{
	const char *const words[] = {
		"mr-l2fwd",      "--mode",       mode,    "-w",
		n_workers,       "--pool-pages", "20000", "--idle",
		"interrupt",     "--offload",    offload, "ruled:0,sg=on",
		"ruled:1,sg=on", "ruled:2,sg=on"
	};
	struct mr_port_config config = { .size = sizeof(config) };
	struct mr_reason why = { "" };

	memset(&harness, 0, sizeof(harness));
	memcpy(harness.words, words, sizeof(words));
	if (options_parse(11 + (int)n_ports, harness.words, &harness.options,
			  &why) != PARSE_RUN ||
	    session_open(&harness.session, &harness.options, &why) != 0)
		fail_msg("%s", why.text);
	harness.n_hosts = n_ports;
	harness.base = harness.session.shared.base;
	config.pool = harness.session.plane.pool;
	for (uint32_t i = 0; i < n_ports; i++) {
		char spec[32];

		snprintf(spec, sizeof(spec), "ruled:%u,sg=on", i);
		if (mr_port_open(harness.session.plane.ctx, spec, &config,
				 &harness.hosts[i].port, &why) < 0)
			fail_msg("%s", why.text);
	}
	session_offload_event(&harness.session); /* links are up now */
	assert_int_equal(mr_cache_create(config.pool, &harness.cache, NULL), 0);
	assert_int_equal(mr_workers_start(harness.session.plane.workers,
					  forward_run,
					  harness.session.forwarders, NULL),
			 0);
}

static void open_harness(const char *mode, uint32_t n_ports,
			 const char *n_workers)
{
	open_with(mode, n_ports, n_workers, "off");
}

static void take_nap(void)
{
	const struct timespec nap = { .tv_nsec = 200000 };

	nanosleep(&nap, NULL);
}

/* Until the workers have received all that was sent. */
static void settle(void)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < MAX_NAPS && n < harness.n_sent; k++) {
		n = 0;
		for (uint32_t p = 0; p < harness.n_hosts; p++) {
			struct mr_rx_stats stats = { .size = sizeof(stats) };

			mr_rxq_stats(
				mr_port_rxq(harness.session.plane.ports[p], 0),
				&stats);
			n += stats.received;
		}
		take_nap();
	}
	assert_int_equal(n, harness.n_sent);
}

/*
 * Stop as the program does; the invariants hold and every page comes back. The
 * last snapshot is there to be looked at.
 */
static void close_harness(void)
{
	last = snapshot_create(&harness.session.plane,
			       session_counters(&harness.session));
	settle();
	mr_workers_stop(harness.session.plane.workers);
	assert_int_equal(mr_workers_join(harness.session.plane.workers,
					 test_limit_ms(5000), NULL),
			 0);
	session_end_offload(&harness.session);
	for (uint32_t i = 0; i < harness.n_hosts; i++)
		mr_frame_free_bulk(harness.cache, harness.hosts[i].frames,
				   harness.hosts[i].n);
	mr_dataplane_drain(harness.session.plane.open, DATAPLANE_DRAIN_MS,
			   session_drop_at_end, harness.session.forwarders);
	snapshot_take(last, &harness.session.plane, 1, &harness.session);
	snapshot_check_invariants(last);
	if (!last->invariants_hold)
		fail_msg("%s", last->broken_invariant);
	for (uint32_t i = 0; i < harness.n_hosts; i++)
		mr_port_close(harness.hosts[i].port);
	mr_cache_destroy(harness.cache);
	dataplane_close_ports(&harness.session.plane);
	snapshot_take_pool(last, &harness.session.plane);
	assert_true(last->is_conserved);
	session_close(&harness.session);
}

/* A frame of n entries from one address to another, sent by a host. */
static struct mr_frame send_frame(uint32_t host, uint64_t to, uint64_t from,
				  uint32_t n)
{
	struct mr_frame frames[MR_MAX_SEGS];
	uint64_t addrs[MR_MAX_SEGS];
	uint8_t *bytes;

	assert_int_equal(mr_frag_alloc_bulk(harness.cache, addrs, n, 4096), n);
	for (uint32_t i = 0; i < n; i++) {
		frames[i] = (struct mr_frame){ addrs[i] + 128, 60 + i,
					       i + 1 < n ? MR_FRAME_MORE : 0 };
		memset(harness.base + frames[i].addr, 0x40 + (int)i, 60 + i);
	}
	bytes = harness.base + frames[0].addr;
	for (uint32_t i = 0; i < 6; i++) {
		bytes[i] = (uint8_t)(to >> (40 - 8 * i));
		bytes[6 + i] = (uint8_t)(from >> (40 - 8 * i));
	}
	assert_int_equal(mr_tx_burst(mr_port_txq(harness.hosts[host].port, 0),
				     harness.cache, frames, n),
			 n);
	harness.n_sent++;
	return frames[0];
}

/* Let the hosts receive until there are n entries, and none too many. */
static void await_entries(uint32_t n)
{
	uint32_t n_all = 0;

	for (uint32_t i = 0; i < harness.n_hosts; i++) {
		mr_frame_free_bulk(harness.cache, harness.hosts[i].frames,
				   harness.hosts[i].n);
		harness.hosts[i].n = 0;
	}
	/* All that must come, then 5 ms for what must not. */
	for (uint32_t k = 0;
	     k < MAX_NAPS && (n_all < n || k == 0 || k % 25 != 0); k++) {
		for (uint32_t i = 0; i < harness.n_hosts; i++) {
			struct host *host = &harness.hosts[i];
			const uint32_t n_rx = mr_rx_burst(
				mr_port_rxq(host->port, 0), harness.cache,
				host->frames + host->n, MAX_FRAMES - host->n);

			host->n += n_rx;
			n_all += n_rx;
		}
		take_nap();
	}
	assert_int_equal(n_all, n);
}

static int forget(void **state)
{
	(void)state;
	snapshot_destroy(last);
	last = NULL;
	return 0;
}

static const uint64_t a = 0x02000000000a, b = 0x02000000000b,
		      all = 0xffffffffffff;

TEST_WITH(NULL, forget, patch_passes_frames_as_they_are)
{
	struct mr_frame sent;

	open_harness("patch", 2, "1");
	sent = send_frame(0, b, a, 3);
	await_entries(3);
	assert_int_equal(harness.hosts[1].n, 3);
	assert_memory_equal(&harness.hosts[1].frames[0], &sent, sizeof(sent));
	assert_int_equal(harness.hosts[1].frames[2].len, 62);
	sent = send_frame(1, 0, 0, 1); /* whatever the addresses are */
	await_entries(1);
	assert_int_equal(harness.hosts[0].n, 1);
	assert_int_equal(harness.hosts[0].frames[0].addr, sent.addr);
	close_harness();
	assert_int_equal(snapshot_worker_drops(last), 0);
	assert_int_equal(snapshot_totals(last).tx_frames, 2);
}

TEST_WITH(NULL, forget, macswap_swaps_and_drops_runts)
{
	struct mr_frame sent;
	uint8_t *bytes;

	open_harness("macswap", 2, "1");
	sent = send_frame(0, b, a, 2);
	await_entries(2);
	assert_int_equal(harness.hosts[1].frames[0].addr, sent.addr);
	bytes = harness.base + sent.addr;
	assert_true(fdb_mac(bytes) == a && fdb_mac(bytes + 6) == b);
	assert_int_equal(bytes[12], 0x40);
	sent.len = 13;
	sent.flags = 0;
	mr_frame_ref(harness.cache, &sent, 1); /* the host keeps its own */
	assert_int_equal(mr_tx_burst(mr_port_txq(harness.hosts[0].port, 0),
				     harness.cache, &sent, 1),
			 1);
	harness.n_sent++;
	await_entries(0);
	close_harness();
	assert_int_equal(last->workers[0].drops[DROP_RUNT], 1);
}

TEST_WITH(NULL, forget, macswap_sends_back_through_a_single_port)
{
	const uint8_t *bytes;

	open_harness("macswap", 1, "1");
	send_frame(0, b, a, 2);
	await_entries(2);
	assert_int_equal(harness.hosts[0].n, 2);
	bytes = harness.base + harness.hosts[0].frames[0].addr;
	assert_true(fdb_mac(bytes) == a && fdb_mac(bytes + 6) == b);
	close_harness();
	assert_int_equal(snapshot_worker_drops(last), 0);
}

/* The sender still owns the page: the copy is swapped, not the original. */
TEST_WITH(NULL, forget, macswap_copies_a_shared_frame_before_it_writes)
{
	struct mr_frame kept;

	open_harness("macswap", 2, "1");
	kept = send_frame(0, b, a, 1);
	await_entries(1);
	kept = harness.hosts[1].frames[0]; /* now swapped, and ours */
	harness.hosts[1].n = 0;
	assert_int_equal(mr_frame_ref(harness.cache, &kept, 1), 0);
	assert_int_equal(mr_tx_burst(mr_port_txq(harness.hosts[0].port, 0),
				     harness.cache, &kept, 1),
			 1);
	harness.n_sent++;
	await_entries(1);
	assert_int_not_equal(harness.hosts[1].frames[0].addr, kept.addr);
	assert_true(fdb_mac(harness.base + kept.addr) == a);
	assert_true(fdb_mac(harness.base + harness.hosts[1].frames[0].addr) ==
		    b);
	mr_frame_free_bulk(harness.cache, &kept, 1);
	close_harness();
}

static void learn_on(const char *n_workers)
{
	struct mr_frame sent;
	uint64_t n_cloned = 0;

	open_harness("learn", 3, n_workers);
	/* Nobody is known: to both others, the same page. */
	sent = send_frame(0, b, a, 2);
	await_entries(4);
	assert_int_equal(harness.hosts[0].n, 0);
	assert_int_equal(harness.hosts[1].frames[0].addr, sent.addr);
	assert_int_equal(harness.hosts[2].frames[0].addr, sent.addr);
	assert_int_equal(harness.hosts[2].frames[1].len, 61);
	/* The answer finds a, and b is known then. */
	send_frame(1, a, b, 1);
	await_entries(1);
	assert_int_equal(harness.hosts[0].n, 1);
	send_frame(2, b, a ^ 0x70, 1);
	await_entries(1);
	assert_int_equal(harness.hosts[1].n, 1);
	/* To all; to one on the sender's own port; to the link alone. */
	send_frame(1, all, b, 1);
	await_entries(2);
	send_frame(1, b, b ^ 0x70, 1);
	await_entries(0);
	send_frame(1, 0x0180c2000000, b, 1);
	await_entries(0);
	/* To a group that is not; from a group, which is not learned. */
	send_frame(1, 0x0180c2000010, b, 1);
	await_entries(2);
	send_frame(1, all, 0x030000000001, 1);
	await_entries(2);
	/* a has moved. */
	send_frame(2, all, a, 1);
	await_entries(2);
	send_frame(1, a, b, 1);
	await_entries(1);
	assert_int_equal(harness.hosts[2].n, 1);
	close_harness();

	for (uint32_t w = 0; w < last->n_workers; w++)
		n_cloned += last->workers[w].counts[0];
	assert_int_equal(n_cloned, 5);
	assert_int_equal(snapshot_worker_drops(last), 2);
	assert_int_equal(last->groups[0][0], 4);
	assert_int_equal(last->groups[0][2], 1);
}

TEST_WITH(NULL, forget, learn_floods_by_reference_until_an_address_is_known)
{
	learn_on("1");
}

TEST_WITH(NULL, forget, learn_does_the_same_over_hand_off_rings)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	if (CPU_COUNT(&set) < 2) {
		print_message("needs two cores\n");
		skip();
	}
	learn_on("2");
}

TEST_WITH(NULL, forget, drop_takes_all_and_sends_nothing)
{
	open_harness("drop", 1, "1");
	for (uint32_t i = 0; i < 5; i++)
		send_frame(0, b, a, 2);
	await_entries(0);
	close_harness();
	assert_int_equal(last->workers[0].drops[DROP_MODE], 5);
}

static uint64_t n_delivered(void)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < harness.n_hosts; i++)
		n += last->ports[i].queues[0].rx.delivered;
	return n;
}

/* Wait until that many rules are active. */
static void await_rules(uint64_t n)
{
	struct offload_stats stats = { 0 };

	for (uint32_t k = 0; k < MAX_NAPS && stats.n_active != n; k++) {
		session_offload_event(&harness.session);
		offload_stats(harness.session.offload, &stats);
		take_nap();
	}
	assert_int_equal(stats.n_active, n);
}

TEST_WITH(NULL, forget, rules_forward_in_place_of_workers)
{
	struct mr_frame sent;

	open_with("patch", 2, "1", "on");
	sent = send_frame(0, b, a, 3);
	await_entries(3);
	assert_memory_equal(&harness.hosts[1].frames[0], &sent, sizeof(sent));
	send_frame(1, a, b, 1);
	await_entries(1);
	close_harness();
	assert_int_equal(last->groups[0][4], 2);
	assert_int_equal(n_delivered(), 0);
	assert_int_equal(snapshot_totals(last).tx_frames, 0);
	forget(NULL);

	open_with("drop", 2, "1", "on");
	send_frame(0, b, a, 1);
	await_entries(0);
	close_harness();
	assert_int_equal(last->workers[0].drops[DROP_MODE], 0);
	assert_int_equal(last->ports[0].queues[0].rx.drops[MR_RX_DROP_RULE], 1);
}

TEST_WITH(NULL, forget, rules_forward_between_learned_addresses)
{
	open_with("learn", 3, "1", "on");
	send_frame(0, b, a, 1);
	await_entries(2);
	send_frame(1, a, b, 1);
	await_entries(1);
	await_rules(2);
	send_frame(0, b, a, 2);
	await_entries(2);
	assert_int_equal(harness.hosts[1].n, 2);
	send_frame(1, a, b, 1);
	await_entries(1);
	/* A group, a stranger, and b at another place. */
	send_frame(0, all, a, 1);
	await_entries(2);
	send_frame(0, b, a ^ 0x70, 1);
	await_entries(1);
	send_frame(2, a, b, 1);
	await_entries(1);
	send_frame(0, b, a, 1);
	await_entries(1);
	assert_int_equal(harness.hosts[2].n, 1);
	await_rules(3);
	send_frame(0, b, a, 1);
	await_entries(1);
	assert_int_equal(harness.hosts[2].n, 1);
	close_harness();
	assert_int_equal(last->groups[1][4], 3);
	assert_int_equal(n_delivered(), 6);
	assert_int_equal(last->groups[0][2], 1);
}

/* A port that nobody empties: its frames are dropped by name, not the others'
 */
TEST_WITH(NULL, forget, a_stalled_port_stops_no_other)
{
	enum { N = 2000 };
	uint32_t n_got = 0;

	open_harness("learn", 3, "1");
	send_frame(1, all, b, 1);
	await_entries(2);
	send_frame(2, all, a, 1);
	await_entries(2);
	for (uint32_t i = 0; i < N || (n_got < N && i < 100 * N); i++) {
		struct mr_frame got[MR_MAX_SEGS];
		uint32_t n;

		if (i < N) {
			send_frame(0, b, a ^ 0x70, 1); /* to host 1 */
			send_frame(0, a, a ^ 0x70, 1); /* to the other */
		} else {
			take_nap();
		}
		for (uint32_t k = 0; k < 10000; k++) {
			n = mr_rx_burst(mr_port_rxq(harness.hosts[1].port, 0),
					harness.cache, got, MR_MAX_SEGS);
			mr_frame_free_bulk(harness.cache, got, n);
			n_got += n;
			if (n_got + 100 >= i)
				break;
			take_nap();
		}
	}
	assert_int_equal(n_got, N);
	close_harness();
	assert_true(last->workers[0].drops[DROP_TX_FULL] > 0);
	/* All of host 1's came: 2000, and the one that was flooded. */
	assert_int_equal(snapshot_port_totals(&last->ports[1]).tx_frames,
			 N + 1);
}

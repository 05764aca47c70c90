/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dpdk: driver and who gets direct mbufs: only a device that nobody else
 * can have the headers from. Callbacks look at what passes.
 *
 *     direct_test TEST
 */
#include <rte_dev.h>

#include "fixture.h"

struct seen {
	uint32_t n_direct, n_pinned; /* headers */
};

static void count_kinds(struct rte_mbuf *const *mbufs, uint16_t n,
			struct seen *seen)
{
	for (uint16_t i = 0; i < n; i++)
		for (const struct rte_mbuf *mbuf = mbufs[i]; mbuf != NULL;
		     mbuf = mbuf->next)
			if (RTE_MBUF_DIRECT(mbuf))
				seen->n_direct++;
			else if (RTE_MBUF_HAS_PINNED_EXTBUF(mbuf))
				seen->n_pinned++;
}

static uint16_t on_tx(uint16_t id, uint16_t queue, struct rte_mbuf **mbufs,
		      uint16_t n, void *opaque)
{
	(void)id;
	(void)queue;
	count_kinds(mbufs, n, opaque);
	return n;
}

static uint16_t on_rx(uint16_t id, uint16_t queue, struct rte_mbuf **mbufs,
		      uint16_t n, uint16_t room, void *opaque)
{
	(void)room;
	return on_tx(id, queue, mbufs, n, opaque);
}

static uint16_t id_of(const char *name)
{
	uint16_t id = 0;

	assert_int_equal(rte_eth_dev_get_port_by_name(name, &id), 0);
	return id;
}

/* What the device called name gets when n entries are sent. */
static struct seen send_seen(struct mr_port *port, const char *name,
			     const struct mr_frame *frames, uint32_t n)
{
	const uint16_t id = id_of(name);
	struct seen seen = { 0, 0 };
	const struct rte_eth_rxtx_callback *callback =
		rte_eth_add_tx_callback(id, 0, on_tx, &seen);

	assert_non_null(callback);
	send_all(port, frames, n);
	assert_int_equal(rte_eth_remove_tx_callback(id, 0, callback), 0);
	return seen;
}

/* The same of what it receives; it is freed. */
static struct seen receive_seen(struct mr_port *port, const char *name)
{
	const uint16_t id = id_of(name);
	struct seen seen = { 0, 0 };
	const struct rte_eth_rxtx_callback *callback =
		rte_eth_add_rx_callback(id, 0, on_rx, &seen);
	struct mr_frame frames[BURST];

	assert_non_null(callback);
	mr_frame_free_bulk(cache, frames, receive(port, frames));
	assert_int_equal(rte_eth_remove_rx_callback(id, 0, callback), 0);
	return seen;
}

TEST(plain_frames_are_direct_headers_come_back_pinned)
{
	struct mr_port *port = open_port("dpdk:net_null0");
	struct mr_frame frames[BURST];
	struct seen seen;

	for (int round = 0; round < 100; round++) {
		make_frames(frames, BURST);
		seen = send_seen(port, "net_null0", frames, BURST);
		assert_int_equal(seen.n_direct, BURST);
		assert_int_equal(seen.n_pinned, 0);
		assert_int_equal(tx_stats(port).pending, 0);
		/* The pages that were freed last are those that come next. */
		seen = receive_seen(port, "net_null0");
		assert_int_equal(seen.n_direct, 0);
		assert_int_equal(seen.n_pinned, BURST);
		assert_int_equal(n_in_flight(), 0);
	}
	mr_port_close(port);
}

TEST(shared_and_shaped_frames_are_pinned)
{
	struct mr_port *port = open_port("dpdk:net_null0");
	struct mr_frame frames[2];
	struct seen seen;

	/* Somebody else may write it, or read it. */
	make_frames(frames, 1);
	assert_int_equal(mr_frame_ref(cache, frames, 1), 0);
	seen = send_seen(port, "net_null0", frames, 1);
	assert_int_equal(seen.n_direct, 0);
	assert_int_equal(seen.n_pinned, 1);
	mr_frame_free_bulk(cache, frames, 1);
	/* Here a copy, since the device takes one entry. */
	make_frames(frames, 2);
	frames[0].flags = MR_FRAME_MORE;
	seen = send_seen(port, "net_null0", frames, 2);
	assert_int_equal(seen.n_direct, 0);
	assert_int_equal(seen.n_pinned, 1);
	mr_port_close(port);
}

/* Frames to a device whose headers somebody else may get. */
static void assert_pinned(const char *name)
{
	struct mr_frame frames[BURST];
	struct mr_port *port;
	struct seen seen;
	char spec[64];

	snprintf(spec, sizeof(spec), "dpdk:%s", name);
	port = open_port(spec);
	make_frames(frames, BURST);
	seen = send_seen(port, name, frames, BURST);
	assert_int_equal(seen.n_direct, 0);
	assert_int_equal(seen.n_pinned, BURST);
	mr_port_close(port);
}

/* Also where the same pages, those freed last, have just left as direct ones.
 */
TEST(frames_to_a_ring_are_pinned)
{
	struct mr_port *null = open_port("dpdk:net_null0");
	struct mr_frame frames[BURST];

	make_frames(frames, BURST);
	assert_int_equal(send_seen(null, "net_null0", frames, BURST).n_direct,
			 BURST);
	assert_pinned("net_ring0");
	mr_port_close(null);
}

TEST(frames_to_a_programs_port_are_pinned)
{
	mr_port_close(open_port("dpdk:net_null0"));
	assert_int_equal(rte_dev_probe("net_null7"), 0);
	assert_pinned("net_null7");
	assert_int_equal(rte_eth_dev_close(id_of("net_null7")), 0);
}

TEST(frames_in_a_programs_eal_are_pinned)
{
	start_programs_eal();
	assert_pinned("net_null0");
}

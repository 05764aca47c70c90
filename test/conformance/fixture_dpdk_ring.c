/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dpdk-ring: two rings in memory, one each way, which DPDK makes a device of.
 * The peer is DPDK itself: it injects frames from its own mempool, and collects
 * the headers that the port has sent.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "fixtures_dpdk.h"
#include "model/flows.h"

enum { MAX_QUEUES = 2, N_MBUFS = 4095, RING = 256 };

struct far {
	struct rte_ring *in[MAX_QUEUES], *out[MAX_QUEUES];
	uint32_t n_queues;
	uint32_t rx_turn, tx_turn; /* queues take turns */
	uint16_t port_id;
	uint16_t mtu_bytes;
};

static struct rte_mempool *pool;
static struct far *far_of[RTE_MAX_ETHPORTS];

static const char *probe(void)
{
	const char *why_not = fixture_dpdk_start();

	if (why_not != NULL)
		return why_not;
	/* Other handlers spin for a preempted thread, and CPUs may be few. */
	pool = rte_pktmbuf_pool_create_by_ops("conformance", N_MBUFS, 0, 0,
					      RTE_MBUF_DEFAULT_BUF_SIZE,
					      SOCKET_ID_ANY, "ring_mt_rts");
	return pool == NULL ? "DPDK has no memory for a mempool" : NULL;
}

static struct rte_ring *make_ring(const char *way, uint32_t number, uint32_t i,
				  uint32_t n_entries)
{
	struct rte_ring *ring;
	char name[32];

	snprintf(name, sizeof(name), "%s%u-%u", way, number, i);
	ring = rte_ring_create(name, n_entries, SOCKET_ID_ANY,
			       RING_F_EXACT_SZ | RING_F_SP_ENQ | RING_F_SC_DEQ);
	assert_non_null(ring);
	return ring;
}

static void setup(struct harness *harness)
{
	const uint32_t n = harness->wish.n_queues;
	const uint32_t n_entries = harness->wish.ring_entries;
	struct far *far = calloc(1, sizeof(*far));
	static uint32_t n_made;
	char name[32];
	int id;

	assert_non_null(far);
	harness->far = far;
	far->n_queues = n;
	for (uint32_t i = 0; i < n; i++) {
		far->in[i] = make_ring("in", harness->number, i, n_entries);
		far->out[i] = make_ring("out", harness->number, i, n_entries);
	}
	snprintf(name, sizeof(name), "c%u", n_made++);
	id = rte_eth_from_rings(name, far->in, n, far->out, n, 0);
	assert_true(id >= 0);
	far->port_id = (uint16_t)id;
	far_of[id] = far;
	snprintf(harness->spec, sizeof(harness->spec),
		 "dpdk:net_ring_%s,ring=%u,queues=%u%s", name, n_entries, n,
		 harness->wish.is_sg ? ",mtu=9000,sg=on" : ",sg=off");
}

static void empty(struct rte_ring *ring)
{
	void *mbuf;

	while (rte_ring_dequeue(ring, &mbuf) == 0)
		rte_pktmbuf_free(mbuf);
	rte_ring_free(ring);
}

static void teardown(struct harness *harness)
{
	struct far *far = harness->far;
	struct rte_eth_dev_info info;

	if (far == NULL)
		return;
	assert_int_equal(rte_eth_dev_info_get(far->port_id, &info), 0);
	rte_eth_dev_close(far->port_id);
	rte_dev_remove(info.device);
	for (uint32_t i = 0; i < far->n_queues; i++) {
		empty(far->in[i]);
		empty(far->out[i]);
	}
	free(far);
	harness->far = NULL;
}

/* The destination of a frame from the wire: a queue, or a flow's target; NULL:
 * none. */
static struct rte_ring *route(struct far *far, const uint8_t *bytes,
			      uint32_t n_bytes)
{
	const int queue = flows_queue(far->port_id, bytes, n_bytes);
	const int to = flows_take(far->port_id, n_bytes);

	if (to == FLOWS_DROP)
		return NULL;
	if (to == FLOWS_NONE && queue != FLOWS_NONE)
		return far->in[queue];
	return to == FLOWS_NONE ? far->in[far->tx_turn++ % far->n_queues] :
				  far_of[to]->out[0];
}

static bool inject(struct harness *harness, const uint8_t *bytes,
		   uint32_t n_bytes)
{
	struct far *far = harness->far;
	struct rte_ring *ring = route(far, bytes, n_bytes);
	struct rte_mbuf *first = NULL;

	while (n_bytes > 0) {
		struct rte_mbuf *mbuf = rte_pktmbuf_alloc(pool);
		uint16_t k;

		if (mbuf == NULL)
			break;
		k = (uint16_t)RTE_MIN(n_bytes, rte_pktmbuf_tailroom(mbuf));
		memcpy(rte_pktmbuf_append(mbuf, k), bytes, k);
		bytes += k;
		n_bytes -= k;
		if (first == NULL)
			first = mbuf;
		else
			assert_int_equal(rte_pktmbuf_chain(first, mbuf), 0);
	}
	if (n_bytes == 0 && ring != NULL && rte_ring_enqueue(ring, first) == 0)
		return true;
	rte_pktmbuf_free(first);
	return ring == NULL && n_bytes == 0;
}

static uint32_t collect(struct harness *harness, uint8_t *bytes, uint32_t room)
{
	struct far *far = harness->far;
	struct rte_mbuf *mbuf = NULL;
	uint32_t n_bytes;
	void *object;

	for (uint32_t i = 0; i < far->n_queues && mbuf == NULL; i++)
		if (rte_ring_dequeue(far->out[far->rx_turn++ % far->n_queues],
				     &object) == 0)
			mbuf = object;
	if (mbuf == NULL)
		return 0;
	n_bytes = mbuf->pkt_len;
	assert_true(n_bytes <= room);
	for (const struct rte_mbuf *seg = mbuf; seg != NULL; seg = seg->next) {
		memcpy(bytes, rte_pktmbuf_mtod(seg, const void *),
		       seg->data_len);
		bytes += seg->data_len;
	}
	rte_pktmbuf_free(mbuf);
	return n_bytes;
}

static const struct bad_spec bad_specs[] = {
	{ "dpdk:net_ring_none\\,nodeaction=x", -ENODEV, "arguments" },
	{ "dpdk:net_ring_none,promisc=maybe", -EINVAL, "promisc" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_dpdk_ring = {
	.driver = "dpdk",
	.sink_spec = "dpdk:net_null7",
	.name = "dpdk-ring",
	.ring_entries = RING,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_STALLS | FIXTURE_REGISTERS |
		  FIXTURE_EXCLUSIVE | FIXTURE_QUEUES | FIXTURE_POLLED |
		  FIXTURE_KEEPS | FIXTURE_FOREIGN_FDS,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_reopens = 100,
	.bad_specs = bad_specs,
	.probe = probe,
	.setup = setup,
	.teardown = teardown,
	.inject = inject,
	.collect = collect,
};

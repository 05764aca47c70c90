/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The dpdk: driver and the link of its device, and its interrupts, which are
 * what these tests say: the calls that ask for them are ours here, since the
 * program comes before DPDK's libraries.
 *
 *     link_test TEST
 */
#include <dlfcn.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fixture.h"

static uint32_t n_asked; /* all of these are atomic */
static uint32_t is_up;
static uint32_t n_until_gone; /* 0: never */

static rte_eth_dev_cb_fn on_removal;
static void *on_removal_opaque;

int rte_eth_link_get_nowait(uint16_t id, struct rte_eth_link *ret_link)
{
	const uint32_t n = __atomic_add_fetch(&n_asked, 1, __ATOMIC_RELAXED);

	memset(ret_link, 0, sizeof(*ret_link));
	ret_link->link_status = __atomic_load_n(&is_up, __ATOMIC_RELAXED) & 1;
	if (n == n_until_gone)
		(void)on_removal(id, RTE_ETH_EVENT_INTR_RMV, on_removal_opaque,
				 NULL);
	return 0;
}

int rte_eth_dev_callback_register(uint16_t id, enum rte_eth_event_type event,
				  rte_eth_dev_cb_fn fn, void *opaque)
{
	(void)id;
	if (event == RTE_ETH_EVENT_INTR_RMV) {
		on_removal = fn;
		on_removal_opaque = opaque;
	}
	return 0;
}

static int irq_fd = -1;
static uint32_t n_pool_stats;

int rte_eth_dev_rx_intr_ctl_q_get_fd(uint16_t id, uint16_t queue)
{
	(void)id, (void)queue;
	return irq_fd;
}

int rte_eth_dev_rx_intr_enable(uint16_t id, uint16_t queue)
{
	(void)id, (void)queue;
	return 0;
}

int rte_eth_dev_rx_intr_disable(uint16_t id, uint16_t queue)
{
	(void)id, (void)queue;
	return 0;
}

/* Looks at each magazine of the pool. */
int mr_pool_stats(const struct mr_pool *of, struct mr_pool_stats *stats)
{
	int (*real)(const struct mr_pool *, struct mr_pool_stats *);

	*(void **)&real = dlsym(RTLD_NEXT, "mr_pool_stats");
	n_pool_stats++;
	return real(of, stats);
}

TEST(opening_does_not_wait_for_the_link)
{
	struct mr_port *port = open_port("dpdk:net_null1,ring=64");
	struct mr_link link;

	assert_int_equal(n_asked, 1);
	assert_int_equal(mr_port_link(port, &link), 0);
	assert_int_equal(link.is_up, 0);
	assert_int_equal(mr_ports_wait_link(&port, 1, 1), -ETIMEDOUT);
	is_up = 1;
	assert_int_equal(mr_ports_wait_link(&port, 1, 60000), 0);
	assert_int_equal(mr_port_link(port, &link), 0);
	assert_int_equal(link.is_up, 1);
	mr_port_close(port);
}

/* Pulled out while its link is waited for. */
TEST(removed_device_is_not_waited_for)
{
	struct mr_frame frames[BURST];
	struct mr_link link;
	struct mr_port *port;

	n_until_gone = 3;
	port = open_port("dpdk:net_null1,ring=64");
	assert_int_equal(mr_ports_wait_link(&port, 1, 60000), -ENODEV);
	assert_int_equal(mr_port_link(port, &link), 0);
	assert_true(link.is_gone);
	make_frames(frames, BURST);
	send_all(port, frames, BURST);
	assert_int_equal(tx_stats(port).drops[MR_TX_DROP_PORT_GONE], BURST);
	assert_int_equal(tx_stats(port).pending, 0);
	mr_port_close(port);
}

/* Arm a queue, which looks at no magazine and allocates nothing. */
static int arm_queue(struct mr_queue *queue)
{
	struct mr_pool_stats before = { .size = sizeof(before) };
	struct mr_pool_stats after = { .size = sizeof(after) };
	int result;

	assert_int_equal(mr_pool_stats(pool, &before), 0);
	n_pool_stats = 0;
	result = mr_queue_arm(queue);
	assert_int_equal(n_pool_stats, 0);
	assert_int_equal(mr_pool_stats(pool, &after), 0);
	assert_memory_equal(&before, &after, sizeof(before));
	return result;
}

/* But it knows whether there are pages in exchange for what it asks for. */
TEST(arming_looks_at_no_magazine)
{
	static uint64_t addrs[MAX_PAGES];
	struct mr_port *port;
	struct mr_queue *queue;
	uint32_t n = 0, n_got;

	is_up = 1;
	irq_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	port = open_port("dpdk:net_null1\\,no-rx=1,ring=64");
	queue = (struct mr_queue *)mr_port_rxq(port, 0);
	assert_int_equal(arm_queue(queue), 0);
	do {
		n_got = mr_frag_alloc_bulk(cache, addrs + n, BURST, 4096);
		n += n_got;
	} while (n_got > 0);
	assert_int_equal(arm_queue(queue), 1);
	mr_frag_free_bulk(cache, addrs, n);
	mr_cache_flush(cache);
	assert_int_equal(arm_queue(queue), 0);
	mr_port_close(port);
	close(irq_fd);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/port/events.c and reopen.c, with a driver whose device the test
 * changes. */
#include <errno.h>
#include <pthread.h>

#include "support/pool_unit.h"

static struct {
	struct mr_port_info info; /* what the next poll() finds */
	struct mr_link link;
	uint32_t n_told, events;
	int open_err, set_err;
	char filter[20];
	uint32_t n_looks; /* at the link, of late: */
	struct mr_port_info seen; /* by the subscriber */
} fake;

static int fake_open(struct mr_port *port, const struct mr_spec *spec,
		     struct mr_reason *reterr_reason)
{
	int err;

	(void)spec;
	if (fake.open_err < 0)
		return mr_fail(reterr_reason, fake.open_err, "not today");
	err = mr_port_make_queues(port, 2, sizeof(struct mr_rxq),
				  sizeof(struct mr_txq), reterr_reason);
	port->info->mtu_bytes = fake.info.mtu_bytes = 1500;
	return err;
}

static void fake_close(struct mr_port *port)
{
	(void)port;
}

static uint32_t fake_poll(struct mr_port *port)
{
	memcpy(port->info->mac, fake.info.mac, sizeof(fake.info.mac));
	memcpy(port->info->netdev, fake.info.netdev, sizeof(fake.info.netdev));
	port->info->mtu_bytes = fake.info.mtu_bytes;
	port->info->n_channels = fake.info.n_channels;
	return 0;
}

static int fake_link(const struct mr_port *port, struct mr_link *ret_link)
{
	(void)port;
	*ret_link = fake.link;
	return 0;
}

static int fake_set_mtu(struct mr_port *port, uint32_t mtu_bytes,
			struct mr_reason *reterr_reason)
{
	(void)port;
	if (fake.set_err < 0)
		return mr_fail(reterr_reason, fake.set_err, "not today");
	fake.info.mtu_bytes = mtu_bytes;
	return 0;
}

static int fake_set_filter(struct mr_port *port, const char *expression,
			   struct mr_reason *reterr_reason)
{
	(void)port;
	(void)reterr_reason;
	snprintf(fake.filter, sizeof(fake.filter), "%s", expression);
	return 0;
}

static const struct mr_driver polled = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "polled",
	.port_bytes = sizeof(struct mr_port),
	.open = fake_open,
	.close = fake_close,
	.poll = fake_poll,
	.link = fake_link,
	.set_mtu = fake_set_mtu,
	.set_filter = fake_set_filter,
};

/* It has a link, and nothing to do between bursts. */
static const struct mr_driver linked = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "linked",
	.port_bytes = sizeof(struct mr_port),
	.open = fake_open,
	.close = fake_close,
	.link = fake_link,
};

static struct pool_fixture f;
static struct mr_port *port;

static void note_events(void *opaque, struct mr_port *of, uint32_t events)
{
	assert_ptr_equal(opaque, &fake);
	assert_ptr_equal(of, port);
	fake.n_told++;
	fake.events = events;
	fake.seen.size = sizeof(fake.seen);
	assert_int_equal(mr_port_info(of, &fake.seen), 0);
}

static void open_port(const char *spec)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = f.pool };

	assert_int_equal(mr_port_open(f.ctx, spec, &config, &port, NULL), 0);
	assert_int_equal(mr_port_subscribe(port, note_events, &fake), 0);
}

/* Poll once: what the subscriber was told; 0: it was not called. */
static uint32_t events_of_poll(void)
{
	uint32_t n;

	fake.n_told = fake.events = 0;
	n = mr_port_poll(port);
	assert_int_equal(n, fake.n_told);
	return fake.events;
}

static int set_up(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	fixture_open(&f, 1024, 4096);
	assert_int_equal(mr_ctx_add_driver(f.ctx, &polled, NULL), 0);
	assert_int_equal(mr_ctx_add_driver(f.ctx, &linked, NULL), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	fixture_close(&f);
	return 0;
}

#define EVENTS_TEST(name) TEST_WITH(set_up, tear_down, name)

EVENTS_TEST(each_change_is_reported_once_with_its_new_value)
{
	open_port("polled:x");
	assert_int_equal(events_of_poll(), 0);
	memcpy(fake.info.mac, "\2\0\0\0\0\1", 6);
	assert_int_equal(events_of_poll(), MR_PORT_EVENT_MAC);
	assert_memory_equal(fake.seen.mac, fake.info.mac, 6);
	fake.info.mtu_bytes = 9000;
	fake.info.n_channels = 4;
	assert_int_equal(events_of_poll(),
			 MR_PORT_EVENT_MTU | MR_PORT_EVENT_QUEUES);
	assert_int_equal(fake.seen.mtu_bytes, 9000);
	assert_int_equal(fake.seen.n_channels, 4);
	strcpy(fake.info.netdev, "eth7");
	assert_int_equal(events_of_poll(), MR_PORT_EVENT_NAME);
	assert_string_equal(fake.seen.netdev, "eth7");
	assert_int_equal(events_of_poll(), 0);
	mr_port_close(port);
}

EVENTS_TEST(each_link_state_is_reported_when_it_begins)
{
	struct mr_link link;

	open_port("polled:x");
	fake.link.is_up = 1;
	/* As of the last poll. */
	assert_int_equal(mr_port_link(port, &link), 0);
	assert_int_equal(link.is_up, 0);
	assert_int_equal(events_of_poll(), MR_PORT_EVENT_LINK);
	assert_int_equal(mr_port_link(port, &link), 0);
	assert_int_equal(link.is_up, 1);
	fake.link.speed_mbps = 10000;
	assert_int_equal(events_of_poll(), MR_PORT_EVENT_LINK);
	fake.link.is_detached = 1;
	assert_int_equal(events_of_poll(), MR_PORT_EVENT_DETACHED);
	fake.link = (struct mr_link){ .is_gone = 1 };
	assert_int_equal(events_of_poll(),
			 MR_PORT_EVENT_LINK | MR_PORT_EVENT_GONE);
	fake.link.is_returned = 1;
	assert_int_equal(events_of_poll(), MR_PORT_EVENT_RETURNED);
	fake.link.is_returned = 0;
	assert_int_equal(events_of_poll(), 0);
	fake.link.is_ended = 1;
	assert_int_equal(events_of_poll(), MR_PORT_EVENT_ENDED);
	mr_port_close(port);
}

EVENTS_TEST(a_driver_without_poll_has_events_of_its_link)
{
	struct mr_link link;

	open_port("linked:x");
	fake.link.is_up = 1;
	assert_int_equal(mr_port_link(port, &link), 0);
	assert_int_equal(link.is_up, 1);
	assert_int_equal(events_of_poll(), MR_PORT_EVENT_LINK);
	mr_port_close(port);
}

EVENTS_TEST(a_change_by_the_program_is_visible_at_once_without_event)
{
	struct mr_port_info info = { .size = sizeof(info) };

	open_port("polled:x");
	assert_int_equal(mr_port_set_mtu(port, 4000, NULL), 0);
	assert_int_equal(mr_port_info(port, &info), 0);
	assert_int_equal(info.mtu_bytes, 4000);
	assert_int_equal(events_of_poll(), 0);
	mr_port_close(port);
}

/* Its link is up from the third call on. */
static int late_link(const struct mr_port *of, struct mr_link *ret_link)
{
	(void)of;
	*ret_link = fake.link;
	ret_link->is_up = ++fake.n_looks > 2;
	return 0;
}

static const struct mr_driver late = {
	.version = MR_DRIVER_VERSION,
	.size = sizeof(struct mr_driver),
	.name = "late",
	.port_bytes = sizeof(struct mr_port),
	.open = fake_open,
	.close = fake_close,
	.poll = fake_poll,
	.link = late_link,
};

/* All of them are polled, so that the deadline is one for all. */
EVENTS_TEST(links_of_several_ports_are_waited_for_together)
{
	const struct mr_port_config config = { .size = sizeof(config),
					       .pool = f.pool };
	struct mr_port *ports[3];

	assert_int_equal(mr_ctx_add_driver(f.ctx, &late, NULL), 0);
	assert_int_equal(mr_ports_wait_link(NULL, 0, 0), 0);
	fake.link.is_up = 1;
	open_port("polled:x");
	ports[0] = port;
	assert_int_equal(mr_port_open(f.ctx, "null:", &config, &ports[1], NULL),
			 0);
	assert_int_equal(mr_port_open(f.ctx, "late:x", &config, &ports[2],
				      NULL),
			 0);
	assert_int_equal(mr_ports_wait_link(ports, 3, 0), -ETIMEDOUT);
	assert_int_equal(mr_ports_wait_link(ports, 3, 60000), 0);
	/* The subscriber was told meanwhile. */
	fake.n_told = 0;
	fake.link.is_up = 0;
	assert_int_equal(mr_ports_wait_link(ports, 3, 1), -ETIMEDOUT);
	assert_int_equal(fake.n_told, 1);
	assert_int_equal(fake.events, MR_PORT_EVENT_LINK);
	/* What cannot come is not waited for. */
	fake.link.is_ended = 1;
	assert_int_equal(mr_ports_wait_link(ports, 3, 60000), 0);
	fake.link.is_gone = 1;
	assert_int_equal(mr_ports_wait_link(ports, 3, 60000), -ENODEV);
	for (int i = 0; i < 3; i++)
		mr_port_close(ports[i]);
}

EVENTS_TEST(a_port_has_one_subscriber)
{
	open_port("polled:x");
	assert_int_equal(mr_port_subscribe(port, note_events, NULL), -EBUSY);
	assert_int_equal(mr_port_subscribe(port, NULL, NULL), 0);
	fake.info.mtu_bytes = 9000;
	fake.n_told = 0;
	assert_int_equal(mr_port_poll(port), 1);
	assert_int_equal(fake.n_told, 0);
	assert_int_equal(mr_port_subscribe(port, note_events, &fake), 0);
	mr_port_close(port);
}

EVENTS_TEST(a_port_opened_again_is_the_same_and_counts_on)
{
	struct mr_rx_stats rx = { .size = sizeof(rx) };
	struct mr_tx_stats tx = { .size = sizeof(tx) };
	struct mr_port *before;

	open_port("polled:x");
	before = port;
	port->rxqs[0]->stats.received = port->rxqs[0]->stats.delivered = 3;
	port->rxqs[1]->stats.received = port->rxqs[1]->stats.delivered = 4;
	port->txqs[1]->stats.accepted = port->txqs[1]->stats.pending = 5;
	fake.link.is_gone = 1;
	assert_int_equal(events_of_poll(), MR_PORT_EVENT_GONE);
	fake.link.is_gone = 0;
	assert_int_equal(mr_port_reopen(port, NULL), 0);
	assert_ptr_equal(port, before);
	assert_int_equal(events_of_poll(), 0); /* the program did it */
	mr_rxq_stats(mr_port_rxq(port, 0), &rx);
	mr_txq_stats(mr_port_txq(port, 0), &tx);
	assert_int_equal(rx.received, 7);
	assert_int_equal(rx.delivered, 7);
	assert_int_equal(tx.accepted, 5);
	assert_int_equal(tx.pending, 0);
	assert_int_equal(tx.drops[MR_TX_DROP_PORT_GONE], 5);
	mr_rxq_stats(mr_port_rxq(port, 1), &rx);
	assert_int_equal(rx.received, 0);
	mr_port_close(port);
}

EVENTS_TEST(a_port_that_cannot_be_opened_again_has_no_device)
{
	struct mr_port_info info = { .size = sizeof(info) };
	struct mr_reason why = { "" };
	struct mr_link link;

	open_port("polled:x");
	fake.open_err = -EIO;
	assert_int_equal(mr_port_reopen(port, &why), -EIO);
	assert_reason_has(&why, "not today");
	mr_port_info(port, &info);
	assert_string_equal(info.mode, "absent");
	assert_string_equal(info.name, "polled:x");
	assert_int_equal(info.n_rxqs, 1);
	assert_int_equal(mr_port_link(port, &link), 0);
	assert_int_equal(link.is_gone, 1);
	assert_int_equal(mr_queue_arm(&mr_port_rxq(port, 0)->queue), 0);
	fake.open_err = 0;
	assert_int_equal(mr_port_reopen(port, &why), 0);
	mr_port_info(port, &info);
	assert_int_equal(info.n_rxqs, 2);
	mr_port_close(port);
}

EVENTS_TEST(a_reopened_port_has_its_settings_unless_refused)
{
	struct mr_port_info info = { .size = sizeof(info) };

	open_port("polled:x");
	assert_int_equal(mr_port_set_mtu(port, 900, NULL), 0);
	assert_int_equal(mr_port_set_filter(port, "udp", NULL), 0);
	assert_int_equal(mr_port_set_filter(port, "tcp", NULL), 0);
	fake.filter[0] = '\0';
	assert_int_equal(mr_port_reopen(port, NULL), 0);
	mr_port_info(port, &info);
	assert_int_equal(info.mtu_bytes, 900);
	assert_string_equal(fake.filter, "tcp");
	fake.set_err = -EINVAL;
	assert_int_equal(mr_port_reopen(port, NULL), 0);
	mr_port_info(port, &info);
	assert_int_equal(info.mtu_bytes, 1500);
	mr_port_close(port);
}

enum { N_REOPENS = 5000 };

static void *open_again(void *opaque)
{
	bool *is_done = opaque;

	for (uint32_t i = 0; i < N_REOPENS; i++)
		(void)mr_port_reopen(port, NULL);
	__atomic_store_n(is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void *lose_and_open_again(void *opaque)
{
	bool *is_done = opaque;

	for (uint32_t i = 0; i < N_REOPENS; i++) {
		fake.open_err = i % 2 == 0 ? -EIO : 0;
		(void)mr_port_reopen(port, NULL);
	}
	__atomic_store_n(is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

EVENTS_TEST(another_thread_may_ask_while_a_port_is_opened_again)
{
	struct mr_port_info info = { .size = sizeof(info) };
	bool is_done = false;
	struct mr_link link;
	pthread_t thread;

	open_port("polled:x");
	assert_int_equal(pthread_create(&thread, NULL, open_again, &is_done),
			 0);
	while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE)) {
		assert_int_equal(mr_port_info(port, &info), 0);
		assert_int_equal(info.n_rxqs, 2);
		assert_int_equal(mr_port_link(port, &link), 0);
	}
	pthread_join(thread, NULL);
	mr_port_close(port);
}

EVENTS_TEST(another_thread_may_ask_while_a_port_has_no_device)
{
	bool is_done = false;
	struct mr_link link;
	pthread_t thread;

	fake.link.is_up = 1;
	open_port("polled:x");
	assert_int_equal(pthread_create(&thread, NULL, lose_and_open_again,
					&is_done),
			 0);
	while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE)) {
		assert_int_equal(mr_port_link(port, &link), 0);
		assert_int_not_equal(link.is_up, link.is_gone);
	}
	pthread_join(thread, NULL);
	mr_port_close(port);
}

enum { N_MACS = 20000 };

static void *change_macs(void *opaque)
{
	bool *is_done = opaque;

	for (uint32_t i = 0; i < N_MACS; i++) {
		memset(fake.info.mac, (int)(i & 0xff), sizeof(fake.info.mac));
		(void)mr_port_poll(port);
	}
	__atomic_store_n(is_done, true, __ATOMIC_RELEASE);
	return NULL;
}

EVENTS_TEST(another_thread_never_reads_half_a_mac)
{
	struct mr_port_info info = { .size = sizeof(info) };
	bool is_done = false;
	pthread_t thread;

	open_port("polled:x");
	assert_int_equal(pthread_create(&thread, NULL, change_macs, &is_done),
			 0);
	while (!__atomic_load_n(&is_done, __ATOMIC_ACQUIRE)) {
		assert_int_equal(mr_port_info(port, &info), 0);
		for (uint32_t i = 1; i < sizeof(info.mac); i++)
			assert_int_equal(info.mac[i], info.mac[0]);
	}
	pthread_join(thread, NULL);
	mr_port_close(port);
}

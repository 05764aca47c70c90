/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_port_poll() of the virtio driver: what it does beside the frames, that it
 * waits for nothing, and that the port's fd tells when it is to be called.
 */
#include <poll.h>

#include "devices.h"

enum { DEADLINE_MS = 20000 };

static uint32_t n_slow; /* calls of poll_at_once() since make() */

/* With all features. */
static void make_device(struct harness *harness)
{
	n_slow = 0;
	device_make(harness, NULL);
}

/*
 * mr_port_poll() may be called by who moves frames: it never waits. One call
 * may be slow, as the machine may stall; who waits is slow in every one.
 */
static int poll_at_once(struct harness *harness)
{
	const uint64_t start_ms = harness_now_ms();
	const int n = mr_port_poll(harness->port);

	n_slow += harness_now_ms() - start_ms >= test_limit_ms(500);
	assert_true(n_slow <= 1);
	return n;
}

static void break_rx(struct harness *harness)
{
	const struct vnet_faults faults = { .idx_jumps = 1,
					    .queue_reset_hangs = true };

	vnet_set_faults(harness->v, &faults);
	harness_inject(harness, 8);
	harness_drain(harness);
}

/* Poll when the fd is readable, and only then. Whether it was. */
static bool wait_and_poll(struct harness *harness)
{
	struct pollfd fd = { mr_port_fd(harness->port), POLLIN, 0 };

	if (poll(&fd, 1, 50) <= 0)
		return false;
	mr_port_poll(harness->port);
	return true;
}

static uint64_t stopped_clock(void *opaque)
{
	(void)opaque;
	return 1;
}

/* Nor is it waited for forever, even if the clock has stopped. */
DEVICE_TEST(ON_SPLIT, reset_of_a_queue_is_not_waited_for)
{
	struct mr_link link = { 0 };
	struct harness harness;
	uint64_t start_ms;

	for (int ends = 0; ends < 2; ends++) {
		device_clock = ends ? NULL : stopped_clock;
		make_device(&harness);
		device_open(&harness, "");
		break_rx(&harness);
		assert_int_equal(poll_at_once(&harness), 0);
		assert_int_equal(poll_at_once(&harness), 0);
		if (ends) {
			device_heal(&harness);
			assert_int_equal(poll_at_once(&harness), 1);
			harness_inject(&harness, 5);
			assert_int_equal(harness_drain(&harness), 5);
		}
		start_ms = harness_now_ms();
		while (!ends && !link.is_gone &&
		       harness_now_ms() - start_ms <
			       test_limit_ms(DEADLINE_MS)) {
			poll_at_once(&harness);
			assert_int_equal(mr_port_link(harness.port, &link), 0);
		}
		assert_int_equal(link.is_gone, !ends);
		assert_false(wait_and_poll(&harness));
		link.is_gone = 0;
		device_heal(&harness);
		harness_check_invariants(&harness);
		device_end(&harness);
	}
}

DEVICE_TEST(ON_SPLIT, what_is_awaited_wakes)
{
	const struct vnet_faults hangs = { .ctrl_hangs = true };
	struct harness harness;

	make_device(&harness);
	device_open(&harness, "");
	assert_false(wait_and_poll(&harness));
	break_rx(&harness);
	mr_port_poll(harness.port); /* the reset begins */
	assert_true(wait_and_poll(&harness));
	device_heal(&harness);
	assert_true(wait_and_poll(&harness));
	assert_false(wait_and_poll(&harness));
	harness_inject(&harness, 5);
	assert_int_equal(harness_drain(&harness), 5);

	/* An acknowledgement, and one that is owed behind it. */
	vnet_set_faults(harness.v, &hangs);
	vnet_announce(harness.v);
	assert_true(wait_and_poll(&harness));
	assert_true(wait_and_poll(&harness));
	vnet_announce(harness.v);
	assert_true(wait_and_poll(&harness));
	assert_true(vnet_state(harness.v).wants_announcement);
	device_heal(&harness);
	model_step(harness.m);
	vnet_announce(harness.v);
	while (wait_and_poll(&harness))
		;
	assert_false(vnet_state(harness.v).wants_announcement);
	device_end(&harness);
}

/*
 * Given up in the poll that learns of another link: it has none, and is asked
 * for nothing.
 */
DEVICE_TEST(ON_SPLIT, port_that_was_given_up_has_no_link)
{
	const struct vnet_config config = {
		.features = vnet_all_features() & ~VNET_BIT(VNET_RING_RESET),
	};
	struct mr_link link = { 0 };
	struct harness harness;
	uint64_t n_commands;

	device_make(&harness, &config);
	device_open(&harness, "");
	break_rx(&harness);
	device_set_link(&harness, false);
	device_set_link(&harness, true);
	vnet_announce(harness.v);
	n_commands = vnet_stats(harness.v).n_commands;
	assert_true(mr_port_poll(harness.port) > 0);
	assert_int_equal(vnet_stats(harness.v).n_commands, n_commands);
	assert_int_equal(mr_port_link(harness.port, &link), 0);
	assert_true(link.is_gone);
	assert_false(link.is_up);
	assert_int_equal(link.speed_mbps, 0);
	device_end(&harness);
}

DEVICE_TEST(ON_PACKED_IN_ORDER, acknowledgement_is_not_waited_for)
{
	const struct vnet_faults faults = { .ctrl_hangs = true };
	struct harness harness;

	make_device(&harness);
	device_open(&harness, "");
	vnet_set_faults(harness.v, &faults);
	vnet_announce(harness.v);
	assert_int_equal(poll_at_once(&harness), 1);
	assert_int_equal(poll_at_once(&harness), 0);
	assert_true(vnet_state(harness.v).wants_announcement);
	/* Another command comes behind its answer. */
	device_heal(&harness);
	model_step(harness.m);
	assert_int_equal(mr_port_set_allmulti(harness.port, 1, NULL), 0);
	assert_false(vnet_state(harness.v).wants_announcement);
	assert_true(vnet_state(harness.v).allmulti);
	vnet_announce(harness.v);
	assert_int_equal(poll_at_once(&harness), 1);
	assert_false(vnet_state(harness.v).wants_announcement);
	assert_int_equal(poll_at_once(&harness), 0);
	device_end(&harness);
}

/* The link as applications see it, and the fd that tells of it. */
DEVICE_TEST(ON_PACKED_IN_ORDER, link_changes_wake_and_are_seen)
{
	struct pollfd fd = { .events = POLLIN };
	struct mr_link link;
	struct harness harness;

	make_device(&harness);
	device_open(&harness, "");
	fd.fd = mr_port_fd(harness.port);
	assert_int_equal(mr_port_link(harness.port, &link), 0);
	assert_true(link.is_up);
	assert_int_equal(link.speed_mbps, 10000);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(poll(&fd, 1, 0), 0);
		device_set_link(&harness, i % 2);
		assert_int_equal(poll(&fd, 1, 1000), 1);
		assert_true(mr_port_poll(harness.port) > 0);
		assert_int_equal(mr_port_link(harness.port, &link), 0);
		assert_int_equal(link.is_up, i % 2);
	}
	harness_inject(&harness, 5);
	assert_int_equal(harness_drain(&harness), 5);
	device_end(&harness);
}

/* Whether the tx queue lets frames pass; they come out then. */
static bool sends(struct harness *harness)
{
	const uint32_t n = harness_send(harness, 3);

	model_step(harness->m);
	assert_int_equal(harness_collect(harness), n);
	return n > 0;
}

DEVICE_TEST(ON_VIRTIO, port_opened_without_a_link_sends_when_the_link_is_up)
{
	struct harness harness;

	make_device(&harness);
	device_set_link(&harness, false);
	device_open(&harness, "");
	assert_false(harness_is_up(&harness));
	assert_false(sends(&harness));
	device_set_link(&harness, true);
	assert_true(wait_and_poll(&harness));
	assert_true(sends(&harness));
	device_end(&harness);
}

/* The generation moves only once the change was read, or it is not heard. */
DEVICE_TEST(ON_PACKED_IN_ORDER, link_is_followed_where_the_generation_lags)
{
	const struct vnet_faults lags = { .generation_lags = true };
	const struct model_faults unheard = { .lost_irqs = 1 };
	struct harness harness;

	make_device(&harness);
	vnet_set_faults(harness.v, &lags);
	device_set_link(&harness, false);
	device_open(&harness, "");
	assert_false(sends(&harness));
	device_set_link(&harness, true);
	assert_true(wait_and_poll(&harness));
	assert_true(sends(&harness));
	device_set_link(&harness, false);
	assert_true(wait_and_poll(&harness));
	assert_false(harness_is_up(&harness));
	assert_false(sends(&harness));
	assert_int_equal(mr_port_poll(harness.port), 0);
	/* It comes back, and its interrupt is lost. */
	model_set_faults(harness.m, &unheard);
	assert_int_equal(mr_port_poll(harness.port), 1);
	assert_true(sends(&harness));
	device_end(&harness);
}

/* The list of capabilities has none of that kind any more. */
static void drop_msix(struct model *m)
{
	enum { LIST = 0x34, MSIX = 0x11, HOT_PLUG = 0x0c };
	uint8_t at = m->config[LIST];

	while (at != 0 && m->config[at] != MSIX)
		at = m->config[at + 1];
	assert_int_not_equal(at, 0);
	m->config[at] = HOT_PLUG;
}

/* The link is looked at, then, down as well as up. */
DEVICE_TEST(ON_PACKED_IN_ORDER, link_of_a_device_without_interrupts_is_followed)
{
	const struct vnet_faults lags = { .generation_lags = true };
	struct harness harness;

	make_device(&harness);
	drop_msix(harness.m);
	vnet_set_faults(harness.v, &lags);
	device_open(&harness, "");
	assert_int_equal(mr_queue_arm(&harness.rxq->queue), 1);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(mr_port_poll(harness.port), 0);
		device_set_link(&harness, i % 2);
		assert_int_equal(mr_port_poll(harness.port), 1);
		assert_int_equal(harness_is_up(&harness), i % 2);
		assert_int_equal(sends(&harness), i % 2);
	}
	device_end(&harness);
}

/* Nor is it news while it waits, whatever else interrupts. */
DEVICE_TEST(ON_PACKED_IN_ORDER, announcement_is_sent_once)
{
	const struct vnet_faults hangs = { .generation_lags = true,
					   .ctrl_hangs = true };
	const struct model_faults spurious = { .spurious_irqs = 1 };
	struct harness harness;

	make_device(&harness);
	device_open(&harness, "");
	vnet_set_faults(harness.v, &hangs);
	vnet_announce(harness.v);
	assert_int_equal(mr_port_poll(harness.port), 1);
	model_set_faults(harness.m, &spurious);
	for (int i = 0; i < 100; i++) {
		model_step(harness.m);
		assert_int_equal(mr_port_poll(harness.port), 0);
	}
	assert_true(vnet_state(harness.v).wants_announcement);
	device_heal(&harness);
	model_step(harness.m);
	mr_port_poll(harness.port);
	assert_false(vnet_state(harness.v).wants_announcement);
	device_end(&harness);
}

/* The link goes while the reset of a tx queue is under way. */
DEVICE_TEST(ON_SPLIT, queue_that_is_mended_without_a_link_waits_for_it)
{
	const struct vnet_faults faults = { .idx_jumps = 1,
					    .queue_reset_hangs = true };
	struct harness harness;

	for (int is_late = 0; is_late < 2; is_late++) {
		make_device(&harness);
		device_open(&harness, "");
		vnet_set_faults(harness.v, &faults);
		harness_send(&harness, 3);
		mr_tx_burst(harness.txq, harness.cache, NULL, 0);
		assert_int_equal(mr_port_poll(harness.port), 0);
		harness_collect(&harness);
		/* Seen before the reset has ended, or in one poll with it. */
		device_set_link(&harness, false);
		if (!is_late)
			mr_port_poll(harness.port);
		device_heal(&harness);
		device_set_link(&harness, false);
		assert_true(mr_port_poll(harness.port) > 0);
		assert_int_equal(
			harness_tx_stats(&harness).drops[MR_TX_DROP_DEVICE], 3);
		assert_false(harness_is_up(&harness));
		assert_false(sends(&harness));
		device_set_link(&harness, true);
		assert_true(mr_port_poll(harness.port) > 0);
		assert_true(sends(&harness));
		device_end(&harness);
	}
}

/* Who polls by the fd alone learns of it. */
DEVICE_TEST(ON_SPLIT, queue_that_breaks_wakes)
{
	const struct vnet_faults jumps = { .idx_jumps = 1 };
	struct harness harness;

	make_device(&harness);
	device_open(&harness, "");
	for (int is_tx = 0; is_tx < 2; is_tx++) {
		vnet_set_faults(harness.v, &jumps);
		if (is_tx)
			harness_send(&harness, 3);
		else
			harness_inject(&harness, 3);
		harness_collect(&harness);
		device_heal(&harness);
		assert_false(wait_and_poll(&harness));
		mr_tx_burst(harness.txq, harness.cache, NULL, 0);
		harness_drain(&harness);
		assert_true(wait_and_poll(&harness));
		assert_false(wait_and_poll(&harness));
		harness_inject(&harness, 5);
		assert_int_equal(harness_drain(&harness), 5);
		assert_true(sends(&harness));
	}
	device_end(&harness);
}

int main(void)
{
	return devices_run(ON_VIRTIO);
}

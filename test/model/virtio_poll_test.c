/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mr_port_poll() of the virtio driver: what it does beside the frames, that it
 * waits for nothing, and that the port's fd tells when it is to be called.
 */
#include <poll.h>

#include "virtio_bed.h"

enum { DEADLINE_MS = 20000 };

static uint32_t n_slow; /* calls of poll_at_once() since make() */

/* With all features. */
static void make(struct bed *bed)
{
	const struct vnet_config config = { .n_pairs = 2 };

	n_slow = 0;
	vbed_make(bed, &config);
}

static void set_link(struct bed *bed, bool is_up)
{
	const struct model_faults faults = { .link_down = !is_up };

	model_set_faults(bed->m, &faults);
}

/*
 * mr_port_poll() may be called by who moves frames: it never waits. One call
 * may be slow, as the machine may stall; who waits is slow in every one.
 */
static int poll_at_once(struct bed *bed)
{
	const uint64_t start_ms = bed_now_ms();
	const int n = mr_port_poll(bed->port);

	n_slow += bed_now_ms() - start_ms >= test_limit_ms(500);
	assert_true(n_slow <= 1);
	return n;
}

static void break_rx(struct bed *bed)
{
	const struct vnet_faults faults = { .idx_jumps = 1,
					    .queue_reset_hangs = true };

	vnet_set_faults(bed->v, &faults);
	bed_inject(bed, 8);
	bed_drain(bed);
}

TEST(reset_of_a_queue_is_not_waited_for)
{
	struct mr_link link = { 0 };
	struct bed bed;
	uint64_t start_ms;

	for (int ends = 0; ends < 2; ends++) {
		make(&bed);
		bed_open(&bed, "packed=off");
		break_rx(&bed);
		assert_int_equal(poll_at_once(&bed), 0);
		assert_int_equal(poll_at_once(&bed), 0);
		if (ends) {
			vbed_heal(&bed);
			assert_int_equal(poll_at_once(&bed), 1);
			bed_inject(&bed, 5);
			assert_int_equal(bed_drain(&bed), 5);
		}
		start_ms = bed_now_ms();
		while (!ends && !link.is_gone &&
		       bed_now_ms() - start_ms < test_limit_ms(DEADLINE_MS)) {
			poll_at_once(&bed);
			assert_int_equal(mr_port_link(bed.port, &link), 0);
		}
		assert_int_equal(link.is_gone, !ends);
		link.is_gone = 0;
		vbed_heal(&bed);
		bed_check_laws(&bed);
		vbed_end(&bed);
	}
}

/* Who polls when the fd is readable, and never else. Whether it was. */
static bool wait_and_poll(struct bed *bed)
{
	struct pollfd fd = { mr_port_fd(bed->port), POLLIN, 0 };

	if (poll(&fd, 1, 50) <= 0)
		return false;
	mr_port_poll(bed->port);
	return true;
}

TEST(what_is_awaited_wakes)
{
	const struct vnet_faults hangs = { .ctrl_hangs = true };
	struct bed bed;

	make(&bed);
	bed_open(&bed, "packed=off");
	assert_false(wait_and_poll(&bed));
	break_rx(&bed);
	mr_port_poll(bed.port); /* the reset begins */
	assert_true(wait_and_poll(&bed));
	vbed_heal(&bed);
	assert_true(wait_and_poll(&bed));
	assert_false(wait_and_poll(&bed));
	bed_inject(&bed, 5);
	assert_int_equal(bed_drain(&bed), 5);

	/* An acknowledgement, and one that is owed behind it. */
	vnet_set_faults(bed.v, &hangs);
	vnet_announce(bed.v);
	assert_true(wait_and_poll(&bed));
	assert_true(wait_and_poll(&bed));
	vnet_announce(bed.v);
	assert_true(wait_and_poll(&bed));
	assert_true(vnet_state(bed.v).wants_announcement);
	vbed_heal(&bed);
	model_step(bed.m);
	vnet_announce(bed.v);
	while (wait_and_poll(&bed))
		;
	assert_false(vnet_state(bed.v).wants_announcement);
	vbed_end(&bed);
}

/*
 * Given up in the poll that learns of another link: it has none, and is asked
 * for nothing.
 */
TEST(port_that_was_given_up_has_no_link)
{
	const struct vnet_config config = {
		.features = vnet_all_features() & ~VNET_BIT(VNET_RING_RESET),
	};
	struct mr_link link = { 0 };
	struct bed bed;
	uint64_t n_commands;

	vbed_make(&bed, &config);
	bed_open(&bed, "packed=off");
	break_rx(&bed);
	set_link(&bed, false);
	set_link(&bed, true);
	vnet_announce(bed.v);
	n_commands = vnet_stats(bed.v).n_commands;
	assert_true(mr_port_poll(bed.port) > 0);
	assert_int_equal(vnet_stats(bed.v).n_commands, n_commands);
	assert_int_equal(mr_port_link(bed.port, &link), 0);
	assert_true(link.is_gone);
	assert_false(link.is_up);
	assert_int_equal(link.speed_mbps, 0);
	vbed_end(&bed);
}

TEST(acknowledgement_is_not_waited_for)
{
	const struct vnet_faults faults = { .ctrl_hangs = true };
	struct bed bed;

	make(&bed);
	bed_open(&bed, "");
	vnet_set_faults(bed.v, &faults);
	vnet_announce(bed.v);
	assert_int_equal(poll_at_once(&bed), 1);
	assert_int_equal(poll_at_once(&bed), 0);
	assert_true(vnet_state(bed.v).wants_announcement);
	/* Another command comes behind its answer. */
	vbed_heal(&bed);
	model_step(bed.m);
	assert_int_equal(mr_port_set_allmulti(bed.port, 1, NULL), 0);
	assert_false(vnet_state(bed.v).wants_announcement);
	assert_true(vnet_state(bed.v).allmulti);
	vnet_announce(bed.v);
	assert_int_equal(poll_at_once(&bed), 1);
	assert_false(vnet_state(bed.v).wants_announcement);
	assert_int_equal(poll_at_once(&bed), 0);
	vbed_end(&bed);
}

/* The link as applications see it, and the fd that tells of it. */
TEST(link_changes_wake_and_are_seen)
{
	struct pollfd fd = { .events = POLLIN };
	struct mr_link link;
	struct bed bed;

	make(&bed);
	bed_open(&bed, "");
	fd.fd = mr_port_fd(bed.port);
	assert_int_equal(mr_port_link(bed.port, &link), 0);
	assert_true(link.is_up);
	assert_int_equal(link.speed_mbps, 10000);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(poll(&fd, 1, 0), 0);
		set_link(&bed, i % 2);
		assert_int_equal(poll(&fd, 1, 1000), 1);
		assert_true(mr_port_poll(bed.port) > 0);
		assert_int_equal(mr_port_link(bed.port, &link), 0);
		assert_int_equal(link.is_up, i % 2);
	}
	bed_inject(&bed, 5);
	assert_int_equal(bed_drain(&bed), 5);
	vbed_end(&bed);
}

/* Whether the tx queue lets frames pass; they come out then. */
static bool sends(struct bed *bed)
{
	const uint32_t n = bed_send(bed, 3);

	model_step(bed->m);
	assert_int_equal(bed_collect(bed), n);
	return n > 0;
}

TEST(port_opened_without_a_link_sends_when_it_comes)
{
	struct bed bed;

	for (uint32_t k = 0; k < VBED_N_RINGS; k++) {
		make(&bed);
		set_link(&bed, false);
		bed_open(&bed, vbed_rings[k]);
		assert_false(bed_is_up(&bed));
		assert_false(sends(&bed));
		set_link(&bed, true);
		assert_true(wait_and_poll(&bed));
		assert_true(sends(&bed));
		vbed_end(&bed);
	}
}

/* The generation moves only once the change was read, or it is not heard. */
TEST(link_is_followed_where_the_generation_lags)
{
	const struct vnet_faults lags = { .generation_lags = true };
	const struct model_faults unheard = { .lost_irqs = 1 };
	struct bed bed;

	make(&bed);
	vnet_set_faults(bed.v, &lags);
	set_link(&bed, false);
	bed_open(&bed, "");
	assert_false(sends(&bed));
	set_link(&bed, true);
	assert_true(wait_and_poll(&bed));
	assert_true(sends(&bed));
	set_link(&bed, false);
	assert_true(wait_and_poll(&bed));
	assert_false(bed_is_up(&bed));
	assert_false(sends(&bed));
	assert_int_equal(mr_port_poll(bed.port), 0);
	/* It comes back, and its interrupt is lost. */
	model_set_faults(bed.m, &unheard);
	assert_int_equal(mr_port_poll(bed.port), 1);
	assert_true(sends(&bed));
	vbed_end(&bed);
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
TEST(link_of_a_device_without_interrupts_is_followed)
{
	const struct vnet_faults lags = { .generation_lags = true };
	struct bed bed;

	make(&bed);
	drop_msix(bed.m);
	vnet_set_faults(bed.v, &lags);
	bed_open(&bed, "");
	assert_int_equal(mr_queue_arm(&bed.rxq->queue), 1);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(mr_port_poll(bed.port), 0);
		set_link(&bed, i % 2);
		assert_int_equal(mr_port_poll(bed.port), 1);
		assert_int_equal(bed_is_up(&bed), i % 2);
		assert_int_equal(sends(&bed), i % 2);
	}
	vbed_end(&bed);
}

/* Nor is it news while it waits, whatever else interrupts. */
TEST(announcement_is_told_once)
{
	const struct vnet_faults hangs = { .generation_lags = true,
					   .ctrl_hangs = true };
	const struct model_faults spurious = { .spurious_irqs = 1 };
	struct bed bed;

	make(&bed);
	bed_open(&bed, "");
	vnet_set_faults(bed.v, &hangs);
	vnet_announce(bed.v);
	assert_int_equal(mr_port_poll(bed.port), 1);
	model_set_faults(bed.m, &spurious);
	for (int i = 0; i < 100; i++) {
		model_step(bed.m);
		assert_int_equal(mr_port_poll(bed.port), 0);
	}
	assert_true(vnet_state(bed.v).wants_announcement);
	vbed_heal(&bed);
	model_step(bed.m);
	mr_port_poll(bed.port);
	assert_false(vnet_state(bed.v).wants_announcement);
	vbed_end(&bed);
}

/* The link goes while the reset of a tx queue is under way. */
TEST(queue_that_is_mended_without_a_link_waits_for_it)
{
	const struct vnet_faults faults = { .idx_jumps = 1,
					    .queue_reset_hangs = true };
	struct bed bed;

	for (int is_late = 0; is_late < 2; is_late++) {
		make(&bed);
		bed_open(&bed, "packed=off");
		vnet_set_faults(bed.v, &faults);
		bed_send(&bed, 3);
		mr_tx_burst(bed.txq, bed.cache, NULL, 0);
		assert_int_equal(mr_port_poll(bed.port), 0);
		bed_collect(&bed);
		/* Seen before the reset has ended, or in one poll with it. */
		set_link(&bed, false);
		if (!is_late)
			mr_port_poll(bed.port);
		vbed_heal(&bed);
		set_link(&bed, false);
		assert_true(mr_port_poll(bed.port) > 0);
		assert_int_equal(bed_tx_stats(&bed).drops[MR_TX_DROP_DEVICE],
				 3);
		assert_false(bed_is_up(&bed));
		assert_false(sends(&bed));
		set_link(&bed, true);
		assert_true(mr_port_poll(bed.port) > 0);
		assert_true(sends(&bed));
		vbed_end(&bed);
	}
}

/* Who polls by the fd alone learns of it. */
TEST(queue_that_breaks_wakes)
{
	const struct vnet_faults jumps = { .idx_jumps = 1 };
	struct bed bed;

	make(&bed);
	bed_open(&bed, "packed=off");
	for (int is_tx = 0; is_tx < 2; is_tx++) {
		vnet_set_faults(bed.v, &jumps);
		if (is_tx)
			bed_send(&bed, 3);
		else
			bed_inject(&bed, 3);
		bed_collect(&bed);
		vbed_heal(&bed);
		assert_false(wait_and_poll(&bed));
		mr_tx_burst(bed.txq, bed.cache, NULL, 0);
		bed_drain(&bed);
		assert_true(wait_and_poll(&bed));
		assert_false(wait_and_poll(&bed));
		bed_inject(&bed, 5);
		assert_int_equal(bed_drain(&bed), 5);
		assert_true(sends(&bed));
	}
	vbed_end(&bed);
}

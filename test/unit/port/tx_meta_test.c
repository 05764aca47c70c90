/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of VLAN tags that lib/port writes, and of launch times, on a driver
 * without offloads: pair.
 */
#include "port/observed_pair.h"

/* In the headroom, or in a copy if it has none or is shared; in one burst. */
TEST(tags_are_written)
{
	struct mr_frame frames[5], own[5];
	struct mr_meta metas[5];
	uint8_t bytes[100];

	open_ports(0);
	memset(bytes, 0x11, sizeof(bytes));
	for (uint32_t i = 0; i < 5; i++) {
		metas[i] = (struct mr_meta){ .valid = i != 4 ? MR_META_VLAN : 0,
					     .vlan_tci = TCI };
		(void)put_bytes(bytes, 60 + i, 100, &frames[i]);
	}
	frames[1].addr -= 128 - 3;
	memcpy(b.f.base + frames[1].addr, bytes, 61);
	assert_int_equal(mr_frame_ref(b.f.cache, &frames[2], 1), 0);
	memcpy(own, frames, sizeof(own));
	seen.n_bursts = 0;
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, 5),
			 5);
	assert_int_equal(seen.n_bursts, 1);
	assert_int_equal(receive_frames(), 5);
	for (uint32_t i = 0; i < 5; i++) {
		const uint8_t *got = b.f.base + b.got[i].addr;
		const uint32_t tag = i != 4 ? 4 : 0;

		assert_int_equal(b.got[i].len, 60 + i + tag);
		assert_memory_equal(got, bytes, 12);
		if (tag != 0)
			assert_memory_equal(got + 12, "\x81\x00\x20\x05", 4);
		assert_memory_equal(got + 12 + tag, bytes, 48 + i);
	}
	assert_int_equal(b.got[0].addr, own[0].addr - 4);
	/* The other owner's bytes are unchanged. */
	assert_memory_equal(b.f.base + own[2].addr, bytes, 62);
	mr_frame_free_bulk(b.f.cache, &own[2], 1);
	assert_int_equal(
		fixture_tx_stats(b.txq).events[MR_TX_EVENT_VLAN_SOFTWARE], 4);
	close_ports();
}

static void check_service_tag(void)
{
	const struct mr_meta meta = { .valid = MR_META_VLAN,
				      .vlan_proto = 0x88a8,
				      .vlan_tci = TCI };
	struct mr_frame frame;
	uint8_t bytes[60] = { 0 };

	(void)put_bytes(bytes, sizeof(bytes), 100, &frame);
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, &frame, &meta, 1),
			 1);
	assert_int_equal(receive_frames(), 1);
	assert_int_equal(b.got[0].len, 64);
	assert_memory_equal(b.f.base + b.got[0].addr + 12, "\x88\xa8\x20\x05",
			    4);
	mr_frame_free_bulk(b.f.cache, b.got, 1);
}

/* Devices insert 802.1Q tags only. */
TEST(a_service_tag_is_written_in_software)
{
	open_ports(0);
	b.txq->queue.port->info->offloads |= MR_OFFLOAD_VLAN_TX;
	check_service_tag();
	close_ports();
}

/* Frames that the driver refuses are unchanged, tagged in place or copied. */
static void check_refused_tags(bool is_shared)
{
	struct mr_frame frames[RING + 2], before[RING + 2];
	struct mr_meta metas[RING + 2];
	uint8_t bytes[100];

	open_ports(0);
	memset(bytes, 0x11, sizeof(bytes));
	bytes[0] = 0x22;
	for (uint32_t i = 0; i < RING + 2; i++) {
		metas[i] = (struct mr_meta){ .valid = MR_META_VLAN };
		(void)put_bytes(bytes, 60, 100, &frames[i]);
	}
	memcpy(before, frames, sizeof(frames));
	if (is_shared)
		assert_int_equal(mr_frame_ref(b.f.cache, frames, RING + 2), 0);
	assert_int_equal(
		mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, RING + 2),
		RING);
	assert_memory_equal(frames, before, sizeof(frames));
	assert_memory_equal(b.f.base + frames[RING].addr, bytes, 60);
	assert_int_equal(
		fixture_tx_stats(b.txq).events[MR_TX_EVENT_VLAN_SOFTWARE],
		RING);
	mr_frame_free_bulk(b.f.cache, frames + RING, 2);
	if (is_shared)
		mr_frame_free_bulk(b.f.cache, frames, RING + 2);
	assert_int_equal(receive_frames(), RING);
	close_ports();
}

TEST(a_frame_that_is_refused_has_no_tag)
{
	check_refused_tags(false);
	check_refused_tags(true);
}

/* A frame with a launch time, beside one without. Returns how many arrive. */
static uint32_t count_sent_at(uint16_t clock, uint32_t valid)
{
	const struct mr_meta metas[2] = {
		{ .valid = MR_META_LAUNCH_TIME | valid,
		  .launch_ns = 1,
		  .launch_clock = clock,
		  .gso_bytes = MSS,
		  .gso_type = MR_GSO_TCPV4 },
		{ .valid = 0 },
	};
	struct mr_frame frames[2];
	uint8_t bytes[1100];
	uint32_t n;

	(void)make_bytes(bytes, (struct kind){ false, false }, 1000);
	(void)put_bytes(bytes, 1000, PAGE, &frames[0]);
	(void)put_bytes(bytes, 60, PAGE, &frames[1]);
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, 2),
			 2);
	n = receive_frames();
	mr_frame_free_bulk(b.f.cache, b.got, b.n_got);
	b.n_got = 0;
	return n;
}

TEST(launch_times_are_dropped_if_the_device_lacks_them_or_their_clock)
{
	open_ports(0);
	assert_int_equal(count_sent_at(CLOCK_MONOTONIC, 0), 1);
	assert_int_equal(count_sent_at(MR_CLOCK_DEVICE, MR_META_VLAN), 1);
	assert_int_equal(
		count_sent_at(MR_CLOCK_DEVICE, MR_META_GSO | MR_META_CSUM), 1);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_INVALID], 3);
	assert_int_equal(fixture_tx_stats(b.txq).accepted, 6);
	close_ports();

	device.offloads = MR_OFFLOAD_LAUNCH_TIME;
	device.launch_clock = MR_CLOCK_DEVICE;
	open_ports(0);
	assert_int_equal(count_sent_at(CLOCK_MONOTONIC, 0), 1);
	assert_int_equal(count_sent_at(MR_CLOCK_DEVICE, 0), 2);
	assert_int_equal(seen.meta.valid, MR_META_LAUNCH_TIME);
	assert_int_equal(seen.meta.launch_ns, 1);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_INVALID], 1);
	close_ports();
	device.offloads = 0;
}

/* lib/port handles what no device does, whatever the device claims. */
TEST(a_device_with_all_features_gets_no_other_tag_and_no_other_clock)
{
	device.offloads = MR_OFFLOAD_TSO4 | MR_OFFLOAD_TSO6 | MR_OFFLOAD_USO |
			  MR_OFFLOAD_VLAN_TX | MR_OFFLOAD_LAUNCH_TIME;
	device.launch_clock = MR_CLOCK_DEVICE;
	open_ports(0);
	assert_int_equal(count_sent_at(CLOCK_MONOTONIC, 0), 1);
	assert_int_equal(count_sent_at(MR_CLOCK_DEVICE, 0), 2);
	check_service_tag();
	close_ports();
	device.offloads = 0;
}

static void send_tagged(uint32_t queue)
{
	const struct mr_meta meta = { .valid = MR_META_VLAN, .vlan_tci = TCI };
	struct mr_frame frame;
	uint8_t bytes[60] = { 0 };

	(void)put_bytes(bytes, sizeof(bytes), 100, &frame);
	assert_int_equal(mr_tx_burst_meta(mr_port_txq(b.near, queue), b.f.cache,
					  &frame, &meta, 1),
			 1);
	assert_int_equal(
		mr_rx_burst(mr_port_rxq(b.far, queue), b.f.cache, &frame, 1),
		1);
	assert_int_equal(frame.len, 64);
	mr_frame_free_bulk(b.f.cache, &frame, 1);
}

/* Even if a change of channels hides one, and the next shows it again. */
TEST(queues_that_are_added_are_shown_once_they_write_tags)
{
	device.n_txqs = 2;
	open_ports_as(0, "observed:o,queues=3,ring=16",
		      "pair:o,queues=3,ring=16");
	b.near->info->n_channels = 2;
	device.n_txqs = 1;
	assert_int_equal(mr_port_add_queues(b.near, NULL), 1);
	assert_null(mr_port_txq(b.near, 1));
	b.near->info->n_channels = 3;
	device.n_txqs = 3;
	assert_int_equal(mr_port_add_queues(b.near, NULL), 1);
	assert_false(seen.is_early);
	for (uint32_t i = 0; i < 3; i++)
		send_tagged(i);
	close_ports();
	device.n_txqs = 0;
}

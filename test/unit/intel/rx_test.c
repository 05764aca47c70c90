/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/intel/intel_rx.c: what a device may write, and does. */
#include <unistd.h>

#include "intel.h"
#include "model/held_nic.h"
#include "support/rx_script.h"

static uint32_t receive_frames(struct mr_frame *frames, uint32_t n)
{
	return mr_rx_burst(held.harness.rxq, held.harness.cache, frames, n);
}

static void receive_one(void)
{
	held_receive(0, INTEL_RX_EOP, 60, 0);
}

static void give_buffer(bool is_end)
{
	held_receive(0, is_end ? INTEL_RX_EOP : 0,
		     is_end ? RX_SCRIPT_END_BYTES : 3072, 0);
}

/* Buffers of 3 KiB here. Each costs the frame, none the one behind it. */
static const struct {
	uint32_t status, n_bytes;
} wrong[] = {
	{ INTEL_RX_EOP, 0 },
	{ INTEL_RX_EOP, 3073 },
	{ INTEL_RX_EOP, 65535 },
	{ INTEL_RX_EOP | INTEL_RX_RXE, 60 },
	{ INTEL_RX_EOP | INTEL_RX_CE, 60 },
	{ INTEL_RX_EOP | INTEL_RX_SE, 60 },
	{ INTEL_RX_EOP | INTEL_RX_SEQ, 60 },
	{ INTEL_RX_EOP | INTEL_RX_CXE, 60 },
};

static uint32_t which_wrong;

static void give_bad(void)
{
	held_receive(0, wrong[which_wrong].status, wrong[which_wrong].n_bytes,
		     0);
}

static const struct rx_script scripts[] = {
	/* What is wrong is a drop, in frames of one entry and of several. */
	{ NULL, "e b e R32=1 R31=0 R31=1", .delivered = 2, .invalid = 1 },
	{ "sg=on", "e b e R32=1 R31=0 R31=1", .delivered = 2, .invalid = 1 },
	/* Several buffers, without SG: its end comes later than the drop. */
	{ NULL, "m R4=0 R4=0 m 2e R4=0 R4=1", .delivered = 1, .too_long = 1 },
	/* One that is not whole, or does not fit the burst, waits. */
	{ "mtu=9000", "e 2m R32=1 R31=0 e R31=3", .delivered = 2 },
	{ "sg=on",
	  "2m e 2m e 2m e 2m e 2m e 2m e 2m e 2m e 2m e 2m e R20=18 R20=12",
	  .delivered = 10 },
	/* 18 entries are delivered, 19 are one drop. */
	{ "sg=on", "17m e R64=18 20m R64=0 e e R64=1", .delivered = 2,
	  .too_long = 1 },
	/* No pages: a burst is cut, between frames, and nothing is lost. */
	{ NULL, "P 10e R32=3 R28=0 p R28=7", .delivered = 10, .pool_empty = 2 },
	{ "sg=on", "P m e m e m e m e m e R32=2 R28=0 p R28=8", .delivered = 5,
	  .pool_empty = 2 },
	/* A burst of none takes nothing. */
	{ NULL, "b R0=0", .delivered = 0 },
};

TEST(frames_of_a_device_are_received_or_a_named_drop)
{
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		const bool has_wrong = strchr(scripts[i].script, 'b') != NULL;

		for (which_wrong = 0;
		     which_wrong <
		     (has_wrong ? sizeof(wrong) / sizeof(wrong[0]) : 1);
		     which_wrong++) {
			held_open((struct held_config){
				.options = scripts[i].options });
			rx_script_run(&scripts[i],
				      &(struct rx_double){
					      .rxq = held.harness.rxq,
					      .cache = held.harness.cache,
					      .give = give_buffer,
					      .give_bad = give_bad });
			held_close();
		}
	}
}

/* Sums, hash, and tag: the last only if the device took it out. */
static const struct {
	uint64_t low;
	uint32_t status;
	uint16_t vlan;
	bool takes_tags;
	uint32_t flags, valid;
} said[] = {
	{ .status = 0 },
	{ .status = INTEL_RX_TCPCS, .flags = MR_FRAME_CSUM_VALID },
	{ .status = INTEL_RX_UDPCS, .flags = MR_FRAME_CSUM_VALID },
	{ .status = INTEL_RX_TCPCS | INTEL_RX_UDPCS,
	  .flags = MR_FRAME_CSUM_VALID },
	{ .status = INTEL_RX_TCPCS | 0x40, .flags = MR_FRAME_CSUM_VALID },
	{ .status = INTEL_RX_TCPCS | INTEL_RX_IXSM },
	{ .status = INTEL_RX_UDPCS | 0x40 | INTEL_RX_IXSM },
	{ .status = INTEL_RX_IXSM },
	{ .status = INTEL_RX_TCPCS | INTEL_RX_TCPE },
	{ .status = INTEL_RX_UDPCS | INTEL_RX_TCPE },
	{ .status = INTEL_RX_TCPCS | INTEL_RX_IPE },
	{ .status = INTEL_RX_TCPE },
	{ .status = 0x40 }, /* the IP header alone */
	{ .low = UINT64_C(0xdeadbeef) << 32 | 1,
	  .vlan = 0x123,
	  .takes_tags = true,
	  .valid = MR_META_RSS_HASH },
	{ .low = UINT64_C(0xdeadbeef) << 32,
	  .status = INTEL_RX_VP,
	  .vlan = 0xa123,
	  .takes_tags = true,
	  .valid = MR_META_VLAN },
	{ .status = INTEL_RX_VP, .vlan = 1 },
};

TEST(flags_and_metadata_are_what_the_descriptor_says)
{
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		struct mr_frame frames[MR_MAX_SEGS];
		struct mr_meta meta[MR_MAX_SEGS];

		held_open((struct held_config){
			.options = said[i].takes_tags ? "vlan" : "sg=on" });
		/* It is in the last buffer, and of the first entry. */
		if (!said[i].takes_tags)
			held_receive(0, 0, 3072, 0);
		held_receive(said[i].low, said[i].status | INTEL_RX_EOP, 60,
			     said[i].vlan);
		assert_int_equal(mr_rx_burst_meta(held.harness.rxq,
						  held.harness.cache, frames,
						  meta, MR_MAX_SEGS),
				 said[i].takes_tags ? 1 : 2);
		assert_int_equal(frames[0].flags & ~(uint32_t)MR_FRAME_MORE,
				 said[i].flags);
		assert_int_equal(meta[0].valid, said[i].valid);
		if (said[i].valid == MR_META_RSS_HASH) {
			assert_int_equal(meta[0].rss_hash, 0xdeadbeef);
			assert_int_equal(meta[0].hash_type,
					 MR_HASH_IPV4 | MR_HASH_L4 |
						 MR_HASH_TCP);
		}
		if (said[i].valid == MR_META_VLAN) {
			assert_int_equal(meta[0].vlan_proto, 0x8100);
			assert_int_equal(meta[0].vlan_tci, 0xa123);
		}
		mr_frame_free_bulk(held.harness.cache, frames,
				   said[i].takes_tags ? 1 : 2);
		held_close();
	}
}

/* RDT moves for 16 places at a time here, and never to where RDH is. */
HELD_TEST(the_device_is_notified_once_for_several_buffers)
{
	struct mr_frame frames[16];
	uint32_t n_writes;

	n_writes = held.n_writes;
	for (uint32_t i = 0; i < 16; i++) {
		receive_one();
		assert_int_equal(receive_frames(&frames[i], 1), 1);
		assert_int_equal(frames[i].addr % 4096, 128);
		assert_int_equal(held.n_writes - n_writes, i == 15);
	}
	mr_frame_free_bulk(held.harness.cache, frames, 16);
	/* All that it has: the last 48 of the first round, and 15. */
	for (uint32_t i = 0; i < HELD_RING - 1; i++)
		receive_one();
	assert_int_equal(held_in_flight(), HELD_RING);
}

HELD_TEST(arming_an_empty_queue_waits_for_the_next_frame)
{
	struct mr_queue *queue;
	struct mr_frame frame;
	uint32_t n_writes;
	uint64_t n = 1;

	queue = &held.harness.rxq->queue;
	assert_true(queue->fd >= 0);
	/* An eventfd that fired before is emptied: "work" for ever. */
	assert_int_equal(write(queue->fd, &n, sizeof(n)), sizeof(n));
	*held_reg(INTEL_EIMS) = 0;
	n_writes = held.n_writes;
	assert_int_equal(mr_queue_arm(queue), 0);
	assert_true(read(queue->fd, &n, sizeof(n)) < 0);
	/* A pending cause would wake for frames that were received. */
	assert_int_equal(held.n_writes, n_writes + 2);
	assert_int_equal(held.offsets[n_writes], INTEL_EICR);
	assert_int_equal(held.values[n_writes], 1);
	assert_int_equal(held.offsets[n_writes + 1], INTEL_EIMS);
	assert_int_equal(*held_reg(INTEL_EIMS) & 1, 1);
	receive_one();
	n_writes = held.n_writes;
	assert_int_equal(mr_queue_arm(queue), 1);
	assert_int_equal(held.n_writes, n_writes); /* nothing switched on */
	assert_int_equal(receive_frames(&frame, 1), 1);
	mr_frame_free_bulk(held.harness.cache, &frame, 1);

	/* It comes while causes are cleared, or the vector switched on. */
	held.hook = receive_one;
	for (int i = 0; i < 2; i++) {
		held.hook_offset = i == 0 ? INTEL_EICR : INTEL_EIMS;
		assert_int_equal(mr_queue_arm(queue), 1);
		assert_int_equal(held.offsets[held.n_writes - 1],
				 held.hook_offset);
		assert_int_equal(receive_frames(&frame, 1), 1);
		mr_frame_free_bulk(held.harness.cache, &frame, 1);
	}
	held.hook_offset = 0;

	/* Nor is it switched on for a device that is gone. */
	held_set_gone(true);
	assert_int_equal(mr_queue_arm(queue), 0);
	assert_true(held.intel->is_gone);
}

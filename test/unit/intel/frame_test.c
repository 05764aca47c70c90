/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/intel/intel_frame.c: frames that are not one plain entry. */
#include "fake_nic.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <millrace/net.h>
#include <millrace/wire.h>

enum { L3 = 14, V4_L4 = 34, V6_L4 = 54, TCP_HEADER = 32 };

static const struct fake_config igb = { 0 };
static const struct fake_config e1000e = { .device_id = FAKE_82574 };

static uint32_t send_meta(struct fake *fake, const struct mr_frame *frames,
			  const struct mr_meta *meta, uint32_t n)
{
	return mr_tx_burst_meta(fake->txq, fake->cache, frames, meta, n);
}

static uint32_t dword(const struct fake *fake, uint32_t i, uint32_t k)
{
	return (uint32_t)(fake->sent[i].words[k / 2] >> 32 * (k % 2));
}

/* A packet of n_payload bytes, its sum the pseudo-header's. */
static struct mr_frame packet(struct fake *fake, bool is_ipv6, uint8_t proto,
			      uint32_t n_payload)
{
	const uint32_t l4 = is_ipv6 ? V6_L4 : V4_L4;
	const uint32_t n_header = proto == IPPROTO_TCP ? TCP_HEADER : 8;
	struct mr_frame frame = fake_frame(fake, l4 + n_header + n_payload);
	uint8_t *b = fake_bytes(fake, &frame);
	struct mr_net_view view;
	uint16_t sum;

	memset(b, 0x11, frame.len);
	b[12] = is_ipv6 ? 0x86 : 0x08;
	b[13] = is_ipv6 ? 0xdd : 0x00;
	if (is_ipv6) {
		b[L3] = 0x60;
		b[L3 + 4] = (uint8_t)((n_header + n_payload) >> 8);
		b[L3 + 5] = (uint8_t)(n_header + n_payload);
		b[L3 + 6] = proto;
	} else {
		b[L3] = 0x45;
		b[L3 + 2] = (uint8_t)((20 + n_header + n_payload) >> 8);
		b[L3 + 3] = (uint8_t)(20 + n_header + n_payload);
		b[L3 + 6] = b[L3 + 7] = 0;
		b[L3 + 9] = proto;
	}
	if (proto == IPPROTO_TCP) {
		b[l4 + 12] = TCP_HEADER / 4 << 4;
	} else {
		b[l4 + 4] = (uint8_t)((8 + n_payload) >> 8);
		b[l4 + 5] = (uint8_t)(8 + n_payload);
	}
	assert_int_equal(mr_net_parse(b, frame.len, frame.len, &view), 0);
	assert_int_equal(view.l4_bytes, l4);
	sum = mr_csum_pseudo(b, &view);
	memcpy(b + view.csum_bytes, &sum, sizeof(sum));
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	return frame;
}

TEST(a_frame_of_several_entries_is_several_descriptors)
{
	struct mr_frame frames[4];
	struct fake fake;

	fake_open(&fake, igb);
	for (int round = 0; round < 60; round++) {
		const uint32_t first = fake.n_sent;

		for (uint32_t i = 0; i < 4; i++)
			frames[i] = fake_frame(&fake, 100 + i);
		frames[0].flags = frames[1].flags = MR_FRAME_MORE;
		assert_int_equal(send_meta(&fake, frames, NULL, 4), 4);
		assert_int_equal(fake_send(&fake), 4);
		/* EOP in the last one of a frame; PAYLEN is all of it. */
		assert_int_equal(dword(&fake, first, 2), 0x22300000 | 100);
		assert_int_equal(dword(&fake, first + 1, 2), 0x22300000 | 101);
		assert_int_equal(dword(&fake, first + 2, 2), 0x23300000 | 102);
		assert_int_equal(dword(&fake, first, 3), 303 << 14);
		assert_int_equal(dword(&fake, first + 3, 2), 0x2b300000 | 103);
		send_meta(&fake, NULL, NULL, 0);
		assert_in_flight(fake.f.pool, FAKE_RING);
	}
	assert_int_equal(fake_tx_stats(&fake).completed, 120);
	assert_int_equal(fake_tx_stats(&fake).pending, 0);
	assert_int_equal(fake.intel->txqs[0].n_special, 0);
	fake_close(&fake);
}

TEST(a_frame_without_room_stays_the_callers)
{
	struct mr_frame frames[MR_BURST_MAX];
	struct fake fake;

	fake_open(&fake, igb);
	for (uint32_t i = 0; i < 60 + MR_MAX_SEGS; i++)
		frames[i] = fake_frame(&fake, 60);
	for (uint32_t i = 60; i + 1 < 60 + MR_MAX_SEGS; i++)
		frames[i].flags = MR_FRAME_MORE;
	assert_int_equal(send_meta(&fake, frames, NULL, 60 + MR_MAX_SEGS), 60);
	assert_int_equal(fake_tx_stats(&fake).accepted, 60);
	mr_frame_free_bulk(fake.cache, frames + 60, MR_MAX_SEGS);
	fake_close(&fake);
}

/* 18 entries leave, 19 do not. */
TEST(too_many_entries_are_a_named_drop)
{
	struct mr_frame frames[MR_MAX_SEGS + 1];
	struct fake fake;

	fake_open(&fake, igb);
	for (uint32_t n = MR_MAX_SEGS; n <= MR_MAX_SEGS + 1; n++) {
		for (uint32_t i = 0; i < n; i++) {
			frames[i] = fake_frame(&fake, 60);
			frames[i].flags = i + 1 < n ? MR_FRAME_MORE : 0;
		}
		assert_int_equal(send_meta(&fake, frames, NULL, n), n);
	}
	assert_int_equal(fake_send(&fake), MR_MAX_SEGS);
	assert_int_equal(fake_tx_stats(&fake).drops[MR_TX_DROP_TOO_LONG], 1);
	send_meta(&fake, NULL, NULL, 0);
	assert_in_flight(fake.f.pool, FAKE_RING);
	fake_close(&fake);
}

/* TCTL.PSP does not: 14 to 16 bytes, in one entry or several. */
TEST(what_the_device_cannot_pad_is_padded)
{
	struct fake fake;

	fake_open(&fake, igb);
	for (uint32_t n = 14; n < 17; n++) {
		for (int has_two = 0; has_two < 2; has_two++) {
			struct mr_frame frames[2] = {
				fake_frame(&fake, has_two ? n - 3 : n),
				fake_frame(&fake, 3),
			};
			const uint32_t first = fake.n_sent;
			const uint8_t *bytes;

			memset(fake_bytes(&fake, &frames[0]), 0xee, 32);
			memset(fake_bytes(&fake, &frames[1]), 0xee, 32);
			frames[0].flags = has_two ? MR_FRAME_MORE : 0;
			assert_int_equal(
				send_meta(&fake, frames, NULL, 1 + has_two),
				1 + has_two);
			if (!has_two)
				mr_frame_free_bulk(fake.cache, &frames[1], 1);
			assert_int_equal(fake_send(&fake), 1);
			assert_int_equal((uint16_t)dword(&fake, first, 2), 17);
			bytes = soft_reach(&fake.nic.pci,
					   fake.sent[first].words[0]);
			for (uint32_t i = 0; i < 17; i++)
				assert_int_equal(bytes[i], i < n ? 0xee : 0);
			send_meta(&fake, NULL, NULL, 0);
			assert_in_flight(fake.f.pool, FAKE_RING);
		}
	}
	assert_int_equal(fake_tx_stats(&fake).completed, 6);
	fake_close(&fake);
}

TEST(sums_are_the_devices_work_on_igb)
{
	static const struct {
		bool is_ipv6;
		uint8_t proto;
		uint32_t lengths, type;
	} cases[] = {
		{ false, IPPROTO_TCP, 20 | 14 << 9, 0x20200000 | 0xc00 },
		{ false, IPPROTO_UDP, 20 | 14 << 9, 0x20200000 | 0x400 },
		{ true, IPPROTO_TCP, 40 | 14 << 9, 0x20200000 | 0x800 },
		{ true, IPPROTO_UDP, 40 | 14 << 9, 0x20200000 },
	};

	for (size_t i = 0; i < 4; i++) {
		struct mr_frame frames[3];
		struct fake fake;

		fake_open(&fake, igb);
		for (int k = 0; k < 3; k++)
			frames[k] = packet(&fake, cases[i].is_ipv6,
					   cases[i].proto, 100);
		frames[1].flags = 0; /* plain: no context, and it keeps it */
		assert_int_equal(send_meta(&fake, frames, NULL, 3), 3);
		/* The second frame with a sum needs no context any more. */
		assert_int_equal(fake_send(&fake), 4);
		assert_int_equal(dword(&fake, 0, 0), cases[i].lengths);
		assert_int_equal(dword(&fake, 0, 1), 0);
		assert_int_equal(dword(&fake, 0, 2), cases[i].type);
		assert_int_equal(dword(&fake, 0, 3), 0);
		assert_int_equal(dword(&fake, 1, 3),
				 frames[0].len << 14 | 2 << 8);
		assert_int_equal(dword(&fake, 2, 3), frames[1].len << 14);
		assert_int_equal(dword(&fake, 3, 3),
				 frames[2].len << 14 | 2 << 8);
		assert_int_equal(
			fake_tx_stats(&fake).events[MR_TX_EVENT_CSUM_DEVICE],
			2);
		send_meta(&fake, NULL, NULL, 0);
		assert_int_equal(fake_tx_stats(&fake).completed, 3);
		fake_close(&fake);
	}
}

TEST(sums_are_the_devices_work_on_the_82574)
{
	struct mr_frame frames[2];
	struct fake fake;

	fake_open(&fake, e1000e);
	frames[0] = packet(&fake, false, IPPROTO_TCP, 100);
	frames[1] = packet(&fake, true, IPPROTO_UDP, 100);
	assert_int_equal(send_meta(&fake, frames, NULL, 2), 2);
	assert_int_equal(fake_send(&fake), 4);
	/* Start, field, end; twice (82574). */
	assert_int_equal(dword(&fake, 0, 0), 14 | 24 << 8 | 33 << 16);
	assert_int_equal(dword(&fake, 0, 1), 34 | 50 << 8);
	assert_int_equal(dword(&fake, 0, 2), 0x23000000);
	assert_int_equal(dword(&fake, 0, 3), 0);
	assert_int_equal(dword(&fake, 1, 3), 2 << 8);
	assert_int_equal(dword(&fake, 2, 0), 14 | 24 << 8);
	assert_int_equal(dword(&fake, 2, 1), 54 | 60 << 8);
	assert_int_equal(dword(&fake, 2, 2), 0x20000000);
	fake_close(&fake);
}

/* The sum over bytes [start, n) as it is on the wire, its field included. */
static uint16_t sum_of(struct fake *fake, const struct mr_frame *frame,
		       uint32_t start)
{
	return mr_csum_fold(mr_csum_add(fake_bytes(fake, frame) + start,
					frame->len - start, 0));
}

/* By metadata: what the headers do not say as well, is finished here. */
TEST(sums_that_the_device_cannot_make_are_made_here)
{
	struct mr_meta meta = { .valid = MR_META_CSUM,
				.csum_start_bytes = V4_L4,
				.csum_offset_bytes = 16 };
	struct mr_frame frame;
	struct fake fake;

	fake_open(&fake, igb);
	frame = packet(&fake, false, IPPROTO_TCP, 10);
	assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
	assert_int_equal(fake_send(&fake), 2);
	for (int i = 0; i < 3; i++) {
		meta.csum_start_bytes = i == 0 ? V4_L4 : 30;
		meta.csum_offset_bytes = i == 0 ? 6 : 20;
		frame = packet(&fake, false, IPPROTO_TCP, 10);
		if (i == 2) /* no packet at all */
			memset(fake_bytes(&fake, &frame), 0, 34);
		memset(fake_bytes(&fake, &frame) + meta.csum_start_bytes +
			       meta.csum_offset_bytes,
		       0, 2);
		assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
		assert_int_equal(fake_send(&fake), 1);
		assert_int_equal(sum_of(&fake, &frame, meta.csum_start_bytes),
				 0xffff);
	}
	assert_int_equal(fake_tx_stats(&fake).events[MR_TX_EVENT_CSUM_SOFTWARE],
			 3);
	assert_int_equal(fake_tx_stats(&fake).events[MR_TX_EVENT_CSUM_DEVICE],
			 1);

	/* A field outside of the frame. */
	meta.csum_start_bytes = 60;
	meta.csum_offset_bytes = 60;
	frame = packet(&fake, false, IPPROTO_TCP, 10);
	assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
	assert_int_equal(fake_tx_stats(&fake).drops[MR_TX_DROP_INVALID], 1);
	send_meta(&fake, NULL, NULL, 0);
	assert_in_flight(fake.f.pool, FAKE_RING);
	fake_close(&fake);
}

/* Without metadata: rewritten since it was marked, it leaves as it is. */
TEST(a_sum_that_is_no_longer_partial_is_left)
{
	struct mr_frame frame;
	struct fake fake;

	fake_open(&fake, igb);
	frame = packet(&fake, false, IPPROTO_TCP, 10);
	fake_bytes(&fake, &frame)[V4_L4 + 16] ^= 1;
	assert_int_equal(send_meta(&fake, &frame, NULL, 1), 1);
	frame = fake_frame(&fake, 60);
	memset(fake_bytes(&fake, &frame), 0, 60);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	assert_int_equal(send_meta(&fake, &frame, NULL, 1), 1);
	assert_int_equal(fake_send(&fake), 2);
	assert_int_equal(dword(&fake, 1, 3), 60 << 14);
	assert_int_equal(fake_tx_stats(&fake).events[MR_TX_EVENT_CSUM_DEVICE],
			 0);
	fake_close(&fake);
}

static struct mr_meta gso(bool is_ipv6)
{
	return (struct mr_meta){
		.valid = MR_META_CSUM | MR_META_GSO,
		.csum_start_bytes = is_ipv6 ? V6_L4 : V4_L4,
		.csum_offset_bytes = 16,
		.gso_bytes = 1000,
		.gso_type = is_ipv6 ? MR_GSO_TCPV6 : MR_GSO_TCPV4,
	};
}

/* The pseudo-header's sum, as it would be with a length of 0. */
static uint16_t sum_without_length(struct mr_net_view view,
				   const uint8_t *bytes)
{
	view.l4_len_bytes = 0;
	return mr_csum_pseudo(bytes, &view);
}

TEST(segments_are_the_devices_work)
{
	for (int k = 0; k < 4; k++) {
		const bool is_ipv6 = k & 1, is_igb = k & 2;
		const uint32_t l4 = is_ipv6 ? V6_L4 : V4_L4;
		const struct mr_meta meta = gso(is_ipv6);
		struct mr_frame frame;
		struct mr_net_view view;
		uint8_t *bytes;
		uint16_t want, sum;
		struct fake fake;

		fake_open(&fake, is_igb ? igb : e1000e);
		frame = packet(&fake, is_ipv6, IPPROTO_TCP, 3000);
		bytes = fake_bytes(&fake, &frame);
		mr_net_parse(bytes, frame.len, frame.len, &view);
		want = sum_without_length(view, bytes);
		assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
		assert_int_equal(fake_send(&fake), 2);
		memcpy(&sum, bytes + l4 + 16, sizeof(sum));
		assert_int_equal(sum, want);
		/* The length, and in IPv4 the sum of the header. */
		assert_int_equal(bytes[L3 + (is_ipv6 ? 4 : 2)], 0);
		assert_int_equal(bytes[L3 + (is_ipv6 ? 5 : 3)], 0);
		if (!is_ipv6)
			assert_int_equal(bytes[L3 + 10] | bytes[L3 + 11], 0);
		if (is_igb) {
			assert_int_equal(dword(&fake, 0, 3),
					 TCP_HEADER << 8 | 1000 << 16);
			assert_int_equal(dword(&fake, 1, 2),
					 0xab300000 | frame.len);
			assert_int_equal(dword(&fake, 1, 3),
					 3000 << 14 | (is_ipv6 ? 2 : 3) << 8);
		} else {
			assert_int_equal(dword(&fake, 0, 2),
					 0x25000000 | 3000 |
						 (is_ipv6 ? 0 : 0x02000000));
			assert_int_equal(dword(&fake, 0, 3),
					 (l4 + TCP_HEADER) << 8 | 1000 << 16);
			assert_int_equal(dword(&fake, 1, 2),
					 0x2f100000 | frame.len);
			assert_int_equal(dword(&fake, 1, 3), (is_ipv6 ? 2 : 3)
								     << 8);
		}
		fake_close(&fake);
	}
}

/* Headers are edited in a copy if somebody else has the frame, too. */
TEST(a_shared_frame_is_not_edited)
{
	const struct mr_meta meta = gso(false);
	struct mr_frame frame;
	struct fake fake;
	uint8_t before[V4_L4 + TCP_HEADER];

	fake_open(&fake, igb);
	frame = packet(&fake, false, IPPROTO_TCP, 3000);
	memcpy(before, fake_bytes(&fake, &frame), sizeof(before));
	assert_int_equal(mr_frame_ref(fake.cache, &frame, 1), 0);
	assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
	assert_int_equal(fake_send(&fake), 2);
	assert_memory_equal(fake_bytes(&fake, &frame), before, sizeof(before));
	assert_int_not_equal(fake.sent[1].words[0],
			     fake.intel->txqs[0].region_iova + frame.addr);
	send_meta(&fake, NULL, NULL, 0);
	assert_in_flight(fake.f.pool, FAKE_RING + 1);
	mr_frame_free_bulk(fake.cache, &frame, 1);
	fake_close(&fake);
}

/* It was copied, and then refused: the copy goes, the other owner's stays. */
TEST(a_shared_frame_that_is_refused_is_given_back_once)
{
	struct mr_meta meta = gso(false);
	struct mr_frame frame;
	struct fake fake;

	fake_open(&fake, igb);
	meta.gso_bytes = 1453;
	frame = packet(&fake, false, IPPROTO_TCP, 3000);
	assert_int_equal(mr_frame_ref(fake.cache, &frame, 1), 0);
	assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
	assert_int_equal(fake_tx_stats(&fake).drops[MR_TX_DROP_TOO_LONG], 1);
	assert_in_flight(fake.f.pool, FAKE_RING + 1);
	assert_true(mr_frame_is_sole(fake.cache, &frame));
	mr_frame_free_bulk(fake.cache, &frame, 1);
	assert_int_equal(pool_stats(fake.f.pool).free_over, 0);
	fake_close(&fake);
}

/* Contexts, entries that go on and entries that end: each once. */
TEST(closing_takes_back_what_was_not_sent)
{
	struct mr_frame frames[4];
	struct fake fake;

	fake_open(&fake, igb);
	for (int i = 0; i < 3; i++) {
		frames[i] = fake_frame(&fake, 100);
		frames[i].flags = i < 2 ? MR_FRAME_MORE : 0;
	}
	frames[3] = packet(&fake, false, IPPROTO_UDP, 30);
	assert_int_equal(send_meta(&fake, frames, NULL, 4), 4);
	assert_in_flight(fake.f.pool, FAKE_RING + 4);
	mr_port_close(fake.port);
	fake.port = NULL;
	assert_in_flight(fake.f.pool, 0);
	assert_int_equal(pool_stats(fake.f.pool).free_invalid, 0);
	fake_close(&fake);
}

TEST(segments_that_cannot_be_are_refused)
{
	static const struct {
		uint8_t proto;
		uint16_t gso_bytes, gso_type;
		uint32_t n_trailer;
		enum mr_tx_drop drop;
	} cases[] = {
		{ IPPROTO_TCP, 1000, MR_GSO_TCPV6, 0, MR_TX_DROP_INVALID },
		{ IPPROTO_TCP, 1000, MR_GSO_UDP, 0, MR_TX_DROP_INVALID },
		{ IPPROTO_UDP, 1000, MR_GSO_TCPV4, 0, MR_TX_DROP_INVALID },
		{ IPPROTO_TCP, 1000, MR_GSO_TCPV4, 1, MR_TX_DROP_INVALID },
		/* 34 + 32 + 1453 is more than 1518. */
		{ IPPROTO_TCP, 1453, MR_GSO_TCPV4, 0, MR_TX_DROP_TOO_LONG },
		{ IPPROTO_TCP, 0, MR_GSO_TCPV4, 0, MR_TX_DROP_TOO_LONG },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_meta meta = gso(false);
		struct mr_frame frame;
		struct fake fake;

		fake_open(&fake, igb);
		frame = packet(&fake, false, cases[i].proto, 3000);
		frame.len += cases[i].n_trailer;
		meta.gso_bytes = cases[i].gso_bytes;
		meta.gso_type = cases[i].gso_type;
		meta.csum_offset_bytes = cases[i].proto == IPPROTO_TCP ? 16 : 6;
		assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
		assert_int_equal(fake_send(&fake), 0);
		assert_int_equal(fake_tx_stats(&fake).drops[cases[i].drop], 1);
		assert_in_flight(fake.f.pool, FAKE_RING);
		fake_close(&fake);
	}
}

TEST(a_tag_is_inserted_by_the_device)
{
	const struct mr_meta meta = { .valid = MR_META_VLAN,
				      .vlan_tci = 0xa123 };
	struct mr_frame frame;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .options = "vlan" });
	for (int i = 0; i < 2; i++) {
		frame = fake_frame(&fake, 60);
		assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
	}
	assert_int_equal(fake_send(&fake), 3); /* one context */
	assert_int_equal(dword(&fake, 0, 0), 0xa1230000 | 14 << 9);
	assert_int_equal(dword(&fake, 1, 2), 0x6b300000 | 60);
	fake_close(&fake);

	fake_open(&fake, (struct fake_config){ .device_id = FAKE_82574,
					       .options = "vlan" });
	frame = fake_frame(&fake, 60);
	assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
	assert_int_equal(fake_send(&fake), 1);
	assert_int_equal(dword(&fake, 0, 2), 0x6b100000 | 60);
	assert_int_equal(dword(&fake, 0, 3), 0xa1230000);
	fake_close(&fake);
}

/* The library writes it, whatever the chip, and cuts UDP. */
TEST(what_the_chip_does_not_do_is_done)
{
	const struct mr_meta meta = { .valid = MR_META_VLAN };
	struct mr_meta udp = gso(false);
	const struct fake_config configs[] = { igb, e1000e };

	for (size_t i = 0; i < 2; i++) {
		struct mr_port_info info = { .size = sizeof(info) };
		struct mr_frame frame;
		struct fake fake;

		fake_open(&fake, configs[i]);
		assert_int_equal(mr_port_info(fake.port, &info), 0);
		assert_int_equal(info.offloads & (MR_OFFLOAD_VLAN_TX |
						  MR_OFFLOAD_VLAN_RX),
				 0);
		frame = fake_frame(&fake, 60);
		assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
		assert_int_equal(fake_send(&fake), 1);
		assert_int_equal((uint16_t)dword(&fake, 0, 2), 64);
		frame.addr -= 4;
		assert_memory_equal(fake_bytes(&fake, &frame) + 12, "\x81\0",
				    3);
		udp.gso_type = MR_GSO_UDP;
		frame = packet(&fake, false, IPPROTO_UDP, 2500);
		assert_int_equal(send_meta(&fake, &frame, &udp, 1), 1);
		/* A context, and three datagrams. */
		assert_int_equal(fake_send(&fake), 4);
		assert_int_equal((uint16_t)dword(&fake, 4, 2),
				 14 + 20 + 8 + 500);
		fake_close(&fake);
	}
}

/* With a sum as well, igb has both in one context. */
TEST(a_tag_and_a_sum_share_a_context)
{
	const struct mr_meta meta = { .valid = MR_META_VLAN, .vlan_tci = 5 };
	struct mr_frame frame;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .options = "vlan" });
	frame = packet(&fake, false, IPPROTO_UDP, 30);
	assert_int_equal(send_meta(&fake, &frame, &meta, 1), 1);
	assert_int_equal(fake_send(&fake), 2);
	assert_int_equal(dword(&fake, 0, 0), 5 << 16 | 20 | 14 << 9);
	assert_int_equal(dword(&fake, 1, 2), 0x6b300000 | frame.len);
	assert_int_equal(dword(&fake, 1, 3), frame.len << 14 | 2 << 8);
	fake_close(&fake);
}

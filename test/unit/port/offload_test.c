/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of segmentation in lib/port on a driver without offloads: pair. Devices
 * are tested by test/conformance.
 */
#include "port/observed_pair.h"

static struct mr_meta gso_meta(struct kind kind, bool has_tag)
{
	return (struct mr_meta){
		.valid = MR_META_GSO | MR_META_CSUM |
			 (has_tag ? MR_META_VLAN : 0u),
		.gso_bytes = MSS,
		.gso_type = kind.is_udp ? MR_GSO_UDP :
			    kind.is_v6  ? MR_GSO_TCPV6 :
					  MR_GSO_TCPV4,
		.vlan_tci = TCI,
	};
}

/* Of frame i of n: its headers, and its part of the payload. */
static uint32_t check_piece(uint32_t i, uint32_t n, const uint8_t *whole,
			    uint32_t n_whole, struct kind kind, bool has_tag)
{
	const uint32_t tag = has_tag ? 4 : 0;
	const uint32_t l4 = 14 + (kind.is_v6 ? 40u : 20u);
	const uint32_t n_header = l4 + (kind.is_udp ? 8 : 20);
	const uint8_t *bytes = b.f.base + b.got[i].addr;
	const uint32_t n_bytes = b.got[i].len;
	const uint32_t n_payload = n_bytes - n_header - tag;
	struct mr_net_view view;
	uint32_t seq, seq_of_whole;
	uint16_t sum;

	assert_true(b.got[i].flags & MR_FRAME_CSUM_PARTIAL);
	assert_int_equal(mr_net_parse(bytes, n_bytes, n_bytes, &view), 0);
	assert_int_equal(view.l4_bytes, l4 + tag);
	assert_int_equal(view.l4_bytes + view.l4_len_bytes, n_bytes);
	assert_memory_equal(bytes, whole, 12);
	if (has_tag)
		assert_memory_equal(bytes + 12, "\x81\x00\x20\x05", 4);
	memcpy(&sum, bytes + view.csum_bytes, 2);
	assert_int_equal(sum, mr_csum_pseudo(bytes, &view));
	if (!kind.is_v6) {
		assert_int_equal(
			mr_csum_fold(mr_csum_add(bytes + 14 + tag, 20, 0)),
			0xffff);
		assert_int_equal(bytes[18 + tag] << 8 | bytes[19 + tag],
				 0xff + i);
	}
	if (!kind.is_udp) {
		memcpy(&seq, bytes + l4 + tag + 4, 4);
		memcpy(&seq_of_whole, whole + l4 + 4, 4);
		assert_int_equal(ntohl(seq), ntohl(seq_of_whole) + i * MSS);
		assert_int_equal(bytes[l4 + tag + 13],
				 0x10 | (i == 0 ? 0x80 : 0) |
					 (i + 1 == n ? 9 : 0));
	}
	assert_int_equal(n_payload,
			 i + 1 < n ? MSS : n_whole - n_header - i * MSS);
	assert_memory_equal(bytes + n_header + tag,
			    whole + n_header + (size_t)i * MSS, n_payload);
	return n_payload;
}

TEST(long_frames_are_cut)
{
	static const uint32_t lens[] = { 1, MSS, MSS + 1, 5 * MSS };
	uint8_t bytes[MAX_BYTES];

	for (uint32_t c = 0; c < 4 * 2 * 2 * 2; c++) {
		const struct kind kind = { c & 4, c & 8 };
		const bool has_tag = c & 16;
		const uint32_t n_payload = lens[c & 3];
		const uint32_t n = (n_payload + MSS - 1) / MSS;
		const struct mr_meta meta = gso_meta(kind, has_tag);
		struct mr_frame frames[MR_MAX_SEGS];
		struct mr_meta metas[MR_MAX_SEGS] = { meta };
		uint32_t n_bytes, n_entries;

		open_ports(0);
		n_bytes = make_bytes(bytes, kind, n_payload);
		/* Headers end in the first entry, or in a later one. */
		n_entries =
			put_bytes(bytes, n_bytes, c % 3 == 0 ? 333 : 1900, frames);
		assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, frames,
						  metas, n_entries),
				 n_entries);
		assert_int_equal(receive_frames(), n);
		for (uint32_t i = 0; i < n; i++)
			check_piece(i, n, bytes, n_bytes, kind, has_tag);
		assert_int_equal(fixture_tx_stats(b.txq).accepted, n);
		assert_int_equal(fixture_tx_stats(b.txq)
					 .events[MR_TX_EVENT_GSO_SOFTWARE],
				 1);
		assert_int_equal(
			fixture_tx_stats(b.txq).events[MR_TX_EVENT_GSO_ADDED],
			n - 1);
		assert_int_equal(fixture_tx_stats(b.txq)
					 .events[MR_TX_EVENT_VLAN_SOFTWARE],
				 has_tag);
		close_ports();
	}
}

/* The queue takes the frame, sends what fits, and goes on with the rest. */
TEST(frames_that_do_not_fit_are_sent_later)
{
	const struct kind kind = { 0 };
	const uint32_t n_before = RING - 3, n = 15;
	struct mr_frame frames[RING], plain;
	struct mr_meta metas[RING] = { gso_meta(kind, false) };
	uint8_t bytes[MAX_BYTES];
	uint32_t n_entries, n_bytes;

	device.has_no_wakeups = true;
	open_ports(0);
	device.has_no_wakeups = false;
	for (uint32_t i = 0; i < n_before; i++) {
		(void)put_bytes(bytes, 60, 60, &plain);
		assert_int_equal(mr_tx_burst(b.txq, b.f.cache, &plain, 1), 1);
	}
	n_bytes = make_bytes(bytes, kind, n * MSS);
	n_entries = put_bytes(bytes, n_bytes, 1900, frames);
	(void)put_bytes(bytes, 60, 60, &frames[n_entries]);
	plain = frames[n_entries];
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, frames, metas,
					  n_entries + 1),
			 n_entries);
	/* The frame is still there: one more. */
	assert_int_equal(fixture_tx_stats(b.txq).accepted, RING + 1);
	/* Without metadata, too, nothing overtakes it. */
	assert_int_equal(mr_tx_burst(b.txq, b.f.cache, &plain, 1), 0);
	assert_int_equal(mr_queue_arm(&b.txq->queue), 0);
	assert_int_equal(receive_frames(), RING);
	assert_int_equal(fixture_tx_stats(b.txq).pending, 1);
	assert_int_equal(mr_queue_arm(&b.txq->queue), 1);
	mr_frame_free_bulk(b.f.cache, b.got, n_before);
	memmove(b.got, b.got + n_before, 3 * sizeof(b.got[0]));
	b.n_got = 3;
	assert_int_equal(mr_tx_burst(b.txq, b.f.cache, &plain, 1), 1);
	assert_int_equal(fixture_tx_stats(b.txq).accepted, RING + n - 3 + 1);
	assert_int_equal(receive_frames(), n - 3 + 1);
	assert_int_equal(fixture_tx_stats(b.txq).pending, 0);
	for (uint32_t i = 0; i < n; i++)
		check_piece(i, n, bytes, n_bytes, kind, false);
	assert_int_equal(b.got[n].len, 60);
	assert_int_equal(mr_queue_arm(&b.txq->queue), 0);
	/* One that is held when the port closes goes with it. */
	n_entries = put_bytes(bytes, n_bytes, 1900, frames);
	for (uint32_t i = 0; i < RING; i++) {
		(void)put_bytes(bytes, 60, 60, &plain);
		assert_int_equal(mr_tx_burst(b.txq, b.f.cache, &plain, 1), 1);
	}
	assert_int_equal(
		mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, n_entries),
		n_entries);
	close_ports();
}

TEST(a_frame_without_pages_is_a_named_drop)
{
	const struct kind kind = { 0 };
	struct mr_frame frames[MR_MAX_SEGS];
	struct mr_meta metas[MR_MAX_SEGS] = { gso_meta(kind, false) };
	uint64_t addrs[PAGES];
	uint8_t bytes[MAX_BYTES];
	uint32_t n_entries, n;

	open_ports(0);
	n_entries = put_bytes(bytes, make_bytes(bytes, kind, 9 * MSS), 1900, frames);
	n = mr_frag_alloc_bulk(b.f.cache, addrs, PAGES, PAGE);
	mr_frag_free_bulk(b.f.cache, addrs, 2);
	/* Two segments have pages, which the other end does not give back. */
	assert_int_equal(
		mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, n_entries),
		n_entries);
	assert_int_equal(receive_frames(), 2);
	assert_int_equal(fixture_tx_stats(b.txq).accepted, 3);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_NO_BUFFER],
			 1);
	mr_frag_free_bulk(b.f.cache, addrs + 2, n - 2);
	close_ports();
}

/* A copy of two pages, for which there is one. */
TEST(pages_are_given_back_if_there_are_too_few)
{
	const struct mr_meta metas[2] = { { .valid = MR_META_VLAN } };
	struct mr_frame frames[2];
	uint64_t addrs[PAGES];
	uint8_t bytes[3000] = { 0 };
	uint32_t n;

	open_ports(0);
	assert_int_equal(put_bytes(bytes, sizeof(bytes), 1900, frames), 2);
	frames[0].addr -= 128; /* no room for the tag */
	n = mr_frag_alloc_bulk(b.f.cache, addrs, PAGES, PAGE);
	mr_frag_free_bulk(b.f.cache, addrs, 1);
	assert_int_equal(mr_tx_burst_meta(b.txq, b.f.cache, frames, metas, 2),
			 2);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_NO_BUFFER],
			 1);
	mr_frag_free_bulk(b.f.cache, addrs + 1, n - 1);
	close_ports();
}

TEST(a_frame_that_cannot_be_cut_is_a_named_drop)
{
	struct mr_meta meta = gso_meta((struct kind){ .is_v6 = true }, false);
	struct mr_frame frame;
	uint8_t bytes[MAX_BYTES];

	open_ports(0);
	for (uint32_t i = 0; i < 2; i++, meta.gso_type = 77) {
		(void)put_bytes(bytes, make_bytes(bytes, (struct kind){ 0 }, 1500), 1900,
			  &frame);
		assert_int_equal(
			mr_tx_burst_meta(b.txq, b.f.cache, &frame, &meta, 1),
			1);
	}
	assert_int_equal(receive_frames(), 0);
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_INVALID], 2);
	close_ports();
}

/* The headroom leaves 88 bytes of a page: headers of 66 fit, of 94 not. */
TEST(headers_longer_than_a_page_are_a_named_drop)
{
	const struct mr_meta meta = gso_meta((struct kind){ 0 }, false);
	struct mr_frame frame;
	uint8_t bytes[MAX_BYTES];

	open_ports(PAGE - 88);
	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t n_bytes = make_bytes(bytes, (struct kind){ 0 }, 1500);

		bytes[14 + 20 + 12] = i == 0 ? 0xf0 : 0x80;
		(void)put_bytes(bytes, n_bytes, 1900, &frame);
		assert_int_equal(
			mr_tx_burst_meta(b.txq, b.f.cache, &frame, &meta, 1),
			1);
	}
	assert_int_equal(fixture_tx_stats(b.txq).drops[MR_TX_DROP_TOO_LONG], 1);
	assert_int_equal(receive_frames(), 13 + 7); /* 1066 bytes and 554 */
	close_ports();
}

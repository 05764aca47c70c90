/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/xdp_csum.c: partial checksums above a fake kernel. */
#include <netinet/in.h>
#include <string.h>

#include "model/fake_kernel.h"
#include "model/packet.h"

enum { PAYLOAD = 101, MAX_FRAME = 2000 };

static const struct shape {
	uint32_t version, protocol;
	bool is_vlan;
} shapes[] = {
	{ 4, IPPROTO_UDP, false }, { 4, IPPROTO_TCP, false },
	{ 6, IPPROTO_UDP, false }, { 6, IPPROTO_TCP, false },
	{ 4, IPPROTO_TCP, true },
};

enum { N_SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

struct fixture {
	uint8_t bytes[MAX_FRAME]; /* with the pseudo-header's sum */
	uint32_t n_bytes, l4, csum;
	uint8_t right[2]; /* what is to be at csum in the end */
};

static struct fixture make(const struct shape *shape, uint32_t n_payload)
{
	static const uint8_t mac[6] = { 2 };
	struct fixture p = { .n_bytes = 0 };

	p.n_bytes = packet_make(p.bytes, mac, shape->version, shape->protocol,
				n_payload);
	if (shape->is_vlan) {
		memmove(p.bytes + 16, p.bytes + 12, p.n_bytes - 12);
		memcpy(p.bytes + 12, "\x81\0\0\x05", 4);
		p.n_bytes += 4;
	}
	p.l4 = packet_parse(p.bytes, p.n_bytes).l4;
	p.csum = p.l4 + (shape->protocol == IPPROTO_TCP ? 16 : 6);
	memcpy(p.right, p.bytes + p.csum, 2);
	packet_leave_partial(p.bytes, p.n_bytes, true);
	return p;
}

/* Into buffers, cut at n_first bytes. */
static uint32_t to_frames(const struct fixture *p, uint32_t n_first,
			  struct mr_frame *frames)
{
	const uint32_t n_rest = p->n_bytes - n_first;
	uint8_t *base = fake.port->base.base;

	frames[0] = fake_frame(n_first, 0);
	memcpy(base + frames[0].addr, p->bytes, n_first);
	if (n_rest == 0)
		return 1;
	frames[0].flags = MR_FRAME_MORE;
	frames[1] = fake_frame(n_rest, 0);
	memcpy(base + frames[1].addr, p->bytes + n_first, n_rest);
	return 2;
}

static struct mr_frame to_frame(const struct fixture *p)
{
	struct mr_frame frame;

	to_frames(p, p->n_bytes, &frame);
	return frame;
}

/* Partial, right, and neither. */
FAKE_TEST(partial_sums_are_marked_and_others_are_not)
{
	for (int i = 0; i < 3 * N_SHAPES; i++) {
		struct fixture p = make(&shapes[i / 3], PAYLOAD);
		struct mr_frame frame;

		if (i % 3 > 0)
			memcpy(p.bytes + p.csum, p.right, 2);
		p.bytes[p.csum] ^= i % 3 == 2;
		frame = to_frame(&p);
		assert_int_equal(mri_xdp_csum_mark(&fake.port->base, &frame, 1),
				 i % 3 == 0);
		assert_int_equal(frame.flags,
				 i % 3 == 0 ? MR_FRAME_CSUM_PARTIAL : 0);
		mr_frame_free_bulk(fake.cache, &frame, 1);
	}
}

static void finish_a_frame_that_is_cut(const struct fixture *p, uint32_t cut)
{
	struct mr_frame frames[2];
	uint8_t out[MAX_FRAME];
	uint32_t n, at = 0;

	fake_open((struct fake_config){ .max_segs = MR_MAX_SEGS });
	n = to_frames(p, cut, frames);
	assert_int_equal(mri_xdp_csum_mark(&fake.port->base, frames, n), 1);
	assert_int_equal(transmit(frames, n), n);
	for (uint32_t i = 0; i < n; i++) {
		const struct mr_frame sent = fake_sent(i);

		memcpy(out + at, mr_frame_data(fake.port->base.base, &sent),
		       sent.len);
		at += sent.len;
	}
	assert_int_equal(at, p->n_bytes);
	assert_memory_equal(out + p->csum, p->right, 2);
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_CSUM_SOFTWARE], 1);
	fake_close();
}

TEST(a_partial_sum_is_finished_wherever_the_frame_is_cut)
{
	for (int i = 0; i < N_SHAPES; i++) {
		const struct fixture p = make(&shapes[i], PAYLOAD);

		for (uint32_t cut = p.l4 + 20; cut <= p.n_bytes; cut++)
			finish_a_frame_that_is_cut(&p, cut);
	}
}

FAKE_TEST(a_partial_sum_is_handed_on_where_the_kernel_can, .has_csum = true)
{
	for (int i = 0; i < N_SHAPES; i++) {
		const struct fixture p = make(&shapes[i], PAYLOAD);
		struct mr_frame frame = to_frame(&p), sent;
		struct xsk_tx_meta meta;

		frame.flags = MR_FRAME_CSUM_PARTIAL;
		assert_int_equal(transmit(&frame, 1), 1);
		sent = fake_sent((uint32_t)i);
		assert_int_equal(sent.flags, XSK_TX_METADATA);
		memcpy(&meta,
		       mr_frame_data(fake.port->base.base, &sent) -
			       sizeof(meta),
		       sizeof(meta));
		assert_int_equal(meta.flags, XSK_TXMD_CHECKSUM);
		assert_int_equal(meta.csum_start, p.l4);
		assert_int_equal(meta.csum_offset, p.csum - p.l4);
	}
}

FAKE_TEST(a_shared_frame_is_copied_before_it_is_written, .has_csum = true)
{
	for (int i = 0; i < N_SHAPES; i++) {
		const struct fixture p = make(&shapes[i], PAYLOAD);
		const struct mr_frame frame = to_frame(&p);
		struct mr_frame copy = frame;
		uint8_t *bytes = mr_frame_data(fake.port->base.base, &copy);

		copy.flags = MR_FRAME_CSUM_PARTIAL;
		assert_int_equal(mr_frame_ref(fake.cache, &frame, 1), 0);
		memset(bytes - 128, 0x77, 128);
		assert_int_equal(transmit(&copy, 1), 1);
		assert_int_not_equal(fake_sent((uint32_t)i).addr, frame.addr);
		assert_memory_equal(bytes, p.bytes, p.n_bytes);
		for (int k = 1; k <= 128; k++)
			assert_int_equal(bytes[-k], 0x77);
		mr_frame_free_bulk(fake.cache, &frame, 1);
	}
}

/* With metadata registered the kernel wants 24 bytes before every entry. */
FAKE_TEST(an_entry_without_room_in_front_is_copied, .has_csum = true)
{
	struct mr_frame frame;

	frame = fake_frame(60, 9);
	assert_int_equal(mr_frame_push(fake.cache, &frame, 110), 0);
	assert_int_equal(transmit(&frame, 1), 1);
	assert_true((fake_sent(0).addr & 4095) >= 24);
	assert_int_equal(fake_sent(0).len, 170);
}

FAKE_TEST(a_udp_sum_of_zero_is_sent_as_ffff)
{
	struct fixture p = make(&shapes[0], 2);
	struct mr_frame frame, sent;
	uint16_t rest;

	/* Two bytes of payload that make the sum 0xffff, its complement 0. */
	memset(p.bytes + p.n_bytes - 2, 0, 2);
	rest = (uint16_t)~packet_sum(p.bytes + p.l4, p.n_bytes - p.l4, 0);
	packet_put16(p.bytes + p.n_bytes - 2, rest);
	assert_int_equal(packet_sum(p.bytes + p.l4, p.n_bytes - p.l4, 0),
			 0xffff);
	frame = to_frame(&p);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	assert_int_equal(transmit(&frame, 1), 1);
	sent = fake_sent(0);
	assert_int_equal(
		packet_be16(mr_frame_data(fake.port->base.base, &sent) +
			    p.csum),
		0xffff);
}

/* A sum that no header parser would find, where the caller says it is. */
FAKE_TEST(metadata_says_where_the_sum_is)
{
	struct mr_meta meta = { .valid = MR_META_CSUM,
				.csum_start_bytes = 20,
				.csum_offset_bytes = 4 };
	struct mr_frame frame;
	uint8_t *bytes;

	frame = fake_frame(61, 1);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	bytes = mr_frame_data(fake.port->base.base, &frame);
	assert_int_equal(mr_tx_burst_meta(&fake.txq->base, fake.cache, &frame,
					  &meta, 1),
			 1);
	/* With its complement inside, the whole sums up to all ones. */
	const uint16_t field = (uint16_t)(bytes[24] << 8 | bytes[25]);

	bytes[24] = (uint8_t)(1 + 24);
	bytes[25] = (uint8_t)(1 + 25);
	assert_int_equal(field, (uint16_t)~packet_sum(bytes + 20, 41, 0));

	/* Outside the frame: left alone. */
	frame = fake_frame(61, 1);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	meta.csum_start_bytes = 60;
	assert_int_equal(mr_tx_burst_meta(&fake.txq->base, fake.cache, &frame,
					  &meta, 1),
			 1);
	assert_int_equal(fake_tx_stats().events[MR_TX_EVENT_CSUM_SOFTWARE], 1);
}

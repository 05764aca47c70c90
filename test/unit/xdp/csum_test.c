/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/socket/csum.c: partial checksums above a fake kernel. */
#include <netinet/in.h>
#include <string.h>

#include "model/fake_kernel.h"
#include "support/packet.h"

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

static struct fixture make_fixture(const struct shape *shape)
{
	static const uint8_t mac[6] = { 2 };
	struct fixture p = { .n_bytes = 0 };

	p.n_bytes = packet_make(p.bytes, mac, shape->version, shape->protocol,
				PAYLOAD);
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

static struct mr_frame to_frame(const struct fixture *p)
{
	const struct mr_frame frame = fake_frame(p->n_bytes, 0);

	memcpy(mr_frame_data(fake.port->base.base, &frame), p->bytes,
	       p->n_bytes);
	return frame;
}

/* Partial, right, and neither. */
FAKE_TEST(partial_sums_are_marked_and_others_are_not)
{
	for (int i = 0; i < 3 * N_SHAPES; i++) {
		struct fixture p = make_fixture(&shapes[i / 3]);
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

/* Sent alone, or while another owner has it: then in a copy. */
static void send_partial(const struct fixture *p, bool is_shared)
{
	const struct mr_frame frame = to_frame(p);
	uint8_t *bytes = mr_frame_data(fake.port->base.base, &frame), *sent;
	struct mr_frame partial = frame, descriptor;
	struct xsk_tx_meta meta;

	partial.flags = MR_FRAME_CSUM_PARTIAL;
	memset(bytes - 128, 0x77, 128);
	if (is_shared)
		assert_int_equal(mr_frame_ref(fake.cache, &frame, 1), 0);
	assert_int_equal(transmit(&partial, 1), 1);
	descriptor = fake_sent(*fake.txq->tx.producer - 1);
	sent = mr_frame_data(fake.port->base.base, &descriptor);
	assert_int_equal(descriptor.len, p->n_bytes);
	assert_int_equal(descriptor.addr == frame.addr, !is_shared);
	assert_int_equal(descriptor.flags,
			 fake.txq->has_csum ? XSK_TX_METADATA : 0);
	if (fake.txq->has_csum) {
		memcpy(&meta, sent - sizeof(meta), sizeof(meta));
		assert_int_equal(meta.flags, XSK_TXMD_CHECKSUM);
		assert_int_equal(meta.csum_start, p->l4);
		assert_int_equal(meta.csum_offset, p->csum - p->l4);
	} else {
		assert_memory_equal(sent + p->csum, p->right, 2);
	}
	if (!is_shared)
		return;
	assert_memory_equal(bytes, p->bytes, p->n_bytes);
	for (int i = 1; i <= 128; i++)
		assert_int_equal(bytes[-i], 0x77);
	mr_frame_free_bulk(fake.cache, &frame, 1);
}

/* The kernel can finish sums since Linux 6.8. */
TEST(a_partial_sum_is_finished_or_handed_on)
{
	for (int i = 0; i < 4 * N_SHAPES; i++) {
		const struct fixture p = make_fixture(&shapes[i / 4]);
		const bool has_csum = i & 1;

		fake_open((struct fake_config){ .has_csum = has_csum });
		send_partial(&p, i & 2);
		assert_int_equal(
			fake_tx_stats()
				.events[has_csum ? MR_TX_EVENT_CSUM_DEVICE :
						   MR_TX_EVENT_CSUM_SOFTWARE],
			1);
		fake_close();
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

/* It may have been rewritten since it was marked; or metadata is wrong. */
FAKE_TEST(a_missing_sum_is_left_alone, .has_csum = true)
{
	const struct mr_meta meta = { .valid = MR_META_CSUM,
				      .csum_start_bytes = 60,
				      .csum_offset_bytes = 4 };
	struct mr_frame frame;

	for (uint32_t i = 0; i < 2; i++) {
		frame = fake_frame(61, 1);
		frame.flags = MR_FRAME_CSUM_PARTIAL;
		assert_int_equal(mr_tx_burst_meta(&fake.txq->base, fake.cache,
						  &frame, i == 0 ? NULL : &meta,
						  1),
				 1);
		assert_int_equal(fake_sent(i).flags, 0);
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/xdp_csum.c: partial checksums above a fake kernel. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "support/test.h"

#include <millrace/net.h>

#include "fake_kernel.h"

enum { PAYLOAD = 101, MAX_FRAME = 2000 };

struct shape {
	const char *name;
	bool is_v6;
	uint8_t proto;
	bool is_vlan;
};

static const struct shape shapes[] = {
	{ "UDP over IPv4", false, IPPROTO_UDP, false },
	{ "TCP over IPv4", false, IPPROTO_TCP, false },
	{ "UDP over IPv6", true, IPPROTO_UDP, false },
	{ "TCP over IPv6", true, IPPROTO_TCP, false },
	{ "TCP over IPv4, tagged", false, IPPROTO_TCP, true },
};

/* The sum by the book, one 16-bit word at a time: another way than ours. */
static uint16_t slow_sum(const uint8_t *bytes, uint32_t n, uint32_t sum)
{
	for (uint32_t i = 0; i < n; i++)
		sum += (uint32_t)bytes[i] << (i % 2 == 0 ? 8 : 0);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)sum;
}

struct packet {
	uint8_t bytes[MAX_FRAME];
	uint32_t n_bytes, l3, l4, n_l4, csum;
	uint16_t pseudo; /* host order, folded */
};

static void build(struct packet *p, const struct shape *shape,
		  uint32_t n_payload)
{
	const uint32_t n_ip = shape->is_v6 ? 40 : 20;
	uint8_t *ip;

	memset(p, 0, sizeof(*p));
	memset(p->bytes, 0x11, 12);
	p->l3 = shape->is_vlan ? 18 : 14;
	if (shape->is_vlan)
		memcpy(p->bytes + 12, "\x81\x00\x00\x05", 4);
	memcpy(p->bytes + p->l3 - 2, shape->is_v6 ? "\x86\xdd" : "\x08\x00", 2);
	p->l4 = p->l3 + n_ip;
	p->n_l4 = (shape->proto == IPPROTO_TCP ? 20 : 8) + n_payload;
	p->n_bytes = p->l4 + p->n_l4;
	p->csum = p->l4 + (shape->proto == IPPROTO_TCP ? 16 : 6);
	ip = p->bytes + p->l3;
	if (shape->is_v6) {
		ip[0] = 0x60;
		ip[4] = (uint8_t)(p->n_l4 >> 8);
		ip[5] = (uint8_t)p->n_l4;
		ip[6] = shape->proto;
		for (int i = 8; i < 40; i++)
			ip[i] = (uint8_t)(i * 5);
		p->pseudo = slow_sum(ip + 8, 32, shape->proto + p->n_l4);
	} else {
		ip[0] = 0x45;
		ip[2] = (uint8_t)((p->n_l4 + 20) >> 8);
		ip[3] = (uint8_t)(p->n_l4 + 20);
		ip[9] = shape->proto;
		memcpy(ip + 12, "\x0a\x09\x00\x01\x0a\x09\x00\x02", 8);
		p->pseudo = slow_sum(ip + 12, 8, shape->proto + p->n_l4);
	}
	if (shape->proto == IPPROTO_TCP)
		p->bytes[p->l4 + 12] = 0x50;
	else
		p->bytes[p->l4 + 5] = (uint8_t)p->n_l4;
	for (uint32_t i = p->n_bytes - n_payload; i < p->n_bytes; i++)
		p->bytes[i] = (uint8_t)(i * 31 + 3);
}

static void set_csum(struct packet *p, uint16_t host_order)
{
	p->bytes[p->csum] = (uint8_t)(host_order >> 8);
	p->bytes[p->csum + 1] = (uint8_t)host_order;
}

/* The right sum of the packet, its field taken as 0. */
static uint16_t right_csum(const struct packet *p)
{
	struct packet q = *p;

	set_csum(&q, 0);
	return (uint16_t)~slow_sum(q.bytes + q.l4, q.n_l4, q.pseudo);
}

/* Into buffers, cut at n_first bytes if that is not 0. */
static uint32_t to_frames(struct fake *fake, const struct packet *p,
			  uint32_t n_first, struct mr_frame *frames)
{
	uint8_t *base = fake->port->base.base;

	if (n_first == 0 || n_first >= p->n_bytes) {
		frames[0] = fake_frame(fake, p->n_bytes, 0);
		memcpy(base + frames[0].addr, p->bytes, p->n_bytes);
		return 1;
	}
	frames[0] = fake_frame(fake, n_first, 0);
	frames[1] = fake_frame(fake, p->n_bytes - n_first, 0);
	frames[0].flags = MR_FRAME_MORE;
	memcpy(base + frames[0].addr, p->bytes, n_first);
	memcpy(base + frames[1].addr, p->bytes + n_first,
	       p->n_bytes - n_first);
	return 2;
}

static void partial_sums_are_marked_and_others_are_not(void **state)
{
	const struct shape *shape = *state;
	struct mr_frame frame;
	struct packet p;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	build(&p, shape, PAYLOAD);

	set_csum(&p, p.pseudo);
	to_frames(&fake, &p, 0, &frame);
	assert_int_equal(mri_xdp_csum_mark(&fake.port->base, &frame, 1), 1);
	assert_int_equal(frame.flags, MR_FRAME_CSUM_PARTIAL);
	mr_frame_free_bulk(fake.cache, &frame, 1);

	set_csum(&p, right_csum(&p));
	to_frames(&fake, &p, 0, &frame);
	assert_int_equal(mri_xdp_csum_mark(&fake.port->base, &frame, 1), 0);
	mr_frame_free_bulk(fake.cache, &frame, 1);

	set_csum(&p, right_csum(&p) ^ 0x0100);
	to_frames(&fake, &p, 0, &frame);
	assert_int_equal(mri_xdp_csum_mark(&fake.port->base, &frame, 1), 0);
	assert_int_equal(frame.flags, 0);
	mr_frame_free_bulk(fake.cache, &frame, 1);
	fake_close(&fake);
}

static void a_partial_sum_is_finished_wherever_the_frame_is_cut(void **state)
{
	const struct shape *shape = *state;
	struct packet p;

	build(&p, shape, PAYLOAD);
	set_csum(&p, p.pseudo);
	for (uint32_t cut = p.l4 + 20; cut <= p.n_bytes; cut++) {
		struct mr_frame frames[2];
		struct fake fake;
		uint8_t out[MAX_FRAME];
		uint32_t n, at = 0;

		fake_open(&fake,
			  (struct fake_config){ .max_segs = MR_MAX_SEGS });
		n = to_frames(&fake, &p, cut, frames);
		assert_int_equal(
			mri_xdp_csum_mark(&fake.port->base, frames, n), 1);
		assert_int_equal(mr_tx_burst(&fake.txq->base, fake.cache,
					     frames, n),
				 n);
		for (uint32_t i = 0; i < n; i++) {
			const struct mr_frame sent = fake_sent(&fake, i);

			memcpy(out + at,
			       mr_frame_data(fake.port->base.base, &sent),
			       sent.len);
			at += sent.len;
		}
		assert_int_equal(at, p.n_bytes);
		assert_int_equal(out[p.csum] << 8 | out[p.csum + 1],
				 right_csum(&p));
		assert_int_equal(
			fake_tx_stats(&fake).events[MR_TX_EVENT_CSUM_SOFTWARE],
			1);
		fake_check_laws(&fake);
		fake_close(&fake);
	}
}

static void a_partial_sum_is_handed_on_where_the_kernel_can(void **state)
{
	const struct shape *shape = *state;
	struct mr_frame frame, sent;
	struct xsk_tx_meta meta;
	struct packet p;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .has_csum = true });
	build(&p, shape, PAYLOAD);
	set_csum(&p, p.pseudo);
	to_frames(&fake, &p, 0, &frame);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	assert_int_equal(mr_tx_burst(&fake.txq->base, fake.cache, &frame, 1),
			 1);
	sent = fake_sent(&fake, 0);
	assert_int_equal(sent.flags, XSK_TX_METADATA);
	memcpy(&meta,
	       mr_frame_data(fake.port->base.base, &sent) - sizeof(meta),
	       sizeof(meta));
	assert_int_equal(meta.flags, XSK_TXMD_CHECKSUM);
	assert_int_equal(meta.csum_start, p.l4);
	assert_int_equal(meta.csum_offset, p.csum - p.l4);
	fake_close(&fake);
}

static void a_shared_frame_is_copied_before_it_is_written(void **state)
{
	const struct shape *shape = *state;
	struct mr_frame frame, copy;
	struct packet p;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .has_csum = true });
	build(&p, shape, PAYLOAD);
	set_csum(&p, p.pseudo);
	to_frames(&fake, &p, 0, &frame);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	assert_int_equal(mr_frame_ref(fake.cache, &frame, 1), 0);
	copy = frame;
	memset(mr_frame_data(fake.port->base.base, &frame) - 128, 0x77, 128);
	assert_int_equal(mr_tx_burst(&fake.txq->base, fake.cache, &frame, 1),
			 1);
	assert_int_not_equal(fake_sent(&fake, 0).addr, copy.addr);
	assert_memory_equal(mr_frame_data(fake.port->base.base, &copy), p.bytes,
			    p.n_bytes);
	for (int i = 1; i <= 128; i++)
		assert_int_equal(
			mr_frame_data(fake.port->base.base, &copy)[-i], 0x77);
	mr_frame_free_bulk(fake.cache, &copy, 1);
	fake_close(&fake);
}

/* With metadata registered the kernel wants 24 bytes before every entry. */
TEST(an_entry_without_room_in_front_is_copied)
{
	struct mr_frame frame;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ .has_csum = true });
	frame = fake_frame(&fake, 60, 9);
	assert_int_equal(mr_frame_push(fake.cache, &frame, 110), 0);
	assert_int_equal(mr_tx_burst(&fake.txq->base, fake.cache, &frame, 1),
			 1);
	assert_true((fake_sent(&fake, 0).addr & 4095) >= 24);
	assert_int_equal(fake_sent(&fake, 0).len, 170);
	fake_check_laws(&fake);
	fake_close(&fake);
}

TEST(a_udp_sum_of_zero_is_sent_as_ffff)
{
	const struct shape shape = { "", false, IPPROTO_UDP, false };
	struct mr_frame frame;
	struct packet p;
	struct fake fake;

	fake_open(&fake, (struct fake_config){ 0 });
	build(&p, &shape, 2);
	/* Two bytes of payload that make the sum 0xffff, its complement 0. */
	p.bytes[p.n_bytes - 2] = p.bytes[p.n_bytes - 1] = 0;
	const uint16_t rest = right_csum(&p);

	p.bytes[p.n_bytes - 2] = (uint8_t)(rest >> 8);
	p.bytes[p.n_bytes - 1] = (uint8_t)rest;
	assert_int_equal(right_csum(&p), 0);
	set_csum(&p, p.pseudo);
	to_frames(&fake, &p, 0, &frame);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	assert_int_equal(mr_tx_burst(&fake.txq->base, fake.cache, &frame, 1),
			 1);
	const struct mr_frame sent = fake_sent(&fake, 0);
	const uint8_t *out = mr_frame_data(fake.port->base.base, &sent);

	assert_int_equal(out[p.csum] << 8 | out[p.csum + 1], 0xffff);
	fake_close(&fake);
}

/* A sum that no header parser would find, where the caller says it is. */
TEST(metadata_says_where_the_sum_is)
{
	struct mr_meta meta = { .valid = MR_META_CSUM,
				.csum_start_bytes = 20,
				.csum_offset_bytes = 4 };
	struct mr_frame frame;
	struct fake fake;
	uint8_t *bytes;

	fake_open(&fake, (struct fake_config){ 0 });
	frame = fake_frame(&fake, 61, 1);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	bytes = mr_frame_data(fake.port->base.base, &frame);
	assert_int_equal(mr_tx_burst_meta(&fake.txq->base, fake.cache, &frame,
					  &meta, 1),
			 1);
	/* With its complement inside, the whole sums up to all ones. */
	const uint16_t field = (uint16_t)(bytes[24] << 8 | bytes[25]);

	bytes[24] = (uint8_t)(1 + 24);
	bytes[25] = (uint8_t)(1 + 25);
	assert_int_equal(field, (uint16_t)~slow_sum(bytes + 20, 41, 0));

	/* Outside the frame: left alone. */
	frame = fake_frame(&fake, 61, 1);
	frame.flags = MR_FRAME_CSUM_PARTIAL;
	meta.csum_start_bytes = 60;
	assert_int_equal(mr_tx_burst_meta(&fake.txq->base, fake.cache, &frame,
					  &meta, 1),
			 1);
	assert_int_equal(
		fake_tx_stats(&fake).events[MR_TX_EVENT_CSUM_SOFTWARE], 1);
	fake_close(&fake);
}

int main(void)
{
	enum { N = sizeof(shapes) / sizeof(shapes[0]) };
	static CMUnitTestFunction const for_shapes[] = {
		partial_sums_are_marked_and_others_are_not,
		a_partial_sum_is_finished_wherever_the_frame_is_cut,
		a_partial_sum_is_handed_on_where_the_kernel_can,
		a_shared_frame_is_copied_before_it_is_written,
	};
	static const char *const names[] = {
		"partial_sums_are_marked_and_others_are_not",
		"a_partial_sum_is_finished_wherever_the_frame_is_cut",
		"a_partial_sum_is_handed_on_where_the_kernel_can",
		"a_shared_frame_is_copied_before_it_is_written",
	};

	for (int f = 0; f < 4; f++)
		for (int i = 0; i < N; i++) {
			static char texts[4 * N][160];

			snprintf(texts[f * N + i], sizeof(texts[0]), "%s: %s",
				 names[f], shapes[i].name);
			test_register((struct CMUnitTest){
				texts[f * N + i], for_shapes[f], NULL, NULL,
				(void *)&shapes[i] });
		}
	return test_run(NULL, NULL, NULL);
}

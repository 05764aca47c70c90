/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/net/gso.c and gro.c; headers that go on: port/offload_test.c,
 * and what is merged: port/gro_test.c.
 */
#include <arpa/inet.h>

#include "support/unit.h"

#include "net/net.h"

/* A TCP segment over IPv4 that has n bytes behind its headers of 54. */
static uint32_t make_tcp(uint8_t *bytes, uint32_t n)
{
	memset(bytes, 0, 54 + n);
	bytes[12] = 8;
	bytes[14] = 0x45;
	bytes[16] = (uint8_t)((40 + n) >> 8);
	bytes[17] = (uint8_t)(40 + n);
	bytes[23] = 6;
	bytes[46] = 0x50;
	return 54 + n;
}

TEST(other_frames_are_refused)
{
	static const struct {
		uint32_t at;
		uint8_t value;
	} cases[] = {
		{ 12, 9 },    /* not IP */
		{ 14, 0x65 }, /* not IPv4 */
		{ 20, 0x20 }, /* a fragment */
		{ 23, 17 },   /* UDP */
		{ 46, 0x40 }, /* a TCP header of 16 bytes */
		{ 46, 0xf0 }, /* one that ends behind the packet */
		{ 16, 0x40 }, /* a packet that ends behind the frame */
	};
	struct mr_meta meta = { .gso_bytes = 8, .gso_type = MR_GSO_TCPV4 };
	struct mri_gso gso;
	uint8_t bytes[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t n = make_tcp(bytes, 30);

		assert_int_equal(mri_gso_begin(&gso, bytes, n, n, &meta), 0);
		assert_int_equal(gso.n_payload_bytes, 30);
		bytes[cases[i].at] = cases[i].value;
		assert_int_equal(mri_gso_begin(&gso, bytes, n, n, &meta),
				 -EBADMSG);
	}
	meta.gso_type = MR_GSO_TCPV6;
	assert_int_equal(
		mri_gso_begin(&gso, bytes, make_tcp(bytes, 30), 84, &meta),
		-EBADMSG);
}

static enum mri_gro_kind kind_of(const uint8_t *bytes, uint32_t n)
{
	struct mri_gro gro;

	return mri_gro_begin(&gro, bytes, n, n);
}

/* A right checksum of the IPv4 header. */
static void finish_ip(uint8_t *bytes)
{
	const uint16_t sum = (uint16_t)~mr_csum_fold(
		mr_csum_add(bytes + 14, (bytes[14] & 15u) * 4, 0));

	memcpy(bytes + 24, &sum, sizeof(sum));
}

TEST(frames_are_classified_for_merging)
{
	static const struct {
		uint32_t at;
		uint8_t value;
		enum mri_gro_kind kind;
	} cases[] = {
		{ 15, 4, MRI_GRO_SEGMENT },
		{ 12, 9, MRI_GRO_OTHER },      /* not IP */
		{ 23, 1, MRI_GRO_OTHER },      /* ICMP */
		{ 16, 0x40, MRI_GRO_UNKNOWN }, /* ends behind the frame */
		{ 20, 0x20, MRI_GRO_UNKNOWN }, /* the first one */
		{ 21, 3, MRI_GRO_UNKNOWN },
		{ 17, 69, MRI_GRO_ALONE },   /* one byte of padding */
		{ 46, 0x40, MRI_GRO_ALONE }, /* a TCP header of 16 bytes */
		{ 46, 0xf0,
		  MRI_GRO_ALONE },         /* one that ends behind the packet */
		{ 47, 2, MRI_GRO_ALONE },  /* SYN */
		{ 47, 32, MRI_GRO_ALONE }, /* URG */
	};
	uint8_t bytes[128];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint32_t n = make_tcp(bytes, 30);

		bytes[cases[i].at] = cases[i].value;
		finish_ip(bytes);
		assert_int_equal(kind_of(bytes, n), cases[i].kind);
		bytes[24] ^= 1;
		if (cases[i].kind == MRI_GRO_SEGMENT)
			assert_int_equal(kind_of(bytes, n), MRI_GRO_ALONE);
	}
}

/* Of several IP packets of 30 KiB, two fit the field for the length. */
TEST(a_merged_packet_has_at_most_64_kib)
{
	enum { PAYLOAD = 30000 };
	static uint8_t bytes[3][54 + PAYLOAD];
	struct mri_gro gro, next;
	uint32_t n;

	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t seq = htonl(i * PAYLOAD);

		n = make_tcp(bytes[i], PAYLOAD);
		bytes[i][19] = (uint8_t)i;
		memcpy(bytes[i] + 38, &seq, sizeof(seq));
		finish_ip(bytes[i]);
	}
	assert_int_equal(mri_gro_begin(&gro, bytes[0], n, n), MRI_GRO_SEGMENT);
	for (uint32_t i = 1; i < 3; i++) {
		assert_int_equal(mri_gro_begin(&next, bytes[i], n, n),
				 MRI_GRO_SEGMENT);
		assert_true(mri_gro_is_same_flow(&gro, &next));
		assert_int_equal(mri_gro_add(&gro, &next), i == 1);
	}
	mri_gro_finish(&gro, bytes[0]);
	assert_int_equal(bytes[0][16] << 8 | bytes[0][17], 40 + 2 * PAYLOAD);
}

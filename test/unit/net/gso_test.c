/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/net/gso.c; headers that go on: port/offload_test.c. */
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

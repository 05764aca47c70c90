/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The models' view of packets, compared with published vectors: packet.c, and
 * the hash of virtio_offload.c.
 */
#include "model/virtio.h"
#include "support/packets.h"
#include "support/unit.h"

/* "Verifying the RSS Hash Calculation", Microsoft. */
static const uint8_t key[PACKET_KEY_BYTES] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

TEST(hashes_are_those_of_the_published_vectors)
{
	static const struct {
		bool is_v6;
		uint16_t ports[2];
		const char *addresses;
		uint32_t with_ports, without;
	} vectors[] = {
		{ false,
		  { 2794, 1766 },
		  "\x42\x09\x95\xbb\xa1\x8e\x64\x50",
		  0x51ccc178,
		  0x323e8fc2 },
		{ false,
		  { 14230, 4739 },
		  "\xc7\x5c\x6f\x02\x41\x45\x8c\x53",
		  0xc626b0ea,
		  0xd718262a },
		{ true,
		  { 2794, 1766 },
		  "\x3f\xfe\x25\x01\x02\x00\x1f\xff\0\0\0\0\0\0\0\x07"
		  "\x3f\xfe\x25\x01\x02\x00\x00\x03\0\0\0\0\0\0\0\x01",
		  0x40207d3d,
		  0x2cc18cd5 },
	};

	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		const bool is_v6 = vectors[i].is_v6;
		const struct packet_kind kind = {
			.is_v6 = is_v6,
			.from_port = vectors[i].ports[0],
			.to_port = vectors[i].ports[1],
		};
		uint8_t bytes[128];
		const uint32_t n = packet_of(bytes, &kind, false);
		const struct packet p = packet_parse(bytes, n);
		uint16_t type;

		memcpy(bytes + (is_v6 ? 22 : 26), vectors[i].addresses,
		       is_v6 ? 32 : 8);
		assert_int_equal(packet_hash(key, bytes, &p, true),
				 vectors[i].with_ports);
		assert_int_equal(packet_hash(key, bytes, &p, false),
				 vectors[i].without);
		assert_int_equal(vnet_hash(key, 0x3f, bytes, n, &type),
				 vectors[i].with_ports);
		assert_int_equal(type, is_v6 ? 5 : 2);
		assert_int_equal(
			vnet_hash(key, is_v6 ? 0x08 : 0x01, bytes, n, &type),
			vectors[i].without);
		assert_int_equal(type, is_v6 ? 4 : 1);
		/* With only the other version's types: none. */
		assert_int_equal(
			vnet_hash(key, is_v6 ? 0x07 : 0x38, bytes, n, &type),
			0);
		assert_int_equal(type, 0);
	}
}

/* RFC 1071 section 3, and the check value of CRC-32. */
TEST(sums_are_those_of_the_published_vectors)
{
	static const uint8_t words[] = { 0x00, 0x01, 0xf2, 0x03,
					 0xf4, 0xf5, 0xf6, 0xf7 };

	assert_int_equal(packet_sum(words, 8, 0), 0xddf2);
	assert_int_equal(packet_sum(words, 7, 0), 0xddf2 - 0xf7);
	assert_int_equal(packet_fcs((const uint8_t *)"123456789", 9),
			 0xcbf43926);
}

TEST(malformed_packets_are_not_parsed)
{
	const struct packet_kind kind = { .n_payload = 100 };
	uint8_t bytes[200];
	const uint32_t n = packet_of(bytes, &kind, false);

	assert_int_equal(packet_parse(bytes, n).protocol, 6);
	assert_int_equal(packet_parse(bytes, n - 1).version, 0);
	bytes[20] = 0x20; /* more fragments */
	assert_int_equal(packet_parse(bytes, n).version, 4);
	assert_int_equal(packet_parse(bytes, n).l4, 0);
	assert_int_equal(packet_parse(bytes, n).protocol, 0);
	bytes[14] = 0x44;
	assert_int_equal(packet_parse(bytes, n).version, 0);
	assert_int_equal(packet_parse(bytes, 17).version, 0);
}

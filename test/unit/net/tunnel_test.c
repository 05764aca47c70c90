/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/net/tunnel.c. */
#include "support/unit.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include <millrace/net.h>
#include <millrace/wire.h>

enum { OUTER_L4 = 34, MAX_BYTES = 200 };

#define INNER_ETH "\2\0\0\0\0\3\2\0\0\0\0\4"
#define INNER_IP "\x45\0\0\x1c\0\0\0\0\x40\x11\0\0\xa\0\0\1\xa\0\0\2"
#define INNER_UDP "\0\7\0\x9\0\x8\xab\xcd"
#define TEXT(text) (const uint8_t *)text, sizeof(text) - 1

/* An IPv4 packet around a layer-4 packet; returns the frame's bytes. */
static uint32_t wrap(uint8_t proto, const uint8_t *l4, size_t n, uint8_t *bytes)
{
	const struct mr_ipv4 ip = { .version_ihl = 0x45,
				    .total_bytes = htons((uint16_t)(20 + n)),
				    .proto = proto };

	memset(bytes, 0, MR_ETH_BYTES);
	bytes[12] = 8;
	memcpy(bytes + MR_ETH_BYTES, &ip, sizeof(ip));
	memcpy(bytes + OUTER_L4, l4, n);
	return OUTER_L4 + (uint32_t)n;
}

struct tunnel_case {
	uint8_t proto;
	const uint8_t *l4;
	size_t n;
	int err;
	struct mr_net_tunnel tunnel; /* without the inner view */
	uint16_t l4_bytes;           /* of the inner view */
};

static const struct tunnel_case cases[] = {
	{ IPPROTO_UDP,
	  TEXT("\x12\x34\x12\xb5\0\x3a\0\0\x8\0\0\0\1\2\3\0" INNER_ETH
	       "\x8\0" INNER_IP INNER_UDP),
	  0,
	  { MR_TUNNEL_VXLAN, 1, 1, 0, 0x6558, 50, 0x10203, { 0 } },
	  84 },
	{ IPPROTO_UDP, /* a VLAN inside */
	  TEXT("\x12\x34\x12\xb5\0\x3e\0\0\x8\0\0\0\1\2\3\0" INNER_ETH
	       "\x81\0\0\7\x8\0" INNER_IP INNER_UDP),
	  0,
	  { MR_TUNNEL_VXLAN, 1, 1, 0, 0x6558, 50, 0x10203, { 0 } },
	  88 },
	{ IPPROTO_UDP, /* no VNI */
	  TEXT("\x12\x34\x12\xb5\0\x3a\0\0\0\0\0\0\1\2\3\0" INNER_ETH
	       "\x8\0" INNER_IP INNER_UDP),
	  -ENOENT,
	  { 0 },
	  0 },
	{ IPPROTO_UDP, /* with 8 bytes of options */
	  TEXT("\x12\x34\x17\xc1\0\x34\0\0\2\0\x8\0\1\2\3\0\0\0\0\1\1\2\3"
	       "\4" INNER_IP INNER_UDP),
	  0,
	  { MR_TUNNEL_GENEVE, 0, 1, 0, 0x800, 58, 0x10203, { 0 } },
	  78 },
	{ IPPROTO_UDP, /* another version */
	  TEXT("\x12\x34\x17\xc1\0\x2c\0\0\x40\0\x8\0\1\2\3\0" INNER_IP
		       INNER_UDP),
	  -ENOENT,
	  { 0 },
	  0 },
	{ IPPROTO_UDP, /* options longer than the packet */
	  TEXT("\x12\x34\x17\xc1\0\x10\0\0\x3f\0\x8\0\1\2\3\0"),
	  -EBADMSG,
	  { 0 },
	  0 },
	{ IPPROTO_UDP, /* another port */
	  TEXT("\x12\x34\0\x35\0\x10\0\0\x8\0\0\0\1\2\3\0"),
	  -ENOENT,
	  { 0 },
	  0 },
	{ IPPROTO_GRE,
	  TEXT("\0\0\x8\0" INNER_IP INNER_UDP),
	  0,
	  { MR_TUNNEL_GRE, 0, 0, 0, 0x800, 38, 0, { 0 } },
	  58 },
	{ IPPROTO_GRE, /* sum, key and sequence */
	  TEXT("\xb0\0\x65\x58\1\2\0\0\xde\xad\xbe\xef\0\0\0\1" INNER_ETH
	       "\x8\0" INNER_IP INNER_UDP),
	  0,
	  { MR_TUNNEL_GRE, 1, 1, 0, 0x6558, 50, 0xdeadbeef, { 0 } },
	  84 },
	{ IPPROTO_GRE, /* version 1: PPTP */
	  TEXT("\x20\1\x88\x0b\0\0\0\0" INNER_IP INNER_UDP),
	  -ENOENT,
	  { 0 },
	  0 },
	{ IPPROTO_GRE, /* the inner packet is longer than the outer one */
	  TEXT("\0\0\x8\0" INNER_IP "\0\7\0\x9"),
	  -EBADMSG,
	  { MR_TUNNEL_GRE, 0, 0, 0, 0x800, 38, 0, { 0 } },
	  0 },
	{ IPPROTO_TCP,
	  TEXT("\x12\x34\x12\xb5\0\0\0\0\0\0\0\0\x50\0\0\0\0\0\0\0"),
	  -ENOENT,
	  { 0 },
	  0 },
};

TEST(packet_in_a_packet_is_found)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct tunnel_case *it = &cases[i];
		uint8_t bytes[MAX_BYTES];
		const uint32_t n = wrap(it->proto, it->l4, it->n, bytes);
		struct mr_net_tunnel tunnel;
		struct mr_net_view outer;

		assert_int_equal(mr_net_parse(bytes, n, n, &outer), 0);
		assert_int_equal(
			mr_net_parse_tunnel(bytes, n, n, &outer, &tunnel),
			it->err);
		assert_int_equal(tunnel.inner.l4_bytes, it->l4_bytes);
		if (it->l4_bytes != 0) {
			assert_int_equal(tunnel.inner.l4_proto, IPPROTO_UDP);
			assert_int_equal(tunnel.inner.l4_len_bytes, 8);
		}
		memset(&tunnel.inner, 0, sizeof(tunnel.inner));
		assert_memory_equal(&tunnel, &it->tunnel, sizeof(tunnel));
	}
}

TEST(tunnel_that_is_cut_off_is_never_read_past_its_end)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint8_t bytes[MAX_BYTES];
		const uint32_t n =
			wrap(cases[i].proto, cases[i].l4, cases[i].n, bytes);

		for (uint32_t cut = 14; cut < n; cut++) {
			uint8_t *copy = malloc(cut); /* ASan sees its end */
			struct mr_net_tunnel tunnel;
			struct mr_net_view outer;

			assert_non_null(copy);
			memcpy(copy, bytes, cut);
			mr_net_parse(copy, cut, n, &outer);
			if (mr_net_parse_tunnel(copy, cut, n, &outer,
						&tunnel) == 0)
				assert_true(tunnel.inner.l4_bytes <= cut);
			free(copy);
		}
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets in packets. Sources: RFC 7348, RFC 8926, RFC 2784, RFC 2890. */
#include <errno.h>
#include <netinet/in.h>

#include <millrace/net.h>

#include "net/net.h"

enum {
	PORT_VXLAN = 4789,
	PORT_GENEVE = 6081,
	UDP_BYTES = 8,
	ETHER_BRIDGED = 0x6558, /* an Ethernet frame, in GRE and GENEVE */
	VXLAN_HAS_ID = 0x08,
	GRE_HAS_SUM = 0x8000,
	GRE_HAS_KEY = 0x2000,
	GRE_HAS_SEQUENCE = 0x1000,
	GRE_OTHERS = 0x4fff, /* reserved, routing, and the version */
};

static uint32_t be24(const uint8_t *bytes)
{
	return (uint32_t)(bytes[0] << 16 | bytes[1] << 8 | bytes[2]);
}

static uint16_t be16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

/* The header of GRE, n bytes at most; returns its bytes, or 0. */
static uint32_t read_gre(const uint8_t *gre, uint32_t n,
			 struct mr_net_tunnel *tunnel)
{
	const uint32_t flags = n >= 4 ? be16(gre) : GRE_OTHERS;
	uint32_t at = 4;

	if (flags & GRE_OTHERS)
		return 0;
	if (flags & GRE_HAS_SUM)
		at += 4;
	if (flags & GRE_HAS_KEY) {
		at += 4;
		if (at > n)
			return 0;
		tunnel->has_id = 1;
		tunnel->id =
			(uint32_t)be16(gre + at - 4) << 16 | be16(gre + at - 2);
	}
	if (flags & GRE_HAS_SEQUENCE)
		at += 4;
	tunnel->kind = MR_TUNNEL_GRE;
	tunnel->ether_type = be16(gre + 2);
	return at;
}

/* The same, of what is in UDP. */
static uint32_t read_udp(const uint8_t *udp, uint32_t n,
			 struct mr_net_tunnel *tunnel)
{
	const uint16_t port = be16(udp + 2);
	const uint8_t *header = udp + UDP_BYTES;

	if (n < UDP_BYTES + 8)
		return 0;
	if (port == PORT_VXLAN && header[0] & VXLAN_HAS_ID) {
		tunnel->kind = MR_TUNNEL_VXLAN;
		tunnel->ether_type = ETHER_BRIDGED;
	} else if (port == PORT_GENEVE && header[0] >> 6 == 0) {
		tunnel->kind = MR_TUNNEL_GENEVE;
		tunnel->ether_type = be16(header + 2);
	} else {
		return 0;
	}
	tunnel->has_id = 1;
	tunnel->id = be24(header + 4);
	return UDP_BYTES + 8 +
	       (port == PORT_GENEVE ? (header[0] & 63u) * 4 : 0);
}

int mr_net_parse_tunnel(const uint8_t *bytes, uint32_t n_bytes,
			uint32_t n_frame, const struct mr_net_view *outer,
			struct mr_net_tunnel *ret_tunnel)
{
	const uint8_t *l4 = bytes + outer->l4_bytes;
	struct mr_net_tunnel tunnel = { 0 };
	uint32_t n = outer->l4_len_bytes, at = 0;

	*ret_tunnel = tunnel;
	if (n_bytes > UINT16_MAX)
		n_bytes = UINT16_MAX; /* offsets have 16 bits */
	if (outer->l4_bytes == 0 || outer->is_fragment)
		return -ENOENT;
	if (n > n_bytes - outer->l4_bytes)
		n = n_bytes - outer->l4_bytes;
	if (outer->l4_proto == IPPROTO_GRE)
		at = read_gre(l4, n, &tunnel);
	else if (outer->l4_proto == IPPROTO_UDP)
		at = read_udp(l4, n, &tunnel);
	if (at == 0)
		return -ENOENT;
	if (at >= n)
		return -EBADMSG;
	at += outer->l4_bytes;
	if (n_frame > (uint32_t)outer->l4_bytes + outer->l4_len_bytes)
		n_frame = (uint32_t)outer->l4_bytes + outer->l4_len_bytes;
	if (n_bytes > n_frame)
		n_bytes = n_frame;
	tunnel.inner_bytes = (uint16_t)at;
	tunnel.is_ethernet = tunnel.ether_type == ETHER_BRIDGED;
	*ret_tunnel = tunnel;
	return tunnel.is_ethernet ?
		       mri_net_parse_at(bytes, n_bytes, n_frame, at + 12,
					&ret_tunnel->inner) :
		       mri_net_parse_l3(bytes, n_bytes, n_frame, at,
					tunnel.ether_type, &ret_tunnel->inner);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the headers of a frame begin.
 *
 * Sources: IEEE 802.3 and 802.1Q; RFC 791 section 3.1; RFC 8200 sections 3, 4;
 * RFC 793 section 3.1; RFC 768.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include <millrace/net.h>

#include "net/net.h"

enum {
	MAX_VLAN_TAGS = 2,
	MAX_EXTENSIONS = 8, /* the most IPv6 extension headers to parse */
	IPV4_BYTES = 20,
	IPV6_BYTES = 40,
	TCP_BYTES = 20,
	UDP_BYTES = 8,
};

static uint16_t be16(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

static int parse_l4(const uint8_t *bytes, uint32_t n_bytes,
		    struct mr_net_view *view, uint32_t at)
{
	view->l4_bytes = (uint16_t)at;
	if (view->l4_proto == IPPROTO_TCP) {
		if (at + TCP_BYTES > n_bytes || view->l4_len_bytes < TCP_BYTES)
			return -EBADMSG;
		view->csum_bytes = (uint16_t)(at + 16);
	} else if (view->l4_proto == IPPROTO_UDP) {
		if (at + UDP_BYTES > n_bytes || view->l4_len_bytes < UDP_BYTES)
			return -EBADMSG;
		/*
		 * Over IPv4, the checksum is optional. And if UDP and IP
		 * disagree about the length, the checksum does not cover
		 * l4_len_bytes.
		 */
		if (be16(bytes + at + 6) != 0 &&
		    be16(bytes + at + 4) == view->l4_len_bytes)
			view->csum_bytes = (uint16_t)(at + 6);
	}
	return 0;
}

static int parse_ipv4(const uint8_t *bytes, uint32_t n_bytes, uint32_t n_frame,
		      struct mr_net_view *view)
{
	const uint32_t at = view->l3_bytes;
	const uint8_t *ip = bytes + at;
	uint32_t n_header, n_total;

	if (at + IPV4_BYTES > n_bytes || ip[0] >> 4 != 4)
		return -EBADMSG;
	n_header = (ip[0] & 15u) * 4;
	n_total = be16(ip + 2);
	if (n_header < IPV4_BYTES || at + n_header > n_bytes ||
	    n_total < n_header || at + n_total > n_frame)
		return -EBADMSG;
	view->l4_proto = ip[9];
	view->l4_len_bytes = (uint16_t)(n_total - n_header);
	view->is_fragment = (be16(ip + 6) & 0x3fff) != 0;
	if (view->is_fragment) {
		if ((be16(ip + 6) & 0x1fff) == 0)
			view->l4_bytes = (uint16_t)(at + n_header);
		return 0; /* its checksum covers bytes in other frames */
	}
	return parse_l4(bytes, n_bytes, view, at + n_header);
}

static bool is_extension(uint8_t next)
{
	return next == IPPROTO_HOPOPTS || next == IPPROTO_ROUTING ||
	       next == IPPROTO_DSTOPTS;
}

static int parse_ipv6(const uint8_t *bytes, uint32_t n_bytes, uint32_t n_frame,
		      struct mr_net_view *view)
{
	uint32_t at = view->l3_bytes;
	const uint8_t *ip = bytes + at;
	uint32_t end;
	uint8_t next;
	int err;

	if (at + IPV6_BYTES > n_bytes || ip[0] >> 4 != 6)
		return -EBADMSG;
	end = at + IPV6_BYTES + be16(ip + 4);
	if (end > n_frame)
		return -EBADMSG;
	next = ip[6];
	at += IPV6_BYTES;
	for (int i = 0; i < MAX_EXTENSIONS; i++) {
		if (next == IPPROTO_FRAGMENT) {
			if (at + 8 > n_bytes || at + 8 > end)
				return -EBADMSG;
			view->is_fragment = 1;
			view->l4_proto = bytes[at];
			view->l4_len_bytes = (uint16_t)(end - at - 8);
			if ((be16(bytes + at + 2) & 0xfff8) == 0)
				view->l4_bytes = (uint16_t)(at + 8);
			return 0;
		}
		if (!is_extension(next))
			break;
		if (at + 8 > n_bytes)
			return -EBADMSG;
		/* The checksum covers the last address of its list (8.1). */
		view->is_routed |=
			next == IPPROTO_ROUTING && bytes[at + 3] != 0;
		next = bytes[at];
		at += (bytes[at + 1] + 1u) * 8;
		if (at > end || at > n_bytes)
			return -EBADMSG;
	}
	if (is_extension(next))
		return 0; /* no legitimate sender uses so many */
	view->l4_proto = next;
	view->l4_len_bytes = (uint16_t)(end - at);
	err = parse_l4(bytes, n_bytes, view, at);
	if (view->is_routed)
		view->csum_bytes = 0; /* not the address in mr_csum_pseudo() */
	return err;
}

int mri_net_parse_l3(const uint8_t *bytes, uint32_t n_bytes, uint32_t n_frame,
		     uint32_t at, uint16_t ether_type,
		     struct mr_net_view *ret_view)
{
	struct mr_net_view view = { .ether_type = ether_type,
				    .l3_bytes = (uint16_t)at };
	int err = 0;

	if (ether_type == MRI_ETHER_IPV4)
		err = parse_ipv4(bytes, n_bytes, n_frame, &view);
	else if (ether_type == MRI_ETHER_IPV6)
		err = parse_ipv6(bytes, n_bytes, n_frame, &view);
	if (err < 0) {
		view.l4_bytes = 0;
		view.csum_bytes = 0;
	}
	if (at >= n_bytes)
		view.l3_bytes = 0; /* a bare Ethernet header */
	*ret_view = view;
	return err;
}

int mri_net_parse_at(const uint8_t *bytes, uint32_t n_bytes, uint32_t n_frame,
		     uint32_t at, struct mr_net_view *ret_view)
{
	uint16_t type;

	memset(ret_view, 0, sizeof(*ret_view));
	if (n_bytes > UINT16_MAX)
		n_bytes = UINT16_MAX; /* offsets have 16 bits */
	if (n_bytes < at + 2 || n_frame < n_bytes)
		return -EBADMSG;
	type = be16(bytes + at);
	for (int tag = 0; tag < MAX_VLAN_TAGS; tag++) {
		if (type != MRI_ETHER_VLAN && type != MRI_ETHER_SVLAN)
			break;
		at += MR_VLAN_BYTES;
		if (at + 2 > n_bytes)
			return -EBADMSG;
		type = be16(bytes + at);
	}
	return mri_net_parse_l3(bytes, n_bytes, n_frame, at + 2, type,
				ret_view);
}

int mr_net_parse(const uint8_t *bytes, uint32_t n_bytes, uint32_t n_frame,
		 struct mr_net_view *ret_view)
{
	return mri_net_parse_at(bytes, n_bytes, n_frame, 12, ret_view);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Software receive offload: which segments can be merged, and the headers of
 * the merged frame. The inverse of gso.c: segments are merged only if
 * segmentation restores them byte for byte.
 *
 * All but the last have the same size; headers differ only in what gso.c
 * increments or clears. PSH or FIN ends a merge, CWR begins one. Frames with
 * padding, IP options, extension headers or a wrong IPv4 checksum are not
 * merged. Linux has the same rules, except that it ignores the TCP window and
 * padding, and accepts IPv4 identifications that do not change.
 *
 * Source: linux/Documentation/networking/segmentation-offloads.rst, "Generic
 * Receive Offload"; RFC 793, section 3.1; RFC 3168, section 6.1.2.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <millrace/wire.h>

#include "net/net.h"

enum {
	TCP_PSH = 8,
	TCP_ECE = 64,
	TCP_CWR = 128,
	IPV6_BYTES = 40,
	IP_MAX_BYTES = 65535,
};

static bool is_ipv4(const struct mr_net_view *view)
{
	return view->ether_type == MRI_ETHER_IPV4;
}

static bool is_tcp(const struct mr_net_view *view)
{
	return view->l4_proto == IPPROTO_TCP;
}

static const struct mr_ipv4 *ipv4_of(const struct mri_gro *gro)
{
	return (const struct mr_ipv4 *)(gro->bytes + gro->view.l3_bytes);
}

static const struct mr_tcp *tcp_of(const struct mri_gro *gro)
{
	return (const struct mr_tcp *)(gro->bytes + gro->view.l4_bytes);
}

/* Addresses, and with them the ports: in IPv4 they are adjacent. */
static const uint8_t *addresses_of(const struct mri_gro *gro, uint32_t *ret_n)
{
	*ret_n = is_ipv4(&gro->view) ? 2 * 4 : 2 * 16;
	return gro->bytes + gro->view.l3_bytes +
	       (is_ipv4(&gro->view) ? offsetof(struct mr_ipv4, src) : 8);
}

static uint32_t hash_of(const struct mri_gro *gro)
{
	uint32_t n, word, hash;
	const uint8_t *at = addresses_of(gro, &n);

	memcpy(&hash, gro->bytes + gro->view.l4_bytes, sizeof(hash));
	for (; n > 0; n -= (uint32_t)sizeof(word), at += sizeof(word)) {
		memcpy(&word, at, sizeof(word));
		hash = (hash << 5 | hash >> 27) ^ word;
	}
	return hash;
}

static bool is_ip_plain(const struct mri_gro *gro)
{
	const uint32_t n = gro->view.l4_bytes - gro->view.l3_bytes;

	if (!is_ipv4(&gro->view))
		return n == IPV6_BYTES;
	/* Segmentation writes 0 where 0xffff would be as good. */
	return n == sizeof(struct mr_ipv4) &&
	       ipv4_of(gro)->csum != UINT16_MAX &&
	       mr_csum_fold(mr_csum_add((const uint8_t *)ipv4_of(gro), n, 0)) ==
		       UINT16_MAX;
}

static bool take_tcp(struct mri_gro *gro)
{
	const uint8_t merged =
		MR_TCP_ACK | MR_TCP_FIN | TCP_PSH | TCP_ECE | TCP_CWR;
	const uint32_t n = (tcp_of(gro)->offset >> 4) * 4u;

	gro->n_header_bytes = gro->view.l4_bytes + n;
	gro->gso_type = is_ipv4(&gro->view) ? MR_GSO_TCPV4 : MR_GSO_TCPV6;
	gro->tcp_flags = tcp_of(gro)->flags;
	gro->is_over = gro->tcp_flags & (MR_TCP_FIN | TCP_PSH);
	return n >= sizeof(struct mr_tcp) && !(gro->tcp_flags & ~merged);
}

static void take_udp(struct mri_gro *gro)
{
	gro->n_header_bytes =
		gro->view.l4_bytes + (uint32_t)sizeof(struct mr_udp);
	gro->gso_type = MR_GSO_UDP;
}

enum mri_gro_kind mri_gro_begin(struct mri_gro *gro, const uint8_t *bytes,
				uint32_t n_bytes, uint32_t n_frame)
{
	const struct mr_net_view *view = &gro->view;
	uint32_t n_whole;

	*gro = (struct mri_gro){ .bytes = bytes, .n = 1 };
	if (mr_net_parse(bytes, n_bytes, n_frame, &gro->view) < 0 ||
	    view->is_fragment)
		return MRI_GRO_UNKNOWN;
	if (view->l4_bytes == 0 ||
	    (!is_tcp(view) && view->l4_proto != IPPROTO_UDP))
		return MRI_GRO_OTHER;
	gro->hash = hash_of(gro);
	n_whole = (uint32_t)view->l4_bytes + view->l4_len_bytes;
	if (view->csum_bytes == 0 || n_whole != n_frame || !is_ip_plain(gro))
		return MRI_GRO_ALONE;
	if (!is_tcp(view))
		take_udp(gro);
	else if (!take_tcp(gro))
		return MRI_GRO_ALONE;
	/* Some of the payload is also in the first entry. */
	if (gro->n_header_bytes >= n_bytes || gro->n_header_bytes >= n_whole)
		return MRI_GRO_ALONE;
	gro->n_payload_bytes = n_whole - gro->n_header_bytes;
	gro->n_segment_bytes = gro->n_payload_bytes;
	return MRI_GRO_SEGMENT;
}

bool mri_gro_is_same_flow(const struct mri_gro *a, const struct mri_gro *b)
{
	uint32_t n;
	const uint8_t *const of_a = addresses_of(a, &n);

	return a->hash == b->hash && is_ipv4(&a->view) == is_ipv4(&b->view) &&
	       a->view.l4_proto == b->view.l4_proto &&
	       memcmp(a->bytes + a->view.l4_bytes, b->bytes + b->view.l4_bytes,
		      2 * sizeof(uint16_t)) == 0 &&
	       memcmp(of_a, addresses_of(b, &n), n) == 0;
}

/* Everything before layer 4 except lengths, identification and checksum. */
static bool is_l3_equal(const struct mri_gro *gro, const struct mri_gro *next)
{
	const uint32_t l3 = gro->view.l3_bytes, l4 = gro->view.l4_bytes;
	const uint8_t *a = gro->bytes, *b = next->bytes;

	if (l3 != next->view.l3_bytes || l4 != next->view.l4_bytes)
		return false;
	if (!is_ipv4(&gro->view)) /* from the length on: next header */
		return memcmp(a, b, l3 + 4u) == 0 &&
		       memcmp(a + l3 + 6, b + l3 + 6, 2) == 0;
	return memcmp(a, b, l3 + 2u) == 0 && /* also the type of service */
	       memcmp(a + l3 + offsetof(struct mr_ipv4, fragment),
		      b + l3 + offsetof(struct mr_ipv4, fragment), 4) == 0 &&
	       ntohs(ipv4_of(next)->id) ==
		       (uint16_t)(ntohs(ipv4_of(gro)->id) + gro->n);
}

static bool does_tcp_follow(const struct mri_gro *gro,
			    const struct mri_gro *next)
{
	const uint8_t may_differ = MR_TCP_FIN | TCP_PSH | TCP_CWR;
	const struct mr_tcp *a = tcp_of(gro), *b = tcp_of(next);
	const uint32_t rest = offsetof(struct mr_tcp, urgent);

	return ntohl(b->seq) == ntohl(a->seq) + gro->n_payload_bytes &&
	       a->ack == b->ack && a->offset == b->offset &&
	       a->window == b->window && !(b->flags & TCP_CWR) &&
	       !((a->flags ^ b->flags) & ~may_differ) &&
	       memcmp((const uint8_t *)a + rest, (const uint8_t *)b + rest,
		      gro->n_header_bytes - gro->view.l4_bytes - rest) == 0;
}

bool mri_gro_add(struct mri_gro *gro, const struct mri_gro *next)
{
	const uint32_t n_ip = gro->n_header_bytes - gro->view.l3_bytes;

	if (gro->is_over || next->n_payload_bytes > gro->n_segment_bytes ||
	    n_ip + gro->n_payload_bytes + next->n_payload_bytes >
		    IP_MAX_BYTES ||
	    !is_l3_equal(gro, next) ||
	    (is_tcp(&gro->view) && !does_tcp_follow(gro, next)))
		return false;
	gro->n++;
	gro->n_payload_bytes += next->n_payload_bytes;
	gro->tcp_flags |= next->tcp_flags;
	gro->is_over =
		next->is_over || next->n_payload_bytes < gro->n_segment_bytes;
	return true;
}

void mri_gro_finish(const struct mri_gro *gro, uint8_t *bytes)
{
	struct mr_net_view view = gro->view;

	view.l4_len_bytes = (uint16_t)(gro->n_header_bytes - view.l4_bytes +
				       gro->n_payload_bytes);
	if (is_tcp(&view))
		((struct mr_tcp *)(bytes + view.l4_bytes))->flags =
			gro->tcp_flags;
	mri_gso_lengths(bytes, &view, 0);
}

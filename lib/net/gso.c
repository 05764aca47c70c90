/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Software segmentation: the headers of each segment of a long frame.
 *
 * TCP: the sequence number advances, FIN and PSH belong to the last segment,
 * CWR to the first (RFC 3168, section 6.1.2). UDP: separate datagrams. IPv4
 * identifications count up. Layer 4 checksums stay partial, as in Linux, so
 * that drivers treat them like any other.
 *
 * Source: linux/Documentation/networking/segmentation-offloads.rst; RFC 791;
 * RFC 793, section 3.1; RFC 768; RFC 8200, section 3.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include <millrace/wire.h>

#include "net/net.h"

enum { TCP_PSH = 8, TCP_CWR = 128, MACS_BYTES = 12, IPV6_BYTES = 40 };

/* Whether the checksum is of UDP or TCP, over the range in the metadata. */
static bool is_said(const struct mr_net_view *view, const struct mr_meta *meta)
{
	const bool is_v4 = view->ether_type == MRI_ETHER_IPV4;

	if (view->csum_bytes == 0 || view->is_fragment)
		return false;
	switch (meta->gso_type) {
	case MR_GSO_TCPV4:
		return view->l4_proto == IPPROTO_TCP && is_v4;
	case MR_GSO_TCPV6:
		return view->l4_proto == IPPROTO_TCP && !is_v4;
	case MR_GSO_UDP:
		return view->l4_proto == IPPROTO_UDP;
	default:
		return false;
	}
}

int mri_gso_begin(struct mri_gso *gso, const uint8_t *bytes, uint32_t n_bytes,
		  uint32_t n_frame, const struct mr_meta *meta)
{
	struct mr_net_view *view = &gso->view;
	uint32_t l4_header_bytes = sizeof(struct mr_udp);

	if (mr_net_parse(bytes, n_bytes, n_frame, view) < 0 ||
	    !is_said(view, meta))
		return -EBADMSG;
	if (view->l4_proto == IPPROTO_TCP)
		l4_header_bytes = (bytes[view->l4_bytes +
					 offsetof(struct mr_tcp, offset)] >>
				   4) *
				  4u;
	gso->n_header_bytes = view->l4_bytes + l4_header_bytes;
	if (gso->n_header_bytes > n_bytes ||
	    gso->n_header_bytes > sizeof(gso->header) - MR_VLAN_BYTES ||
	    l4_header_bytes > view->l4_len_bytes ||
	    (view->l4_proto == IPPROTO_TCP &&
	     l4_header_bytes < sizeof(struct mr_tcp)))
		return -EBADMSG;
	memcpy(gso->header, bytes, gso->n_header_bytes);
	gso->payload_at = gso->n_header_bytes;
	gso->n_payload_bytes = view->l4_len_bytes - l4_header_bytes;
	gso->n_segment_bytes = meta->gso_bytes;
	return 0;
}

void mri_gso_whole(struct mri_gso *gso, const uint8_t *bytes, uint32_t n_frame)
{
	memcpy(gso->header, bytes, MACS_BYTES);
	gso->n_header_bytes = gso->payload_at = MACS_BYTES;
	gso->n_payload_bytes = n_frame - MACS_BYTES;
	gso->n_segment_bytes = 0;
}

void mri_tag_write(uint8_t *to, const struct mr_meta *meta)
{
	const uint16_t proto =
		meta->vlan_proto != 0 ? meta->vlan_proto : MRI_ETHER_VLAN;
	const uint16_t words[2] = { htons(proto), htons(meta->vlan_tci) };

	memcpy(to, words, sizeof(words));
}

void mri_gso_tag(struct mri_gso *gso, const struct mr_meta *meta)
{
	uint8_t *at = gso->header + MACS_BYTES;

	memmove(at + MR_VLAN_BYTES, at, gso->n_header_bytes - MACS_BYTES);
	mri_tag_write(at, meta);
	gso->n_header_bytes += MR_VLAN_BYTES;
	gso->view.l3_bytes += MR_VLAN_BYTES;
	gso->view.l4_bytes += MR_VLAN_BYTES;
	gso->view.csum_bytes += MR_VLAN_BYTES;
}

/* Segment i, which has n_bytes from here on. */
static void edit_l3(uint8_t *l3, bool is_v4, uint32_t n_bytes, uint32_t i)
{
	struct mr_ipv4 *ip = (struct mr_ipv4 *)l3;
	const uint16_t n_payload = htons((uint16_t)(n_bytes - IPV6_BYTES));

	if (!is_v4) {
		memcpy(l3 + 4, &n_payload, sizeof(n_payload));
		return;
	}
	ip->total_bytes = htons((uint16_t)n_bytes);
	ip->id = htons((uint16_t)(ntohs(ip->id) + i));
	mr_csum_write_ipv4(l3);
}

static void edit_tcp(struct mr_tcp *tcp, uint32_t done, bool is_last)
{
	tcp->seq = htonl(ntohl(tcp->seq) + done);
	if (!is_last)
		tcp->flags &= (uint8_t) ~(MR_TCP_FIN | TCP_PSH);
	if (done > 0)
		tcp->flags &= (uint8_t)~TCP_CWR;
}

void mri_gso_lengths(uint8_t *bytes, const struct mr_net_view *view, uint32_t i)
{
	struct mr_udp *udp = (struct mr_udp *)(bytes + view->l4_bytes);
	uint16_t sum;

	edit_l3(bytes + view->l3_bytes, view->ether_type == MRI_ETHER_IPV4,
		view->l4_bytes - view->l3_bytes + view->l4_len_bytes, i);
	if (view->l4_proto == IPPROTO_UDP)
		udp->n_bytes = htons(view->l4_len_bytes);
	sum = mr_csum_pseudo(bytes, view);
	memcpy(bytes + view->csum_bytes, &sum, sizeof(sum));
}

uint32_t mri_gso_header(const struct mri_gso *gso, uint32_t done, uint8_t *to)
{
	const uint32_t n_left = gso->n_payload_bytes - done;
	const uint32_t n_max = gso->n_segment_bytes;
	const bool is_last = n_max == 0 || n_left <= n_max;
	const uint32_t n = is_last ? n_left : n_max;
	struct mr_net_view view = gso->view;

	memcpy(to, gso->header, gso->n_header_bytes);
	if (n_max == 0)
		return n;
	view.l4_len_bytes = (uint16_t)(gso->n_header_bytes - view.l4_bytes + n);
	if (view.l4_proto == IPPROTO_TCP)
		edit_tcp((struct mr_tcp *)(to + view.l4_bytes), done, is_last);
	mri_gso_lengths(to, &view, done / n_max);
	return n;
}

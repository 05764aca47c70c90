/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a NIC does to a packet beside moving it: it completes its checksum, cuts
 * it into segments, hashes it. 5.1.6.2.1, 5.1.6.4.3 of the specification.
 */
#include <string.h>

#include "support/packet.h"
#include "virtio_core.h"

enum {
	TCP = 6,
	UDP = 17,
	MAX_SEGMENT_BYTES = 16384,
	TCP_FIN = 0x01,
	TCP_PSH = 0x08,
	TCP_CWR = 0x80,
};

/* Where the payload begins; 0: neither TCP nor UDP, or no whole header. */
static uint32_t payload_of(const uint8_t *bytes, const struct packet *p)
{
	uint32_t n = 8;

	if (p->protocol == 0)
		return 0;
	if (p->protocol == TCP)
		n = 4u * (bytes[p->l4 + 12] >> 4);
	return (p->protocol == TCP && n < 20) || n > p->end - p->l4 ? 0 :
								      p->l4 + n;
}

static uint32_t sum_offset(const struct packet *p)
{
	return p->l4 + (p->protocol == TCP ? 16 : 6);
}

static uint32_t pseudo_sum(const uint8_t *bytes, const struct packet *p)
{
	return packet_pseudo_sum(bytes, p, p->protocol, p->end - p->l4);
}

/* 0 is "none" in UDP, and its other form in TCP. */
static void put_sum(uint8_t *field, uint16_t sum)
{
	packet_put16(field, sum == 0xffff ? 0xffff : (uint16_t)~sum);
}

static void fix_lengths(uint8_t *bytes, const struct packet *p,
			uint32_t n_bytes, uint32_t i)
{
	uint8_t *ip = bytes + p->l3;

	if (p->protocol == UDP)
		packet_put16(bytes + p->l4 + 4, n_bytes - p->l4);
	if (p->version == 6) {
		packet_put16(ip + 4, n_bytes - p->l3 - 40);
		return;
	}
	packet_put16(ip + 2, n_bytes - p->l3);
	packet_put16(ip + 4, packet_be16(ip + 4) + i);
	packet_put16(ip + 10, 0);
	packet_put16(ip + 10, (uint16_t)~packet_sum(ip, 4u * (ip[0] & 15), 0));
}

static void fix_tcp(uint8_t *tcp, uint32_t n_before, bool is_first,
		    bool is_last)
{
	packet_put32(tcp + 4, packet_be32(tcp + 4) + n_before);
	if (!is_first)
		tcp[13] &= (uint8_t)~TCP_CWR;
	if (!is_last)
		tcp[13] &= (uint8_t) ~(TCP_FIN | TCP_PSH);
}

static const char *gso_is_wrong(const struct packet *p, uint32_t payload,
				const struct vnet_offload *o)
{
	const uint8_t type = o->gso_type & 0x7f; /* 0x80: ECN */

	if (payload == 0)
		return "GSO of a packet that is neither TCP nor UDP";
	if ((type == VNET_GSO_TCPV4 &&
	     (p->version != 4 || p->protocol != TCP)) ||
	    (type == VNET_GSO_TCPV6 &&
	     (p->version != 6 || p->protocol != TCP)) ||
	    (type == VNET_GSO_UDP_L4 && p->protocol != UDP))
		return "gso_type is not that of the packet";
	if (type != VNET_GSO_TCPV4 && type != VNET_GSO_TCPV6 &&
	    type != VNET_GSO_UDP_L4)
		return "gso_type is unknown";
	if ((o->flags & VNET_NEEDS_CSUM) == 0)
		return "GSO without NEEDS_CSUM";
	if (o->gso_size == 0 || payload + o->gso_size > MAX_SEGMENT_BYTES)
		return "gso_size is out of range";
	if (o->hdr_len != payload)
		return "hdr_len is not that of the headers";
	return NULL;
}

static const char *segment(const uint8_t *bytes, uint32_t n_bytes,
			   const struct vnet_offload *o, vnet_emit_fn *emit,
			   void *arg)
{
	const struct packet p = packet_parse(bytes, n_bytes);
	const uint32_t payload = payload_of(bytes, &p);
	const char *wrong = gso_is_wrong(&p, payload, o);
	uint8_t frame[MAX_SEGMENT_BYTES];
	uint32_t i = 0;

	if (wrong != NULL)
		return wrong;
	for (uint32_t at = payload; at < p.end; at += o->gso_size, i++) {
		const uint32_t n =
			p.end - at < o->gso_size ? p.end - at : o->gso_size;
		struct packet part = p;

		part.end = payload + n;
		memcpy(frame, bytes, payload);
		memcpy(frame + payload, bytes + at, n);
		fix_lengths(frame, &p, part.end, i);
		if (p.protocol == TCP)
			fix_tcp(frame + p.l4, at - payload, i == 0,
				at + n == p.end);
		packet_put16(frame + sum_offset(&p), 0);
		put_sum(frame + sum_offset(&p),
			packet_sum(frame + p.l4, part.end - p.l4,
				   pseudo_sum(frame, &part)));
		emit(arg, frame, part.end);
	}
	return i == 0 ? "GSO of a packet without payload" : NULL;
}

/* The sum that the driver began; or NULL. */
static const char *partial_sum_is_wrong(const uint8_t *bytes, uint32_t n_bytes,
					const struct packet *p, uint32_t start,
					uint32_t field)
{
	if (field + 2 > n_bytes)
		return "the checksum is beyond the packet";
	if (payload_of(bytes, p) == 0)
		return NULL; /* of a protocol that only the driver knows */
	if (start != p->l4 || field != sum_offset(p))
		return "the checksum is not where TCP and UDP have it";
	if (packet_be16(bytes + field) != pseudo_sum(bytes, p))
		return "the partial checksum is not the sum of the "
		       "pseudo-header";
	return NULL;
}

const char *vnet_finish(uint8_t *bytes, uint32_t n_bytes,
			const struct vnet_offload *o, vnet_emit_fn *emit,
			void *arg)
{
	const struct packet p = packet_parse(bytes, n_bytes);
	const uint32_t end = payload_of(bytes, &p) != 0 ? p.end : n_bytes;
	const uint32_t start = o->csum_start;
	const uint32_t field = start + o->csum_offset;
	const char *wrong;

	if ((o->flags & VNET_NEEDS_CSUM) != 0) {
		wrong = partial_sum_is_wrong(bytes, n_bytes, &p, start, field);
		if (wrong != NULL)
			return wrong;
	}
	if (o->gso_type != 0)
		return segment(bytes, n_bytes, o, emit, arg);
	if ((o->flags & VNET_NEEDS_CSUM) != 0)
		put_sum(bytes + field,
			packet_sum(bytes + start, end - start, 0));
	emit(arg, bytes, n_bytes);
	return NULL;
}

uint32_t vnet_hash(const uint8_t *key, uint32_t types, const uint8_t *bytes,
		   uint32_t n_bytes, uint16_t *ret_kind)
{
	/* By IP version: types by address alone, with TCP's and UDP's ports. */
	static const struct {
		uint32_t any, tcp, udp;
		uint16_t first_kind;
	} by_version[2] = { { 0x01, 0x02, 0x04, 1 }, { 0x08, 0x10, 0x20, 4 } };
	const struct packet p = packet_parse(bytes, n_bytes);
	const uint32_t v = p.version == 6;

	*ret_kind = 0;
	if (p.version == 0)
		return 0;
	if (p.protocol == TCP && (types & by_version[v].tcp) != 0)
		*ret_kind = by_version[v].first_kind + 1;
	else if (p.protocol == UDP && (types & by_version[v].udp) != 0)
		*ret_kind = by_version[v].first_kind + 2;
	else if ((types & by_version[v].any) != 0)
		*ret_kind = by_version[v].first_kind;
	else
		return 0;
	return packet_hash(key, bytes, &p,
			   *ret_kind != by_version[v].first_kind);
}

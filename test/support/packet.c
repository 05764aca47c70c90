/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "packet.h"

enum {
	TYPE_VLAN = 0x8100,
	TYPE_IPV4 = 0x0800,
	TYPE_IPV6 = 0x86dd,
	TCP = 6,
	UDP = 17,
};

static void parse_ipv4(const uint8_t *bytes, uint32_t n_bytes, struct packet *p)
{
	const uint8_t *ip = bytes + p->l3;
	uint32_t header, total;

	if (n_bytes < p->l3 + 20 || ip[0] >> 4 != 4)
		return;
	header = (ip[0] & 15u) * 4;
	total = packet_be16(ip + 2);
	if (header < 20 || total < header || p->l3 + total > n_bytes)
		return;
	p->version = 4;
	p->end = p->l3 + total;
	/* A fragment has no L4 header, or not all of its packet. */
	if ((packet_be16(ip + 6) & 0x3fff) != 0)
		return;
	p->l4 = p->l3 + header;
	p->protocol = ip[9];
}

static void parse_ipv6(const uint8_t *bytes, uint32_t n_bytes, struct packet *p)
{
	const uint8_t *ip = bytes + p->l3;

	if (n_bytes < p->l3 + 40 || ip[0] >> 4 != 6 ||
	    p->l3 + 40 + packet_be16(ip + 4) > n_bytes)
		return;
	p->version = 6;
	p->end = p->l3 + 40 + packet_be16(ip + 4);
	p->l4 = p->l3 + 40;
	p->protocol = ip[6];
}

struct packet packet_parse(const uint8_t *bytes, uint32_t n_bytes)
{
	struct packet p = { .l3 = 14 };
	uint32_t type;

	if (n_bytes < 18)
		return p;
	type = packet_be16(bytes + 12);
	if (type == TYPE_VLAN) {
		p.has_vlan = true;
		p.vlan_tci = (uint16_t)packet_be16(bytes + 14);
		type = packet_be16(bytes + 16);
		p.l3 = 18;
	}
	if (type == TYPE_IPV4)
		parse_ipv4(bytes, n_bytes, &p);
	else if (type == TYPE_IPV6)
		parse_ipv6(bytes, n_bytes, &p);
	if ((p.protocol == TCP && p.end - p.l4 < 20) ||
	    (p.protocol == UDP && p.end - p.l4 < 8) ||
	    (p.protocol != TCP && p.protocol != UDP))
		p.protocol = 0;
	return p;
}

uint16_t packet_sum(const uint8_t *bytes, uint32_t n_bytes, uint32_t sum)
{
	uint64_t total = sum;

	for (uint32_t i = 0; i + 1 < n_bytes; i += 2)
		total += packet_be16(bytes + i);
	if (n_bytes % 2 != 0)
		total += (uint32_t)bytes[n_bytes - 1] << 8;
	while (total >> 16 != 0)
		total = (total & 0xffff) + (total >> 16);
	return (uint16_t)total;
}

uint32_t packet_pseudo_sum(const uint8_t *bytes, const struct packet *p,
			   uint32_t protocol, uint32_t n_bytes)
{
	const uint32_t sum = protocol + (n_bytes >> 16) + (n_bytes & 0xffff);

	if (p->version == 4)
		return packet_sum(bytes + p->l3 + 12, 8, sum);
	return packet_sum(bytes + p->l3 + 8, 32, sum);
}

bool packet_ip_sum_is_right(const uint8_t *bytes, const struct packet *p)
{
	const uint8_t *ip = bytes + p->l3;

	return p->version != 4 ||
	       packet_sum(ip, (ip[0] & 15u) * 4, 0) == 0xffff;
}

bool packet_l4_sum_is_right(const uint8_t *bytes, const struct packet *p)
{
	const uint32_t n_bytes = p->end - p->l4;

	if (p->protocol == UDP && p->version == 4 &&
	    packet_be16(bytes + p->l4 + 6) == 0)
		return true;
	return packet_sum(bytes + p->l4, n_bytes,
			  packet_pseudo_sum(bytes, p, p->protocol, n_bytes)) ==
	       0xffff;
}

uint32_t packet_hash(const uint8_t *key, const uint8_t *bytes,
		     const struct packet *p, bool with_ports)
{
	const uint32_t n_address = p->version == 4 ? 8 : 32;
	uint8_t input[36];
	uint32_t hash = 0, n = n_address;
	uint32_t window = packet_be32(key);

	memcpy(input, bytes + p->l3 + (p->version == 4 ? 12 : 8), n_address);
	if (with_ports) {
		memcpy(input + n, bytes + p->l4, 4);
		n += 4;
	}
	for (uint32_t i = 0; i < 8 * n; i++) {
		const uint32_t next = i + 32; /* bit of the key */

		if (input[i / 8] >> (7 - i % 8) & 1)
			hash ^= window;
		window = window << 1 | (key[next / 8] >> (7 - next % 8) & 1u);
	}
	return hash;
}

uint32_t packet_fcs(const uint8_t *bytes, uint32_t n_bytes)
{
	uint32_t crc = 0xffffffff;

	for (uint32_t i = 0; i < n_bytes; i++) {
		crc ^= bytes[i];
		for (int k = 0; k < 8; k++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
	}
	return ~crc;
}

static void make_ipv4(uint8_t *ip, uint32_t protocol, uint32_t n_bytes)
{
	ip[0] = 0x45;
	packet_put16(ip + 2, n_bytes);
	packet_put16(ip + 4, 0x1234);
	ip[8] = 64;
	ip[9] = (uint8_t)protocol;
	packet_put32(ip + 12, 0x420995bb); /* 66.9.149.187 */
	packet_put32(ip + 16, 0xa18e6450); /* 161.142.100.80 */
	packet_put16(ip + 10, (uint16_t)~packet_sum(ip, 20, 0));
}

static void make_ipv6(uint8_t *ip, uint32_t protocol, uint32_t n_payload)
{
	ip[0] = 0x60;
	packet_put16(ip + 4, n_payload);
	ip[6] = (uint8_t)protocol;
	ip[7] = 64;
	for (uint32_t i = 0; i < 32; i++)
		ip[8 + i] = (uint8_t)(i * 7 + 1);
}

uint32_t packet_make(uint8_t *bytes, const uint8_t mac[6], uint32_t version,
		     uint32_t protocol, uint32_t n_payload)
{
	const uint32_t n_l4 = (protocol == TCP ? 20 : 8) + n_payload;
	const uint32_t n_ip = version == 4 ? 20 : 40;
	uint8_t *ip = bytes + 14, *l4 = ip + n_ip;
	struct packet p;

	memset(bytes, 0, 14 + n_ip + n_l4);
	memcpy(bytes, mac, 6);
	bytes[6] = 2;
	packet_put16(bytes + 12, version == 4 ? TYPE_IPV4 : TYPE_IPV6);
	if (version == 4)
		make_ipv4(ip, protocol, n_ip + n_l4);
	else
		make_ipv6(ip, protocol, n_l4);
	packet_put16(l4, 2794);
	packet_put16(l4 + 2, 1766);
	if (protocol == TCP) {
		packet_put32(l4 + 4, 0xfffffff0);
		l4[12] = 0x50;
		l4[13] = 0x19; /* FIN, PSH, ACK */
	} else {
		packet_put16(l4 + 4, n_l4);
	}
	for (uint32_t i = 0; i < n_payload; i++)
		l4[n_l4 - n_payload + i] = (uint8_t)(i * 31 + i / 256);
	p = packet_parse(bytes, 14 + n_ip + n_l4);
	packet_put16(l4 + (protocol == TCP ? 16 : 6),
		     (uint16_t)~packet_sum(
			     l4, n_l4,
			     packet_pseudo_sum(bytes, &p, protocol, n_l4)));
	return 14 + n_ip + n_l4;
}

void packet_leave_partial(uint8_t *bytes, uint32_t n_bytes, bool with_length)
{
	const struct packet p = packet_parse(bytes, n_bytes);
	const uint32_t n_l4 = with_length ? p.end - p.l4 : 0;

	packet_put16(
		bytes + p.l4 + (p.protocol == TCP ? 16 : 6),
		packet_sum(bytes, 0,
			   packet_pseudo_sum(bytes, &p, p.protocol, n_l4)));
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC's view of a packet: where its headers are, whether its checksums are
 * right, its RSS hash. Independent of lib/net, so that a mistake there shows
 * here.
 */
#ifndef SUPPORT_PACKET_H
#define SUPPORT_PACKET_H

#include <stdbool.h>
#include <stdint.h>

struct packet {
	uint32_t l3;       /* bytes before the IP header; 14 or 18 */
	uint32_t version;  /* 4, 6; 0: not IP */
	uint32_t l4;       /* bytes before the L4 header; 0: none */
	uint32_t protocol; /* 6 TCP, 17 UDP; 0: another, or a fragment */
	uint32_t end;      /* of the IP packet; what follows is padding */
	uint16_t vlan_tci;
	bool has_vlan;
};

struct packet packet_parse(const uint8_t *bytes, uint32_t n_bytes);
/* Ones' complement sum of bytes (RFC 1071), added to @p sum. */
uint16_t packet_sum(const uint8_t *bytes, uint32_t n_bytes, uint32_t sum);
/* The pseudo-header's sum, with @p n_bytes as its length. */
uint32_t packet_pseudo_sum(const uint8_t *bytes, const struct packet *p,
			   uint32_t protocol, uint32_t n_bytes);
bool packet_ip_sum_is_right(const uint8_t *bytes, const struct packet *p);
/* A UDP packet over IPv4 without a checksum is right. */
bool packet_l4_sum_is_right(const uint8_t *bytes, const struct packet *p);

enum { PACKET_KEY_BYTES = 40 };

/* Toeplitz hash (Microsoft RSS) of addresses and, with_ports, ports. */
uint32_t packet_hash(const uint8_t *key, const uint8_t *bytes,
		     const struct packet *p, bool with_ports);

/*
 * Make a TCP or UDP packet over IPv4 or IPv6, with correct checksums; returns
 * its bytes. IPv4 addresses are those of Microsoft's RSS vectors.
 */
uint32_t packet_make(uint8_t *bytes, const uint8_t mac[6], uint32_t version,
		     uint32_t protocol, uint32_t n_payload);

/*
 * Leave a partial checksum (MR_FRAME_CSUM_PARTIAL) as drivers get it: the
 * pseudo-header's sum, with or without its length.
 */
void packet_leave_partial(uint8_t *bytes, uint32_t n_bytes, bool with_length);

/* FCS of a frame: CRC-32 of IEEE 802.3. */
uint32_t packet_fcs(const uint8_t *bytes, uint32_t n_bytes);

static inline uint32_t packet_be16(const uint8_t *bytes)
{
	return (uint32_t)bytes[0] << 8 | bytes[1];
}

static inline uint32_t packet_be32(const uint8_t *bytes)
{
	return packet_be16(bytes) << 16 | packet_be16(bytes + 2);
}

static inline void packet_put16(uint8_t *bytes, uint32_t value)
{
	bytes[0] = (uint8_t)(value >> 8);
	bytes[1] = (uint8_t)value;
}

static inline void packet_put32(uint8_t *bytes, uint32_t value)
{
	packet_put16(bytes, value >> 16);
	packet_put16(bytes + 2, value);
}

#endif

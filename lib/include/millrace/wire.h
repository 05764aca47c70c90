/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_WIRE_H
#define MILLRACE_WIRE_H

#include <stdint.h>
#include <string.h>

#include <millrace/api.h>

MR_BEGIN_DECLS

/**
 * @file
 * Wire-format headers, and incremental checksum updates.
 *
 * Members of several bytes are in network order. The structs have no alignment,
 * so a pointer into a frame may be cast to one of them once its length has been
 * checked, for instance by mr_net_parse().
 */

/** EtherTypes, in host order. */
enum {
	MR_ETHER_IPV4 = 0x0800,
	MR_ETHER_ARP = 0x0806,
	MR_ETHER_VLAN = 0x8100,
	MR_ETHER_IPV6 = 0x86dd,
};

/** IEEE 802.3. */
struct mr_eth {
	uint8_t dst[6], src[6];
	uint16_t type;
} __attribute__((packed));

/** IEEE 802.1Q: what follows the EtherType MR_ETHER_VLAN. */
struct mr_vlan {
	uint16_t tci;
	uint16_t type;
} __attribute__((packed));

/** RFC 826, of IPv4 over Ethernet. */
struct mr_arp {
	uint16_t hardware;                      /**< 1: Ethernet */
	uint16_t protocol;                      /**< MR_ETHER_IPV4 */
	uint8_t hardware_bytes, protocol_bytes; /**< 6, 4 */
	uint16_t op;                            /**< 1: request, 2: reply */
	uint8_t sender_mac[6];
	uint32_t sender;
	uint8_t target_mac[6];
	uint32_t target;
} __attribute__((packed));

enum { MR_ARP_REQUEST = 1, MR_ARP_REPLY = 2 };

/** RFC 791, without options. */
struct mr_ipv4 {
	uint8_t version_ihl; /**< 0x45: no options */
	uint8_t tos;
	uint16_t total_bytes; /**< header included */
	uint16_t id;
	uint16_t fragment; /**< MR_IPV4_*, and the offset in units of 8 bytes */
	uint8_t ttl;
	uint8_t proto;
	uint16_t csum;
	uint32_t src, dst;
} __attribute__((packed));

/** Bits of mr_ipv4.fragment, in host order. */
enum {
	MR_IPV4_DF = 0x4000,
	MR_IPV4_MF = 0x2000,
	MR_IPV4_OFFSET = 0x1fff,
};

/** RFC 8200. */
struct mr_ipv6 {
	uint32_t version_class_flow; /**< 4, 8 and 20 bits */
	uint16_t payload_bytes;      /**< extension headers included */
	uint8_t next;                /**< IPPROTO_* of what follows */
	uint8_t hop_limit;
	uint8_t src[16], dst[16];
} __attribute__((packed));

/** RFC 768. */
struct mr_udp {
	uint16_t src, dst;
	uint16_t n_bytes; /**< header included */
	uint16_t csum;    /**< 0: none */
} __attribute__((packed));

/** RFC 9293, without options. */
struct mr_tcp {
	uint16_t src, dst;
	uint32_t seq, ack;
	uint8_t offset; /**< of the data, in 4-byte units, upper 4 bits */
	uint8_t flags;  /**< MR_TCP_* */
	uint16_t window;
	uint16_t csum;
	uint16_t urgent;
} __attribute__((packed));

enum {
	MR_TCP_FIN = 1,
	MR_TCP_SYN = 2,
	MR_TCP_RST = 4,
	MR_TCP_ACK = 16,
};

/** RFC 792, RFC 4443. In a query, id and seq; errors use them differently. */
struct mr_icmp {
	uint8_t type, code;
	uint16_t csum;
	uint16_t id, seq;
} __attribute__((packed));

/** Types of ICMP and ICMPv6. */
enum {
	MR_ICMP_ECHO_REPLY = 0,
	MR_ICMP_ECHO = 8,
	MR_ICMPV6_ECHO = 128,
	MR_ICMPV6_ECHO_REPLY = 129,
	MR_ICMPV6_SOLICITATION = 135,
	MR_ICMPV6_ADVERTISEMENT = 136,
};

/** RFC 4861, 4.3 and 4.4: of neighbours; options follow. */
struct mr_neighbour {
	uint8_t type, code;
	uint16_t csum;
	uint32_t flags; /**< MR_NEIGHBOUR_*; 0 in a solicitation */
	uint8_t target[16];
} __attribute__((packed));

/** Bits of mr_neighbour.flags, in host order; types of its options. */
enum {
	MR_NEIGHBOUR_OVERRIDE = 1 << 29,
	MR_NEIGHBOUR_SOLICITED = 1 << 30,
	MR_NEIGHBOUR_SOURCE_MAC = 1,
	MR_NEIGHBOUR_TARGET_MAC = 2,
};
#define MR_NEIGHBOUR_ROUTER (UINT32_C(1) << 31)

/**
 * The change of a sum when a 16-bit word is replaced: -before + after, in ones'
 * complement.
 *
 * @param before, after  as in memory
 *
 * @return a sum for mr_csum_fix(), alone or added to others; 0 only from 0xffff
 *         to 0, which are equal in ones' complement
 *
 * Thread: any. Source: RFC 1624.
 */
static inline uint32_t mr_csum_delta16(uint16_t before, uint16_t after)
{
	return (uint32_t)(uint16_t)~before + after;
}

/**
 * As mr_csum_delta16(), for a 32-bit word such as an address.
 *
 * @return the same; up to eight of these may be added in 32 bits
 *
 * Thread: any. Source: RFC 1624.
 */
static inline uint32_t mr_csum_delta32(uint32_t before, uint32_t after)
{
	return mr_csum_delta16((uint16_t)before, (uint16_t)after) +
	       mr_csum_delta16((uint16_t)(before >> 16),
			       (uint16_t)(after >> 16));
}

/**
 * As mr_csum_delta16(), for the 16 bytes of an IPv6 address.
 *
 * @return the same; up to 4000 of these may be added in 32 bits
 *
 * Thread: any. Source: RFC 1624.
 */
static inline uint32_t mr_csum_delta128(const uint8_t *before,
					const uint8_t *after)
{
	uint16_t from[8], to[8];
	uint32_t delta = 0;

	memcpy(from, before, sizeof(from));
	memcpy(to, after, sizeof(to));
	for (int i = 0; i < 8; i++)
		delta += mr_csum_delta16(from[i], to[i]);
	return delta;
}

/**
 * Fold a short sum to 16 bits.
 *
 * @return in network order, not complemented
 *
 * Thread: any. Source: RFC 1071.
 */
static inline uint16_t mr_csum_fold32(uint32_t sum)
{
	sum = (sum & UINT16_MAX) + (sum >> 16);
	return (uint16_t)((sum & UINT16_MAX) + (sum >> 16));
}

/**
 * As mr_csum_fold(), inline: fold a sum of up to 2^32 32-bit words.
 *
 * @return as mr_csum_fold32()
 *
 * Thread: any. Source: RFC 1071.
 */
static inline uint16_t mr_csum_fold64(uint64_t sum)
{
	sum = (sum & UINT32_MAX) + (sum >> 32);
	sum = (sum & UINT32_MAX) + (sum >> 32);
	return mr_csum_fold32((uint32_t)sum);
}

/**
 * Update a checksum field after words that it covers were replaced. A wrong
 * checksum stays wrong.
 *
 * @param csum   the field: a complemented sum
 * @param delta  sum of mr_csum_delta16() and mr_csum_delta32()
 *
 * @return the field's new value. Correct for IPv4 and TCP, whose sums always
 *         cover a non-zero word; for others use mr_csum_fix_nonzero()
 *
 * Thread: any. Source: RFC 1624, equation 3.
 */
static inline uint16_t mr_csum_fix(uint16_t csum, uint32_t delta)
{
	return (uint16_t)~mr_csum_fold32((uint16_t)~csum + delta);
}

/**
 * As mr_csum_fix(), for a field in which 0 would be wrong: it returns 0xffff
 * instead, the other zero of ones' complement. In UDP, 0 means that there is no
 * checksum; UDP-Lite forbids it; and the checksum of an ICMP message without a
 * single bit set (an echo reply with identifier 0) is 0xffff.
 *
 * @return the field's new value, never 0
 *
 * Thread: any. Source: RFC 1624, equation 3; RFC 768; RFC 3828, 3.1; RFC 792.
 */
static inline uint16_t mr_csum_fix_nonzero(uint16_t csum, uint32_t delta)
{
	csum = mr_csum_fix(csum, delta);
	return csum != 0 ? csum : UINT16_MAX;
}

MR_END_DECLS

#endif

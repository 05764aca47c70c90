/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_NET_H
#define MILLRACE_NET_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/frame.h>

MR_BEGIN_DECLS

/**
 * @file
 * Header views and Internet checksums. Bytes from the wire are untrusted: every
 * function checks lengths, and none crashes.
 */

enum {
	MR_ETH_BYTES = 14,
	MR_ETH_MIN_BYTES = 60, /**< shortest frame without FCS */
	MR_VLAN_BYTES = 4,
};

/** Where the headers of a frame begin, as offsets from its first byte. */
struct mr_net_view {
	uint16_t ether_type; /**< host order, after at most two VLAN tags */
	uint16_t l3_bytes;   /**< offset of the layer-3 header; 0: none */
	uint16_t l4_bytes;   /**< offset of the layer-4 header; 0: none, or not
			      *   the first fragment */
	uint8_t l4_proto;    /**< IPPROTO_*; 0: none */
	uint8_t is_fragment; /**< 1: a fragment, including the first one */
	uint16_t l4_len_bytes; /**< layer-4 header and payload, according to
				*   layer 3 */
	uint16_t csum_bytes;   /**< offset of the TCP or UDP sum; 0: none */
	uint8_t is_routed;     /**< 1: an IPv6 header names another destination,
				*   and the checksum covers that one */
	uint8_t reserved[3];   /**< 0 */
};

/**
 * Find the headers of a frame.
 *
 * @param      bytes     first entry of the frame
 * @param      n_bytes   of that entry
 * @param      n_frame   bytes of the whole frame
 * @param[out] ret_view  always set; what is absent or does not fit is 0
 *
 * @return 0, or -EBADMSG if a header is truncated or inconsistent
 *
 * Owner: unchanged. Thread: any. Cost: reads the headers.
 * Source: IEEE 802.3, 802.1Q; RFC 791, RFC 8200 section 4.
 */
MR_API int mr_net_parse(const uint8_t *bytes, uint32_t n_bytes,
			uint32_t n_frame, struct mr_net_view *ret_view);

enum mr_tunnel_kind {
	MR_TUNNEL_VXLAN = 1, /**< UDP port 4789: RFC 7348 */
	MR_TUNNEL_GENEVE,    /**< UDP port 6081: RFC 8926 */
	MR_TUNNEL_GRE,       /**< version 0: RFC 2784, RFC 2890 */
};

/** A packet inside a packet. */
struct mr_net_tunnel {
	uint8_t kind;        /**< enum mr_tunnel_kind; 0: none */
	uint8_t is_ethernet; /**< 1: it begins with an Ethernet header */
	uint8_t has_id;      /**< 1: id is set */
	uint8_t reserved;
	uint16_t ether_type;      /**< of the inner packet, host order */
	uint16_t inner_bytes;     /**< where it begins in the frame */
	uint32_t id;              /**< VNI of VXLAN and GENEVE, key of GRE */
	struct mr_net_view inner; /**< offsets from the first byte of the
				   *   frame */
};

/**
 * Find the headers of the packet in a tunnel's packet.
 *
 * @param      bytes       first entry of the frame
 * @param      n_bytes     of that entry
 * @param      n_frame     bytes of the whole frame
 * @param      outer       from mr_net_parse() of the same bytes
 * @param[out] ret_tunnel  always set; kind is 0 unless the result is 0, or
 *                         -EBADMSG due to the inner headers
 *
 * @return 0, or
 *   -ENOENT   no known tunnel, or a fragment of the packet
 *   -EBADMSG  nothing follows its header, or an inner header is truncated or
 *             inconsistent
 *
 * Owner: unchanged. Thread: any. Cost: reads the headers.
 */
MR_API int mr_net_parse_tunnel(const uint8_t *bytes, uint32_t n_bytes,
			       uint32_t n_frame,
			       const struct mr_net_view *outer,
			       struct mr_net_tunnel *ret_tunnel);

/**
 * Add bytes to a ones' complement sum.
 *
 * @param bytes    any alignment; an odd length only in the last call of a sum
 * @param n_bytes  0 allowed
 * @param sum      of the preceding bytes, initially 0
 *
 * @return the sum, for the next call or mr_csum_fold()
 *
 * Owner: unchanged. Thread: any. Source: RFC 1071.
 */
MR_API uint64_t mr_csum_add(const uint8_t *bytes, uint32_t n_bytes,
			    uint64_t sum);

/**
 * Fold a sum to 16 bits, not complemented.
 *
 * @return the sum in network order
 *
 * Thread: any. Source: RFC 1071.
 */
MR_API uint16_t mr_csum_fold(uint64_t sum);

/**
 * The pseudo-header sum of a TCP or UDP packet.
 *
 * @param bytes  the frame; it contains the layer-3 header of @p view
 * @param view   from mr_net_parse(), with l4_bytes set
 *
 * @return folded, not complemented, in network order: what a stack that leaves
 *         the checksum to the device writes into its field
 *
 * Owner: unchanged. Thread: any. Source: RFC 793 3.1, RFC 768, RFC 8200 8.1.
 */
MR_API uint16_t mr_csum_pseudo(const uint8_t *bytes,
			       const struct mr_net_view *view);

/**
 * Sum bytes of a frame that may have several entries.
 *
 * @param base     mr_region_base() of the frame's region
 * @param frames   the whole frame
 * @param at       offset of the first byte in the frame
 * @param n_bytes  bytes past the end of the frame are left out
 *
 * @return the sum, as mr_csum_add() returns it: add it to others, then fold
 *
 * Owner: unchanged. Thread: any. Cost: reads the bytes. Source: RFC 1071.
 */
MR_API uint64_t mr_csum_frame(void *base, const struct mr_frame *frames,
			      uint32_t at, uint32_t n_bytes);

/**
 * Check the checksums of a packet: of IPv4's header, and of TCP, UDP, ICMP or
 * ICMPv6.
 *
 * @param base    mr_region_base() of the frame's region; for bytes from
 *                elsewhere, their address, and an entry with addr 0
 * @param frames  the whole frame
 * @param view    from mr_net_parse() or mr_net_parse_tunnel(), which returned 0
 *
 * @return 0: right, or there is none (UDP over IPv4);
 *   -EBADMSG    one is wrong, or only partial
 *   -ENOTSUP    a fragment, another protocol, a UDP length that is not IP's, an
 *               IPv6 packet that is to be routed further, or a layer-4 header
 *               that is not in the first entry; the header of IPv4 is right
 *
 * Owner: unchanged. Thread: any. Cost: reads the packet.
 * Source: RFC 791, 793, 768, 792, 4443; RFC 8200 8.1.
 */
MR_API int mr_csum_check(void *base, const struct mr_frame *frames,
			 const struct mr_net_view *view);

/**
 * Write the checksum of TCP, UDP, ICMP or ICMPv6, whatever the field contains.
 *
 * @param base, frames, view  as for mr_csum_check(); the frame is exclusively
 *                            owned, the layer-4 header in its first entry
 *
 * @return 0 or -ENOTSUP, as mr_csum_check(), with nothing changed
 *
 * Owner: unchanged. Thread: the owner's. Cost: reads the packet.
 */
MR_API int mr_csum_write(void *base, const struct mr_frame *frames,
			 const struct mr_net_view *view);

/**
 * Write the checksum of an IPv4 header.
 *
 * @param l3  the header, with its options
 *
 * Owner: unchanged. Thread: the owner's.
 */
MR_API void mr_csum_write_ipv4(void *l3);

/**
 * Swap the MAC addresses of a frame, to send it back.
 *
 * @param bytes  MR_ETH_BYTES or more; exclusively owned
 *
 * Owner: unchanged. Thread: the owner's.
 */
MR_API void mr_net_swap_macs(uint8_t *bytes);

/**
 * Swap the IP addresses of a packet. Checksums stay right.
 *
 * @param bytes  the frame, exclusively owned; it contains the layer-3 header
 * @param view   from mr_net_parse(), which returned 0. Nothing changes if it
 *               is not of an IP packet
 *
 * Owner: unchanged. Thread: the owner's.
 */
MR_API void mr_net_swap_addrs(uint8_t *bytes, const struct mr_net_view *view);

/**
 * Turn an echo request, ICMP or ICMPv6, into a reply: the type and its
 * checksum. A wrong checksum stays wrong. Addresses are the caller's task, as
 * mr_net_swap_addrs().
 *
 * @param bytes    the frame, exclusively owned
 * @param n_bytes  of its first entry
 * @param view     from mr_net_parse(), which returned 0
 *
 * @return 1, or 0, with nothing changed, if it is no echo request, or its
 *         header is not within @p n_bytes
 *
 * Owner: unchanged. Thread: the owner's. Source: RFC 792, RFC 4443.
 */
MR_API int mr_net_answer_echo(uint8_t *bytes, uint32_t n_bytes,
			      const struct mr_net_view *view);

/**
 * Turn an ARP request into the reply that the address asked for is at @p mac.
 *
 * @param bytes  the frame, exclusively owned, with the whole ARP packet
 * @param view   from mr_net_parse(), of a request for IPv4 over Ethernet
 * @param mac    6 bytes
 *
 * Owner: unchanged. Thread: the owner's. Source: RFC 826.
 */
MR_API void mr_net_answer_arp(uint8_t *bytes, const struct mr_net_view *view,
			      const uint8_t *mac);

/**
 * Count down the TTL or hop limit of a packet that a router forwards, after
 * checking what a router has to check: IPv4's header checksum, and that both
 * addresses belong to single hosts and are valid beyond their link.
 *
 * @param      bytes    the frame, exclusively owned, with the layer-3 header of
 *                      @p view
 * @param      view     from mr_net_parse(), which returned 0
 * @param[out] ret_dst  16 bytes: the destination, of IPv4 as an IPv4-mapped
 *                      address (RFC 4291, 2.5.5.2); always set if it is an IP
 *                      packet
 *
 * @return 0, or, with the packet unchanged,
 *   -ENOTSUP        it is no IP packet
 *   -EBADMSG        IPv4's header checksum is wrong
 *   -EADDRNOTAVAIL  an address must not be routed
 *   -ETIME          the TTL or hop limit is used up
 *
 * Owner: unchanged. Thread: the owner's. Source: RFC 1812 5.2.2, 5.3.1, 5.3.7.
 */
MR_API int mr_net_count_hop(uint8_t *bytes, const struct mr_net_view *view,
			    uint8_t *ret_dst);

/** What a neighbour says: that it has an address. */
struct mr_net_neighbour {
	uint8_t addr[16]; /**< of IPv4: IPv4-mapped */
	uint8_t mac[6];
	uint8_t is_reply; /**< 1: ARP reply, neighbour advertisement; 0:
			   * request, solicitation */
	uint8_t reserved;
};

/**
 * Read the MAC address of the neighbour that sent an ARP packet, a neighbour
 * solicitation or an advertisement.
 *
 * @param      base           mr_region_base() of the frame's region
 * @param      frames         the whole frame
 * @param      view           from mr_net_parse(), which returned 0
 * @param[out] ret_neighbour  set on success, unchanged on failure. Anybody may
 *                            have sent this
 *
 * @return 0, or
 *   -ENOENT   another frame, or one without such an address
 *   -EBADMSG  a hop limit, an option, a checksum or an address is wrong
 *
 * Owner: unchanged. Thread: any. Cost: reads the packet.
 * Source: RFC 826; RFC 4861 7.1.
 */
MR_API int mr_net_read_neighbour(void *base, const struct mr_frame *frames,
				 const struct mr_net_view *view,
				 struct mr_net_neighbour *ret_neighbour);

enum { MR_NET_ASK_BYTES = 86 }; /**< longest frame that asks a neighbour */

/**
 * Write a frame that asks for a neighbour's MAC address: an ARP request or a
 * neighbour solicitation, to all.
 *
 * @param bytes  MR_NET_ASK_BYTES or more; exclusively owned
 * @param mac    6 bytes: the sender's
 * @param own    16 bytes: the sender's address, of the family of @p addr
 * @param addr   16 bytes: as in struct mr_net_neighbour
 *
 * @return bytes of the frame
 *
 * Owner: unchanged. Thread: the owner's. Source: RFC 826; RFC 4861 7.2.2.
 */
MR_API uint32_t mr_net_ask_neighbour(uint8_t *bytes, const uint8_t *mac,
				     const uint8_t *own, const uint8_t *addr);

MR_END_DECLS

#endif

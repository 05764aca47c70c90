/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_FLOW_WAY_H
#define MILLRACE_EXPERIMENTAL_FLOW_WAY_H

#include <stdint.h>

/**
 * @file
 * The state of a flow (MR_RULE_FLOW) that the driver and the application share:
 * a cache line per direction, in memory that both have mapped. The driver's half
 * may be a program in the kernel, so this header includes nothing else.
 *
 * Each field has one writer at a time. The application writes its fields
 * atomically; they take effect with the next frame.
 *
 * Order: each frame of the flow that the driver does not forward itself gets a
 * numbered ticket, struct mr_flow_ticket. The driver forwards no further frame
 * of this direction until the application confirms the last number, which it
 * does once that frame has left. Frames therefore stay in order, whatever the
 * reason that one goes through the application. Meanwhile the driver does not
 * change its fields below. If a direction is never quiet for that long, the
 * driver forwards it after MR_FLOW_FORCE_MS anyway, which may reorder its
 * frames once.
 *
 * Fragments and packets with IP options get no ticket.
 */

enum {
	/** mr_flow_end.flags: give packets without DF an IP id of ours, as a
	 * translator must: RFC 6864 5.3.1. */
	MR_FLOW_NEW_ID = 1,
	/** The application does not track the connection: windows of TCP
	 * segments are not checked. SYN, FIN and RST still go up. */
	MR_FLOW_UNTRACKED = 2,
};

/** mr_flow_way.hop: unknown. */
#define MR_FLOW_HOP_NONE UINT32_MAX

enum {
	MR_FLOW_HOP_BITS = 24, /**< above: mr_rules_hop() */
	MR_FLOW_WAYS = 2,
	MR_FLOW_FORCE_MS = 1000,
	MR_FLOW_IDS = 1 << 16, /**< length of mr_rules_old_ids() */
};

/** The sender of one direction of a TCP connection. */
struct mr_flow_end {
	uint32_t ack;    /**< newest that it sent */
	uint32_t end;    /**< after the last sequence number that it sent */
	uint16_t window; /**< largest that it offered, unscaled */
	uint8_t shift;   /**< of window, plus 1; 0: unknown, the largest */
	uint8_t flags;   /**< MR_FLOW_NEW_ID, MR_FLOW_UNTRACKED */
};

/** One direction of a flow. Addresses and ports in network order. */
struct mr_flow_way {
	uint32_t word;   /**< the driver's; upper bits: the rule's generation,
			  *   as in its id */
	uint32_t passed; /**< driver: number of the last ticket */
	uint32_t confirmed; /**< application: the last that has left */
	uint32_t n_frames;  /**< driver: forwarded; wraps */
	uint64_t seen_ns;   /**< driver: when last, CLOCK_MONOTONIC to a tick of
			     *   the kernel (1 to 10 ms); 0: never */
	/** What frames are sent with; set by mr_rules_add(). */
	uint32_t src, dst;
	uint16_t sport, dport;
	uint16_t addr_delta;    /**< to a sum over the addresses, RFC 1624... */
	uint16_t l4_delta;      /**< ...and over addresses and ports */
	uint32_t hop;           /**< application: mr_rules_hop() */
	struct mr_flow_end tcp; /**< the driver, or while a ticket is not
				 *   confirmed, the application */
	uint32_t since_ms;      /**< driver: first ticket not yet confirmed */
	uint32_t origin; /**< driver: where it arrives, set when added */
};

/** Precedes the first byte of a frame. */
struct mr_flow_ticket {
	uint32_t magic; /**< of the set */
	uint32_t id;    /**< of the rule */
	uint32_t way;   /**< 0: from mr_rule.port; 1: back */
	uint32_t number;
};

/** The IP id that a packet had before MR_FLOW_NEW_ID. Its sender expects this
 * id in an ICMP error that quotes the packet. */
struct mr_flow_old_id {
	uint16_t id;   /**< network order */
	uint16_t mark; /**< mr_flow_id_mark() of the packet as it arrived */
};

/**
 * Hash the flow of a packet. It tells whether an id is still that of the
 * packet: an id is used again after at most 65536 packets.
 *
 * @return a hash of the addresses, network order, and the protocol
 *
 * Thread: any. Cost: some instructions.
 */
static inline uint16_t mr_flow_id_mark(uint32_t src, uint32_t dst,
				       uint8_t proto)
{
	return (uint16_t)(((src ^ proto) * 0x9e3779b1u ^ dst * 0x85ebca6bu) >>
			  16);
}

/**
 * @return the window, in bytes, of an end with these fields
 *
 * Source: RFC 7323 2.3. Thread: any. Cost: a shift.
 */
static inline uint32_t mr_flow_window(uint16_t window, uint8_t shift)
{
	if (shift == 0)
		return (uint32_t)UINT16_MAX << 14;
	return (uint32_t)window << (shift - 1);
}

/**
 * Check that a segment without RST is where its receiver expects it: in the
 * window that begins at @p ack, or a retransmission at most one window before.
 *
 * @return 1 or 0
 *
 * Source: RFC 9293 3.10.7.4, RFC 5961 5.2. Thread: any. Cost: some
 * instructions.
 */
static inline int mr_flow_fits(uint32_t ack, uint32_t window, uint32_t seq,
			       uint32_t n_bytes)
{
	const uint32_t past = window > UINT16_MAX ? window : UINT16_MAX;
	const uint32_t ahead = seq - ack;

	return ahead <= window || ahead + n_bytes + past <= past + window;
}

#endif

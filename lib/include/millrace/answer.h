/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_ANSWER_H
#define MILLRACE_ANSWER_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/frame.h>

MR_BEGIN_DECLS

/**
 * @file
 * Answers to ARP requests, neighbour solicitations and pings, for a data plane
 * whose addresses the kernel does not have.
 *
 *     n = mr_rx_burst(rxq, cache, frames, BURST);
 *     n = mr_answer_burst(answer, frames, NULL, n, &n_replies);
 *     mr_tx_burst(txq, cache, frames + n, n_replies);
 *     ... the other frames, of n entries ...
 *
 * For its addresses, it answers ARP requests and neighbour solicitations,
 * including probes for duplicate addresses, and ICMP and ICMPv6 echo requests
 * of any length. It leaves the rest to the program: fragments, packets with a
 * source route or an IPv6 routing header with segments left, echo requests to a
 * group, frames to another MAC address, and frames whose headers are not in
 * their first entry. A router tells senders why it drops their packets:
 * mr_answer_error().
 */

struct mr_answer;
struct mr_cache;
struct mr_neighbours;

/** What mr_answer_burst() did with frames. Names: mr_answer_name(). */
enum mr_answer_count {
	MR_ANSWER_ARP, /**< these four are answered */
	MR_ANSWER_SOLICITATION,
	MR_ANSWER_ECHO,
	MR_ANSWER_ECHO6,
	MR_ANSWER_LIMITED,   /**< these three are freed; over the rate */
	MR_ANSWER_MALFORMED, /**< to us, but wrong: a checksum, an option, or
			      *   a source that nobody can answer */
	MR_ANSWER_NO_PAGE,   /**< no page for a copy of a shared frame, or no
			      *   room for an option after the frame */
	MR_ANSWER_ERROR,     /**< these two: mr_answer_error() */
	MR_ANSWER_ERROR_LIMITED, /**< over the rate */
	MR_ANSWER_LEARNT, /**< freed: a neighbour's reply to us, if there are
			   *   config->neighbours */
	MR_ANSWER_COUNTS,
};

enum { MR_ANSWER_ADDRS_MAX = 1024 }; /**< IPv4 and IPv6 each */

/** Zero is the default of each member but size and mac. */
struct mr_answer_config {
	uint32_t size;     /**< sizeof(struct mr_answer_config) */
	uint8_t mac[6];    /**< to answer with: mr_port_info.mac */
	uint16_t vlans[2]; /**< only frames with these tags, the outer one
			    *   first; 0: no such tag */
	uint16_t reserved;
	uint32_t n_ipv4; /**< addresses, 0..MR_ANSWER_ADDRS_MAX */
	uint32_t n_ipv6;
	const uint32_t *ipv4; /**< in network order */
	const uint8_t (*ipv6)[16];
	uint32_t per_s;     /**< most answers per second, to neighbours and to
			     *   pings each, and most errors; 0: 1000 */
	uint32_t burst;     /**< most of them at once; 0: 50 */
	uint32_t is_router; /**< 1: tell IPv6 neighbours so */
	uint32_t link;      /**< the port's, in neighbours */
	/** The table that learns from ARP and neighbour discovery; it must
	 * outlive the result. Without addresses above, the MAC address is that
	 * of the link, and the addresses those of all links of the table,
	 * beginning with this one. NULL: replies are left to the program. */
	struct mr_neighbours *neighbours;
};

/** Frames, by what became of them. */
struct mr_answer_stats {
	uint32_t size; /**< sizeof(struct mr_answer_stats), set by the caller */
	uint32_t reserved;
	uint64_t counts[16]; /**< by enum mr_answer_count */
};

/**
 * Prepare to answer for addresses.
 *
 * @param      cache       whose thread will call mr_answer_burst(), for frames
 *                         of its pool; it must outlive the result
 * @param      config      copied, with the addresses
 * @param[out] ret_answer  set on success, unchanged on failure
 *
 * @return 0, or
 *   -EINVAL  config->size, too many addresses, a MAC or IP address of a group,
 *            a VLAN or a link that does not exist
 *   -ENOMEM  no memory
 *
 * Owner: the caller, of the result. Thread: any.
 */
MR_API int mr_answer_create(struct mr_cache *cache,
			    const struct mr_answer_config *config,
			    struct mr_answer **ret_answer,
			    struct mr_reason *reterr_reason);

/** Free it; NULL is allowed. Owner: nobody. Thread: the last user. */
MR_API void mr_answer_destroy(struct mr_answer *answer);

/**
 * Turn the requests among frames into their answers, in place.
 *
 * Afterwards the array begins with the frames that are left, unchanged and in
 * order, followed by the answers. Requests that are over the rate, malformed,
 * or without a page for the answer are freed and counted.
 * An answer goes to the sender's MAC address, with the VLAN tags of its
 * request, in the frame or in the metadata; its checksums are complete. A
 * shared frame is copied first. Answers have no IP options or IPv6 extension
 * headers.
 *
 * @param[in,out] frames         @p n entries; an incomplete frame at the end is
 *                               left
 * @param[in,out] metas          as from mr_rx_burst_meta(), moved with the
 *                               frames; NULL: no frame has metadata
 * @param         n              entries, 0 allowed
 * @param[out]    ret_n_replies  entries of the answers
 *
 * @return entries that are left; [return, return + *ret_n_replies) are answers
 *
 * Owner:  the caller, of both; the pool, of freed frames.
 * Thread: the one that uses the cache.
 * Cost:   reads the first header of each frame, and the further ones of ARP and
 *         ICMP; searches the addresses for each request. No lock, no system
 *         call; reads the context's clock once per burst with a request.
 * Source: RFC 826, RFC 5227 2.1.1; RFC 792, RFC 1122 3.2.2.6; RFC 4443 4.2; RFC
 *         4861 7.1.1 and 7.2.4; RFC 6980.
 */
MR_API uint32_t mr_answer_burst(struct mr_answer *answer,
				struct mr_frame *frames, struct mr_meta *metas,
				uint32_t n, uint32_t *ret_n_replies);

/** What an ICMP or ICMPv6 error says about a frame that is not forwarded. */
enum mr_error {
	MR_ERROR_TTL, /**< the TTL or hop limit is used up */
	MR_ERROR_NO_ROUTE,
	MR_ERROR_NO_HOST, /**< the next hop does not answer */
	MR_ERROR_TOO_BIG, /**< for the MTU of the next hop's link */
	MR_ERROR_NO_PORT,
	MR_ERROR_PROHIBITED,
};

/**
 * Turn a frame into the ICMP or ICMPv6 error about it, in place: it goes to the
 * sender's MAC address, from our first address of its family, with the frame's
 * VLAN tags and complete checksums.
 *
 * @param[in,out] frames     a whole frame, which was sent to our MAC address
 * @param[in,out] meta       of it, or NULL
 * @param         n          its entries
 * @param         mtu_bytes  of the next hop's link; only MR_ERROR_TOO_BIG says
 *                           it
 *
 * @return 1: the first entry is the error, its only entry; or 0, with the frame
 *         unchanged: errors are not sent about errors, later fragments, frames
 *         to or from a group, packets without payload, or those of a family
 *         in which we have no address; or the rate is exceeded, there is too
 *         little headroom, or no page for a copy of a shared frame
 *
 * Owner:  the caller, of the frame; the pool, of its other entries.
 * Thread: the one that uses the cache.
 * Cost:   reads the packet up to 576 or 1280 bytes, and the context's clock.
 * Source: RFC 792, RFC 1812 4.3.2, RFC 1191 4; RFC 4443 2.4 and 3.
 */
MR_API int mr_answer_error(struct mr_answer *answer, struct mr_frame *frames,
			   struct mr_meta *meta, uint32_t n,
			   enum mr_error error, uint32_t mtu_bytes);

/**
 * Copy the counters.
 *
 * @return 0, or -EINVAL if stats->size, which the caller sets, is 0
 *
 * Owner: unchanged. Thread: any. Cost: negligible.
 */
MR_API int mr_answer_stats(const struct mr_answer *answer,
			   struct mr_answer_stats *stats);

/** @return the name of count @p i; NULL at the end. Thread: any. */
MR_API const char *mr_answer_name(uint32_t i);

MR_END_DECLS

#endif

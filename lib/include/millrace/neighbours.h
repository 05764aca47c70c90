/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_NEIGHBOURS_H
#define MILLRACE_NEIGHBOURS_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * The MAC addresses of next hops, for IPv4 and IPv6, in one table for all
 * workers.
 *
 *     frames --> mr_net_read_neighbour() --> mr_neighbours_learn()
 *                                                   |
 *     packets --> mr_neighbours_find() <------------+
 *                   |            |
 *             MAC address,   a frame that asks for it
 *
 * The table holds no frames and has no timer: it asks only when there is a
 * packet to send. A neighbour that does not answer is asked each second; after
 * three questions, it counts as unreachable. One that is known is asked again
 * after 30 s, and forgotten if it does not answer three times. A slot that was
 * not used for a minute, or for three seconds if its neighbour is unknown, may
 * be given to another neighbour.
 *
 * Hosts on a link can fill the table: by asking for our address from many
 * addresses, or by sending to many through us. Known neighbours stay.
 *
 * Finding a known neighbour takes no lock; everything else locks a mutex for a
 * moment.
 */

struct mr_cache;
struct mr_ctx;
struct mr_frame;
struct mr_neighbours;
struct mr_net_neighbour;

enum { MR_NEIGHBOURS_MAX = 1 << 20, MR_NEIGHBOURS_LINKS_MAX = 65535 };

/** A link with neighbours: a port, for instance. */
struct mr_neighbours_link {
	uint8_t mac[6]; /**< ours: the sender of questions */
	uint8_t reserved[2];
	uint8_t own[2][16]; /**< our addresses, which ask: of IPv6, and of IPv4,
			     *   IPv4-mapped; zero: none, and no next hops of
			     *   that family */
};

/**
 * Create an empty table.
 *
 * @param      n_max    most neighbours, 1..MR_NEIGHBOURS_MAX
 * @param      links    copied
 * @param      n_links  1..MR_NEIGHBOURS_LINKS_MAX
 * @param[out] ret_neighbours  set on success, unchanged on failure
 *
 * @return 0, -EINVAL for a number out of range, -ENOMEM, or -EIO: the kernel
 *         has no random numbers yet
 *
 * Owner: the caller, of the table. Thread: any.
 * Cost:  takes 160 bytes per neighbour.
 */
MR_API int mr_neighbours_create(struct mr_ctx *ctx, uint32_t n_max,
				const struct mr_neighbours_link *links,
				uint32_t n_links,
				struct mr_neighbours **ret_neighbours,
				struct mr_reason *reterr_reason);

/** Free the table; NULL is allowed. Owner: nobody. Thread: the last user. */
MR_API void mr_neighbours_destroy(struct mr_neighbours *neighbours);

/**
 * Find the MAC address of a next hop.
 *
 * @param      cache         for the question
 * @param      link          index of its link
 * @param      addr          16 bytes, as in struct mr_net_neighbour
 * @param      now_ns        of a clock that does not go back, such as
 *                           mr_ctx_now_ns()
 * @param[out] ret_mac       6 bytes; unchanged unless the result is 0
 * @param[out] ret_question  a frame to send on the link now; of 0 bytes: none
 *
 * @return 0, or
 *   -EAGAIN        it has not answered yet: drop the packet
 *   -EHOSTUNREACH  it did not answer three times: drop the packet, and tell its
 *                  sender
 *   -EADDRINUSE    it is an address of ours
 *   -ENOSPC        there are too many neighbours
 *
 * Owner:  the caller, of the question.
 * Thread: any; the one that uses @p cache.
 * Cost:   a cache miss or two if it is known.
 */
MR_API int mr_neighbours_find(struct mr_neighbours *neighbours,
			      struct mr_cache *cache, uint32_t link,
			      const uint8_t *addr, uint64_t now_ns,
			      uint8_t *ret_mac, struct mr_frame *ret_question);

/**
 * Note the MAC address of a neighbour.
 *
 * @param link     index of the link that the frame came from
 * @param said     from mr_net_read_neighbour()
 * @param may_add  1: it asked for our address, so it will get packets from us;
 *                 0: ignore it unless the table has it
 *
 * @return 0, -ENOENT: ignored, or -ENOSPC: there are too many
 *
 * Owner:  unchanged. Thread: any.
 * Source: RFC 826; RFC 4861 7.2.3 and 7.2.5.
 */
MR_API int mr_neighbours_learn(struct mr_neighbours *neighbours, uint32_t link,
			       const struct mr_net_neighbour *said, int may_add,
			       uint64_t now_ns);

MR_END_DECLS

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_LPM_H
#define MILLRACE_LPM_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>

MR_BEGIN_DECLS

/**
 * @file
 * Longest prefix match: from an IPv4 or IPv6 address to the next hop of the
 * most specific route.
 *
 *     first 24 bits --> entry: a next hop, or a group of 256 entries
 *                                               |
 *     next 8 bits ------------------------------+--> entry, and so on
 *
 * Most IPv4 routes of the Internet need one load, an IPv6 route of 48 bits
 * four. A burst of addresses overlaps them.
 *
 * One thread at a time adds and removes routes. Any number of threads look up
 * meanwhile, without locks: each sees a route before or after a change.
 */

struct mr_ctx;
struct mr_lpm;

enum {
	MR_LPM_HOP_MAX = (1 << 23) - 2, /**< largest next hop */
	MR_LPM_ROUTES_MAX = 1 << 24,
};

/** No route. */
#define MR_LPM_NONE UINT32_MAX

/**
 * Create a table without routes.
 *
 * It reserves address space, 96 MiB and up to 1 KiB for each byte of an address
 * after the third one and each of @p n_max routes, and takes memory as routes
 * are added. A forked child does not have the table.
 *
 * @param      addr_bytes  4: IPv4; 16: IPv6
 * @param      n_max       most routes, 1..MR_LPM_ROUTES_MAX
 * @param[out] ret_lpm     set on success, unchanged on failure
 *
 * @return 0, -EINVAL for a number out of range, -ENOMEM, or -EIO as
 *         mr_flow_create()
 *
 * Owner:  the caller, of the table. Thread: any.
 * Cost:   system calls.
 * Source: P. Gupta, S. Lin, N. McKeown, "Routing lookups in hardware at memory
 *         access speeds", 1998: DIR-24-8.
 */
MR_API int mr_lpm_create(struct mr_ctx *ctx, uint32_t addr_bytes,
			 uint32_t n_max, struct mr_lpm **ret_lpm,
			 struct mr_reason *reterr_reason);

/** Free the table; NULL is allowed. Owner: nobody. Thread: the last user. */
MR_API void mr_lpm_destroy(struct mr_lpm *lpm);

/**
 * Add a route, or change the next hop of an existing one.
 *
 * @param addr      of the network, in network order; bits after @p n_bits are
 *                  ignored
 * @param n_bits    length of the prefix, 0..8 * addr_bytes
 * @param next_hop  the program's number, 0..MR_LPM_HOP_MAX
 *
 * @return 0, or, with nothing changed,
 *   -EINVAL  n_bits or next_hop is out of range
 *   -ENOSPC  there are n_max routes
 *   -ENOMEM  no memory, or removed routes still hold it: mr_lpm_trim()
 *
 * Owner:  unchanged. Thread: one at a time, of calls that change the table.
 * Cost:   writes 2^(24 - n_bits) entries if n_bits is below 24, else 256 or
 *         fewer and, for each group that is missing, 1 KiB.
 */
MR_API int mr_lpm_add(struct mr_lpm *lpm, const void *addr, uint32_t n_bits,
		      uint32_t next_hop);

/**
 * Remove a route. Its addresses then match the next shorter one.
 * The memory is kept for other routes.
 *
 * @return 0, -EINVAL as mr_lpm_add(), or -ENOENT: there is no such route
 *
 * Owner: unchanged. Thread: as mr_lpm_add().
 * Cost:  as mr_lpm_add(), and a search for each length below n_bits.
 */
MR_API int mr_lpm_remove(struct mr_lpm *lpm, const void *addr, uint32_t n_bits);

/**
 * Free groups without routes for later use.
 *
 * @return how many
 *
 * Owner:  unchanged. Thread: one, while no other thread uses the table.
 * Cost:   reads the whole table.
 */
MR_API uint32_t mr_lpm_trim(struct mr_lpm *lpm);

/**
 * Find the next hop of one address.
 *
 * @param addr  in network order, any alignment
 *
 * @return it, or MR_LPM_NONE
 *
 * Owner:  unchanged. Thread: any.
 * Cost:   a load, and a dependent one for each 8 bits that routes there have
 *         after the first 24.
 */
MR_API uint32_t mr_lpm_find(const struct mr_lpm *lpm, const void *addr);

/**
 * Find the next hops of a burst of addresses.
 *
 * @param      addrs     @p n addresses in a row, in network order
 * @param      n         any number
 * @param[out] ret_hops  @p n next hops, MR_LPM_NONE where there is no route
 *
 * Owner:  unchanged. Thread: any.
 * Cost:   as mr_lpm_find(), with the loads overlapped.
 */
MR_API void mr_lpm_find_bulk(const struct mr_lpm *lpm, const void *addrs,
			     uint32_t n, uint32_t *ret_hops);

MR_END_DECLS

#endif

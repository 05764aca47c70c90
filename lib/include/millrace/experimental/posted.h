/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_POSTED_H
#define MILLRACE_EXPERIMENTAL_POSTED_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/experimental/parcel.h>

MR_BEGIN_DECLS

struct mr_pool;

/**
 * @file
 * References that stay in use while a pool is handed to another process
 * (<millrace/experimental/hand_over.h>): those of frames that a device has, or
 * that the program holds in queues. Pages that the new process does not claim
 * are free there.
 */

/**
 * Add references to a parcel, one per address. The frags may be of any kind.
 *
 * Owner: unchanged. Thread: as mr_port_open(). Cost: negligible per address.
 */
MR_API void mr_pool_put_posted(const struct mr_pool *pool,
			       struct mr_parcel *parcel, const char *name,
			       const uint64_t *addrs, uint32_t n);

/**
 * Take over the references, which are then freed as usual. Call this after
 * mr_dataplane_take_state(), or in a driver's resume().
 *
 * @param[out] ret_addrs  NULL, or room for @p n addresses, in their order
 * @param n               how many there must be, unless ret_addrs is NULL
 *
 * @return 0, -ENOENT, or -EPROTO: they contradict each other, or there is
 *         another number
 *
 * Owner: the caller, of the references. Thread: as mr_port_open().
 */
MR_API int mr_pool_claim_posted(struct mr_pool *pool,
				const struct mr_parcel *parcel,
				const char *name, uint64_t *ret_addrs,
				uint32_t n, struct mr_reason *reterr_reason);

MR_END_DECLS

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_FLOW_HAND_OVER_H
#define MILLRACE_EXPERIMENTAL_FLOW_HAND_OVER_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/ctx.h>
#include <millrace/error.h>
#include <millrace/experimental/parcel.h>
#include <millrace/flow.h>

MR_BEGIN_DECLS

/**
 * @file
 * Flow tables and wheels go to another process as they are
 * (<millrace/experimental/hand_over.h>): records keep their numbers. This costs
 * two copies of the memory in use, and no hash. Tables stay in memory of their
 * own, since memory that processes share gets no huge pages on most hosts.
 *
 * A name takes several entries of the parcel, with suffixes of two bytes.
 */

/**
 * Add a table to a parcel. It must not change until the parcel has been sent.
 *
 * Owner: unchanged. Thread: the table's. Cost: negligible.
 */
MR_API void mr_flow_put(const struct mr_flow_table *table,
			struct mr_parcel *parcel, const char *name);

/**
 * Create the table again.
 *
 * @param key_bytes, record_bytes  what it must have
 * @param[in,out] inout_table  in: NULL, or a table without records whose memory
 *        is used if it has room for as many. If it was created with an n_start
 *        of about the number of records, this call need not allocate
 *
 * @return 0, -ENOENT, -ENOMEM, or -EPROTO: the entries contradict each other,
 *         or have another layout
 *
 * Owner:  the caller, of *inout_table, which may be NULL after a failure.
 * Thread: any; the table then belongs to one at a time.
 * Cost:   as mr_flow_create(), and a copy.
 */
MR_API int mr_flow_take(struct mr_ctx *ctx, const struct mr_parcel *parcel,
			const char *name, uint32_t key_bytes,
			uint32_t record_bytes,
			struct mr_flow_table **inout_table,
			struct mr_reason *reterr_reason);

/** The same for a wheel. Owner: unchanged. Thread: the wheel's. */
MR_API void mr_wheel_put(const struct mr_wheel *wheel,
			 struct mr_parcel *parcel, const char *name);

/**
 * Create the wheel again. Ticks must be those of the same clock.
 *
 * @param[in,out] inout_wheel  as inout_table; it loses the ids that it has
 *
 * @return as mr_flow_take()
 *
 * Owner: the caller, of the wheel. Thread: any; then one at a time.
 */
MR_API int mr_wheel_take(struct mr_ctx *ctx, const struct mr_parcel *parcel,
			 const char *name, struct mr_wheel **inout_wheel,
			 struct mr_reason *reterr_reason);

MR_END_DECLS

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_EXPERIMENTAL_DRIVER_HAND_OVER_H
#define MILLRACE_EXPERIMENTAL_DRIVER_HAND_OVER_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/experimental/parcel.h>
#include <millrace/experimental/posted.h>

MR_BEGIN_DECLS

struct mr_pool;
struct mr_port;
struct mr_spec;

/**
 * @file
 * For authors of drivers: an open port is handed to another process in two
 * steps. While the old process forwards, the new one opens everything that does
 * not change (offer, take). Then the old one stops and sends the rest (give,
 * resume).
 *
 * If anything fails, the old process continues, so offer() and give() must
 * change nothing. While mr_port.is_away is set, the device belongs to the other
 * process: take() and resume() touch no ring and no setting, and close() frees
 * only what belongs to this process.
 */

struct mr_hand_over_ops {
	/** Add what does not change: fds, sizes, modes. 0, or -ENOTSUP with a
	 * reason if the port, as it was opened, cannot be handed over. */
	int (*offer)(struct mr_port *port, struct mr_parcel *parcel,
		     struct mr_reason *reterr_reason);
	/** Open the port from the parcel. Otherwise as mr_driver.open(). */
	int (*take)(struct mr_port *port, const struct mr_spec *spec,
		    struct mr_parcel *parcel, struct mr_reason *reterr_reason);
	/** The workers have stopped. Add positions in rings and the references
	 * that the device has. 0, or -errno with a reason. */
	int (*give)(struct mr_port *port, struct mr_parcel *parcel,
		    struct mr_reason *reterr_reason);
	/** Read the positions, and claim the references. */
	int (*resume)(struct mr_port *port, struct mr_parcel *parcel,
		      struct mr_reason *reterr_reason);
	/** After take(), if the old process was killed at any instruction: find
	 * positions and references in memory that both share, and claim them.
	 * The parcel is that of offer(). -EPROTO: they contradict each other.
	 * NULL: the port cannot be recovered. */
	int (*recover)(struct mr_port *port, struct mr_parcel *parcel,
		       struct mr_reason *reterr_reason);
};

/**
 * Add or read nothing: for drivers without state that only the process has.
 *
 * @return 0. Owner: unchanged. Thread: any.
 */
static inline int mr_hand_over_nothing(struct mr_port *port,
				       struct mr_parcel *parcel,
				       struct mr_reason *reterr_reason)
{
	(void)port;
	(void)parcel;
	(void)reterr_reason;
	return 0;
}

/**
 * Claim one reference to a page, for drivers that have a table of references
 * and do not need mr_pool_claim_posted().
 *
 * @return false if it is not a page of the pool, or has too many references
 *
 * Owner: the caller, of the reference. Thread: as mr_port_open().
 */
MR_API bool mr_pool_claim(struct mr_pool *pool, uint64_t addr);

MR_END_DECLS

#endif

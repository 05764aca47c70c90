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
 * For driver authors: an open port goes from one process to the next, in two
 * steps. While the old process forwards, the new one opens whatever does not
 * change (offer, take). Then the old one stops, and the rest follows (give,
 * resume).
 *
 * The old process goes on if anything fails, so offer() and give() change
 * nothing. Until mr_port.is_away is cleared, take() and resume() touch no ring
 * and no setting: the device belongs to the other process. close() of a port
 * with is_away frees only what belongs to this process.
 */

struct mr_hand_over_ops {
	/** Put what stays as it is: fds, sizes, modes. 0, or -ENOTSUP with a
	 * reason: the port cannot be handed over as it was opened. */
	int (*offer)(struct mr_port *port, struct mr_parcel *parcel,
		     struct mr_reason *reterr_reason);
	/** Open the port from it; otherwise the contract of mr_driver.open().
	 */
	int (*take)(struct mr_port *port, const struct mr_spec *spec,
		    struct mr_parcel *parcel, struct mr_reason *reterr_reason);
	/** The workers have stopped: put positions of rings and references that
	 * are posted. 0, or -errno with a reason. */
	int (*give)(struct mr_port *port, struct mr_parcel *parcel,
		    struct mr_reason *reterr_reason);
	/** Get them, and claim the references. */
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
 * Claim one reference to a page, as mr_pool_claim_posted() claims many, for
 * drivers with a table of their own.
 *
 * @return false: it is not a page of the pool, or has too many references
 *
 * Owner: the caller, of the reference. Thread: as mr_port_open().
 */
MR_API bool mr_pool_claim(struct mr_pool *pool, uint64_t addr);

MR_END_DECLS

#endif

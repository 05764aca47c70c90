/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules for what the forwarder has decided, so that the kernel forwards the
 * rest: in mode patch and drop one per port, in mode learn one per address of
 * the forwarding database, which stays the authority.
 *
 * A new address gets an inactive rule. It becomes active when it has held no
 * frame back for a while, so that the frames which user space still has are not
 * overtaken; one that is never quiet becomes active all the same after a
 * second, counted as forced.
 */
#ifndef OFFLOAD_H
#define OFFLOAD_H

#include <millrace/experimental/parcel.h>
#include <millrace/millrace.h>

#include "fdb.h"
#include "options.h"

struct offload;

struct offload_stats {
	uint64_t n_active, n_pending; /* rules */
	uint64_t forced;              /* made active without a pause */
	uint64_t full;                /* addresses that have no rule */
	struct offload_counts counts;
};

/*
 * is_taken_over: the set of the process before; offload_take() gets its rules.
 * 1: rules are in use, or may be once addresses are known; 0: they are not, and
 * stderr says why if the option is on auto; -errno with a reason.
 */
int offload_open(struct offload **ret_offload, const struct options *options,
		 struct mr_port *const *ports, uint32_t n_ports,
		 struct fdb *fdb, bool is_taken_over,
		 struct mr_reason *ret_error);
/* In mode learn: put the rules of stations; take them, once these are known. */
void offload_put(const struct offload *offload, struct mr_parcel *parcel);
int offload_take(struct offload *offload, const struct mr_parcel *parcel,
		 struct mr_reason *ret_error);
/* Frames reach the workers again, and the counters are final. */
void offload_stop(struct offload *offload);
/* NULL is allowed. */
void offload_close(struct offload *offload);

/* Readable when offload_poll() has something to do; -1: never. */
int offload_fd(const struct offload *offload);
/* Follow ports and addresses: now and then, and at each event of a port. */
void offload_poll(struct offload *offload, uint64_t now_ns);
/* Addresses whose frames only rules saw are not too old: before fdb_age(). */
void offload_refresh(struct offload *offload);
void offload_stats(struct offload *offload, struct offload_stats *ret_stats);

#endif

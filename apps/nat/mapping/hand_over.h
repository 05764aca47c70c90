/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mappings and sessions of a process for the one that takes its place. The
 * tables of a worker go as they lie into entries of a parcel: "0/...", if it is
 * worker 0. Ticks are those of a clock that both have.
 *
 * The next process makes copies. If it has the same configuration and as many
 * workers, they become its tables. Otherwise it enters the records of the
 * copies into tables of its own: what the configuration allows, as a reload
 * would. Limits do not count, and nothing is logged but what ends.
 *
 * Rules go along (rule.h): their set forwards meanwhile. If records are entered
 * one by one, rules end, and their sessions request others.
 */
#ifndef NAT_MAPPING_HAND_OVER_H
#define NAT_MAPPING_HAND_OVER_H

#include <millrace/experimental/parcel.h>

#include "map.h"

/* The tables stay as they are until the parcel was sent. */
void nat_maps_put(const struct nat_maps *maps, struct mr_parcel *parcel,
		  uint32_t worker_idx);

/* The same again, to be looked at: without a configuration. own: may have
 * memory for it. 0, or -errno with a reason: -EPROTO if an entry is damaged. */
int nat_maps_copy(struct nat_maps *own, const struct mr_parcel *parcel,
		  uint32_t worker_idx, struct nat_maps **ret_copy,
		  struct mr_reason *ret_why);

/* Add and remove the rules of a worker that is at rest. These four do nothing
 * if there are none. */
void nat_rules_settle(struct nat_maps *maps);
/* After that. */
void nat_rules_put(const struct nat_maps *maps, struct mr_parcel *parcel,
		   uint32_t worker_idx);
/* For the maps of nat_maps_copy(): rules in the set of own, which has room for
 * n_max. */
int nat_rules_copy(struct nat_maps *copy, const struct nat_maps *own,
		   uint32_t n_max, const struct mr_parcel *parcel,
		   uint32_t worker_idx, struct mr_reason *ret_why);
/* The copy's rules end. What they know goes to its records; call
 * nat_rules_settle() with the maps when the set is this process's. */
void nat_rules_end_copy(struct nat_maps *copy, struct nat_maps *to);

/*
 * Enter the copy of an old worker's tables into the maps of n workers, none
 * of which runs. It is destroyed. Returns how many mappings and sessions ended,
 * because the configuration, or the number of workers, does not allow them; and
 * whether records were entered one by one.
 */
uint32_t nat_maps_take(struct nat_maps *const *maps, uint32_t n,
		       struct nat_maps *copy, uint32_t now_s,
		       bool *ret_is_converted);

#endif

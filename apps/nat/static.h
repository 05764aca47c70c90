/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mappings that the configuration gives: port forwards, a mapping for each
 * port and protocol, and one-to-one, a mapping for all of an address. All
 * workers have all of them, since either end may be what a frame is steered by.
 */
#ifndef NAT_STATIC_H
#define NAT_STATIC_H

#include <millrace/flow.h>

#include "config.h"
#include "map.h"

struct nat_static {
	struct nat_tuple inside;
	struct nat_tuple outside;
	uint8_t flags; /* of the mapping */
	uint8_t reserved[7];
};

/* All of a configuration, by both ends. */
struct nat_static_set {
	struct mr_flow_table *by_inside;  /* struct nat_static */
	struct mr_flow_table *by_outside; /* struct nat_static_end */
	uint32_t n, n_one_to_ones;
};

struct nat_static_end {
	struct nat_tuple outside;
	struct nat_tuple inside;
};

/* -EINVAL if two of them have an end in common, -ENOMEM. */
int nat_static_set_init(struct nat_static_set *given, struct mr_ctx *ctx,
			const struct nat_config *config,
			struct mr_reason *reterr_why);
void nat_static_set_fini(struct nat_static_set *given);

static inline const struct nat_static *
nat_static_at(const struct nat_static_set *given, uint32_t id)
{
	return mr_flow_record(given->by_inside, id);
}

/* Make the mappings that are not there. 0 or -ENOMEM. */
int nat_static_set_make(struct nat_maps *maps,
			const struct nat_static_set *given,
			struct mr_reason *reterr_why);

/* Enter the external end, and what follows from it for who is behind it.
 * false: it is not free, or there is no memory. */
bool nat_static_enter(struct nat_maps *maps, uint32_t id);

#endif

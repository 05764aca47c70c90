/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mappings from the configuration: port forwards, a mapping per port and
 * protocol, and one-to-one, a mapping for a whole address. All workers have all
 * of them, since frames may be steered by either end.
 */
#ifndef NAT_STATIC_H
#define NAT_STATIC_H

#include <millrace/flow.h>

#include "config/config.h"
#include "map.h"
#include "ports/external.h"

struct nat_static {
	struct nat_tuple inside;
	struct nat_tuple outside;
	uint8_t flags;  /* of the mapping */
	uint8_t is_new; /* created; its external end is not entered */
	uint8_t reserved[6];
};

/* Those of a configuration, by both ends. */
struct nat_static_set {
	struct mr_flow_table *by_inside;  /* struct nat_static */
	struct mr_flow_table *by_outside; /* struct nat_static_end */
	uint32_t n, n_one_to_ones;
	struct nat_externals ordinals; /* of its subscribers */
};

struct nat_static_end {
	struct nat_tuple outside;
	struct nat_tuple inside;
};

/* -EINVAL if two of them share an end, -ENOMEM. */
int nat_static_set_init(struct nat_static_set *given, struct mr_ctx *ctx,
			const struct nat_config *config,
			struct mr_reason *reterr_why);
void nat_static_set_fini(struct nat_static_set *given);

static inline struct nat_static *
nat_static_at(const struct nat_static_set *given, uint32_t id)
{
	return mr_flow_record(given->by_inside, id);
}

/* Create those whose inside ends have none. 0, or -ENOMEM with no change. */
int nat_static_set_make(struct nat_maps *maps, struct nat_static_set *given,
			struct mr_reason *reterr_why);

/* Make mappings static whose inside ends are in the set. Cannot fail. */
void nat_static_set_convert(struct nat_maps *maps, struct nat_static_set *given,
			    uint32_t now_s);

/* Whether the mapping is in the set. */
bool nat_static_has(const struct nat_static_set *given,
		    const struct nat_map *map);

/* Enter the external ends of the new mappings, or of all if the ports are new,
 * and pair their hosts with these addresses. The ends are free. */
void nat_static_set_enter(struct nat_maps *maps, struct nat_static_set *given,
			  bool all);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* What mr-nat does about rules besides its packet path, for the harness. */
#ifndef NAT_BED_OFFLOAD_H
#define NAT_BED_OFFLOAD_H

#include "datapath/path.h"

/* Zero: without offload. */
struct offload {
	uint32_t lag, n_max; /* harness_offload() */
	uint32_t random;
	struct mr_rules *rules; /* NULL: none */
	struct nat_maps *maps;
};

/* With lag: rules for the path's mappings, neighbours and links, which it gets,
 * too. */
int offload_open(struct offload *offload, struct nat_path_config *path,
		 struct mr_reason *reterr_why);
void offload_tick(struct offload *offload, uint64_t now_ns);
/* What workers and the main thread do between bursts; some of it, if lag > 1.
 */
void offload_serve(struct offload *offload, struct nat_path *path);
/* What is known of sessions of TCP: rows of HARNESS_WINDOW_NUMBERS. */
uint32_t offload_windows(const struct nat_maps *maps, uint32_t *numbers,
			 uint32_t n_max);
/* End all rules, before a reload. */
void offload_end(const struct offload *offload);

#endif

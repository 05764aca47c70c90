/* SPDX-License-Identifier: BSD-3-Clause */
/* Next hops, and packets that wait for them. */
#ifndef NAT_RESOLVE_H
#define NAT_RESOLVE_H

#include "state.h"

struct nat_resolver *nat_resolver_create(void);
void nat_resolver_destroy(struct nat_resolver *resolver);

/* The next hop for dst. Network order; 0: none. */
static inline uint32_t nat_next_hop(const struct nat_path *path,
				    enum nat_side side, uint32_t dst)
{
	const struct nat_link *link = &path->links[side];

	for (uint32_t i = 0; i < link->n_nets; i++)
		if ((dst & link->nets[i].mask) == link->nets[i].addr)
			return dst;
	return link->gateway;
}

/* NAT_OK and its MAC address; NAT_TAKEN: holding the packet; else a drop. */
enum nat_drop nat_resolve(struct nat_path *path, struct nat_packet *packet,
			  const struct nat_verdict *verdict, uint64_t *ret_mac);
/* Take a waiting packet whose next hop is now known. False: there is none. */
bool nat_resolver_take_ready(struct nat_path *path,
			     struct nat_packet *ret_packet,
			     struct nat_verdict *ret_verdict,
			     uint64_t *ret_mac);
/* Repeat queries, and refuse what waits for neighbours that do not answer. Take
 * what is ready first. */
void nat_resolver_tick(struct nat_path *path);

#endif

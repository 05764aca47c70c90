/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets with fragment_offset or has_more. */
#ifndef NAT_FRAGMENT_H
#define NAT_FRAGMENT_H

#include "datagrams.h"
#include "ports/random.h"
#include "state.h"

/* Of the datagram that a fragment belongs to. */
static inline struct nat_datagram_key
nat_datagram_key_of(const struct nat_packet *packet)
{
	const struct mr_ipv4 *ip = packet->ip;

	return (struct nat_datagram_key){ ip->src, ip->dst, ip->id, ip->proto,
					  packet->from };
}

struct nat_fragments *nat_fragments_create(const struct nat_config *config,
					   struct nat_random *random);
void nat_fragments_destroy(struct nat_fragments *fragments);
/* Consumes the packet. */
void nat_fragment(struct nat_path *path, struct nat_packet *packet);
void nat_fragments_tick(struct nat_path *path);

#endif

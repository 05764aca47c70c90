/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames of a path: make, read, change, send and drop them. */
#ifndef NAT_FRAME_H
#define NAT_FRAME_H

#include <string.h>

#include "state.h"
#include "support/counter.h"

/* Free the frame of a packet and count why. */
void nat_drop_packet(struct nat_path *path, struct nat_packet *packet,
		     enum nat_drop drop);

/* How many bytes of layer 3 fit into a new frame. */
uint32_t nat_room(const struct nat_path *path);
/* A new frame of one entry, n_bytes long, leaving room for a VLAN tag. */
bool nat_make(struct nat_path *path, struct nat_packet *packet,
	      uint32_t n_bytes);
enum { NAT_OUR_TTL = 64 };
/* Write one of our IPv4 headers, with the common fields and its checksum.
 * Returns where layer 4 begins. */
void *nat_put_ip(struct nat_path *path, const struct nat_packet *packet,
		 const struct mr_ipv4 *header);

/* Move the first n_bytes of the frame to its first entry, or false. */
bool nat_pull_up(struct nat_path *path, struct nat_packet *packet,
		 uint32_t n_bytes);
/* Folded sum of n_bytes from offset, in memory byte order. */
uint16_t nat_sum_of(const struct nat_path *path,
		    const struct nat_packet *packet, uint32_t offset,
		    uint32_t n_bytes);
/* Trim what follows the layer-3 packet, except Ethernet's padding. */
void nat_trim(struct nat_path *path, struct nat_packet *packet);

/* Write layer-2 headers, and put it into the outbox; consumes the packet. */
void nat_send(struct nat_path *path, struct nat_packet *packet,
	      enum nat_side to, uint64_t mac);
void nat_send_as(struct nat_path *path, struct nat_packet *packet,
		 enum nat_side to, uint16_t ether_type, uint64_t mac);
/* To whichever worker has its destination, as if it came from outside. */
void nat_send_looped(struct nat_path *path, struct nat_packet *packet);

/* The Ethernet header of a frame that begins at bytes, with the link's tag. */
static inline void nat_write_link(uint8_t *bytes, const struct nat_link *link,
				  uint16_t ether_type, uint64_t mac)
{
	const uint64_t head = mac | link->mac << NAT_MAC_BITS;
	const uint32_t tail = (uint32_t)(link->mac >> 16);
	const uint16_t type = htons(ether_type);

	memcpy(bytes, &head, sizeof(head));
	memcpy(bytes + 8, &tail, sizeof(tail));
	if (link->vlan != 0) {
		const struct mr_vlan tag = { .tci = link->vlan, .type = type };
		const uint16_t tpid = htons(MR_ETHER_VLAN);

		memcpy(bytes + 12, &tpid, sizeof(tpid));
		memcpy(bytes + 14, &tag, sizeof(tag));
	} else {
		memcpy(bytes + 12, &type, sizeof(type));
	}
}

#endif

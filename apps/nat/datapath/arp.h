/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP packets. */
#ifndef NAT_ARP_H
#define NAT_ARP_H

#include "state.h"

/* Send one to a MAC address; 0: to all. */
void nat_arp_send(struct nat_path *path, enum nat_side side, uint16_t op,
		  uint64_t to_mac, uint32_t sender, uint32_t target);
/* Consumes the packet. True: packets may have become ready. */
bool nat_arp_input(struct nat_path *path, struct nat_packet *packet);
/* Announce some of our addresses; sets path->is_announced after the last. */
void nat_announce(struct nat_path *path);

#endif

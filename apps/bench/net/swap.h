/* SPDX-License-Identifier: BSD-3-Clause */
/* Swaps the directions of a frame, to send it back. */
#ifndef NET_SWAP_H
#define NET_SWAP_H

#include <stdint.h>

/* Which addresses are swapped, each with those above it. */
enum swap_layer { SWAP_MACS = 2, SWAP_ADDRESSES = 3, SWAP_PORTS = 4 };

enum swap_result {
	SWAP_DONE,
	SWAP_RUNT,  /* no Ethernet header */
	SWAP_GROUP, /* to a group: no single host could have answered it */
};

/*
 * Swap MAC addresses, IP addresses, and ports of TCP and UDP, as far as they
 * are in the first n_bytes of a frame of n_frame bytes; an echo request becomes
 * a reply. Checksums stay right: swapped words have the same sum.
 */
enum swap_result swap_frame(uint8_t *bytes, uint32_t n_bytes, uint32_t n_frame,
			    enum swap_layer layer);

/*
 * Turn an ARP request for any address into the reply that mac has it. Returns
 * whether it was one; probes (RFC 5227) and announcements are not answered.
 */
int swap_arp(uint8_t *bytes, uint32_t n_bytes, const uint8_t *mac);

#endif

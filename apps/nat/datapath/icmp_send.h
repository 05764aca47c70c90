/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors that we send. */
#ifndef NAT_ICMP_SEND_H
#define NAT_ICMP_SEND_H

#include "state.h"

/* Send an ICMP error to the sender of packet, if allowed. Leaves packet. */
void nat_icmp_send(struct nat_path *path, const struct nat_packet *packet,
		   uint8_t type, uint8_t code, uint16_t mtu);
/* Whether the rate limit allows another unsolicited answer. */
bool nat_may_answer(struct nat_path *path, const struct nat_packet *packet);
/* Send the ICMP error for this drop, if any, and drop the packet. */
void nat_refuse_packet(struct nat_path *path, struct nat_packet *packet,
		       enum nat_drop drop);

#endif

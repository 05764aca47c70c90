/* SPDX-License-Identifier: BSD-3-Clause */
/* Unsolicited SYNs from outside. */
#ifndef NAT_SYN_H
#define NAT_SYN_H

#include "state.h"

struct nat_syns *nat_syns_create(void);
void nat_syns_destroy(struct nat_syns *syns);
/* Consumes the packet. */
void nat_syn_hold(struct nat_path *path, struct nat_packet *packet);
/* A SYN goes out: drop held SYNs of the same connection silently. */
void nat_syn_out(struct nat_path *path, const struct nat_verdict *verdict);
void nat_syns_tick(struct nat_path *path);

#endif

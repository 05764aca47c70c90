/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_flow of a simulated switch, on devices of net_ring, which have none.
 * These calls replace DPDK's, because the linker searches the program first.
 * The switch supports one flow per port, with a counter, and flows of UDP over
 * IPv4 to one port, each with its queue.
 */
#ifndef MODEL_FLOWS_H
#define MODEL_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

enum { FLOWS_NONE = -1, FLOWS_DROP = -2 };

/* Messages with which the device refuses flows from now on; NULL: accept. */
struct flows_refusals {
	const char *forward; /* to check it... */
	const char *drop;
	const char *create; /* ...or to do what it checked */
};
extern struct flows_refusals flows_refusals;

/* The queue that a flow gives a frame from the wire; FLOWS_NONE: none does. */
int flows_queue(uint16_t port_id, const uint8_t *bytes, uint32_t n_bytes);

/* Count a frame from the wire. Returns the port that a flow sends it from, or
 * one of the above. */
int flows_take(uint16_t port_id, uint32_t n_bytes);

/* The number of flows in the device. */
uint32_t flows_count(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_flow of a switch that the tests simulate: on devices of net_ring, which
 * have none. These calls take the place of DPDK's, since the program comes
 * before its libraries. The switch takes one flow per port, with a counter.
 */
#ifndef MODEL_FLOWS_H
#define MODEL_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

enum { FLOWS_NONE = -1, FLOWS_DROP = -2 };

/* What the device refuses from now on, in its own words; NULL: nothing. */
struct flows_refusals {
	const char *forward; /* to check it... */
	const char *drop;
	const char *create; /* ...or to do what it checked */
};
extern struct flows_refusals flows_refusals;

/* A frame from the wire: the port that a flow sends it from, and counted, or
 * one of the above. */
int flows_take(uint16_t port_id);

/* Flows in the device. */
uint32_t flows_count(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Self-describing frames: an Ethernet header of the local experimental type
 * (IEEE 802, 0x88b5) with the frame's number in the source address, and bytes
 * that depend on number and place.
 */
#ifndef CONFORMANCE_TRAFFIC_H
#define CONFORMANCE_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

enum { TRAFFIC_MIN_BYTES = 14, TRAFFIC_ETHER_TYPE = 0x88b5 };

/* Write frame number id of n_bytes, 14 or more. */
void traffic_make(uint8_t *bytes, uint32_t n_bytes, uint32_t id);

/* Put a VLAN tag into a frame of n_bytes; its bytes with the tag. */
uint32_t traffic_tag(uint8_t *bytes, uint32_t n_bytes, uint16_t tci);

/* Whether its addresses are ours; frames from the kernel have others. */
bool traffic_is_ours(const uint8_t *bytes, uint32_t n_bytes);

/* The number of an intact frame, or -1. */
int64_t traffic_check(const uint8_t *bytes, uint32_t n_bytes);

/* A small pseudo-random generator (xorshift32); the state is never 0. */
uint32_t traffic_random(uint32_t *state);

#endif

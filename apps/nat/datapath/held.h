/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames that wait for a neighbour, for the first fragment, or for a SYN from
 * inside. One bounded store per worker, with a FIFO per awaited event.
 */
#ifndef NAT_HELD_H
#define NAT_HELD_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/millrace.h>

enum { NAT_HELD_NONE = UINT32_MAX };

struct nat_packet;
struct nat_verdict;
struct nat_held;

struct nat_hold {
	struct nat_held *slots;
	uint32_t n;
	uint32_t n_entries, max_entries; /* of all frames in it */
	uint32_t free;                   /* first free one, or NAT_HELD_NONE */
};

/* A queue in the store. */
struct nat_fifo {
	uint32_t first, last;  /* NAT_HELD_NONE: empty */
	uint32_t n, n_entries; /* frames, and their entries */
};

/* For n frames with max_entries in all, a page each. 0 or -ENOMEM. */
int nat_hold_init(struct nat_hold *hold, uint32_t n, uint32_t max_entries);
void nat_hold_end(struct nat_hold *hold);

void nat_fifo_init(struct nat_fifo *fifo);
/* False: the store is full. verdict may be NULL. */
bool nat_fifo_put(struct nat_hold *hold, struct nat_fifo *fifo,
		  const struct nat_packet *packet,
		  const struct nat_verdict *verdict);
/* The packet after *at, NAT_HELD_NONE at first; NULL: the end. */
const struct nat_packet *nat_fifo_next(const struct nat_hold *hold,
				       const struct nat_fifo *fifo,
				       uint32_t *at);
/* False: empty. */
bool nat_fifo_take(struct nat_hold *hold, struct nat_fifo *fifo,
		   struct nat_packet *ret_packet,
		   struct nat_verdict *ret_verdict);

#endif

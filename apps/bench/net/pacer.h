/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * When the frames of one sender are due. Open loop: this depends on the orders
 * and the seed, and not on the sending.
 *
 * The frames of all senders together have the pace that was ordered: at a
 * constant pace, sender i of s has every s-th frame, starting with the i-th.
 */
#ifndef NET_PACER_H
#define NET_PACER_H

#include <stdbool.h>
#include <stdint.h>

#include "net/place.h"

struct pacer {
	uint64_t next_ns; /* when the next one is due; UINT64_MAX: never */
	uint64_t n_left;  /* frames that may still become due */
	uint64_t start_ns, end_ns;
	bool is_paced; /* else full speed: due is now, always */
	enum pace pace;
	double period_ns; /* between the frames, or bursts, of all senders */
	uint64_t n;       /* frames or bursts before the next one, of all */
	uint32_t n_senders;
	uint32_t burst_frames, n_in_burst;
	double poisson_ns; /* next_ns, with its fraction */
	uint64_t random;
};

void pacer_begin(struct pacer *pacer, const struct send_orders *orders);

/* Frames that are due now, at most room: sets when each was due, in order. The
 * next call returns the rest. */
uint32_t pacer_take(struct pacer *pacer, uint64_t now_ns, uint64_t *ret_due_ns,
		    uint32_t room);

/* Skip frames that were due before before_ns. Returns how many. */
uint64_t pacer_skip(struct pacer *pacer, uint64_t before_ns);

/* No further frame will become due. */
static inline bool pacer_is_done(const struct pacer *pacer, uint64_t now_ns)
{
	return pacer->n_left == 0 ||
	       (pacer->is_paced ? pacer->next_ns == UINT64_MAX :
				  now_ns >= pacer->end_ns);
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sending on one tx queue: what is due is built, stamped with the time when it
 * is due, and offered; what the queue does not take is offered again until it
 * is given up.
 */
#ifndef NET_SENDER_H
#define NET_SENDER_H

#include <millrace/millrace.h>

#include "net/pacer.h"

struct builder;

/* Where the frames of a sender go and come from; the same for all trials. */
struct sender_config {
	struct mr_txq *txq;
	struct mr_cache *cache;
	void *base; /* of the region */
	uint32_t burst;
	uint32_t headroom_bytes;
	/* Headroom and the longest frame. Less than a page: then frames begin
	 * at different lines of it (mr_frag_alloc_bulk()). */
	uint32_t buffer_bytes;
};

/* due = sent + unsent + those that wait. One thread writes, others read. */
struct sender {
	_Alignas(64) struct sender_config config;
	const struct clock *clock;
	struct builder *builder;
	struct hist *lateness; /* of paced frames */
	/* Destination and source address, if frames use those of ports (else
	 * NULL), and the addresses that the frames have; see mac.h. */
	const uint64_t *macs[2];
	uint64_t had_macs[2];
	struct pacer pacer;
	uint64_t max_lag_ns;
	uint64_t n_sent, n_unsent;
	uint64_t last_ns; /* when the last one left; at full speed its round */
	uint32_t n_due;   /* that wait: due_ns has the time of each */
	uint32_t n_held;  /* of them, built */
	uint32_t n_idle;  /* rounds */
	bool is_done;
	uint64_t due_ns[MR_BURST_MAX];
	struct mr_frame frames[MR_BURST_MAX];
};

/* Begin a trial. builder and lateness are the caller's. */
void sender_begin(struct sender *sender, const struct send_orders *orders,
		  struct builder *builder, struct hist *lateness);

/*
 * A round: returns how many frames the queue took. Behind the end, too: a
 * driver may need a call to go on with what it took.
 */
uint32_t sender_step(struct sender *sender, uint64_t now_ns);

/* Give up what was due and waits: it is unsent. */
void sender_end(struct sender *sender, uint64_t now_ns);

/* Frames were due at that time, and have not left. */
static inline bool sender_is_behind(const struct sender *sender, uint64_t ns)
{
	return !sender->is_done && sender->pacer.is_paced &&
	       (sender->pacer.next_ns < ns ||
		(sender->n_due > 0 && sender->due_ns[0] < ns));
}

/* When there will be something to do, nothing else happening. */
uint64_t sender_next_ns(const struct sender *sender);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends on one tx queue: builds the frames that are due, stamps them with that
 * time, and offers them to the queue until they are accepted or given up. */
#ifndef NET_SENDER_H
#define NET_SENDER_H

#include <millrace/millrace.h>

#include "net/pacer.h"

struct builder;

/* Where a sender sends and allocates its frames; constant over trials. */
struct sender_config {
	struct mr_txq *txq;
	struct mr_cache *cache;
	void *base; /* of the region */
	uint32_t burst;
	uint32_t headroom_bytes;
	/* Headroom and the longest frame. If that is less than a page, frames
	 * begin at different cache lines (mr_frag_alloc_bulk()). */
	uint32_t buffer_bytes;
};

/* due = sent + unsent + frames that wait. One thread writes, others read. */
struct sender {
	_Alignas(64) struct sender_config config;
	const struct clock *clock;
	struct builder *builder;
	struct hist *lateness; /* of paced frames */
	/* Destination and source address, if frames use those of ports (else
	 * NULL), and the addresses that frames have now; see mac.h. */
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

/* One round: returns how many frames the queue accepted. Call it after the end,
 * too: a driver may need calls to send what it accepted. */
uint32_t sender_step(struct sender *sender, uint64_t now_ns);

/* Give up the frames that are due and wait: they are unsent. */
void sender_end(struct sender *sender, uint64_t now_ns);

/* Frames that were due at that time have not left. */
static inline bool sender_is_behind(const struct sender *sender, uint64_t ns)
{
	return !sender->is_done && sender->pacer.is_paced &&
	       (sender->pacer.next_ns < ns ||
		(sender->n_due > 0 && sender->due_ns[0] < ns));
}

/* When it has something to do next, if nothing else happens. */
uint64_t sender_next_ns(const struct sender *sender);

#endif

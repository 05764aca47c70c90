/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives on one rx queue. Counts all frames, and those with a stamp of this
 * trial by their stamps. */
#ifndef NET_RECEIVER_H
#define NET_RECEIVER_H

#include <millrace/millrace.h>

#include "net/away.h"
#include "net/clock.h"
#include "net/hist.h"
#include "net/runs.h"
#include "net/tracker.h"

/* received = foreign + what the tracks have. One thread writes. */
struct receiver {
	_Alignas(64) struct mr_rxq *rxq;
	struct mr_cache *cache;
	uint8_t *base; /* of the region */
	uint32_t burst;
	uint32_t magic; /* of the trial */
	const struct clock *clock;
	bool has_times; /* the device tells when frames came: MR_META_RX_TIME */
	struct tracker *tracker;
	struct runs *runs;    /* of other programs; NULL: this one sends */
	uint32_t run_at;      /* the last one's; see runs.h */
	struct track *tracks; /* by lane */
	struct hist *latency; /* NULL: the sender has another clock */
	struct spans *late; /* the latest of each burst; NULL: none are kept */
	struct span latest; /* of the burst at hand */
	uint64_t n_received, n_foreign;
	uint32_t n_lanes; /* one more than the highest received */
	/* First and last arrival of the trial's frames; UINT64_MAX and 0: none
	 * yet. */
	uint64_t first_ns, last_ns;
	struct mr_frame frames[MR_BURST_MAX];
	struct mr_meta metas[MR_BURST_MAX]; /* with has_times */
	/* The difference between the device's clock and the run's. */
	struct {
		uint16_t clock_id;
		bool is_known, is_readable;
		uint64_t offset_ns, read_at_ns;
		uint64_t error_ns; /* of the offset, at most in the trial */
	} device_clock;
};

/* Receive a burst. Returns how many entries it had. */
uint32_t receiver_step(struct receiver *receiver);

#endif

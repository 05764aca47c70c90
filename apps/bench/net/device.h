/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulated DUT: loses, delays, doubles and reorders frames in a way that
 * is exactly known, so that what a tester finds can be compared with it. Its
 * counters are the truth.
 *
 * One direction: frames from an rx queue leave by a tx queue.
 */
#ifndef NET_DEVICE_H
#define NET_DEVICE_H

#include <millrace/millrace.h>

/* 0: does not happen. */
struct device_config {
	uint32_t loss_every; /* of the frames that arrive */
	uint32_t
		corrupt_every; /* of those left: a bit of the stamp is turned */
	uint32_t reorder_every;
	uint32_t reorder_by; /* that many frames overtake it: 1 or more */
	uint32_t dup_every;  /* the second one directly behind the first */
	uint64_t delay_ns;
	double rate_pps;       /* one frame after another */
	uint32_t queue_frames; /* that may wait for it; 0: 64 */
};

/* received + duplicated = forwarded + lost + overrun + held; in frames. */
struct device_counts {
	uint64_t received;
	uint64_t forwarded; /* by the tx queue */
	uint64_t lost;
	uint64_t duplicated;
	uint64_t corrupted;
	uint64_t reordered;
	uint64_t overrun; /* above the rate, and its queue was full */
	uint64_t held;    /* now */
};

struct device;

/* Frames that a direction holds at most, so that the pool can be made. */
uint32_t device_max_held(const struct device_config *config);

/* base: of the region of the frames. Returns 0 or -ENOMEM. */
int device_open(const struct device_config *config, void *base,
		struct device **ret, struct mr_reason *why);

/*
 * Take what has arrived, send what is due. Returns entries moved. Frames that
 * the tx queue does not take are offered again.
 */
uint32_t device_step(struct device *device, struct mr_rxq *from,
		     struct mr_txq *to, struct mr_cache *cache,
		     uint64_t now_ns);

/* When the next frame that it holds is due; UINT64_MAX: it holds none. */
uint64_t device_next_ns(const struct device *device);

void device_counts(const struct device *device, struct device_counts *ret);

/* Drop what it holds. The clock and all counters begin anew. */
void device_reset(struct device *device, struct mr_cache *cache);

/* Frames that it holds go back to the pool. NULL is allowed. */
void device_close(struct device *device, struct mr_cache *cache);

#endif

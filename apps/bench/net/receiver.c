/* SPDX-License-Identifier: BSD-3-Clause */
/* Receives on one rx queue. */
#include <string.h>
#include <time.h>

#include "net/receiver.h"
#include "stream/stamp.h"
#include "support/counter.h"

enum {
	OFFSET_READINGS = 8,
	OFFSET_NS = 100000000, /* how long an offset is used */
};

/* Counters of two cores may differ by a few ns; an age below 0 is 0. */
static inline uint64_t age_of(uint64_t due_ns, uint64_t now_ns)
{
	const uint64_t age = (now_ns - due_ns) & STAMP_MASK;

	return age > STAMP_MASK / 2 ? 0 : age;
}

/* Returns false: the frame does not belong to this trial. */
static inline bool see_stamp(struct receiver *receiver, const uint8_t *end,
			     uint64_t now_ns)
{
	struct stamp stamp;

	if (!stamp_read(end, receiver->magic, &stamp))
		return false;
	if (receiver->runs != NULL)
		stamp.lane = runs_lane(receiver->runs, &receiver->run_at,
				       stamp_run(stamp.due_ns), stamp.lane);
	if (stamp.lane >= receiver->tracker->n_lanes)
		return false;
	if (stamp.lane >= receiver->n_lanes)
		__atomic_store_n(&receiver->n_lanes, stamp.lane + 1,
				 __ATOMIC_RELAXED);
	track_see(&receiver->tracks[stamp.lane], receiver->tracker, stamp.lane,
		  stamp.seq);
	if (receiver->latency != NULL) {
		const uint64_t age = age_of(stamp.due_ns, now_ns);
		struct span *latest = &receiver->latest;

		hist_add(receiver->latency, age);
		if (age > latest->end_ns - latest->start_ns)
			*latest = (struct span){ .start_ns = now_ns - age,
						 .end_ns = now_ns,
						 .lane = stamp.lane };
	}
	return true;
}

/* The stamp of a frame of several entries may lie in more than one of them. */
static bool see_entries(struct receiver *receiver,
			const struct mr_frame *entries, uint32_t n,
			uint64_t now_ns)
{
	uint8_t tail[STAMP_BYTES];
	uint32_t n_missing = STAMP_BYTES;

	for (uint32_t i = n; i-- > 0 && n_missing > 0;) {
		const uint32_t len = entries[i].len;
		const uint32_t n_bytes = len < n_missing ? len : n_missing;

		n_missing -= n_bytes;
		memcpy(tail + n_missing,
		       receiver->base + entries[i].addr + len - n_bytes,
		       n_bytes);
	}
	return n_missing == 0 &&
	       see_stamp(receiver, tail + STAMP_BYTES, now_ns);
}

/* The difference between the device's clock and the run's: the closest of some
 * readings, because an interrupt may come between two. Returns 0, or -1: no
 * such clock. */
static int read_offset(struct receiver *receiver, uint16_t clock_id)
{
	uint64_t best_ns = UINT64_MAX;

	for (uint32_t i = 0; i < OFFSET_READINGS; i++) {
		const uint64_t before = clock_now(receiver->clock);
		struct timespec t;
		uint64_t width;

		if (clock_gettime(clock_id, &t) < 0)
			return -1;
		width = clock_now(receiver->clock) - before;
		if (width >= best_ns)
			continue;
		best_ns = width;
		receiver->device_clock.offset_ns =
			(uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec -
			(before + width / 2);
	}
	if (best_ns > receiver->device_clock.error_ns)
		receiver->device_clock.error_ns = best_ns;
	return 0;
}

/*
 * The run's time of a device's timestamp, if its clock is one of the kernel's
 * (frame.h: rx_clock); else the time when the burst was received. The
 * difference of the two clocks is read every 100 ms: at 500 us per second, the
 * most that NTP corrects, that is an error of 50 us, and 0.1 us at the usual
 * millionth.
 */
static uint64_t arrival_ns(struct receiver *receiver,
			   const struct mr_meta *meta, uint64_t now_ns)
{
	uint64_t at;

	if (!(meta->valid & MR_META_RX_TIME))
		return now_ns;
	if (!receiver->device_clock.is_known ||
	    receiver->device_clock.clock_id != meta->rx_clock ||
	    now_ns - receiver->device_clock.read_at_ns >= OFFSET_NS) {
		receiver->device_clock.is_readable =
			read_offset(receiver, meta->rx_clock) == 0;
		receiver->device_clock.clock_id = meta->rx_clock;
		receiver->device_clock.is_known = true;
		receiver->device_clock.read_at_ns = now_ns;
	}
	if (!receiver->device_clock.is_readable)
		return now_ns;
	at = meta->rx_ns - receiver->device_clock.offset_ns;
	/* A frame arrives before it is received; otherwise the time is of
	 * another clock. */
	return at <= now_ns ? at : now_ns;
}

static inline bool see_frame(struct receiver *receiver,
			     const struct mr_frame *frame, uint32_t n_entries,
			     uint64_t now_ns)
{
	if (n_entries > 1 || frame->len < STAMP_BYTES)
		return see_entries(receiver, frame, n_entries, now_ns);
	return see_stamp(receiver, receiver->base + frame->addr + frame->len,
			 now_ns);
}

uint32_t receiver_step(struct receiver *receiver)
{
	struct mr_frame *frames = receiver->frames;
	struct mr_meta *metas = receiver->has_times ? receiver->metas : NULL;
	const uint32_t n = mr_rx_burst_meta(receiver->rxq, receiver->cache,
					    frames, metas, receiver->burst);
	uint64_t now, n_frames = 0, n_ours = 0;

	if (n == 0)
		return 0;
	receiver->latest.start_ns = receiver->latest.end_ns;
	now = clock_now(receiver->clock);
	for (uint32_t i = 0; i < n; i++)
		__builtin_prefetch(receiver->base + frames[i].addr +
				   frames[i].len - 1);
	for (uint32_t i = 0, n_entries; i < n; i += n_entries) {
		n_entries = mr_frame_n_entries(frames + i);
		n_ours += see_frame(
			receiver, frames + i, n_entries,
			metas == NULL ? now :
					arrival_ns(receiver, metas + i, now));
		n_frames++;
	}
	mr_frame_free_bulk(receiver->cache, frames, n);
	if (receiver->late != NULL)
		spans_add(receiver->late, &receiver->latest);
	if (n_ours > 0) {
		if (receiver->first_ns == UINT64_MAX)
			__atomic_store_n(&receiver->first_ns, now,
					 __ATOMIC_RELAXED);
		__atomic_store_n(&receiver->last_ns, now, __ATOMIC_RELAXED);
	}
	counter_add(&receiver->n_received, n_frames);
	counter_add(&receiver->n_foreign, n_frames - n_ours);
	return n;
}

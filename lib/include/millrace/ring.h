/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MILLRACE_RING_H
#define MILLRACE_RING_H

#include <stdint.h>

#include <millrace/api.h>
#include <millrace/error.h>
#include <millrace/frame.h>

MR_BEGIN_DECLS

/**
 * @file
 * Bounded rings of frame entries between threads.
 *
 * The suffix _spsc says who may call concurrently: a single producer and a
 * single consumer. A burst call moves as many entries as fit or are available,
 * in order, and never waits. A ring does not know frame boundaries: enqueue
 * whole frames, and check the result with mr_frame_n_whole().
 */

struct mr_ctx;
struct mr_ring_spsc;

/**
 * Create a ring for one producer and one consumer.
 *
 * @param n_entries  capacity, a power of two, 2..2^20
 *
 * @return 0, -EINVAL for an invalid capacity, -ENOMEM
 *
 * Owner: the caller, of the ring. Thread: any.
 */
MR_API int mr_ring_spsc_create(struct mr_ctx *ctx, uint32_t n_entries,
			       struct mr_ring_spsc **ret_ring,
			       struct mr_reason *reterr_reason);

/**
 * Free the ring, but not the entries in it. NULL is allowed.
 *
 * Owner: the caller, of the entries in it. Thread: one, the last user.
 */
MR_API void mr_ring_spsc_destroy(struct mr_ring_spsc *ring);

/**
 * Append up to @p n entries.
 *
 * @return entries appended, 0..n: fewer only if the ring is full
 *
 * Owner:  the ring, of the entries appended; the rest stay the caller's.
 * Thread: one producer.
 * Cost:   wait-free; reads the consumer's line only when the ring looks full.
 */
MR_API uint32_t mr_ring_spsc_enqueue_burst(struct mr_ring_spsc *ring,
					   const struct mr_frame *frames,
					   uint32_t n);

/**
 * Take up to @p n entries from the front.
 *
 * @return entries taken, 0..n: fewer only if the ring is empty
 *
 * Owner: the caller, of the entries taken. Thread: one consumer.
 * Cost:   wait-free; reads the producer's line only when the ring looks empty.
 */
MR_API uint32_t mr_ring_spsc_dequeue_burst(struct mr_ring_spsc *ring,
					   struct mr_frame *frames, uint32_t n);

/**
 * Copy up to @p n entries from the front without taking them.
 *
 * @return entries copied, 0..n
 *
 * Thread: one consumer. Cost: as mr_ring_spsc_dequeue_burst().
 */
MR_API uint32_t mr_ring_spsc_peek_burst(struct mr_ring_spsc *ring,
					struct mr_frame *frames, uint32_t n);

/**
 * Remove @p n entries that mr_ring_spsc_peek_burst() has copied.
 *
 * Owner: the caller, of the entries. Thread: one consumer. Cost: a store.
 */
MR_API void mr_ring_spsc_release(struct mr_ring_spsc *ring, uint32_t n);

/**
 * Entries in the ring.
 *
 * @return 0..capacity; exact for producer and consumer while the other is at
 *         rest, else a snapshot
 *
 * Thread: any.
 */
MR_API uint32_t mr_ring_spsc_count(const struct mr_ring_spsc *ring);

MR_END_DECLS

#endif

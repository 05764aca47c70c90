/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kinds of ring, on each of which a program runs its tests: see main() of
 * held_virtio.c. A test may be for some of them alone.
 */
#ifndef RINGS_H
#define RINGS_H

#include "held_virtio.h"
#include "support/test.h"

enum {
	F_EVENT_IDX = 1, /* bits of a kind */
	F_PACKED = 2,
	F_IN_ORDER = 4,
	N_RINGS = 8,
};

/* A test on each, or on those that have the bits is_set and none of is_clear.
 */
#define RING_TEST(name) RING_TEST_IF(0, 0, name)
#define RING_TEST_IF(is_set, is_clear, name)                                   \
	static void name##_on_ring(void);                                      \
	TEST(name)                                                             \
	{                                                                      \
		if ((ring_kind & (is_set)) == (is_set) &&                      \
		    (ring_kind & (is_clear)) == 0)                             \
			name##_on_ring();                                      \
	}                                                                      \
	static void name##_on_ring(void)

/* The same of an open port; fields of its struct fake_config may follow. */
#define FAKE_TEST(name, ...) FAKE_TEST_IF(0, 0, name, __VA_ARGS__)
#define FAKE_TEST_IF(is_set, is_clear, name, ...)                              \
	static void name##_when_open(void);                                    \
	RING_TEST_IF(is_set, is_clear, name)                                   \
	{                                                                      \
		fake_open((struct fake_config){ __VA_ARGS__ });                \
		name##_when_open();                                            \
		fake_close();                                                  \
	}                                                                      \
	static void name##_when_open(void)

extern uint32_t ring_kind; /* now */

static inline uint64_t ring_features(void)
{
	return (ring_kind & F_EVENT_IDX ? virtio_bit(VIRTIO_F_EVENT_IDX) : 0) |
	       (ring_kind & F_PACKED ? virtio_bit(VIRTIO_F_RING_PACKED) : 0) |
	       (ring_kind & F_IN_ORDER ? virtio_bit(VIRTIO_F_IN_ORDER) : 0);
}

/* Do not tell me of queue, until running number far if there are numbers. */
static inline void tell_nothing(uint32_t queue, uint16_t far)
{
	if (ring_kind & F_EVENT_IDX)
		fake_want_event(queue, far);
	else
		fake_suppress(queue, true);
}

#endif

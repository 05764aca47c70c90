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

#define RING_TEST(name) RING_TEST_IF(0, 0, name)

/* Where the ring has the bits is_set, and none of is_clear. */
#define RING_TEST_IF(is_set, is_clear, name)                                   \
	static void name##_on_ring(void);                                      \
	TEST(name)                                                             \
	{                                                                      \
		if ((ring_kind & (is_set)) == (is_set) &&                      \
		    (ring_kind & (is_clear)) == 0)                             \
			name##_on_ring();                                      \
	}                                                                      \
	static void name##_on_ring(void)

extern uint32_t ring_kind; /* now */

static inline uint64_t ring_features(void)
{
	return (ring_kind & F_EVENT_IDX ? virtio_bit(VIRTIO_F_EVENT_IDX) : 0) |
	       (ring_kind & F_PACKED ? virtio_bit(VIRTIO_F_RING_PACKED) : 0) |
	       (ring_kind & F_IN_ORDER ? virtio_bit(VIRTIO_F_IN_ORDER) : 0);
}

/* A port on such rings, and with more features. */
static inline void open_with(struct fake *fake, uint64_t more)
{
	fake_open(fake,
		  (struct fake_config){ .features = ring_features() | more });
}

#endif

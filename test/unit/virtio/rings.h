/* SPDX-License-Identifier: BSD-3-Clause */
/* The kinds of ring that a test is run on, each as a test of its own. */
#ifndef RINGS_H
#define RINGS_H

#include <stdio.h>

#include "fake_device.h"
#include "support/test.h"

enum {
	F_EVENT_IDX = 1, /* the columns of the table, as bits */
	F_PACKED = 2,
	F_IN_ORDER = 4,
	N_RINGS = 8,
};

static inline uint64_t ring_features(uint32_t ring)
{
	return (ring & F_EVENT_IDX ? virtio_bit(VIRTIO_F_EVENT_IDX) : 0) |
	       (ring & F_PACKED ? virtio_bit(VIRTIO_F_RING_PACKED) : 0) |
	       (ring & F_IN_ORDER ? virtio_bit(VIRTIO_F_IN_ORDER) : 0);
}

/* A port with the features of *state, and more. */
static inline void open_with(struct fake *fake, void **state, uint64_t more)
{
	fake_open(fake, (struct fake_config){ .features = *(uint64_t *)*state |
							  more });
}

struct ring_test {
	const char *name;
	/* is_set: bits that the ring must have; is_clear: must not. */
	uint32_t is_set, is_clear;
	void (*run)(void **state);
};

/* Run n tests on each kind of ring; *state is its features. */
static inline int run_on_rings(const struct ring_test *tests, uint32_t n)
{
	int n_failed = 0;

	for (uint32_t ring = 0; ring < N_RINGS; ring++) {
		uint64_t features = ring_features(ring);
		struct CMUnitTest group[64];
		char names[64][128];
		uint32_t n_group = 0;

		for (uint32_t i = 0; i < n; i++) {
			if ((ring & tests[i].is_set) != tests[i].is_set ||
			    ring & tests[i].is_clear)
				continue;
			snprintf(names[n_group], sizeof(names[0]), "%s%s%s: %s",
				 ring & F_PACKED ? "packed" : "split",
				 ring & F_IN_ORDER ? ", in order" : "",
				 ring & F_EVENT_IDX ? ", event idx" : "",
				 tests[i].name);
			group[n_group] = (struct CMUnitTest){
				.name = names[n_group],
				.test_func = tests[i].run,
				.initial_state = &features,
			};
			n_group++;
		}
		n_failed += _cmocka_run_group_tests("rings", group, n_group,
						    NULL, NULL);
	}
	return n_failed;
}

#endif

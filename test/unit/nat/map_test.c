/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/map.c: lookups by burst, and memory that runs out. */
#include "fixture.h"

/* Longer than a table's own bursts, and not all of it there. */
TEST_STARTED(lookups_take_any_burst)
{
	enum { N = 3 * MR_FLOW_BURST_MAX + 7 };
	static struct nat_tuple inside[N], outside[N];
	static uint32_t ids[N], found[N];

	for (uint32_t i = 0; i < N; i++) {
		inside[i] = tuple(UDP, INSIDE + i, 7);
		ids[i] = MR_FLOW_NONE;
		outside[i] = tuple(UDP, POOL, 1);
		if (i % 3 == 0)
			continue;
		ids[i] = fixture_map(UDP, INSIDE + i, 7);
		outside[i] =
			tuple(UDP, fixture_addr(ids[i]), fixture_port(ids[i]));
	}
	nat_maps_find_out(fixture.maps, inside, N, found);
	assert_memory_equal(found, ids, sizeof(ids));
	nat_maps_find_in(fixture.maps, outside, N, found);
	assert_memory_equal(found, ids, sizeof(ids));
}

/* Whatever allocation fails, it is said, and nothing is left. */
TEST(memory_may_run_out_at_create)
{
	uint32_t fail_at = 0;
	int err;

	do {
		struct mr_reason why = { "" };

		fixture_init();
		fixture.allocator.fail_at =
			fixture.allocator.n_calls + ++fail_at;
		err = fixture_try(0, 1, &why);
		if (err != 0) {
			assert_int_equal(err, -ENOMEM);
			assert_string_not_equal(why.text, "");
			fixture.maps = NULL;
		}
		fixture_end();
	} while (err != 0);
	assert_true(fail_at > 5);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/mapping/map.c and open.c: mappings, both ways, and their
 * limits. */
#include "fixture.h"

static const uint8_t protos[] = { UDP, TCP, ICMP };

TEST_STARTED(a_mapping_is_found_in_both_directions)
{
	for (uint32_t i = 0; i < 3; i++) {
		uint32_t id = fixture_map(protos[i], INSIDE + 1, 5000);
		const struct nat_map *map = nat_maps_at(fixture.maps, id);

		assert_int_equal(fixture_addr(id), POOL);
		assert_in_range(fixture_port(id), 1024, 65535);
		assert_int_equal(map->inside.proto, protos[i]);
		assert_int_equal(map->flags, 0);
		assert_int_equal(fixture_find_out(protos[i], INSIDE + 1, 5000),
				 id);
		assert_int_equal(fixture_find_back(id), id);
		/* Opened twice in a burst, it is one mapping. */
		assert_int_equal(fixture_map(protos[i], INSIDE + 1, 5000), id);
	}
	assert_int_equal(fixture_stats().n_mappings, 3);
	assert_int_equal(fixture_stats().created, 3);
	assert_int_equal(fixture_stats().n_subscribers, 1);
}

TEST_STARTED(what_is_not_mapped_is_not_found)
{
	uint32_t id;
	uint16_t port;

	id = fixture_map(UDP, INSIDE + 1, 5000);
	port = fixture_port(id);
	assert_int_equal(fixture_find_out(UDP, INSIDE + 1, 5001), MR_FLOW_NONE);
	assert_int_equal(fixture_find_out(TCP, INSIDE + 1, 5000), MR_FLOW_NONE);
	assert_int_equal(fixture_find_in(TCP, POOL, port), MR_FLOW_NONE);
	assert_int_equal(fixture_find_in(UDP, POOL, (uint16_t)(port ^ 1)),
			 MR_FLOW_NONE);
	assert_int_equal(fixture_find_in(UDP, POOL + 1, port), MR_FLOW_NONE);
	assert_int_equal(fixture_find_in(UDP, POOL - 1, port), MR_FLOW_NONE);
	assert_int_equal(fixture_find_in(GRE, POOL, 0), MR_FLOW_NONE);
	assert_int_equal(fixture_find_in(UDP, 0, 0), MR_FLOW_NONE);
	assert_int_equal(fixture_find_in(UDP, UINT32_MAX, 65535), MR_FLOW_NONE);
}

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

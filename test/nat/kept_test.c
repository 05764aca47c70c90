/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules of sessions that go to another process, which the set outlives:
 * apps/nat/mapping/rule_hand_over.c. */
#include "nat/fixture.h"

#include <millrace/experimental/driver_offload.h>

#include "mapping/hand_over.h"
#include "mapping/rule_set.h"
#include "simulated.h"
#include "support/carry.h"

enum { N_MAX = 4 };

static struct mr_rules *set;
static uint32_t id; /* of the mapping */

static void use_end(uint32_t n)
{
	nat_rule_use(fixture.maps, id, NAT_OUT, NULL, remote(REMOTE + n, 53),
		     0);
}

static struct mr_flow_way *way_of(uint32_t n)
{
	const struct nat_rule_key key = { .map_id = id,
					  .addr = htonl(REMOTE + n),
					  .port = htons(53),
					  .inside_port = htons(5000),
					  .proto = UDP };
	const uint32_t number = mr_flow_find(fixture.maps->rules->table, &key);

	assert_int_not_equal(number, MR_FLOW_NONE);
	return &mr_rules_ways(set, nat_rule_at(fixture.maps->rules, number)
					   ->id)[NAT_OUT];
}

static void create_rules(void)
{
	struct mr_reason why = { "" };

	if (nat_rules_create(fixture.maps, set, N_MAX, -1, 1, &why) < 0)
		fail_msg("%s", why.text);
}

/* One rule each that is held, about to be removed, and just asked for. */
static void begin(void)
{
	struct mr_reason why = { "" };

	id = fixture_map(UDP, INSIDE + 1, 5000);
	if (simulated_open(fixture.ctx, N_MAX, 1, 0, 1, &set, &why) < 0)
		fail_msg("%s", why.text);
	create_rules();
	assert_int_equal(fixture_out(id, REMOTE - 1, 53, 0), NAT_OK);
	use_end(0);
	use_end(1);
	nat_rules_settle(fixture.maps);
	nat_rule_end(fixture.maps, id, remote(REMOTE + 1, 53));
	use_end(2);
}

/* Into new maps. Returns as nat_rules_copy(). */
static int take_over(struct mr_reason *ret_why)
{
	struct mr_parcel *parcel = mri_parcel_create(fixture.ctx);
	struct nat_maps *old = fixture.maps, *copy;
	bool is_converted;
	int err;

	nat_rules_settle(old);
	nat_maps_put(old, parcel, 0);
	nat_rules_put(old, parcel, 0);
	parcel = carry(fixture.ctx, parcel);
	fixture_start();
	create_rules();
	assert_int_equal(nat_maps_copy(fixture.maps, parcel, 0, &copy, ret_why),
			 0);
	err = nat_rules_copy(copy, fixture.maps, N_MAX, parcel, 0, ret_why);
	if (err == 0)
		nat_maps_take(&fixture.maps, 1, copy, fixture.now_s,
			      &is_converted);
	else
		nat_maps_destroy(copy);
	mri_parcel_destroy(parcel);
	nat_maps_destroy(old);
	return err;
}

static uint32_t n_out(void)
{
	nat_rules_take(fixture.maps, id);
	return nat_map_at(fixture.maps, id)->n_out;
}

static void end(void)
{
	nat_rules_end_all(fixture.maps);
	nat_rules_settle(fixture.maps);
	assert_int_equal(set->n_free, N_MAX);
	simulated_close(set);
}

TEST_STARTED(rules_are_kept_and_frames_counted_once)
{
	struct mr_reason why = { "" };

	begin();
	way_of(0)->n_frames = 5;
	assert_int_equal(n_out(), 5);
	way_of(0)->n_frames = 8; /* that nobody has read */
	assert_int_equal(take_over(&why), 0);
	assert_int_equal(set->n_free, N_MAX - 2);
	assert_int_equal(nat_rules_stats(fixture.maps->rules).n_rules, 2);
	way_of(2)->n_frames = 1;
	assert_int_equal(n_out(), 9);
	end();
}

TEST_STARTED(rules_end_if_the_configuration_has_changed)
{
	struct mr_reason why = { "" };

	begin();
	way_of(0)->n_frames = 5;
	nat_rules_settle(fixture.maps);
	fixture.maps->n_shards++; /* it was that of another number of workers */
	assert_int_equal(take_over(&why), 0);
	assert_int_equal(n_out(), 5);
	assert_int_equal(set->n_free, N_MAX - 2);
	nat_rules_settle(fixture.maps);
	assert_int_equal(set->n_free, N_MAX);
	end();
}

TEST_STARTED(a_damaged_rule_is_refused)
{
	struct mr_reason why = { "" };
	uint32_t number;

	begin();
	nat_rules_settle(fixture.maps);
	number = mr_flow_next(fixture.maps->rules->table, MR_FLOW_NONE);
	nat_rule_at(fixture.maps->rules, number)->id = N_MAX;
	assert_int_equal(take_over(&why), -EPROTO);
	assert_non_null(strstr(why.text, "0/rules"));
	simulated_close(set);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/datapath/neighbours.c: the table of neighbours. */
#include "support/unit.h"

#include <arpa/inet.h>
#include <stdbool.h>

#include "datapath/neighbours.h"

static struct nat_neighbours *table(const struct nat_config *config)
{
	static const struct nat_config none;
	struct nat_neighbours *neighbours = NULL;

	assert_int_equal(nat_neighbours_create(config != NULL ? config : &none,
					       &neighbours, NULL),
			 0);
	return neighbours;
}

/* Addresses of a link follow each other; each finds a place, whatever seed. */
TEST(a_table_has_room_for_a_large_link)
{
	for (uint32_t round = 0; round < 20; round++) {
		struct nat_neighbours *neighbours = table(NULL);

		for (uint32_t i = 0; i < 16384; i++) {
			const uint32_t addr = htonl(0x0a000000 + i);
			const uint32_t slot = nat_neighbours_add(
				neighbours, NAT_INSIDE, addr, false, 1);

			assert_int_not_equal(slot, NAT_SLOT_NONE);
			assert_int_equal(nat_neighbours_find(neighbours,
							     NAT_INSIDE, addr),
					 slot);
			assert_int_equal(nat_neighbours_find(neighbours,
							     NAT_OUTSIDE, addr),
					 NAT_SLOT_NONE);
		}
		nat_neighbours_destroy(neighbours);
	}
}

TEST(a_forgotten_neighbour_is_queried_again)
{
	const struct nat_config config = {
		.sides[NAT_OUTSIDE] = { .n_neighbours = 1,
					.neighbours = { { 0x0a000003,
							  { 2 } } } },
	};
	struct nat_neighbours *n = table(&config);
	const uint32_t addr = htonl(0x0a000002);
	const uint32_t slot = nat_neighbours_add(n, NAT_INSIDE, addr, true, 10);
	const uint32_t fixed = nat_neighbours_find(n, NAT_OUTSIDE,
						   htonl(0x0a000003));
	struct nat_neighbour_info is = nat_neighbours_at(n, slot);

	assert_int_equal(is.state, NAT_NEIGHBOUR_INCOMPLETE);
	assert_int_equal(is.side, NAT_INSIDE);
	assert_int_equal(is.addr, addr);
	assert_false(nat_neighbours_forget(n, slot, 10));
	nat_neighbours_learn(n, slot, NAT_INSIDE, addr, 0x112233445566, 11);
	assert_true(nat_neighbours_forget(n, slot, 11));
	assert_int_equal(nat_neighbours_at(n, slot).state, NAT_NEIGHBOUR_NONE);
	assert_int_equal(nat_neighbours_find(n, NAT_INSIDE, addr),
			 NAT_SLOT_NONE);
	assert_false(nat_neighbours_forget(n, slot, 11));
	assert_false(nat_neighbours_forget(n, fixed, 11));
	assert_int_equal(nat_neighbours_add(n, NAT_INSIDE, addr, true, 12),
			 slot);
	assert_int_equal(nat_neighbours_at(n, slot).state,
			 NAT_NEIGHBOUR_INCOMPLETE);
	nat_neighbours_destroy(n);
}

/* Workers are up to a second apart. */
TEST(a_worker_whose_clock_is_ahead_makes_no_entry_stale)
{
	struct nat_neighbours *n = table(NULL);
	const uint32_t addr = htonl(0x0a000002);
	const uint32_t slot = nat_neighbours_add(n, NAT_INSIDE, addr, true, 10);
	uint64_t mac = 0;

	nat_neighbours_learn(n, slot, NAT_INSIDE, addr, 0x112233445566, 11);
	assert_true(
		nat_neighbours_is_fresh(n, slot, NAT_INSIDE, addr, 10, &mac));
	nat_neighbours_destroy(n);
}

/* Somebody scans a link: where no answer comes others find a place later. */
TEST(an_entry_of_a_failed_neighbour_is_reused)
{
	struct nat_neighbours *n = table(NULL);
	uint32_t addr = 0x0a000000;

	while (nat_neighbours_add(n, NAT_INSIDE, htonl(addr), true, 10) !=
	       NAT_SLOT_NONE)
		addr++;
	assert_int_equal(nat_neighbours_add(n, NAT_INSIDE, htonl(addr), true,
					    10 + NAT_INCOMPLETE_S),
			 NAT_SLOT_NONE);
	assert_int_not_equal(nat_neighbours_add(n, NAT_INSIDE, htonl(addr),
						true, 11 + NAT_INCOMPLETE_S),
			     NAT_SLOT_NONE);
	nat_neighbours_destroy(n);
}

/* Who kept the number of a slot that went to another address is not fooled. */
TEST(an_old_number_of_a_reused_slot_is_noticed)
{
	struct nat_neighbours *n = table(NULL);
	const uint32_t old = htonl(0x0a000002);
	const uint32_t slot = nat_neighbours_add(n, NAT_INSIDE, old, true, 10);
	uint32_t other = 0, next;
	uint64_t mac = 0;

	assert_true(nat_neighbours_move(n, slot, NAT_INSIDE, old,
					NAT_NEIGHBOUR_INCOMPLETE,
					NAT_NEIGHBOUR_FAILED, 10));
	/* Others that are in use fill its bucket, until one takes its slot. */
	for (next = 0x0b000000; next < 0x0c000000; next++) {
		other = htonl(next);
		if (nat_neighbours_add(n, NAT_INSIDE, other, true, 10) == slot)
			break;
	}
	assert_int_equal(nat_neighbours_look(n, slot, NAT_INSIDE, old, &mac),
			 NAT_NEIGHBOUR_NONE);
	nat_neighbours_learn(n, slot, NAT_INSIDE, old, 0x99, 10);
	assert_false(nat_neighbours_move(n, slot, NAT_INSIDE, old,
					 NAT_NEIGHBOUR_INCOMPLETE,
					 NAT_NEIGHBOUR_FAILED, 10));
	assert_int_equal(nat_neighbours_look(n, slot, NAT_INSIDE, other, &mac),
			 NAT_NEIGHBOUR_INCOMPLETE);
	nat_neighbours_destroy(n);
}

TEST(static_neighbours_are_not_learned)
{
	static struct nat_config config;
	struct nat_neighbours *n;
	uint64_t mac = 0;

	config.sides[NAT_OUTSIDE].n_neighbours = NAT_MAX_NEIGHBOURS;
	for (uint32_t i = 0; i < NAT_MAX_NEIGHBOURS; i++) {
		config.sides[NAT_OUTSIDE].neighbours[i].addr = 0xc0000200 + i;
		config.sides[NAT_OUTSIDE].neighbours[i].mac[5] = (uint8_t)i;
	}
	n = table(&config);
	for (uint32_t i = 0; i < NAT_MAX_NEIGHBOURS; i++) {
		const uint32_t addr = htonl(0xc0000200 + i);
		const uint32_t slot = nat_neighbours_find(n, NAT_OUTSIDE, addr);

		nat_neighbours_learn(n, slot, NAT_OUTSIDE, addr, 0x99, 10);
		assert_true(nat_neighbours_is_fresh(n, slot, NAT_OUTSIDE, addr,
						    1000000, &mac));
		assert_int_equal(mac >> 40, i);
	}
	nat_neighbours_destroy(n);
}

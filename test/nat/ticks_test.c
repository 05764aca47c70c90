/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a worker handles its rules between bursts:
 * apps/nat/mapping/rule_set.c. */
#include <time.h>

#include "nat/fixture.h"

#include "mapping/rule.h"
#include "simulated.h"

enum { FEW = 16, MANY = 65536, TICKS = 256 };

static struct mr_rules *rules;

static uint32_t n_rules(void)
{
	return (uint32_t)nat_rules_stats(fixture.maps->rules).n_rules;
}

static void settle(void)
{
	nat_rules_tick(fixture.maps);
	nat_rules_serve(fixture.maps->rules);
	nat_rules_tick(fixture.maps);
}

/* Add rules of a socket without sessions, each to its own remote end. */
static void add_rules(uint32_t id, uint32_t first, uint32_t n)
{
	for (uint32_t i = first; i < first + n; i++) {
		nat_rule_use(fixture.maps, id, NAT_OUT, NULL,
			     remote(REMOTE + i, 53), 0);
		settle();
	}
	assert_int_equal(n_rules(), first + n);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The shortest time that TICKS calls took: other programs share the core. */
static uint64_t ticks_ns(void)
{
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < 8; i++) {
		const uint64_t begin = now_ns();

		for (uint32_t t = 0; t < TICKS; t++)
			nat_rules_tick(fixture.maps);
		least = now_ns() - begin < least ? now_ns() - begin : least;
	}
	return least;
}

/* Each rule has used its record. */
TEST_STARTED(many_rules_that_ended_do_not_slow_down_a_worker)
{
	const uint32_t id = fixture_map(UDP, INSIDE + 1, 5000);
	struct mr_reason why = { "" };
	uint64_t few_ns;

	if (simulated_open(fixture.ctx, MANY, 1, 0, 1, &rules, &why) < 0 ||
	    nat_rules_create(fixture.maps, rules, MANY, -1, 1, &why) < 0)
		fail_msg("%s", why.text);
	assert_int_equal(fixture_out(id, REMOTE - 1, 53, 0), NAT_OK);
	add_rules(id, 0, FEW);
	few_ns = ticks_ns();
	add_rules(id, FEW, MANY - FEW);
	for (uint32_t i = FEW; i < MANY; i++)
		nat_rule_end(fixture.maps, id, remote(REMOTE + i, 53));
	while (n_rules() > FEW)
		settle();
	assert_in_range(ticks_ns(), 1, 20 * few_ns);
	nat_rules_end_all(fixture.maps);
	simulated_close(rules);
}

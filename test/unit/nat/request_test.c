/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/control/request.c: what a worker is asked to end. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "fixture.h"

#include "control/request.h"

/* How many the worker says it has ended, asked until it is through. */
static uint32_t clear_how(const char *filter, bool is_now)
{
	const struct nat_request_to to = { .maps = fixture.maps,
					   .now_s = fixture.now_s };
	struct nat_request request = { .answered_fd = eventfd(0, EFD_CLOEXEC),
				       .question = NAT_ASK_CLEAR,
				       .is_now = is_now };
	struct mr_reason why;
	uint32_t n = 0;

	assert_true(request.answered_fd >= 0);
	assert_true(nat_filter_parse(filter, &request.filter, &why));
	do {
		nat_request_set(&request, NAT_REQUEST_ASKED);
		nat_request_answer(&request, &to);
		assert_true(nat_request_state(&request) ==
			    NAT_REQUEST_ANSWERED);
		n += request.n;
		nat_request_set(&request, NAT_REQUEST_FREE);
	} while (!request.is_end);
	close(request.answered_fd);
	return n;
}

static uint32_t clear(const char *filter)
{
	return clear_how(filter, false);
}

TEST_STARTED(ports_wait_unless_it_is_to_be_now)
{
	for (uint32_t i = 0; i < NAT_REQUEST_PORTS + 10; i++)
		fixture_map(UDP, INSIDE, (uint16_t)(1000 + i));
	assert_int_equal(clear("all"), NAT_REQUEST_PORTS + 10);
	assert_int_equal(fixture_stats().n_quarantined, NAT_REQUEST_PORTS + 10);
	fixture_map(UDP, INSIDE, 1);
	assert_int_equal(clear_how("all", true), 1);
	assert_int_equal(fixture_stats().n_quarantined, 0);
	fixture_check_ports();
}

TEST_STARTED(a_snapshot_takes_few_rounds)
{
	struct nat_request request = { .answered_fd = eventfd(0, EFD_CLOEXEC),
				       .question = NAT_ASK_SAVE };
	struct nat_request_to to;

	to = (struct nat_request_to){ .maps = fixture.maps,
				      .now_s = fixture.now_s };
	for (uint32_t i = 0; i < NAT_REQUEST_SAVED + 100; i++)
		fixture_map(UDP, INSIDE, (uint16_t)(1000 + i));
	nat_request_set(&request, NAT_REQUEST_ASKED);
	nat_request_answer(&request, &to);
	assert_int_equal(request.n, NAT_REQUEST_SAVED);
	assert_true(request.n >= 8 * NAT_REQUEST_SESSIONS);
	nat_request_set(&request, NAT_REQUEST_ASKED);
	nat_request_answer(&request, &to);
	assert_int_equal(request.n, 100);
	close(request.answered_fd);
}

TEST_STARTED(what_the_filter_has_ends_with_all_its_sessions)
{
	uint32_t id;

	id = fixture_map(TCP, INSIDE, 1);
	fixture_out(id, REMOTE, 80, SYN);
	fixture_out(id, REMOTE + 1, 80, SYN);
	fixture_out(fixture_map(UDP, INSIDE, 1), REMOTE, 53, 0);
	assert_int_equal(clear("proto=icmp"), 0);
	assert_int_equal(clear("proto=tcp,port=80"), 1);
	assert_int_equal(fixture_stats().n_mappings, 1);
	assert_int_equal(fixture_stats().n_sessions, 0);
	assert_int_equal(clear("all"), 1);
	assert_int_equal(fixture_stats().n_mappings, 0);
}

TEST_FIXTURE(a_forward_stays_but_its_sessions_end)
{
	const struct nat_forward forward = {
		.proto_mask = 1 << NAT_TCP,
		.outside_addr = POOL,
		.inside_addr = INSIDE + 5,
		.outside_first = 2000,
		.outside_last = 2000,
		.inside_first = 80,
	};
	uint32_t id;

	fixture.config.filtering[NAT_TCP] = NAT_FILTER_ADDRESS;
	fixture.forwards[fixture.config.n_forwards++] = forward;
	fixture_start();
	assert_int_equal(clear("all"), 0);
	id = fixture_find_in(TCP, POOL, 2000);
	fixture_out(id, REMOTE, 1, SYN);
	fixture_out(id, REMOTE + 1, 1, SYN);
	assert_int_equal(fixture_in(id, REMOTE, 1, SYN), NAT_OK);
	assert_int_equal(clear("all"), 1);
	assert_int_equal(fixture_stats().n_sessions, 0);
	assert_int_equal(fixture_find_in(TCP, POOL, 2000), id);
	assert_int_equal(fixture_in(id, REMOTE, 1, SYN),
			 NAT_OK); /* a new one */
}

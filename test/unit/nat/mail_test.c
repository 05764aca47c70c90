/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/nat/control/mail.c: what a worker is asked to end. */
#include <sys/eventfd.h>
#include <unistd.h>

#include "rig.h"

#include "control/mail.h"

/* How many the worker says it has ended, asked until it is through. */
static uint32_t clear_how(const struct rig *one, const char *filter,
			  bool is_now)
{
	const struct nat_mail_to to = { .maps = one->maps,
					.now_s = one->now_s };
	struct nat_mail mail = { .answered_fd = eventfd(0, EFD_CLOEXEC),
				 .question = NAT_ASK_CLEAR,
				 .is_now = is_now };
	struct mr_reason why;
	uint32_t n = 0;

	assert_true(mail.answered_fd >= 0);
	assert_true(nat_filter_parse(filter, &mail.filter, &why));
	do {
		nat_mail_ask(&mail);
		nat_mail_answer(&mail, &to);
		assert_true(nat_mail_is_answered(&mail));
		n += mail.n;
		nat_mail_done(&mail);
	} while (!mail.is_end);
	close(mail.answered_fd);
	return n;
}

static uint32_t clear(const struct rig *one, const char *filter)
{
	return clear_how(one, filter, false);
}

TEST_STARTED(ports_wait_unless_it_is_to_be_now)
{
	for (uint32_t i = 0; i < NAT_MAIL_PORTS + 10; i++)
		rig_map(&rig, UDP, INSIDE, (uint16_t)(1000 + i));
	assert_int_equal(clear(&rig, "all"), NAT_MAIL_PORTS + 10);
	assert_int_equal(rig_stats(&rig).n_quarantined, NAT_MAIL_PORTS + 10);
	rig_map(&rig, UDP, INSIDE, 1);
	assert_int_equal(clear_how(&rig, "all", true), 1);
	assert_int_equal(rig_stats(&rig).n_quarantined, 0);
	rig_check_ports(&rig);
}

TEST_STARTED(a_snapshot_takes_few_rounds)
{
	struct nat_mail mail = { .answered_fd = eventfd(0, EFD_CLOEXEC),
				 .question = NAT_ASK_SAVE };
	struct nat_mail_to to;

	to = (struct nat_mail_to){ .maps = rig.maps, .now_s = rig.now_s };
	for (uint32_t i = 0; i < NAT_MAIL_SAVED + 100; i++)
		rig_map(&rig, UDP, INSIDE, (uint16_t)(1000 + i));
	nat_mail_ask(&mail);
	nat_mail_answer(&mail, &to);
	assert_int_equal(mail.n, NAT_MAIL_SAVED);
	assert_true(mail.n >= 8 * NAT_MAIL_SESSIONS);
	nat_mail_ask(&mail);
	nat_mail_answer(&mail, &to);
	assert_int_equal(mail.n, 100);
	close(mail.answered_fd);
}

TEST_STARTED(what_the_filter_has_ends_with_all_its_sessions)
{
	uint32_t id;

	id = rig_map(&rig, TCP, INSIDE, 1);
	rig_out(&rig, id, REMOTE, 80, SYN);
	rig_out(&rig, id, REMOTE + 1, 80, SYN);
	rig_out(&rig, rig_map(&rig, UDP, INSIDE, 1), REMOTE, 53, 0);
	assert_int_equal(clear(&rig, "proto=icmp"), 0);
	assert_int_equal(clear(&rig, "proto=tcp,port=80"), 1);
	assert_int_equal(rig_stats(&rig).n_mappings, 1);
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
	assert_int_equal(clear(&rig, "all"), 1);
	assert_int_equal(rig_stats(&rig).n_mappings, 0);
}

TEST_RIG(a_forward_stays_but_its_sessions_end)
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

	rig.config.filtering[NAT_TCP] = NAT_FILTER_ADDRESS;
	rig.forwards[rig.config.n_forwards++] = forward;
	rig_start(&rig);
	assert_int_equal(clear(&rig, "all"), 0);
	id = rig_find_in(&rig, TCP, POOL, 2000);
	rig_out(&rig, id, REMOTE, 1, SYN);
	rig_out(&rig, id, REMOTE + 1, 1, SYN);
	assert_int_equal(rig_in(&rig, id, REMOTE, 1, SYN), NAT_OK);
	assert_int_equal(clear(&rig, "all"), 1);
	assert_int_equal(rig_stats(&rig).n_sessions, 0);
	assert_int_equal(rig_find_in(&rig, TCP, POOL, 2000), id);
	assert_int_equal(rig_in(&rig, id, REMOTE, 1, SYN),
			 NAT_OK); /* a new one */
}

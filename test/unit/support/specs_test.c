/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of apps/support/specs.c. */
#include "support/unit_ctx.h"

#include "support/specs.h"

enum { N = 2 };

/* The specs that two of the user's become; "" if they are refused. */
static void check_specs(const char *first, const char *second,
			struct port_options options, const char *want_first,
			const char *want_second)
{
	const char *const specs[N] = { first, second };
	char made[N][MAX_SPEC_BYTES];
	struct mr_reason error;

	if (specs_make(ctx, specs, N, &options, made, &error) != 0)
		fail_msg("%s", error.text);
	assert_string_equal(made[0], want_first);
	assert_string_equal(made[1], want_second);
}

TEST_CTX(options_go_to_ports_that_know_them)
{
	check_specs("null:", "pair:x", (struct port_options){ 0 },
		    "null:", "pair:x");
	check_specs("null:", "pair:x", (struct port_options){ .n_queues = 2 },
		    "null:,queues=2", "pair:x,queues=2");
	/* The user's own comes first, also behind an escaped comma. */
	check_specs("null:queues=3", "pair:x\\,queues",
		    (struct port_options){ .n_queues = 2 }, "null:queues=3",
		    "pair:x\\,queues,queues=2");
	/* Where all have their own, none is missing. */
	check_specs("null:queues=3", "pair:x,queues=1",
		    (struct port_options){ .n_queues = 2 }, "null:queues=3",
		    "pair:x,queues=1");
	check_specs("null:len=60,queues=3", "null:queues=1,len=60",
		    (struct port_options){ .n_queues = 2 },
		    "null:len=60,queues=3", "null:queues=1,len=60");
	check_specs("null:queues=3", "null:queues=1",
		    (struct port_options){ .n_queues = 2 }, "null:queues=3",
		    "null:queues=1");
	/* One port that takes it is enough. */
	check_specs("null:", "pair:x", (struct port_options){ .n_ring = 128 },
		    "null:", "pair:x,ring=128");
}

/* xdp: ports have filters; a spec is not opened here. */
TEST_CTX(punted_frames_do_not_match_the_ports_filter)
{
	check_specs("xdp:eth0", "null:",
		    (struct port_options){ .punt = "arp or ip[2:2] > 5\\" },
		    "xdp:eth0,promisc,filter=not (arp or ip[2:2] > 5\\\\)",
		    "null:");
	check_specs("xdp:eth0,vlan=5",
		    "null:", (struct port_options){ .punt = "a,b" },
		    "xdp:eth0,vlan=5,promisc,filter=not (a\\,b)", "null:");
}

static void check_refused_spec(const char *spec, struct port_options options,
			       const char *says)
{
	const char *const specs[] = { spec };
	char made[1][MAX_SPEC_BYTES];
	struct mr_reason error;

	assert_int_equal(specs_make(ctx, specs, 1, &options, made, &error), 2);
	assert_reason_has(&error, says);
}

TEST_CTX(an_option_that_no_port_takes_is_refused)
{
	const struct port_options off = { .promisc = PROMISC_OFF };
	char too_long[MAX_SPEC_BYTES + 10] = "null:";

	check_refused_spec("null:", (struct port_options){ .mtu_bytes = 1500 },
			   "--mtu: no port has this option");
	check_refused_spec(
		"null:", (struct port_options){ .promisc = PROMISC_ON },
		"--promisc: no port has this option");
	check_specs("null:", "null:",
		    (struct port_options){ .promisc = PROMISC_AUTO },
		    "null:", "null:");
	check_specs("null:", "null:", off, "null:", "null:");
	check_refused_spec("null:", (struct port_options){ .punt = "arp" },
			   "--punt: no port has this option");
	check_refused_spec("xdp:eth0,filter=tcp",
			   (struct port_options){ .punt = "arp" },
			   "--punt and the port's own filter exclude");
	/* A comma of a name begins no option. */
	check_refused_spec("pair:x\\,mtu",
			   (struct port_options){ .mtu_bytes = 1500 },
			   "--mtu: no port has this option");
	check_refused_spec("nodriver:x", (struct port_options){ .n_queues = 1 },
			   "nodriver:x");
	memset(too_long + 5, 'x', MAX_SPEC_BYTES);
	check_refused_spec(too_long, off, "too long");
}

TEST(a_device_given_twice_is_refused)
{
	static const struct {
		const char *specs[N];
		const char *says; /* NULL: they differ */
	} cases[] = {
		{ { "a", "a" },
		  "a is given twice; a port can be used only once" },
		{ { "a", "xdp:a" }, "a is given twice" },
		{ { "xdp:a,queues=1", "a,queues=2" }, "a is given twice" },
		{ { "0000:01:00.0", "vfio:0000:01:00.0" }, "is given twice" },
		{ { "xdp:a", "xdp:b" }, NULL },
		{ { "xdp:ab", "xdp:a" }, NULL },
		{ { "0000:01:00.0", "0000:01:00.1" }, NULL },
		/* The driver decides. */
		{ { "null:", "null:" }, NULL },
		{ { "pair:x", "pair:x" }, NULL },
		{ { "pcap:rx=a", "pcap:rx=a" }, NULL },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_reason error = { "" };

		assert_int_equal(specs_differ(cases[i].specs, N, &error),
				 cases[i].says == NULL);
		if (cases[i].says != NULL)
			assert_reason_has(&error, cases[i].says);
	}
}

TEST(an_error_names_its_port_once)
{
	const struct mr_reason with = { "eth0: no such device" };
	const struct mr_reason without = { "no such device" };
	struct mr_reason error;

	assert_int_equal(fail_port(&error, 7, "eth0,queues=2", &with), 7);
	assert_string_equal(error.text, "eth0: no such device");
	assert_int_equal(fail_port(&error, 1, "eth0,queues=2", &without), 1);
	assert_string_equal(error.text, "eth0,queues=2: no such device");
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taps in a private network namespace; the far side is a packet socket.
 *
 *     inject --> packet socket --> mrt0 ~~~ port
 *     collect <-- packet socket <-- mrt0 ~~~ port
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "far_socket.h"

static const char *const names[] = { "mrt0", "mrt1", "mrt2" };

/* The taps stay when a port closes, with what is bound to them. */
static const char *probe(void)
{
	const char *why_not;

	if (access("/dev/net/tun", R_OK | W_OK) < 0)
		return "no /dev/net/tun";
	why_not = far_namespace();
	if (why_not != NULL)
		return why_not;
	return far_run("ip tuntap add mrt0 mode tap && "
		       "ip tuntap add mrt1 mode tap && "
		       "ip tuntap add mrt2 mode tap multi_queue && "
		       "for i in 0 1 2; do "
		       "ip link set mrt$i up txqueuelen 10000; done") ?
		       NULL :
		       "no tap: ip tuntap failed";
}

static const char *name_of(const struct harness *harness)
{
	return names[harness->wish.n_queues == 2 ? 2 : harness->number];
}

static void setup(struct harness *harness)
{
	const char *name = name_of(harness);
	char command[64];

	snprintf(command, sizeof(command), "ip link set %s up mtu %d", name,
		 harness->wish.is_sg ? 65000 : 1500);
	assert_true(far_run(command));
	far_socket_open(harness, name);
	snprintf(harness->spec, sizeof(harness->spec), "tap:%s,queues=%u%s",
		 name, harness->wish.n_queues,
		 harness->wish.is_sg ? ",sg=on" : "");
}

static void opened(struct harness *harness)
{
	far_socket_await_link(harness, name_of(harness));
}

static const struct bad_spec bad_specs[] = {
	{ "tap:", -EINVAL, "name" },
	{ "tap:sixteen_letters_", -EINVAL, "15" },
	{ "tap:mrt%d", -EINVAL, "'%'" },
	{ "tap:mrt0,queues=0", -EINVAL, "queues" },
	{ "tap:mrt0,queues=65", -EINVAL, "64" },
	{ "tap:mrt0,tso=maybe", -EINVAL, "tso" },
	{ "tap:mrt0,mtu=1500", -EINVAL, "mtu" },
	{ "tap:lo", -ENODEV, "lo" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_tap = {
	.driver = "tap",
	.ring_entries = 1024,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_EXCLUSIVE | FIXTURE_QUEUES |
		  FIXTURE_OVERLONG,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_sleeps = 20000,
	.n_reopens = 20,
	.bad_specs = bad_specs,
	.probe = probe,
	.setup = setup,
	.teardown = far_socket_close,
	.opened = opened,
	.inject = far_socket_inject,
	.collect = far_socket_collect,
};

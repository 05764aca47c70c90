/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A veth pair in a private network namespace; the port is on one end, a packet
 * socket on the other.
 *
 *     inject --> packet socket --> mrb ~~~ mra --> AF_XDP port
 *     collect <-- packet socket <-- mrb ~~~ mra <-- AF_XDP port
 *
 * mrc and mrd are such a pair with two channels each, mre and mrf a second
 * port.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "far_socket.h"

enum { FAMILY_XDP = 44 }; /* AF_XDP */

static const char *probe(void)
{
	static char why[128];
	const char *why_not;
	const int fd = socket(FAMILY_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		snprintf(why, sizeof(why), "no AF_XDP socket: %s",
			 strerror(errno));
		return why;
	}
	close(fd);
	why_not = far_namespace();
	if (why_not != NULL)
		return why_not;
	if (!far_run("ip link add mra type veth peer name mrb && "
		     "ip link add mrc numrxqueues 2 numtxqueues 2 type veth "
		     "peer name mrd numrxqueues 2 numtxqueues 2 && "
		     "ip link add mre type veth peer name mrf && "
		     "for i in mra mrb mrc mrd mre mrf; do ip link set $i up; "
		     "done"))
		return "no veth pair: ip link add failed";
	return NULL;
}

/* Redirected frames reach a peer only if it has NAPI. */
static void receive_redirected(const char *end, bool does)
{
	char command[64];

	snprintf(command, sizeof(command), "ethtool -K %s gro %s", end,
		 does ? "on" : "off");
	assert_true(far_run(command));
}

static void setup(struct harness *harness)
{
	const uint32_t i = harness->number == 1        ? 2 :
			   harness->wish.n_queues == 2 ? 1 :
							 0;
	static const char *const near[] = { "mra", "mrc", "mre" };
	static const char *const far[] = { "mrb", "mrd", "mrf" };

	far_socket_open(harness, far[i]);
	if (harness->wish.has_rules)
		receive_redirected(far[i], true);
	assert_true(far_run(harness->wish.is_sg ? "ip link set mrb mtu 9000" :
						  "ip link set mrb mtu 1500"));
	snprintf(harness->spec, sizeof(harness->spec), "xdp:%s,ring=%u%s",
		 near[i], harness->wish.ring_entries,
		 harness->wish.is_sg ? ",mtu=9000,sg=on" : ",sg=off");
}

static void teardown(struct harness *harness)
{
	if (harness->far != NULL && harness->wish.has_rules)
		receive_redirected(harness->number == 1 ? "mrf" : "mrb", false);
	far_socket_close(harness);
}

static const struct bad_spec bad_specs[] = {
	{ "xdp:", -EINVAL, "interface" },
	{ "xdp:mrnone", -ENODEV, "mrnone" },
	{ "mrnone", -ENODEV, "mrnone" },
	{ "xdp:mra,mode=zc", -ENOTSUP, "mode=zc" },
	{ "xdp:mra,mode=fast", -EINVAL, "fast" },
	{ "xdp:mra,queues=2", -EINVAL, "queue" },
	{ "xdp:mra,ring=100", -EINVAL, "power of two" },
	{ "xdp:mra,ring=1", -EINVAL, "ring" },
	{ "xdp:mra,promisc=maybe", -EINVAL, "promisc" },
	{ "xdp:mra,force=2", -EINVAL, "force" },
	{ NULL, 0, NULL },
};

const struct fixture fixture_xdp = {
	.driver = "xdp",
	.ring_entries = 1024,
	.traits = FIXTURE_IN | FIXTURE_OUT | FIXTURE_LIVE | FIXTURE_SG |
		  FIXTURE_CHECKS | FIXTURE_REGISTERS | FIXTURE_EXCLUSIVE |
		  FIXTURE_QUEUES,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.max_page_bytes = 4096,
	.n_sleeps = 20000,
	.n_reopens = 5,
	.bad_specs = bad_specs,
	.probe = probe,
	.setup = setup,
	.teardown = teardown,
	.inject = far_socket_inject,
	.collect = far_socket_collect,
};

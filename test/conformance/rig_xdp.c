/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic: the interfaces named by the environment, which are joined by a cable:
 * MR_NIC and, at its other end, MR_NIC_FAR; MR_NIC_OPTIONS follow the spec, as
 * mode=zc. What is on them before and after is the caller's.
 *
 * xdp: a veth pair in a network namespace of this process alone; the port is on
 * one end, a packet socket on the other.
 *
 *     inject --> packet socket --> mrb ~~~ mra --> AF_XDP port
 *     collect <-- packet socket <-- mrb ~~~ mra <-- AF_XDP port
 *
 * mrc and mrd are such a pair with two channels each.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bed.h"

enum {
	FAMILY_XDP = 44,             /* AF_XDP */
	OPTION_IGNORE_OUTGOING = 23, /* PACKET_IGNORE_OUTGOING, Linux 4.20 */
	RECEIVE_BUFFER_BYTES = 32 << 20,
};

struct far {
	int fd;
};

static int open_far(const char *interface)
{
	const int one = 1, n_bytes = RECEIVE_BUFFER_BYTES;
	const struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(interface),
	};
	/* Frames are addressed to nobody: a NIC has to be told to take them. */
	const struct packet_mreq all = { .mr_ifindex = addr.sll_ifindex,
					 .mr_type = PACKET_MR_PROMISC };
	const int fd = socket(AF_PACKET,
			      SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_PACKET, OPTION_IGNORE_OUTGOING, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &n_bytes, sizeof(n_bytes));
	setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all));
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)),
			 0);
	return fd;
}

static bool run(const char *command)
{
	return system(command) == 0;
}

static const char *probe(void)
{
	static char why[128];
	const int fd = socket(FAMILY_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0) {
		snprintf(why, sizeof(why), "no AF_XDP socket: %s",
			 strerror(errno));
		return why;
	}
	close(fd);
	if (unshare(CLONE_NEWNET) < 0) {
		snprintf(why, sizeof(why), "no network namespace: %s (root?)",
			 strerror(errno));
		return why;
	}
	/* A kernel with IPv6 would send frames of its own, and we count. */
	run("for f in all default; do "
	    "echo 1 > /proc/sys/net/ipv6/conf/$f/disable_ipv6; "
	    "done 2> /dev/null");
	if (!run("ip link add mra type veth peer name mrb && "
		 "ip link add mrc numrxqueues 2 numtxqueues 2 type veth "
		 "peer name mrd numrxqueues 2 numtxqueues 2 && "
		 "for i in mra mrb mrc mrd; do ip link set $i up; done"))
		return "no veth pair: ip link add failed";
	return NULL;
}

static void setup(struct bed *bed)
{
	struct far *far = calloc(1, sizeof(*far));

	assert_non_null(far);
	bed->far = far;
	far->fd = open_far(bed->wish.n_queues == 2 ? "mrd" : "mrb");
	assert_true(run(bed->wish.is_sg ? "ip link set mrb mtu 9000" :
					  "ip link set mrb mtu 1500"));
	snprintf(bed->spec, sizeof(bed->spec), "xdp:%s,ring=%u%s",
		 bed->wish.n_queues == 2 ? "mrc" : "mra",
		 bed->wish.ring_entries != 0 ? bed->wish.ring_entries : 1024,
		 bed->wish.is_sg ? ",mtu=9000,sg=on" : ",sg=off");
}

static void teardown(struct bed *bed)
{
	struct far *far = bed->far;

	if (far == NULL)
		return;
	if (far->fd >= 0)
		close(far->fd);
	free(far);
	bed->far = NULL;
}

static bool inject(struct bed *bed, const uint8_t *bytes, uint32_t n_bytes)
{
	const struct far *far = bed->far;

	if (send(far->fd, bytes, n_bytes, 0) == (ssize_t)n_bytes)
		return true;
	if (errno != EAGAIN && errno != ENOBUFS)
		fail_msg("send of %u bytes: %s", n_bytes, strerror(errno));
	return false;
}

static uint32_t collect(struct bed *bed, uint8_t *bytes, uint32_t room)
{
	const struct far *far = bed->far;
	ssize_t n;

	while ((n = recv(far->fd, bytes, room, 0)) > 0)
		if (traffic_is_ours(bytes, (uint32_t)n))
			return (uint32_t)n;
	return 0;
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
	{ NULL, 0, NULL },
};

const struct rig rig_xdp = {
	.driver = "xdp",
	.traits = RIG_IN | RIG_OUT | RIG_LIVE | RIG_SG | RIG_CHECKS |
		  RIG_REGISTERS | RIG_EXCLUSIVE | RIG_QUEUES,
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 9014,
	.n_sleeps = 20000,
	.n_reopens = 5,
	.bad_specs = bad_specs,
	.probe = probe,
	.setup = setup,
	.teardown = teardown,
	.inject = inject,
	.collect = collect,
};

static const char *probe_nic(void)
{
	static const char *const names[] = { "MR_NIC", "MR_NIC_FAR",
					     "MR_NIC_OPTIONS" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (getenv(names[i]) == NULL)
			return "MR_NIC, MR_NIC_FAR and MR_NIC_OPTIONS name no "
			       "NICs to test on";
	return NULL;
}

static void setup_nic(struct bed *bed)
{
	struct far *far = calloc(1, sizeof(*far));

	assert_non_null(far);
	bed->far = far;
	far->fd = open_far(getenv("MR_NIC_FAR"));
	/* igb uses 1 KiB of such a chunk: there, the port chooses its mode. */
	snprintf(bed->spec, sizeof(bed->spec), "xdp:%s,ring=%u,promisc,%s",
		 getenv("MR_NIC"),
		 bed->wish.ring_entries != 0 ? bed->wish.ring_entries : 1024,
		 bed->wish.page_bytes == 2048 ? "mode=auto" :
						getenv("MR_NIC_OPTIONS"));
}

static const struct bad_spec bad_nic_specs[] = {
	{ "xdp:mrnone", -ENODEV, "mrnone" },
	{ NULL, 0, NULL },
};

const struct rig rig_nic = {
	.driver = "xdp",
	.name = "nic",
	.traits = RIG_IN | RIG_OUT | RIG_LIVE | RIG_CHECKS | RIG_REGISTERS |
		  RIG_EXCLUSIVE,
	.min_frame_bytes = 60, /* Ethernet's 64 without FCS: NICs pad to it */
	.max_frame_bytes = 1514,
	.max_sg_frame_bytes = 1514,
	.n_sleeps = 2000,
	.n_reopens = 3,
	.bad_specs = bad_nic_specs,
	.probe = probe_nic,
	.setup = setup_nic,
	.teardown = teardown,
	.inject = inject,
	.collect = collect,
};

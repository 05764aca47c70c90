/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "far_socket.h"

enum {
	OPTION_IGNORE_OUTGOING = 23, /* PACKET_IGNORE_OUTGOING, Linux 4.20 */
	RECEIVE_BUFFER_BYTES = 32 << 20,
};

struct far {
	int fd;
};

static int open_socket(const char *interface)
{
	const int one = 1, n_bytes = RECEIVE_BUFFER_BYTES;
	const struct sockaddr_ll addr = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(interface),
	};
	/* Frames have arbitrary destinations: the NIC must accept all. */
	const struct packet_mreq all = { .mr_ifindex = addr.sll_ifindex,
					 .mr_type = PACKET_MR_PROMISC };
	const int fd =
		socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_PACKET, OPTION_IGNORE_OUTGOING, &one, sizeof(one));
	/* A kernel queue may reorder frames while the device's is full. */
	assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &one,
				    sizeof(one)),
			 0);
	assert_int_equal(
		setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)),
		0);
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &n_bytes, sizeof(n_bytes));
	setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all));
	assert_int_equal(bind(fd, (const struct sockaddr *)&addr, sizeof(addr)),
			 0);
	return fd;
}

void far_socket_open(struct harness *harness, const char *interface)
{
	struct far *far = calloc(1, sizeof(*far));

	assert_non_null(far);
	harness->far = far;
	far->fd = open_socket(interface);
}

void far_socket_close(struct harness *harness)
{
	struct far *far = harness->far;

	if (far == NULL)
		return;
	if (far->fd >= 0)
		close(far->fd);
	free(far);
	harness->far = NULL;
}

uint32_t far_socket_mtu(const char *interface)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq mtu = { 0 };
	int err;

	assert_true(fd >= 0);
	snprintf(mtu.ifr_name, sizeof(mtu.ifr_name), "%s", interface);
	err = ioctl(fd, SIOCGIFMTU, &mtu);
	close(fd);
	return err < 0 ? 0 : (uint32_t)mtu.ifr_mtu;
}

void far_socket_await_link(struct harness *harness, const char *interface)
{
	const struct far *far = harness->far;
	const uint64_t until_ns = harness_deadline_ns();
	struct ifreq link = { 0 };
	char command[64];

	if (far == NULL) /* a test without a far side */
		return;
	snprintf(link.ifr_name, sizeof(link.ifr_name), "%s", interface);
	do {
		if (harness_now_ns() > until_ns)
			fail_msg("%s: no link", interface);
		sched_yield();
		assert_int_equal(ioctl(far->fd, SIOCGIFFLAGS, &link), 0);
	} while (!(link.ifr_flags & IFF_RUNNING));
	/* The link is announced before it works; this takes the same lock. */
	snprintf(command, sizeof(command), "ip link set %s up", interface);
	assert_true(far_run(command));
}

bool far_socket_inject(struct harness *harness, const uint8_t *bytes,
		       uint32_t n_bytes)
{
	const struct far *far = harness->far;

	if (send(far->fd, bytes, n_bytes, 0) == (ssize_t)n_bytes)
		return true;
	if (errno != EAGAIN && errno != ENOBUFS && errno != ENETDOWN)
		fail_msg("send of %u bytes: %s", n_bytes, strerror(errno));
	return false;
}

/*
 * Restore the frame as on a wire: the kernel strips its tag, and leaves a
 * checksum incomplete that needs no wire. Returns the frame's bytes.
 */
static uint32_t undo(const struct tpacket_auxdata *aux, uint8_t *bytes,
		     uint32_t n_bytes)
{
	const uint16_t tag[] = { htons(aux->tp_vlan_tpid),
				 htons(aux->tp_vlan_tci) };
	struct mr_net_view view;

	if (aux->tp_status & TP_STATUS_CSUMNOTREADY &&
	    mr_net_parse(bytes, n_bytes, n_bytes, &view) == 0 &&
	    view.csum_bytes != 0) {
		const uint16_t sum = (uint16_t)~mr_csum_fold(mr_csum_add(
			bytes + view.l4_bytes, view.l4_len_bytes, 0));

		memcpy(bytes + view.csum_bytes, &sum, sizeof(sum));
	}
	if (!(aux->tp_status & TP_STATUS_VLAN_VALID))
		return n_bytes;
	memmove(bytes + 12 + sizeof(tag), bytes + 12, n_bytes - 12);
	memcpy(bytes + 12, tag, sizeof(tag));
	return n_bytes + sizeof(tag);
}

uint32_t far_socket_collect(struct harness *harness, uint8_t *bytes,
			    uint32_t room)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
		struct cmsghdr header;
	} control;
	struct iovec data = { bytes, room - MR_VLAN_BYTES };
	const struct far *far = harness->far;
	ssize_t n;

	do {
		struct msghdr message = { .msg_iov = &data,
					  .msg_iovlen = 1,
					  .msg_control = &control,
					  .msg_controllen = sizeof(control) };

		n = recvmsg(far->fd, &message, 0);
		if (n <= 0)
			return 0;
	} while (!traffic_is_ours(bytes, (uint32_t)n));
	return undo((struct tpacket_auxdata *)CMSG_DATA(&control.header), bytes,
		    (uint32_t)n);
}

bool far_run(const char *command)
{
	return system(command) == 0;
}

const char *far_namespace(void)
{
	static char why[128];

	if (unshare(CLONE_NEWNET) < 0) {
		snprintf(why, sizeof(why), "no network namespace: %s (root?)",
			 strerror(errno));
		return why;
	}
	/* IPv6 would send frames of its own, which would be counted. */
	far_run("for f in all default; do "
		"echo 1 > /proc/sys/net/ipv6/conf/$f/disable_ipv6; "
		"done 2> /dev/null");
	return NULL;
}

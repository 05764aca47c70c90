/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of lib/port/netdev.c and netlink.c; on real interfaces:
 * test/netns/test_open.py.
 */
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

#include <millrace/experimental/netdev.h>
#include <millrace/port_device.h>

#include "support/unit.h"

enum { ASKED = 7, OTHER = 8, MAX_FDS = 1024 };

/* How a kernel answers that has one address. */
struct kernel {
	uint32_t ifindex; /* of the address */
	int tcp4, tcp6;   /* the error in the DONE of their dumps */
	int tcp6_error;   /* or in an ERROR */
	int link;         /* the error for the interface OTHER */
	int routes;       /* the error in the DONE of this dump */
	ssize_t n_bytes;  /* of answers; 0: as they are */
	enum mr_netdev_use use;
	const char *why;
};

static const struct kernel *kernel; /* NULL: the real one */

static struct {
	struct nlmsghdr header;
	uint8_t family;
	uint32_t ifindex;
} asked[MAX_FDS];

struct answer {
	struct nlmsghdr header;
	union {
		int error;
		struct ifinfomsg link;
		struct {
			struct ifaddrmsg info;
			struct rtattr attribute;
			uint8_t bytes[4];
		} address;
	};
};

ssize_t __real_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __real_recv(int fd, void *bytes, size_t n, int flags);
ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags);
ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags);

ssize_t __wrap_send(int fd, const void *bytes, size_t n, int flags)
{
	const struct nlmsghdr *header = bytes;
	const struct ifinfomsg *link = NLMSG_DATA(header);

	if (kernel == NULL)
		return __real_send(fd, bytes, n, flags);
	assert_in_range(fd, 0, MAX_FDS - 1);
	asked[fd].header = *header;
	asked[fd].family = link->ifi_family;
	if (header->nlmsg_type == RTM_GETLINK)
		asked[fd].ifindex = (uint32_t)link->ifi_index;
	return (ssize_t)n;
}

static ssize_t answer_with(struct answer *answer, uint16_t type, int error)
{
	answer->header.nlmsg_type = type;
	answer->header.nlmsg_len = NLMSG_LENGTH(
		type == NLMSG_ERROR ? sizeof(struct nlmsgerr) : sizeof(int));
	answer->error = error;
	return answer->header.nlmsg_len;
}

static ssize_t say_address(struct answer *answer)
{
	answer->header.nlmsg_type = RTM_NEWADDR;
	answer->header.nlmsg_flags = NLM_F_MULTI;
	answer->header.nlmsg_len =
		NLMSG_LENGTH(sizeof(struct ifaddrmsg) + RTA_LENGTH(4));
	answer->address.info.ifa_family = AF_INET;
	answer->address.info.ifa_index = kernel->ifindex;
	answer->address.attribute = (struct rtattr){ RTA_LENGTH(4), IFA_LOCAL };
	memcpy(answer->address.bytes, "\xc0\x00\x02\x01", 4);
	return answer->header.nlmsg_len;
}

ssize_t __wrap_recv(int fd, void *bytes, size_t n, int flags)
{
	struct answer *answers = bytes;
	ssize_t n_first;

	if (kernel == NULL)
		return __real_recv(fd, bytes, n, flags);
	memset(bytes, 0, 2 * sizeof(*answers));
	if (kernel->n_bytes != 0)
		return kernel->n_bytes;
	switch (asked[fd].header.nlmsg_type) {
	case RTM_GETLINK:
		if (asked[fd].ifindex == OTHER && kernel->link != 0)
			return answer_with(answers, NLMSG_ERROR, kernel->link);
		answers->header.nlmsg_len = NLMSG_LENGTH(sizeof(answers->link));
		return answers->header.nlmsg_len;
	case RTM_GETROUTE:
		return answer_with(answers, NLMSG_DONE, kernel->routes);
	case RTM_GETADDR:
		n_first = say_address(answers);
		return n_first + answer_with((void *)((char *)bytes + n_first),
					     NLMSG_DONE, 0);
	case SOCK_DIAG_BY_FAMILY:
		if (asked[fd].family == AF_INET)
			return answer_with(answers, NLMSG_DONE, kernel->tcp4);
		if (kernel->tcp6_error != 0)
			return answer_with(answers, NLMSG_ERROR,
					   kernel->tcp6_error);
		return answer_with(answers, NLMSG_DONE, kernel->tcp6);
	default:
		fail_msg("an unknown request");
		return -1;
	}
}

TEST(a_failed_answer_counts_as_in_use)
{
	static const struct kernel kernels[] = {
		{ ASKED, .use = MR_NETDEV_HAS_ADDRESS, .why = "192.0.2.1" },
		/* inet_diag or tcp_diag is not there. */
		{ ASKED, .tcp4 = -ENOENT, .use = MR_NETDEV_IN_USE,
		  .why = "modprobe tcp_diag" },
		{ ASKED, .tcp4 = -EPERM, .use = MR_NETDEV_IN_USE,
		  .why = "unknown whether" },
		/* IPv6 is not there. */
		{ ASKED, .tcp6 = -ENOENT, .use = MR_NETDEV_HAS_ADDRESS,
		  .why = "192.0.2.1" },
		{ ASKED, .tcp6_error = -ENOENT, .use = MR_NETDEV_HAS_ADDRESS,
		  .why = "192.0.2.1" },
		{ ASKED, .tcp6 = -EPERM, .use = MR_NETDEV_IN_USE,
		  .why = "unknown whether" },
		{ ASKED, .routes = -EPERM, .use = MR_NETDEV_IN_USE,
		  .why = "cannot tell" },
		/* Malformed, and more than there is room for. */
		{ ASKED, .n_bytes = 8, .use = MR_NETDEV_IN_USE,
		  .why = "cannot tell" },
		{ ASKED, .n_bytes = 1 << 20, .use = MR_NETDEV_IN_USE,
		  .why = "cannot tell" },
		/* Of another interface: what is it on? */
		{ OTHER, .use = MR_NETDEV_UNUSED },
		{ OTHER, .link = -ENODEV, .use = MR_NETDEV_UNUSED },
		{ OTHER, .link = -EMFILE, .use = MR_NETDEV_IN_USE,
		  .why = "cannot tell" },
	};

	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		struct mr_reason why;

		kernel = &kernels[i];
		assert_int_equal(mr_netdev_use(ASKED, &why), kernel->use);
		if (kernel->why != NULL)
			assert_non_null(strstr(why.text, kernel->why));
	}
	kernel = NULL;
}

TEST(loopback_is_in_use)
{
	struct mr_reason why;

	assert_int_equal(mr_netdev_use(if_nametoindex("lo"), &why),
			 MR_NETDEV_IN_USE);
	assert_non_null(strstr(why.text, "loopback"));
	assert_int_equal(mr_netdev_use(if_nametoindex("lo"), NULL),
			 MR_NETDEV_IN_USE);
}

static void count_session(void *opaque, const struct mr_netdev_session *session)
{
	(void)session;
	++*(uint32_t *)opaque;
}

TEST(services_always_in_use_report_no_sessions)
{
	struct mr_reason why;
	uint32_t n = 0;

	assert_int_equal(mr_netdev_sessions(if_nametoindex("lo"), count_session,
					    &n, &why),
			 -EBUSY);
	assert_non_null(strstr(why.text, "loopback"));
	assert_int_equal(mr_netdev_sessions(INT32_MAX, count_session, &n, &why),
			 -ENODEV);
	assert_non_null(strstr(why.text, "cannot list"));
	assert_int_equal(n, 0);
}

TEST(an_interface_of_unknown_use_counts_as_in_use)
{
	struct mr_reason why;

	assert_int_equal(mr_netdev_use(INT32_MAX, &why), MR_NETDEV_IN_USE);
	assert_non_null(strstr(why.text, "cannot tell"));
	assert_non_null(strstr(why.text, "No such device"));
}

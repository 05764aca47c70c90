/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this host uses a network interface for: asked before a port takes it.
 *
 * A connection counts, whoever owns it. To find the user's own session among
 * them would take the sockets of our ancestors, or of an sshd where sudo, tmux
 * or screen stand between: processes that a program without root cannot look
 * into. Every such session is an established connection, so it is found here.
 *
 * Source: rtnetlink(7), sock_diag(7); linux/include/uapi/linux/if_link.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_addr.h>
#include <linux/inet_diag.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <millrace/driver.h>
#include <millrace/port_device.h>

enum {
	ANSWER_WAIT_S = 2,
	ANSWER_BYTES = 32768, /* what a kernel puts into one part of a dump */
	MAX_DEPTH = 8,        /* VLANs on each other, and the like */
	TCP_IS_ESTABLISHED = 1,
};

/* An IPv4 address is the IPv6 address that it is mapped to. */
struct address {
	uint8_t bytes[16];
};

struct question {
	uint32_t ifindex;
	enum mr_netdev_use use;
	struct mr_reason *why;
	struct address local; /* of the connections that are looked for */
	int err;              /* of what had to be asked on the way */
};

typedef void message_fn(struct question *question,
			const struct nlmsghdr *message);

static int open_netlink(int protocol)
{
	const struct timeval wait = { .tv_sec = ANSWER_WAIT_S };
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)) < 0) {
		const int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/* 1: more parts follow; 0: that was all; or an error. */
static int take_part(int fd, message_fn *take, struct question *question)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
	const struct nlmsghdr *message = (const struct nlmsghdr *)answer;
	ssize_t n = recv(fd, answer, sizeof(answer), MSG_TRUNC);

	if (n < 0)
		return -errno;
	if (n > (ssize_t)sizeof(answer))
		return -EMSGSIZE;
	for (; NLMSG_OK(message, n); message = NLMSG_NEXT(message, n)) {
		const struct nlmsgerr *error = NLMSG_DATA(message);

		/* Both begin with an error; that of a dump comes in DONE. */
		if (message->nlmsg_type == NLMSG_DONE ||
		    message->nlmsg_type == NLMSG_ERROR)
			return error->error;
		take(question, message);
		if (!(message->nlmsg_flags & NLM_F_MULTI))
			return 0;
	}
	return 1;
}

/* Ask the kernel; take() sees each message of the answer. */
static int ask(int protocol, const void *request, size_t n_bytes,
	       message_fn *take, struct question *question)
{
	const int fd = open_netlink(protocol);
	int err = 1;

	if (fd < 0)
		return fd;
	if (send(fd, request, n_bytes, 0) < 0)
		err = -errno;
	while (err == 1)
		err = take_part(fd, take, question);
	close(fd);
	return err;
}

static const struct rtattr *find_attribute(const struct rtattr *attribute,
					   size_t n_bytes, uint16_t type)
{
	int n_left = (int)n_bytes;

	for (; RTA_OK(attribute, n_left);
	     attribute = RTA_NEXT(attribute, n_left))
		if ((attribute->rta_type & NLA_TYPE_MASK) == type)
			return attribute;
	return NULL;
}

/* An attribute of a message whose header has n_header bytes; or NULL. */
static const struct rtattr *attribute_of(const struct nlmsghdr *message,
					 size_t n_header, uint16_t type)
{
	const char *first =
		(const char *)NLMSG_DATA(message) + NLMSG_ALIGN(n_header);
	const char *end = (const char *)message + message->nlmsg_len;

	return first > end ? NULL :
			     find_attribute((const struct rtattr *)first,
					    (size_t)(end - first), type);
}

static uint32_t number_of(const struct rtattr *attribute)
{
	uint32_t number = 0;

	if (attribute != NULL && RTA_PAYLOAD(attribute) == sizeof(number))
		memcpy(&number, RTA_DATA(attribute), sizeof(number));
	return number;
}

static const char *kind_of(const struct nlmsghdr *message, uint16_t type)
{
	const struct rtattr *info =
		attribute_of(message, sizeof(struct ifinfomsg), IFLA_LINKINFO);
	const struct rtattr *kind =
		info == NULL ?
			NULL :
			find_attribute(RTA_DATA(info), RTA_PAYLOAD(info), type);

	return kind == NULL ? "" : RTA_DATA(kind);
}

static const char *name_of(uint32_t ifindex, char name[IF_NAMESIZE])
{
	if (if_indextoname(ifindex, name) == NULL)
		snprintf(name, IF_NAMESIZE, "#%u", ifindex);
	return name;
}

static int ask_link(uint32_t ifindex, message_fn *take,
		    struct question *question)
{
	const struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST },
		.info = { .ifi_index = (int)ifindex },
	};

	return ask(NETLINK_ROUTE, &request, sizeof(request), take, question);
}

static void take_link(struct question *question, const struct nlmsghdr *message)
{
	const struct ifinfomsg *info = NLMSG_DATA(message);
	const uint32_t master =
		number_of(attribute_of(message, sizeof(*info), IFLA_MASTER));
	const char *kind = kind_of(message, IFLA_INFO_SLAVE_KIND);
	char name[IF_NAMESIZE];

	if (info->ifi_flags & IFF_LOOPBACK)
		question->use =
			mr_fail(question->why, MR_NETDEV_IN_USE,
				"is the loopback interface of this machine");
	else if (master != 0 && strcmp(kind, "vrf") != 0)
		question->use = mr_fail(question->why, MR_NETDEV_IN_USE,
					"is a member of %s (%s)",
					name_of(master, name), kind);
}

/* What lies under the interface, in ifindex; a veth lies on nothing. */
static void take_lower(struct question *question,
		       const struct nlmsghdr *message)
{
	const bool is_pair =
		strcmp(kind_of(message, IFLA_INFO_KIND), "veth") == 0;

	question->ifindex =
		is_pair ?
			0 :
			number_of(attribute_of(
				message, sizeof(struct ifinfomsg), IFLA_LINK));
}

/* Whether it is the interface asked for, or a VLAN or the like on it. */
static bool sits_on(uint32_t ifindex, struct question *question)
{
	struct question lower = { .ifindex = ifindex };
	int err = 0;

	for (int i = 0; i < MAX_DEPTH && err == 0; i++) {
		if (lower.ifindex == question->ifindex)
			return true;
		if (lower.ifindex == 0)
			return false;
		err = ask_link(lower.ifindex, take_lower, &lower);
	}
	if (err < 0 && err != -ENODEV) /* it may be gone by now */
		question->err = err;
	return false;
}

/* Of several gateways any may be reached through the interface. */
static uint32_t find_hop(const struct rtattr *hops, struct question *question)
{
	const struct rtnexthop *hop = RTA_DATA(hops);
	int n_left = (int)RTA_PAYLOAD(hops);

	for (; RTNH_OK(hop, n_left); hop = RTNH_NEXT(hop)) {
		if (sits_on((uint32_t)hop->rtnh_ifindex, question))
			return (uint32_t)hop->rtnh_ifindex;
		n_left -= (int)RTNH_ALIGN(hop->rtnh_len);
	}
	return 0;
}

static void take_route(struct question *question,
		       const struct nlmsghdr *message)
{
	const struct rtmsg *route = NLMSG_DATA(message);
	const struct rtattr *hops;
	char name[IF_NAMESIZE];
	uint32_t ifindex;

	if (question->use == MR_NETDEV_IN_USE || route->rtm_dst_len != 0 ||
	    route->rtm_type != RTN_UNICAST)
		return;
	ifindex = number_of(attribute_of(message, sizeof(*route), RTA_OIF));
	hops = attribute_of(message, sizeof(*route), RTA_MULTIPATH);
	if (hops != NULL)
		ifindex = find_hop(hops, question);
	if (ifindex == 0 || !sits_on(ifindex, question))
		return;
	question->use = mr_fail(
		question->why, MR_NETDEV_IN_USE,
		"carries the default route of this machine (dev %s), which "
		"would be cut off",
		name_of(ifindex, name));
}

static struct address map(int family, const void *bytes)
{
	struct address address = { .bytes = { [10] = 0xff, [11] = 0xff } };

	if (family == AF_INET6)
		memcpy(address.bytes, bytes, 16);
	else
		memcpy(address.bytes + 12, bytes, 4);
	return address;
}

static const char *print(const struct address *address,
			 char text[INET6_ADDRSTRLEN])
{
	const struct address zero = map(AF_INET, "\0\0\0");
	const bool is_v4 = memcmp(address->bytes, zero.bytes, 12) == 0;

	return inet_ntop(is_v4 ? AF_INET : AF_INET6,
			 address->bytes + (is_v4 ? 12 : 0), text,
			 INET6_ADDRSTRLEN);
}

static void take_connection(struct question *question,
			    const struct nlmsghdr *message)
{
	const struct inet_diag_msg *tcp = NLMSG_DATA(message);
	const struct address local = map(tcp->idiag_family, tcp->id.idiag_src);
	const struct address peer = map(tcp->idiag_family, tcp->id.idiag_dst);
	char ours[INET6_ADDRSTRLEN], theirs[INET6_ADDRSTRLEN];

	if (question->use == MR_NETDEV_IN_USE ||
	    memcmp(&local, &question->local, sizeof(local)) != 0 ||
	    memcmp(&local, &peer, sizeof(local)) == 0) /* over loopback */
		return;
	question->use =
		mr_fail(question->why, MR_NETDEV_IN_USE,
			"has the address %s, which a TCP connection with %s "
			"port %u uses: it would be cut off, and may be your "
			"session",
			print(&local, ours), print(&peer, theirs),
			ntohs(tcp->id.idiag_dport));
}

static int ask_connections(struct question *question)
{
	struct {
		struct nlmsghdr header;
		struct inet_diag_req_v2 diag;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.diag = { .sdiag_family = AF_INET,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_states = 1u << TCP_IS_ESTABLISHED },
	};
	int err = ask(NETLINK_SOCK_DIAG, &request, sizeof(request),
		      take_connection, question);

	if (err < 0)
		return err;
	/* A server for both has IPv4 connections on sockets of IPv6. */
	request.diag.sdiag_family = AF_INET6;
	err = ask(NETLINK_SOCK_DIAG, &request, sizeof(request), take_connection,
		  question);
	return err == -ENOENT ? 0 : err; /* no IPv6 */
}

static void take_address(struct question *question,
			 const struct nlmsghdr *message)
{
	const struct ifaddrmsg *info = NLMSG_DATA(message);
	const struct rtattr *address =
		attribute_of(message, sizeof(*info), IFA_LOCAL);
	char text[INET6_ADDRSTRLEN];
	int err;

	if (address == NULL)
		address = attribute_of(message, sizeof(*info), IFA_ADDRESS);
	if (question->use == MR_NETDEV_IN_USE || address == NULL ||
	    info->ifa_scope != RT_SCOPE_UNIVERSE ||
	    !sits_on(info->ifa_index, question))
		return;
	question->local = map(info->ifa_family, RTA_DATA(address));
	question->use =
		mr_fail(question->why, MR_NETDEV_HAS_ADDRESS,
			"has the address %s; this machine cannot be reached at "
			"it while the port is open",
			print(&question->local, text));
	err = ask_connections(question);
	if (err < 0)
		question->use =
			mr_fail(question->why, MR_NETDEV_IN_USE,
				"has the address %s, and it is unknown whether "
				"somebody is logged in through it: %s",
				text,
				err == -ENOENT ?
					"the kernel cannot list TCP "
					"connections: 'modprobe tcp_diag'" :
					mr_strerror(-err));
}

static int ask_all(uint16_t type, message_fn *take, struct question *question)
{
	const struct {
		struct nlmsghdr header;
		struct rtmsg route; /* or ifaddrmsg, which is shorter */
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = type,
			    .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP },
		.route = { .rtm_family = AF_UNSPEC },
	};

	int err;

	if (question->use == MR_NETDEV_IN_USE)
		return 0;
	err = ask(NETLINK_ROUTE, &request, sizeof(request), take, question);
	return err < 0 ? err : question->err;
}

enum mr_netdev_use mr_netdev_use(uint32_t ifindex, struct mr_reason *ret_why)
{
	struct question question = { .ifindex = ifindex, .why = ret_why };
	int err = ask_link(ifindex, take_link, &question);

	if (err == 0)
		err = ask_all(RTM_GETROUTE, take_route, &question);
	if (err == 0)
		err = ask_all(RTM_GETADDR, take_address, &question);
	if (err < 0)
		return mr_fail(ret_why, MR_NETDEV_IN_USE,
			       "cannot tell what this machine uses it for: %s",
			       mr_strerror(-err));
	return question.use;
}

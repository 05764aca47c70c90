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

#include <millrace/driver.h>
#include <millrace/experimental/netdev.h>
#include <millrace/experimental/netlink.h>
#include <millrace/port_device.h>

enum {
	MAX_DEPTH = 8, /* VLANs on each other, and the like */
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
	/* If set, called for each address and connection instead. */
	mr_netdev_session_fn *take;
	void *opaque;
	bool is_default_route;
	struct mr_netdev_session session;
};

static uint32_t number_of(const struct rtattr *attribute)
{
	uint32_t number = 0;

	if (attribute != NULL && RTA_PAYLOAD(attribute) == sizeof(number))
		memcpy(&number, RTA_DATA(attribute), sizeof(number));
	return number;
}

static const char *kind_of(const struct nlmsghdr *message, uint16_t type)
{
	const struct rtattr *kind = mr_netlink_attribute(
		message, sizeof(struct ifinfomsg), IFLA_LINKINFO, type);

	return kind == NULL ? "" : RTA_DATA(kind);
}

static const char *name_of(uint32_t ifindex, char name[IF_NAMESIZE])
{
	if (if_indextoname(ifindex, name) == NULL)
		snprintf(name, IF_NAMESIZE, "#%u", ifindex);
	return name;
}

static int ask_link(uint32_t ifindex, mr_netlink_fn *take,
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

	return mr_netlink_ask(NETLINK_ROUTE, &request.header, take, question);
}

static void take_link(void *opaque, const struct nlmsghdr *message)
{
	struct question *question = opaque;
	const struct ifinfomsg *info = NLMSG_DATA(message);
	const uint32_t master = number_of(
		mr_netlink_attribute(message, sizeof(*info), IFLA_MASTER, 0));
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
static void take_lower(void *opaque, const struct nlmsghdr *message)
{
	struct question *question = opaque;
	const bool is_pair =
		strcmp(kind_of(message, IFLA_INFO_KIND), "veth") == 0;

	question->ifindex = is_pair ? 0 :
				      number_of(mr_netlink_attribute(
					      message, sizeof(struct ifinfomsg),
					      IFLA_LINK, 0));
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

static void take_route(void *opaque, const struct nlmsghdr *message)
{
	struct question *question = opaque;
	const struct rtmsg *route = NLMSG_DATA(message);
	const struct rtattr *hops;
	char name[IF_NAMESIZE];
	uint32_t ifindex;

	if (question->use == MR_NETDEV_IN_USE || route->rtm_dst_len != 0 ||
	    route->rtm_type != RTN_UNICAST)
		return;
	ifindex = number_of(
		mr_netlink_attribute(message, sizeof(*route), RTA_OIF, 0));
	hops = mr_netlink_attribute(message, sizeof(*route), RTA_MULTIPATH, 0);
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

static void take_connection(void *opaque, const struct nlmsghdr *message)
{
	struct question *question = opaque;
	const struct inet_diag_msg *tcp = NLMSG_DATA(message);
	const struct address local = map(tcp->idiag_family, tcp->id.idiag_src);
	const struct address peer = map(tcp->idiag_family, tcp->id.idiag_dst);
	char ours[INET6_ADDRSTRLEN], theirs[INET6_ADDRSTRLEN];

	if (question->use == MR_NETDEV_IN_USE ||
	    memcmp(&local, &question->local, sizeof(local)) != 0 ||
	    memcmp(&local, &peer, sizeof(local)) == 0) /* over loopback */
		return;
	if (question->take != NULL) {
		struct mr_netdev_session session = question->session;

		memcpy(session.peer, peer.bytes, sizeof(session.peer));
		session.local_port = ntohs(tcp->id.idiag_sport);
		session.peer_port = ntohs(tcp->id.idiag_dport);
		question->take(question->opaque, &session);
		return;
	}
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
	int err = mr_netlink_ask(NETLINK_SOCK_DIAG, &request.header,
				 take_connection, question);

	if (err < 0)
		return err;
	/* A server for both has IPv4 connections on sockets of IPv6. */
	request.diag.sdiag_family = AF_INET6;
	err = mr_netlink_ask(NETLINK_SOCK_DIAG, &request.header,
			     take_connection, question);
	return err == -ENOENT ? 0 : err; /* no IPv6 */
}

static const struct rtattr *address_of(const struct nlmsghdr *message)
{
	const struct rtattr *address = mr_netlink_attribute(
		message, sizeof(struct ifaddrmsg), IFA_LOCAL, 0);

	if (address == NULL)
		address = mr_netlink_attribute(
			message, sizeof(struct ifaddrmsg), IFA_ADDRESS, 0);
	return address;
}

/* With a default route, connections of other interfaces' addresses count, too.
 */
static void take_session(void *opaque, const struct nlmsghdr *message)
{
	struct question *question = opaque;
	const struct ifaddrmsg *info = NLMSG_DATA(message);
	const struct rtattr *address = address_of(message);
	const bool is_here = sits_on(info->ifa_index, question);
	int err;

	if (address == NULL || info->ifa_scope == RT_SCOPE_HOST ||
	    (!is_here && !question->is_default_route))
		return;
	question->local = map(info->ifa_family, RTA_DATA(address));
	question->session = (struct mr_netdev_session){
		.ifindex = info->ifa_index,
		.is_ipv4 = info->ifa_family == AF_INET,
	};
	memcpy(question->session.local, question->local.bytes,
	       sizeof(question->session.local));
	if (is_here)
		question->take(question->opaque, &question->session);
	err = ask_connections(question);
	if (err < 0)
		question->err = err;
}

static void take_address(void *opaque, const struct nlmsghdr *message)
{
	struct question *question = opaque;
	const struct ifaddrmsg *info = NLMSG_DATA(message);
	const struct rtattr *address = address_of(message);
	char text[INET6_ADDRSTRLEN];
	int err;

	if (question->use == MR_NETDEV_IN_USE || address == NULL ||
	    info->ifa_scope != RT_SCOPE_UNIVERSE ||
	    !sits_on(info->ifa_index, question))
		return;
	question->local = map(info->ifa_family, RTA_DATA(address));
	question->use =
		mr_fail(question->why, MR_NETDEV_HAS_ADDRESS,
			"has the address %s; while the port is open, this "
			"machine receives only what the program passes to it",
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

static int ask_all(uint16_t type, mr_netlink_fn *take,
		   struct question *question)
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
	err = mr_netlink_ask(NETLINK_ROUTE, &request.header, take, question);
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

int mr_netdev_sessions(uint32_t ifindex, mr_netdev_session_fn *take,
		       void *opaque, struct mr_reason *reterr_reason)
{
	struct question question = { .ifindex = ifindex,
				     .take = take,
				     .opaque = opaque,
				     .why = reterr_reason };
	int err = ask_link(ifindex, take_link, &question);

	if (err == 0 && question.use == MR_NETDEV_IN_USE)
		return -EBUSY;
	question.why = NULL;
	if (err == 0)
		err = ask_all(RTM_GETROUTE, take_route, &question);
	question.is_default_route = question.use == MR_NETDEV_IN_USE;
	question.use = MR_NETDEV_UNUSED;
	if (err == 0)
		err = ask_all(RTM_GETADDR, take_session, &question);
	if (err < 0)
		return mr_fail(reterr_reason, err,
			       "cannot list its addresses and connections: %s",
			       mr_strerror(-err));
	return 0;
}

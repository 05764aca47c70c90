/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Refuse interfaces on top of others. AF_XDP sockets belong to the queues of a
 * device, and a bond, a bridge or a VLAN has none: a socket on it receives
 * nothing, or only in generic mode. The underlying devices have queues.
 *
 * Source: rtnetlink(7); linux/net/xdp/xsk.c, xsk_rcv_check().
 */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include <millrace/experimental/netlink.h>

#include "device/netdev.h"

#define MORE " ..."

/* Kinds that are refused even without underlying devices, and their names. */
static const struct {
	const char *kind, *name;
} known[] = {
	{ "bond", "a bond" },     { "team", "a team" },
	{ "bridge", "a bridge" }, { "openvswitch", "a bridge" },
	{ "vrf", "a VRF" },       { "vlan", "a VLAN" },
};

struct stack {
	uint32_t ifindex;
	const char *name; /* NULL: not such a kind */
	uint32_t vlan_on; /* device under the VLAN; 0: not a VLAN */
	char lowers[160]; /* as port specs */
};

static const struct rtattr *find_attribute(const struct nlmsghdr *message,
					   uint16_t type, uint16_t nested)
{
	return mr_netlink_attribute(message, sizeof(struct ifinfomsg), type,
				    nested);
}

static uint32_t number_of(const struct rtattr *attribute)
{
	uint32_t number = 0;

	if (attribute != NULL && RTA_PAYLOAD(attribute) == sizeof(number))
		memcpy(&number, RTA_DATA(attribute), sizeof(number));
	return number;
}

static void take_self(void *opaque, const struct nlmsghdr *message)
{
	struct stack *stack = opaque;
	const struct rtattr *kind =
		find_attribute(message, IFLA_LINKINFO, IFLA_INFO_KIND);

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (kind != NULL && strcmp(RTA_DATA(kind), known[i].kind) == 0)
			stack->name = known[i].name;
	/* Ignore a lower device in another namespace. */
	if (kind != NULL && strcmp(RTA_DATA(kind), "vlan") == 0 &&
	    find_attribute(message, IFLA_LINK_NETNSID, 0) == NULL)
		stack->vlan_on =
			number_of(find_attribute(message, IFLA_LINK, 0));
}

static void take_any(void *opaque, const struct nlmsghdr *message)
{
	struct stack *stack = opaque;
	const struct ifinfomsg *info = NLMSG_DATA(message);
	const struct rtattr *name = find_attribute(message, IFLA_IFNAME, 0);
	const bool is_member = number_of(find_attribute(message, IFLA_MASTER,
							0)) == stack->ifindex;
	const size_t n = strlen(stack->lowers);
	const size_t n_left = sizeof(stack->lowers) - n;
	char lower[IF_NAMESIZE + 16];

	if (name == NULL ||
	    (!is_member && (uint32_t)info->ifi_index != stack->vlan_on))
		return;
	if (stack->name == NULL)
		stack->name = "a master device";
	/* A member needs 'force'. */
	snprintf(lower, sizeof(lower), "%sxdp:%s%s", n > 0 ? " " : "",
		 (const char *)RTA_DATA(name), is_member ? ",force" : "");
	if (strlen(lower) + sizeof(MORE) < n_left)
		snprintf(stack->lowers + n, n_left, "%s", lower);
	else if (strstr(stack->lowers, MORE) == NULL)
		snprintf(stack->lowers + n, n_left, "%s", MORE);
}

static int ask_links(struct stack *stack, uint16_t flags, mr_netlink_fn *take)
{
	const struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
	} request = {
		.header = { .nlmsg_len = sizeof(request),
			    .nlmsg_type = RTM_GETLINK,
			    .nlmsg_flags = NLM_F_REQUEST | flags },
		.info = { .ifi_family = AF_UNSPEC,
			  .ifi_index = flags == 0 ? (int)stack->ifindex : 0 },
	};

	return mr_netlink_ask(NETLINK_ROUTE, &request.header, take, stack);
}

int mri_xdp_refuse_master(const struct xdp_netdev *dev,
			  struct mr_reason *reterr_reason)
{
	struct stack stack = { .ifindex = dev->ifindex };
	int err = ask_links(&stack, 0, take_self);

	if (err == 0)
		err = ask_links(&stack, NLM_F_DUMP, take_any);
	if (err < 0)
		return mr_fail(reterr_reason, err,
			       "xdp:%s: cannot tell whether it is a bond, a "
			       "bridge or a VLAN: %s",
			       dev->name, mr_strerror(-err));
	if (stack.name == NULL)
		return 0;
	if (stack.lowers[0] == '\0')
		return mr_fail(reterr_reason, -ENOTSUP,
			       "xdp:%s: it is %s, which has no queues of its "
			       "own for AF_XDP, and no device below it",
			       dev->name, stack.name);
	return mr_fail(reterr_reason, -ENOTSUP,
		       "xdp:%s: it is %s, which has no queues of its own for "
		       "AF_XDP: open a device below it instead: %s%s",
		       dev->name, stack.name, stack.lowers,
		       stack.vlan_on != 0 ? "; its frames have a tag there" :
					    "");
}

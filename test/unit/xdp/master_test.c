/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of drivers/xdp/device/master.c, on a table of links. */
#include <errno.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>

#include <millrace/experimental/netlink.h>

#include "device/netdev.h"
#include "support/test.h"

enum { N_LINKS = 40 };

struct link {
	uint32_t ifindex;
	const char *name, *kind;
	uint32_t master, link;
	bool is_abroad; /* link is of another namespace */
};

static struct link links[N_LINKS];
static int dump_error;

static void put_attribute(struct nlmsghdr *message, uint16_t type,
			  const void *value, size_t n_bytes)
{
	struct rtattr *attribute =
		(void *)((char *)message + NLMSG_ALIGN(message->nlmsg_len));

	attribute->rta_type = type;
	attribute->rta_len = (uint16_t)RTA_LENGTH(n_bytes);
	memcpy(RTA_DATA(attribute), value, n_bytes);
	message->nlmsg_len =
		NLMSG_ALIGN(message->nlmsg_len) + RTA_ALIGN(attribute->rta_len);
}

static void tell_link(const struct link *link, mr_netlink_fn *take,
		      void *opaque)
{
	_Alignas(struct nlmsghdr) char bytes[512] = { 0 };
	char info[64] = { 0 };
	struct nlmsghdr *message = (void *)bytes;
	struct rtattr *kind = (void *)info;
	const uint32_t netns = 0;

	message->nlmsg_type = RTM_NEWLINK;
	message->nlmsg_len = NLMSG_LENGTH(sizeof(struct ifinfomsg));
	((struct ifinfomsg *)NLMSG_DATA(message))->ifi_index =
		(int)link->ifindex;
	put_attribute(message, IFLA_IFNAME, link->name, strlen(link->name) + 1);
	if (link->master != 0)
		put_attribute(message, IFLA_MASTER, &link->master, 4);
	if (link->link != 0)
		put_attribute(message, IFLA_LINK, &link->link, 4);
	if (link->is_abroad)
		put_attribute(message, IFLA_LINK_NETNSID, &netns, 4);
	if (link->kind != NULL) {
		kind->rta_type = IFLA_INFO_KIND;
		kind->rta_len = (uint16_t)RTA_LENGTH(strlen(link->kind) + 1);
		strcpy(RTA_DATA(kind), link->kind);
		put_attribute(message, IFLA_LINKINFO, info,
			      RTA_ALIGN(kind->rta_len));
	}
	take(opaque, message);
}

int mr_netlink_ask(int protocol, const struct nlmsghdr *request,
		   mr_netlink_fn *take, void *opaque)
{
	const struct ifinfomsg *asked = NLMSG_DATA(request);
	const bool is_dump = request->nlmsg_flags & NLM_F_DUMP;

	assert_int_equal(protocol, NETLINK_ROUTE);
	assert_int_equal(request->nlmsg_type, RTM_GETLINK);
	for (uint32_t i = 0; i < N_LINKS && links[i].name != NULL; i++)
		if (is_dump || links[i].ifindex == (uint32_t)asked->ifi_index)
			tell_link(&links[i], take, opaque);
	return is_dump ? dump_error : 0;
}

/* Of the link with this index; the reason in *reason. */
static int refuse_link(uint32_t ifindex, struct mr_reason *reason)
{
	struct xdp_netdev dev = { .ifindex = ifindex, .name = "dev" };

	reason->text[0] = '\0';
	return mri_xdp_refuse_master(&dev, reason);
}

TEST(devices_below_an_interface_are_named)
{
	static const struct {
		struct link links[4]; /* the first is opened */
		const char *parts[4]; /* of the reason; none: not refused */
	} cases[] = {
		{ { { 7, "eth0", NULL, 0, 0, 0 } }, { NULL } },
		/* A veth's link is its peer. */
		{ { { 7, "v0", "veth", 0, 8, 0 },
		    { 8, "v1", "veth", 0, 7, 0 } },
		  { NULL } },
		{ { { 7, "m0", "macvlan", 0, 8, 0 },
		    { 8, "eth0", 0, 0, 0, 0 } },
		  { NULL } },
		/* A member is not a master; other code checks force. */
		{ { { 7, "eth0", NULL, 8, 0, 0 },
		    { 8, "br0", "bridge", 0, 0, 0 } },
		  { NULL } },
		{ { { 7, "bond0", "bond", 0, 0, 0 },
		    { 8, "eth0", NULL, 7, 0, 0 },
		    { 9, "eth1", NULL, 7, 0, 0 },
		    { 10, "eth2", NULL, 0, 0, 0 } },
		  { "is a bond", "instead: xdp:eth0,force xdp:eth1,force" } },
		{ { { 7, "br0", "bridge", 0, 0, 0 },
		    { 8, "v0", "veth", 7, 9, 0 } },
		  { "is a bridge", "instead: xdp:v0,force" } },
		{ { { 7, "new0", "new", 0, 0, 0 },
		    { 8, "eth0", NULL, 7, 0, 0 } },
		  { "is a master device", "xdp:eth0,force" } },
		{ { { 7, "team0", "team", 0, 0, 0 } },
		  { "is a team", "no device below it" } },
		{ { { 7, "eth0.5", "vlan", 0, 8, 0 },
		    { 8, "eth0", NULL, 0, 0, 0 } },
		  { "is a VLAN", "instead: xdp:eth0;", "have a tag there" } },
		/* The index is another device's in this namespace. */
		{ { { 7, "eth0.5", "vlan", 0, 8, true },
		    { 8, "lan0", NULL, 0, 0, 0 } },
		  { "is a VLAN", "no device below it" } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_reason reason;

		memset(links, 0, sizeof(links));
		memcpy(links, cases[i].links, sizeof(cases[i].links));
		assert_int_equal(refuse_link(7, &reason),
				 cases[i].parts[0] != NULL ? -ENOTSUP : 0);
		for (uint32_t k = 0; cases[i].parts[k] != NULL; k++)
			assert_non_null(strstr(reason.text, cases[i].parts[k]));
	}
}

/* Too many to fit: dots replace the rest, not half a name. */
TEST(a_bridge_of_many)
{
	static char names[N_LINKS][IF_NAMESIZE];
	struct mr_reason reason;

	links[0] = (struct link){ 7, "br0", "bridge", 0, 0, 0 };
	for (uint32_t i = 1; i < N_LINKS; i++) {
		snprintf(names[i], IF_NAMESIZE, "interface%u", 100 + i);
		links[i] = (struct link){ 7 + i, names[i], NULL, 7, 0, 0 };
	}
	assert_int_equal(refuse_link(7, &reason), -ENOTSUP);
	assert_non_null(strstr(reason.text, " xdp:interface101,force xdp:"));
	assert_string_equal(reason.text + strlen(reason.text) - 10,
			    ",force ...");
}

TEST(a_failed_query_of_masters_is_an_error)
{
	struct mr_reason reason;

	dump_error = -EMFILE;
	assert_int_equal(refuse_link(7, &reason), -EMFILE);
	assert_non_null(strstr(reason.text, "cannot tell"));
	dump_error = 0;
}

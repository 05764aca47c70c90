/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of drivers/xdp/program/filter_session.c: which filters do not
 * affect a session. The connections come from a table;
 * test/netns/test_filter.py uses interfaces.
 */
#include <millrace/driver.h>
#include <millrace/experimental/netdev.h>

#include "program/filter.h"
#include "support/unit.h"
#include "xdp.h"

enum { HERE = 7, ABOVE = 8 };

#define V4(last)                                                               \
	{                                                                      \
		[10] = 0xff, 0xff, 10, 88, 0, last                             \
	}
#define V6(last)                                                               \
	{                                                                      \
		0xfd, [13] = 1, 2, last                                        \
	}

static const struct mr_netdev_session sessions[] = {
	{ .ifindex = HERE, .is_ipv4 = 1, .local = V4(1) },
	{ .ifindex = HERE,
	  .is_ipv4 = 1,
	  .local = V4(1),
	  .peer = V4(2),
	  .local_port = 22,
	  .peer_port = 1234 },
	{ .ifindex = HERE, .local = V6(1) },
	{ .ifindex = HERE,
	  .local = V6(1),
	  .peer = V6(2),
	  .local_port = 22,
	  .peer_port = 1234 },
	/* Through a VLAN, it may be, of the interface. */
	{ .ifindex = ABOVE,
	  .is_ipv4 = 1,
	  .local = V4(9),
	  .peer = V4(8),
	  .local_port = 80,
	  .peer_port = 5555 },
};

int __wrap_mr_netdev_sessions(uint32_t ifindex, mr_netdev_session_fn *take,
			      void *opaque, struct mr_reason *reason);

int __wrap_mr_netdev_sessions(uint32_t ifindex, mr_netdev_session_fn *take,
			      void *opaque, struct mr_reason *reason)
{
	assert_int_equal(ifindex, HERE);
	(void)reason;
	for (size_t i = 0; i < sizeof(sessions) / sizeof(sessions[0]); i++)
		take(opaque, &sessions[i]);
	return 0;
}

/* A part of the reason; NULL: the filter is accepted. */
static const char *const cases[][2] = {
	{ "udp port 4789", NULL },
	{ "port 4789", NULL },
	{ "tcp port 8080 or udp portrange 4000-5000", NULL },
	{ "ether proto 0x88cc", NULL },
	{ "ether dst 02:00:00:00:00:07 and udp", NULL },
	{ "dst host 10.9.9.9", NULL },
	{ "dst net 10.9.0.0/16 or ip6 dst net 2001:db8::/32", NULL },
	{ "udp port 4789 and host 10.88.0.1", NULL },
	{ "icmp[0] = 8", NULL },
	{ "icmp6[0] = 128", NULL },
	{ "ip proto 47", NULL },
	{ "src host 10.88.0.3 and tcp", NULL },
	{ "greater 1000 and udp port 4789", NULL },
	{ "tcp dst port 1234", NULL },
	{ "", "ARP for 10.88.0.1" },
	{ "arp", "ARP for 10.88.0.1" },
	{ "not tcp port 22", "ARP" },
	{ "ether broadcast", "ARP" },
	{ "greater 1000", "ARP" },
	{ "ip and not tcp", "ICMP error" },
	{ "icmp", "ICMP error for 10.88.0.1" },
	{ "udp", "DHCP answer for 10.88.0.1" },
	{ "udp port 68", "DHCP answer" },
	{ "udp port 546", "DHCPv6 answer for fd00::1:201" },
	{ "icmp6[0] = 134", "router advertisement" },
	{ "icmp6[0] = 135", "neighbour solicitation" },
	{ "icmp6[0] = 136", "neighbour advertisement" },
	{ "icmp6[0] = 137", "redirect" },
	{ "icmp6[0] = 2", "ICMPv6 error" },
	{ "tcp", "a packet of the TCP connection of 10.88.0.1 port 22 with "
		 "10.88.0.2 port 1234" },
	{ "tcp port 22 and ip6", "fd00::1:201 port 22 with fd00::1:202 port" },
	{ "tcp dst port 22", "a packet" },
	{ "tcp src port 1234", "a packet" },
	{ "tcp[tcpflags] & tcp-syn != 0", "a packet" },
	{ "tcp and ip[8] = 64", "a packet" },
	{ "tcp and ip[6] & 0x20 != 0", "a packet" },
	{ "tcp[((tcp[12] & 0xf0) >> 2):4] = 0x47455420", "a packet" },
	{ "src host 10.88.0.2 and tcp", "a packet" },
	{ "ip proto 6 and ip[6:2] & 0x1fff != 0", "a fragment" },
	{ "ip6 proto 44", "a fragment" },
	{ "tcp dst port 80", "10.88.0.9 port 80" },
	{ "vlan 5 and tcp", "10.88.0.9 port 80" },
	{ "vlan 5 and udp", NULL },
	/* The address is another interface's, but asked for here. */
	{ "arp[24:4] = 0x0a580009", "ARP of the TCP connection of 10.88.0.9" },
	{ "vlan 5 and icmp", "ICMP error of the TCP connection of 10.88.0.9" },
};

TEST(a_filter_is_checked_against_sessions)
{
	static struct xdp_port port;
	struct test_allocator allocator = { 0 };
	struct mr_ctx *ctx = test_ctx_with(&allocator, NULL);

	port.dev.ifindex = HERE;
	memcpy(port.dev.mac, "\2\0\0\0\0\1", 6);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct mr_reason reason = { "alone" };
		int err;

		assert_int_equal(mri_xdp_filter_compile(ctx, "x", cases[i][0],
							&port.filter, &reason),
				 0);
		err = mri_xdp_filter_check_sessions(&port, &reason);
		if (err != (cases[i][1] == NULL ? 0 : -EBUSY) ||
		    (err < 0 && strstr(reason.text, cases[i][1]) == NULL))
			fail_msg("%s: %s", cases[i][0], reason.text);
		mr_free(ctx, port.filter.insns);
	}
	mr_ctx_destroy(ctx);
}

int main(void)
{
	return test_run(NULL, NULL, NULL);
}

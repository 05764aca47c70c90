/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Check that a filter does not cut off users who are logged in through the
 * interface: the kernel must receive the packets of TCP connections, and what
 * the addresses of these need.
 *
 * Source: RFC 826 (ARP), RFC 4861 (neighbour discovery), RFC 792 and RFC 4443
 * (ICMP errors), RFC 2131 and RFC 8415 (DHCP), RFC 2464 (multicast addresses).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include <millrace/experimental/netdev.h>
#include <millrace/port_device.h>

#include "program/filter.h"
#include "xdp.h"

enum { ARP = 0x0806, IPV4 = 0x0800, IPV6 = 0x86dd, TAG = 0x8100 };
enum { ICMP = 1, TCP = 6, UDP = 17, FRAGMENT = 44, ICMPV6 = 58 };
enum { TO_US = 1, TO_ALL = 2, TO_NEIGHBOUR = 4 }; /* destinations */

/* Packets that an address needs. l4: the first bytes after the IP header. */
static const struct need {
	const char *what;
	uint16_t type;
	uint8_t protocol;
	uint8_t to;
	uint8_t l4[4], known[4];
} needs[] = {
	/* clang-format off */
	{ "ARP", ARP, 0, TO_US | TO_ALL, { 0 }, { 0 } },
	{ "an ICMP error", IPV4, ICMP, TO_US, { 3 }, { 0xff } },
	{ "an ICMP error", IPV4, ICMP, TO_US, { 11 }, { 0xff } },
	{ "an ICMP error", IPV4, ICMP, TO_US, { 12 }, { 0xff } },
	{ "a DHCP answer", IPV4, UDP, TO_US | TO_ALL,
	  { 0, 67, 0, 68 }, { 0xff, 0xff, 0xff, 0xff } },
	{ "a router advertisement", IPV6, ICMPV6, TO_US | TO_ALL,
	  { 134 }, { 0xff } },
	{ "a neighbour solicitation", IPV6, ICMPV6, TO_US | TO_NEIGHBOUR,
	  { 135 }, { 0xff } },
	{ "a neighbour advertisement", IPV6, ICMPV6, TO_US | TO_ALL,
	  { 136 }, { 0xff } },
	{ "a redirect", IPV6, ICMPV6, TO_US, { 137 }, { 0xff } },
	{ "an ICMPv6 error", IPV6, ICMPV6, TO_US, { 1 }, { 0xff } },
	{ "an ICMPv6 error", IPV6, ICMPV6, TO_US, { 2 }, { 0xff } },
	{ "an ICMPv6 error", IPV6, ICMPV6, TO_US, { 3 }, { 0xff } },
	{ "an ICMPv6 error", IPV6, ICMPV6, TO_US, { 4 }, { 0xff } },
	{ "a DHCPv6 answer", IPV6, UDP, TO_US,
	  { 547 >> 8, 547 & 0xff, 546 >> 8, 546 & 0xff },
	  { 0xff, 0xff, 0xff, 0xff } },
	/* clang-format on */
};

enum { N_NEEDS = sizeof(needs) / sizeof(needs[0]) };

struct check {
	const struct xdp_port *port;
	const struct mr_netdev_session *session;
	bool is_tagged;    /* arrives for a VLAN device on the interface */
	const char *taken; /* NULL: nothing yet */
	struct mr_netdev_session of;
};

static void put(struct xdp_shape *shape, uint32_t at, const void *bytes,
		uint32_t n)
{
	memcpy(shape->bytes + at, bytes, n);
	memset(shape->known + at, 0xff, n);
}

static void put_bits(struct xdp_shape *shape, uint32_t at, uint8_t value,
		     uint8_t known)
{
	shape->bytes[at] = value;
	shape->known[at] = known;
}

static void put_16(struct xdp_shape *shape, uint32_t at, uint16_t value)
{
	value = htons(value);
	put(shape, at, &value, sizeof(value));
}

/* Set the Ethernet destination of an IP packet to one of TO_*. */
static void put_mac(struct xdp_shape *shape, const struct check *check,
		    uint16_t type, uint8_t to)
{
	uint8_t mac[6] = { 0x33, 0x33, 0, 0, 0, 1 };

	if (to == TO_US && check->session->ifindex != check->port->dev.ifindex)
		return; /* perhaps a macvlan's own address */
	if (to == TO_US)
		memcpy(mac, check->port->dev.mac, sizeof(mac));
	else if (type != IPV6)
		memset(mac, 0xff, sizeof(mac));
	else if (to == TO_NEIGHBOUR) {
		mac[2] = 0xff;
		memcpy(mac + 3, check->session->local + 13, 3);
	}
	put(shape, 0, mac, sizeof(mac));
}

/* Returns where the next header begins. */
static uint32_t put_ethernet(struct xdp_shape *shape, const struct check *check,
			     uint16_t type, uint8_t to)
{
	uint32_t at = 12;

	put_mac(shape, check, type, to);
	if (check->is_tagged) {
		put_16(shape, at, TAG);
		at += 4;
	}
	put_16(shape, at, type);
	return at + 2;
}

static uint32_t put_ipv4(struct xdp_shape *shape, uint32_t at, uint8_t protocol,
			 const uint8_t *dst)
{
	put_bits(shape, at, 0x45, 0xff);
	/* The first fragment, or the whole packet. */
	put_bits(shape, at + 6, 0, 0x9f);
	put_bits(shape, at + 7, 0, 0xff);
	put_bits(shape, at + 9, protocol, 0xff);
	if (dst != NULL)
		put(shape, at + 16, dst + 12, 4);
	else
		put(shape, at + 16, "\xff\xff\xff\xff", 4);
	return at + 20;
}

static uint32_t put_ipv6(struct xdp_shape *shape, uint32_t at, uint8_t protocol,
			 const uint8_t *local, uint8_t to)
{
	static const uint8_t all[16] = { 0xff, 2, [15] = 1 };
	uint8_t neighbour[16] = { 0xff, 2, [11] = 1, [12] = 0xff };

	memcpy(neighbour + 13, local + 13, 3);
	put_bits(shape, at, 0x60, 0xf0);
	put_bits(shape, at + 6, protocol, 0xff);
	put(shape, at + 24,
	    to == TO_US  ? local :
	    to == TO_ALL ? all :
			   neighbour,
	    16);
	return at + 40;
}

static bool is_taken(struct check *check, const struct xdp_shape *shape,
		     const char *what)
{
	if (check->taken == NULL &&
	    mri_xdp_filter_may_match(&check->port->filter, shape)) {
		check->taken = what;
		check->of = *check->session;
	}
	return check->taken != NULL;
}

static void check_need(struct check *check, const struct need *need, uint8_t to)
{
	const uint8_t *local = check->session->local;
	struct xdp_shape shape = { 0 };
	uint32_t at = put_ethernet(&shape, check, need->type, to);

	if (need->type == ARP) {
		put(&shape, at, "\0\1\x8\0\6\4\0", 7);
		put(&shape, at + 24, local + 12, 4);
	} else if (need->type == IPV4) {
		at = put_ipv4(&shape, at, need->protocol,
			      to == TO_US ? local : NULL);
	} else {
		at = put_ipv6(&shape, at, need->protocol, local, to);
	}
	for (uint32_t i = 0; i < sizeof(need->l4); i++)
		if (need->known[i] != 0)
			put_bits(&shape, at + i, need->l4[i], need->known[i]);
	(void)is_taken(check, &shape, need->what);
}

static void check_address(struct check *check)
{
	const bool is_own = check->session->peer_port == 0;

	for (uint32_t i = 0; i < N_NEEDS; i++)
		for (uint8_t to = TO_US; to <= TO_NEIGHBOUR; to *= 2)
			if ((needs[i].to & to) &&
			    (is_own || needs[i].protocol != UDP) &&
			    (needs[i].type != IPV6) == check->session->is_ipv4)
				check_need(check, &needs[i], to);
}

/* IP from the peer; is_fragment: a later fragment of a TCP packet. */
static uint32_t put_ip(struct xdp_shape *shape, const struct check *check,
		       bool is_fragment)
{
	const struct mr_netdev_session *s = check->session;
	uint32_t at =
		put_ethernet(shape, check, s->is_ipv4 ? IPV4 : IPV6, TO_US);

	if (s->is_ipv4) {
		put(shape, at + 12, s->peer + 12, 4);
		put_ipv4(shape, at, TCP, s->local);
		if (is_fragment) /* after the first 1480 bytes */
			put_bits(shape, at + 7, 1480 / 8, 0xff);
		return at + 20;
	}
	put(shape, at + 8, s->peer, 16);
	put_ipv6(shape, at, is_fragment ? FRAGMENT : TCP, s->local, TO_US);
	if (is_fragment)
		put_bits(shape, at + 40, TCP, 0xff);
	return at + 40;
}

static void check_connection(struct check *check)
{
	const struct mr_netdev_session *s = check->session;
	struct xdp_shape segment = { 0 }, fragment = { 0 };
	const uint32_t at = put_ip(&segment, check, false);

	put_16(&segment, at, s->peer_port);
	put_16(&segment, at + 2, s->local_port);
	put_ip(&fragment, check, true);
	if (!is_taken(check, &segment, "a packet"))
		(void)is_taken(check, &fragment, "a fragment");
}

static void check_session(void *opaque, const struct mr_netdev_session *session)
{
	struct check *check = opaque;
	const bool is_above = session->ifindex != check->port->dev.ifindex;

	check->session = session;
	/* Another interface may be a VLAN of this one, or a macvlan; or a
	 * default route brings here what its address needs. */
	for (int i = 0; i <= is_above; i++) {
		check->is_tagged = i == 1;
		if (session->peer_port != 0)
			check_connection(check);
		if (session->peer_port == 0 || is_above)
			check_address(check);
	}
}

static const char *print_address(const struct mr_netdev_session *session,
				 const uint8_t *address,
				 char text[INET6_ADDRSTRLEN])
{
	return inet_ntop(session->is_ipv4 ? AF_INET : AF_INET6,
			 address + (session->is_ipv4 ? 12 : 0), text,
			 INET6_ADDRSTRLEN);
}

int mri_xdp_filter_check_sessions(const struct xdp_port *port,
				  struct mr_reason *reterr_reason)
{
	struct check check = { .port = port };
	const struct mr_netdev_session *of = &check.of;
	char ours[INET6_ADDRSTRLEN], theirs[INET6_ADDRSTRLEN];
	const int err = mr_netdev_sessions(port->dev.ifindex, check_session,
					   &check, reterr_reason);

	if (err < 0 || check.taken == NULL)
		return err;
	print_address(of, of->local, ours);
	if (of->peer_port == 0)
		return mr_fail(reterr_reason, -EBUSY,
			       "its filter may take %s for %s, without which "
			       "this machine cannot be reached",
			       check.taken, ours);
	return mr_fail(reterr_reason, -EBUSY,
		       "its filter may take %s of the TCP connection of %s "
		       "port %u with %s port %u, which may be your session",
		       check.taken, ours, of->local_port,
		       print_address(of, of->peer, theirs), of->peer_port);
}

int mri_xdp_refuse_used(const struct xdp_port *port,
			struct mr_reason *reterr_reason)
{
	struct mr_reason why;
	enum mr_netdev_use use;

	if (port->options.force)
		return 0;
	use = mr_netdev_use(port->dev.ifindex, &why);
	if (use != MR_NETDEV_UNUSED && port->filter.n > 0 &&
	    mri_xdp_filter_check_sessions(port, &why) == 0)
		return 0;
	if (use == MR_NETDEV_HAS_ADDRESS)
		mr_log(port->base.ctx, MR_LOG_WARNING, "%s: %s",
		       port->base.info->name, why.text);
	if (use != MR_NETDEV_IN_USE)
		return 0;
	return mr_fail(reterr_reason, -EBUSY,
		       "%s: %s; add the option 'force' to take it anyway",
		       port->base.info->name, why.text);
}

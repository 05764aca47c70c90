/* SPDX-License-Identifier: BSD-3-Clause */
/* MAC addresses of neighbours: read what they say, and ask for one. Sources:
 * RFC 826; RFC 4861 4.3, 4.4, 7.1 and 7.2; RFC 2464 7. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include <millrace/net.h>
#include <millrace/wire.h>

enum { ND_HOP_LIMIT = 255, OPTION_UNIT = 8 };

static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

/* A solicitation with the option that has the sender's MAC address. */
struct solicitation {
	struct mr_ipv6 ip;
	struct mr_neighbour neighbour;
	uint8_t option, option_units, mac[6];
} __attribute__((packed));

_Static_assert(MR_ETH_BYTES + sizeof(struct solicitation) == MR_NET_ASK_BYTES,
	       "the longer of the two");

static int read_arp(const struct mr_arp *arp, struct mr_net_neighbour *ret)
{
	if (arp->hardware != htons(1) ||
	    arp->protocol != htons(MR_ETHER_IPV4) || arp->hardware_bytes != 6 ||
	    arp->protocol_bytes != 4 || arp->sender == 0)
		return -ENOENT;
	ret->is_reply = arp->op == htons(MR_ARP_REPLY);
	if (!ret->is_reply && arp->op != htons(MR_ARP_REQUEST))
		return -ENOENT;
	memcpy(ret->addr, mapped, sizeof(mapped));
	memcpy(ret->addr + sizeof(mapped), &arp->sender, 4);
	memcpy(ret->mac, arp->sender_mac, 6);
	return 0;
}

/* The MAC address in the options of a message of n bytes. All must be whole. */
static int find_mac(const uint8_t *message, uint32_t n, uint8_t type,
		    uint8_t *ret_mac)
{
	int err = -ENOENT;
	uint32_t n_option;

	for (uint32_t at = sizeof(struct mr_neighbour); at < n;
	     at += n_option) {
		if (n - at < OPTION_UNIT)
			return -EBADMSG;
		n_option = message[at + 1] * (uint32_t)OPTION_UNIT;
		if (n_option == 0 || n_option > n - at)
			return -EBADMSG;
		if (message[at] == type) {
			memcpy(ret_mac, message + at + 2, 6);
			err = 0;
		}
	}
	return err;
}

static int read_nd(void *base, const struct mr_frame *frames,
		   const struct mr_net_view *view, struct mr_net_neighbour *ret)
{
	const uint8_t *bytes = mr_frame_data(base, frames);
	const struct mr_ipv6 *ip = (const void *)(bytes + view->l3_bytes);
	const struct mr_neighbour *message =
		(const void *)(bytes + view->l4_bytes);
	const uint8_t *addr = ip->src;
	static const uint8_t unspecified[16];
	int err;

	if (message->type != MR_ICMPV6_SOLICITATION &&
	    message->type != MR_ICMPV6_ADVERTISEMENT)
		return -ENOENT;
	ret->is_reply = message->type == MR_ICMPV6_ADVERTISEMENT;
	if (ret->is_reply)
		addr = message->target;
	else if (memcmp(addr, unspecified, 16) == 0)
		return -ENOENT; /* a probe for duplicate addresses */
	err = find_mac((const uint8_t *)message, view->l4_len_bytes,
		       ret->is_reply ? MR_NEIGHBOUR_TARGET_MAC :
				       MR_NEIGHBOUR_SOURCE_MAC,
		       ret->mac);
	if (err == 0 && (ip->hop_limit != ND_HOP_LIMIT || message->code != 0 ||
			 addr[0] == 0xff ||
			 (!(frames->flags & MR_FRAME_CSUM_PARTIAL) &&
			  mr_csum_check(base, frames, view) < 0)))
		err = -EBADMSG;
	memcpy(ret->addr, addr, 16);
	return err;
}

int mr_net_read_neighbour(void *base, const struct mr_frame *frames,
			  const struct mr_net_view *view,
			  struct mr_net_neighbour *ret_neighbour)
{
	const uint8_t *bytes = mr_frame_data(base, frames);
	struct mr_net_neighbour found = { 0 };
	int err = -ENOENT;

	if (view->ether_type == MR_ETHER_ARP && view->l3_bytes != 0 &&
	    view->l3_bytes + sizeof(struct mr_arp) <= frames->len)
		err = read_arp((const void *)(bytes + view->l3_bytes), &found);
	else if (view->ether_type == MR_ETHER_IPV6 &&
		 view->l4_proto == IPPROTO_ICMPV6 && view->l4_bytes != 0 &&
		 !view->is_fragment &&
		 view->l4_len_bytes >= sizeof(struct mr_neighbour) &&
		 view->l4_bytes + view->l4_len_bytes <= frames->len)
		err = read_nd(base, frames, view, &found);
	if (err == 0 && found.mac[0] & 1)
		err = -EBADMSG; /* of a group */
	if (err == 0)
		*ret_neighbour = found;
	return err;
}

static uint32_t ask_by_arp(uint8_t *bytes, const uint8_t *mac,
			   const uint8_t *own, const uint8_t *addr)
{
	struct mr_arp arp = { .hardware = htons(1),
			      .protocol = htons(MR_ETHER_IPV4),
			      .hardware_bytes = 6,
			      .protocol_bytes = 4,
			      .op = htons(MR_ARP_REQUEST) };
	struct mr_eth eth = { .type = htons(MR_ETHER_ARP) };

	memset(eth.dst, 0xff, 6);
	memcpy(eth.src, mac, 6);
	memcpy(arp.sender_mac, mac, 6);
	memcpy(&arp.sender, own + sizeof(mapped), 4);
	memcpy(&arp.target, addr + sizeof(mapped), 4);
	memcpy(bytes, &eth, sizeof(eth));
	memcpy(bytes + sizeof(eth), &arp, sizeof(arp));
	memset(bytes + sizeof(eth) + sizeof(arp), 0,
	       MR_ETH_MIN_BYTES - sizeof(eth) - sizeof(arp));
	return MR_ETH_MIN_BYTES;
}

static uint32_t ask_by_nd(uint8_t *bytes, const uint8_t *mac,
			  const uint8_t *own, const uint8_t *addr)
{
	struct solicitation ask = {
		.ip = { .version_class_flow = htonl(6u << 28),
			.payload_bytes = htons(sizeof(ask) - sizeof(ask.ip)),
			.next = IPPROTO_ICMPV6,
			.hop_limit = ND_HOP_LIMIT,
			/* All hosts whose address ends with these 3 bytes. */
			.dst = { 0xff, 2, [11] = 1, 0xff } },
		.neighbour = { .type = MR_ICMPV6_SOLICITATION },
		.option = MR_NEIGHBOUR_SOURCE_MAC,
		.option_units = 1,
	};
	struct mr_eth eth = { .dst = { 0x33, 0x33, 0xff },
			      .type = htons(MR_ETHER_IPV6) };
	const struct mr_frame frame = { .len = MR_NET_ASK_BYTES };
	struct mr_net_view view;

	memcpy(eth.dst + 3, addr + 13, 3);
	memcpy(eth.src, mac, 6);
	memcpy(ask.ip.src, own, 16);
	memcpy(ask.ip.dst + 13, addr + 13, 3);
	memcpy(ask.neighbour.target, addr, 16);
	memcpy(ask.mac, mac, 6);
	memcpy(bytes, &eth, sizeof(eth));
	memcpy(bytes + sizeof(eth), &ask, sizeof(ask));
	(void)mr_net_parse(bytes, frame.len, frame.len, &view);
	(void)mr_csum_write(bytes, &frame, &view);
	return frame.len;
}

uint32_t mr_net_ask_neighbour(uint8_t *bytes, const uint8_t *mac,
			      const uint8_t *own, const uint8_t *addr)
{
	return memcmp(addr, mapped, sizeof(mapped)) == 0 ?
		       ask_by_arp(bytes, mac, own, addr) :
		       ask_by_nd(bytes, mac, own, addr);
}

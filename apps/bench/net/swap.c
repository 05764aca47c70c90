/* SPDX-License-Identifier: BSD-3-Clause */
/* Sources: RFC 791, 8200, 768, 9293, 792, 4443, 826, 5227. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <millrace/net.h>
#include <millrace/wire.h>

#include "net/swap.h"

enum {
	ICMP_REQUEST = 8,
	ICMP_ANSWER = 0,
	ICMPV6_REQUEST = 128,
	ICMPV6_ANSWER = 129,
};

static inline void swap_bytes(uint8_t *a, uint8_t *b, uint32_t n)
{
	uint8_t copy[16];

	memcpy(copy, a, n);
	memcpy(a, b, n);
	memcpy(b, copy, n);
}

/* The type is the upper byte of its word. */
static void answer_echo(uint8_t *l4, uint8_t request, uint8_t answer)
{
	uint16_t csum;

	if (l4[0] != request)
		return;
	memcpy(&csum, l4 + 2, sizeof(csum));
	csum = mr_csum_fix_nonzero(
		csum, mr_csum_delta16(htons((uint16_t)(request << 8)),
				      htons((uint16_t)(answer << 8))));
	memcpy(l4 + 2, &csum, sizeof(csum));
	l4[0] = answer;
}

/* Also of first fragments; the others have no ports. */
static void swap_l4(uint8_t *bytes, uint32_t n_bytes,
		    const struct mr_net_view *view)
{
	uint8_t *l4 = bytes + view->l4_bytes;

	if (view->l4_bytes == 0 || view->l4_bytes + 4u > n_bytes ||
	    view->l4_len_bytes < 4)
		return;
	switch (view->l4_proto) {
	case IPPROTO_TCP:
	case IPPROTO_UDP:
		swap_bytes(l4, l4 + 2, 2);
		break;
	case IPPROTO_ICMP:
		answer_echo(l4, ICMP_REQUEST, ICMP_ANSWER);
		break;
	case IPPROTO_ICMPV6:
		answer_echo(l4, ICMPV6_REQUEST, ICMPV6_ANSWER);
		break;
	default:
		break;
	}
}

enum swap_result swap_frame(uint8_t *bytes, uint32_t n_bytes, uint32_t n_frame,
			    enum swap_layer layer)
{
	struct mr_net_view view;

	if (n_bytes < MR_ETH_BYTES)
		return SWAP_RUNT;
	if (bytes[0] & 1)
		return SWAP_GROUP;
	swap_bytes(bytes, bytes + 6, 6);
	if (layer == SWAP_MACS ||
	    mr_net_parse(bytes, n_bytes, n_frame, &view) < 0)
		return SWAP_DONE;
	if (view.ether_type == MR_ETHER_IPV4)
		swap_bytes(bytes + view.l3_bytes + 12,
			   bytes + view.l3_bytes + 16, 4);
	else if (view.ether_type == MR_ETHER_IPV6)
		swap_bytes(bytes + view.l3_bytes + 8,
			   bytes + view.l3_bytes + 24, 16);
	if (layer == SWAP_PORTS)
		swap_l4(bytes, n_bytes, &view);
	return SWAP_DONE;
}

int swap_arp(uint8_t *bytes, uint32_t n_bytes, const uint8_t *mac)
{
	struct mr_eth eth;
	struct mr_arp arp;
	uint32_t asked;

	if (n_bytes < sizeof(eth) + sizeof(arp))
		return 0;
	memcpy(&eth, bytes, sizeof(eth));
	memcpy(&arp, bytes + sizeof(eth), sizeof(arp));
	if (ntohs(eth.type) != MR_ETHER_ARP || ntohs(arp.hardware) != 1 ||
	    ntohs(arp.protocol) != MR_ETHER_IPV4 ||
	    ntohs(arp.op) != MR_ARP_REQUEST || arp.sender == 0 ||
	    arp.sender == arp.target)
		return 0;
	asked = arp.target;
	memcpy(eth.dst, arp.sender_mac, sizeof(eth.dst));
	memcpy(eth.src, mac, sizeof(eth.src));
	arp.op = htons(MR_ARP_REPLY);
	memcpy(arp.target_mac, arp.sender_mac, sizeof(arp.target_mac));
	arp.target = arp.sender;
	memcpy(arp.sender_mac, mac, sizeof(arp.sender_mac));
	arp.sender = asked;
	memcpy(bytes, &eth, sizeof(eth));
	memcpy(bytes + sizeof(eth), &arp, sizeof(arp));
	return 1;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Turn a frame into its answer, in place. Sources: RFC 826, 792, 4443. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <millrace/net.h>
#include <millrace/wire.h>

static void swap_bytes(uint8_t *a, uint8_t *b, uint32_t n)
{
	uint8_t copy[16];

	memcpy(copy, a, n);
	memcpy(a, b, n);
	memcpy(b, copy, n);
}

void mr_net_swap_macs(uint8_t *bytes)
{
	swap_bytes(bytes, bytes + 6, 6);
}

void mr_net_swap_addrs(uint8_t *bytes, const struct mr_net_view *view)
{
	uint8_t *l3 = bytes + view->l3_bytes;

	if (view->ether_type == MR_ETHER_IPV4)
		swap_bytes(l3 + offsetof(struct mr_ipv4, src),
			   l3 + offsetof(struct mr_ipv4, dst), 4);
	else if (view->ether_type == MR_ETHER_IPV6)
		swap_bytes(l3 + offsetof(struct mr_ipv6, src),
			   l3 + offsetof(struct mr_ipv6, dst), 16);
}

int mr_net_answer_echo(uint8_t *bytes, uint32_t n_bytes,
		       const struct mr_net_view *view)
{
	const bool is_v6 = view->ether_type == MR_ETHER_IPV6;
	const uint8_t request = is_v6 ? MR_ICMPV6_ECHO : MR_ICMP_ECHO;
	const uint8_t reply = is_v6 ? MR_ICMPV6_ECHO_REPLY : MR_ICMP_ECHO_REPLY;
	struct mr_icmp *icmp = (void *)(bytes + view->l4_bytes);

	if (view->l4_bytes == 0 ||
	    view->l4_proto != (is_v6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP) ||
	    view->l4_bytes + 4u > n_bytes || view->l4_len_bytes < 4 ||
	    icmp->type != request)
		return 0;
	icmp->type = reply; /* the upper byte of its word */
	icmp->csum = mr_csum_fix_nonzero(
		icmp->csum, mr_csum_delta16(htons((uint16_t)(request << 8)),
					    htons((uint16_t)(reply << 8))));
	return 1;
}

void mr_net_answer_arp(uint8_t *bytes, const struct mr_net_view *view,
		       const uint8_t *mac)
{
	struct mr_eth *eth = (void *)bytes;
	struct mr_arp *arp = (void *)(bytes + view->l3_bytes);
	const uint32_t asked = arp->target;

	memcpy(eth->dst, arp->sender_mac, sizeof(eth->dst));
	memcpy(eth->src, mac, sizeof(eth->src));
	arp->op = htons(MR_ARP_REPLY);
	memcpy(arp->target_mac, arp->sender_mac, sizeof(arp->target_mac));
	arp->target = arp->sender;
	memcpy(arp->sender_mac, mac, sizeof(arp->sender_mac));
	arp->sender = asked;
}

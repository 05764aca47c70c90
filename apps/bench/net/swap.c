/* SPDX-License-Identifier: BSD-3-Clause */
/* Sources: RFC 791, 8200, 768, 9293, 792, 4443, 826, 5227. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <millrace/net.h>
#include <millrace/wire.h>

#include "net/swap.h"

/* Also of first fragments; the others have no ports. */
static void swap_ports(uint8_t *bytes, uint32_t n_bytes,
		       const struct mr_net_view *view)
{
	uint8_t *l4 = bytes + view->l4_bytes, from[2];

	if (view->l4_bytes == 0 || view->l4_bytes + 4u > n_bytes ||
	    view->l4_len_bytes < 4)
		return;
	if (view->l4_proto != IPPROTO_TCP && view->l4_proto != IPPROTO_UDP)
		return;
	memcpy(from, l4, sizeof(from));
	memmove(l4, l4 + 2, 2);
	memcpy(l4 + 2, from, sizeof(from));
}

enum swap_result swap_frame(uint8_t *bytes, uint32_t n_bytes, uint32_t n_frame,
			    enum swap_layer layer)
{
	struct mr_net_view view;

	if (n_bytes < MR_ETH_BYTES)
		return SWAP_RUNT;
	if (bytes[0] & 1)
		return SWAP_GROUP;
	mr_net_swap_macs(bytes);
	if (layer == SWAP_MACS ||
	    mr_net_parse(bytes, n_bytes, n_frame, &view) < 0)
		return SWAP_DONE;
	mr_net_swap_addrs(bytes, &view);
	if (layer == SWAP_PORTS && !mr_net_answer_echo(bytes, n_bytes, &view))
		swap_ports(bytes, n_bytes, &view);
	return SWAP_DONE;
}

int swap_arp(uint8_t *bytes, uint32_t n_bytes, const uint8_t *mac)
{
	const struct mr_net_view view = { .l3_bytes = MR_ETH_BYTES };
	const struct mr_eth *eth = (const void *)bytes;
	const struct mr_arp *arp = (const void *)(eth + 1);

	if (n_bytes < sizeof(*eth) + sizeof(*arp) ||
	    ntohs(eth->type) != MR_ETHER_ARP || ntohs(arp->hardware) != 1 ||
	    ntohs(arp->protocol) != MR_ETHER_IPV4 ||
	    ntohs(arp->op) != MR_ARP_REQUEST || arp->sender == 0 ||
	    arp->sender == arp->target)
		return 0;
	mr_net_answer_arp(bytes, &view, mac);
	return 1;
}

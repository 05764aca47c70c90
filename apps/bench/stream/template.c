/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes frames, and finds headers and fields in any frame, made or captured.
 * Sources: as in words.c; benchmark addresses: RFC 2544 C.2.2 and RFC 5180 8.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "stream/template.h"

enum {
	ETHER_QINQ = 0x88a8,
	ETHER_LOCAL = 0x88b5, /* until eth.type is set */
	IPV6_BYTES = 40,
	TTL = 64,
	PORT_FROM = 1024,
	PORT_TO = 9, /* discard, RFC 863 */
	ICMPV6_ECHO = 128,
	ICMP_ECHO = 8,
	OPTION_NOP = 1,
};

static const uint8_t v6_src[16] = { 0x20, 1, 0, 2, [15] = 1 };
static const uint8_t v6_dst[16] = { 0x20, 1, 0, 2, [7] = 1, [15] = 1 };

uint32_t window_get(const uint8_t *bytes, uint32_t n_bytes)
{
	uint32_t window = 0;

	for (uint32_t i = 0; i < n_bytes; i++)
		window = window << 8 | bytes[i];
	return window;
}

void window_put(uint8_t *bytes, uint32_t n_bytes, uint32_t window)
{
	for (uint32_t i = n_bytes; i-- > 0; window >>= 8)
		bytes[i] = (uint8_t)window;
}

static uint8_t l4_proto(const struct words *words)
{
	switch (words->proto) {
	case 0:
		return IPPROTO_UDP;
	case IPPROTO_ICMP:
		return words->is_ipv6 ? IPPROTO_ICMPV6 : IPPROTO_ICMP;
	case IPPROTO_RAW: /* ip.proto: a constant */
		return (uint8_t)words_values(words, "ip.proto")->first;
	default:
		return words->proto;
	}
}

static uint32_t l4_n_bytes(const struct words *words)
{
	switch (words->proto) {
	case IPPROTO_TCP:
		return sizeof(struct mr_tcp);
	case IPPROTO_RAW:
		return 0;
	default: /* ICMP's header is as long */
		return sizeof(struct mr_udp);
	}
}

static uint32_t l2_n_bytes(const struct words *words)
{
	return MR_ETH_BYTES + MR_VLAN_BYTES * words->is_vlan +
	       MR_VLAN_BYTES * words->is_qinq;
}

uint32_t template_n_headers(const struct words *words)
{
	if (words->is_raw)
		return l2_n_bytes(words);
	return l2_n_bytes(words) +
	       (words->is_ipv6 ? IPV6_BYTES :
				 (uint32_t)sizeof(struct mr_ipv4) +
					 words->n_option_bytes) +
	       l4_n_bytes(words);
}

static void make_l2(const struct words *words,
		    const struct stream_defaults *defaults, uint8_t *bytes)
{
	const uint32_t type = words->is_raw  ? ETHER_LOCAL :
			      words->is_ipv6 ? MR_ETHER_IPV6 :
					       MR_ETHER_IPV4;

	memcpy(bytes, defaults->dst_mac, 6);
	memcpy(bytes + 6, defaults->src_mac, 6);
	bytes += 12;
	if (words->is_qinq) {
		window_put(bytes, 2, ETHER_QINQ);
		bytes += MR_VLAN_BYTES;
	}
	if (words->is_vlan) {
		window_put(bytes, 2, MR_ETHER_VLAN);
		bytes += MR_VLAN_BYTES;
	}
	window_put(bytes, 2, type);
}

static void make_ipv4(const struct words *words, uint8_t *l3, uint32_t n_bytes)
{
	struct mr_ipv4 ip = {
		.version_ihl = (uint8_t)(0x45 + words->n_option_bytes / 4),
		.total_bytes = htons((uint16_t)n_bytes),
		.fragment = htons(MR_IPV4_DF),
		.ttl = TTL,
		.proto = l4_proto(words),
		.src = htonl(0xc6120001), /* 198.18.0.1 */
		.dst = htonl(0xc6130001), /* 198.19.0.1 */
	};

	memcpy(l3, &ip, sizeof(ip));
	memset(l3 + sizeof(ip), OPTION_NOP, words->n_option_bytes);
}

static void make_ipv6(const struct words *words, uint8_t *l3, uint32_t n_bytes)
{
	l3[0] = 0x60;
	window_put(l3 + 4, 2, n_bytes - IPV6_BYTES);
	l3[6] = l4_proto(words);
	l3[7] = TTL;
	memcpy(l3 + 8, v6_src, sizeof(v6_src));
	memcpy(l3 + 24, v6_dst, sizeof(v6_dst));
}

static void make_l4(const struct words *words, uint8_t *l4, uint32_t n_bytes)
{
	switch (l4_proto(words) * (words->proto != IPPROTO_RAW)) {
	case IPPROTO_TCP: {
		const struct mr_tcp tcp = { .src = htons(PORT_FROM),
					    .dst = htons(PORT_TO),
					    .offset = sizeof(tcp) / 4 << 4,
					    .flags = MR_TCP_ACK,
					    .window = UINT16_MAX };

		memcpy(l4, &tcp, sizeof(tcp));
		break;
	}
	case IPPROTO_UDP:
		window_put(l4, 2, PORT_FROM);
		window_put(l4 + 2, 2, PORT_TO);
		window_put(l4 + 4, 2, n_bytes);
		window_put(l4 + 6, 2, words->is_csum_off ? 0 : 1); /* 0: none */
		break;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		l4[0] = words->is_ipv6 ? ICMPV6_ECHO : ICMP_ECHO;
		window_put(l4 + 4, 2, 1);
		break;
	default:
		break;
	}
}

void template_make(const struct words *words,
		   const struct stream_defaults *defaults, uint8_t *bytes,
		   uint32_t n_bytes)
{
	const uint32_t l3 = l2_n_bytes(words);
	const uint32_t l4 = template_n_headers(words) - l4_n_bytes(words);

	memset(bytes, 0, n_bytes);
	make_l2(words, defaults, bytes);
	if (words->is_raw)
		return;
	if (words->is_ipv6)
		make_ipv6(words, bytes + l3, n_bytes - l3);
	else
		make_ipv4(words, bytes + l3, n_bytes - l3);
	make_l4(words, bytes + l4, n_bytes - l4);
}

static uint32_t l4_header_bytes(const uint8_t *bytes,
				const struct mr_net_view *view)
{
	switch (view->l4_proto) {
	case IPPROTO_TCP:
		return (uint32_t)(bytes[view->l4_bytes + 12] >> 4) * 4;
	case IPPROTO_UDP:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return sizeof(struct mr_udp);
	default:
		return 0;
	}
}

/* Find checksums that can be computed: of whole packets, and UDP's only if it
 * has one. */
static void find_sums(struct layout *layout)
{
	const struct mr_net_view *view = &layout->view;
	const uint16_t l4 = view->l4_bytes;

	if (view->ether_type == MR_ETHER_IPV4)
		layout->l3_csum = (uint16_t)(view->l3_bytes + 10);
	if (l4 == 0 || view->is_fragment)
		return;
	layout->has_pseudo = view->l4_proto != IPPROTO_ICMP;
	layout->l4_csum = view->csum_bytes;
	if (view->l4_proto == IPPROTO_ICMP || view->l4_proto == IPPROTO_ICMPV6)
		layout->l4_csum = (uint16_t)(l4 + 2);
}

int layout_find(const uint8_t *bytes, uint32_t n_bytes, struct layout *ret)
{
	struct mr_net_view *view = &ret->view;
	uint32_t at = 12, type;
	uint32_t n_l4;

	*ret = (struct layout){ .n_headers = MR_ETH_BYTES };
	if (n_bytes < MR_ETH_BYTES ||
	    mr_net_parse(bytes, n_bytes, n_bytes, view) < 0)
		return -EBADMSG;
	/* At most two, as in mr_net_parse(). */
	for (uint32_t n_tags = 0; n_tags < 2; n_tags++) {
		type = window_get(bytes + at, 2);
		if (type != MR_ETHER_VLAN && type != ETHER_QINQ)
			break;
		ret->layers[LAYER_QINQ] = ret->layers[LAYER_VLAN];
		ret->layers[LAYER_VLAN] = (uint16_t)(at + 2);
		at += MR_VLAN_BYTES;
	}
	ret->ether_type = view->ether_type;
	ret->n_headers = at + 2;
	if (view->ether_type != MR_ETHER_IPV4 &&
	    view->ether_type != MR_ETHER_IPV6)
		return 0;
	ret->layers[LAYER_IP] = view->l3_bytes;
	ret->layers[LAYER_L4] = view->l4_bytes;
	ret->proto = view->l4_proto;
	find_sums(ret);
	if (view->l4_bytes == 0) {
		ret->n_headers = n_bytes; /* what follows is not known */
		return 0;
	}
	n_l4 = l4_header_bytes(bytes, view);
	ret->n_headers = view->l4_bytes + n_l4;
	ret->l4_end = (uint32_t)view->l4_bytes + view->l4_len_bytes;
	return n_l4 > view->l4_len_bytes ? -EBADMSG : 0;
}

const struct place *layout_place(const struct layout *layout,
				 const struct field_row *row, uint16_t *ret_at)
{
	const bool is_v6 = layout->ether_type == MR_ETHER_IPV6;
	const struct place *place =
		row->layer == LAYER_IP && is_v6 ? &row->v6 : &row->place;
	uint8_t proto = row->proto;

	if (proto == IPPROTO_ICMP && is_v6)
		proto = IPPROTO_ICMPV6;
	if (place->n_bytes == 0 ||
	    (row->layer != LAYER_ETH && layout->layers[row->layer] == 0) ||
	    (row->layer == LAYER_L4 && proto != layout->proto))
		return NULL;
	*ret_at = (uint16_t)(layout->layers[row->layer] + place->at);
	/* The type follows the tags. */
	if (row->layer == LAYER_ETH && place->at == 12 &&
	    layout->layers[LAYER_VLAN] != 0)
		*ret_at = (uint16_t)(layout->layers[LAYER_VLAN] + 2);
	return place;
}

static void set_one(const struct given *given, const struct place *place,
		    uint8_t *at)
{
	const struct values *values = &given->values;
	uint32_t window = window_get(at, place->n_bytes) & ~place->mask;

	if (given->row->kind == VALUE_MAC)
		memcpy(at - 2, &values->high[10], 2);
	if (values->is_ipv6)
		memcpy(at - 12, values->high, 12);
	if (values->n == 1)
		window |= values->first << place->shift & place->mask;
	window_put(at, place->n_bytes, window);
}

bool template_set(const struct words *words, const struct layout *layout,
		  uint8_t *bytes, uint32_t *ret_missing)
{
	const bool is_v6 = layout->ether_type == MR_ETHER_IPV6;

	for (uint32_t i = 0; i < words->n_given; i++) {
		const struct given *given = &words->given[i];
		uint16_t at;
		const struct place *place =
			layout_place(layout, given->row, &at);

		if (place == NULL || (given->row->kind == VALUE_IP &&
				      given->values.is_ipv6 != is_v6)) {
			*ret_missing = i;
			return false;
		}
		set_one(given, place, bytes + at);
	}
	return true;
}

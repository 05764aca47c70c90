/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors that we send. Sources: RFC 792, RFC 1122 3.2.2, RFC 1812 4.3.2.
 */
#include "icmp_send.h"

#include "frame.h"
#include "header.h"
#include "icmp.h"

enum {
	ERRORS_PER_S = 1000,
	ERRORS_BURST = 50,
	ANSWER_BYTES = 576, /* of an error with its quote: RFC 1812 */
	TOS_CONTROL = 0xc0, /* internetwork control: RFC 1812 4.3.2.5 */
};

/* A token bucket of ERRORS_BURST that fills with ERRORS_PER_S, without
 * division. One per side: outside hosts cannot use up the errors for
 * subscribers. */
bool nat_may_answer(struct nat_path *path, const struct nat_packet *packet)
{
	const uint64_t one_ns = 1000000000 / ERRORS_PER_S;
	uint64_t *ready_ns = &path->answer_ready_ns[packet->from];

	if (*ready_ns < path->now_ns)
		*ready_ns = path->now_ns;
	if (*ready_ns - path->now_ns >= ERRORS_BURST * one_ns)
		return false;
	*ready_ns += one_ns;
	return true;
}

/* RFC 1122 3.2.2: never for an error, a later fragment, multicast. */
static bool may_have_error(const struct nat_packet *packet, uint64_t mac)
{
	return packet->is_first && (mac & 1) == 0 &&
	       (packet->proto != IPPROTO_ICMP ||
		(packet->l4 != NULL && nat_icmp_is_query(packet->l4[0])));
}

void nat_icmp_send(struct nat_path *path, const struct nat_packet *packet,
		   uint8_t type, uint8_t code, uint16_t mtu)
{
	const struct mr_eth *eth =
		(const void *)mr_frame_data(path->base, packet->frames);
	const uint64_t mac = nat_mac(eth->src);
	const uint32_t n_head = sizeof(struct mr_ipv4) + sizeof(struct mr_icmp);
	const uint32_t n_quote = packet->total_bytes < ANSWER_BYTES - n_head ?
					 packet->total_bytes :
					 ANSWER_BYTES - n_head;
	struct nat_packet answer;
	struct mr_icmp *icmp;

	if (!may_have_error(packet, mac) || !nat_may_answer(path, packet) ||
	    !nat_make(path, &answer, n_head + n_quote))
		return;
	icmp = nat_put_ip(
		path, &answer,
		&(struct mr_ipv4){ .tos = TOS_CONTROL,
				   .total_bytes =
					   htons((uint16_t)(n_head + n_quote)),
				   .id = nat_take_id(path),
				   .proto = IPPROTO_ICMP,
				   .src = path->links[packet->from].own,
				   .dst = packet->ip->src });
	*icmp = (struct mr_icmp){ .type = type,
				  .code = code,
				  .seq = htons(mtu) };
	mr_frame_copy_bytes(path->base, packet->frames, packet->l2_bytes,
			    icmp + 1, n_quote);
	icmp->csum = (uint16_t)~mr_csum_fold(mr_csum_add(
		(const uint8_t *)icmp, (uint32_t)sizeof(*icmp) + n_quote, 0));
	if (packet->is_looped)
		nat_send_looped(path, &answer); /* its sender is inside */
	else
		nat_send(path, &answer, packet->from, mac);
}

/*
 * A NAT with many subscribers reports "host unreachable" when out of resources
 * or over a subscriber's limit (RFC 6888 REQ-11), others report "prohibited"
 * (RFC 5508 REQ-8).
 */
static uint8_t no_session_code(const struct nat_config *config)
{
	return config->max_mappings_per_subscriber != 0 ||
			       config->ports.block != 0 ?
		       NAT_ICMP_NO_HOST :
		       NAT_ICMP_PROHIBITED;
}

void nat_refuse_packet(struct nat_path *path, struct nat_packet *packet,
		       enum nat_drop drop)
{
	uint8_t type = NAT_ICMP_UNREACHABLE, code;

	switch (drop) {
	case NAT_DROP_TTL:
		type = NAT_ICMP_TIME;
		code = 0;
		break;
	case NAT_DROP_NO_PORT:
	case NAT_DROP_QUOTA:
	case NAT_DROP_TABLE_FULL:
		code = no_session_code(path->config);
		break;
	case NAT_DROP_PROTOCOL:
	case NAT_DROP_HAIRPIN_OFF:
		code = NAT_ICMP_PROHIBITED;
		break;
	case NAT_DROP_NEIGHBOUR:
		code = NAT_ICMP_NO_HOST;
		break;
	case NAT_DROP_NO_ROUTE:
		code = NAT_ICMP_NO_NET;
		break;
	case NAT_DROP_UNSOLICITED_SYN:
		code = NAT_ICMP_NO_PORT;
		break;
	default:
		nat_drop_packet(path, packet, drop);
		return;
	}
	nat_icmp_send(path, packet, type, code, 0);
	nat_drop_packet(path, packet, drop);
}

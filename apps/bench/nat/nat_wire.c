/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes and reads the frames: Ethernet, IPv4, UDP or TCP. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "nat/nat_wire.h"

enum {
	L4_BYTES = MR_ETH_BYTES + sizeof(struct mr_ipv4),
	PAYLOAD_BYTES = L4_BYTES + sizeof(struct mr_udp),
	TTL = 64,
};

/* After a UDP header, in network order. */
struct mark {
	uint32_t magic, number;
} __attribute__((packed));

/* Both directions of a connection, in network order. */
struct ends {
	uint32_t src, dst;
	uint16_t src_port, dst_port;
};

static struct ends ends_of(const struct nat_plan *plan, uint32_t number)
{
	const uint32_t per_client = number / plan->n_clients;

	return (struct ends){
		.src = htonl(plan->client + number % plan->n_clients),
		.dst = htonl(plan->server),
		.src_port = htons((uint16_t)(NAT_FIRST_PORT +
					     per_client % NAT_CLIENT_PORTS)),
		.dst_port = htons((uint16_t)(NAT_SERVER_PORT +
					     per_client / NAT_CLIENT_PORTS)),
	};
}

static void write_eth(const struct nat_macs *macs, uint16_t type,
		      uint8_t *frame)
{
	struct mr_eth *eth = (struct mr_eth *)frame;

	memset(frame, 0, NAT_FRAME_BYTES);
	memcpy(eth->dst, macs->dst, sizeof(eth->dst));
	memcpy(eth->src, macs->src, sizeof(eth->src));
	eth->type = htons(type);
}

static void write_sums(uint8_t *frame)
{
	const struct mr_frame entry = { .len = NAT_FRAME_BYTES };
	struct mr_net_view view;

	mr_csum_write_ipv4(frame + MR_ETH_BYTES);
	mr_net_parse(frame, NAT_FRAME_BYTES, NAT_FRAME_BYTES, &view);
	mr_csum_write(frame, &entry, &view);
}

static void write_ip(const struct ends *ends, bool is_tcp, uint8_t *frame)
{
	struct mr_ipv4 *ip = (struct mr_ipv4 *)(frame + MR_ETH_BYTES);
	const uint16_t l4_bytes =
		is_tcp ? sizeof(struct mr_tcp) :
			 sizeof(struct mr_udp) + sizeof(struct mark);

	ip->version_ihl = 0x45;
	ip->total_bytes = htons((uint16_t)(sizeof(*ip) + l4_bytes));
	ip->fragment = htons(MR_IPV4_DF);
	ip->ttl = TTL;
	ip->proto = is_tcp ? IPPROTO_TCP : IPPROTO_UDP;
	ip->src = ends->src;
	ip->dst = ends->dst;
}

/* number: of the query; an answer acknowledges it. */
static void write_l4(const struct nat_plan *plan, const struct ends *ends,
		     uint32_t number, bool is_answer, uint8_t *frame)
{
	struct mr_udp *udp = (struct mr_udp *)(frame + L4_BYTES);
	struct mr_tcp *tcp = (struct mr_tcp *)(frame + L4_BYTES);
	struct mark *mark = (struct mark *)(frame + PAYLOAD_BYTES);

	udp->src = ends->src_port;
	udp->dst = ends->dst_port;
	if (!plan->is_tcp) {
		udp->n_bytes = htons(sizeof(*udp) + sizeof(*mark));
		mark->magic = htonl(plan->magic);
		mark->number = htonl(number);
		return;
	}
	tcp->offset = 5 << 4;
	tcp->window = htons(UINT16_MAX);
	tcp->flags = MR_TCP_SYN;
	tcp->seq = htonl(plan->magic + number);
	if (is_answer) {
		tcp->flags = MR_TCP_SYN | MR_TCP_ACK;
		tcp->ack = htonl(plan->magic + number + 1);
	}
}

void nat_wire_query(const struct nat_plan *plan, uint32_t number,
		    const struct nat_macs *macs, uint8_t *frame)
{
	const struct ends ends = ends_of(plan, number);

	write_eth(macs, MR_ETHER_IPV4, frame);
	write_ip(&ends, plan->is_tcp, frame);
	write_l4(plan, &ends, number, false, frame);
	write_sums(frame);
}

void nat_wire_answer(const struct nat_plan *plan, uint32_t number,
		     const struct nat_tuple *tuple, const struct nat_macs *macs,
		     uint8_t *frame)
{
	const struct ends ends = { .src = htonl(plan->server),
				   .dst = tuple->addr,
				   .src_port = tuple->server_port,
				   .dst_port = tuple->port };

	write_eth(macs, MR_ETHER_IPV4, frame);
	write_ip(&ends, plan->is_tcp, frame);
	write_l4(plan, &ends, number, true, frame);
	write_sums(frame);
}

void nat_wire_arp(uint16_t op, uint32_t sender, uint32_t target,
		  const struct nat_macs *macs, uint8_t *frame)
{
	struct mr_arp *arp = (struct mr_arp *)(frame + MR_ETH_BYTES);
	struct nat_macs to = *macs;

	if (op == MR_ARP_REQUEST)
		memset(to.dst, 0xff, sizeof(to.dst));
	write_eth(&to, MR_ETHER_ARP, frame);
	arp->hardware = htons(1);
	arp->protocol = htons(MR_ETHER_IPV4);
	arp->hardware_bytes = 6;
	arp->protocol_bytes = 4;
	arp->op = htons(op);
	memcpy(arp->sender_mac, macs->src, sizeof(arp->sender_mac));
	arp->sender = htonl(sender);
	if (op == MR_ARP_REPLY)
		memcpy(arp->target_mac, macs->dst, sizeof(arp->target_mac));
	arp->target = htonl(target);
}

static enum nat_kind read_arp(const struct nat_plan *plan, bool is_server_side,
			      const uint8_t *frame, struct nat_seen *ret)
{
	const struct mr_arp *arp =
		(const struct mr_arp *)(frame + MR_ETH_BYTES);

	ret->asker = ntohl(arp->sender);
	ret->asked = ntohl(arp->target);
	memcpy(ret->src_mac, arp->sender_mac, sizeof(ret->src_mac));
	if (arp->op == htons(MR_ARP_REPLY))
		return NAT_ARP_REPLY;
	/* The NAT announces its own address, whose MAC may have changed. */
	if (!is_server_side && ret->asker == plan->gateway &&
	    ret->asked == plan->gateway)
		return NAT_ARP_REPLY;
	if (arp->op != htons(MR_ARP_REQUEST))
		return NAT_OTHER;
	if (is_server_side)
		return ret->asked == plan->server ? NAT_ARP_REQUEST : NAT_OTHER;
	return ret->asked - plan->client < plan->n_clients ? NAT_ARP_REQUEST :
							     NAT_OTHER;
}

/* The number that a frame carries; false: the frame is not ours. */
static bool read_number(const struct nat_plan *plan, bool is_answer,
			const uint8_t *l4, uint32_t *ret)
{
	const struct mr_tcp *tcp = (const struct mr_tcp *)l4;
	const struct mark *mark =
		(const struct mark *)(l4 + sizeof(struct mr_udp));

	if (!plan->is_tcp) {
		*ret = ntohl(mark->number);
		return mark->magic == htonl(plan->magic);
	}
	*ret = ntohl(tcp->seq) - plan->magic;
	if (!is_answer)
		return tcp->flags == MR_TCP_SYN;
	return tcp->flags == (MR_TCP_SYN | MR_TCP_ACK) &&
	       ntohl(tcp->ack) - plan->magic == *ret + 1;
}

/* If the NAT's entry belongs to another connection by now, the frame goes to
 * another client, and is no answer. */
static bool is_for(const struct nat_plan *plan, uint32_t number,
		   const struct mr_ipv4 *ip, const struct mr_udp *l4)
{
	const struct ends ends = ends_of(plan, number);

	return ip->dst == ends.src && l4->dst == ends.src_port;
}

enum nat_kind nat_wire_read(const struct nat_plan *plan, bool is_server_side,
			    const uint8_t *frame, uint32_t n_bytes,
			    struct nat_seen *ret)
{
	const struct mr_eth *eth = (const struct mr_eth *)frame;
	const struct mr_ipv4 *ip =
		(const struct mr_ipv4 *)(frame + MR_ETH_BYTES);
	const struct mr_udp *udp = (const struct mr_udp *)(frame + L4_BYTES);
	const uint8_t proto = plan->is_tcp ? IPPROTO_TCP : IPPROTO_UDP;

	/* A NAT may send a TCP header without padding. */
	if (n_bytes < L4_BYTES + sizeof(struct mr_udp) + sizeof(struct mark))
		return NAT_OTHER;
	if (eth->type == htons(MR_ETHER_ARP))
		return read_arp(plan, is_server_side, frame, ret);
	if (eth->type != htons(MR_ETHER_IPV4) || ip->version_ihl != 0x45 ||
	    ip->proto != proto ||
	    (plan->is_tcp && n_bytes < L4_BYTES + sizeof(struct mr_tcp)) ||
	    !read_number(plan, !is_server_side, frame + L4_BYTES, &ret->number))
		return NAT_OTHER;
	memcpy(ret->src_mac, eth->src, sizeof(ret->src_mac));
	if (!is_server_side)
		return is_for(plan, ret->number, ip, udp) ? NAT_ANSWER :
							    NAT_OTHER;
	ret->tuple = (struct nat_tuple){ ip->src, udp->src, udp->dst };
	return ip->dst == htonl(plan->server) ? NAT_QUERY : NAT_OTHER;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Random packets: packets.h. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <millrace/net.h>

#include "packets.h"

enum {
	FIN = 1,
	SYN = 2,
	RST = 4,
	ACK = 16,
	PAYLOAD = 1600,
};

static const uint32_t hosts[PACKETS_HOSTS] = {
	0x0a000002, 0x0a000003, 0x0a000009, 0x0a000707, 0x0a000708,
};
static const uint16_t ports[PACKETS_PORTS] = { 5000, 5001 };
/* By way of the gateway, some with two ports, or on the link. */
static const struct {
	uint32_t addr;
	uint16_t port;
} peers[PACKETS_PEERS] = {
	{ 0xc6336407, 53 }, { 0xc6336407, 80 }, { 0xc000024d, 53 },
	{ 0xcb007109, 80 }, { 0xc6336408, 53 }, { 0xc6336408, 54 },
	{ 0xc000024e, 53 }, { 0xc6336409, 53 },
};

/* A packet before it has bytes; host order. */
struct draft {
	uint32_t src, dst;
	uint16_t sport, dport;
	uint8_t proto;
	uint32_t seq, ack;
	uint16_t window;
	uint8_t flags, scale; /* of TCP; scale 0: no option */
	uint32_t n_payload;
};

uint32_t packets_below(struct packets *p, uint32_t n)
{
	p->state = p->state * UINT64_C(6364136223846793005) +
		   UINT64_C(1442695040888963407);
	return (uint32_t)(((p->state >> 33) * n) >> 31);
}

static void put16(uint8_t *to, uint32_t value)
{
	to[0] = (uint8_t)(value >> 8);
	to[1] = (uint8_t)value;
}

static void put32(uint8_t *to, uint32_t value)
{
	put16(to, value >> 16);
	put16(to + 2, value);
}

static uint32_t get16(const uint8_t *from)
{
	return (uint32_t)from[0] << 8 | from[1];
}

static uint32_t get32(const uint8_t *from)
{
	return get16(from) << 16 | get16(from + 2);
}

static uint16_t sum_of(const uint8_t *bytes, uint32_t n, uint64_t sum)
{
	return mr_csum_fold(mr_csum_add(bytes, n, sum));
}

static void sum_ip(uint8_t *ip)
{
	uint16_t sum;

	put16(ip + 10, 0);
	sum = (uint16_t)~sum_of(ip, (ip[0] & 15u) * 4, 0);
	memcpy(ip + 10, &sum, 2);
}

/* is_pseudo: only of the pseudo header, as a partial one. */
static void sum_l4(uint8_t *ip, uint32_t n_l4, bool is_pseudo)
{
	uint8_t *l4 = ip + (ip[0] & 15u) * 4;
	uint8_t *at = l4 + (ip[9] == IPPROTO_UDP ? 6 : 16);
	const uint64_t pseudo =
		sum_of(ip + 12, 8, htons(ip[9])) + htons((uint16_t)n_l4);
	uint16_t sum;

	put16(at, 0);
	sum = is_pseudo ? mr_csum_fold(pseudo) :
			  (uint16_t)~sum_of(l4, n_l4, pseudo);
	if (sum == 0 && ip[9] == IPPROTO_UDP)
		sum = UINT16_MAX;
	memcpy(at, &sum, 2);
}

static uint32_t put_link(const struct packets *p, uint32_t side,
			 uint32_t ether_type, uint8_t *to)
{
	const uint8_t ours = side == 0 ? 0xa : 0xb;
	const uint8_t macs[12] = { 2, ours, ours, ours, ours, ours, 2, 0, 9 };
	uint32_t n = sizeof(macs);

	memcpy(to, macs, n);
	if (p->vlans[side] != 0) {
		put16(to + n, 0x8100);
		put16(to + n + 2, p->vlans[side]);
		n += 4;
	}
	put16(to + n, ether_type);
	return n + 2;
}

/* Layer 4 of a draft; its length. */
static uint32_t put_l4(struct packets *p, const struct draft *d, uint8_t *l4)
{
	uint32_t n = 8;

	put16(l4, d->sport);
	put16(l4 + 2, d->dport);
	if (d->proto == IPPROTO_UDP) {
		put16(l4 + 4, 8 + d->n_payload);
	} else {
		n = 20;
		put32(l4 + 4, d->seq);
		put32(l4 + 8, d->ack);
		l4[13] = d->flags;
		put16(l4 + 14, d->window);
		put16(l4 + 18, 0);
		if (d->scale != 0) {
			const uint8_t option[4] = { 3, 3, d->scale, 1 };

			memcpy(l4 + 20, option, 4);
			n += 4;
		}
		l4[12] = (uint8_t)(n / 4 << 4);
	}
	for (uint32_t i = 0; i < d->n_payload; i++)
		l4[n + i] = (uint8_t)packets_below(p, 256);
	return n + d->n_payload;
}

static uint32_t put_ip(struct packets *p, const struct draft *d, uint8_t *ip)
{
	const uint32_t n_l4 = put_l4(p, d, ip + 20);

	memset(ip, 0, 20);
	ip[0] = 0x45;
	ip[1] = packets_percent(p, 10) ? 0xb8 : 0;
	put16(ip + 2, 20 + n_l4);
	put16(ip + 4, packets_below(p, 65536));
	ip[6] = packets_percent(p, 40) ? 0x40 : 0;
	ip[8] = packets_percent(p, 4) ? 2 : 64;
	ip[9] = d->proto;
	put32(ip + 12, d->src);
	put32(ip + 16, d->dst);
	sum_l4(ip, n_l4, false);
	sum_ip(ip);
	return 20 + n_l4;
}

static uint32_t any_payload(struct packets *p)
{
	const uint32_t way = packets_below(p, 20);

	return way < 5   ? 0 :
	       way < 18  ? packets_below(p, 64) :
	       way == 18 ? 500 + packets_below(p, 100) :
			   1360 + packets_below(p, 120);
}

/* What the next segment of a connection is like; side: its sender's. */
static void next_segment(struct packets *p, uint32_t side,
			 struct packets_end ends[2], struct draft *d)
{
	struct packets_end *from = &ends[side], *to = &ends[side ^ 1];
	const uint32_t window = (uint32_t)to->largest << to->shift;
	static const uint8_t odd_flags[] = { 0,        FIN | ACK, FIN,
					     RST,      RST | ACK, SYN,
					     SYN | ACK };
	uint32_t way;

	d->seq = from->next;
	d->ack = to->next;
	d->flags = ACK | (packets_percent(p, 20) ? 8 : 0);
	d->n_payload = any_payload(p);
	if (packets_percent(p, 10))
		from->window = (uint16_t)packets_below(p, 4) * 21845;
	d->window = from->window;
	way = packets_below(p, 60);
	if (way < 4) /* at an edge of the window... */
		d->seq = to->acked + window + packets_below(p, 3) - 1;
	else if (way < 5) /* ...or of what may be repeated */
		d->seq = to->acked - (window > 65535 ? window : 65535) -
			 d->n_payload + packets_below(p, 3) - 1;
	else if (way < 6)
		d->seq -= packets_below(p, 2000);
	else if (way == 6)
		d->seq = packets_below(p, UINT32_MAX);
	else if (way == 7)
		d->ack += packets_below(p, 3) - 1;
	else if (way == 8)
		d->ack = packets_below(p, UINT32_MAX);
	else if (way == 9)
		d->flags = odd_flags[packets_below(p, sizeof(odd_flags))];
	else
		from->next += d->n_payload;
	if (way > 9)
		from->acked = d->ack;
	if (way > 9 && from->window > from->largest)
		from->largest = from->window;
}

/* Of a handshake, in order; or of an open connection. */
static void tcp(struct packets *p, const struct packets_flow *flow,
		uint32_t *side, struct draft *d)
{
	struct packets_conn *conn =
		&p->conns[flow->host][flow->port][flow->peer];
	struct packets_end *ends = conn->ends;
	uint8_t *stage = &conn->stage;

	d->proto = IPPROTO_TCP;
	if (packets_percent(p, 3))
		*stage = 0;
	if (*stage >= 3 || packets_percent(p, 2)) {
		next_segment(p, *side, ends, d);
		return;
	}
	*side = *stage & 1;
	if (*side == 1 && p->outside[1][flow->host][flow->port].port == 0)
		return;
	if (*stage < 2) {
		ends[*side].next = packets_below(p, UINT32_MAX);
		ends[*side].window = ends[*side].largest =
			(uint16_t)(1 + packets_below(p, 65535));
		ends[*side].shift = 0;
		d->scale = packets_percent(p, 60) ?
				   (uint8_t)(1 + packets_below(p, 8)) :
				   0;
		/* Both, or neither. */
		if (*side == 1 && d->scale != 0 && ends[0].shift != 0)
			ends[1].shift = d->scale;
		else if (*side == 0)
			ends[0].shift = d->scale;
		else
			ends[0].shift = 0;
	}
	d->seq = ends[*side].next;
	d->ack = ends[*side].acked = ends[*side ^ 1].next;
	d->window = ends[*side].window;
	d->flags = *stage == 0 ? SYN : *stage == 1 ? SYN | ACK : ACK;
	if (*stage < 2)
		ends[*side].next++;
	++*stage;
}

/* Most sockets have one peer. The first one has as many as there are. */
static struct packets_flow any_flow(struct packets *p)
{
	const bool is_busy = packets_percent(p, 40);

	return (struct packets_flow){
		.host = is_busy ? 0 : packets_below(p, PACKETS_HOSTS),
		.port = is_busy ? 0 : packets_below(p, PACKETS_PORTS),
		.peer = !is_busy && packets_percent(p, 85) ?
				0 :
				packets_below(p, PACKETS_PEERS),
		.is_tcp = packets_percent(p, 60),
	};
}

/* A packet of a flow; false: it has no external end yet. */
static bool draft(struct packets *p, uint32_t *side, struct draft *d)
{
	struct packets_flow *flow = &p->flow;
	const bool is_hairpin = packets_percent(p, 3);
	uint32_t to_h, to_port;

	if (!packets_percent(p, 80)) /* or another one of the same flow */
		*flow = any_flow(p);
	*d = (struct draft){ .proto = IPPROTO_UDP };
	*side = packets_below(p, 2);
	if (flow->is_tcp)
		tcp(p, flow, side, d);
	else
		d->n_payload = any_payload(p);
	d->src = hosts[flow->host];
	d->sport = ports[flow->port];
	d->dst = peers[flow->peer].addr;
	d->dport = peers[flow->peer].port;
	if (*side == 0 && !is_hairpin)
		return true;
	to_h = is_hairpin ? packets_below(p, PACKETS_HOSTS) : flow->host;
	to_port = is_hairpin ? packets_below(p, PACKETS_PORTS) : flow->port;
	if (*side == 1) {
		d->src = d->dst;
		d->sport = packets_percent(p, 3) ? 99 : d->dport;
	}
	d->dst = p->outside[flow->is_tcp][to_h][to_port].addr;
	d->dport = p->outside[flow->is_tcp][to_h][to_port].port;
	return d->dport != 0;
}

static uint32_t ping(struct packets *p, uint32_t *side, uint8_t *ip)
{
	const struct draft d = { .src = hosts[packets_below(p, PACKETS_HOSTS)],
				 .dst = peers[0].addr,
				 .proto = IPPROTO_UDP };
	uint16_t sum;

	*side = 0;
	(void)put_ip(p, &d, ip);
	ip[9] = IPPROTO_ICMP;
	put16(ip + 20, 0x0800);
	put32(ip + 24, 7 << 16 | 1);
	put16(ip + 22, 0);
	sum = (uint16_t)~sum_of(ip + 20, 8, 0);
	memcpy(ip + 22, &sum, 2);
	sum_ip(ip);
	return 28;
}

/* An ICMP error about what came out last. */
static uint32_t complain(struct packets *p, uint32_t *side, uint8_t *ip)
{
	static const uint16_t types[] = { 0x0301, 0x0303, 0x0304, 0x0b00 };
	enum { QUOTED = 48 };
	struct draft d = { .proto = IPPROTO_UDP };
	const uint8_t *quoted;
	uint16_t sum;

	*side = packets_below(p, 2);
	quoted = p->quoted[*side];
	if (quoted[0] != 0x45)
		return 0;
	d.src = get32(quoted + 16);
	d.dst = get32(quoted + 12);
	d.n_payload = QUOTED;
	(void)put_ip(p, &d, ip);
	ip[9] = IPPROTO_ICMP;
	put16(ip + 20, types[packets_below(p, 4)]);
	put16(ip + 22, 0);
	put32(ip + 24, 1200);
	memcpy(ip + 28, quoted, QUOTED);
	sum = (uint16_t)~sum_of(ip + 20, 8 + QUOTED, 0);
	memcpy(ip + 22, &sum, 2);
	sum_ip(ip);
	return 28 + QUOTED;
}

/* No-operations, or something stranger. */
static uint32_t add_options(struct packets *p, uint8_t *ip, uint32_t n)
{
	memmove(ip + 24, ip + 20, n - 20);
	memset(ip + 20, packets_percent(p, 50) ? 1 : 0x94, 4);
	ip[21] = packets_percent(p, 50) ? 4 : ip[21];
	ip[0]++;
	put16(ip + 2, n + 4);
	sum_ip(ip);
	return n + 4;
}

/* A sum of UDP that is 0 once it is translated. */
static void make_vanish(const struct packets *p, uint32_t side, uint8_t *ip)
{
	const struct packets_flow *flow = &p->flow;
	const uint32_t addrs[2] = {
		hosts[flow->host],
		p->outside[0][flow->host][flow->port].addr,
	};
	const uint32_t both[2] = { ports[flow->port],
				   p->outside[0][flow->host][flow->port].port };
	const uint32_t old = ~addrs[side], new = addrs[side ^ 1];
	uint32_t sum = (old >> 16) + (uint16_t)old + (uint16_t)~both[side] +
		       (new >> 16) + (uint16_t) new + both[side ^ 1];

	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 26, (sum & 0xffff) + (sum >> 16));
}

/* What may be wrong or unusual about a packet. Returns its length. */
static uint32_t twist_ip(struct packets *p, uint32_t side, uint8_t *ip,
			 uint32_t n)
{
	const uint32_t n_l4 = n - 20;

	switch (packets_below(p, 14)) {
	case 0:
		ip[8] = (uint8_t)packets_below(p, 2);
		break;
	case 1:
		ip[10] ^= (uint8_t)(1 + packets_below(p, 255));
		return n;
	case 2: /* a sum may be anything */
		ip[20 + (ip[9] == IPPROTO_UDP ? 6 : 16)] ^= 1;
		break;
	case 3:
		if (ip[9] == IPPROTO_UDP && packets_percent(p, 50))
			put16(ip + 26, 0);
		else if (ip[9] == IPPROTO_UDP)
			make_vanish(p, side, ip);
		break;
	case 4:
		if (ip[9] != IPPROTO_ICMP)
			sum_l4(ip, n_l4, true);
		break;
	case 5:
		return add_options(p, ip, n);
	case 6: /* a fragment */
		put16(ip + 6, packets_percent(p, 50) ?
				      0x2000 :
				      packets_below(p, 0x4000));
		break;
	case 7:
		put16(ip + 2, get16(ip + 2) + packets_below(p, 5) - 2);
		break;
	case 8:
		put16(ip + 24, get16(ip + 24) + packets_below(p, 5) - 2);
		break;
	case 9: /* the length of TCP's header */
		ip[32] = (uint8_t)(packets_below(p, 16) << 4);
		break;
	case 10:
		ip[packets_below(p, 20)] = (uint8_t)packets_below(p, 256);
		break;
	case 11: /* another address, often one that nobody has */
		put32(ip + 12 + 4 * packets_below(p, 2),
		      packets_percent(p, 50) ? 0xe0000001 :
					       packets_below(p, UINT32_MAX));
		break;
	case 12:
		ip[33] = (uint8_t)packets_below(p, 256);
		break;
	default:
		put16(ip + 6, 0x8000); /* reserved */
	}
	sum_ip(ip);
	return n;
}

static uint32_t twist_frame(struct packets *p, uint8_t *bytes, uint32_t n)
{
	switch (packets_below(p, 6)) {
	case 0:
		memset(bytes, 0xff, 6);
		return n;
	case 1:
		bytes[3] ^= 1;
		return n;
	case 2:
		return packets_below(p, n + 1);
	case 3: /* bytes behind it */
		memset(bytes + n, 0x5a, 8);
		return n + 1 + packets_below(p, 8);
	case 4: /* another tag: priority, number, or type */
		bytes[14] ^= (uint8_t)(1 << packets_below(p, 8));
		return n;
	default:
		bytes[12 + packets_below(p, 6)] ^= 1;
		return n;
	}
}

uint32_t packets_next(struct packets *p, uint32_t *ret_side, uint8_t *bytes)
{
	uint8_t ip[PACKETS_MAX];
	struct draft d;
	uint32_t n = 0, at;

	while (n == 0) {
		const uint32_t way = packets_below(p, 40);

		if (way == 0)
			n = complain(p, ret_side, ip);
		else if (way == 1)
			n = ping(p, ret_side, ip);
		else if (draft(p, ret_side, &d))
			n = put_ip(p, &d, ip);
	}
	if (packets_percent(p, 10))
		n = twist_ip(p, *ret_side, ip, n);
	at = put_link(p, *ret_side, 0x0800, bytes);
	memcpy(bytes + at, ip, n);
	n += at;
	if (n < 60 && packets_percent(p, 60)) {
		memset(bytes + n, 0, 60 - n);
		n = 60;
	}
	return packets_percent(p, 3) ? twist_frame(p, bytes, n) : n;
}

uint32_t packets_ip_at(const struct packets *p, uint32_t side,
		       const uint8_t *bytes, uint32_t n)
{
	const uint32_t at = p->vlans[side] != 0 ? 18 : 14;

	return n >= at + 20 && get16(bytes + at - 2) == 0x0800 ? at : 0;
}

bool packets_is_tcp(const struct packets *p, uint32_t side,
		    const uint8_t *bytes, uint32_t n)
{
	const uint32_t at = packets_ip_at(p, side, bytes, n);

	return at != 0 && bytes[at + 9] == IPPROTO_TCP;
}

void packets_see(struct packets *p, uint32_t side, const uint8_t *bytes,
		 uint32_t n)
{
	const uint32_t at = packets_ip_at(p, side, bytes, n);
	const uint8_t *ip = bytes + at;

	if (at == 0 || n < at + 28)
		return;
	memset(p->quoted[side], 0, sizeof(p->quoted[side]));
	memcpy(p->quoted[side], ip,
	       n - at < sizeof(p->quoted[side]) ? n - at :
						  sizeof(p->quoted[side]));
}

void packets_map(struct packets *p, uint32_t proto, uint32_t inside,
		 uint32_t inside_port, uint32_t outside, uint32_t outside_port)
{
	const bool is_all = proto == 0;

	for (uint32_t h = 0; h < PACKETS_HOSTS; h++)
		for (uint32_t i = 0; i < PACKETS_PORTS; i++) {
			if (hosts[h] != inside ||
			    (!is_all && ports[i] != inside_port))
				continue;
			for (uint32_t k = 0; k < PACKETS_PROTOS; k++) {
				if (!is_all && k != (proto == IPPROTO_TCP))
					continue;
				p->outside[k][h][i].addr = outside;
				p->outside[k][h][i].port =
					is_all ? ports[i] :
						 (uint16_t)outside_port;
			}
		}
}

uint32_t packets_arp(const struct packets *p, uint32_t side, uint32_t addr,
		     uint32_t generation, uint8_t *bytes)
{
	const uint32_t at = put_link(p, side, 0x0806, bytes);
	const uint8_t head[8] = { 0, 1, 8, 0, 6, 4, 0, 2 };
	uint8_t *arp = bytes + at;

	memset(arp, 0, 28);
	memcpy(arp, head, 8);
	arp[8] = 2;
	arp[9] = (uint8_t)generation;
	put32(arp + 10, addr);
	put32(arp + 14, addr);
	memcpy(arp + 18, bytes, 6);
	memcpy(bytes + 6, arp + 8, 6);
	put32(arp + 24, side == 0 ? 0x0a000001 : 0xc0000201);
	return at + 28;
}

bool packets_is_asked(const struct packets *p, uint32_t side,
		      const uint8_t *bytes, uint32_t n, uint32_t *ret_addr)
{
	const uint32_t at = p->vlans[side] != 0 ? 18 : 14;

	if (n < at + 28 || get16(bytes + at - 2) != 0x0806 ||
	    get16(bytes + at + 6) != 1 ||
	    get32(bytes + at + 14) == get32(bytes + at + 24))
		return false;
	*ret_addr = get32(bytes + at + 24);
	return true;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decide where a packet goes, and how it is translated: from inside, from
 * outside, and from inside to one of our external addresses, which is both
 * (hairpinning).
 */
#include "decide.h"

#include "header.h"
#include "icmp.h"
#include "kernel.h"
#include "mapping/window.h"
#include "support/capture.h"
#include "syn.h"
#include "tcp_option.h"

static struct nat_tuple tuple_of(uint32_t addr, uint16_t port, uint8_t proto)
{
	return (struct nat_tuple){ .addr = addr, .port = port, .proto = proto };
}

static bool is_syn(const struct nat_packet *packet)
{
	return (packet->tcp_flags & (MR_TCP_SYN | MR_TCP_ACK | MR_TCP_RST)) ==
	       MR_TCP_SYN;
}

/* What the TCP state depends on. Empty for other protocols. */
static struct nat_segment segment_of(const struct nat_packet *packet)
{
	enum { SCALE = 3, SCALE_BYTES = 3 }; /* RFC 7323 2.2 */
	const struct mr_tcp *tcp = (const void *)packet->l4;
	struct nat_segment segment = { 0 };
	const uint8_t *option;

	if (packet->proto != IPPROTO_TCP)
		return segment;
	segment = nat_segment_of(tcp, packet->total_bytes - packet->ip_bytes);
	if (tcp->flags & MR_TCP_SYN) {
		segment.n_bytes++;
		option = nat_tcp_option(tcp, (tcp->offset >> 4) * 4u, SCALE,
					SCALE_BYTES);
		segment.shift =
			option != NULL ? nat_window_shift(option[2]) : 0;
	}
	return segment;
}

static bool is_echo(const struct nat_packet *packet)
{
	return packet->proto == IPPROTO_ICMP &&
	       ((const struct mr_icmp *)(const void *)packet->l4)->type == 8;
}

/* Whether a packet from inside without a mapping may create one. */
static enum nat_drop may_open(const struct nat_path *path,
			      const struct nat_packet *packet)
{
	switch (packet->proto) {
	case IPPROTO_TCP:
		/* With FIN or RST it does not begin a connection. */
		return (packet->tcp_flags &
			(MR_TCP_SYN | MR_TCP_FIN | MR_TCP_RST)) == MR_TCP_SYN ?
			       NAT_OK :
			       NAT_DROP_TCP_STATE;
	case IPPROTO_UDP:
		return NAT_OK;
	case IPPROTO_ICMP:
		return nat_icmp_is_query(((const struct mr_icmp *)(const void *)
						  packet->l4)
						 ->type) ?
			       NAT_OK :
			       NAT_DROP_NO_MAPPING;
	default:
		return path->config->passes_other_protocols ? NAT_OK :
							      NAT_DROP_PROTOCOL;
	}
}

static void note_decision(const struct nat_path *path,
			  const struct nat_packet *packet, const char *text)
{
	struct recorder *recorder = capture_recorder(path->recorder);

	if (__builtin_expect(recorder != NULL, 0))
		recorder_note(recorder, packet->frames, text);
}

/* The mapping of the packet's source, created if allowed. */
static enum nat_drop open_source(struct nat_path *path,
				 const struct nat_packet *packet,
				 uint32_t *ret_id)
{
	const struct nat_tuple inside =
		tuple_of(packet->ip->src, packet->sport, packet->proto);
	enum nat_drop drop;

	nat_maps_find_out(path->maps, &inside, 1, ret_id);
	if (*ret_id != MR_FLOW_NONE) {
		note_decision(path, packet, "mapping found");
		return NAT_OK;
	}
	drop = may_open(path, packet);
	if (drop != NAT_OK)
		return drop;
	drop = nat_maps_open(path->maps, &inside, path->now_s, ret_id);
	if (drop == NAT_OK)
		note_decision(path, packet, "mapping created");
	return drop;
}

static struct nat_end remote_of(const struct nat_packet *packet, uint32_t addr,
				uint16_t port)
{
	return (struct nat_end){ .addr = addr,
				 .port = nat_has_ports(packet->proto) ? port :
									0 };
}

/*
 * The mapping of an external address and port. An ICMP query has one id for
 * both ends, so from inside it reaches only hosts whose ids are not translated,
 * or answers that have ours.
 */
static uint32_t find_target(const struct nat_path *path,
			    const struct nat_packet *packet,
			    const struct nat_map *source)
{
	const struct nat_tuple outside =
		tuple_of(packet->ip->dst, packet->dport, packet->proto);
	const struct nat_map *target;
	uint32_t id;

	nat_maps_find_in(path->maps, &outside, 1, &id);
	if (id == MR_FLOW_NONE || packet->proto != IPPROTO_ICMP ||
	    source == NULL)
		return id;
	target = nat_maps_at(path->maps, id);
	return (target->flags | source->flags) & NAT_MAP_ADDRESS ? id :
								   MR_FLOW_NONE;
}

/* Whether another worker may have the other end. None knows a translated id. */
static bool is_elsewhere(const struct nat_path *path,
			 const struct nat_packet *packet,
			 const struct nat_map *source, uint32_t id)
{
	if (id != MR_FLOW_NONE)
		return nat_maps_is_elsewhere(path->maps, id);
	return packet->proto != IPPROTO_ICMP || source->flags & NAT_MAP_ADDRESS;
}

static enum nat_drop decide_hairpin(struct nat_path *path,
				    const struct nat_packet *packet,
				    const struct nat_map *source,
				    struct nat_verdict *verdict)
{
	const struct nat_segment segment = segment_of(packet);
	struct nat_map *target;
	enum nat_drop drop;
	uint32_t id;

	if (!path->config->hairpins)
		return NAT_DROP_HAIRPIN_OFF;
	id = find_target(path, packet, source);
	if (path->has_peers && is_elsewhere(path, packet, source, id)) {
		verdict->is_looped = true;
		return NAT_OK;
	}
	if (id == MR_FLOW_NONE)
		return NAT_DROP_NO_MAPPING;
	drop = nat_maps_in(path->maps, id,
			   remote_of(packet, verdict->src, verdict->sport),
			   &segment, path->now_s);
	target = nat_maps_at(path->maps, id);
	target->n_in += drop == NAT_OK;
	verdict->to = NAT_INSIDE;
	verdict->dst = target->inside.addr;
	if (packet->proto != IPPROTO_ICMP)
		verdict->dport = nat_map_port(target, target->inside.port,
					      packet->dport);
	else if ((target->flags & NAT_MAP_ADDRESS) == 0)
		verdict->sport = verdict->dport = target->inside.port;
	return drop;
}

/* Forward it untranslated to the other side: RFC 6888 REQ-6. */
static enum nat_drop pass_untranslated(const struct nat_packet *packet,
				       struct nat_verdict *verdict)
{
	*verdict = (struct nat_verdict){ .src = packet->ip->src,
					 .dst = packet->ip->dst,
					 .sport = packet->sport,
					 .dport = packet->dport,
					 .to = packet->from == NAT_INSIDE ?
						       NAT_OUTSIDE :
						       NAT_INSIDE,
					 .is_excluded = true };
	return packet->ip->ttl > 1 ? NAT_OK : NAT_DROP_TTL;
}

static enum nat_drop decide_out(struct nat_path *path,
				const struct nat_packet *packet,
				struct nat_verdict *verdict)
{
	const struct nat_addrs *addrs = &path->addrs;
	const uint32_t dst = packet->ip->dst;
	const uint32_t is = nat_addrs_of(addrs, dst);
	const struct nat_segment segment = segment_of(packet);
	struct nat_map *map;
	enum nat_drop drop;
	uint32_t id;

	if (is & NAT_ADDR_OWN << NAT_INSIDE ||
	    nat_is_for_kernel(path, packet) ||
	    (is_syn(packet) && nat_addrs_is_ours_alone(addrs, dst)) ||
	    (is_echo(packet) && is & NAT_ADDR_OWN << NAT_OUTSIDE &&
	     find_target(path, packet, NULL) == MR_FLOW_NONE))
		return NAT_TAKEN;
	if (nat_addrs_is_excluded(addrs, dst, packet->proto, packet->dport))
		return nat_addrs_of(addrs, packet->ip->src) &
				       NAT_ADDR_SUBSCRIBER ?
			       pass_untranslated(packet, verdict) :
			       NAT_DROP_SPOOFED;
	if ((is & (NAT_ADDR_EXTERNAL | NAT_ADDR_INSIDE)) == NAT_ADDR_INSIDE)
		return NAT_DROP_NO_ROUTE; /* it gets there without us */
	if (packet->ip->ttl <= 1)
		return NAT_DROP_TTL;
	if (nat_addrs_is_martian(addrs, NAT_OUTSIDE, dst))
		return NAT_DROP_MARTIAN;
	drop = open_source(path, packet, &id);
	if (drop != NAT_OK)
		return drop;
	map = nat_maps_at(path->maps, id);
	*verdict = (struct nat_verdict){
		.src = map->outside_addr,
		.dst = dst,
		.sport = nat_map_port(map, map->outside_port, packet->sport),
		.dport = packet->dport,
		.to = NAT_OUTSIDE
	};
	if (packet->proto == IPPROTO_ICMP)
		verdict->dport = verdict->sport;
	drop = nat_maps_out(path->maps, id,
			    remote_of(packet, dst, packet->dport), &segment,
			    path->now_s);
	map->n_out += drop == NAT_OK;
	if (drop == NAT_OK && is & NAT_ADDR_EXTERNAL)
		drop = decide_hairpin(path, packet, map, verdict);
	if (drop == NAT_OK && is_syn(packet))
		nat_syn_out(path, verdict);
	return drop;
}

/* Unsolicited, or from where nothing is translated. */
static enum nat_drop decide_unmapped(const struct nat_path *path,
				     const struct nat_packet *packet,
				     struct nat_verdict *verdict)
{
	const struct nat_addrs *addrs = &path->addrs;
	const uint32_t is = nat_addrs_of(addrs, packet->ip->dst);
	const bool is_own = is & NAT_ADDR_OWN << NAT_OUTSIDE;

	/* No inside host can use an address of ours alone, so there is no need
	 * to wait. */
	if (is_own && (is_echo(packet) ||
		       (nat_addrs_is_ours_alone(addrs, packet->ip->dst) &&
			is_syn(packet))))
		return NAT_TAKEN;
	if (is & NAT_ADDR_EXTERNAL)
		return is_syn(packet) ? NAT_DROP_UNSOLICITED_SYN :
					NAT_DROP_NO_MAPPING;
	if (is & NAT_ADDR_SUBSCRIBER &&
	    nat_addrs_is_excluded(addrs, packet->ip->src, packet->proto,
				  packet->sport) &&
	    (is & NAT_ADDR_OWN << NAT_INSIDE) == 0)
		return pass_untranslated(packet, verdict);
	return NAT_DROP_NO_MAPPING;
}

static enum nat_drop decide_in(struct nat_path *path,
			       const struct nat_packet *packet,
			       struct nat_verdict *verdict)
{
	const uint32_t id = find_target(path, packet, NULL);
	const struct nat_segment segment = segment_of(packet);
	enum nat_drop drop;
	struct nat_map *map;

	if (id == MR_FLOW_NONE)
		return decide_unmapped(path, packet, verdict);
	note_decision(path, packet, "mapping found");
	map = nat_maps_at(path->maps, id);
	/* A ping is for us, unless the whole address belongs to a host. */
	if (is_echo(packet) && (map->flags & NAT_MAP_STATIC) == 0 &&
	    nat_addrs_of(&path->addrs, packet->ip->dst) &
		    NAT_ADDR_OWN << NAT_OUTSIDE)
		return NAT_TAKEN;
	if (packet->ip->ttl <= 1)
		return NAT_DROP_TTL;
	*verdict = (struct nat_verdict){
		.src = packet->ip->src,
		.dst = map->inside.addr,
		.sport = packet->sport,
		.dport = nat_map_port(map, map->inside.port, packet->dport),
		.to = NAT_INSIDE
	};
	if (packet->proto == IPPROTO_ICMP)
		verdict->sport = verdict->dport;
	drop = nat_maps_in(path->maps, id,
			   remote_of(packet, packet->ip->src, packet->sport),
			   &segment, path->now_s);
	map->n_in += drop == NAT_OK;
	return drop;
}

static enum nat_drop decide_plain(struct nat_path *path,
				  const struct nat_packet *packet,
				  struct nat_verdict *ret_verdict)
{
	return packet->from == NAT_INSIDE ?
		       decide_out(path, packet, ret_verdict) :
		       decide_in(path, packet, ret_verdict);
}

enum nat_drop nat_decide(struct nat_path *path, struct nat_packet *packet,
			 struct nat_verdict *ret_verdict)
{
	const struct mr_icmp *icmp = (const void *)packet->l4;

	if (packet->proto != IPPROTO_ICMP || nat_icmp_is_query(icmp->type) ||
	    nat_icmp_is_reply(icmp->type))
		return decide_plain(path, packet, ret_verdict);
	if (nat_icmp_is_error(icmp->type))
		return nat_icmp_translate(path, packet, ret_verdict);
	return NAT_DROP_ICMP_TYPE;
}

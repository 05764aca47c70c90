/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops: which neighbours to query for their MAC addresses, how often, and
 * which frames wait for the answers. ARP: what we answer, learn and announce.
 * Sources: RFC 826, RFC 5227, RFC 4861 7.3 for the states.
 */
#include <stdlib.h>

#include "core.h"

enum {
	MAX_WATCHED = 64, /* neighbours being queried... */
	MAX_SHARE = 8,    /* ...because of one host */
	MAX_PROBES = 32,  /* never displaced by queries for new neighbours */
	MAX_WAITING = 16, /* frames per neighbour */
	MAX_WAITING_ALL = 256,
	MAX_TRIES = 3,
	HOPELESS_TRIES = 2,   /* a live host answers the first one */
	RETRY_S = 1,          /* after it failed */
	ANNOUNCE_BURST = 32,  /* per tick */
	MAX_ANNOUNCED = 1024, /* external addresses */
};
static const uint64_t retry_ns = 1000000000;
static const uint64_t grace_ns = 10000000; /* a live host has answered */

/* Why to query a neighbour. */
enum want {
	WANT_NEW,
	WANT_PROBE, /* stale, but in use */
	WANT_RETRY, /* failed before */
};

/* A worker's query for a neighbour. */
struct watch {
	uint32_t slot, addr;
	uint8_t side, n_tries;
	uint8_t n_share; /* watches of the same asker, including itself */
	bool is_gateway; /* shared by all: never displaced */
	bool is_probe;   /* still in use: frames do not wait */
	uint64_t asker;  /* asker_of(); 0: for the gateway */
	uint64_t begin_ns;
	uint64_t next_ns;
	struct nat_fifo waiting;
};

struct nat_resolver {
	struct watch watches[MAX_WATCHED];
	uint32_t n;
	uint32_t n_waiting;
};

struct nat_resolver *nat_resolver_create(void)
{
	return calloc(1, sizeof(struct nat_resolver));
}

void nat_resolver_destroy(struct nat_resolver *resolver)
{
	free(resolver);
}

uint32_t nat_next_hop(const struct nat_path *path, enum nat_side side,
		      uint32_t dst)
{
	const struct nat_link *link = &path->links[side];

	for (uint32_t i = 0; i < link->n_nets; i++)
		if ((dst & link->nets[i].mask) == link->nets[i].addr)
			return dst;
	return link->gateway;
}

/* An ARP packet to mac (0: all). */
static void send_arp(struct nat_path *path, enum nat_side side, uint16_t op,
		     uint64_t to_mac, uint32_t sender, uint32_t target)
{
	const struct nat_link *link = &path->links[side];
	struct nat_packet packet;
	struct mr_arp arp = { .hardware = htons(1),
			      .protocol = htons(MR_ETHER_IPV4),
			      .hardware_bytes = 6,
			      .protocol_bytes = 4,
			      .op = htons(op),
			      .sender = sender,
			      .target = target };

	if (!nat_make(path, &packet, sizeof(arp)))
		return;
	memcpy(arp.sender_mac, &link->mac, 6);
	memcpy(arp.target_mac, &to_mac, 6);
	memcpy(mr_frame_data(path->base, packet.frames) + packet.l2_bytes, &arp,
	       sizeof(arp));
	nat_send_as(path, &packet, side, MR_ETHER_ARP,
		    to_mac != 0 ? to_mac : NAT_MAC_MASK);
}

/* Our address in the network of addr: RFC 826's target may not know others. */
static uint32_t own_beside(const struct nat_link *link, uint32_t addr)
{
	for (uint32_t i = 0; i < link->n_nets; i++)
		if ((addr & link->nets[i].mask) == link->nets[i].addr)
			return link->nets[i].own;
	return link->own;
}

static void ask(struct nat_path *path, struct watch *watch, uint64_t mac)
{
	watch->n_tries++;
	watch->next_ns = path->now_ns + retry_ns;
	send_arp(path, watch->side, MR_ARP_REQUEST, mac,
		 own_beside(&path->links[watch->side], watch->addr),
		 watch->addr);
}

static struct watch *find_watch(struct nat_resolver *resolver, uint32_t slot)
{
	for (uint32_t i = 0; i < resolver->n; i++)
		if (resolver->watches[i].slot == slot)
			return &resolver->watches[i];
	return NULL;
}

/* Adjust the watch count of an asker; by is 1 or -1. */
static uint8_t count_share(struct nat_resolver *resolver, uint64_t asker,
			   int by)
{
	uint8_t n = 0;

	for (uint32_t i = 0; i < resolver->n; i++) {
		struct watch *watch = &resolver->watches[i];

		if (watch->asker != asker)
			continue;
		watch->n_share = (uint8_t)(watch->n_share + by);
		n = watch->n_share;
	}
	return n > 0 ? n : 1;
}

/*
 * Who sent a packet: its source MAC address, because an IP address is easier to
 * forge; behind a router, the IP address. Never 0.
 */
static uint64_t asker_of(const struct nat_path *path,
			 const struct nat_packet *packet)
{
	const enum nat_side from = (enum nat_side)packet->from;
	const struct mr_eth *eth =
		(const void *)mr_frame_data(path->base, packet->frames);
	const uint32_t gateway = nat_neighbours_find(path->neighbours, from,
						     path->links[from].gateway);
	const uint64_t mac = nat_mac(eth->src);
	uint64_t router;

	if (packet->is_looped ||
	    (gateway != NAT_SLOT_NONE &&
	     nat_neighbours_look(path->neighbours, gateway, from,
				 path->links[from].gateway,
				 &router) != NAT_NEIGHBOUR_NONE &&
	     router == mac))
		return UINT64_C(1) << NAT_MAC_BITS | packet->ip->src;
	return UINT64_C(2) << NAT_MAC_BITS | mac;
}

/* End a watch: send or refuse its waiting frames. */
static void end_watch(struct nat_path *path, uint32_t i, bool is_known,
		      uint64_t mac)
{
	struct nat_resolver *resolver = path->resolver;
	struct nat_fifo waiting = resolver->watches[i].waiting;
	struct nat_packet packet;
	struct nat_verdict verdict;

	count_share(resolver, resolver->watches[i].asker, -1);
	resolver->watches[i] = resolver->watches[--resolver->n];
	while (nat_fifo_take(&path->hold, &waiting, &packet, &verdict)) {
		resolver->n_waiting--;
		counter_sub(&path->stats.held, 1);
		if (is_known)
			nat_forward_to(path, &packet, &verdict, mac);
		else
			nat_refuse(path, &packet, NAT_DROP_NEIGHBOUR);
	}
}

static void give_up(struct nat_path *path, uint32_t i,
		    enum nat_neighbour_state state)
{
	const struct watch *watch = &path->resolver->watches[i];

	nat_neighbours_move(path->neighbours, watch->slot, watch->side,
			    watch->addr, state, NAT_NEIGHBOUR_FAILED,
			    path->now_s);
	end_watch(path, i, false, 0);
}

/* It was queried by broadcast, and had time to answer. */
static bool is_hopeless(const struct nat_path *path, const struct watch *watch)
{
	return watch->n_tries >= HOPELESS_TRIES &&
	       path->now_ns + retry_ns - watch->next_ns >= grace_ns;
}

/* End a query early. A probed neighbour stays in use, and is probed again
 * later, unless the probe is hopeless. */
static void evict(struct nat_path *path, uint32_t i)
{
	const struct watch *watch = &path->resolver->watches[i];

	nat_neighbours_move(path->neighbours, watch->slot, watch->side,
			    watch->addr, NAT_NEIGHBOUR_PROBE,
			    is_hopeless(path, watch) ? NAT_NEIGHBOUR_FAILED :
						       NAT_NEIGHBOUR_REACHABLE,
			    path->now_s);
	give_up(path, i, NAT_NEIGHBOUR_INCOMPLETE);
}

/* Whether to displace a before b: its asker has more, or it is older. */
static bool is_before(const struct watch *a, const struct watch *b)
{
	return a->n_share != b->n_share ? a->n_share > b->n_share :
					  a->begin_ns < b->begin_ns;
}

/* Where another query goes: a displaced watch's place, or the end. */
struct room {
	uint64_t asker;
	uint32_t at;
};

static bool has_hope(const struct nat_path *path, const struct watch *watch)
{
	return watch->is_probe && !is_hopeless(path, watch);
}

/* Whether there are so few probes that none may be displaced. */
static bool spares_probes(const struct nat_path *path, enum want want)
{
	const struct nat_resolver *resolver = path->resolver;
	uint32_t n = 0;

	for (uint32_t i = 0; i < resolver->n; i++)
		n += has_hope(path, &resolver->watches[i]);
	return want != WANT_NEW || n <= MAX_PROBES;
}

/*
 * Find room for another query of an asker (0: for the gateway). An asker that
 * has used up its share loses its oldest hopeless query. If all watches are in
 * use, the asker with the most loses its oldest one; if each has one, as with
 * forged MAC addresses, only after its neighbour has had time to answer, or for
 * the gateway. A probe that may still succeed is displaced by a new query only
 * if there are more than MAX_PROBES; otherwise none would ever fail during a
 * flood. A retry displaces none of its asker's other queries, so that each
 * silent neighbour has its turn. False: no room.
 */
static bool find_room(const struct nat_path *path, enum want want,
		      struct room *room)
{
	const struct nat_resolver *resolver = path->resolver;
	const bool spares = room->asker != 0 && spares_probes(path, want);
	uint32_t n_own = 0, own = MAX_WATCHED, any = MAX_WATCHED;
	const struct watch *most;

	for (uint32_t i = 0; i < resolver->n; i++) {
		const struct watch *watch = &resolver->watches[i];
		const bool is_own = watch->asker == room->asker;

		if (watch->is_gateway)
			continue;
		n_own += is_own;
		if (spares && has_hope(path, watch))
			continue;
		if (any == MAX_WATCHED ||
		    is_before(watch, &resolver->watches[any]))
			any = i;
		if (is_own && is_hopeless(path, watch) &&
		    (own == MAX_WATCHED ||
		     is_before(watch, &resolver->watches[own])))
			own = i;
	}
	room->at = any;
	if (n_own >= MAX_SHARE) {
		room->at = want == WANT_RETRY ? MAX_WATCHED : own;
	} else if (resolver->n < MAX_WATCHED) {
		room->at = resolver->n;
	} else if (room->asker != 0 && any != MAX_WATCHED) {
		most = &resolver->watches[any];
		if (most->n_share <= n_own + 1 &&
		    path->now_ns - most->begin_ns < grace_ns)
			return false;
	}
	return room->at != MAX_WATCHED;
}

/* mac: of a probed neighbour, else NULL. */
static struct watch *add_watch(struct nat_path *path, uint32_t slot,
			       enum nat_side side, uint32_t addr,
			       const uint64_t *mac, const struct room *room)
{
	struct nat_resolver *resolver = path->resolver;
	struct watch *watch;

	if (room->at < resolver->n)
		evict(path, room->at);
	watch = &resolver->watches[resolver->n];
	*watch = (struct watch){
		.slot = slot,
		.addr = addr,
		.side = side,
		.n_share = count_share(resolver, room->asker, 1),
		.is_gateway = addr == path->links[side].gateway,
		.is_probe = mac != NULL,
		.asker = room->asker,
		.begin_ns = path->now_ns,
	};
	resolver->n++;
	nat_fifo_init(&watch->waiting);
	/* A neighbour in use is first queried by unicast, then by broadcast. */
	ask(path, watch, mac != NULL ? *mac : 0);
	return watch;
}

/* Whether there is room to query addr for this packet. */
static bool may_ask(const struct nat_path *path,
		    const struct nat_packet *packet,
		    const struct nat_verdict *verdict, uint32_t addr,
		    enum want want, struct room *ret)
{
	ret->asker = addr == path->links[verdict->to].gateway ?
			     0 :
			     asker_of(path, packet);
	return find_room(path, want, ret);
}

/*
 * Make room for another frame of n entries to wait in own: the neighbour with
 * the most waiting loses its oldest frame, or several, counting frames or
 * entries, whichever are too many. False: that would be this one.
 */
static bool make_room_to_wait(struct nat_path *path, const struct nat_fifo *own,
			      uint32_t n)
{
	struct nat_resolver *resolver = path->resolver;
	const struct nat_pending *hold = &path->hold;

	for (;;) {
		const bool has_entries =
			n <= hold->max_entries - hold->n_entries;
		struct nat_fifo *most = &resolver->watches[0].waiting;
		struct nat_packet packet;

		if (has_entries && resolver->n_waiting < MAX_WAITING_ALL)
			return true;
		for (uint32_t i = 1; i < resolver->n; i++) {
			struct nat_fifo *other = &resolver->watches[i].waiting;

			if (has_entries ? other->n > most->n :
					  other->n_entries > most->n_entries)
				most = other;
		}
		if ((has_entries ? most->n <= own->n + 1 :
				   most->n_entries <= own->n_entries + n) ||
		    !nat_fifo_take(&path->hold, most, &packet, NULL))
			return false;
		resolver->n_waiting--;
		counter_sub(&path->stats.held, 1);
		nat_drop(path, &packet, NAT_DROP_NEIGHBOUR_FULL);
	}
}

static enum nat_reason hold_for(struct nat_path *path, uint32_t slot,
				const struct nat_packet *packet,
				const struct nat_verdict *verdict,
				uint32_t addr, enum want want)
{
	struct nat_resolver *resolver = path->resolver;
	struct watch *watch = find_watch(resolver, slot);
	struct room room;

	if (watch == NULL) {
		if (!may_ask(path, packet, verdict, addr, want, &room))
			return NAT_DROP_NEIGHBOUR_FULL;
		watch = add_watch(path, slot, verdict->to, addr, NULL, &room);
	}
	if (watch->waiting.n == MAX_WAITING ||
	    !make_room_to_wait(path, &watch->waiting, packet->n) ||
	    !nat_fifo_put(&path->hold, &watch->waiting, packet, verdict))
		return NAT_DROP_NEIGHBOUR_FULL;
	resolver->n_waiting++;
	counter_add(&path->stats.held, 1);
	return NAT_TAKEN;
}

enum nat_reason nat_resolve(struct nat_path *path, struct nat_packet *packet,
			    const struct nat_verdict *verdict,
			    uint64_t *ret_mac)
{
	struct nat_neighbours *neighbours = path->neighbours;
	const uint32_t addr = nat_next_hop(path, verdict->to, verdict->dst);
	struct room room;
	uint32_t slot;

	if (addr == 0)
		return NAT_DROP_NO_ROUTE;
	slot = nat_neighbours_find(neighbours, verdict->to, addr);
	/* Without permission to query, take no slot either. */
	if (slot == NAT_SLOT_NONE &&
	    may_ask(path, packet, verdict, addr, WANT_NEW, &room))
		slot = nat_neighbours_add(neighbours, verdict->to, addr, true,
					  path->now_s);
	if (slot == NAT_SLOT_NONE)
		return NAT_DROP_NEIGHBOUR_FULL;
	if (nat_neighbours_is_fresh(neighbours, slot, verdict->to, addr,
				    path->now_s, ret_mac))
		return NAT_OK;
	/* First check that it may be queried, then change its state, which
	 * another worker may do first; only then displace another query. */
	switch (nat_neighbours_look(neighbours, slot, verdict->to, addr,
				    ret_mac)) {
	case NAT_NEIGHBOUR_REACHABLE: /* stale: query again, use meanwhile */
		if (may_ask(path, packet, verdict, addr, WANT_PROBE, &room) &&
		    nat_neighbours_move(neighbours, slot, verdict->to, addr,
					NAT_NEIGHBOUR_REACHABLE,
					NAT_NEIGHBOUR_PROBE, path->now_s))
			add_watch(path, slot, verdict->to, addr, ret_mac,
				  &room);
		return NAT_OK;
	case NAT_NEIGHBOUR_PROBE:
		return NAT_OK;
	case NAT_NEIGHBOUR_FAILED:
		if (nat_neighbour_age_s(&neighbours->slots[slot], path->now_s) <
			    RETRY_S ||
		    !may_ask(path, packet, verdict, addr, WANT_RETRY, &room) ||
		    !nat_neighbours_move(neighbours, slot, verdict->to, addr,
					 NAT_NEIGHBOUR_FAILED,
					 NAT_NEIGHBOUR_INCOMPLETE, path->now_s))
			return NAT_DROP_NEIGHBOUR;
		return hold_for(path, slot, packet, verdict, addr, WANT_RETRY);
	default:
		return hold_for(path, slot, packet, verdict, addr, WANT_NEW);
	}
}

void nat_resolver_release(struct nat_path *path)
{
	struct nat_resolver *resolver = path->resolver;

	for (uint32_t i = 0; i < resolver->n;) {
		const struct watch *watch = &resolver->watches[i];
		uint64_t mac;

		if (nat_neighbours_is_fresh(path->neighbours, watch->slot,
					    watch->side, watch->addr,
					    path->now_s, &mac))
			end_watch(path, i, true, mac);
		else
			i++;
	}
}

void nat_resolver_tick(struct nat_path *path)
{
	struct nat_resolver *resolver = path->resolver;

	if (resolver->n == 0)
		return;
	nat_resolver_release(path);
	for (uint32_t i = 0; i < resolver->n; i++) {
		struct watch *watch = &resolver->watches[i];
		enum nat_neighbour_state state;
		uint64_t mac = 0;

		if (path->now_ns < watch->next_ns)
			continue;
		state = nat_neighbours_look(path->neighbours, watch->slot,
					    watch->side, watch->addr, &mac);
		if (watch->n_tries < MAX_TRIES && state != NAT_NEIGHBOUR_NONE)
			ask(path, watch, 0);
		else
			give_up(path, i--, state); /* the last one is here */
	}
}

/* Whether we answer for addr on that side. */
static bool is_ours(const struct nat_path *path, enum nat_side side,
		    uint32_t addr)
{
	return nat_addrs_of(&path->addrs, addr) &
	       (side == NAT_INSIDE ? NAT_ADDR_OWN << side : NAT_ADDR_EXTERNAL);
}

/* Whether an ARP packet is credible. */
static bool is_plausible(const struct nat_path *path, enum nat_side side,
			 const struct mr_eth *eth, const struct mr_arp *arp)
{
	return arp->hardware == htons(1) &&
	       arp->protocol == htons(MR_ETHER_IPV4) &&
	       arp->hardware_bytes == 6 && arp->protocol_bytes == 4 &&
	       (arp->op == htons(MR_ARP_REQUEST) ||
		arp->op == htons(MR_ARP_REPLY)) &&
	       memcmp(arp->sender_mac, eth->src, 6) == 0 &&
	       (arp->sender_mac[0] & 1) == 0 &&
	       !is_ours(path, side, arp->sender) &&
	       (arp->sender == 0 ||
		(nat_addrs_of(&path->addrs, arp->sender) & NAT_ADDR_LINK
								   << side &&
		 !nat_addrs_is_martian(&path->addrs, side, arp->sender)));
}

void nat_arp_input(struct nat_path *path, struct nat_packet *packet)
{
	const enum nat_side side = packet->from;
	const struct mr_eth *eth;
	const struct mr_arp *arp;
	enum nat_reason reason = NAT_TAKEN;
	uint32_t slot = NAT_SLOT_NONE;
	bool is_for_us, asks;

	if (!nat_pull_up(path, packet, packet->l2_bytes + sizeof(*arp))) {
		nat_drop(path, packet, NAT_DROP_ARP);
		return;
	}
	eth = (const void *)mr_frame_data(path->base, packet->frames);
	arp = (const void *)((const uint8_t *)eth + packet->l2_bytes);
	is_for_us = is_ours(path, side, arp->target);
	asks = arp->op == htons(MR_ARP_REQUEST);
	if (is_plausible(path, side, eth, arp) && arp->sender != 0) {
		/* RFC 826: learn who queries us; else only renew entries. */
		slot = is_for_us && asks ?
			       nat_neighbours_add(path->neighbours, side,
						  arp->sender, false,
						  path->now_s) :
			       nat_neighbours_find(path->neighbours, side,
						   arp->sender);
		if (slot != NAT_SLOT_NONE)
			nat_neighbours_learn(
				path->neighbours, slot, side, arp->sender,
				nat_mac(arp->sender_mac), path->now_s);
	}
	if (is_for_us && asks && is_plausible(path, side, eth, arp))
		send_arp(path, side, MR_ARP_REPLY, nat_mac(arp->sender_mac),
			 arp->target, arp->sender);
	else if (slot == NAT_SLOT_NONE)
		reason = NAT_DROP_ARP;
	/* The kernel learns from ARP, too, but must not answer as well. */
	(is_for_us && asks ? nat_drop : nat_leave)(path, packet, reason);
	if (reason == NAT_TAKEN)
		nat_resolver_release(path);
}

/* The i-th address that we answer for outside, or 0 after the last. Those of
 * forwards are in the pool, or our own. */
static uint32_t external_at(const struct nat_config *config, uint32_t i)
{
	if (i < config->n_one_to_ones)
		return config->one_to_ones[i].outside_addr;
	i -= config->n_one_to_ones;
	for (uint32_t j = 0; j < config->n_pool; j++) {
		const uint32_t n =
			config->pool[j].last - config->pool[j].first + 1;

		if (i < n)
			return config->pool[j].first + i;
		i -= n;
	}
	return 0;
}

static void announce_one(struct nat_path *path, enum nat_side side,
			 uint32_t addr)
{
	if (nat_addrs_of(&path->addrs, addr) & NAT_ADDR_LINK << side)
		send_arp(path, side, MR_ARP_REQUEST, 0, addr, addr);
}

/* Gratuitous ARP: own addresses at once, external ones a few per tick. */
void nat_announce(struct nat_path *path)
{
	const struct nat_config *config = path->config;

	if (path->n_announced == 0)
		for (uint32_t side = 0; side < NAT_SIDES; side++)
			for (uint32_t i = 0; i < config->sides[side].n_addrs;
			     i++)
				announce_one(
					path, side,
					htonl(config->sides[side].addrs[i]));
	for (uint32_t i = 0; i < ANNOUNCE_BURST; i++) {
		const uint32_t addr = external_at(config, path->n_announced++);

		path->is_announced =
			addr == 0 || path->n_announced > MAX_ANNOUNCED;
		if (path->is_announced)
			return;
		if ((nat_addrs_of(&path->addrs, htonl(addr)) &
		     NAT_ADDR_OWN << NAT_OUTSIDE) == 0)
			announce_one(path, NAT_OUTSIDE, htonl(addr));
	}
}

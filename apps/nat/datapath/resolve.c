/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops: which neighbours to query for their MAC addresses, how often, and
 * which frames wait for the answers. Source: RFC 4861 7.3 for the states.
 */
#include <stdlib.h>

#include "core.h"

enum {
	MAX_WATCHED = 64, /* neighbours being queried... */
	MAX_SHARE = 8,    /* ...because of one asker */
	MAX_PROBES = 32,  /* never displaced by queries for new neighbours */
	MAX_WAITING = 16, /* frames per neighbour */
	MAX_WAITING_ALL = 256,
	MAX_TRIES = 3,
	HOPELESS_TRIES = 2, /* a live host answers the first one */
	RETRY_S = 1,        /* after it failed */
};
static const uint64_t retry_ns = 1000000000;
static const uint64_t grace_ns = 10000000; /* a live host has answered */
/* Bits above those of a MAC address, so that asker.mac is never 0. */
static const uint64_t from_link = UINT64_C(1) << NAT_MAC_BITS;
static const uint64_t from_worker = UINT64_C(2) << NAT_MAC_BITS;

/* Why to query a neighbour. */
enum want {
	WANT_NEW,
	WANT_PROBE, /* stale, but in use */
	WANT_RETRY, /* failed before */
};

/*
 * The sender of a packet that needs a query: its IP address, because many hosts
 * may share the MAC address of their router, and its MAC address, because one
 * host can forge many IP addresses. mac is 0 for a query for the gateway, which
 * all senders share.
 */
struct asker {
	uint64_t mac; /* | from_link; or only from_worker */
	uint32_t addr;
};

/* A worker's query for a neighbour. */
struct watch {
	uint32_t slot, addr;
	uint8_t side, n_tries;
	uint8_t n_share; /* watches of the same asker, including itself... */
	uint8_t n_mac;   /* ...and of all askers with its MAC address */
	bool is_gateway; /* shared by all: never displaced */
	bool is_probe;   /* still in use: frames do not wait */
	uint8_t was;     /* the state before, if is_probe */
	struct asker asker;
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
	nat_arp_send(path, watch->side, MR_ARP_REQUEST, mac,
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

/* Whether two askers have the same MAC address. */
static bool is_same_mac(struct asker a, struct asker b)
{
	return a.mac == b.mac;
}

/* Whether two askers are the same. */
static bool is_same(struct asker a, struct asker b)
{
	return a.mac == b.mac && a.addr == b.addr;
}

/* Update n_share and n_mac of the watches of an asker and its MAC address. */
static void count_shares(struct nat_resolver *resolver, struct asker asker)
{
	uint8_t n_share = 0, n_mac = 0;

	for (uint32_t i = 0; i < resolver->n; i++) {
		n_mac += is_same_mac(resolver->watches[i].asker, asker);
		n_share += is_same(resolver->watches[i].asker, asker);
	}
	for (uint32_t i = 0; i < resolver->n; i++) {
		struct watch *watch = &resolver->watches[i];

		if (is_same_mac(watch->asker, asker))
			watch->n_mac = n_mac;
		if (is_same(watch->asker, asker))
			watch->n_share = n_share;
	}
}

static struct asker asker_of(const struct nat_path *path,
			     const struct nat_packet *packet)
{
	const struct mr_eth *eth =
		(const void *)mr_frame_data(path->base, packet->frames);

	return (struct asker){
		.mac = packet->is_looped ? from_worker :
					   from_link | nat_mac(eth->src),
		.addr = packet->ip->src,
	};
}

/* End a watch: send or refuse its waiting frames. */
static void end_watch(struct nat_path *path, uint32_t i, bool is_known,
		      uint64_t mac)
{
	struct nat_resolver *resolver = path->resolver;
	const struct asker asker = resolver->watches[i].asker;
	struct nat_fifo waiting = resolver->watches[i].waiting;
	struct nat_packet packet;
	struct nat_verdict verdict;

	resolver->watches[i] = resolver->watches[--resolver->n];
	count_shares(resolver, asker);
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
						       watch->was,
			    path->now_s);
	give_up(path, i, NAT_NEIGHBOUR_INCOMPLETE);
}

/* Whether to displace a before b: because its MAC address has more watches,
 * then because its asker has more, then because it is older. */
static bool is_before(const struct watch *a, const struct watch *b)
{
	if (a->n_mac != b->n_mac)
		return a->n_mac > b->n_mac;
	return a->n_share != b->n_share ? a->n_share > b->n_share :
					  a->begin_ns < b->begin_ns;
}

/* Where another query goes: a displaced watch's place, or the end. */
struct room {
	struct asker asker;
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

/* Whether a watch may be displaced at once for an asker with n_share and n_mac
 * watches, because its own asker or MAC address has more. If not, its neighbour
 * gets time to answer. */
static bool has_more(const struct watch *watch, struct asker asker,
		     uint32_t n_share, uint32_t n_mac)
{
	return is_same_mac(watch->asker, asker) ? watch->n_share > n_share + 1 :
						  watch->n_mac > n_mac + 1;
}

/*
 * Find room for another query of an asker. An asker that has used up its share
 * loses its oldest hopeless query. If all watches are in use, the MAC address
 * with the most loses one: the oldest of its asker with the most. If both MAC
 * addresses have equally few, as with forged addresses, it loses one only after
 * the neighbour has had time to answer, or for the gateway. A probe that may
 * still succeed is displaced by a new query only if there are more than
 * MAX_PROBES; otherwise no probe would ever fail during a flood. A retry
 * displaces none of its asker's other queries, so that each silent neighbour
 * has its turn. False: no room.
 */
static bool find_room(const struct nat_path *path, enum want want,
		      struct room *room)
{
	const struct nat_resolver *resolver = path->resolver;
	const bool is_shared = room->asker.mac == 0;
	const bool spares = !is_shared && spares_probes(path, want);
	uint32_t n_own = 0, n_mac = 0, own = MAX_WATCHED, any = MAX_WATCHED;

	for (uint32_t i = 0; i < resolver->n; i++) {
		const struct watch *watch = &resolver->watches[i];
		const bool is_own = is_same(watch->asker, room->asker);

		if (watch->is_gateway)
			continue;
		n_own += is_own;
		n_mac += is_same_mac(watch->asker, room->asker);
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
	} else if (!is_shared && any != MAX_WATCHED) {
		const struct watch *most = &resolver->watches[any];

		if (!has_more(most, room->asker, n_own, n_mac) &&
		    path->now_ns - most->begin_ns < grace_ns)
			return false;
	}
	return room->at != MAX_WATCHED;
}

/* mac: of a probed neighbour, 0 if it is doubtful; NULL: not a probe. */
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
		.is_gateway = addr == path->links[side].gateway,
		.is_probe = mac != NULL,
		.was = mac != NULL && *mac == 0 ? NAT_NEIGHBOUR_DOUBTFUL :
						  NAT_NEIGHBOUR_REACHABLE,
		.asker = room->asker,
		.begin_ns = path->now_ns,
	};
	resolver->n++;
	count_shares(resolver, room->asker);
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
			     (struct asker){ 0 } :
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
	const uint64_t all = 0;
	enum nat_neighbour_state state;
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
	state = nat_neighbours_look(neighbours, slot, verdict->to, addr,
				    ret_mac);
	switch (state) {
	case NAT_NEIGHBOUR_REACHABLE: /* stale: query again, use meanwhile */
	case NAT_NEIGHBOUR_DOUBTFUL:  /* another host may have its address */
		if (may_ask(path, packet, verdict, addr, WANT_PROBE, &room) &&
		    nat_neighbours_move(neighbours, slot, verdict->to, addr,
					state, NAT_NEIGHBOUR_PROBE,
					path->now_s))
			add_watch(path, slot, verdict->to, addr,
				  state == NAT_NEIGHBOUR_DOUBTFUL ? &all :
								    ret_mac,
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

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Next hops: which neighbours to query for their MAC addresses, how often, and
 * which frames wait for the answers. Source: RFC 4861 7.3 for the states.
 */
#include <stdlib.h>

#include "resolve.h"

#include "arp.h"
#include "frame.h"
#include "hand_over.h"
#include "icmp_send.h"

enum {
	MAX_QUERIES = 64,  /* that a worker has pending */
	MAX_OF_SENDER = 8, /* of these, because of packets of one sender */
	MAX_PROBES = 32,   /* never displaced by queries for new neighbours */
	MAX_WAITING = 16,  /* frames per neighbour */
	MAX_WAITING_ALL = 256,
	MAX_TRIES = 3,
	HOPELESS_TRIES = 2, /* a live host answers the first one */
	RETRY_S = 1,        /* after it failed */
};
static const uint64_t retry_ns = 1000000000;
static const uint64_t grace_ns = 10000000; /* a live host has answered */
/* Bits above those of a MAC address, so that sender.mac is never 0. */
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
struct sender {
	uint64_t mac; /* | from_link; or only from_worker */
	uint32_t addr;
};

/* A worker's query for a neighbour. */
struct query {
	uint32_t slot, addr;
	uint8_t side, n_tries;
	uint8_t n_of_sender; /* queries of the same sender, this one too */
	uint8_t n_of_mac;    /* queries of all senders with its MAC address */
	bool is_gateway;     /* shared by all: never displaced */
	bool is_probe;       /* still in use: frames do not wait */
	uint8_t was;         /* the state before, if is_probe */
	struct sender sender;
	uint64_t begin_ns;
	uint64_t next_ns;
	struct nat_fifo waiting;
};

struct nat_resolver {
	struct query queries[MAX_QUERIES];
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

/* Our address in the network of addr: RFC 826's target may not know others. */
static uint32_t own_beside(const struct nat_link *link, uint32_t addr)
{
	for (uint32_t i = 0; i < link->n_nets; i++)
		if ((addr & link->nets[i].mask) == link->nets[i].addr)
			return link->nets[i].own;
	return link->own;
}

static void send_query(struct nat_path *path, struct query *query, uint64_t mac)
{
	query->n_tries++;
	query->next_ns = path->now_ns + retry_ns;
	nat_arp_send(path, query->side, MR_ARP_REQUEST, mac,
		     own_beside(&path->links[query->side], query->addr),
		     query->addr);
}

static struct query *find_query(struct nat_resolver *resolver, uint32_t slot)
{
	for (uint32_t i = 0; i < resolver->n; i++)
		if (resolver->queries[i].slot == slot)
			return &resolver->queries[i];
	return NULL;
}

static bool is_same_mac(struct sender a, struct sender b)
{
	return a.mac == b.mac;
}

static bool is_same_sender(struct sender a, struct sender b)
{
	return a.mac == b.mac && a.addr == b.addr;
}

/* Update n_of_sender and n_of_mac of the queries of a sender and its MAC
 * address. */
static void count_queries(struct nat_resolver *resolver, struct sender sender)
{
	uint8_t n_of_sender = 0, n_of_mac = 0;

	for (uint32_t i = 0; i < resolver->n; i++) {
		n_of_mac += is_same_mac(resolver->queries[i].sender, sender);
		n_of_sender +=
			is_same_sender(resolver->queries[i].sender, sender);
	}
	for (uint32_t i = 0; i < resolver->n; i++) {
		struct query *query = &resolver->queries[i];

		if (is_same_mac(query->sender, sender))
			query->n_of_mac = n_of_mac;
		if (is_same_sender(query->sender, sender))
			query->n_of_sender = n_of_sender;
	}
}

static struct sender sender_of(const struct nat_path *path,
			       const struct nat_packet *packet)
{
	const struct mr_eth *eth =
		(const void *)mr_frame_data(path->base, packet->frames);

	return (struct sender){
		.mac = packet->is_looped ? from_worker :
					   from_link | nat_mac(eth->src),
		.addr = packet->ip->src,
	};
}

static void remove_query(struct nat_resolver *resolver, uint32_t i)
{
	const struct sender sender = resolver->queries[i].sender;

	resolver->queries[i] = resolver->queries[--resolver->n];
	count_queries(resolver, sender);
}

static bool take_waiting(struct nat_path *path, struct nat_fifo *waiting,
			 struct nat_packet *ret_packet,
			 struct nat_verdict *ret_verdict)
{
	if (!nat_fifo_take(&path->hold, waiting, ret_packet, ret_verdict))
		return false;
	path->resolver->n_waiting--;
	counter_sub(&path->stats.held, 1);
	return true;
}

/* The neighbour does not answer: refuse what waits for it. */
static void give_up_query(struct nat_path *path, uint32_t i,
			  enum nat_neighbour_state state)
{
	const struct query *query = &path->resolver->queries[i];
	struct nat_fifo waiting = query->waiting;
	struct nat_packet packet;

	nat_neighbours_move(path->neighbours, query->slot, query->side,
			    query->addr, state, NAT_NEIGHBOUR_FAILED,
			    path->now_s);
	remove_query(path->resolver, i);
	while (take_waiting(path, &waiting, &packet, NULL))
		nat_refuse_packet(path, &packet, NAT_DROP_NEIGHBOUR);
}

/* It was queried by broadcast, and had time to answer. */
static bool is_hopeless(const struct nat_path *path, const struct query *query)
{
	return query->n_tries >= HOPELESS_TRIES &&
	       path->now_ns + retry_ns - query->next_ns >= grace_ns;
}

/* End a query early. A probed neighbour stays in use, and is probed again
 * later, unless the probe is hopeless. */
static void evict_query(struct nat_path *path, uint32_t i)
{
	const struct query *query = &path->resolver->queries[i];

	nat_neighbours_move(path->neighbours, query->slot, query->side,
			    query->addr, NAT_NEIGHBOUR_PROBE,
			    is_hopeless(path, query) ? NAT_NEIGHBOUR_FAILED :
						       query->was,
			    path->now_s);
	give_up_query(path, i, NAT_NEIGHBOUR_INCOMPLETE);
}

/* Whether to displace a before b: because its MAC address has more queries,
 * then because its sender has more, then because it is older. */
static bool is_before(const struct query *a, const struct query *b)
{
	if (a->n_of_mac != b->n_of_mac)
		return a->n_of_mac > b->n_of_mac;
	return a->n_of_sender != b->n_of_sender ?
		       a->n_of_sender > b->n_of_sender :
		       a->begin_ns < b->begin_ns;
}

/* Where another query goes: a displaced query's place, or the end. */
struct room {
	struct sender sender;
	uint32_t at;
};

static bool has_hope(const struct nat_path *path, const struct query *query)
{
	return query->is_probe && !is_hopeless(path, query);
}

/* Whether there are so few probes that none may be displaced. */
static bool spares_probes(const struct nat_path *path, enum want want)
{
	const struct nat_resolver *resolver = path->resolver;
	uint32_t n = 0;

	for (uint32_t i = 0; i < resolver->n; i++)
		n += has_hope(path, &resolver->queries[i]);
	return want != WANT_NEW || n <= MAX_PROBES;
}

/* Whether a query may be displaced at once for a sender with n_of_sender and
 * n_of_mac queries, because its own sender or MAC address has more. If not, its
 * neighbour gets time to answer. */
static bool has_more(const struct query *query, struct sender sender,
		     uint32_t n_of_sender, uint32_t n_of_mac)
{
	return is_same_mac(query->sender, sender) ?
		       query->n_of_sender > n_of_sender + 1 :
		       query->n_of_mac > n_of_mac + 1;
}

/*
 * Find room for another query of a sender. A sender that has used up its
 * share loses its oldest hopeless query. If all queries are in use, the MAC
 * address with the most loses one: the oldest of its sender with the most. If
 * both MAC addresses have equally few, as with forged addresses, it loses one
 * only after the neighbour has had time to answer, or for the gateway. A probe
 * that may still succeed is displaced by a new query only if there are more
 * than MAX_PROBES; otherwise no probe would ever fail during a flood. A retry
 * displaces none of its sender's other queries, so that each silent neighbour
 * has its turn. False: no room.
 */
static bool find_room(const struct nat_path *path, enum want want,
		      struct room *room)
{
	const struct nat_resolver *resolver = path->resolver;
	const bool is_gateway = room->sender.mac == 0;
	const bool spares = !is_gateway && spares_probes(path, want);
	uint32_t n_own = 0, n_of_mac = 0, own = MAX_QUERIES, any = MAX_QUERIES;

	for (uint32_t i = 0; i < resolver->n; i++) {
		const struct query *query = &resolver->queries[i];
		const bool is_own = is_same_sender(query->sender, room->sender);

		if (query->is_gateway)
			continue;
		n_own += is_own;
		n_of_mac += is_same_mac(query->sender, room->sender);
		if (spares && has_hope(path, query))
			continue;
		if (any == MAX_QUERIES ||
		    is_before(query, &resolver->queries[any]))
			any = i;
		if (is_own && is_hopeless(path, query) &&
		    (own == MAX_QUERIES ||
		     is_before(query, &resolver->queries[own])))
			own = i;
	}
	room->at = any;
	if (n_own >= MAX_OF_SENDER) {
		room->at = want == WANT_RETRY ? MAX_QUERIES : own;
	} else if (resolver->n < MAX_QUERIES) {
		room->at = resolver->n;
	} else if (!is_gateway && any != MAX_QUERIES) {
		const struct query *most = &resolver->queries[any];

		if (!has_more(most, room->sender, n_own, n_of_mac) &&
		    path->now_ns - most->begin_ns < grace_ns)
			return false;
	}
	return room->at != MAX_QUERIES;
}

/* mac: of a probed neighbour, 0 if it is doubtful; NULL: not a probe. */
static struct query *add_query(struct nat_path *path, uint32_t slot,
			       enum nat_side side, uint32_t addr,
			       const uint64_t *mac, const struct room *room)
{
	struct nat_resolver *resolver = path->resolver;
	struct query *query;

	if (room->at < resolver->n)
		evict_query(path, room->at);
	query = &resolver->queries[resolver->n];
	*query = (struct query){
		.slot = slot,
		.addr = addr,
		.side = side,
		.is_gateway = addr == path->links[side].gateway,
		.is_probe = mac != NULL,
		.was = mac != NULL && *mac == 0 ? NAT_NEIGHBOUR_DOUBTFUL :
						  NAT_NEIGHBOUR_REACHABLE,
		.sender = room->sender,
		.begin_ns = path->now_ns,
	};
	resolver->n++;
	count_queries(resolver, room->sender);
	nat_fifo_init(&query->waiting);
	/* A neighbour in use is first queried by unicast, then by broadcast. */
	send_query(path, query, mac != NULL ? *mac : 0);
	return query;
}

/* Whether there is room to query addr for this packet. */
static bool may_query(const struct nat_path *path,
		      const struct nat_packet *packet,
		      const struct nat_verdict *verdict, uint32_t addr,
		      enum want want, struct room *ret)
{
	ret->sender = addr == path->links[verdict->to].gateway ?
			      (struct sender){ 0 } :
			      sender_of(path, packet);
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
	const struct nat_hold *hold = &path->hold;

	for (;;) {
		const bool has_entries =
			n <= hold->max_entries - hold->n_entries;
		struct nat_fifo *most = &resolver->queries[0].waiting;
		struct nat_packet packet;

		if (has_entries && resolver->n_waiting < MAX_WAITING_ALL)
			return true;
		for (uint32_t i = 1; i < resolver->n; i++) {
			struct nat_fifo *other = &resolver->queries[i].waiting;

			if (has_entries ? other->n > most->n :
					  other->n_entries > most->n_entries)
				most = other;
		}
		if ((has_entries ? most->n <= own->n + 1 :
				   most->n_entries <= own->n_entries + n) ||
		    !take_waiting(path, most, &packet, NULL))
			return false;
		nat_drop_packet(path, &packet, NAT_DROP_NEIGHBOUR_FULL);
	}
}

static enum nat_drop hold_packet(struct nat_path *path, uint32_t slot,
				 const struct nat_packet *packet,
				 const struct nat_verdict *verdict,
				 uint32_t addr, enum want want)
{
	struct nat_resolver *resolver = path->resolver;
	struct query *query = find_query(resolver, slot);
	struct room room;

	if (query == NULL) {
		if (!may_query(path, packet, verdict, addr, want, &room))
			return NAT_DROP_NEIGHBOUR_FULL;
		query = add_query(path, slot, verdict->to, addr, NULL, &room);
	}
	if (query->waiting.n == MAX_WAITING ||
	    !make_room_to_wait(path, &query->waiting, packet->n) ||
	    !nat_fifo_put(&path->hold, &query->waiting, packet, verdict))
		return NAT_DROP_NEIGHBOUR_FULL;
	resolver->n_waiting++;
	counter_add(&path->stats.held, 1);
	return NAT_TAKEN;
}

enum nat_drop nat_resolve(struct nat_path *path, struct nat_packet *packet,
			  const struct nat_verdict *verdict, uint64_t *ret_mac)
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
	    may_query(path, packet, verdict, addr, WANT_NEW, &room))
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
		if (may_query(path, packet, verdict, addr, WANT_PROBE, &room) &&
		    nat_neighbours_move(neighbours, slot, verdict->to, addr,
					state, NAT_NEIGHBOUR_PROBE,
					path->now_s))
			add_query(path, slot, verdict->to, addr,
				  state == NAT_NEIGHBOUR_DOUBTFUL ? &all :
								    ret_mac,
				  &room);
		return NAT_OK;
	case NAT_NEIGHBOUR_PROBE:
		return NAT_OK;
	case NAT_NEIGHBOUR_FAILED:
		if (nat_neighbour_age_s(&neighbours->slots[slot], path->now_s) <
			    RETRY_S ||
		    !may_query(path, packet, verdict, addr, WANT_RETRY,
			       &room) ||
		    !nat_neighbours_move(neighbours, slot, verdict->to, addr,
					 NAT_NEIGHBOUR_FAILED,
					 NAT_NEIGHBOUR_INCOMPLETE, path->now_s))
			return NAT_DROP_NEIGHBOUR;
		return hold_packet(path, slot, packet, verdict, addr,
				   WANT_RETRY);
	default:
		return hold_packet(path, slot, packet, verdict, addr, WANT_NEW);
	}
}

bool nat_resolver_take_ready(struct nat_path *path,
			     struct nat_packet *ret_packet,
			     struct nat_verdict *ret_verdict, uint64_t *ret_mac)
{
	struct nat_resolver *resolver = path->resolver;

	for (uint32_t i = 0; i < resolver->n;) {
		struct query *query = &resolver->queries[i];

		if (!nat_neighbours_is_fresh(path->neighbours, query->slot,
					     query->side, query->addr,
					     path->now_s, ret_mac)) {
			i++;
			continue;
		}
		if (take_waiting(path, &query->waiting, ret_packet,
				 ret_verdict))
			return true;
		remove_query(resolver, i);
	}
	return false;
}

void nat_resolver_tick(struct nat_path *path)
{
	struct nat_resolver *resolver = path->resolver;

	for (uint32_t i = 0; i < resolver->n; i++) {
		struct query *query = &resolver->queries[i];
		enum nat_neighbour_state state;
		uint64_t mac = 0;

		if (path->now_ns < query->next_ns)
			continue;
		state = nat_neighbours_look(path->neighbours, query->slot,
					    query->side, query->addr, &mac);
		if (query->n_tries < MAX_TRIES && state != NAT_NEIGHBOUR_NONE)
			send_query(path, query, 0);
		else
			give_up_query(path, i--,
				      state); /* the last one is here */
	}
}

void nat_resolver_copy(const struct nat_path *path,
		       struct nat_path_parts *parts)
{
	const struct nat_resolver *resolver = path->resolver;

	for (uint32_t i = 0; i < resolver->n; i++)
		nat_fifo_copy(&path->hold, &resolver->queries[i].waiting,
			      parts);
}

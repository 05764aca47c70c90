/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Neighbours of both sides: IPv4 addresses on the link and their MAC addresses.
 * One table for all workers, without locks. An entry has two words, each read
 * and written atomically. Both have the entry's generation, so that a reader
 * that races with the reuse of an entry sees that they do not match:
 *
 *     63      56 55      48 47                       0
 *     +---------+----------+---------------------------+
 *     |         |generation|       side  | address     |  key
 *     +---------+----------+---------------------------+
 *     |  state  |generation|       MAC address         |  mac
 *     +---------+----------+---------------------------+
 *
 * An address may be in any of the eight slots of two buckets. resolve.c has
 * each worker's pending queries, held.c the frames that wait for them.
 */
#ifndef NAT_NEIGHBOURS_H
#define NAT_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <millrace/experimental/offload.h>
#include <millrace/millrace.h>

#include "config/config.h"

enum nat_neighbour_state {
	NAT_NEIGHBOUR_NONE,
	NAT_NEIGHBOUR_INCOMPLETE, /* query sent */
	NAT_NEIGHBOUR_FAILED,     /* no answer */
	NAT_NEIGHBOUR_PROBE,      /* in use, and being queried again */
	NAT_NEIGHBOUR_REACHABLE,  /* stale NAT_REACHABLE_S after it answered */
	NAT_NEIGHBOUR_FIXED,      /* static, from the configuration */
	NAT_NEIGHBOUR_DOUBTFUL,   /* the link has changed since it answered */
};

/* RFC 4861's value; there is none for ARP. */
enum {
	NAT_REACHABLE_S = 30,
	NAT_INCOMPLETE_S = 5, /* longer than any query lasts */
	NAT_NEIGHBOUR_SLOTS = 1 << 16,
};

enum { NAT_SLOT_NONE = UINT32_MAX };

struct nat_neighbour {
	uint64_t key, mac;
	uint32_t confirmed_s; /* last answer, failure, or first query */
	uint32_t reserved[3];
};

struct nat_neighbours {
	struct nat_neighbour *slots; /* NAT_NEIGHBOUR_SLOTS */
	struct mr_rules *rules; /* whose next hops these are; NULL: none's */
	uint64_t seed;
};

int nat_neighbours_create(const struct nat_config *config,
			  struct nat_neighbours **ret_neighbours,
			  struct mr_reason *reterr_why);
void nat_neighbours_destroy(struct nat_neighbours *neighbours);

/*
 * Replace the static neighbours of before (NULL: none) by those of config.
 * Workers may run. False: no room for one of them.
 */
bool nat_neighbours_follow(struct nat_neighbours *neighbours,
			   const struct nat_config *before,
			   const struct nat_config *config, uint32_t now_s);

/* Tell a set of rules of all next hops, and of all changes. */
void nat_neighbours_share(struct nat_neighbours *neighbours,
			  struct mr_rules *rules);

/* Make all learned neighbours of a side DOUBTFUL, because another host may now
 * be on the link. Any thread. */
void nat_neighbours_doubt(struct nat_neighbours *neighbours,
			  enum nat_side side);

/* addr below: network order. The slot of an address, or NAT_SLOT_NONE. */
uint32_t nat_neighbours_find(const struct nat_neighbours *neighbours,
			     enum nat_side side, uint32_t addr);
/*
 * The slot of an address, created (INCOMPLETE) if necessary: a free one, or, if
 * evicts, one that is not in use. NAT_SLOT_NONE: none.
 */
uint32_t nat_neighbours_add(struct nat_neighbours *neighbours,
			    enum nat_side side, uint32_t addr, bool evicts,
			    uint32_t now_s);
/* Its MAC address is mac: REACHABLE, unless it is FIXED. */
void nat_neighbours_learn(struct nat_neighbours *neighbours, uint32_t slot,
			  enum nat_side side, uint32_t addr, uint64_t mac,
			  uint32_t now_s);
/* Change its state; false: it was in another one. */
bool nat_neighbours_move(struct nat_neighbours *neighbours, uint32_t slot,
			 enum nat_side side, uint32_t addr,
			 enum nat_neighbour_state from,
			 enum nat_neighbour_state to, uint32_t now_s);

/* The neighbour in a slot; NONE: the slot is free. */
struct nat_neighbour_info {
	enum nat_neighbour_state state;
	enum nat_side side;
	uint32_t addr;
	uint64_t mac;
};
struct nat_neighbour_info
nat_neighbours_at(const struct nat_neighbours *neighbours, uint32_t slot);

/* Forget an entry that was learned or has failed; its next user queries it
 * anew. False: it is static, being queried, or unused. */
bool nat_neighbours_forget(struct nat_neighbours *neighbours, uint32_t slot,
			   uint32_t now_s);

/* Six bytes as 48 bits, in memory order. */
static inline uint64_t nat_mac(const uint8_t *bytes)
{
	uint64_t mac = 0;

	memcpy(&mac, bytes, 6);
	return mac;
}

enum { NAT_MAC_BITS = 48 };
#define NAT_MAC_MASK ((UINT64_C(1) << NAT_MAC_BITS) - 1)

/* The name of a next hop for rules, which another address in the same slot does
 * not have. */
static inline uint32_t nat_neighbours_hop(const struct nat_neighbour *n,
					  uint32_t slot)
{
	const uint64_t word = __atomic_load_n(&n->mac, __ATOMIC_RELAXED);

	return slot | (uint32_t)(word >> NAT_MAC_BITS & 0xff)
			      << MR_FLOW_HOP_BITS;
}

/* Look up addr atomically. */
static inline enum nat_neighbour_state
nat_neighbours_look(const struct nat_neighbours *neighbours, uint32_t slot,
		    enum nat_side side, uint32_t addr, uint64_t *ret_mac)
{
	const struct nat_neighbour *n = &neighbours->slots[slot];
	/* A new key follows a mac word of its generation: release, acquire. */
	const uint64_t key = __atomic_load_n(&n->key, __ATOMIC_ACQUIRE);
	const uint64_t word = __atomic_load_n(&n->mac, __ATOMIC_ACQUIRE);

	if ((key & NAT_MAC_MASK) != ((uint64_t)side << 32 | addr) ||
	    ((key ^ word) >> NAT_MAC_BITS & 0xff) != 0)
		return NAT_NEIGHBOUR_NONE;
	*ret_mac = word & NAT_MAC_MASK;
	return (enum nat_neighbour_state)(word >> 56);
}

/* Time since its last answer, failure, or first query. Another worker may be a
 * second ahead: then negative. */
static inline int32_t nat_neighbour_age_s(const struct nat_neighbour *n,
					  uint32_t now_s)
{
	return (int32_t)(now_s -
			 __atomic_load_n(&n->confirmed_s, __ATOMIC_RELAXED));
}

/* Frames may be sent to it now, and nothing else is needed. */
static inline bool
nat_neighbours_is_fresh(const struct nat_neighbours *neighbours, uint32_t slot,
			enum nat_side side, uint32_t addr, uint32_t now_s,
			uint64_t *ret_mac)
{
	const enum nat_neighbour_state state =
		nat_neighbours_look(neighbours, slot, side, addr, ret_mac);

	return state == NAT_NEIGHBOUR_FIXED ||
	       (state == NAT_NEIGHBOUR_REACHABLE &&
		nat_neighbour_age_s(&neighbours->slots[slot], now_s) <=
			NAT_REACHABLE_S);
}

#endif

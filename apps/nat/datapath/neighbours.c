/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of neighbours: neighbours.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "hand_over.h"
#include "neighbours.h"
#include "ports/entry.h"
#include "support/text.h"

enum { BUCKET = 8, GENERATION_MASK = 0xff, HUGE_BYTES = 2 << 20 };

static uint64_t word_of(enum nat_neighbour_state state, uint64_t generation,
			uint64_t mac)
{
	return (uint64_t)state << 56 |
	       (generation & GENERATION_MASK) << NAT_MAC_BITS | mac;
}

static uint64_t generation_of(uint64_t word)
{
	return word >> NAT_MAC_BITS & GENERATION_MASK;
}

static enum nat_neighbour_state state_of(uint64_t word)
{
	return (enum nat_neighbour_state)(word >> 56);
}

/*
 * The i-th slot for an address: eight of one bucket, then eight of another.
 * Keyed, and mixed twice: addresses of a link are consecutive, and one
 * multiplication would spread them in stripes.
 */
static uint32_t place_of(const struct nat_neighbours *neighbours,
			 enum nat_side side, uint32_t addr, uint32_t i)
{
	uint64_t mixed = ((uint64_t)side << 32 | addr) * neighbours->seed;
	uint32_t bucket;

	mixed = (mixed ^ mixed >> 32) * UINT64_C(0xd6e8feb86659fd93);
	bucket = (uint32_t)(mixed >> (i < BUCKET ? 48 : 32));
	return (bucket & (NAT_NEIGHBOUR_SLOTS / BUCKET - 1)) * BUCKET +
	       i % BUCKET;
}

int nat_neighbours_create(const struct nat_config *config,
			  struct nat_neighbours **ret_neighbours,
			  struct mr_reason *reterr_why)
{
	const size_t n_bytes =
		NAT_NEIGHBOUR_SLOTS * sizeof(struct nat_neighbour);
	struct nat_neighbours *neighbours = calloc(1, sizeof(*neighbours));

	if (neighbours != NULL)
		neighbours->slots = aligned_alloc(HUGE_BYTES, n_bytes);
	if (neighbours == NULL || neighbours->slots == NULL) {
		free(neighbours);
		return fail_with(reterr_why, -ENOMEM,
				 "no memory for the neighbour table");
	}
	/* It is read at random: use one huge page, if available. */
	madvise(neighbours->slots, n_bytes, MADV_HUGEPAGE);
	do { /* fails for one seed in a million */
		memset(neighbours->slots, 0, n_bytes);
		if (getrandom(&neighbours->seed, sizeof(neighbours->seed), 0) <
		    0)
			neighbours->seed = UINT64_C(0x9e3779b97f4a7c15);
		neighbours->seed |= 1;
	} while (!nat_neighbours_follow(neighbours, NULL, config, 0));
	*ret_neighbours = neighbours;
	return 0;
}

void nat_neighbours_destroy(struct nat_neighbours *neighbours)
{
	if (neighbours == NULL)
		return;
	free(neighbours->slots);
	free(neighbours);
}

uint32_t nat_neighbours_find(const struct nat_neighbours *neighbours,
			     enum nat_side side, uint32_t addr)
{
	uint64_t mac;

	for (uint32_t i = 0; i < 2 * BUCKET; i++) {
		const uint32_t slot = place_of(neighbours, side, addr, i);

		if (nat_neighbours_look(neighbours, slot, side, addr, &mac) !=
		    NAT_NEIGHBOUR_NONE)
			return slot;
	}
	return NAT_SLOT_NONE;
}

/* It may be reused: it failed, was not confirmed for some time, or no worker
 * had room for its query. */
static bool is_idle(const struct nat_neighbour *n, uint32_t now_s)
{
	const uint64_t word = __atomic_load_n(&n->mac, __ATOMIC_RELAXED);
	const int32_t age_s = nat_neighbour_age_s(n, now_s);

	return state_of(word) == NAT_NEIGHBOUR_FAILED ||
	       state_of(word) == NAT_NEIGHBOUR_DOUBTFUL ||
	       (state_of(word) == NAT_NEIGHBOUR_INCOMPLETE &&
		age_s > NAT_INCOMPLETE_S) ||
	       (state_of(word) == NAT_NEIGHBOUR_REACHABLE &&
		age_s > NAT_REACHABLE_S);
}

/* Rules may use it from now on, or no longer. One that is being probed is in
 * use. */
static void tell_rules(const struct nat_neighbours *neighbours, uint32_t slot)
{
	const struct nat_neighbour *n = &neighbours->slots[slot];
	uint64_t word, until_ns;

	if (neighbours->rules == NULL)
		return;
	do { /* again if another worker has changed it meanwhile */
		word = __atomic_load_n(&n->mac, __ATOMIC_ACQUIRE);
		if (state_of(word) == NAT_NEIGHBOUR_PROBE)
			return;
		until_ns = 0;
		if (state_of(word) == NAT_NEIGHBOUR_FIXED)
			until_ns = UINT64_MAX;
		else if (state_of(word) == NAT_NEIGHBOUR_REACHABLE)
			until_ns = (__atomic_load_n(&n->confirmed_s,
						    __ATOMIC_RELAXED) +
				    NAT_REACHABLE_S + UINT64_C(1)) *
				   1000000000u;
		mr_rules_hop(neighbours->rules, nat_neighbours_hop(n, slot),
			     word & NAT_MAC_MASK, until_ns);
	} while (__atomic_load_n(&n->mac, __ATOMIC_ACQUIRE) != word);
}

void nat_neighbours_share(struct nat_neighbours *neighbours,
			  struct mr_rules *rules)
{
	neighbours->rules = rules;
	for (uint32_t i = 0; i < NAT_NEIGHBOUR_SLOTS && rules != NULL; i++)
		tell_rules(neighbours, i);
}

/* Claim the slot; false: another worker was faster. */
static bool claim_slot(struct nat_neighbours *neighbours, uint32_t slot,
		       uint64_t key, uint32_t now_s)
{
	struct nat_neighbour *n = &neighbours->slots[slot];
	uint64_t old = __atomic_load_n(&n->mac, __ATOMIC_RELAXED);
	const uint64_t generation =
		generation_of(__atomic_load_n(&n->key, __ATOMIC_RELAXED)) + 1;

	if (!__atomic_compare_exchange_n(
		    &n->mac, &old,
		    word_of(NAT_NEIGHBOUR_INCOMPLETE, generation, 0), false,
		    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	tell_rules(neighbours, slot);
	__atomic_store_n(&n->confirmed_s, now_s, __ATOMIC_RELAXED);
	/* Pairs with the acquire in nat_neighbours_look(). */
	__atomic_store_n(&n->key,
			 key | (generation & GENERATION_MASK) << NAT_MAC_BITS,
			 __ATOMIC_RELEASE);
	return true;
}

static bool is_free(const struct nat_neighbour *n)
{
	return state_of(__atomic_load_n(&n->mac, __ATOMIC_RELAXED)) ==
	       NAT_NEIGHBOUR_NONE;
}

/* Where the emptier bucket of an address begins: the first, if equal. */
static uint32_t emptier_bucket(const struct nat_neighbours *neighbours,
			       enum nat_side side, uint32_t addr)
{
	uint32_t n_free[2] = { 0 };

	for (uint32_t i = 0; i < 2 * BUCKET; i++)
		n_free[i / BUCKET] += is_free(
			&neighbours
				 ->slots[place_of(neighbours, side, addr, i)]);
	return n_free[1] > n_free[0] ? BUCKET : 0;
}

uint32_t nat_neighbours_add(struct nat_neighbours *neighbours,
			    enum nat_side side, uint32_t addr, bool evicts,
			    uint32_t now_s)
{
	const uint64_t key = (uint64_t)side << 32 | addr;
	uint32_t slot = nat_neighbours_find(neighbours, side, addr);
	uint32_t first;

	if (slot != NAT_SLOT_NONE)
		return slot;
	/* This fills the buckets of a large link evenly. */
	first = emptier_bucket(neighbours, side, addr);
	for (uint32_t i = 0; i < 2 * BUCKET; i++) {
		struct nat_neighbour *n;

		slot = place_of(neighbours, side, addr,
				(first + i) % (2 * BUCKET));
		n = &neighbours->slots[slot];
		if (is_free(n) && claim_slot(neighbours, slot, key, now_s))
			return slot;
	}
	for (uint32_t i = 0; evicts && i < 2 * BUCKET; i++) {
		struct nat_neighbour *n;

		slot = place_of(neighbours, side, addr, i);
		n = &neighbours->slots[slot];
		if (is_idle(n, now_s) &&
		    claim_slot(neighbours, slot, key, now_s))
			return slot;
	}
	return NAT_SLOT_NONE;
}

/* Change the mac word of addr's entry, if it still is addr's. */
static bool change_entry(struct nat_neighbour *n, enum nat_side side,
			 uint32_t addr, uint64_t old, uint64_t word)
{
	const uint64_t key = __atomic_load_n(&n->key, __ATOMIC_ACQUIRE);

	/* A slot that gets another address changes its mac word first. */
	return (key & NAT_MAC_MASK) == ((uint64_t)side << 32 | addr) &&
	       generation_of(key) == generation_of(old) &&
	       __atomic_compare_exchange_n(&n->mac, &old, word, false,
					   __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

void nat_neighbours_learn(struct nat_neighbours *neighbours, uint32_t slot,
			  enum nat_side side, uint32_t addr, uint64_t mac,
			  uint32_t now_s)
{
	struct nat_neighbour *n = &neighbours->slots[slot];
	const uint64_t old = __atomic_load_n(&n->mac, __ATOMIC_ACQUIRE);

	/* Another worker was faster, and has learned it. */
	if (state_of(old) != NAT_NEIGHBOUR_FIXED &&
	    change_entry(
		    n, side, addr, old,
		    word_of(NAT_NEIGHBOUR_REACHABLE, generation_of(old), mac)))
		__atomic_store_n(&n->confirmed_s, now_s, __ATOMIC_RELAXED);
	tell_rules(neighbours, slot);
}

bool nat_neighbours_move(struct nat_neighbours *neighbours, uint32_t slot,
			 enum nat_side side, uint32_t addr,
			 enum nat_neighbour_state from,
			 enum nat_neighbour_state to, uint32_t now_s)
{
	struct nat_neighbour *n = &neighbours->slots[slot];
	const uint64_t old = __atomic_load_n(&n->mac, __ATOMIC_ACQUIRE);

	if (state_of(old) != from ||
	    !change_entry(n, side, addr, old,
			  word_of(to, generation_of(old), old & NAT_MAC_MASK)))
		return false;
	if (to == NAT_NEIGHBOUR_FAILED || to == NAT_NEIGHBOUR_INCOMPLETE)
		__atomic_store_n(&n->confirmed_s, now_s, __ATOMIC_RELAXED);
	tell_rules(neighbours, slot);
	return true;
}

struct nat_neighbour_info
nat_neighbours_at(const struct nat_neighbours *neighbours, uint32_t slot)
{
	const uint64_t key =
		__atomic_load_n(&neighbours->slots[slot].key, __ATOMIC_ACQUIRE);
	struct nat_neighbour_info info = {
		.side = (enum nat_side)(key >> 32 & 1), .addr = (uint32_t)key
	};

	info.state = nat_neighbours_look(neighbours, slot, info.side, info.addr,
					 &info.mac);
	return info;
}

bool nat_neighbours_forget(struct nat_neighbours *neighbours, uint32_t slot,
			   uint32_t now_s)
{
	const struct nat_neighbour_info is =
		nat_neighbours_at(neighbours, slot);

	return (is.state == NAT_NEIGHBOUR_REACHABLE ||
		is.state == NAT_NEIGHBOUR_DOUBTFUL ||
		is.state == NAT_NEIGHBOUR_FAILED) &&
	       nat_neighbours_move(neighbours, slot, is.side, is.addr, is.state,
				   NAT_NEIGHBOUR_NONE, now_s);
}

void nat_neighbours_doubt(struct nat_neighbours *neighbours, enum nat_side side)
{
	for (uint32_t slot = 0; slot < NAT_NEIGHBOUR_SLOTS; slot++) {
		const struct nat_neighbour_info is =
			nat_neighbours_at(neighbours, slot);

		if (is.state == NAT_NEIGHBOUR_REACHABLE && is.side == side)
			nat_neighbours_move(neighbours, slot, side, is.addr,
					    NAT_NEIGHBOUR_REACHABLE,
					    NAT_NEIGHBOUR_DOUBTFUL, 0);
	}
}

/* False: too many static ones in one bucket. */
static bool fix_neighbour(struct nat_neighbours *neighbours, enum nat_side side,
			  const struct nat_fixed_neighbour *fixed,
			  uint32_t now_s)
{
	const uint32_t addr = htonl(fixed->addr);
	const uint64_t mac = nat_mac(fixed->mac);
	struct nat_neighbour *n;
	uint64_t old;
	uint32_t slot;

	do { /* retry if a worker changed it meanwhile */
		slot = nat_neighbours_add(neighbours, side, addr, true, now_s);
		if (slot == NAT_SLOT_NONE)
			return false;
		n = &neighbours->slots[slot];
		old = __atomic_load_n(&n->mac, __ATOMIC_ACQUIRE);
	} while (!change_entry(
		n, side, addr, old,
		word_of(NAT_NEIGHBOUR_FIXED, generation_of(old), mac)));
	tell_rules(neighbours, slot);
	return true;
}

/* It is no longer static: the next user probes it, and uses it meanwhile. */
static void unfix_neighbour(struct nat_neighbours *neighbours,
			    enum nat_side side, uint32_t addr, uint32_t now_s)
{
	const uint32_t slot = nat_neighbours_find(neighbours, side, addr);

	if (slot != NAT_SLOT_NONE &&
	    nat_neighbours_move(neighbours, slot, side, addr,
				NAT_NEIGHBOUR_FIXED, NAT_NEIGHBOUR_REACHABLE,
				now_s)) {
		__atomic_store_n(&neighbours->slots[slot].confirmed_s,
				 now_s - NAT_REACHABLE_S - 1, __ATOMIC_RELAXED);
		tell_rules(neighbours, slot);
	}
}

static bool is_among(const struct nat_side_config *c, uint32_t addr)
{
	for (uint32_t i = 0; i < c->n_neighbours; i++)
		if (c->neighbours[i].addr == addr)
			return true;
	return false;
}

bool nat_neighbours_follow(struct nat_neighbours *neighbours,
			   const struct nat_config *before,
			   const struct nat_config *config, uint32_t now_s)
{
	bool is_complete = true;

	for (enum nat_side side = 0; side < NAT_SIDES; side++) {
		const struct nat_side_config *c = &config->sides[side];
		const struct nat_side_config *b =
			before != NULL ? &before->sides[side] : NULL;

		for (uint32_t i = 0; b != NULL && i < b->n_neighbours; i++)
			if (!is_among(c, b->neighbours[i].addr))
				unfix_neighbour(neighbours, side,
						htonl(b->neighbours[i].addr),
						now_s);
		for (uint32_t i = 0; i < c->n_neighbours; i++)
			is_complete &= fix_neighbour(neighbours, side,
						     &c->neighbours[i], now_s);
	}
	return is_complete;
}

/* ---- for another process: hand_over.h ---- */

enum { IMAGE_LAYOUT = 2 };

void nat_neighbours_put(const struct nat_neighbours *neighbours,
			struct mr_parcel *parcel)
{
	struct nat_records r = {
		.record_bytes = sizeof(struct nat_neighbour_image)
	};

	for (uint32_t slot = 0; slot < NAT_NEIGHBOUR_SLOTS; slot++) {
		const struct nat_neighbour *n = &neighbours->slots[slot];
		const enum nat_neighbour_state state = state_of(n->mac);
		const uint64_t generation = generation_of(n->mac);
		struct nat_neighbour_image *image;

		if (n->key == 0)
			continue;
		image = nat_records_add(&r);
		if (image == NULL)
			break;
		*image = (struct nat_neighbour_image){
			n->key, n->mac, slot, n->confirmed_s
		};
		/* What was asked for is asked for again. */
		if (state == NAT_NEIGHBOUR_INCOMPLETE)
			image->mac = word_of(NAT_NEIGHBOUR_NONE, generation, 0);
		if (state == NAT_NEIGHBOUR_PROBE)
			image->mac = word_of(NAT_NEIGHBOUR_REACHABLE,
					     generation, n->mac & NAT_MAC_MASK);
	}
	if (!r.is_broken)
		mr_parcel_put(parcel, "neighbours", IMAGE_LAYOUT, r.records,
			      r.n * r.record_bytes);
	mr_parcel_put(parcel, "neighbour-seed", IMAGE_LAYOUT, &neighbours->seed,
		      sizeof(neighbours->seed));
	free(r.records);
}

static bool is_sound(const struct nat_neighbour_image *image)
{
	const enum nat_neighbour_state state = state_of(image->mac);

	return image->slot < NAT_NEIGHBOUR_SLOTS &&
	       state <= NAT_NEIGHBOUR_DOUBTFUL &&
	       state != NAT_NEIGHBOUR_INCOMPLETE &&
	       state != NAT_NEIGHBOUR_PROBE;
}

int nat_neighbours_find_images(const struct mr_parcel *parcel,
			       struct nat_neighbour_images *ret_images,
			       struct mr_reason *ret_why)
{
	const void *list = NULL;
	size_t n_bytes = 0;
	int err = mr_parcel_find(parcel, "neighbours", IMAGE_LAYOUT, &list,
				 &n_bytes, ret_why);

	if (err == 0)
		err = mr_parcel_get(parcel, "neighbour-seed", IMAGE_LAYOUT,
				    &ret_images->seed, sizeof(ret_images->seed),
				    ret_why);
	ret_images->list = list;
	ret_images->n = (uint32_t)(n_bytes / sizeof(ret_images->list[0]));
	for (uint32_t i = 0; i < ret_images->n && err == 0; i++)
		if (!is_sound(&ret_images->list[i]))
			err = fail_with(ret_why, -EPROTO,
					"entry neighbours of the state is "
					"damaged at record %u",
					i);
	return err;
}

void nat_neighbours_take(struct nat_neighbours *neighbours,
			 const struct nat_neighbour_images *images,
			 const struct nat_config *config, uint32_t now_s)
{
	memset(neighbours->slots, 0,
	       NAT_NEIGHBOUR_SLOTS * sizeof(neighbours->slots[0]));
	neighbours->seed = images->seed;
	for (uint32_t i = 0; i < images->n; i++) {
		const struct nat_neighbour_image *image = &images->list[i];
		struct nat_neighbour *to = &neighbours->slots[image->slot];

		*to = (struct nat_neighbour){ .key = image->key,
					      .mac = image->mac,
					      .confirmed_s =
						      image->confirmed_s };
		if (state_of(image->mac) != NAT_NEIGHBOUR_FIXED)
			continue;
		/* If no longer static: its next user probes it. */
		to->mac = word_of(NAT_NEIGHBOUR_REACHABLE,
				  generation_of(image->mac),
				  image->mac & NAT_MAC_MASK);
		to->confirmed_s = now_s - NAT_REACHABLE_S - 1;
	}
	/* It has room, as in the first process, or after a reload. */
	(void)nat_neighbours_follow(neighbours, NULL, config, now_s);
}

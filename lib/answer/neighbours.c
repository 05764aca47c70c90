/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A set-associative table of neighbours. A slot is written under the lock: its
 * MAC address is 0 while its address changes, and a reader that finds the same
 * MAC address before and after reading the address knows that they belong
 * together.
 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/random.h>

#include <millrace/neighbours.h>
#include <millrace/net.h>
#include <millrace/pool.h>

#include "answer/answer.h"
#include "base/hash.h"

enum {
	WAYS = 8,
	SLOTS_EACH = 4, /* of a neighbour: sets of 8 with 2 in use on average */
	TRIES = 3,
	MAC_BITS = 48,
};

static const uint64_t retry_ns = 1000000000;
static const uint64_t fresh_ns = 30000000000;
/* How long a slot is kept after its neighbour was to be asked. */
static const uint64_t keep_unknown_ns = 2000000000;
static const uint64_t keep_known_ns = 60000000000;

struct slot {
	uint64_t addr[2];
	uint64_t mac;    /* | link + 1, from bit MAC_BITS; 0: not known */
	uint64_t ask_ns; /* 0: the slot is free */
	uint32_t link;
	uint32_t n_asked; /* since it answered, up to TRIES + 1 */
};

struct mr_neighbours {
	struct mr_ctx *ctx;
	struct mr_neighbours_link *links;
	uint32_t n_links;
	uint32_t n_sets;
	uint64_t hash_keys[4];
	pthread_mutex_t lock;
	struct slot slots[]; /* then links */
};

/* What a lookup compares. */
struct key {
	uint64_t addr[2];
	uint64_t link;
};

static uint64_t load(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void store(uint64_t *word, uint64_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELEASE);
}

static struct key make_key(uint32_t link, const uint8_t *addr)
{
	struct key key = { .link = link };

	memcpy(key.addr, addr, sizeof(key.addr));
	return key;
}

static struct slot *slots_of(struct mr_neighbours *neighbours,
			     const struct key *key)
{
	const uint64_t hash =
		mri_hash(neighbours->hash_keys, key, sizeof(*key));

	return &neighbours->slots[(hash * neighbours->n_sets >> 32) * WAYS];
}

int mr_neighbours_create(struct mr_ctx *ctx, uint32_t n_max,
			 const struct mr_neighbours_link *links,
			 uint32_t n_links,
			 struct mr_neighbours **ret_neighbours,
			 struct mr_reason *reterr_reason)
{
	const uint32_t n_sets = n_max * SLOTS_EACH / WAYS + 1;
	const size_t n_slots = (size_t)n_sets * WAYS;
	struct mr_neighbours *neighbours;
	uint64_t seed;

	if (n_max == 0 || n_max > MR_NEIGHBOURS_MAX || n_links == 0 ||
	    n_links > MR_NEIGHBOURS_LINKS_MAX)
		return mr_fail(reterr_reason, -EINVAL,
			       "%u neighbours on %u links: must be 1 to %d and "
			       "1 to %d",
			       n_max, n_links, MR_NEIGHBOURS_MAX,
			       MR_NEIGHBOURS_LINKS_MAX);
	/* This short, it is never truncated. */
	if (getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0)
		return mr_fail(reterr_reason, -EIO, "getrandom: %s; try later",
			       mr_strerror(errno));
	neighbours =
		mr_alloc(ctx, MRI_CACHE_LINE,
			 sizeof(*neighbours) + n_slots * sizeof(struct slot) +
				 n_links * sizeof(*links));
	if (neighbours == NULL)
		return mr_fail(reterr_reason, -ENOMEM,
			       "no memory for %u neighbours", n_max);
	neighbours->ctx = ctx;
	neighbours->links = (void *)&neighbours->slots[n_slots];
	neighbours->n_links = n_links;
	neighbours->n_sets = n_sets;
	memcpy(neighbours->links, links, n_links * sizeof(*links));
	mri_hash_init(neighbours->hash_keys, seed);
	pthread_mutex_init(&neighbours->lock, NULL);
	*ret_neighbours = neighbours;
	return 0;
}

void mr_neighbours_destroy(struct mr_neighbours *neighbours)
{
	if (neighbours == NULL)
		return;
	pthread_mutex_destroy(&neighbours->lock);
	mr_free(neighbours->ctx, neighbours);
}

const struct mr_neighbours_link *
mri_neighbours_links(const struct mr_neighbours *neighbours, uint32_t *ret_n)
{
	*ret_n = neighbours->n_links;
	return neighbours->links;
}

static bool is_unused(const struct slot *slot, uint64_t now_ns)
{
	return slot->ask_ns == 0 ||
	       now_ns > slot->ask_ns + (slot->mac != 0 ? keep_known_ns :
							 keep_unknown_ns);
}

/* With the lock: the slot of a neighbour, new if may_add; NULL: there is none
 * free. */
static struct slot *take_slot(struct slot *slots, const struct key *key,
			      bool may_add, uint64_t now_ns)
{
	struct slot *unused = NULL;

	for (uint32_t i = 0; i < WAYS; i++) {
		struct slot *slot = &slots[i];

		if (slot->ask_ns != 0 && slot->link == key->link &&
		    memcmp(slot->addr, key->addr, sizeof(key->addr)) == 0)
			return slot;
		if (is_unused(slot, now_ns))
			unused = slot;
	}
	if (unused == NULL || !may_add)
		return NULL;
	store(&unused->mac, 0);
	store(&unused->addr[0], key->addr[0]);
	store(&unused->addr[1], key->addr[1]);
	unused->link = (uint32_t)key->link;
	unused->n_asked = 0;
	store(&unused->ask_ns, now_ns > 0 ? now_ns : 1);
	return unused;
}

static bool is_own(const struct mr_neighbours *neighbours, const uint64_t *addr)
{
	for (uint32_t i = 0; i < neighbours->n_links; i++)
		for (uint32_t j = 0; j < 2; j++)
			if (memcmp(neighbours->links[i].own[j], addr, 16) == 0)
				return true;
	return false;
}

/* A neighbour that is not known, or that is to be asked again. */
static int find_slowly(struct mr_neighbours *neighbours, struct slot *slots,
		       const struct key *key, uint64_t now_ns,
		       uint64_t *ret_mac, bool *ret_asks)
{
	struct slot *slot;
	int err = 0;

	if (is_own(neighbours, key->addr))
		return -EADDRINUSE;
	pthread_mutex_lock(&neighbours->lock);
	slot = take_slot(slots, key, true, now_ns);
	if (slot == NULL) {
		pthread_mutex_unlock(&neighbours->lock);
		return -ENOSPC;
	}
	if (now_ns >= slot->ask_ns) {
		*ret_asks = true;
		store(&slot->ask_ns, now_ns + retry_ns);
		if (slot->n_asked <= TRIES)
			slot->n_asked++;
		if (slot->n_asked > TRIES)
			store(&slot->mac, 0);
	}
	*ret_mac = slot->mac;
	if (*ret_mac == 0)
		err = slot->n_asked > TRIES ? -EHOSTUNREACH : -EAGAIN;
	pthread_mutex_unlock(&neighbours->lock);
	return err;
}

static void make_question(const struct mr_neighbours *neighbours,
			  struct mr_cache *cache, uint32_t link,
			  const uint8_t *addr, struct mr_frame *ret_question)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	const struct mr_neighbours_link *from = &neighbours->links[link];
	void *base = mr_region_base(mr_pool_region(mr_cache_pool(cache)));
	struct mr_frame frame = { 0 };

	if (mr_frag_alloc_bulk(cache, &frame.addr, 1, MR_NET_ASK_BYTES) == 1)
		frame.len = mr_net_ask_neighbour(
			mr_frame_data(base, &frame), from->mac,
			from->own[memcmp(addr, mapped, sizeof(mapped)) == 0],
			addr);
	*ret_question = frame;
}

int mr_neighbours_find(struct mr_neighbours *neighbours, struct mr_cache *cache,
		       uint32_t link, const uint8_t *addr, uint64_t now_ns,
		       uint8_t *ret_mac, struct mr_frame *ret_question)
{
	const struct key key = make_key(link, addr);
	struct slot *slots = slots_of(neighbours, &key);
	bool asks = false;
	uint64_t mac = 0;
	int err = -ENOENT;

	ret_question->len = 0;
	for (uint32_t i = 0; i < WAYS && err < 0; i++) {
		mac = load(&slots[i].mac);
		if (mac >> MAC_BITS == key.link + 1 &&
		    load(&slots[i].addr[0]) == key.addr[0] &&
		    load(&slots[i].addr[1]) == key.addr[1] &&
		    now_ns < load(&slots[i].ask_ns) &&
		    load(&slots[i].mac) == mac)
			err = 0;
	}
	if (err < 0)
		err = find_slowly(neighbours, slots, &key, now_ns, &mac, &asks);
	if (asks)
		make_question(neighbours, cache, link, addr, ret_question);
	for (uint32_t i = 0; i < 6 && err == 0; i++)
		ret_mac[i] = (uint8_t)(mac >> 8 * i);
	return err;
}

int mr_neighbours_learn(struct mr_neighbours *neighbours, uint32_t link,
			const struct mr_net_neighbour *said, int may_add,
			uint64_t now_ns)
{
	const struct key key = make_key(link, said->addr);
	uint64_t mac = (uint64_t)(link + 1) << MAC_BITS;
	struct slot *slot;
	int err = 0;

	for (uint32_t i = 0; i < 6; i++)
		mac |= (uint64_t)said->mac[i] << 8 * i;
	pthread_mutex_lock(&neighbours->lock);
	slot = take_slot(slots_of(neighbours, &key), &key, may_add, now_ns);
	if (slot != NULL) {
		slot->n_asked = 0;
		store(&slot->ask_ns, now_ns + fresh_ns);
		store(&slot->mac, mac);
	} else {
		err = may_add ? -ENOSPC : -ENOENT;
	}
	pthread_mutex_unlock(&neighbours->lock);
	return err;
}

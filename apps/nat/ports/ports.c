/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of ports and how they are chosen; see ports.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "ports_set.h"
#include "support/text.h"

/* Addresses to compare when a subscriber gets one. */
enum { N_CANDIDATES = 8 };
/* Room for more addresses, if there are fewer than that. */
enum { N_SPARE = 64 };
/* A set with a lower peak keeps its memory when it becomes empty. */
enum { N_WORTH_TRIMMING = 256 };

void *nat_set_reserve(size_t n_bytes)
{
	void *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED)
		return NULL;
	madvise(memory, n_bytes, MADV_DONTFORK);
	return memory;
}

static size_t index_bytes(const struct nat_ports *ports)
{
	return (size_t)ports->n_sets * ports->n_slots * sizeof(*ports->index);
}

static size_t bits_bytes(const struct nat_ports *ports)
{
	return (size_t)ports->n_sets * ports->set_words * sizeof(*ports->bits);
}

/* The first slot with this port or above. */
static uint32_t slot_from(const struct nat_ports *ports, uint32_t port)
{
	uint32_t slice = port >> NAT_SLICE_BITS, shard = ports->shard;
	uint32_t n = ports->n_shards;
	/* Our slices before it. */
	uint32_t n_before = (slice + n - 1 - shard) / n;

	if (slice % n == shard)
		return n_before << NAT_SLICE_BITS |
		       (port & (NAT_SLICE_PORTS - 1));
	return n_before << NAT_SLICE_BITS;
}

/* nat_config_check() ensures that each worker has a port, and that there are
 * fewer addresses than place numbers. */
static void lay_out(struct nat_ports *ports, const struct nat_config *config)
{
	uint32_t n = ports->n_shards, n_addrs = ports->externals.n_addrs;
	/* The highest number is HOLD_DOWN_END. */
	uint32_t n_room;

	ports->reciprocal = (1u << 20) / n + 1;
	ports->n_slots = (NAT_SLICES - ports->shard + n - 1) / n
			 << NAT_SLICE_BITS;
	ports->first_slot = slot_from(ports, config->ports.first);
	ports->end_slot = slot_from(ports, (uint32_t)config->ports.last + 1);
	ports->class_slot = slot_from(ports, 1024);
	n_room = (NAT_INDEX_HOLD_DOWN - 2) / NAT_PROTOS / ports->n_slots;
	ports->n_addrs_max = n_addrs + (n_addrs > N_SPARE ? n_addrs : N_SPARE);
	if (ports->n_addrs_max > n_room)
		ports->n_addrs_max = n_room;
	ports->n_sets = ports->n_addrs_max * NAT_PROTOS;
	ports->set_words = 2 * nat_bits_memory(ports->n_slots / 2);
}

int nat_ports_alloc(struct nat_ports *ports, uint32_t n_batches_max)
{
	uint32_t n_addrs = ports->n_addrs_max;
	uint32_t full_words = nat_bits_memory(n_addrs);

	ports->n_batches_max = n_batches_max;
	ports->batches = calloc(ports->n_batches_max, sizeof(*ports->batches));
	if (ports->batches == NULL)
		return -ENOMEM;
	ports->sets = calloc(ports->n_sets, sizeof(*ports->sets));
	ports->full_memory = calloc(1, nat_full_bytes(ports));
	ports->index = nat_set_reserve(index_bytes(ports));
	ports->bits = nat_set_reserve(bits_bytes(ports));
	if (ports->sets == NULL || ports->full_memory == NULL ||
	    ports->index == NULL || ports->bits == NULL)
		return -ENOMEM;
	madvise(ports->index, index_bytes(ports), MADV_HUGEPAGE);
	for (uint32_t proto = 0; proto < NAT_PROTOS; proto++)
		ports->full[proto] = nat_bits_at(
			ports->full_memory + (size_t)proto * full_words,
			n_addrs);
	return ports->blocks_per_set > 0 ? nat_blocks_alloc(ports) : 0;
}

static int init_ports(struct nat_ports *ports, const struct nat_config *config)
{
	int err = nat_externals_init(&ports->externals, config);

	if (err < 0)
		return err;
	lay_out(ports, config);
	err = nat_ports_alloc(ports, ports->hold_down_s + 2);
	for (uint32_t i = 0; i < ports->n_sets && err == 0; i++)
		ports->sets[i].n_free = ports->end_slot - ports->first_slot;
	return err < 0 ? err : nat_blocks_init(ports, config);
}

int nat_ports_create(const struct nat_config *config,
		     const struct nat_ports_env *env,
		     struct nat_ports **ret_ports, struct mr_reason *reterr_why)
{
	struct nat_ports *ports = malloc(sizeof(*ports));

	if (ports == NULL)
		goto no_memory;
	*ports = (struct nat_ports){
		.shard = env->shard,
		.n_shards = env->n_shards,
		.random = env->random,
		.subscribers = env->subscribers,
		.log = env->log,
		.opaque = env->opaque,
		.config = config->ports,
		.is_paired = config->is_paired,
		.hold_down_s = config->timeouts.hold_down_s,
	};
	if (init_ports(ports, config) == 0) {
		*ret_ports = ports;
		return 0;
	}
	nat_ports_destroy(ports);
no_memory:
	return fail_with(reterr_why, -ENOMEM,
			 "no memory for the ports of the external addresses");
}

void nat_ports_destroy(struct nat_ports *ports)
{
	if (ports == NULL)
		return;
	nat_blocks_fini(ports);
	if (ports->index != NULL)
		munmap(ports->index, index_bytes(ports));
	if (ports->bits != NULL)
		munmap(ports->bits, bits_bytes(ports));
	free(ports->full_memory);
	free(ports->sets);
	free(ports->batches);
	nat_externals_fini(&ports->externals);
	free(ports);
}

uint32_t nat_ports_addr_of(const struct nat_ports *ports, uint32_t place)
{
	return nat_external_addr(&ports->externals,
				 nat_set_of(ports, place) % ports->n_addrs_max);
}

uint16_t nat_ports_port_of(const struct nat_ports *ports, uint32_t place)
{
	uint32_t slot = place % ports->n_slots;
	uint32_t slice =
		(slot >> NAT_SLICE_BITS) * ports->n_shards + ports->shard;

	return (uint16_t)(slice << NAT_SLICE_BITS |
			  (slot & (NAT_SLICE_PORTS - 1)));
}

void nat_set_note_room(struct nat_ports *ports, uint32_t set)
{
	uint32_t n_addrs = ports->n_addrs_max;

	if (nat_set_room(ports, set) == 0)
		nat_bits_add(&ports->full[set / n_addrs], set % n_addrs);
	else
		nat_bits_remove(&ports->full[set / n_addrs], set % n_addrs);
}

static void touch_set(struct nat_ports *ports, struct nat_port_set *set)
{
	if (set->is_touched)
		return;
	set->is_touched = true;
	ports->n_touched++;
}

static void set_bit(struct nat_ports *ports, uint32_t place)
{
	uint32_t slot = place % ports->n_slots;
	struct nat_bits bits =
		nat_set_bits(ports, nat_set_of(ports, place), slot & 1);

	nat_bits_add(&bits, slot / 2);
}

static void clear_bit(struct nat_ports *ports, uint32_t place)
{
	uint32_t slot = place % ports->n_slots;
	struct nat_bits bits =
		nat_set_bits(ports, nat_set_of(ports, place), slot & 1);

	nat_bits_remove(&bits, slot / 2);
}

void nat_set_take(struct nat_ports *ports, uint32_t place, uint32_t map_id)
{
	uint32_t number = nat_set_of(ports, place);
	struct nat_port_set *set = &ports->sets[number];

	touch_set(ports, set);
	set_bit(ports, place);
	ports->index[place] = map_id + 1;
	ports->n_used++;
	set->n_free--;
	if (++set->n_busy > set->n_peak)
		set->n_peak = set->n_busy;
	nat_blocks_add_busy(ports, place);
	nat_set_note_room(ports, number);
}

/* Return whole pages of n_bytes to the kernel; they then read as zeros. */
static void discard_pages(void *memory, size_t n_bytes)
{
	uintptr_t first = ((uintptr_t)memory + 4095) & ~(uintptr_t)4095;
	uintptr_t end = ((uintptr_t)memory + n_bytes) & ~(uintptr_t)4095;

	if (first < end)
		madvise((void *)first, end - first, MADV_DONTNEED);
}

static void trim_set(struct nat_ports *ports, uint32_t number)
{
	struct nat_port_set *set = &ports->sets[number];

	if (set->n_busy > 0 || set->n_static > 0 ||
	    set->n_peak < N_WORTH_TRIMMING)
		return;
	discard_pages(ports->index + (size_t)number * ports->n_slots,
		      ports->n_slots * sizeof(*ports->index));
	discard_pages(ports->bits + (size_t)number * ports->set_words,
		      ports->set_words * sizeof(*ports->bits));
	set->n_peak = 0;
	set->is_touched = false;
	ports->n_touched--;
}

void nat_set_release(struct nat_ports *ports, uint32_t place, uint32_t now_s)
{
	uint32_t number = nat_set_of(ports, place);

	clear_bit(ports, place);
	ports->index[place] = 0;
	ports->sets[number].n_free++;
	ports->sets[number].n_busy--;
	nat_blocks_drop_busy(ports, place, now_s);
	nat_set_note_room(ports, number);
	trim_set(ports, number);
}

bool nat_ports_set_static(struct nat_ports *ports, uint32_t place,
			  uint32_t map_id)
{
	uint32_t number = nat_set_of(ports, place);
	struct nat_port_set *set = &ports->sets[number];

	if (ports->index[place] != 0)
		return false;
	touch_set(ports, set);
	set_bit(ports, place);
	ports->index[place] = map_id + 1;
	set->n_static++;
	if (nat_ports_in_range(ports, place)) {
		set->n_free--;
		ports->n_static++;
		nat_set_note_room(ports, number);
	}
	return true;
}

void nat_ports_clear_static(struct nat_ports *ports, uint32_t place)
{
	uint32_t number = nat_set_of(ports, place);

	clear_bit(ports, place);
	ports->index[place] = 0;
	ports->sets[number].n_static--;
	if (nat_ports_in_range(ports, place)) {
		ports->sets[number].n_free++;
		ports->n_static--;
		nat_set_note_room(ports, number);
	}
}

/* Slots first..end-1 of one parity, from a random one on. */
static uint32_t pick_parity(struct nat_ports *ports, uint32_t set,
			    uint32_t first, uint32_t end, uint32_t parity)
{
	struct nat_bits bits = nat_set_bits(ports, set, parity);
	uint32_t from = (first + 1 - parity) / 2, to = (end + 1 - parity) / 2;
	uint32_t start, i;

	if (from >= to)
		return NAT_PLACE_NONE;
	start = from + nat_random_below(ports->random, to - from);
	i = nat_bits_find(&bits, start, to);
	if (i == NAT_BITS_NONE)
		i = nat_bits_find(&bits, from, start);
	return i == NAT_BITS_NONE ? NAT_PLACE_NONE : 2 * i + parity;
}

uint32_t nat_set_pick(struct nat_ports *ports, uint32_t set, uint32_t first,
		      uint32_t end, uint16_t inside_port)
{
	uint32_t parity = ports->config.keeps_parity ?
				  inside_port & 1u :
				  nat_random_below(ports->random, 2);
	uint32_t slot = pick_parity(ports, set, first, end, parity);

	/* RFC 4787 REQ-4 recommends parity; any port is better than none. */
	if (slot == NAT_PLACE_NONE)
		slot = pick_parity(ports, set, first, end, parity ^ 1);
	return slot;
}

/* The inside port itself if it is free, within first..end-1. */
static uint32_t pick_same(const struct nat_ports *ports, uint32_t set,
			  uint16_t inside_port)
{
	uint32_t slot = nat_ports_slot(ports, inside_port);
	struct nat_bits bits = nat_set_bits(ports, set, slot & 1);

	if (slot < ports->first_slot || slot >= ports->end_slot ||
	    nat_bits_has(&bits, slot / 2))
		return NAT_PLACE_NONE;
	return slot;
}

/* A free slot of an address, in the order of the RFCs' preferences. */
static uint32_t pick_slot(struct nat_ports *ports, uint32_t set,
			  uint16_t inside_port)
{
	uint32_t first = ports->first_slot, end = ports->end_slot;
	uint32_t middle = ports->class_slot;
	uint32_t slot = NAT_PLACE_NONE;

	if (ports->config.keeps_port)
		slot = pick_same(ports, set, inside_port);
	if (slot == NAT_PLACE_NONE && ports->config.keeps_class) {
		if (inside_port < 1024 && middle < end)
			slot = nat_set_pick(ports, set, first, middle,
					    inside_port);
		else if (inside_port >= 1024 && middle > first)
			slot = nat_set_pick(ports, set, middle, end,
					    inside_port);
	}
	if (slot == NAT_PLACE_NONE)
		slot = nat_set_pick(ports, set, first, end, inside_port);
	return slot;
}

/* The one with the most room of a few, or of all if they are few. */
static uint32_t roomiest_address(struct nat_ports *ports, uint32_t proto)
{
	uint32_t n_addrs = ports->externals.n_addrs;
	uint32_t start = nat_random_below(ports->random, n_addrs);
	uint32_t best = NAT_EXTERNAL_NONE, best_room = 0;

	for (uint32_t i = 0; i < N_CANDIDATES && i < n_addrs; i++) {
		uint32_t a = n_addrs <= N_CANDIDATES ?
				     (start + i) % n_addrs :
				     nat_random_below(ports->random, n_addrs);
		uint32_t room =
			nat_set_room(ports, nat_set_number(ports, proto, a));

		if (room > best_room) {
			best = a;
			best_room = room;
		}
	}
	if (best == NAT_EXTERNAL_NONE)
		best = nat_bits_find(&ports->full[proto], start, n_addrs);
	if (best == NAT_BITS_NONE)
		best = nat_bits_find(&ports->full[proto], 0, start);
	return best;
}

uint32_t nat_ports_address(struct nat_ports *ports, uint32_t proto,
			   struct nat_subscriber *subscriber)
{
	uint32_t a;

	if (ports->is_paired && subscriber->external != 0)
		return subscriber->external - 1;
	a = roomiest_address(ports, proto);
	if (a != NAT_EXTERNAL_NONE)
		subscriber->external = a + 1;
	return a;
}

enum nat_drop nat_ports_take(struct nat_ports *ports, uint32_t proto,
			     uint32_t subscriber_id, uint16_t inside_port,
			     uint32_t map_id, uint32_t now_s,
			     uint32_t *ret_place)
{
	struct nat_subscriber *subscriber =
		nat_subscriber_at(ports->subscribers, subscriber_id);
	uint32_t a, set, slot;

	if (ports->blocks != NULL) {
		enum nat_drop drop =
			nat_blocks_take(ports, proto, subscriber_id,
					inside_port, now_s, ret_place);
		if (drop == NAT_OK)
			nat_set_take(ports, *ret_place, map_id);
		return drop;
	}
	a = nat_ports_address(ports, proto, subscriber);
	if (a == NAT_EXTERNAL_NONE)
		return NAT_DROP_NO_PORT;
	set = nat_set_number(ports, proto, a);
	slot = pick_slot(ports, set, inside_port);
	if (slot == NAT_PLACE_NONE)
		return NAT_DROP_NO_PORT;
	*ret_place = set * ports->n_slots + slot;
	nat_set_take(ports, *ret_place, map_id);
	return NAT_OK;
}

bool nat_ports_take_place(struct nat_ports *ports, uint32_t place,
			  uint32_t subscriber_id, uint32_t map_id,
			  uint32_t now_s)
{
	struct nat_subscriber *subscriber =
		nat_subscriber_at(ports->subscribers, subscriber_id);

	if (ports->index[place] != 0 || !nat_ports_in_range(ports, place) ||
	    !nat_blocks_admit(ports, place, subscriber_id, now_s))
		return false;
	if (subscriber->external == 0)
		subscriber->external =
			nat_set_of(ports, place) % ports->n_addrs_max + 1;
	nat_set_take(ports, place, map_id);
	return true;
}

uint32_t nat_ports_pair(struct nat_ports *ports, uint32_t subscriber_id,
			uint32_t proto)
{
	struct nat_subscriber *subscriber =
		nat_subscriber_at(ports->subscribers, subscriber_id);
	uint32_t a = nat_ports_address(ports, proto, subscriber);

	return a == NAT_EXTERNAL_NONE ? 0 :
					nat_external_addr(&ports->externals, a);
}

/* Deterministic blocks depend on the order of networks and addresses. */
static bool computes_the_same(const struct nat_ports *ports,
			      const struct nat_config *config,
			      const struct nat_config *next,
			      const struct nat_externals *externals)
{
	return !next->ports.is_deterministic ||
	       (nat_externals_equal(&ports->externals, externals) &&
		config->n_subscribers == next->n_subscribers &&
		memcmp(config->subscribers, next->subscribers,
		       next->n_subscribers * sizeof(*next->subscribers)) == 0);
}

bool nat_ports_can_follow(const struct nat_ports *ports,
			  const struct nat_config *config,
			  const struct nat_config *next,
			  struct nat_externals *ret_externals)
{
	const struct nat_port_config *a = &config->ports, *b = &next->ports;
	struct nat_externals externals;
	bool can;

	if (a->first != b->first || a->last != b->last ||
	    a->block != b->block ||
	    a->is_deterministic != b->is_deterministic ||
	    next->timeouts.hold_down_s + 2ull > ports->n_batches_max ||
	    nat_externals_init(&externals, next) < 0)
		return false;
	can = computes_the_same(ports, config, next, &externals) &&
	      nat_externals_extend(&ports->externals, &externals,
				   ports->n_addrs_max, ret_externals);
	nat_externals_fini(&externals);
	return can;
}

void nat_ports_follow(struct nat_ports *ports, const struct nat_config *next,
		      const struct nat_externals *externals)
{
	uint16_t block = ports->config.block;

	nat_externals_fini(&ports->externals);
	ports->externals = *externals;
	ports->config = next->ports;
	ports->config.block = block;
	if (ports->config.max_blocks == 0)
		ports->config.max_blocks = 1;
	ports->is_paired = next->is_paired;
	ports->hold_down_s = next->timeouts.hold_down_s;
}

void nat_ports_stats(const struct nat_ports *ports,
		     struct nat_ports_stats *stats)
{
	uint64_t per_set = ports->n_slots * sizeof(*ports->index) +
			   ports->set_words * sizeof(*ports->bits);

	*stats = (struct nat_ports_stats){
		.n_all = (uint64_t)ports->externals.n_addrs * NAT_PROTOS *
			 (ports->end_slot - ports->first_slot),
		.n_used = ports->n_used,
		.n_hold_down = ports->n_hold_down,
		.n_static = ports->n_static,
		.bytes = sizeof(*ports) + ports->n_sets * sizeof(*ports->sets) +
			 ports->n_batches_max * sizeof(*ports->batches) +
			 ports->n_touched * per_set,
	};
	for (uint32_t i = 0; i < ports->n_sets; i++)
		if (i % ports->n_addrs_max < ports->externals.n_addrs)
			stats->n_free += ports->sets[i].n_free;
}

uint32_t nat_subscriber_get(struct mr_flow_table *table, uint32_t addr)
{
	uint32_t id = mr_flow_find(table, &addr);

	if (id == MR_FLOW_NONE && mr_flow_add(table, &addr, &id) < 0)
		return MR_FLOW_NONE;
	return id;
}

void nat_subscriber_put(struct mr_flow_table *table, uint32_t id)
{
	const struct nat_subscriber *subscriber = nat_subscriber_at(table, id);
	uint32_t n = subscriber->n_mappings + subscriber->n_static;

	for (uint32_t proto = 0; proto < NAT_PROTOS; proto++)
		n += subscriber->n_blocks[proto];
	if (n == 0)
		mr_flow_remove(table, id);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of ports: RFC 6888 REQ-14 asks for short logs, so a subscriber gets a
 * run of ports at once, whose begin and end are logged. With deterministic
 * ports (RFC 7422) the block is computed from the inside address, and nothing
 * needs to be logged.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "ports_set.h"

enum { BLOCK_NONE = UINT32_MAX, MIN_BLOCK = 8 };

static size_t blocks_bytes(const struct nat_ports *ports)
{
	return (size_t)ports->n_sets * ports->blocks_per_set *
	       sizeof(*ports->blocks);
}

size_t nat_block_bits_bytes(const struct nat_ports *ports)
{
	return (size_t)ports->n_sets * ports->block_words * sizeof(uint64_t);
}

/* Only whole blocks in the port range: a computed one is never smaller. */
static void whole_blocks(struct nat_ports *ports, uint32_t size)
{
	ports->first_block = (ports->first_slot + size - 1) / size;
	ports->end_block = ports->end_slot / size;
}

/*
 * The size of deterministic blocks: from the configuration, or the largest that
 * suffices for each address of the inside networks, as nat_config_check()
 * found.
 */
static void fit_deterministic(struct nat_ports *ports,
			      const struct nat_config *config)
{
	uint64_t n_subscribers = nat_config_n_subscribers(config);
	uint32_t size = config->ports.block > 0 ? config->ports.block : 32768;

	for (;; size /= 2) {
		whole_blocks(ports, size);
		if (config->ports.block > 0 || size == MIN_BLOCK ||
		    (ports->end_block > ports->first_block &&
		     (uint64_t)(ports->end_block - ports->first_block) *
				     ports->externals.n_addrs >=
			     n_subscribers))
			break;
	}
	ports->config.block = (uint16_t)size;
}

int nat_blocks_alloc(struct nat_ports *ports)
{
	ports->blocks = nat_set_reserve(blocks_bytes(ports));
	ports->block_bits = nat_set_reserve(nat_block_bits_bytes(ports));
	return ports->blocks == NULL || ports->block_bits == NULL ? -ENOMEM : 0;
}

int nat_blocks_init(struct nat_ports *ports, const struct nat_config *config)
{
	const uint32_t size = config->ports.block;

	if (size == 0 && !config->ports.is_deterministic)
		return 0;
	if (config->ports.is_deterministic) {
		fit_deterministic(ports, config);
	} else {
		ports->first_block = ports->first_slot / size;
		ports->end_block = (ports->end_slot + size - 1) / size;
	}
	if (ports->config.max_blocks == 0)
		ports->config.max_blocks = 1;
	ports->blocks_per_set = (ports->n_slots + ports->config.block - 1) /
				ports->config.block;
	ports->block_words = nat_bits_memory(ports->blocks_per_set);
	if (nat_blocks_alloc(ports) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < ports->n_sets; i++)
		ports->sets[i].n_free_blocks =
			ports->end_block - ports->first_block;
	return 0;
}

void nat_blocks_fini(struct nat_ports *ports)
{
	if (ports->blocks != NULL)
		munmap(ports->blocks, blocks_bytes(ports));
	if (ports->block_bits != NULL)
		munmap(ports->block_bits, nat_block_bits_bytes(ports));
}

/* The number of the block that a place is in. */
static uint32_t block_of(const struct nat_ports *ports, uint32_t place)
{
	return nat_set_of(ports, place) * ports->blocks_per_set +
	       place % ports->n_slots / ports->config.block;
}

static struct nat_bits owned_bits(const struct nat_ports *ports, uint32_t set)
{
	return nat_bits_at(ports->block_bits + (size_t)set * ports->block_words,
			   ports->blocks_per_set);
}

/* The slots of a block within the port range. */
static void slots_of(const struct nat_ports *ports, uint32_t block,
		     uint32_t *ret_first, uint32_t *ret_end)
{
	uint32_t first = block % ports->blocks_per_set * ports->config.block;
	uint32_t end = first + ports->config.block;

	*ret_first = first > ports->first_slot ? first : ports->first_slot;
	*ret_end = end < ports->end_slot ? end : ports->end_slot;
}

/* An event for each contiguous run of ports: slices are 64 ports long. */
static void log_block(const struct nat_ports *ports, uint32_t block,
		      bool begins, uint32_t now_s)
{
	uint32_t set = block / ports->blocks_per_set, first, end;
	const struct nat_subscriber *owner;
	uint32_t n;

	if (ports->log == NULL || ports->config.is_deterministic)
		return;
	owner = nat_subscriber_at(ports->subscribers,
				  ports->blocks[block].owner - 1);
	slots_of(ports, block, &first, &end);
	for (uint32_t slot = first; slot < end; slot += n) {
		uint32_t place = set * ports->n_slots + slot;
		const struct nat_log_event event = {
			.what = begins ? NAT_LOG_BLOCK_BEGIN :
					 NAT_LOG_BLOCK_END,
			.now_s = now_s,
			.proto = nat_ip_proto_of(ports, place),
			.inside_addr = owner->addr,
			.outside_addr = htonl(nat_ports_addr_of(ports, place)),
			.outside_port = htons(nat_ports_port_of(ports, place)),
			.n_ports =
				(uint16_t)(n = ports->n_shards == 1 ?
						       end - slot :
						       NAT_SLICE_PORTS -
							       slot % NAT_SLICE_PORTS),
		};
		ports->log(ports->opaque, &event);
	}
}

/* Assign a block to a subscriber. false: none of its ports is free. */
static bool claim_block(struct nat_ports *ports, uint32_t block,
			uint32_t subscriber_id, uint32_t now_s)
{
	uint32_t set = block / ports->blocks_per_set;
	uint32_t proto = set / ports->n_addrs_max, first, end;
	struct nat_subscriber *subscriber =
		nat_subscriber_at(ports->subscribers, subscriber_id);
	struct nat_bits owned = owned_bits(ports, set);
	uint32_t n_usable = 0;

	slots_of(ports, block, &first, &end);
	for (uint32_t parity = 0; parity < 2; parity++) {
		struct nat_bits bits = nat_set_bits(ports, set, parity);

		n_usable += nat_bits_count_free(&bits, (first + 1 - parity) / 2,
						(end + 1 - parity) / 2);
	}
	/* It stays marked without an owner, so that nobody tries it again. */
	nat_bits_add(&owned, block % ports->blocks_per_set);
	ports->sets[set].n_free_blocks--;
	nat_set_note_room(ports, set);
	if (n_usable == 0)
		return false;
	ports->blocks[block] = (struct nat_block){
		.owner = subscriber_id + 1,
		.next = subscriber->blocks[proto],
		.n_usable = n_usable,
	};
	subscriber->blocks[proto] = block + 1;
	subscriber->n_blocks[proto]++;
	subscriber->external = set % ports->n_addrs_max + 1;
	log_block(ports, block, true, now_s);
	return true;
}

/* Where RFC 7422's function puts this subscriber. */
static uint32_t computed_block(const struct nat_ports *ports, uint32_t proto,
			       uint32_t ordinal)
{
	uint32_t per_addr = ports->end_block - ports->first_block;
	uint32_t set = nat_set_number(ports, proto, ordinal / per_addr);

	return set * ports->blocks_per_set + ports->first_block +
	       ordinal % per_addr;
}

/* Assign a free block to a subscriber; BLOCK_NONE: none. */
static uint32_t claim_any(struct nat_ports *ports, uint32_t proto,
			  uint32_t subscriber_id, uint32_t now_s)
{
	struct nat_subscriber *subscriber =
		nat_subscriber_at(ports->subscribers, subscriber_id);
	uint32_t n = ports->end_block - ports->first_block;
	uint32_t a = nat_ports_address(ports, proto, subscriber);

	while (a != NAT_EXTERNAL_NONE) {
		uint32_t set = nat_set_number(ports, proto, a), b, block;
		uint32_t start =
			ports->first_block + nat_random_below(ports->random, n);
		struct nat_bits owned = owned_bits(ports, set);

		b = nat_bits_find(&owned, start, ports->end_block);
		if (b == NAT_BITS_NONE)
			b = nat_bits_find(&owned, ports->first_block, start);
		if (b == NAT_BITS_NONE)
			return BLOCK_NONE;
		block = set * ports->blocks_per_set + b;
		if (claim_block(ports, block, subscriber_id, now_s))
			return block;
		a = nat_ports_address(ports, proto, subscriber);
	}
	return BLOCK_NONE;
}

static uint32_t pick_in(struct nat_ports *ports, uint32_t block,
			uint16_t inside_port)
{
	uint32_t set = block / ports->blocks_per_set, first, end, slot;

	slots_of(ports, block, &first, &end);
	if (ports->config.keeps_port) {
		slot = nat_ports_slot(ports, inside_port);
		if (slot >= first && slot < end) {
			struct nat_bits bits =
				nat_set_bits(ports, set, slot & 1);

			if (!nat_bits_has(&bits, slot / 2))
				return set * ports->n_slots + slot;
		}
	}
	slot = nat_set_pick(ports, set, first, end, inside_port);
	return set * ports->n_slots + slot;
}

/* A free port in one of the subscriber's blocks, or NAT_PLACE_NONE. */
static uint32_t pick_in_own(struct nat_ports *ports, uint32_t proto,
			    const struct nat_subscriber *subscriber,
			    uint16_t inside_port)
{
	/* At most max_blocks long. */
	for (uint32_t b = subscriber->blocks[proto]; b != 0;
	     b = ports->blocks[b - 1].next)
		if (ports->blocks[b - 1].n_busy < ports->blocks[b - 1].n_usable)
			return pick_in(ports, b - 1, inside_port);
	return NAT_PLACE_NONE;
}

enum nat_drop nat_blocks_take(struct nat_ports *ports, uint32_t proto,
			      uint32_t subscriber_id, uint16_t inside_port,
			      uint32_t now_s, uint32_t *ret_place)
{
	struct nat_subscriber *subscriber =
		nat_subscriber_at(ports->subscribers, subscriber_id);
	uint32_t block;

	*ret_place = pick_in_own(ports, proto, subscriber, inside_port);
	if (*ret_place != NAT_PLACE_NONE)
		return NAT_OK;
	if (ports->config.is_deterministic) {
		if (subscriber->n_blocks[proto] > 0)
			return NAT_DROP_QUOTA;
		block = computed_block(ports, proto, subscriber->ordinal);
		if (!claim_block(ports, block, subscriber_id, now_s))
			return NAT_DROP_QUOTA;
	} else {
		if (subscriber->n_blocks[proto] >= ports->config.max_blocks)
			return NAT_DROP_QUOTA;
		block = claim_any(ports, proto, subscriber_id, now_s);
		if (block == BLOCK_NONE)
			return NAT_DROP_NO_PORT;
	}
	*ret_place = pick_in(ports, block, inside_port);
	return NAT_OK;
}

bool nat_blocks_admit(struct nat_ports *ports, uint32_t place,
		      uint32_t subscriber_id, uint32_t now_s)
{
	const struct nat_subscriber *subscriber =
		nat_subscriber_at(ports->subscribers, subscriber_id);
	uint32_t set = nat_set_of(ports, place), block;
	uint32_t proto = set / ports->n_addrs_max;
	struct nat_bits owned;

	if (ports->blocks == NULL)
		return true;
	block = block_of(ports, place);
	if (ports->blocks[block].owner != 0)
		return ports->blocks[block].owner == subscriber_id + 1;
	owned = owned_bits(ports, set);
	if (nat_bits_has(&owned, block % ports->blocks_per_set) ||
	    subscriber->n_blocks[proto] >= ports->config.max_blocks)
		return false;
	if (ports->config.is_deterministic &&
	    block != computed_block(ports, proto, subscriber->ordinal))
		return false;
	return claim_block(ports, block, subscriber_id, now_s);
}

void nat_blocks_forget(struct nat_ports *ports, uint32_t subscriber_id,
		       uint32_t now_s)
{
	struct nat_subscriber *subscriber =
		nat_subscriber_at(ports->subscribers, subscriber_id);

	for (uint32_t proto = 0; proto < NAT_PROTOS; proto++) {
		for (uint32_t b = subscriber->blocks[proto]; b != 0;
		     b = ports->blocks[b - 1].next)
			log_block(ports, b - 1, false, now_s);
		subscriber->blocks[proto] = 0;
		subscriber->n_blocks[proto] = 0;
	}
}

uint32_t nat_blocks_owner(const struct nat_ports *ports, uint32_t place)
{
	return ports->blocks == NULL ?
		       MR_FLOW_NONE :
		       ports->blocks[block_of(ports, place)].owner - 1;
}

void nat_blocks_tell(const struct nat_ports *ports, uint32_t subscriber_id,
		     nat_log_fn *fn, void *opaque)
{
	const struct nat_subscriber *subscriber =
		nat_subscriber_at(ports->subscribers, subscriber_id);
	struct nat_ports logged = *ports;

	logged.log = fn;
	logged.opaque = opaque;
	for (uint32_t proto = 0; proto < NAT_PROTOS; proto++)
		for (uint32_t b = subscriber->blocks[proto]; b != 0;
		     b = ports->blocks[b - 1].next)
			log_block(&logged, b - 1, true, 0);
}

void nat_blocks_add_busy(struct nat_ports *ports, uint32_t place)
{
	if (ports->blocks != NULL)
		ports->blocks[block_of(ports, place)].n_busy++;
}

/* Remove a block from its owner's list, which may be gone afterwards. */
static void give_up(struct nat_ports *ports, uint32_t block, uint32_t now_s)
{
	uint32_t set = block / ports->blocks_per_set;
	uint32_t proto = set / ports->n_addrs_max;
	uint32_t owner_id = ports->blocks[block].owner - 1;
	struct nat_subscriber *owner =
		nat_subscriber_at(ports->subscribers, owner_id);
	struct nat_bits owned = owned_bits(ports, set);
	uint32_t *link = &owner->blocks[proto];

	log_block(ports, block, false, now_s);
	while (*link != block + 1)
		link = &ports->blocks[*link - 1].next;
	*link = ports->blocks[block].next;
	owner->n_blocks[proto]--;
	ports->blocks[block] = (struct nat_block){ 0 };
	nat_bits_remove(&owned, block % ports->blocks_per_set);
	ports->sets[set].n_free_blocks++;
	nat_subscriber_put(ports->subscribers, owner_id);
}

void nat_blocks_drop_busy(struct nat_ports *ports, uint32_t place,
			  uint32_t now_s)
{
	uint32_t block;

	if (ports->blocks == NULL)
		return;
	block = block_of(ports, place);
	if (--ports->blocks[block].n_busy == 0 &&
	    ports->blocks[block].owner != 0)
		give_up(ports, block, now_s);
}

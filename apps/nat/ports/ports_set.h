/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files that implement ports.h. */
#ifndef NAT_PORTS_SET_H
#define NAT_PORTS_SET_H

#include <stdlib.h>

#include "ports.h"
#include "subscriber.h"

static inline uint32_t nat_set_of(const struct nat_ports *ports, uint32_t place)
{
	return place / ports->n_slots;
}

static inline uint32_t nat_set_number(const struct nat_ports *ports,
				      uint32_t proto, uint32_t addr_index)
{
	return proto * ports->n_addrs_max + addr_index;
}

/* The bits of a set's odd or even slots: bit i is slot 2 i + parity. */
static inline struct nat_bits nat_set_bits(const struct nat_ports *ports,
					   uint32_t set, uint32_t parity)
{
	uint32_t n_words = ports->set_words / 2;

	return nat_bits_at(ports->bits + (size_t)set * ports->set_words +
				   (size_t)parity * n_words,
			   ports->n_slots / 2);
}

/* Units that can still be assigned: blocks if enabled, else ports. */
static inline uint32_t nat_set_room(const struct nat_ports *ports, uint32_t set)
{
	return ports->blocks != NULL ? ports->sets[set].n_free_blocks :
				       ports->sets[set].n_free;
}

/* Address space that uses memory only where touched; NULL: none. */
void *nat_set_reserve(size_t n_bytes);

/*
 * The index of the address for a new port or block, or NAT_EXTERNAL_NONE. A
 * paired subscriber keeps its address even if full: RFC 6888 REQ-2 is a MUST.
 */
uint32_t nat_ports_address(struct nat_ports *ports, uint32_t proto,
			   struct nat_subscriber *subscriber);

/* Call after its room has changed. */
void nat_set_note_room(struct nat_ports *ports, uint32_t set);

/* A free slot in first..end-1, or NAT_PLACE_NONE. */
uint32_t nat_set_pick(struct nat_ports *ports, uint32_t set, uint32_t first,
		      uint32_t end, uint16_t inside_port);

/* Mark a free slot as used by a mapping. */
void nat_set_take(struct nat_ports *ports, uint32_t place, uint32_t map_id);

/* Mark it as free, after its hold-down. */
void nat_set_release(struct nat_ports *ports, uint32_t place, uint32_t now_s);

/* For n_batches_max seconds in hold-down, and blocks_per_set blocks. 0 or
 * -ENOMEM; then nat_ports_destroy(). */
int nat_ports_alloc(struct nat_ports *ports, uint32_t n_batches_max);

static inline size_t nat_full_bytes(const struct nat_ports *ports)
{
	return (size_t)nat_bits_memory(ports->n_addrs_max) * NAT_PROTOS *
	       sizeof(*ports->full_memory);
}

/* blocks.c */
int nat_blocks_alloc(struct nat_ports *ports);
size_t nat_block_bits_bytes(const struct nat_ports *ports);
int nat_blocks_init(struct nat_ports *ports, const struct nat_config *config);
void nat_blocks_fini(struct nat_ports *ports);
enum nat_drop nat_blocks_take(struct nat_ports *ports, uint32_t proto,
			      uint32_t subscriber_id, uint16_t inside_port,
			      uint32_t now_s, uint32_t *ret_place);
bool nat_blocks_admit(struct nat_ports *ports, uint32_t place,
		      uint32_t subscriber_id, uint32_t now_s);
/* The owner of a port's block; MR_FLOW_NONE: none. */
uint32_t nat_blocks_owner(const struct nat_ports *ports, uint32_t place);
/* Tell fn of each run of ports in a subscriber's blocks, as the log has it; no
 * blocks: of none. */
void nat_blocks_tell(const struct nat_ports *ports, uint32_t subscriber_id,
		     nat_log_fn *fn, void *opaque);
void nat_blocks_add_busy(struct nat_ports *ports, uint32_t place);
void nat_blocks_drop_busy(struct nat_ports *ports, uint32_t place,
			  uint32_t now_s);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * External ports: which are free, and which mappings use the others.
 *
 *     free --take--> used --free--> hold-down --release, 120 s later--> free
 *
 * A worker has slices of each address's ports: 64 of them, then those of the
 * other workers, then 64 again. Its ports are numbered without gaps: slots. A
 * place is a slot of an address and protocol; an array has four bytes per
 * place: the mapping that uses it, or the link of the hold-down queue. Its
 * memory is touched only where ports are used.
 *
 *     array | UDP, address 0 | UDP, address 1 | ... | TCP, address 0 | ...
 *     set   | per address and protocol, bits of the ports that are not free,
 *             odd and even ones apart, so that parity costs no scan
 *
 * Blocks are aligned runs of slots that belong to one subscriber as long as any
 * of its ports is in use or in hold-down.
 */
#ifndef NAT_PORTS_H
#define NAT_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include <millrace/flow.h>

#include "bits.h"
#include "config/config.h"
#include "drop.h"
#include "log_event.h"
#include "external.h"
#include "random.h"

/*
 * Which external ports belong to this worker: those with (port >>
 * NAT_SLICE_BITS) % n_shards == shard.
 */
enum { NAT_SLICE_BITS = 6 };

/* The worker with the address-only mappings of an external address (host
 * order), which is all that their packets contain. */
static inline uint32_t nat_other_shard(uint32_t outside_addr, uint32_t n_shards)
{
	return outside_addr % n_shards;
}

/* The worker of an inside address. addr: network order. */
static inline uint32_t nat_steer_subscriber(uint32_t addr, uint32_t n_workers)
{
	/* Addresses of a network differ in their last bits, which come first in
	 * memory; the upper half of a product depends on all of them. */
	const uint32_t hash = (addr * 0x9e3779b1u) ^ (addr >> 15);

	return (uint32_t)(((uint64_t)(hash * 0x85ebca6bu) * n_workers) >> 32);
}

enum {
	NAT_PLACE_NONE = UINT32_MAX,
	NAT_SLICE_PORTS = 1 << NAT_SLICE_BITS,
	NAT_SLICES = 65536 >> NAT_SLICE_BITS,
};

/* The highest bit of an array entry tells what it is. */
enum { NAT_INDEX_HOLD_DOWN = 1u << 31 };

/* The ports of one address and protocol. */
struct nat_port_set {
	uint32_t n_free;
	uint32_t n_busy; /* used or in hold-down */
	uint32_t n_peak; /* maximum of n_busy since its memory was freed */
	uint32_t n_static;
	uint32_t n_free_blocks;
	bool is_touched;
};

struct nat_block {
	uint32_t owner;    /* 1 + number of the subscriber; 0: free */
	uint32_t next;     /* of the same owner: 1 + number */
	uint32_t n_usable; /* ports, except static or out of range */
	uint32_t n_busy;
};

/* Ports freed in the same second. */
struct nat_batch {
	uint32_t freed_s;
	uint32_t head; /* place, or HOLD_DOWN_END */
};

struct nat_ports {
	/* Read by find_in. */
	uint32_t *index; /* by place; 0: free */
	struct nat_externals externals;
	uint32_t n_slots;     /* per address and protocol */
	uint32_t n_addrs_max; /* capacity of the arrays */
	uint32_t shard, n_shards;
	uint32_t reciprocal; /* of n_shards; see nat_ports_slot() */

	struct nat_port_config config;
	struct nat_random *random;
	struct mr_flow_table *subscribers;
	nat_log_fn *log;
	void *opaque;
	bool is_paired;

	uint32_t first_slot, end_slot; /* within the port range */
	uint32_t class_slot;           /* the first of port 1024 and up */
	uint32_t n_sets;               /* protocols times n_addrs_max */
	struct nat_port_set *sets;
	uint64_t *bits; /* set_words for each set */
	uint32_t set_words;
	uint64_t *full_memory;
	struct nat_bits full[NAT_PROTOS]; /* addresses without room */

	uint32_t blocks_per_set, first_block, end_block;
	struct nat_block *blocks; /* NULL: no blocks */
	uint64_t *block_bits;     /* those with an owner */
	uint32_t block_words;     /* for each set */

	uint32_t hold_down_s;
	uint32_t n_batches_max, first_batch, n_batches;
	struct nat_batch *batches; /* a ring */

	uint64_t n_used, n_hold_down, n_static, n_touched;
};

/* All ports = free + used + hold-down + static. */
struct nat_ports_stats {
	uint64_t n_all, n_free, n_used, n_hold_down, n_static;
	uint64_t bytes;
};

/* The environment of ports. */
struct nat_ports_env {
	uint32_t shard, n_shards;
	struct nat_random *random;
	struct mr_flow_table *subscribers;
	nat_log_fn *log;
	void *opaque;
};

/* 0 or -ENOMEM; the configuration is checked. */
int nat_ports_create(const struct nat_config *config,
		     const struct nat_ports_env *env,
		     struct nat_ports **ret_ports,
		     struct mr_reason *reterr_why);
void nat_ports_destroy(struct nat_ports *ports);

/* The protocol of ports; NAT_PROTOS: it has none. */
static inline uint32_t nat_proto_of(uint8_t ip_proto)
{
	return ip_proto == 17 ? NAT_UDP :
	       ip_proto == 6  ? NAT_TCP :
	       ip_proto == 1  ? NAT_ICMP :
				NAT_PROTOS;
}

/* The IP protocol of a place; the inverse of that. */
static inline uint8_t nat_ip_proto_of(const struct nat_ports *ports,
				      uint32_t place)
{
	static const uint8_t ip_protos[NAT_PROTOS] = { 17, 6, 1 };

	return ip_protos[place / ports->n_slots / ports->n_addrs_max];
}

/*
 * The slot of a port (host order), or NAT_PLACE_NONE if it belongs to another
 * worker. The quotient by multiplication is exact: 1024 * n_shards <= 2^20, and
 * the reciprocal is rounded up at 2^20 (Granlund and Montgomery, 1994, theorem
 * 4.2, with slices below 2^10 and l = 10).
 */
static inline uint32_t nat_ports_slot(const struct nat_ports *ports,
				      uint32_t port)
{
	uint32_t slice = port >> NAT_SLICE_BITS;
	uint32_t local = slice * ports->reciprocal >> 20;

	if (slice - local * ports->n_shards != ports->shard)
		return NAT_PLACE_NONE;
	return local << NAT_SLICE_BITS | (port & (NAT_SLICE_PORTS - 1));
}

/* The place of an external end in host order, or NAT_PLACE_NONE. */
static inline uint32_t nat_ports_place(const struct nat_ports *ports,
				       uint32_t proto, uint32_t addr,
				       uint32_t port)
{
	uint32_t addr_index = nat_external_index(&ports->externals, addr);
	uint32_t slot = nat_ports_slot(ports, port);

	if (addr_index == NAT_EXTERNAL_NONE || slot == NAT_PLACE_NONE)
		return NAT_PLACE_NONE;
	return (proto * ports->n_addrs_max + addr_index) * ports->n_slots +
	       slot;
}

/* The mapping at a place, or MR_FLOW_NONE. */
static inline uint32_t nat_ports_mapping(const struct nat_ports *ports,
					 uint32_t place)
{
	uint32_t entry = ports->index[place];

	/* 0 becomes MR_FLOW_NONE. */
	return entry & NAT_INDEX_HOLD_DOWN ? MR_FLOW_NONE : entry - 1;
}

/* Both in host order. */
uint32_t nat_ports_addr_of(const struct nat_ports *ports, uint32_t place);
uint16_t nat_ports_port_of(const struct nat_ports *ports, uint32_t place);

/* Whether dynamic mappings may have it. */
static inline bool nat_ports_in_range(const struct nat_ports *ports,
				      uint32_t place)
{
	uint32_t slot = place % ports->n_slots;

	return slot >= ports->first_slot && slot < ports->end_slot;
}

/*
 * Take a free port for a subscriber and mapping map_id: NAT_OK and *ret_place,
 * NAT_DROP_NO_PORT, or NAT_DROP_QUOTA: its blocks are full.
 */
enum nat_drop nat_ports_take(struct nat_ports *ports, uint32_t proto,
			     uint32_t subscriber_id, uint16_t inside_port,
			     uint32_t map_id, uint32_t now_s,
			     uint32_t *ret_place);

/* Take this port, which it had before. False: it is not free. */
bool nat_ports_take_place(struct nat_ports *ports, uint32_t place,
			  uint32_t subscriber_id, uint32_t map_id,
			  uint32_t now_s);

/* Reserve a port for the configuration. False: it is not free. */
bool nat_ports_set_static(struct nat_ports *ports, uint32_t place,
			  uint32_t map_id);

/* It is no longer reserved. */
void nat_ports_clear_static(struct nat_ports *ports, uint32_t place);

/* Puts a used port into hold-down. */
void nat_ports_free(struct nat_ports *ports, uint32_t place, uint32_t now_s);

/* Release at most n ports whose hold-down has ended; returns how many. */
uint32_t nat_ports_release(struct nat_ports *ports, uint32_t now_s, uint32_t n);
/* The same, however briefly they have been there. */
uint32_t nat_ports_release_all(struct nat_ports *ports, uint32_t now_s,
			       uint32_t n);

/*
 * The next port in hold-down after a place, and when it was freed. Begin with
 * NAT_PLACE_NONE; it is also returned at the end.
 */
uint32_t nat_ports_next_held(const struct nat_ports *ports, uint32_t place,
			     uint32_t *freed_s);

/* Put a free port into hold-down as if since freed_s. It is not released before
 * the ports that are already there. False: it is not free, or its hold-down is
 * over. */
bool nat_ports_hold(struct nat_ports *ports, uint32_t place, uint32_t freed_s,
		    uint32_t now_s);

/* Take over the ports in hold-down from an earlier configuration. */
void nat_ports_inherit(struct nat_ports *ports, const struct nat_ports *old,
		       uint32_t now_s);

/*
 * Whether ports created for one configuration can be used with another: true
 * and *ret_externals, the addresses with their new numbers. Up to n_addrs_max
 * addresses can be added; none may go, nor may the layout change.
 */
bool nat_ports_can_follow(const struct nat_ports *ports,
			  const struct nat_config *config,
			  const struct nat_config *next,
			  struct nat_externals *ret_externals);

/* Use it; externals now belongs to the ports. */
void nat_ports_follow(struct nat_ports *ports, const struct nat_config *next,
		      const struct nat_externals *externals);

/* This subscriber no longer owns its blocks, whose ports are about to go. */
void nat_blocks_forget(struct nat_ports *ports, uint32_t subscriber_id,
		       uint32_t now_s);

struct mr_parcel;

/* For another process: put into entries "0/...", if this is worker 0. They stay
 * as they are until the parcel was sent. */
void nat_ports_put(const struct nat_ports *ports, struct mr_parcel *parcel,
		   uint32_t worker_idx);
/* The same ports again, to be looked at: without a configuration. 0, or -errno
 * with a reason. */
int nat_ports_copy(const struct mr_parcel *parcel, uint32_t worker_idx,
		   struct nat_ports **ret_ports, struct mr_reason *ret_why);
/* Whether they have the same places, blocks and times. */
bool nat_ports_is_like(const struct nat_ports *a, const struct nat_ports *b);
/* Make the copy what ports is, which is about to be destroyed. */
void nat_ports_replace(const struct nat_ports *ports, struct nat_ports *copy,
		       struct mr_flow_table *subscribers);

/* The external address for address-only mappings; host order. 0: none. */
uint32_t nat_ports_pair(struct nat_ports *ports, uint32_t subscriber_id,
			uint32_t proto);

void nat_ports_stats(const struct nat_ports *ports,
		     struct nat_ports_stats *stats);

#endif

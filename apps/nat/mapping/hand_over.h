/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Mappings and sessions of a process for the one that takes its place, in the
 * entries of a parcel. Ticks are those of a clock that both have.
 *
 * The next process has the tables of its own configuration, and enters what
 * that allows, as a reload would. Limits do not count, and nothing is logged
 * but what ends.
 */
#ifndef NAT_MAPPING_HAND_OVER_H
#define NAT_MAPPING_HAND_OVER_H

#include <millrace/experimental/parcel.h>

#include "map.h"
#include "window.h"

/* Entry "0/maps": what worker 0 has. */
struct nat_map_image {
	struct nat_tuple inside;
	struct nat_end outside, remote; /* remote: of the first session */
	uint32_t last_s, remote_last_s;
	uint32_t n_out, n_in;
	uint8_t flags; /* of NAT_MAP_KIND */
	uint8_t tcp_state;
	uint8_t reserved[6];
};

/* "0/windows": struct nat_window of those of TCP, in the same order. */

/* "0/sessions": those beyond the first. */
struct nat_session_image {
	struct nat_tuple inside; /* of the mapping */
	struct nat_end remote;
	uint32_t last_s;
	uint8_t tcp_state;
	uint8_t reserved[3];
	struct nat_window window;
};

/* "0/held": ports in hold-down, in the order in which they were freed. */
struct nat_held_image {
	uint32_t addr;  /* outside; network order */
	uint32_t owner; /* address of the subscriber with the block, or 0 */
	uint32_t freed_s;
	uint16_t port; /* network order */
	uint8_t proto;
	uint8_t reserved;
};

/* "0/blocks": what the log has begun, and must end. */
struct nat_block_image {
	uint32_t addr, owner; /* as above */
	uint16_t port, n_ports;
	uint8_t proto;
	uint8_t reserved[3];
};

/* "0/subscribers". */
struct nat_subscriber_image {
	uint32_t addr;
	uint32_t external; /* its paired address, or 0; network order */
	uint32_t has_logged, logged_s;
};

/* "0/state". */
struct nat_maps_image {
	uint64_t created, expired;
	uint32_t filtering[NAT_PROTOS];
	/* If these are the same, so are blocks. */
	uint32_t first_port, last_port, block, shard, n_shards;
	uint32_t has_logged, logged_s;
	uint32_t reserved;
};

/* A worker's entries, found and checked. */
struct nat_maps_state {
	const struct nat_maps_image *state;
	const struct nat_map_image *maps;
	const struct nat_window *windows;
	const struct nat_session_image *sessions;
	const struct nat_held_image *held;
	const struct nat_block_image *blocks;
	const struct nat_subscriber_image *subscribers;
	uint32_t n_maps, n_windows, n_sessions, n_held, n_blocks, n_subscribers;
};

void nat_maps_put(const struct nat_maps *maps, struct mr_parcel *parcel,
		  uint32_t worker_idx);

/* 0, -ENOENT, or -EPROTO: an entry is damaged; with a reason. */
int nat_maps_find(const struct mr_parcel *parcel, uint32_t worker_idx,
		  struct nat_maps_state *ret_state, struct mr_reason *ret_why);

/* Enter everything: into the maps of n workers, none of which runs. Returns how
 * many mappings and sessions ended, because the configuration, or the number of
 * workers, does not allow them. */
uint32_t nat_maps_take(struct nat_maps *const *maps, uint32_t n,
		       uint32_t worker_idx, const struct nat_maps_state *state,
		       uint32_t now_s);

#endif

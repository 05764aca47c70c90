/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which worker a frame belongs to, and how it gets there.
 *
 *     from inside:  hash of the source address; an ICMP error: of the address
 *                   that the packet inside it was sent to
 *     from outside: a port forward or one-to-one: as the inside address;
 *                   else by the slice of the destination port (ICMP: of the
 *                   id), or of the source port of the packet inside an ICMP
 *                   error; protocols without ports: by the address
 *     fragments from outside: as the first one; they meet at a worker that
 *                   their addresses and id hash to, which waits for that one
 *
 * Devices distribute frames to queues by their own hash, which ignores slices;
 * some can be asked to steer what comes from outside (control/app.c). Each
 * worker checks what it receives and hands what is not its own to the owner,
 * through a ring for each pair of workers. With one worker, none of this
 * exists.
 */
#ifndef NAT_STEER_H
#define NAT_STEER_H

#include <millrace/millrace.h>

#include "config/config.h"
#include "path.h"

/* The content of a ring. */
enum nat_lane {
	NAT_LANE_INSIDE = NAT_INSIDE,
	NAT_LANE_OUTSIDE = NAT_OUTSIDE,
	NAT_LANE_FRAGMENT, /* from outside, to where its fragments meet */
	NAT_LANES,
};

/* A worker's own tables, which determine the owner of a frame. */
struct nat_routes {
	const struct nat_maps *maps;
	const struct nat_addrs *addrs;
	uint32_t n_workers;
};

/*
 * The owner of a frame, judging by its first n_bytes; a malformed one belongs
 * to its receiver, which drops it by name. *ret_lane is the ring to use.
 */
uint32_t nat_routes_owner(const struct nat_routes *routes, enum nat_side from,
			  const uint8_t *bytes, uint32_t n_bytes,
			  uint32_t receiver, enum nat_lane *ret_lane);

/* Rings between all workers. */
struct nat_steering;

int nat_steering_create(struct mr_ctx *ctx, struct mr_workers *workers,
			uint32_t n_workers, uint32_t n_entries,
			struct nat_steering **ret_steering,
			struct mr_reason *ret_why);
void nat_steering_destroy(struct nat_steering *steering);

/* One worker's part; only its thread uses it. */
struct nat_steer;
struct nat_steer *nat_steer_of(struct nat_steering *steering, uint32_t idx);

/* The worker's slot: see support/capture.h. */
void nat_steer_record(struct nat_steer *steer,
		      struct recorder *const *recorder);

/* Steer by these from now on; they must stay valid. */
void nat_steer_follow(struct nat_steer *steer, const struct nat_maps *maps,
		      const struct nat_config *config);

/* Written by the worker, read by any thread. */
struct nat_steer_stats {
	uint64_t handed_off; /* frames to other workers */
};
const struct nat_steer_stats *nat_steer_stats(const struct nat_steer *steer);

/*
 * Hand over what is not this worker's. Moves the rest to the front and returns
 * its entries. What does not fit into a ring is freed and counted in stats, as
 * received and as NAT_DROP_HANDOFF_FULL.
 */
uint32_t nat_steer_split(struct nat_steer *steer, enum nat_side from,
			 struct mr_frame *frames, uint32_t n, uint64_t now_ns,
			 struct nat_stats *stats);

/*
 * Receive up to n entries, whole frames, from other workers; *ret_from is the
 * side they came from. 0: no more. Fragments among them are steered on.
 */
uint32_t nat_steer_receive(struct nat_steer *steer, enum nat_side *ret_from,
			   struct mr_frame *frames, uint32_t n, uint64_t now_ns,
			   struct nat_stats *stats);

/* The workers have ended: free waiting frames, as NAT_DROP_SHUTDOWN. */
void nat_steer_give_up(struct nat_steer *steer, struct nat_stats *stats);

#endif

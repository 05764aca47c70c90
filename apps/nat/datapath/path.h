/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet path of one worker: frames in, frames out, whatever the ports.
 *
 *     burst --> parse --> look up --> rewrite --> outbox of the other side
 *                  |          |
 *                  |          +--> first packet: open a mapping
 *                  +--> ARP, ping, ICMP, fragments, options: one by one
 *
 * nat_burst() takes ownership of frames: each goes to an outbox, waits in a
 * bounded queue (neighbour, fragment, unsolicited SYN), or is freed and
 * counted.
 */
#ifndef NAT_PATH_H
#define NAT_PATH_H

#include <millrace/millrace.h>

#include "config/config.h"
#include "mapping/map.h"
#include "ports/drop.h"

struct recorder;       /* support/capture.h */
struct nat_addrs;      /* of a configuration; addrs.h */
struct nat_neighbours; /* of both sides, shared by all workers; neighbours.h */

enum { NAT_OUTBOX_MAX = 4 * MR_BURST_MAX };

/* Frames to be sent on one side; the caller sends and empties it. */
struct nat_outbox {
	uint32_t n; /* entries */
	struct mr_frame frames[NAT_OUTBOX_MAX];
};

/*
 * Hairpinning to another worker's end: the packet already has its external
 * source, and continues as if from outside, except for this flag of its first
 * entry, without which our own source would be spoofed.
 */
enum { NAT_FRAME_LOOPED = 1u << 31 };

/* Written by the worker, read by any thread. */
struct nat_stats {
	uint64_t received[NAT_SIDES];   /* frames */
	uint64_t sent[NAT_SIDES];       /* into outboxes, including our own */
	uint64_t made;                  /* our own frames: ARP, ICMP, splits */
	uint64_t held;                  /* currently in queues; a gauge */
	uint64_t drops[NAT_DROPS];      /* frames, including NAT_TAKEN */
	uint64_t translated[NAT_SIDES]; /* frames, by the side they came from */
	uint64_t hairpinned, excluded;  /* frames */
};

struct nat_path_config {
	struct mr_ctx *ctx;
	const struct nat_config *config; /* with its addrs */
	struct nat_neighbours *neighbours;
	struct nat_maps *maps;
	struct mr_cache *cache;           /* the worker's */
	void *base;                       /* of the region */
	struct mr_port *ports[NAT_SIDES]; /* with config->is_shared */
	uint8_t macs[NAT_SIDES][6];
	uint16_t mtus[NAT_SIDES];
	uint32_t worker_idx, n_workers; /* 2 or more: another worker may have an
					 * end that is not here */
	struct mr_rules *rules;         /* of the ports; NULL: none */
	/* The worker's slot: see support/capture.h. NULL: it has none. */
	struct recorder *const *recorder;
	uint32_t n_id_owners; /* owners of packet ids, workers first; 0: only
			       * workers */
};

/* Of the pages below: for fragments at the worker where they meet (steer.h). */
enum { NAT_STEER_PAGES = 128 };

/* Most pages of waiting frames at a worker. Long frames have several. */
static inline uint32_t nat_held_pages(const struct nat_config *config)
{
	return 1024 + config->max_fragments;
}

/* Packets' ids of owner i are i + k * step. */
static inline uint16_t nat_id_step(uint32_t n_owners)
{
	uint32_t step = 1;

	while (step < n_owners)
		step *= 2;
	return (uint16_t)step;
}

/* One per worker. */
struct nat_path;

int nat_path_create(const struct nat_path_config *config,
		    struct nat_path **ret_path, struct mr_reason *reterr_why);
/* A port's MAC address, or ours for one without; and its MTU. */
void nat_path_describe_port(const struct mr_port *port, enum nat_side side,
			    uint8_t mac[6], uint16_t *ret_mtu);
/* Set a port's MAC address, which is announced if it changed, and its MTU. Any
 * thread; takes effect in the next round. */
void nat_path_set_port(struct nat_path *path, enum nat_side side,
		       const uint8_t mac[6], uint16_t mtu);

/* A link has come up: what was announced before that was lost. As above. */
void nat_path_announce(struct nat_path *path);

/* The worker is at rest, and what it sent has left. */
void nat_path_rest(struct nat_path *path);
/* The rules are about to be closed. The worker is at rest. */
void nat_path_end_rules(struct nat_path *path);

/* Frees held frames as NAT_DROP_SHUTDOWN. */
void nat_path_destroy(struct nat_path *path);

/*
 * Switch to another configuration, which must outlive the path. Keys that are
 * fixed must not have changed (keys.h), and it must have its addrs.
 */
void nat_path_reload(struct nat_path *path, const struct nat_config *config);

/* No more bursts follow: frees held frames as NAT_DROP_SHUTDOWN. */
void nat_path_give_up(struct nat_path *path);
/* Instead: they are another process's from now on. */
void nat_path_leave(struct nat_path *path);

/* A capture_explain_fn, with the path: the mapping of a packet. */
void nat_path_explain(void *path, uint32_t port, bool is_tx,
		      const uint8_t *bytes, uint32_t n, char *ret);

/* Once per round: set the time, and do periodic work. */
void nat_path_tick(struct nat_path *path, uint64_t now_ns);

/* n entries, whole frames, at most MR_BURST_MAX, received on side from. */
void nat_burst(struct nat_path *path, enum nat_side from,
	       struct mr_frame *frames, uint32_t n);

/* After the outboxes were sent: what this makes of tickets, tickets.h. True:
 * call again soon. */
bool nat_path_sent(struct nat_path *path, enum nat_side from,
		   const struct mr_txq *txq);

/* After an outbox was sent: if a frame was too long for the port, read the
 * port's MTU, which must have changed. */
void nat_path_check_mtu(struct nat_path *path, enum nat_side to,
			const struct mr_txq *txq);

struct nat_outbox *nat_path_outbox(struct nat_path *path, enum nat_side to);
/* Frames with NAT_FRAME_LOOPED for the workers that have their ends; counted as
 * sent here, and as received there. */
struct nat_outbox *nat_path_loop(struct nat_path *path);
struct nat_stats *nat_path_stats(struct nat_path *path);

/*
 * Invariant, at rest: received + made = sent + held + sum of drops (NAT_TAKEN
 * included).
 */

#endif

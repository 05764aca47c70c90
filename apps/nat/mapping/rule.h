/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules for sessions, <millrace/offload.h>: the driver forwards packets of
 * established sessions, and this worker handles the others.
 *
 *     worker:       packet --> ask -----------> batch --> main thread: add
 *                   mapping ends --> inactive --> batch --> main thread: remove
 *
 * Each session may have a rule; without sessions (UDP without a filter, one-to-
 * one mappings) each remote end, and the rule belongs to the mapping. Where
 * sessions are by address, one of its ports has it.
 *
 * The mapping stays the authority: before it decides anything, it takes from
 * the rule what the rule knows better (time of last use, frames, TCP windows),
 * and afterwards it gives the windows back. A TCP rule is active only while
 * both ends are known and stay within their windows; otherwise it ends or
 * pauses. Rules of remote ends that are no sessions, but the first, end when they
 * are idle; all of them, if there is no room for new ones.
 */
#ifndef NAT_RULE_H
#define NAT_RULE_H

#include <millrace/offload.h>

#include "map.h"
#include "tcp.h"

enum {
	NAT_RULES_ASKED = 256,    /* of a batch */
	NAT_RULES_REMOVED = 1024, /* of a batch */
};

/* Belongs to the worker or the main thread, by turns. */
struct nat_rules_batch {
	uint32_t is_sent; /* atomic: it is the main thread's */
	uint32_t n_removed, n_asked;
	uint32_t removed[NAT_RULES_REMOVED]; /* ids; first */
	struct mr_rule asked[NAT_RULES_ASKED];
	uint32_t ids[NAT_RULES_ASKED]; /* of those; NAT_RULE_NONE: refused */
	/* The worker's. */
	uint32_t numbers[NAT_RULES_ASKED]; /* of records */
	uint32_t hops[NAT_RULES_ASKED];    /* of the direction that is known */
	enum nat_direction directions[NAT_RULES_ASKED];
};

enum { NAT_RULE_NONE = UINT32_MAX };

struct nat_rules_stats {
	uint64_t n_rules; /* in the set, or about to be removed */
	uint64_t refused; /* no room */
};

/* A worker's; NULL: without rules. */
struct nat_rules;

enum { NAT_RULE_FRAMES = 3 }; /* a query and its answer need no rule */

/* rules: n_max of ports in the order of the sides. sent_fd: an eventfd, or -1:
 * the caller looks itself. min_frames: of a mapping of UDP, before a rule is
 * asked for; NAT_RULE_FRAMES. */
int nat_rules_create(struct nat_maps *maps, struct mr_rules *rules,
		     uint32_t n_max, int sent_fd, uint32_t min_frames,
		     struct mr_reason *reterr_why);
void nat_rules_destroy(struct nat_rules *rules);

/* Between bursts: pass a batch on, and use what came back. Returns whether
 * there is more to do now: idle rules to be found. */
bool nat_rules_tick(struct nat_maps *maps);
/* Main thread: add and remove what was asked for. Returns whether the set is
 * full... */
bool nat_rules_serve(struct nat_rules *rules);
/* ...and idle rules are to end, of each worker. */
void nat_rules_make_room(struct nat_rules *rules);
/* End all: the configuration changes. */
void nat_rules_end_all(struct nat_maps *maps);
/* Any thread. */
struct nat_rules_stats nat_rules_stats(const struct nat_rules *rules);

/* A packet of the mapping was forwarded, and the next hop is known: ask for a
 * rule, or tell it. inside: of a one-to-one mapping, with the packet's protocol
 * and port. */
void nat_rule_use(struct nat_maps *maps, uint32_t id,
		  enum nat_direction direction, const struct nat_tuple *inside,
		  struct nat_remote remote, uint32_t hop);
/* Bring the mapping's first session and that with remote up to date, before
 * they are used. */
void nat_rule_take(const struct nat_maps *maps, uint32_t id,
		   struct nat_remote remote);
/* After a packet in this direction, from or to remote, was handled. */
void nat_rule_give(struct nat_maps *maps, uint32_t id,
		   enum nat_direction direction, struct nat_remote remote);
/* The session with remote ends. */
void nat_rule_end(struct nat_maps *maps, uint32_t id, struct nat_remote remote);
/* All of the mapping: bring them up to date, or end them. */
void nat_rules_take(const struct nat_maps *maps, uint32_t id);
void nat_rules_end(struct nat_maps *maps, uint32_t id);

#endif

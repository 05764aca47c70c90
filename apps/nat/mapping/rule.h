/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules for sessions, <millrace/experimental/offload.h>: the driver forwards
 * packets of established sessions, and this worker handles the others.
 *
 *     worker:       packet --> ask -----------> batch --> main thread: add
 *                   mapping ends --> inactive --> batch --> main thread: remove
 *
 * Each session may have a rule. Without sessions (UDP without a filter, one-to-
 * one mappings), each remote end may have one, which belongs to the mapping. If
 * sessions are per address, one remote port of the address has the rule.
 *
 * The mapping stays the authority: before it decides anything, it takes the
 * newer state from the rule (time of last use, frames, TCP windows), and
 * afterwards it gives the windows back. A TCP rule is active only while both
 * ends are known and stay within their windows; otherwise it ends or pauses.
 * Rules of remote ends without a session, except the first, end when they are
 * idle. If there is no room for new rules, all idle rules end.
 */
#ifndef NAT_RULE_H
#define NAT_RULE_H

#include <millrace/experimental/offload.h>

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
	uint32_t hops[NAT_RULES_ASKED];    /* next hop of the known direction */
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

/* rules: room for n_max, ports in the order of the sides. sent_fd: an eventfd,
 * or -1: the caller polls. min_frames: how many a UDP mapping must have
 * forwarded before it requests a rule; NAT_RULE_FRAMES. */
int nat_rules_create(struct nat_maps *maps, struct mr_rules *rules,
		     uint32_t n_max, int sent_fd, uint32_t min_frames,
		     struct mr_reason *reterr_why);
void nat_rules_destroy(struct nat_rules *rules);

/* Call it between bursts: pass a batch on, and handle the one that came back.
 * Returns whether to call again at once, to find more idle rules. */
bool nat_rules_tick(struct nat_maps *maps);
/* Main thread: add and remove rules as requested. Returns whether the set is
 * full; then call nat_rules_make_room() for each worker. */
bool nat_rules_serve(struct nat_rules *rules);
/* Make a worker end its idle rules. */
void nat_rules_make_room(struct nat_rules *rules);
/* End all rules, because the configuration changes. */
void nat_rules_end_all(struct nat_maps *maps);
/* Any thread. */
struct nat_rules_stats nat_rules_stats(const struct nat_rules *rules);

/* After a packet of the mapping was forwarded to a known next hop: request a
 * rule, or set the rule's next hop. inside: the packet's inside end, with its
 * protocol and port even if the mapping is one-to-one. */
void nat_rule_use(struct nat_maps *maps, uint32_t id,
		  enum nat_direction direction, const struct nat_tuple *inside,
		  struct nat_end remote, uint32_t hop);
/* Update the mapping's first session and the one with remote from their rules,
 * before they are used. */
void nat_rule_take(const struct nat_maps *maps, uint32_t id,
		   struct nat_end remote);
/* Give the windows back after a packet in this direction, from or to remote. */
void nat_rule_give(struct nat_maps *maps, uint32_t id,
		   enum nat_direction direction, struct nat_end remote);
/* End the rule of the session with remote. */
void nat_rule_end(struct nat_maps *maps, uint32_t id, struct nat_end remote);
/* Update from, or end, all rules of the mapping. */
void nat_rules_take(const struct nat_maps *maps, uint32_t id);
void nat_rules_end(struct nat_maps *maps, uint32_t id);

#endif

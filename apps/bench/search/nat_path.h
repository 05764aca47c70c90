/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides of a NAT, on two ports and one thread: clients on the first, the
 * server on the second. What search_nat_...() does, done with frames.
 */
#ifndef SEARCH_NAT_PATH_H
#define SEARCH_NAT_PATH_H

#include <sched.h>

#include "net/clock.h"
#include "search/nat_search.h"
#include "search/nat_wire.h"
#include "support/dataplane.h"

enum { NAT_MAX_QUEUES = 64 }; /* of a port */

struct nat_side {
	struct mr_port *port;
	struct mr_rxq *rxqs[NAT_MAX_QUEUES]; /* all: the NAT chooses */
	uint32_t n_rxqs;
	struct mr_txq *txqs[NAT_MAX_QUEUES]; /* each has its connections */
	uint32_t n_txqs;
	struct nat_macs macs; /* of the port, and of the NAT on its side */
	bool knows_nat;
};

struct nat_path {
	struct dataplane plane;
	struct mr_cache *cache;
	void *base;
	uint32_t core; /* of the thread, if it was asked for */
	bool has_core;
	cpu_set_t cores_before; /* then: of the program, and of --reset */
	struct clock clock;
	struct nat_plan plan;
	struct nat_side client, server;
	const char *reset_command; /* NULL: none */
	uint32_t reset_limit_s;    /* then it is killed */
	struct nat_tuple *tuples;  /* by number */
	uint8_t *states;           /* of them */
	uint32_t n_room, n_known;  /* numbers: there is room for, in use */
	bool is_emptied;           /* the next connection has number 0 again */
	uint8_t awaited;           /* state, of the phase at hand, */
	uint32_t first, n_last;    /* and its numbers */
	uint64_t n_arrived;        /* of it, each number once */
	uint64_t n_other;          /* frames that were none of ours */
};

/*
 * Open two ports and find the NAT by ARP. plan and reset_... are set by the
 * caller, the rest is 0. Returns 0 or the exit status, with nothing left open.
 */
int nat_path_open(struct nat_path *path, const struct dataplane_config *config,
		  uint32_t n_room, struct mr_reason *why);
/* Returns 0, or 1: pages are missing, which is a line on stderr. */
int nat_path_close(struct nat_path *path);

extern const struct nat_ops nat_path_ops; /* opaque is a struct nat_path */
extern const struct nat_ops nat_path_ops_without_reset;

#endif

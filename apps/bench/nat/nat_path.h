/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both sides of a NAT, on two ports and one thread: clients on the first, the
 * server on the second. The front end searches (RFC 9693); these are the phases
 * of its trials. A connection exists if what the server sends to it reaches the
 * client.
 */
#ifndef NAT_NAT_PATH_H
#define NAT_NAT_PATH_H

#include "nat/nat_wire.h"
#include "net/clock.h"
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
	struct clock clock;
	struct nat_plan plan;
	struct nat_side client, server;
	struct nat_tuple *tuples; /* by number */
	uint8_t *states;          /* of them */
	uint32_t n_room, n_known; /* connections that fit, and that exist */
	uint8_t awaited;          /* the state that the phase awaits, */
	uint32_t first, n_last;   /* and its numbers */
	uint64_t n_arrived;       /* of it, each number once */
	uint64_t next_poll_ns;    /* of the ports, in it */
};

/* Open two ports and find the NAT by ARP. The caller sets plan; the rest is 0.
 * Returns 0 or the exit status, with nothing left open. */
int nat_path_open(struct nat_path *path, const struct dataplane_config *config,
		  uint32_t n_room, struct mr_reason *why);
/* Returns 0, or 1 if pages are missing, with a line on stderr. */
int nat_path_close(struct nat_path *path);

struct nat_counts {
	uint64_t sent;
	uint64_t arrived; /* connections seen on the other side */
	/* Frames that the tester's ports received and dropped, by their own
	 * counters: the NAT did not lose these. */
	uint64_t n_dropped_here;
	bool is_unsent; /* too slow to say anything about the NAT */
};

/* The phases return 0, or -errno with the reason. */

/* Make n new connections after the known ones; there must be room for them. */
int nat_path_establish(struct nat_path *path, double pps, uint32_t n,
		       struct nat_counts *ret, struct mr_reason *why);
/* Query all connections except the first n_skipped, from outside. */
int nat_path_validate(struct nat_path *path, double pps, uint32_t n_skipped,
		      struct nat_counts *ret, struct mr_reason *why);
/* Resend the frames of the last of these two that have not arrived, and count
 * those that arrive now. */
int nat_path_again(struct nat_path *path, double pps, struct nat_counts *ret,
		   struct mr_reason *why);
/* The NAT's table was emptied: the next connection has number 0 again. */
void nat_path_forget(struct nat_path *path);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* A context, a pool, and ports on rings, for tests of the dpdk: driver. */
#ifndef TEST_DPDK_FIXTURE_H
#define TEST_DPDK_FIXTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "support/test.h"

#include <millrace/millrace.h>

enum { BURST = 32, LEN = 200, N_PAGES = 8192, MAX_PAGES = 16384, RING = 256 };

extern struct mr_ctx *ctx;
extern struct mr_pool *pool;
extern struct mr_cache *cache;
extern uint8_t *base;
extern char log_text[65536];

/* main() runs each test, or the one that argv names, in a process of its own
 * between these. */
int set_up(void **state);
/* Nothing is left over: each page is free. */
int tear_down(void **state);

int try_open(const char *spec, struct mr_port **ret_port,
	     struct mr_reason *why);
struct mr_port *open_port(const char *spec);
uint64_t n_in_flight(void);
struct mr_tx_stats tx_stats(struct mr_port *port);

/* EAL, as a program has it that uses DPDK itself. */
void start_programs_eal(void);

/* Two ports; what one sends the other receives: net_ring, crossed. */
struct pair {
	struct rte_ring *rings[2];
	struct mr_port *ports[2];
};

struct pair make_pair(const char *names[2], const char *options);
void end_pair(struct pair *pair);
/* LEN bytes and one more each, each of its own value. */
void make_frames(struct mr_frame *frames, uint32_t n);
void send_all(struct mr_port *port, const struct mr_frame *frames, uint32_t n);
uint32_t receive(struct mr_port *port, struct mr_frame *frames);
/* A thread: DPDK frees two bursts of headers that were sent to a ring. */
void *free_sent(void *ring);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of a row. Thread 0 is the one that makes the team. */
#ifndef TEAM_H
#define TEAM_H

#include <stdint.h>

#include "bench.h"

struct team;

/* What one run of all threads was. */
struct team_run {
	uint64_t ns;
	uint64_t cycles;     /* of the TSC; 0 where there is none */
	uint64_t n_ops;      /* sum over the threads */
	uint64_t n_switched; /* involuntary context switches of the threads */
	uint64_t n_stolen;   /* ticks that the hypervisor took from the cores */
};

/*
 * Start n_threads - 1 threads beside the calling one, each on the core with its
 * number in cores[], or round again where there are fewer. is_registered: each
 * thread tells DPDK of itself. NULL: no threads.
 */
struct team *team_start(const uint32_t *cores, uint32_t n_cores,
			uint32_t n_threads, bool is_registered);

/* Let all threads run the player, once. */
void team_run(struct team *team, struct player *player, uint64_t n,
	      struct team_run *ret);

void team_stop(struct team *team);

/* Put the calling thread on a core. */
void team_pin(uint32_t core);

#endif

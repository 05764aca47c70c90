/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads of a row. Thread 0 is the one that makes the thread_group. */
#ifndef THREAD_GROUP_H
#define THREAD_GROUP_H

#include <stdint.h>

#include "bench.h"

struct thread_group;

/* What one run of all threads was. */
struct thread_group_run {
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
struct thread_group *thread_group_start(const uint32_t *cores, uint32_t n_cores,
					uint32_t n_threads, bool is_registered);

/* Let all threads run the variant, once. */
void thread_group_run(struct thread_group *thread_group,
		      struct variant *variant, uint64_t n,
		      struct thread_group_run *ret);

void thread_group_stop(struct thread_group *thread_group);

/* Put the calling thread on a core. */
void thread_group_pin(uint32_t core);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads sleep between runs, so that rows of one thread have the machine for
 * themselves, and meet at a counter before each, so that all begin together.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "peer_dpdk.h"
#include "thread_group.h"

struct member {
	struct thread_group *thread_group;
	pthread_t thread;
	sem_t wake;
	uint32_t number, core;
	uint64_t n_ops, n_switched;
};

struct thread_group {
	uint32_t n_threads;
	bool is_registered, is_ending;
	struct variant *variant;
	uint64_t n;
	/* Counted up by each member; a line of its own for neither matters,
	 * they are touched before and after what is timed. */
	uint32_t n_ready, n_done;
	struct member members[MAX_THREADS];
};

void thread_group_pin(uint32_t core)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(core, &set);
	/* A core that went away costs precision, not correctness. */
	(void)sched_setaffinity(0, sizeof(set), &set);
}

/* Spin a little, then let others run: there may be more threads than cores. */
static void wait_for(const uint32_t *counter, uint32_t n)
{
	uint32_t n_spins = 0;

	while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < n) {
		if (++n_spins > 10000)
			sched_yield();
	}
}

static uint64_t cycles(void)
{
#if defined(__x86_64__)
	uint64_t now;

	/* Nothing moves across on either side. */
	_mm_lfence();
	now = __rdtsc();
	_mm_lfence();
	return now;
#else
	return 0;
#endif
}

static uint64_t n_switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (uint64_t)usage.ru_nivcsw;
}

/* Ticks stolen so far from the cores of the thread_group. */
static uint64_t n_stolen(const struct thread_group *thread_group)
{
	char line[256];
	uint64_t sum = 0;
	FILE *file = fopen("/proc/stat", "re");

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL &&
	       strncmp(line, "cpu", 3) == 0) {
		unsigned int core;
		unsigned long long stolen;

		if (sscanf(line, "cpu%u %*u %*u %*u %*u %*u %*u %*u %llu",
			   &core, &stolen) != 2)
			continue;
		for (uint32_t i = 0; i < thread_group->n_threads; i++) {
			if (thread_group->members[i].core == core) {
				sum += stolen;
				break;
			}
		}
	}
	fclose(file);
	return sum;
}

static void take_part(struct member *member)
{
	struct thread_group *thread_group = member->thread_group;
	const uint64_t before = n_switches();

	__atomic_add_fetch(&thread_group->n_ready, 1, __ATOMIC_ACQ_REL);
	wait_for(&thread_group->n_ready, thread_group->n_threads);
	member->n_ops = thread_group->variant->run(
		thread_group->variant, member->number, thread_group->n);
	member->n_switched = n_switches() - before;
	__atomic_add_fetch(&thread_group->n_done, 1, __ATOMIC_ACQ_REL);
}

static void *member_main(void *opaque)
{
	struct member *member = opaque;
	struct thread_group *thread_group = member->thread_group;

	thread_group_pin(member->core);
	if (thread_group->is_registered)
		dpdk_thread_begin();
	for (;;) {
		while (sem_wait(&member->wake) != 0)
			;
		if (thread_group->is_ending)
			break;
		take_part(member);
	}
	if (thread_group->is_registered)
		dpdk_thread_end();
	return NULL;
}

struct thread_group *thread_group_start(const uint32_t *cores, uint32_t n_cores,
					uint32_t n_threads, bool is_registered)
{
	struct thread_group *thread_group = calloc(1, sizeof(*thread_group));

	if (thread_group == NULL)
		return NULL;
	thread_group->n_threads = n_threads;
	thread_group->is_registered = is_registered;
	for (uint32_t i = 0; i < n_threads; i++) {
		struct member *member = &thread_group->members[i];

		*member = (struct member){ .thread_group = thread_group,
					   .number = i,
					   .core = cores[i % n_cores] };
		if (i == 0)
			continue;
		sem_init(&member->wake, 0, 0);
		if (pthread_create(&member->thread, NULL, member_main,
				   member) != 0) {
			sem_destroy(&member->wake);
			thread_group->n_threads = i;
			thread_group_stop(thread_group);
			return NULL;
		}
	}
	return thread_group;
}

void thread_group_run(struct thread_group *thread_group,
		      struct variant *variant, uint64_t n,
		      struct thread_group_run *ret)
{
	const uint64_t stolen = n_stolen(thread_group);
	uint64_t start_ns, start_cycles;

	*ret = (struct thread_group_run){ 0 };
	thread_group->variant = variant;
	thread_group->n = n;
	thread_group->n_ready = thread_group->n_done = 0;
	for (uint32_t i = 1; i < thread_group->n_threads; i++)
		sem_post(&thread_group->members[i].wake);
	wait_for(&thread_group->n_ready, thread_group->n_threads - 1);
	start_ns = clock_ns();
	start_cycles = cycles();
	take_part(&thread_group->members[0]);
	wait_for(&thread_group->n_done, thread_group->n_threads);
	ret->cycles = cycles() - start_cycles;
	ret->ns = clock_ns() - start_ns;
	for (uint32_t i = 0; i < thread_group->n_threads; i++) {
		ret->n_ops += thread_group->members[i].n_ops;
		ret->n_switched += thread_group->members[i].n_switched;
	}
	ret->n_stolen = n_stolen(thread_group) - stolen;
	variant->n_done += ret->n_ops;
}

void thread_group_stop(struct thread_group *thread_group)
{
	if (thread_group == NULL)
		return;
	thread_group->is_ending = true;
	for (uint32_t i = 1; i < thread_group->n_threads; i++) {
		sem_post(&thread_group->members[i].wake);
		pthread_join(thread_group->members[i].thread, NULL);
		sem_destroy(&thread_group->members[i].wake);
	}
	free(thread_group);
}

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
#include "team.h"

struct member {
	struct team *team;
	pthread_t thread;
	sem_t wake;
	uint32_t number, core;
	uint64_t n_ops, n_switched;
};

struct team {
	uint32_t n_threads;
	bool is_registered, is_ending;
	struct player *player;
	uint64_t n;
	/* Counted up by each member; a line of its own for neither matters,
	 * they are touched before and after what is timed. */
	uint32_t n_ready, n_done;
	struct member members[MAX_THREADS];
};

void team_pin(uint32_t core)
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

/* Ticks stolen so far from the cores of the team. */
static uint64_t n_stolen(const struct team *team)
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
		for (uint32_t i = 0; i < team->n_threads; i++) {
			if (team->members[i].core == core) {
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
	struct team *team = member->team;
	const uint64_t before = n_switches();

	__atomic_add_fetch(&team->n_ready, 1, __ATOMIC_ACQ_REL);
	wait_for(&team->n_ready, team->n_threads);
	member->n_ops =
		team->player->run(team->player, member->number, team->n);
	member->n_switched = n_switches() - before;
	__atomic_add_fetch(&team->n_done, 1, __ATOMIC_ACQ_REL);
}

static void *member_main(void *opaque)
{
	struct member *member = opaque;
	struct team *team = member->team;

	team_pin(member->core);
	if (team->is_registered)
		dpdk_thread_begin();
	for (;;) {
		while (sem_wait(&member->wake) != 0)
			;
		if (team->is_ending)
			break;
		take_part(member);
	}
	if (team->is_registered)
		dpdk_thread_end();
	return NULL;
}

struct team *team_start(const uint32_t *cores, uint32_t n_cores,
			uint32_t n_threads, bool is_registered)
{
	struct team *team = calloc(1, sizeof(*team));

	if (team == NULL)
		return NULL;
	team->n_threads = n_threads;
	team->is_registered = is_registered;
	for (uint32_t i = 0; i < n_threads; i++) {
		struct member *member = &team->members[i];

		*member = (struct member){ .team = team,
					   .number = i,
					   .core = cores[i % n_cores] };
		if (i == 0)
			continue;
		sem_init(&member->wake, 0, 0);
		if (pthread_create(&member->thread, NULL, member_main,
				   member) != 0) {
			sem_destroy(&member->wake);
			team->n_threads = i;
			team_stop(team);
			return NULL;
		}
	}
	return team;
}

void team_run(struct team *team, struct player *player, uint64_t n,
	      struct team_run *ret)
{
	const uint64_t stolen = n_stolen(team);
	uint64_t start_ns, start_cycles;

	*ret = (struct team_run){ 0 };
	team->player = player;
	team->n = n;
	team->n_ready = team->n_done = 0;
	for (uint32_t i = 1; i < team->n_threads; i++)
		sem_post(&team->members[i].wake);
	wait_for(&team->n_ready, team->n_threads - 1);
	start_ns = clock_ns();
	start_cycles = cycles();
	take_part(&team->members[0]);
	wait_for(&team->n_done, team->n_threads);
	ret->cycles = cycles() - start_cycles;
	ret->ns = clock_ns() - start_ns;
	for (uint32_t i = 0; i < team->n_threads; i++) {
		ret->n_ops += team->members[i].n_ops;
		ret->n_switched += team->members[i].n_switched;
	}
	ret->n_stolen = n_stolen(team) - stolen;
	player->n_done += ret->n_ops;
}

void team_stop(struct team *team)
{
	if (team == NULL)
		return;
	team->is_ending = true;
	for (uint32_t i = 1; i < team->n_threads; i++) {
		sem_post(&team->members[i].wake);
		pthread_join(team->members[i].thread, NULL);
		sem_destroy(&team->members[i].wake);
	}
	free(team);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A deterministic explorer of interleavings.
 *
 * Logical threads are contexts of one real thread. Each yields before each of
 * its atomic operations (stepped.h), and a scheduler chooses which one
 * continues: by depth-first search over all schedules with at most
 * max_preemptions switches away from a thread that could have continued (M.
 * Musuvathi and S. Qadeer, "Iterative context bounding", 2007), or at random
 * from a fixed seed.
 *
 * It finds ordering faults between operations. Each operation takes effect at
 * once for all threads: ThreadSanitizer covers weaker memory models.
 */
#ifndef SUPPORT_EXPLORE_H
#define SUPPORT_EXPLORE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "support/unit.h"

#ifdef __SANITIZE_THREAD__
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned int flags);
void __tsan_switch_to_fiber(void *fiber, unsigned int flags);
#endif

enum {
	EXPLORE_MAX_THREADS = 4,
	EXPLORE_MAX_STEPS = 4096,
	EXPLORE_STACK_BYTES = 256 << 10,
};

struct explore {
	/* Set by the test. */
	void (*begin)(void *shared);
	void (*threads[EXPLORE_MAX_THREADS])(void *shared);
	void (*end)(void *shared); /* after all have ended; may be NULL */
	void *shared;
	uint32_t n_threads;
	uint32_t max_preemptions;
	/* Result. */
	uint64_t n_runs;
	uint32_t n_most_steps; /* of one thread, in any run */
	uint32_t n_failures; /* of the failed run, which is the last: one
			      * schedule is enough */
	const char *failure;
	char schedule[EXPLORE_MAX_STEPS + 1]; /* which thread ran, as digits */
};

struct explore_choice {
	uint8_t n_options, option, preemptions;
};

/* One exploration at a time: contexts cannot carry an argument. */
static struct explore_state {
	struct explore *explore;
	ucontext_t scheduler;
	ucontext_t contexts[EXPLORE_MAX_THREADS];
	void *stacks[EXPLORE_MAX_THREADS];
	void *fibers[EXPLORE_MAX_THREADS + 1]; /* of TSan; the last: main */
	bool is_over[EXPLORE_MAX_THREADS];
	uint32_t n_steps[EXPLORE_MAX_THREADS];
	uint32_t current;
	bool is_running;
	uint64_t random; /* 0: depth first */
	uint32_t n_chosen, n_fixed;
	struct explore_choice path[EXPLORE_MAX_STEPS];
} explore_state;

static inline void explore_check_at(bool is_true, const char *what)
{
	struct explore *e = explore_state.explore;

	if (!is_true && e->n_failures++ == 0)
		e->failure = what;
}

#define explore_check(condition) explore_check_at((condition), #condition)

static inline void explore_to(uint32_t fiber)
{
#ifdef __SANITIZE_THREAD__
	__tsan_switch_to_fiber(explore_state.fibers[fiber], 0);
#else
	(void)fiber;
#endif
}

/* Called before each atomic operation. Does nothing outside an exploration. */
static inline void atomic_step(void)
{
	struct explore_state *s = &explore_state;
	uint32_t *n_most = &s->explore->n_most_steps;

	if (!s->is_running)
		return;
	if (++s->n_steps[s->current] > *n_most)
		*n_most = s->n_steps[s->current];
	if (s->random != 0 && test_random(&s->random, 4) != 0)
		return;
	explore_to(EXPLORE_MAX_THREADS);
	swapcontext(&s->contexts[s->current], &s->scheduler);
}

static inline void explore_thread(void)
{
	struct explore_state *s = &explore_state;

	/* One iteration per run. TSan: no function may be left by a switch. */
	for (;;) {
		s->explore->threads[s->current](s->explore->shared);
		s->is_over[s->current] = true;
		explore_to(EXPLORE_MAX_THREADS);
		swapcontext(&s->contexts[s->current], &s->scheduler);
	}
}

/*
 * Choose the next thread. Option 0 is the current one, if it can run; others
 * then cost a preemption. EXPLORE_MAX_THREADS: all have ended.
 */
static inline uint32_t explore_choose(void)
{
	struct explore_state *s = &explore_state;
	struct explore_choice *c = &s->path[s->n_chosen];
	const bool can_stay = s->n_chosen > 0 && !s->is_over[s->current];
	uint32_t options[EXPLORE_MAX_THREADS], n = 0;
	const uint32_t used = s->n_chosen > 0 ? c[-1].preemptions : 0;

	if (can_stay)
		options[n++] = s->current;
	for (uint32_t i = 0; i < s->explore->n_threads; i++)
		if (!s->is_over[i] && !(can_stay && i == s->current) &&
		    (!can_stay || s->random != 0 ||
		     used < s->explore->max_preemptions))
			options[n++] = i;
	if (n == 0)
		return EXPLORE_MAX_THREADS;
	if (s->random != 0) {
		s->n_chosen = 1;
		return options[test_random(&s->random, n)];
	}
	if (s->n_chosen == EXPLORE_MAX_STEPS)
		abort(); /* a thread that waits for another one */
	if (s->n_chosen >= s->n_fixed)
		c->option = 0;
	c->n_options = (uint8_t)n;
	c->preemptions = (uint8_t)(used + (can_stay && c->option > 0));
	s->explore->schedule[s->n_chosen++] = (char)('1' + options[c->option]);
	s->explore->schedule[s->n_chosen] = '\0';
	return options[c->option];
}

static inline void explore_run(struct explore *e)
{
	struct explore_state *s = &explore_state;
	uint32_t next;

	s->n_chosen = 0;
	e->begin(e->shared);
	for (uint32_t i = 0; i < e->n_threads; i++) {
		s->is_over[i] = false;
		s->n_steps[i] = 0;
	}
	s->is_running = true;
	while ((next = explore_choose()) != EXPLORE_MAX_THREADS) {
		s->current = next;
		explore_to(next);
		swapcontext(&s->scheduler, &s->contexts[next]);
	}
	s->is_running = false;
	if (e->end != NULL)
		e->end(e->shared);
	e->n_runs++;
}

/* Create a context, once for all explorations. */
__attribute__((noinline)) static void explore_make(uint32_t i)
{
	struct explore_state *s = &explore_state;

	s->stacks[i] = malloc(EXPLORE_STACK_BYTES);
	getcontext(&s->contexts[i]);
	s->contexts[i].uc_stack.ss_sp = s->stacks[i];
	s->contexts[i].uc_stack.ss_size = EXPLORE_STACK_BYTES;
	s->contexts[i].uc_link = NULL;
	makecontext(&s->contexts[i], explore_thread, 0);
#ifdef __SANITIZE_THREAD__
	s->fibers[i] = __tsan_create_fiber(0);
#endif
}

static inline void explore_open(struct explore *e, uint64_t seed)
{
	struct explore_state *s = &explore_state;

	s->explore = e;
	s->random = seed;
	s->n_fixed = 0;
	for (uint32_t i = 0; i < e->n_threads; i++)
		if (s->stacks[i] == NULL)
			explore_make(i);
#ifdef __SANITIZE_THREAD__
	s->fibers[EXPLORE_MAX_THREADS] = __tsan_get_current_fiber();
#endif
}

/* Run all schedules, until one fails. True: none does. */
static inline bool explore_all(struct explore *e)
{
	struct explore_state *s = &explore_state;

	explore_open(e, 0);
	for (;;) {
		explore_run(e);
		if (e->n_failures > 0)
			return false;
		/* The last choice that has another option. */
		while (s->n_chosen > 0 &&
		       s->path[s->n_chosen - 1].option + 1 ==
			       s->path[s->n_chosen - 1].n_options)
			s->n_chosen--;
		if (s->n_chosen == 0)
			return true;
		s->path[s->n_chosen - 1].option++;
		s->n_fixed = s->n_chosen;
	}
}

/* One long random run. True: it does not fail. */
static inline bool explore_at_random(struct explore *e, uint64_t seed)
{
	explore_open(e, seed);
	explore_run(e);
	return e->n_failures == 0;
}

/*
 * Assert that at least n_least schedules were tried, and none failed; and that
 * no thread took more than n_most steps, wherever the others stopped: no thread
 * waits for another.
 */
static inline void explore_assert_right(const struct explore *e,
					uint64_t n_least, uint32_t n_most)
{
	if (e->n_failures > 0)
		fail_msg("%s: %s", e->schedule, e->failure);
	assert_in_range(e->n_runs, n_least, UINT64_MAX);
	assert_in_range(e->n_most_steps, 1, n_most);
}

#endif

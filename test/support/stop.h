/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that stops itself, with SIGSTOP, before its k-th atomic operation,
 * while another one continues with their shared memory. For use with stepped.h.
 */
#ifndef SUPPORT_STOP_H
#define SUPPORT_STOP_H

#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/unit.h"

static uint64_t n_steps;
static uint64_t stop_at; /* 0: never */

static inline void atomic_step(void)
{
	if (++n_steps == stop_at)
		raise(SIGSTOP);
}

/* Memory shared across fork(). */
static inline void *stop_share(size_t n_bytes)
{
	void *memory = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(memory, MAP_FAILED);
	return memory;
}

/*
 * Run body in a process that stops before its k-th step. False: it ended
 * before.
 */
static inline bool stop_start(void (*body)(void *shared), void *shared,
			      uint64_t k, pid_t *ret_pid)
{
	int status = 0;
	pid_t pid;

	alarm(test_limit_ms(60000) /
	      1000); /* ends a test that hangs, and its child */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		n_steps = 0;
		stop_at = k;
		body(shared);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	*ret_pid = pid;
	if (WIFSTOPPED(status))
		return true;
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return false;
}

/* Continue it, to its end. */
static inline void stop_go_on(pid_t pid)
{
	int status = 0;

	assert_int_equal(kill(pid, SIGCONT), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Assert that a call takes at most that many atomic operations. */
#define assert_steps(n_max, call)                                              \
	do {                                                                   \
		const uint64_t before_ = n_steps;                              \
		call;                                                          \
		assert_true(n_steps - before_ <= (n_max));                     \
	} while (0)

#endif

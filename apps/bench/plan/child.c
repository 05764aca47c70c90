/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of a shell, each a process group of its own. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "plan/child.h"

enum { STEP_MS = 10, STOP_S = 5 };

static int ending; /* atomic: set by the signal handler */

static void on_signal(int sig)
{
	__atomic_store_n(&ending, sig, __ATOMIC_RELAXED);
}

void child_catch_signals(void)
{
	const struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
	/* What a command leaves behind is ours then, to see when it is gone. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

bool child_is_ending(void)
{
	return __atomic_load_n(&ending, __ATOMIC_RELAXED) != 0;
}

double child_now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void nap(void)
{
	const struct timespec t = { 0, STEP_MS * 1000000 };

	nanosleep(&t, NULL); /* a signal ends it early: all the better */
}

bool child_sleep(double seconds)
{
	const double end_s = child_now_s() + seconds;

	while (!child_is_ending() && child_now_s() < end_s)
		nap();
	return !child_is_ending();
}

/* In the child; does not return. */
static void become(const char *command, int log_fd, pid_t parent)
{
	const int none_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	setpgid(0, 0);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(1); /* it went before that was asked for */
	dup2(none_fd, STDIN_FILENO);
	dup2(log_fd, STDOUT_FILENO);
	dup2(log_fd, STDERR_FILENO);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

pid_t child_start(const char *command, const char *log, struct mr_reason *why)
{
	const int log_fd =
		open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	const pid_t parent = getpid();
	pid_t pid;

	if (log_fd < 0) {
		snprintf(why->text, sizeof(why->text), "%.300s: %s", log,
			 strerror(errno));
		return -errno;
	}
	pid = fork();
	if (pid == 0)
		become(command, log_fd, parent);
	if (pid < 0)
		snprintf(why->text, sizeof(why->text), "fork: %s",
			 strerror(errno));
	else
		setpgid(pid, pid); /* whoever of both is first */
	close(log_fd);
	return pid < 0 ? -EAGAIN : pid;
}

/* True: it has ended, and *ret_status is set. */
static bool has_ended(pid_t pid, int *ret_status)
{
	int status;

	if (waitpid(pid, &status, WNOHANG) != pid)
		return false;
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) :
					  128 + WTERMSIG(status);
	return true;
}

enum child_end child_wait(pid_t pid, double limit_s, int *ret_status)
{
	const double end_s = child_now_s() + limit_s;

	for (;;) {
		if (has_ended(pid, ret_status))
			return CHILD_ENDED;
		if (child_is_ending())
			return CHILD_STOPPED;
		if (child_now_s() >= end_s)
			return CHILD_LATE;
		nap();
	}
}

bool child_finish(pid_t pid, double limit_s, int *ret_status)
{
	const double end_s = child_now_s() + limit_s;

	while (!has_ended(pid, ret_status)) {
		if (child_now_s() >= end_s)
			return false;
		nap();
	}
	return true;
}

bool child_is_group_there(pid_t pid)
{
	while (waitpid(-pid, NULL, WNOHANG) > 0)
		;
	return kill(-pid, 0) == 0 || errno == EPERM;
}

void child_stop(pid_t pid)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGKILL };
	bool is_there = true;

	for (uint32_t i = 0; i < 3 && is_there; i++) {
		const double end_s = child_now_s() + STOP_S;

		kill(-pid, signals[i]);
		do {
			nap();
			is_there = child_is_group_there(pid);
		} while (is_there && child_now_s() < end_s);
	}
}

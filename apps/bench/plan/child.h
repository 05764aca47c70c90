/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands of a shell, each a process group of its own. */
#ifndef PLAN_CHILD_H
#define PLAN_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <millrace/millrace.h>

enum child_end {
	CHILD_ENDED,   /* *ret_status: as a shell has it, 128 + signal */
	CHILD_LATE,    /* it runs still */
	CHILD_STOPPED, /* a signal came that ends the plan; it runs still */
};

/* Catch the signals that end a plan; children do not get them. */
void child_catch_signals(void);
bool child_is_ending(void);

/*
 * Start a command; what it prints is added to the file log. The pid, or -errno
 * with a line. It ends when this process is killed.
 */
pid_t child_start(const char *command, const char *log, struct mr_reason *why);

/* Wait for its end, for limit_s at most. */
enum child_end child_wait(pid_t pid, double limit_s, int *ret_status);

/* The same whatever signal comes; false: it runs still. */
bool child_finish(pid_t pid, double limit_s, int *ret_status);

/* Whether it, or what it started, is still there; its status is then lost. */
bool child_is_group_there(pid_t pid);

/* End it and what it started: SIGINT, SIGTERM, SIGKILL, with time in between
 * for the last of them to clean up. */
void child_stop(pid_t pid);

/* Sleep; false: a signal came that ends the plan. */
bool child_sleep(double seconds);

double child_now_s(void);

#endif

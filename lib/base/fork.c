/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fds that must not survive in a forked child.
 *
 * CLOEXEC closes an fd at exec(), MADV_DONTFORK keeps a mapping out of a child,
 * but a child that only forks keeps each fd, and with it a queue busy, or an
 * interface promiscuous, after the parent has closed it. Linux has no flag for
 * that, so the child closes them itself, in a fork handler.
 *
 * This table is outside any context: fork() concerns the process, and its
 * handlers get no argument. docs/design/0002-fork.md describes the
 * alternatives. The handler calls only close(), which is safe in the child of a
 * process with threads.
 */
#include <pthread.h>
#include <unistd.h>

#include "base/base.h"

enum { MAX_FDS = 1024 };

static int fds_plus_1[MAX_FDS]; /* 0: free */
/* Held through fork(), so that a child sees each fd open and in the table, or
 * closed and not in it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void after_fork_in_child(void)
{
	for (int i = 0; i < MAX_FDS; i++) {
		if (fds_plus_1[i] != 0)
			close(fds_plus_1[i] - 1);
		fds_plus_1[i] = 0;
	}
	pthread_mutex_unlock(&lock);
}

static void install(void)
{
	(void)pthread_atfork(before_fork, after_fork_in_parent,
			     after_fork_in_child);
}

/* The index of value, or -1. */
static int find(int value)
{
	for (int i = 0; i < MAX_FDS; i++)
		if (fds_plus_1[i] == value)
			return i;
	return -1;
}

bool mr_fd_guard(int fd)
{
	int place;

	(void)pthread_once(&once, install);
	pthread_mutex_lock(&lock);
	place = find(0);
	if (place >= 0)
		fds_plus_1[place] = fd + 1;
	pthread_mutex_unlock(&lock);
	return place >= 0;
}

void mr_fd_close(int fd)
{
	int place;

	if (fd < 0)
		return;
	pthread_mutex_lock(&lock);
	place = find(fd + 1);
	if (place >= 0)
		fds_plus_1[place] = 0;
	close(fd);
	pthread_mutex_unlock(&lock);
}

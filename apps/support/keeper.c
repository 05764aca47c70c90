/* SPDX-License-Identifier: BSD-3-Clause */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <millrace/experimental/hand_over.h>

#include "keeper.h"
#include "notify.h"

enum { FIRST_FD = 3, NAME_BYTES = 32 };

/* The pid follows: an upgrade's successor stores its own before this one ends. */
#define PREFIX "millrace-"

static void forget(const char *name)
{
	char text[NAME_BYTES + sizeof("FDSTOREREMOVE=1\nFDNAME=")];

	snprintf(text, sizeof(text), "FDSTOREREMOVE=1\nFDNAME=%.*s",
		 NAME_BYTES - 1, name);
	(void)notify(text);
}

static long number_in(const char *variable)
{
	const char *text = getenv(variable);

	return text != NULL ? strtol(text, NULL, 10) : 0;
}

uint32_t keeper_take_fds(int ret_fds[KEEPER_MAX_FDS])
{
	const bool is_for_us = number_in("LISTEN_PID") == getpid();
	const int n = is_for_us ? (int)number_in("LISTEN_FDS") : 0;
	const char *text = getenv("LISTEN_FDNAMES");
	char *names = text != NULL ? strdup(text) : NULL, *rest = names;
	uint32_t n_found = 0;

	for (int fd = FIRST_FD; fd < FIRST_FD + n && rest != NULL; fd++) {
		const char *name = strsep(&rest, ":");

		if (strncmp(name, PREFIX, strlen(PREFIX)) != 0)
			continue;
		forget(name);
		if (n_found < KEEPER_MAX_FDS &&
		    fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
			ret_fds[n_found++] = fd;
		else
			close(fd);
	}
	free(names);
	unsetenv("LISTEN_PID"); /* children have others */
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	return n_found;
}

static void name_ours(char name[NAME_BYTES])
{
	snprintf(name, NAME_BYTES, PREFIX "%d", (int)getpid());
}

/* The fd that the store has. -1: none. */
static int stored_fd = -1;

void keeper_tick(struct mr_dataplane *dp)
{
	char name[NAME_BYTES], text[2 * NAME_BYTES + 32];
	int fd;

	if (getenv("NOTIFY_SOCKET") == NULL ||
	    mr_dataplane_keep(dp, &fd, NULL) < 0 || fd == stored_fd)
		return;
	name_ours(name);
	/* Its peer is gone when it is needed: do not remove it then. */
	snprintf(text, sizeof(text), "FDSTORE=1\nFDPOLL=0\nFDNAME=%s", name);
	if (notify_fd(text, fd))
		stored_fd = fd;
}

void keeper_leave(void)
{
	char name[NAME_BYTES];

	if (stored_fd < 0)
		return;
	name_ours(name);
	forget(name);
	stored_fd = -1;
}

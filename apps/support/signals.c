/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "signals.h"
#include "text.h"

/* Signals and the terminal belong to the process. */
static bool had_terminal, ignores_hang_up;

static bool has_terminal(void)
{
	const int fd = open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int signals_open(struct mr_reason *ret_why)
{
	struct sigaction hang_up;
	sigset_t set;
	int fd = -1;

	had_terminal = has_terminal();
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	ignores_hang_up = sigaction(SIGHUP, NULL, &hang_up) == 0 &&
			  hang_up.sa_handler == SIG_IGN;
	if (!ignores_hang_up)
		sigaddset(&set, SIGHUP);
	/* A reader that went away is a write error, not a signal. */
	signal(SIGPIPE, SIG_IGN);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == 0)
		fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		fail_with(ret_why, 0, "cannot receive signals: signalfd: %s",
			  mr_strerror(errno));
	return fd;
}

bool signals_ignore_hang_up(void)
{
	return ignores_hang_up;
}

enum signals_what signals_take(int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return SIGNALS_NONE;
	if (info.ssi_signo == SIGHUP && (!had_terminal || has_terminal()))
		return SIGNALS_RELOAD;
	return SIGNALS_END;
}

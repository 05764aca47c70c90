/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Signals that end the program. They arrive by fd, so that nothing is ever
 * interrupted half-way; the second one ends it at once.
 */
#include <signal.h>

#include "net/tester_parts.h"
#include "support/signals.h"

/* Signals are the process's, and so is this. */
static int signal_fd = -1;
static bool is_ending;

int ending_open(void)
{
	if (signal_fd < 0)
		signal_fd = signals_open();
	return signal_fd;
}

bool tester_is_ending(void)
{
	sigset_t set;

	if (is_ending || signal_fd < 0 ||
	    signals_take(signal_fd) != SIGNALS_END)
		return is_ending;
	is_ending = true;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	return true;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded: stops a program at a step of a hand-over. Steps are the messages
 * of its socket. FAULT is SIDE:CALL:NUMBER:SIGNAL, where SIDE is "old" or "new"
 * and CALL "sendmsg" or "recvmsg": the signal comes before that call.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static char side[8], call[16];
static int number, sig, n_calls;

__attribute__((constructor)) static void read_fault(void)
{
	const char *text = getenv("FAULT");
	const char *self = getenv("MILLRACE_TAKE_OVER_FD") != NULL ? "new" :
								     "old";

	if (text == NULL || sscanf(text, "%7[^:]:%15[^:]:%d:%d", side, call,
				   &number, &sig) != 4 ||
	    strcmp(side, self) != 0)
		number = 0;
}

static void step(int fd, const char *name)
{
	int type = 0;
	socklen_t n = sizeof(type);

	if (number > 0 && strcmp(call, name) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 &&
	    type == SOCK_SEQPACKET && ++n_calls == number)
		kill(getpid(), sig);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t (*next)(int, const struct msghdr *, int) =
		(ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT,
								   "sendmsg");

	step(fd, "sendmsg");
	return next(fd, message, flags);
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
	ssize_t (*next)(int, struct msghdr *, int) =
		(ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT,
							     "recvmsg");

	step(fd, "recvmsg");
	return next(fd, message, flags);
}

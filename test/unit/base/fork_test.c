/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/fork.c: a child that only forks keeps no guarded fd. */
#include "support/unit.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <millrace/driver_base.h>

static int any_fd(void)
{
	const int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

/* Which of two fds a child has: bit 0 and bit 1. */
static int fds_in_child(int fd0, int fd1)
{
	const pid_t pid = fork();
	int status = 0;

	if (pid == 0)
		_exit((fcntl(fd0, F_GETFD) >= 0) | (fcntl(fd1, F_GETFD) >= 0)
							   << 1);
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

TEST(child_has_no_guarded_fd)
{
	const int guarded = any_fd(), other = any_fd();

	assert_int_equal(fds_in_child(guarded, other), 3);
	assert_true(mr_fd_guard(guarded));
	assert_int_equal(fds_in_child(guarded, other), 2);
	assert_int_equal(fds_in_child(guarded, other), 2); /* the next too */
	assert_true(fcntl(guarded, F_GETFD) >= 0); /* the parent has it */
	mr_fd_close(guarded);
	assert_true(fcntl(guarded, F_GETFD) < 0);
	mr_fd_close(other); /* not guarded: closed as well */
	assert_true(fcntl(other, F_GETFD) < 0);
	mr_fd_close(-1);
}

/* The number of a closed fd may be somebody else's fd now. */
TEST(closed_fd_is_guarded_no_more)
{
	int fd = any_fd(), again;

	assert_true(mr_fd_guard(fd));
	mr_fd_close(fd);
	again = any_fd();
	assert_int_equal(again, fd);
	assert_int_equal(fds_in_child(again, again), 3);
	mr_fd_close(again);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests of lib/base/fork.c: a child that only forks keeps no guarded fd. */
#include "support/unit.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
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
	assert_int_equal(mr_fd_guard(guarded), guarded);
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

	assert_int_equal(mr_fd_guard(fd), fd);
	mr_fd_close(fd);
	again = any_fd();
	assert_int_equal(again, fd);
	assert_int_equal(fds_in_child(again, again), 3);
	mr_fd_close(again);
}

/* All of them are guarded. */
TEST(child_has_none_of_many_guarded_fds)
{
	enum { N_FDS = 3000 };
	struct rlimit before, limit;
	int fds[N_FDS];

	getrlimit(RLIMIT_NOFILE, &before);
	if (before.rlim_max < N_FDS + 100)
		skip();
	limit = before;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	for (int i = 0; i < N_FDS; i++) {
		fds[i] = any_fd();
		assert_int_equal(mr_fd_guard(fds[i]), fds[i]);
	}
	for (int i = 0; i < N_FDS; i += 250)
		assert_int_equal(fds_in_child(fds[i], fds[N_FDS - 1]), 0);
	for (int i = 0; i < N_FDS; i++)
		mr_fd_close(fds[i]);
	setrlimit(RLIMIT_NOFILE, &before);
}

TEST(an_error_passes_through_fd_guard)
{
	errno = ENOENT;
	assert_int_equal(mr_fd_guard(-1), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(mr_fd_guard(-EPERM), -EPERM);
	assert_int_equal(mr_fd_guard(1 << 20), -EMFILE);
	assert_int_equal(errno, EMFILE);
}

/* A connection with data that its peer does not read: close() lingers. */
static int slow_fd(int *ret_peer)
{
	const struct linger linger = { .l_onoff = 1, .l_linger = 60 };
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static const char bytes[1 << 16];
	socklen_t n_bytes = sizeof(at);

	if (bind(listener, (struct sockaddr *)&at, n_bytes) < 0 ||
	    listen(listener, 1) < 0 ||
	    getsockname(listener, (struct sockaddr *)&at, &n_bytes) < 0 ||
	    connect(fd, (struct sockaddr *)&at, n_bytes) < 0)
		skip(); /* no loopback here */
	*ret_peer = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	close(listener);
	while (send(fd, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	return fd;
}

static int is_closed; /* atomic */

static void *close_slowly(void *opaque)
{
	mr_fd_close(*(int *)opaque);
	__atomic_store_n(&is_closed, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* What an fd refers to, or "". */
static void read_target(int fd, char *target, size_t n)
{
	char path[64];
	ssize_t n_read;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n_read = readlink(path, target, n - 1);
	target[n_read > 0 ? n_read : 0] = '\0';
}

TEST(fork_does_not_wait_for_a_slow_close)
{
	const struct timespec step = { .tv_nsec = 1000000 };
	char before[64], now[64];
	pthread_t thread;
	int fd, peer = -1;

	fd = slow_fd(&peer);
	assert_int_equal(mr_fd_guard(fd), fd);
	read_target(fd, before, sizeof(before));
	pthread_create(&thread, NULL, close_slowly, &fd);
	do {
		nanosleep(&step, NULL);
		read_target(fd, now, sizeof(now));
	} while (strcmp(before, now) == 0);
	/* It has begun: the child has neither the file nor its replacement. */
	assert_int_equal(fds_in_child(fd, fd), 0);
	assert_int_equal(__atomic_load_n(&is_closed, __ATOMIC_ACQUIRE), 0);
	close(peer); /* a reset ends it */
	pthread_join(thread, NULL);
	assert_true(fcntl(fd, F_GETFD) < 0);
}

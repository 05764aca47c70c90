/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "listen.h"
#include "text.h"

enum {
	LOCK_MS = 2000,
	BACKLOG = 128,
};

static int fail_errno(const char *where, struct mr_reason *ret_why)
{
	const int err = errno;

	return fail_with(ret_why, -err, "%s: %s", where, mr_strerror(err));
}

static void make_lock_name(const char *path, char name[LISTEN_MAX_PATH + 8])
{
	snprintf(name, LISTEN_MAX_PATH + 8, "%s.lock", path);
}

/*
 * Hold a lock while replacing a dead socket: otherwise two programs that start
 * at the same time could remove each other's. The lock is a file that only this
 * user can open; a folder could be locked by any user who can read it. Returns
 * the lock's fd, or -1 with errno.
 */
static int lock_path(const char *path)
{
	const struct timespec pause = { .tv_nsec = 1000000 };
	char name[LISTEN_MAX_PATH + 8];
	struct stat stat;

	make_lock_name(path, name);
	for (uint32_t ms = 0; ms < LOCK_MS; ms++) {
		const int fd = open(
			name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return -1;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0)
			nanosleep(&pause, NULL);
		else if (fstat(fd, &stat) == 0 && stat.st_nlink > 0)
			return fd; /* and not one that was just removed */
		close(fd);
	}
	errno = EWOULDBLOCK;
	return -1;
}

static void unlock_path(const char *path, int fd)
{
	char name[LISTEN_MAX_PATH + 8];

	make_lock_name(path, name);
	(void)unlink(name);
	close(fd);
}

/* 0: nobody serves it, so it may be removed, or nothing is there. */
static int is_served(const struct sockaddr_un *addr, int type,
		     struct mr_reason *ret_why)
{
	const char *path = addr->sun_path;
	struct stat stat;
	int fd, err;

	if (lstat(path, &stat) < 0)
		return errno == ENOENT ? 0 : fail_errno(path, ret_why);
	if (!S_ISSOCK(stat.st_mode))
		return fail_with(
			ret_why, -EEXIST,
			"%s: is not a socket; remove it, or use another "
			"path",
			path);
	fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return fail_errno(path, ret_why);
	err = connect(fd, (const struct sockaddr *)addr, sizeof(*addr)) < 0 ?
		      errno :
		      0;
	close(fd);
	if (err == ECONNREFUSED)
		return unlink(path) < 0 ? fail_errno(path, ret_why) : 0;
	if (err == 0 || err == EAGAIN || err == EPROTOTYPE)
		return fail_with(
			ret_why, -EADDRINUSE,
			"%s: another process serves it; use another path",
			path);
	errno = err;
	return fail_errno(path, ret_why);
}

int listen_unix(const char *path, int type, mode_t mode,
		struct mr_reason *ret_why)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	bool is_bound = false;
	int fd = -1, lock_fd, err;

	if (strlen(path) >= sizeof(addr.sun_path))
		return fail_with(ret_why, -ENAMETOOLONG,
				 "%s: the path is too long", path);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", path);
	lock_fd = lock_path(path);
	if (lock_fd < 0 && errno == EWOULDBLOCK)
		return fail_with(
			ret_why, -EWOULDBLOCK,
			"%s: another process keeps its '.lock' file locked; "
			"end that one (lslocks names it)",
			path);
	if (lock_fd < 0)
		return fail_errno(path, ret_why);
	err = is_served(&addr, type, ret_why);
	if (err == 0) {
		fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		/* bind() gives the file the mode of the socket, less the umask,
		 * so nobody can connect before chmod(). */
		is_bound = fd >= 0 && fchmod(fd, 0600) == 0 &&
			   bind(fd, (struct sockaddr *)&addr, sizeof(addr)) ==
				   0;
		if (!is_bound || chmod(path, mode) < 0 ||
		    listen(fd, BACKLOG) < 0)
			err = fail_errno(path, ret_why);
		if (err < 0 && is_bound)
			(void)unlink(path);
	}
	unlock_path(path, lock_fd);
	if (err == 0)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

void listen_close(const char *path, int fd)
{
	if (fd < 0)
		return;
	if (path[0] != '\0')
		unlink(path); /* while it is served, nobody replaces it */
	close(fd);
}

static int listen_at(const struct addrinfo *at)
{
	const int yes = 1;
	const int fd = socket(at->ai_family,
			      SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err;

	if (fd < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
	    bind(fd, at->ai_addr, at->ai_addrlen) == 0 &&
	    listen(fd, BACKLOG) == 0)
		return fd;
	err = errno;
	close(fd);
	return -err;
}

int listen_tcp(const char *where, struct mr_reason *ret_why)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE | AI_NUMERICSERV,
					.ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(where, ':');
	struct addrinfo *found;
	char host[256];
	size_t n;
	int err;

	n = colon != NULL ? (size_t)(colon - where) : 0;
	if (n == 0 || n >= sizeof(host) || colon[1] == '\0')
		return fail_with(
			ret_why, -EINVAL,
			"%s: is not ADDRESS:PORT, such as 127.0.0.1:9100 or "
			"[::1]:9100",
			where);
	snprintf(host, sizeof(host), "%.*s", (int)n, where);
	if (host[0] == '[' && host[n - 1] == ']') {
		memmove(host, host + 1, n - 2);
		host[n - 2] = '\0';
	}
	err = getaddrinfo(host, colon + 1, &hints, &found);
	if (err != 0)
		return fail_with(ret_why, -EINVAL, "%s: %s", where,
				 gai_strerror(err));
	/* localhost is ::1 first, which a host without IPv6 lacks. */
	err = -EADDRNOTAVAIL;
	for (const struct addrinfo *at = found;
	     at != NULL && err < 0 && err != -EADDRINUSE; at = at->ai_next)
		err = listen_at(at);
	freeaddrinfo(found);
	if (err >= 0)
		return err;
	if (err == -EADDRINUSE)
		return fail_with(ret_why, -EADDRINUSE,
				 "%s: another program uses this port; choose "
				 "another, or end that program",
				 where);
	errno = -err;
	return fail_errno(where, ret_why);
}

int listen_folder(char *ret_path, size_t n_bytes, struct mr_reason *ret_why)
{
	const char *runtime = getenv("RUNTIME_DIRECTORY");
	const char *users = getenv("XDG_RUNTIME_DIR");
	const uid_t uid = geteuid();
	struct stat found;
	int n;

	if (runtime != NULL)
		n = snprintf(ret_path, n_bytes, "%.*s",
			     (int)strcspn(runtime, ":"), runtime);
	else if (uid == 0)
		n = snprintf(ret_path, n_bytes, "/run/millrace");
	else if (users != NULL)
		n = snprintf(ret_path, n_bytes, "%s/millrace", users);
	else
		n = snprintf(ret_path, n_bytes, "/tmp/millrace-%u", uid);
	if (n < 0 || (size_t)n >= n_bytes)
		return fail_with(ret_why, -ENAMETOOLONG,
				 "%s: the path is too long",
				 runtime != NULL ? runtime : users);
	if (mkdir(ret_path, uid == 0 ? 0755 : 0700) < 0 && errno != EEXIST)
		return fail_errno(ret_path, ret_why);
	/* Another user may have created the folder in /tmp. Only root makes one
	 * in /run, or a link there: systemd does, for DynamicUser= units. */
	if (runtime == NULL && uid != 0 &&
	    (lstat(ret_path, &found) < 0 || !S_ISDIR(found.st_mode) ||
	     found.st_uid != uid))
		return fail_with(ret_why, -EPERM,
				 "%s: belongs to another user; use --control",
				 ret_path);
	return 0;
}

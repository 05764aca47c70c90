/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The successor is a child with the same arguments, credentials and cgroup. An
 * environment variable has the number of its end of a socketpair. No other
 * process has that end, so no other can take over.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <millrace/experimental/hand_over.h>

#include "notify.h"
#include "run.h"
#include "text.h"
#include "upgrade.h"

#define VARIABLE "MILLRACE_TAKE_OVER_FD"
#define SIZES "MILLRACE_TAKE_OVER_SIZES"

enum {
	CHILD_FD = 3,
	START_MS = 30000, /* for the successor to start */
	TELL_MS = 1000,   /* for its workers to start */
	MAX_ARGS = 1000,
	NS_PER_MS = 1000000,
};

extern char **environ;

/* ---- in the new process ---- */

static int find_fd(void)
{
	const char *text = getenv(VARIABLE);
	socklen_t n = sizeof(int);
	int fd, type;
	char *end;

	if (text == NULL)
		return -1;
	fd = (int)strtoul(text, &end, 10);
	unsetenv(VARIABLE); /* children have other sockets */
	if (*end != '\0' ||
	    getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) < 0 ||
	    type != SOCK_SEQPACKET || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
		return -1;
	return fd;
}

int upgrade_fd(void)
{
	static int fd = -2; /* not looked for */

	if (fd == -2)
		fd = find_fd();
	return fd;
}

const char *upgrade_sizes(void)
{
	static const char *sizes;
	const char *found = getenv(SIZES);

	if (found != NULL) {
		sizes = found;
		unsetenv(SIZES); /* children have others */
	}
	return upgrade_fd() >= 0 ? sizes : NULL;
}

void upgrade_refuse(const char *why)
{
	if (upgrade_fd() >= 0)
		mr_dataplane_refuse(upgrade_fd(), why);
}

int upgrade_take(const struct run_config *config, uint64_t *ret_start_ns,
		 struct mr_reason *ret_why)
{
	struct mr_dataplane *dp = config->plane->open;
	struct mr_parcel *parcel;
	int err = mr_dataplane_take_state(dp, &parcel, ret_why);

	if (err == 0)
		err = mr_parcel_get(parcel, "start_ns", 0, ret_start_ns,
				    sizeof(*ret_start_ns), ret_why);
	if (err == 0 && config->take_state != NULL) {
		mr_parcel_enter(parcel, "app");
		err = config->take_state(config->app, parcel, ret_why);
	}
	if (err == 0 && config->control != NULL)
		err = control_take(config->control, parcel, ret_why);
	if (err < 0)
		upgrade_refuse(ret_why->text);
	else
		err = mr_dataplane_own(dp, ret_why);
	if (err < 0 && config->control != NULL)
		control_leave(config->control);
	if (err == 0 && config->own != NULL)
		config->own(config->app);
	return err < 0 ? -1 : 0;
}

void upgrade_tell_start(const struct dataplane *plane)
{
	const uint64_t now_ns = mr_ctx_now_ns(plane->ctx);

	/* This is only for the answer to the user. */
	if (plane->is_taken_over)
		(void)send(upgrade_fd(), &now_ns, sizeof(now_ns),
			   MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* ---- in the old process ---- */

struct upgrade {
	const struct run_config *config;
	const uint64_t *start_ns;
	int fd; /* -1: there is no successor */
	pid_t pid;
	uint64_t end_ns;
	uint64_t n_bytes; /* of the state, about */
	bool is_offered;
	bool is_done;  /* the successor has everything */
	bool has_news; /* for the verb */
	uint64_t n_gap_us;
	struct mr_reason why;
};

struct upgrade *upgrade_create(const struct run_config *config,
			       const uint64_t *start_ns)
{
	struct upgrade *upgrade = calloc(1, sizeof(*upgrade));

	if (upgrade != NULL) {
		upgrade->config = config;
		upgrade->start_ns = start_ns;
		upgrade->fd = -1;
	}
	return upgrade;
}

void upgrade_destroy(struct upgrade *upgrade)
{
	if (upgrade != NULL && upgrade->fd >= 0)
		close(upgrade->fd);
	free(upgrade);
}

int upgrade_socket(const struct upgrade *upgrade)
{
	return upgrade->fd;
}

bool upgrade_is_running(const struct upgrade *upgrade)
{
	return upgrade != NULL && upgrade->fd >= 0;
}

static uint64_t now_ns(const struct upgrade *upgrade)
{
	return mr_ctx_now_ns(upgrade->config->plane->ctx);
}

/*
 * Whether only the program's user or root can change what is at a path. The
 * owner of "/" counts as root: in a user namespace, the machine's root has no
 * other number.
 */
static bool is_safe(const char *path, mode_t type)
{
	struct stat found, top;

	return stat(path, &found) == 0 && stat("/", &top) == 0 &&
	       (found.st_mode & S_IFMT) == type &&
	       (found.st_uid == 0 || found.st_uid == geteuid() ||
		found.st_uid == top.st_uid) &&
	       ((found.st_mode & (S_IWGRP | S_IWOTH)) == 0 ||
		(type == S_IFDIR && found.st_mode & S_ISVTX));
}

/* Resolve links, so that the file that was checked is the one that runs. */
static int check_binary(const char *binary, char path[PATH_MAX],
			struct mr_reason *ret_why)
{
	char folder[PATH_MAX];
	bool are_safe;

	if (binary[0] != '/')
		return fail_with(ret_why, -EINVAL,
				 "%s: give a path from the root", binary);
	if (realpath(binary, path) == NULL || access(path, X_OK) < 0)
		return fail_with(ret_why, -errno, "%s: %s", binary,
				 mr_strerror(errno));
	snprintf(folder, sizeof(folder), "%s", path);
	are_safe = is_safe(path, S_IFREG);
	while (are_safe && strcmp(folder, "/") != 0)
		are_safe = is_safe(dirname(folder), S_IFDIR);
	return are_safe ? 0 :
			  fail_with(ret_why, -EPERM,
				    "%s: others than root and this program's "
				    "user can change it; fix its owner and "
				    "mode, or those of its directories",
				    path);
}

/* The path of this program. The file there may be newer by now. */
static int own_path(char path[PATH_MAX], struct mr_reason *ret_why)
{
	static const char gone[] = " (deleted)";
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (n < 0)
		return fail_with(ret_why, -errno, "/proc/self/exe: %s",
				 mr_strerror(errno));
	path[n] = '\0';
	n -= (ssize_t)sizeof(gone) - 1;
	if (n > 0 && strcmp(path + n, gone) == 0)
		path[n] = '\0';
	return 0;
}

static void free_words(char **words)
{
	for (size_t i = 0; words != NULL && words[i] != NULL; i++)
		free(words[i]);
	free(words);
}

/* The arguments of this process. 0 or -errno. */
static int own_arguments(char ***ret_words)
{
	char **words = calloc(MAX_ARGS + 2, sizeof(words[0]));
	FILE *file = fopen("/proc/self/cmdline", "re");
	size_t n_bytes, n = 0;
	int err = file == NULL ? -errno : words == NULL ? -ENOMEM : 0;

	while (err == 0) {
		n_bytes = 0;
		if (getdelim(&words[n], &n_bytes, '\0', file) < 0)
			break;
		if (++n > MAX_ARGS)
			err = -E2BIG;
	}
	if (err == 0) {
		free(words[n]); /* getdelim() also allocates at the end */
		words[n] = NULL;
	}
	if (file != NULL)
		fclose(file);
	if (err == 0)
		*ret_words = words;
	else
		free_words(words);
	return err;
}

/* The environment and our variables; the strings are not copied. setenv() would
 * race with getenv() in other threads. NULL: no memory. */
static char **make_environment(char *sizes)
{
	static char variable[] = VARIABLE "=3";
	char **words;
	size_t n = 0;

	_Static_assert(CHILD_FD == 3, "as in the variable");
	while (environ[n] != NULL)
		n++;
	words = calloc(n + 3, sizeof(words[0]));
	if (words == NULL)
		return NULL;
	memcpy(words, environ, n * sizeof(words[0]));
	words[n] = variable;
	words[n + 1] = sizes;
	return words;
}

/* The child does not inherit the signals that this process has blocked. */
static int spawn_with(const char *path, int child_fd, char **arguments,
		      char **environment, pid_t *ret_pid)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int err;

	sigemptyset(&none);
	posix_spawnattr_init(&attributes); /* neither fails in Linux */
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
	/* The child's copy is not close-on-exec. */
	err = posix_spawn_file_actions_adddup2(&actions, child_fd, CHILD_FD);
	if (err == 0)
		err = posix_spawn(ret_pid, path, &actions, &attributes,
				  arguments, environment);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	return -err;
}

static int spawn(struct upgrade *upgrade, const char *path, int child_fd)
{
	const struct run_config *config = upgrade->config;
	char sizes[2048] = SIZES "=";
	const size_t n = strlen(sizes);
	char **arguments = NULL, **environment;
	int err = own_arguments(&arguments);

	if (err < 0)
		return err;
	if (config->expect_state != NULL)
		upgrade->n_bytes = config->expect_state(
			config->app, sizes + n, sizeof(sizes) - n);
	environment = make_environment(sizes);
	err = environment == NULL ?
		      -ENOMEM :
		      spawn_with(path, child_fd, arguments, environment,
				 &upgrade->pid);
	free(environment);
	free_words(arguments);
	return err;
}

/* Start the successor. 0, or -errno with a reason. */
static int start(struct upgrade *upgrade, const char *binary,
		 struct mr_reason *ret_why)
{
	char self[PATH_MAX], path[PATH_MAX];
	int fds[2], err = 0;

	if (getpid() == 1)
		return fail_with(ret_why, -ENOTSUP,
				 "this is process 1 of its container, which "
				 "ends with it: run it below an init");
	if (binary == NULL) {
		err = own_path(self, ret_why);
		binary = self;
	}
	if (err == 0)
		err = check_binary(binary, path, ret_why);
	if (err < 0)
		return err;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return fail_with(ret_why, -errno, "socketpair: %s",
				 mr_strerror(errno));
	err = spawn(upgrade, path, fds[1]);
	close(fds[1]);
	if (err < 0) {
		close(fds[0]);
		return fail_with(ret_why, err, "%s: %s", path,
				 mr_strerror(-err));
	}
	upgrade->fd = fds[0];
	upgrade->end_ns = now_ns(upgrade) + (uint64_t)START_MS * NS_PER_MS;
	upgrade->is_offered = false;
	return 0;
}

static void end_successor(struct upgrade *upgrade)
{
	kill(upgrade->pid, SIGKILL);
	(void)waitpid(upgrade->pid, NULL, 0);
	close(upgrade->fd);
	upgrade->fd = -1;
	upgrade->has_news = true;
}

static void go_on(struct upgrade *upgrade)
{
	end_successor(upgrade);
	print_error("%s: upgrade: %s; this process goes on",
		    upgrade->config->plane->program, upgrade->why.text);
}

void upgrade_cancel(struct upgrade *upgrade)
{
	fail_with(&upgrade->why, 0, "the program was told to end");
	end_successor(upgrade);
}

static void put_all(struct mr_parcel *parcel, void *opaque)
{
	const struct upgrade *upgrade = opaque;
	const struct run_config *config = upgrade->config;

	/* All processes share CLOCK_MONOTONIC. */
	mr_parcel_put(parcel, "start_ns", 0, upgrade->start_ns,
		      sizeof(*upgrade->start_ns));
	mr_parcel_enter(parcel, "app");
	if (config->put_state != NULL)
		config->put_state(config->app, parcel);
	if (config->control != NULL)
		control_put(config->control, parcel);
}

/* When the successor's workers started. If it does not tell, use now. */
static uint64_t hear_start(const struct upgrade *upgrade)
{
	struct pollfd ready = { .fd = upgrade->fd, .events = POLLIN };
	uint64_t start_ns;

	if (poll(&ready, 1, TELL_MS) > 0 &&
	    recv(upgrade->fd, &start_ns, sizeof(start_ns), MSG_DONTWAIT) ==
		    sizeof(start_ns))
		return start_ns;
	return now_ns(upgrade);
}

/* Stop the workers, and hand over. False: this process continues, or exits if it
 * cannot. */
static bool hand_over(struct upgrade *upgrade)
{
	const struct run_config *config = upgrade->config;
	const uint64_t begin_ns = now_ns(upgrade);
	struct mr_reason why;

	if (dataplane_pause(config->plane, config->drop, config->workers,
			    &upgrade->why) < 0) {
		print_error("%s: %s", config->plane->program,
			    upgrade->why.text);
		_exit(1); /* a worker still uses its queues */
	}
	if (mr_dataplane_hand_over(config->plane->open, put_all, upgrade,
				   &upgrade->why) == 0) {
		upgrade->n_gap_us = (hear_start(upgrade) - begin_ns) / 1000;
		return true;
	}
	if (dataplane_resume(config->plane, config->work, config->workers,
			     &why) == 0)
		return false;
	print_error("%s: %s", config->plane->program, why.text);
	_exit(1);
}

static void tell_systemd(pid_t pid)
{
	char text[32];

	snprintf(text, sizeof(text), "MAINPID=%d", (int)pid);
	(void)notify(text);
}

bool upgrade_serve(struct upgrade *upgrade)
{
	struct pollfd ready = { .fd = upgrade->fd, .events = POLLIN };

	if (upgrade->fd < 0)
		return false;
	if (poll(&ready, 1, 0) == 0) {
		if (now_ns(upgrade) < upgrade->end_ns)
			return false;
		fail_with(&upgrade->why, 0,
			  "the new process was not ready within %d s",
			  START_MS / 1000);
		go_on(upgrade);
	} else if (!upgrade->is_offered) {
		upgrade->is_offered =
			mr_dataplane_offer(upgrade->config->plane->open,
					   upgrade->fd, upgrade->n_bytes,
					   &upgrade->why) == 0;
		if (!upgrade->is_offered)
			go_on(upgrade);
	} else if (mr_dataplane_wait_ready(upgrade->config->plane->open,
					   &upgrade->why) == 0 &&
		   hand_over(upgrade)) {
		upgrade->is_done = upgrade->has_news = true;
		tell_systemd(upgrade->pid);
	} else {
		go_on(upgrade);
	}
	return upgrade->is_done;
}

bool upgrade_answer(struct control_request *r, void *opaque)
{
	struct upgrade *upgrade = control_view_of(opaque)->upgrade;
	bool *is_waiting = r->state;
	const char *binary = NULL;
	struct mr_reason why;

	if (*is_waiting && !upgrade->has_news)
		return false;
	if (*is_waiting)
		return upgrade->is_done ?
			       control_end(
				       r,
				       json_pack(
					       "{s:i, s:I}", "pid",
					       (int)upgrade->pid, "gap_us",
					       (json_int_t)upgrade->n_gap_us)) :
			       control_fail(r,
					    "upgrade: %s; the old process "
					    "goes on",
					    upgrade->why.text);
	if (!control_args(r, "{s?s}", "binary", &binary))
		return true;
	if (r->uid != 0 && r->uid != geteuid())
		return control_fail(r, "upgrade: only for root and the "
				       "program's own user");
	if (upgrade->fd >= 0)
		return control_fail(r, "upgrade: one is under way");
	upgrade->has_news = false;
	if (start(upgrade, binary, &why) < 0)
		return control_fail(r, "upgrade: %s", why.text);
	*is_waiting = true;
	return false;
}

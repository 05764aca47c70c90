/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "owner.h"

enum { NODE_WAIT_MS = 5000, ASK_WAIT_MS = 5000 };

extern char **environ;

static bool is_number(const char *text, unsigned long *ret)
{
	char *end;

	*ret = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

static int refuse(struct mr_reason *reason, const char *what, const char *name)
{
	return machine_fail(reason, -EINVAL, "--owner: there is no %s '%s'",
			    what, name);
}

/* A number needs no entry in the files of users: containers have none. */
static bool find_user(struct owner *owner)
{
	unsigned long id;
	const bool has_id = is_number(owner->user, &id);
	const struct passwd *user =
		has_id ? getpwuid((uid_t)id) : getpwnam(owner->user);

	if (user == NULL) {
		owner->uid = (uid_t)id;
		owner->gid = (gid_t)-1; /* as it is */
		return has_id;
	}
	snprintf(owner->user, sizeof(owner->user), "%s", user->pw_name);
	owner->uid = user->pw_uid;
	owner->gid = user->pw_gid;
	return true;
}

static bool find_group(const char *text, struct owner *owner)
{
	const struct group *group = getgrnam(text);
	unsigned long id;

	if (group == NULL && !is_number(text, &id))
		return false;
	owner->gid = group != NULL ? group->gr_gid : (gid_t)id;
	return true;
}

int owner_parse(const char *text, struct owner *ret, struct mr_reason *reason)
{
	const size_t n = strcspn(text, ":");

	*ret = (struct owner){ .user = "" };
	if (n == 0 || n >= sizeof(ret->user))
		return refuse(reason, "user", text);
	memcpy(ret->user, text, n);
	if (!find_user(ret))
		return refuse(reason, "user", ret->user);
	if (text[n] == ':' && !find_group(text + n + 1, ret))
		return refuse(reason, "group", text + n + 1);
	return 0;
}

/* devtmpfs makes it when the device is bound, udev may follow. */
static int give_node(const struct machine *machine, const char *node,
		     const char *bdf, const struct owner *owner,
		     struct mr_reason *reason)
{
	const struct path path = machine_path(machine, "%s", node);
	const uint64_t until_ms = machine_now_ms() + NODE_WAIT_MS;

	while (chown(path.text, owner->uid, owner->gid) < 0) {
		const int err = -errno;

		if (err == -ENOENT && machine_now_ms() < until_ms) {
			machine_nap();
			continue;
		}
		return machine_fail(reason, err,
				    "%s: cannot make %s %s's: %s%s", bdf,
				    path.text, owner->user, strerror(-err),
				    err == -EPERM ? ": run as root" : "");
	}
	return 0;
}

/* The end of a child that is asked, or is late. */
static void reap(pid_t pid, bool is_late)
{
	if (is_late)
		(void)kill(pid, SIGKILL);
	(void)waitpid(pid, NULL, 0);
}

/*
 * What a session of the user may lock, in KiB or "unlimited": limits are given
 * by PAM, so the user's own shell is asked. False: cannot be told.
 */
static bool ask_memlock(const char *user, char *text, size_t n_bytes)
{
	const char *const command[] = { "su",        "-s", "/bin/sh", "-c",
					"ulimit -l", user, NULL };
	posix_spawn_file_actions_t actions;
	struct pollfd wait = { .events = POLLIN };
	int fds[2];
	ssize_t n = 0;
	pid_t pid;
	bool is_late;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fds[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (posix_spawnp(&pid, command[0], &actions, NULL,
			 (char *const *)command, environ) != 0)
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	close(fds[1]);
	wait.fd = fds[0];
	is_late = pid > 0 && poll(&wait, 1, ASK_WAIT_MS) <= 0;
	if (pid > 0 && !is_late)
		n = read(fds[0], text, n_bytes - 1);
	close(fds[0]);
	if (pid > 0)
		reap(pid, is_late);
	if (n <= 0)
		return false;
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, "unlimited") == 0 ||
	       (text[0] >= '0' && text[0] <= '9');
}

int owner_give(const struct machine *machine, const char *bdf,
	       const struct owner *owner, struct mr_reason *reason)
{
	struct mr_pci_info info = { .size = sizeof(info) };
	char cdev[NAME_BYTES];
	int err = mr_pci_info(machine->ctx, bdf, &info, reason);

	if (err < 0)
		return err;
	err = give_node(machine, device_group_node(machine, &info).text, bdf,
			owner, reason);
	if (err == 0 && info.vfio_cdev[0] != '\0') {
		snprintf(cdev, sizeof(cdev), "/dev/vfio/devices/%s",
			 info.vfio_cdev);
		err = give_node(machine, cdev, bdf, owner, reason);
	}
	return err;
}

void owner_say(const struct machine *machine, const char *bdf,
	       const struct owner *owner)
{
	struct mr_pci_info info = { .size = sizeof(info) };
	char limit[NAME_BYTES];

	if (mr_pci_info(machine->ctx, bdf, &info, NULL) < 0)
		return; /* unplugged meanwhile */
	printf("%s: %s is %s's, who ", bdf,
	       device_group_node(machine, &info).text, owner->user);
	if (!ask_memlock(owner->user, limit, sizeof(limit)))
		printf("may lock as much memory as 'ulimit -l' says there\n");
	else if (strcmp(limit, "unlimited") == 0)
		printf("may lock any amount of memory\n");
	else
		printf("may lock %s KiB of memory: a port says at open how "
		       "much it needs; the limit is 'memlock' in "
		       "/etc/security/limits.conf\n",
		       limit);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices.h"

enum { NODE_WAIT_MS = 5000 };

static bool is_number(const char *text, unsigned long *ret)
{
	char *end;

	*ret = strtoul(text, &end, 10);
	return text[0] >= '0' && text[0] <= '9' && *end == '\0';
}

/* A numeric id needs no user database: containers have none. */
static bool find_user(struct owner *owner)
{
	unsigned long id;
	const bool has_id = is_number(owner->user, &id);
	const struct passwd *user =
		has_id ? getpwuid((uid_t)id) : getpwnam(owner->user);

	if (user == NULL) {
		owner->uid = (uid_t)id;
		owner->gid = (gid_t)-1; /* unchanged */
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
	static const char none[] = "--owner: there is no %s '%s'";
	const size_t n = strcspn(text, ":");

	*ret = (struct owner){ .user = "" };
	if (n == 0 || n >= sizeof(ret->user))
		return fail(reason, -EINVAL, none, "user", text);
	memcpy(ret->user, text, n);
	if (!find_user(ret))
		return fail(reason, -EINVAL, none, "user", ret->user);
	if (text[n] == ':' && !find_group(text + n + 1, ret))
		return fail(reason, -EINVAL, none, "group", text + n + 1);
	return 0;
}

/* devtmpfs creates it on binding; udev may follow. */
static int give_node(const char *node, const char *bdf,
		     const struct owner *owner, struct mr_reason *reason)
{
	const struct path path = machine_path("%s", node);
	const uint64_t until_ms = machine_after_ms(NODE_WAIT_MS);
	int err;

	do {
		if (chown(path.text, owner->uid, owner->gid) == 0)
			return 0;
		err = -errno;
	} while (err == -ENOENT && machine_nap(until_ms));
	return fail(reason, err, "%s: cannot give %s to %s: %s%s", bdf,
		    path.text, owner->user, strerror(-err),
		    err == -EPERM ? ": run as root" : "");
}

/*
 * How much a session of the user may lock, in KiB or "unlimited": PAM sets
 * limits, so ask the user's own shell, with the name in the environment, since
 * it may have any character. False: unknown.
 */
static bool ask_memlock(const char *user, char *text, int n_bytes)
{
	FILE *answer = NULL;
	bool is_read;

	if (setenv("MR_OWNER", user, 1) == 0)
		answer = popen("exec timeout -k 1 5 su -s /bin/sh -c "
			       "'ulimit -l' \"$MR_OWNER\" 2>/dev/null "
			       "</dev/null",
			       "re");
	is_read = answer != NULL && fgets(text, n_bytes, answer) != NULL;
	if (answer != NULL)
		pclose(answer);
	if (!is_read)
		return false;
	text[strcspn(text, "\n")] = '\0';
	return strcmp(text, "unlimited") == 0 ||
	       (text[0] >= '0' && text[0] <= '9');
}

int owner_give(const char *bdf, const struct owner *owner,
	       struct mr_reason *reason)
{
	struct mr_pci_info info = { .size = sizeof(info) };
	struct nodes nodes;
	int err = mr_pci_info(machine.ctx, bdf, &info, reason);

	if (err < 0)
		return err;
	nodes = device_nodes(&info);
	err = give_node(nodes.group.text, bdf, owner, reason);
	if (err == 0 && nodes.device.text[0] != '\0')
		err = give_node(nodes.device.text, bdf, owner, reason);
	return err;
}

void owner_say(const char *bdf, const struct owner *owner)
{
	struct mr_pci_info info;
	char limit[NAME_BYTES];

	if (!device_look(bdf, &info))
		return;
	printf("%s: %s now belongs to %s, who ", bdf,
	       device_nodes(&info).group.text, owner->user);
	if (!ask_memlock(owner->user, limit, sizeof(limit)))
		printf("may lock as much memory as 'ulimit -l' shows there\n");
	else if (strcmp(limit, "unlimited") == 0)
		printf("may lock any amount of memory\n");
	else
		printf("may lock %s KiB of memory; opening a port prints how "
		       "much it needs; the limit is 'memlock' in "
		       "/etc/security/limits.conf\n",
		       limit);
}

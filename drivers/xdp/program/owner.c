/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Find the XDP program attached to the interface, and its owner, for the
 * message that refuses a port because of it.
 *
 * One attached by netlink has no owner; one attached by a bpf_link belongs to
 * the processes that hold it (/proc/PID/fdinfo), or to a file in /sys/fs/bpf.
 *
 * Source: linux/kernel/bpf/syscall.c (bpf_link_show_fdinfo), bpf(2).
 */
#include <dirent.h>
#include <errno.h>
#include <linux/if_link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "xdp.h"

enum { LINK_IS_XDP = 6 }; /* BPF_LINK_TYPE_XDP */

/* The id of a program's link; 0: it has none; -errno: not permitted. */
static int find_link(uint32_t prog_id)
{
	uint32_t id = 0;

	while (bpf_link_get_next_id(id, &id) == 0) {
		struct bpf_link_info info = { 0 };
		uint32_t n_bytes = sizeof(info);
		const int fd = bpf_link_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (bpf_obj_get_info_by_fd(fd, &info, &n_bytes) < 0)
			info.prog_id = 0;
		close(fd);
		if (info.type == LINK_IS_XDP && info.prog_id == prog_id)
			return (int)id;
	}
	return errno == ENOENT ? 0 : -errno;
}

/* The number after a key in a file of /proc; 0: none. */
static uint32_t read_number(const char *path, const char *key)
{
	FILE *file = fopen(path, "re");
	const size_t n = strlen(key);
	uint32_t number = 0;
	char line[128];

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, key, n) == 0)
			number = (uint32_t)strtoul(line + n, NULL, 10);
	fclose(file);
	return number;
}

/* Whether a process has a link open. */
static bool has_link(const char *pid, uint32_t link_id)
{
	char path[64], target[64];
	const struct dirent *entry;
	bool has = false;
	ssize_t n;
	DIR *fds;

	snprintf(path, sizeof(path), "/proc/%.16s/fd", pid);
	fds = opendir(path);
	while (fds != NULL && !has && (entry = readdir(fds)) != NULL) {
		snprintf(path, sizeof(path), "/proc/%.16s/fd/%.16s", pid,
			 entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		if (strstr(target, "bpf_link") == NULL)
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/fdinfo/%.16s", pid,
			 entry->d_name);
		has = read_number(path, "link_id:") == link_id;
	}
	if (fds != NULL)
		closedir(fds);
	return has;
}

/* "NAME (pid N)", or "" if no process that we may inspect holds it. */
static void find_process(uint32_t link_id, char *text, size_t n_bytes)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry = NULL;
	char path[64], name[32] = "?";
	FILE *file;

	text[0] = '\0';
	while (processes != NULL && (entry = readdir(processes)) != NULL)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' &&
		    has_link(entry->d_name, link_id))
			break;
	if (entry != NULL) {
		snprintf(path, sizeof(path), "/proc/%.16s/comm", entry->d_name);
		file = fopen(path, "re");
		if (file != NULL) {
			if (fgets(name, sizeof(name), file) != NULL)
				name[strcspn(name, "\n")] = '\0';
			fclose(file);
		}
		snprintf(text, n_bytes, "%s (pid %.16s)", name, entry->d_name);
	}
	if (processes != NULL)
		closedir(processes);
}

bool mri_xdp_prog_name(uint32_t prog_id, char name[BPF_OBJ_NAME_LEN])
{
	struct bpf_prog_info info = { 0 };
	uint32_t n_bytes = sizeof(info);
	const int fd = bpf_prog_get_fd_by_id(prog_id);

	name[0] = '\0';
	if (fd < 0)
		return errno == ENOENT;
	if (bpf_obj_get_info_by_fd(fd, &info, &n_bytes) == 0)
		snprintf(name, BPF_OBJ_NAME_LEN, "%s", info.name);
	close(fd);
	return false;
}

int mri_xdp_refuse_occupied(const struct xdp_port *port, const char *why,
			    struct mr_reason *reterr_reason)
{
	const uint32_t prog_id = port->dev.xdp_prog_id;
	const int link_id = find_link(prog_id);
	char name[BPF_OBJ_NAME_LEN], process[64] = "", remedy[128];

	(void)mri_xdp_prog_name(prog_id, name);
	if (link_id > 0)
		find_process((uint32_t)link_id, process, sizeof(process));
	if (process[0] != '\0')
		snprintf(remedy, sizeof(remedy), " by %s: stop it", process);
	else if (link_id > 0)
		snprintf(remedy, sizeof(remedy),
			 " by a link that no process here holds: 'bpftool "
			 "link detach id %d'",
			 link_id);
	else if (link_id == 0)
		snprintf(remedy, sizeof(remedy),
			 " without a link: 'ip link set dev %s %s off'",
			 port->dev.name,
			 port->dev.xdp_attached == XDP_ATTACHED_SKB ?
				 "xdpgeneric" :
				 "xdp");
	else
		snprintf(remedy, sizeof(remedy),
			 "; only root can see its owner, which must end");
	if (strncmp(name, "millrace", 8) == 0)
		return mr_fail(reterr_reason, -EBUSY,
			       "%s: another program that uses Millrace has "
			       "this interface (XDP program id %u, attached%s)",
			       port->base.info->name, prog_id, remedy);
	return mr_fail(reterr_reason, -EBUSY,
		       "%s: another XDP program%s%s%s (id %u) is attached%s, "
		       "or use its XSKMAP with the option 'map'%s%s",
		       port->base.info->name, name[0] != '\0' ? " '" : "", name,
		       name[0] != '\0' ? "'" : "", prog_id, remedy,
		       why[0] != '\0' ? "; " : "", why);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the port has changed on its interface, and how that is restored: at
 * close or, if the process was killed, when a port is next opened on it.
 *
 * The changes are listed in memory and in a file per interface, one line each,
 * written before the change is made. The file is locked while its port is open,
 * so whoever gets the lock of a file knows that its owner is dead. It restores
 * what is still as the owner left it; later changes by others stay.
 *
 *     xdp-COOKIE-IFINDEX:  SETTING ID BEFORE SINCE
 *
 * The cookie identifies the network namespace, until the next boot. Only the
 * holder of the lock removes a file, and whoever locks a file that has been
 * removed opens it again.
 *
 * Programs of root, including mr-brokerd, have a separate folder, because the
 * group of the other folder can add files there. A file is used only if it
 * belongs to root, to this process's user or to the user of the systemd units,
 * and only its owner can write to it. The group millrace can read the files,
 * because mr-brokerd runs as root without CAP_DAC_OVERRIDE, and the units as
 * the user millrace. If no file can be written, a warning says what to do by
 * hand.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "xdp.h"

#define FOLDER "/run/millrace"
#define FOLDER_OF_ROOT "/run/millrace-root"

enum {
	NETNS_COOKIE = 71, /* SO_NETNS_COOKIE, Linux 5.14 */
	/* A process that was killed is not dead at once. */
	LOCK_WAIT_MS = 1000,
	UNDO_WAIT_MS = 1000, /* for all changes together */
	LOCK_STEP_MS = 2,
	/* All of one width, so that a line can be overwritten in place. */
	LINE_BYTES = 80,
};

/* As ip(8) and sysfs have it. */
static const char *describe_value(const struct xdp_change *change,
				  uint64_t value, char text[64])
{
	const uint8_t *mac = (const uint8_t *)&value;

	if (change->setting == XDP_SETTING_UP)
		return value ? "up" : "down";
	if (change->setting >= XDP_SETTING_RSS_FIELDS)
		snprintf(text, 64, "%s, part %u",
			 mri_xdp_setting_names[change->setting], change->id);
	else if (change->setting == XDP_SETTING_MAC)
		snprintf(text, 64, "address %02x:%02x:%02x:%02x:%02x:%02x",
			 mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
	else
		snprintf(text, 64, "%s %llu",
			 mri_xdp_setting_names[change->setting],
			 (unsigned long long)value);
	return text;
}

int mri_xdp_netns_cookie(uint64_t *ret_cookie)
{
	const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t n_bytes = sizeof(*ret_cookie);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (getsockopt(fd, SOL_SOCKET, NETNS_COOKIE, ret_cookie, &n_bytes) < 0)
		err = -errno;
	close(fd);
	return err;
}

static const char *own_folder(void)
{
	return geteuid() == 0 ? FOLDER_OF_ROOT : FOLDER;
}

static int find_path(struct xdp_port *port, const char *folder)
{
	uint64_t cookie;
	const int err = mri_xdp_netns_cookie(&cookie);

	if (err < 0)
		return err;
	snprintf(port->record.path, sizeof(port->record.path), "%s/xdp-%llu-%u",
		 folder, (unsigned long long)cookie, port->dev.ifindex);
	return 0;
}

/*
 * Open the file, or create it, readable for the folder's group (the folder's
 * set-group-ID bit). O_CREAT without O_EXCL would fail for a file that another
 * user has created, if fs.protected_regular is set.
 */
static int open_file(const char *path, bool creates)
{
	const int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
	int fd = open(path, O_RDWR | flags);

	if (fd < 0 && errno == EACCES && !creates)
		fd = open(path, O_RDONLY | flags);
	if (fd >= 0 || errno != ENOENT || !creates)
		return fd;
	fd = open(path, O_RDWR | flags | O_CREAT | O_EXCL, 0600);
	if (fd >= 0)
		(void)fchmod(fd, 0640);
	return fd;
}

/* Whether uid is the user that config/sysusers creates. getpwnam() could load
 * modules and use the network. */
static bool is_user_of_units(uid_t uid)
{
	FILE *file = fopen("/etc/passwd", "re");
	bool is_user = false;
	char line[512];
	unsigned found;

	while (file != NULL && !is_user &&
	       fgets(line, sizeof(line), file) != NULL)
		is_user = sscanf(line, "millrace:%*[^:]:%u:", &found) == 1 &&
			  found == uid;
	if (file != NULL)
		fclose(file);
	return is_user;
}

/* Whether only users who may change the interface can have written the file. */
static bool is_trusted(const struct stat *status)
{
	return S_ISREG(status->st_mode) && status->st_nlink == 1 &&
	       (status->st_mode & (S_IWGRP | S_IWOTH)) == 0 &&
	       (status->st_uid == 0 || status->st_uid == geteuid() ||
		is_user_of_units(status->st_uid));
}

/*
 * Open and lock the interface's file: an fd, -EBUSY if a live process has it
 * locked, -ENOENT if there is none and it may not be created, -EPERM if others
 * can have written it, or -errno.
 */
static int open_locked(const char *path, bool creates, int wait_ms)
{
	const struct timespec step = { .tv_nsec = LOCK_STEP_MS * 1000000 };
	struct stat status = { 0 };
	int fd;

	for (int ms = 0; ms <= wait_ms; ms += LOCK_STEP_MS) {
		fd = open_file(path, creates);
		if (fd < 0 && errno == EEXIST)
			continue;
		if (fd < 0)
			return -errno;
		if (fstat(fd, &status) == 0 && status.st_nlink > 0 &&
		    !is_trusted(&status)) {
			close(fd);
			return -EPERM;
		}
		if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
			if (fstat(fd, &status) == 0 && status.st_nlink > 0)
				return mr_fd_guard(fd);
			wait_ms += LOCK_STEP_MS; /* it was just removed */
		}
		close(fd);
		if (ms < wait_ms)
			nanosleep(&step, NULL);
	}
	return -EBUSY;
}

/* Write the line of a change. */
static int write_change(struct xdp_port *port, const struct xdp_change *change)
{
	struct xdp_record *record = &port->record;
	const size_t i = (size_t)(change - record->changes);
	char line[LINE_BYTES + 1];
	int err;

	if (port->lease.fds[XDP_LEASE_RECORD] < 0) {
		const char *folder = own_folder();

		err = find_path(port, folder);
		if (err < 0)
			return err;
		if (mkdir(folder, 0755) < 0 && errno != EEXIST)
			return -errno;
		port->lease.fds[XDP_LEASE_RECORD] =
			open_locked(record->path, true, LOCK_STEP_MS);
		if (port->lease.fds[XDP_LEASE_RECORD] < 0)
			return port->lease.fds[XDP_LEASE_RECORD];
	}
	snprintf(line, sizeof(line), "%-20s %10u %20llu %20llu      \n",
		 mri_xdp_setting_names[change->setting], change->id,
		 (unsigned long long)change->before,
		 (unsigned long long)change->since);
	if (pwrite(port->lease.fds[XDP_LEASE_RECORD], line, LINE_BYTES,
		   (off_t)(i * LINE_BYTES)) < 0)
		return -errno;
	return 0;
}

static struct xdp_change *find_change(struct xdp_record *record,
				      enum xdp_setting setting, uint32_t id)
{
	for (uint32_t i = 0; i < record->n; i++)
		if (record->changes[i].setting == setting &&
		    record->changes[i].id == id)
			return &record->changes[i];
	return NULL;
}

bool mri_xdp_has_changed(const struct xdp_port *port, enum xdp_setting setting,
			 uint32_t id)
{
	const struct xdp_record *record = &port->record;

	for (uint32_t i = 0; i < record->n; i++)
		if (record->changes[i].setting == setting &&
		    record->changes[i].id == id)
			return record->changes[i].since !=
			       record->changes[i].before;
	return false;
}

int mri_xdp_change(struct xdp_port *port, enum xdp_setting setting, uint32_t id,
		   uint64_t value)
{
	struct xdp_record *record = &port->record;
	struct xdp_change *change = find_change(record, setting, id);
	char text[64];
	uint64_t was;
	int err;

	if (change == NULL) {
		if (record->n == XDP_MAX_CHANGES)
			return -ENOSPC;
		change = &record->changes[record->n];
		*change = (struct xdp_change){ .setting = setting, .id = id };
		err = mri_xdp_setting(port, change, false, &change->before);
		if (err < 0)
			return err;
		change->since = change->before;
		record->n++;
	}
	was = change->since;
	change->since = value;
	err = write_change(port, change);
	if (err == -EBUSY) {
		change->since = was;
		return -EALREADY;
	}
	if (err < 0 && !record->is_refused)
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: no record in %s (%s): if this program is "
		       "killed, restore '%s', and what it sets later, by hand",
		       port->base.info->name, own_folder(), mr_strerror(-err),
		       describe_value(change, change->before, text));
	record->is_refused = err < 0;
	err = mri_xdp_setting(port, change, true, &value);
	if (err < 0) {
		change->since = was;
		(void)write_change(port, change);
	}
	return err;
}

/*
 * 1: restored; 0: it is not as it was left, or gone; or -errno. Drivers refuse
 * an MTU while the program of a process that was killed is still attached:
 * that is tried again until deadline_ns.
 */
static int undo_change(const struct xdp_port *port,
		       const struct xdp_change *change, uint64_t deadline_ns)
{
	const struct timespec step = { .tv_nsec = LOCK_STEP_MS * 1000000 };
	uint64_t before = change->before, now = 0;
	int err = mri_xdp_setting(port, change, false, &now);

	/* The interface, or its NAPI, is gone. */
	if (err == -ENODEV || err == -ENXIO || err == -ENOENT)
		return 0;
	if (err < 0 || now != change->since || now == before)
		return err;
	for (;;) {
		err = mri_xdp_setting(port, change, true, &before);
		if (err == 0)
			return 1;
		if (change->setting != XDP_SETTING_MTU ||
		    (err != -EINVAL && err != -ERANGE && err != -EBUSY) ||
		    mr_ctx_now_ns(port->base.ctx) >= deadline_ns)
			return err;
		nanosleep(&step, NULL);
	}
}

/* Of a key or table, which the first part stands for in the log. */
static bool is_later_part(const struct xdp_change *change)
{
	return change->id > 0 && (change->setting == XDP_SETTING_RSS_KEY ||
				  change->setting == XDP_SETTING_RSS_TABLE);
}

/* False: it is still to be done. why: for the log; NULL: success is silent. */
static bool undo_and_tell(const struct xdp_port *port,
			  const struct xdp_change *change, uint64_t deadline_ns,
			  const char *why)
{
	const char *const name = port->base.info->name;
	const int err = undo_change(port, change, deadline_ns);
	char before[64], since[64];

	if (err < 0)
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: cannot restore '%s': %s; do so by hand", name,
		       describe_value(change, change->before, before),
		       mr_strerror(-err));
	else if (err > 0 && why != NULL && !is_later_part(change))
		mr_log(port->base.ctx, MR_LOG_WARNING,
		       "%s: restored '%s', it was '%s': %s", name,
		       describe_value(change, change->before, before),
		       describe_value(change, change->since, since), why);
	return err >= 0;
}

static uint64_t undo_deadline_ns(const struct xdp_port *port)
{
	return mr_ctx_now_ns(port->base.ctx) + UNDO_WAIT_MS * UINT64_C(1000000);
}

/* Keep only the changes that are not undone, in the list and in the file. */
static void keep_rest(struct xdp_port *port)
{
	struct xdp_record *record = &port->record;
	uint32_t n_kept = 0;
	bool is_cut;

	for (uint32_t i = 0; i < record->n; i++)
		if (!record->changes[i].is_undone)
			record->changes[n_kept++] = record->changes[i];
	record->n = n_kept;
	if (port->lease.fds[XDP_LEASE_RECORD] < 0)
		return;
	for (uint32_t i = 0; i < n_kept; i++)
		(void)write_change(port, &record->changes[i]);
	/* First: a file that cannot be removed must not keep old lines. */
	is_cut = ftruncate(port->lease.fds[XDP_LEASE_RECORD],
			   (off_t)n_kept * LINE_BYTES) == 0;
	if (n_kept > 0 || (unlink(record->path) < 0 && !is_cut))
		return;
	mr_fd_close(port->lease.fds[XDP_LEASE_RECORD]);
	port->lease.fds[XDP_LEASE_RECORD] = -1;
}

/* Up to the first line that is not one of ours. */
static void read_changes(struct xdp_record *record, int fd)
{
	char line[LINE_BYTES + 1] = "";
	unsigned long long before, since;
	char name[32];
	uint32_t id, k;

	record->n = 0;
	while (record->n < XDP_MAX_CHANGES &&
	       pread(fd, line, LINE_BYTES, (off_t)(record->n * LINE_BYTES)) ==
		       LINE_BYTES &&
	       sscanf(line, "%31s %u %llu %llu", name, &id, &before, &since) ==
		       4) {
		for (k = 0; k < XDP_N_SETTINGS; k++)
			if (strcmp(name, mri_xdp_setting_names[k]) == 0)
				break;
		if (k == XDP_N_SETTINGS)
			return;
		record->changes[record->n++] = (struct xdp_change){
			.setting = k, .id = id, .before = before, .since = since
		};
	}
}

int mri_xdp_refuse_shared(const struct xdp_port *port, struct mr_reason *reason)
{
	return mr_fail(reason, -EBUSY,
		       "%s: another Millrace program is using this interface "
		       "('fuser %s' names its process)",
		       port->base.info->name, port->record.path);
}

static void warn_of_file(const struct xdp_port *port, int err)
{
	const char *why = "see the owner and mode of the file and its folder";

	if (err == -EACCES)
		why = "run as its user, in the group of " FOLDER ", or as root";
	else if (err == -EPERM)
		why = "users other than root, millrace and this one can have "
		      "written it; remove it";
	mr_log(port->base.ctx, MR_LOG_WARNING,
	       "%s: cannot use %s (%s): settings that a killed program left "
	       "behind are not restored; %s",
	       port->base.info->name, port->record.path, mr_strerror(-err),
	       why);
}

/* Restore what the file lists, then remove it unless it is ours. If that fails,
 * it has no effect: restored settings differ from those it lists. */
static void restore_settings(struct xdp_port *port, int fd, bool is_own)
{
	struct xdp_record *record = &port->record;
	const uint64_t deadline_ns = undo_deadline_ns(port);

	read_changes(record, fd);
	for (uint32_t i = record->n; i-- > 0;) {
		struct xdp_change *change = &record->changes[i];

		/* This port needs the link up, too, and undoes it at close. */
		change->is_undone =
			(!is_own || change->setting != XDP_SETTING_UP) &&
			undo_and_tell(port, change, deadline_ns,
				      "a program that had set it was killed");
	}
	if (is_own) {
		port->lease.fds[XDP_LEASE_RECORD] = fd;
		keep_rest(port);
		return;
	}
	record->n = 0;
	(void)unlink(record->path);
	mr_fd_close(fd);
}

int mri_xdp_record_open(struct xdp_port *port, struct mr_reason *reason)
{
	const char *own = own_folder();
	const char *const folders[] = {
		strcmp(own, FOLDER) == 0 ? FOLDER_OF_ROOT : FOLDER, own
	};
	int n_found = 0;

	for (uint32_t i = 0; i < 2; i++) {
		int fd = find_path(port, folders[i]);

		if (fd < 0)
			return 0;
		fd = open_locked(port->record.path, false, LOCK_WAIT_MS);
		if (fd == -EBUSY)
			return mri_xdp_refuse_shared(port, reason);
		if (fd < 0 && fd != -ENOENT)
			warn_of_file(port, fd);
		if (fd < 0)
			continue;
		restore_settings(port, fd, folders[i] == own);
		n_found++;
	}
	return n_found > 0;
}

int mri_xdp_record_share(struct xdp_port *port)
{
	const int fd =
		open(port->record.path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return -1;
	if (flock(port->lease.fds[XDP_LEASE_RECORD], LOCK_UN) == 0 &&
	    flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return -1;
}

void mri_xdp_record_undo(struct xdp_port *port, enum xdp_setting first)
{
	struct xdp_record *record = &port->record;
	const uint64_t deadline_ns = undo_deadline_ns(port);

	/* The last one first. */
	for (uint32_t i = record->n; i-- > 0;)
		record->changes[i].is_undone =
			record->changes[i].setting >= first &&
			undo_and_tell(port, &record->changes[i], deadline_ns,
				      NULL);
	keep_rest(port);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Stop the workers: at the end, or while queues change. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "dataplane.h"
#include "text.h"

/* Time running, and time waiting for a core, so far. */
static void sched_times(const char *tid, unsigned long long ret[2])
{
	char line[128];

	read_line(line, sizeof(line), "/proc/self/task/%s/schedstat", tid);
	ret[0] = ret[1] = 0;
	sscanf(line, "%llu %llu", &ret[0], &ret[1]);
}

static void explain_task(const char *tid, char *ret, size_t n)
{
	const struct timespec look = { .tv_nsec = 50000000 };
	unsigned long long before[2], after[2];
	char line[512], wchan[64];
	const char *state;

	read_line(line, sizeof(line), "/proc/self/task/%s/stat", tid);
	state = strrchr(line, ')'); /* after the name: " S ..." */
	if (state != NULL && state[1] == ' ' && state[2] != 'R') {
		read_line(wchan, sizeof(wchan), "/proc/self/task/%s/wchan",
			  tid);
		snprintf(ret, n,
			 "it waits in the kernel (%s): a device or a file does "
			 "not respond; see dmesg",
			 wchan[0] > '0' ? wchan : "no name");
		return;
	}
	sched_times(tid, before);
	nanosleep(&look, NULL);
	sched_times(tid, after);
	snprintf(ret, n, "%s",
		 after[1] - before[1] > after[0] - before[0] ?
			 "another thread uses its core; choose a free one with "
			 "--cores" :
			 "it is still running; please report this");
}

void dataplane_why_stuck(uint32_t worker_idx, char *ret, size_t n)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	char wanted[32], name[32];

	ret[0] = '\0';
	snprintf(wanted, sizeof(wanted), "mr-worker-%u", worker_idx);
	while (tasks != NULL && (task = readdir(tasks)) != NULL) {
		read_line(name, sizeof(name), "/proc/self/task/%s/comm",
			  task->d_name);
		if (strcmp(name, wanted) == 0)
			explain_task(task->d_name, ret, n);
	}
	if (tasks != NULL)
		closedir(tasks);
}

int dataplane_join(struct dataplane *plane, struct mr_reason *ret_error)
{
	const int err =
		mr_workers_join(plane->workers, DATAPLANE_JOIN_MS, ret_error);
	uint32_t idx;
	char why[200];
	size_t n;

	if (err != -ETIMEDOUT ||
	    sscanf(ret_error->text, "worker %u", &idx) != 1)
		return err;
	dataplane_why_stuck(idx, why, sizeof(why));
	n = strlen(ret_error->text);
	snprintf(ret_error->text + n, sizeof(ret_error->text) - n,
		 " after %d s: %s", DATAPLANE_JOIN_MS / 1000, why);
	return err;
}

int dataplane_pause(struct dataplane *plane, mr_dataplane_drop_fn *drop,
		    void *opaque, struct mr_reason *ret_error)
{
	int err;

	mr_workers_stop(plane->workers);
	err = dataplane_join(plane, ret_error);
	if (err < 0)
		return err;
	/* Frames that a tx queue takes now leave later; do not wait for
	 * them. */
	mr_dataplane_drain(plane->open, 0, drop, opaque);
	return 0;
}

int dataplane_resume(struct dataplane *plane, mr_worker_fn *work, void *opaque,
		     struct mr_reason *ret_error)
{
	const int err = mr_workers_reassign(plane->workers, ret_error);

	return err < 0 ? err :
			 mr_workers_start(plane->workers, work, opaque,
					  ret_error);
}

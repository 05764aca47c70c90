/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that monopolize a core. A worker that shares its core with one of
 * them, and its frames, wait for whole time slices of some milliseconds.
 *
 * Two kinds of threads count, both confined to a single core, since the kernel
 * would move others away: workers of Millrace, which may be asleep now but poll
 * when traffic comes, and threads that did not block for SAMPLE_NS, which are
 * runnable at both ends without a voluntary context switch in between.
 *
 * Source: proc_pid_stat(5), proc_pid_status(5). Processes that /proc hides are
 * not found.
 */
#include <ctype.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "worker/worker.h"

enum {
	SAMPLE_NS = 20000000,
	MAX_CANDIDATES = 256,
	PF_KTHREAD = 0x00200000, /* include/linux/sched.h */
};

struct candidate {
	struct mri_poller poller;
	uint64_t n_switches;
	bool is_worker;
};

struct candidates {
	struct candidate all[MAX_CANDIDATES];
	uint32_t n;
	bool has_others; /* other than workers */
};

/* False: the thread has gone, or is the kernel's. */
static bool read_thread(const char *path, char *state, char *name,
			size_t n_bytes)
{
	char text[512];
	const char *open_at, *close_at;
	unsigned int flags;

	if (mri_read_text(path, text, sizeof(text)) == 0)
		return false;
	open_at = strchr(text, '(');
	close_at = strrchr(text, ')'); /* a name may have one, too */
	if (open_at == NULL || close_at == NULL ||
	    sscanf(close_at, ") %c %*d %*d %*d %*d %*d %u", state, &flags) != 2)
		return false;
	snprintf(name, n_bytes, "%.*s", (int)(close_at - open_at - 1),
		 open_at + 1);
	return (flags & PF_KTHREAD) == 0;
}

static uint64_t count_switches(const struct mri_poller *poller)
{
	static const char key[] = "\nvoluntary_ctxt_switches:";
	char path[64], text[4096];
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/status", poller->pid,
		 poller->tid);
	if (mri_read_text(path, text, sizeof(text)) == 0)
		return 0;
	at = strstr(text, key);
	return at != NULL ? strtoull(at + sizeof(key) - 1, NULL, 10) : 0;
}

/* Returns false if the thread may run on several cores. */
static bool find_only_core(int32_t tid, uint32_t *ret_core)
{
	cpu_set_t set;

	if (sched_getaffinity(tid, sizeof(set), &set) < 0 ||
	    CPU_COUNT(&set) != 1)
		return false;
	*ret_core = 0;
	while (!CPU_ISSET(*ret_core, &set))
		(*ret_core)++;
	return true;
}

static void look_at(struct candidates *found, int32_t pid, int32_t tid)
{
	struct candidate *c = &found->all[found->n];
	char path[64], state, name[32];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", pid, tid);
	if (tid == gettid() || !read_thread(path, &state, name, sizeof(name)))
		return;
	*c = (struct candidate){ .poller = { .pid = pid, .tid = tid } };
	c->is_worker = strncmp(name, "mr-worker-", 10) == 0;
	if ((!c->is_worker && state != 'R') ||
	    !find_only_core(tid, &c->poller.core))
		return;
	if (!c->is_worker) {
		c->n_switches = count_switches(&c->poller);
		found->has_others = true;
	}
	found->n++;
}

/* Call look_at() for each number in a directory: processes or threads. */
static void look_into(struct candidates *found, const char *path, int32_t pid)
{
	struct dirent *entry;
	DIR *dir = opendir(path); /* sets close-on-exec */

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL && found->n < MAX_CANDIDATES) {
		const int32_t id = (int32_t)strtol(entry->d_name, NULL, 10);
		char threads[64];

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (pid > 0) {
			look_at(found, pid, id);
			continue;
		}
		snprintf(threads, sizeof(threads), "/proc/%d/task", id);
		look_into(found, threads, id);
	}
	closedir(dir);
}

static bool is_still_polling(const struct candidate *c)
{
	char path[64], state, name[32];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/stat", c->poller.pid,
		 c->poller.tid);
	return read_thread(path, &state, name, sizeof(name)) && state == 'R' &&
	       count_switches(&c->poller) == c->n_switches;
}

uint32_t mri_find_pollers(struct mri_poller *pollers, uint32_t room)
{
	const struct timespec sample = { .tv_nsec = SAMPLE_NS };
	struct candidates found = { .n = 0 };
	uint32_t n = 0;

	look_into(&found, "/proc", 0);
	if (found.has_others)
		nanosleep(&sample, NULL);
	for (uint32_t i = 0; i < found.n && n < room; i++) {
		struct mri_poller *poller = &found.all[i].poller;
		char path[64];
		size_t n_bytes;

		if (!found.all[i].is_worker && !is_still_polling(&found.all[i]))
			continue;
		snprintf(path, sizeof(path), "/proc/%d/comm", poller->pid);
		n_bytes =
			mri_read_text(path, poller->name, sizeof(poller->name));
		if (n_bytes > 0 && poller->name[n_bytes - 1] == '\n')
			poller->name[n_bytes - 1] = '\0';
		pollers[n++] = *poller;
	}
	return n;
}

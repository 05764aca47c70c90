/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cores: which ones may be used, on which NUMA node, and who shares one.
 *
 * Source: Documentation/ABI/stable/sysfs-devices-system-cpu and
 * Documentation/admin-guide/cputopology.rst. Where /sys says nothing, a core
 * has no known node and shares with nobody.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/worker.h"

static int32_t numa_node_of(uint32_t core)
{
	char path[64];
	struct dirent *entry;
	int32_t node = -1;
	DIR *dir;

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u", core);
	dir = opendir(path); /* sets close-on-exec */
	if (dir == NULL)
		return -1;
	while (node < 0 && (entry = readdir(dir)) != NULL)
		if (sscanf(entry->d_name, "node%d", &node) != 1)
			node = -1;
	closedir(dir);
	return node;
}

/* The lowest thread of the core: a name for the core itself. */
static uint32_t first_sibling_of(uint32_t core)
{
	char path[96], text[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
		 core);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return core;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return core;
	text[n] = '\0';
	return (uint32_t)strtoul(text, NULL, 10);
}

uint32_t mri_cores_allowed(struct mri_core *cores, uint32_t n)
{
	uint32_t siblings[MRI_MAX_CORES];
	uint32_t n_found = 0;
	cpu_set_t set; /* 1024 cores, MRI_MAX_CORES */

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 0;
	for (uint32_t id = 0; id < MRI_MAX_CORES && n_found < n; id++) {
		struct mri_core *core = &cores[n_found];

		if (!CPU_ISSET(id, &set))
			continue;
		*core = (struct mri_core){ .id = id,
					   .numa_node = numa_node_of(id) };
		siblings[n_found] = first_sibling_of(id);
		for (uint32_t i = 0; i < n_found; i++)
			core->sibling_rank += siblings[i] == siblings[n_found];
		n_found++;
	}
	return n_found;
}

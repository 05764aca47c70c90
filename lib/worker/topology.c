/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cores: which are available, their NUMA nodes and siblings, and where
 * interrupts go.
 *
 * Source: Documentation/ABI/stable/sysfs-devices-system-cpu,
 * Documentation/ABI/testing/sysfs-bus-pci (msi_irqs),
 * Documentation/admin-guide/cputopology.rst and
 * Documentation/core-api/irq/irq-affinity.rst. Without /sys, a core has no
 * known node and no siblings.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

size_t mri_read_text(const char *path, char *text, size_t n_bytes)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return 0;
	n = read(fd, text, n_bytes - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n > 0 ? (size_t)n : 0;
}

/* The lowest thread of the core identifies the core. */
static uint32_t first_sibling_of(uint32_t core)
{
	char path[96], text[32];

	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
		 core);
	if (mri_read_text(path, text, sizeof(text)) == 0)
		return core;
	return (uint32_t)strtoul(text, NULL, 10);
}

/* "1,4-7" */
static void mark_list(const char *text, struct mri_core *cores, uint32_t n)
{
	while (*text >= '0' && *text <= '9') {
		char *end;
		const unsigned long first = strtoul(text, &end, 10);
		const unsigned long last =
			*end == '-' ? strtoul(end + 1, &end, 10) : first;

		for (uint32_t i = 0; i < n; i++)
			if (cores[i].id >= first && cores[i].id <= last)
				cores[i].has_irqs = true;
		text = *end == ',' ? end + 1 : end;
	}
}

void mri_mark_irq_cores(const char *root, const char *port_name,
			struct mri_core *cores, uint32_t n)
{
	const char *device = strchr(port_name, ':');
	char path[320], text[256];
	struct dirent *entry;
	DIR *dir = NULL;

	if (device == NULL || strchr(device, '/') != NULL)
		return;
	/* A virtio device is below its PCI function, which has the vectors. */
	for (int i = 0; i < 2 && dir == NULL; i++) {
		snprintf(path, sizeof(path),
			 "%s/sys/class/net/%s/device/%smsi_irqs", root,
			 device + 1, i > 0 ? "../" : "");
		dir = opendir(path); /* sets close-on-exec */
	}
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		snprintf(path, sizeof(path),
			 "%s/proc/irq/%.16s/effective_affinity_list", root,
			 entry->d_name);
		if (mri_read_text(path, text, sizeof(text)) > 0)
			mark_list(text, cores, n);
	}
	closedir(dir);
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

/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <millrace/api.h>

#include "machine.h"
#include "peer_dpdk.h"

#ifndef BENCH_FLAGS
#define BENCH_FLAGS "unknown"
#endif

/* The first line of a file, or of it the one that begins with key. */
static void read_line(const char *path, const char *key, char *ret, size_t n)
{
	char line[256];
	FILE *file = fopen(path, "re");

	snprintf(ret, n, "unknown");
	if (file == NULL)
		return;
	while (fgets(line, sizeof(line), file) != NULL) {
		const char *value = line;

		line[strcspn(line, "\n")] = '\0';
		if (key != NULL) {
			if (strncmp(line, key, strlen(key)) != 0 ||
			    (value = strchr(line, ':')) == NULL)
				continue;
			value += 1 + strspn(value + 1, " \t");
		}
		snprintf(ret, n, "%.*s", (int)n - 1, value);
		break;
	}
	fclose(file);
}

static uint64_t meminfo(const char *key)
{
	char text[64];
	unsigned long long value = 0;

	read_line("/proc/meminfo", key, text, sizeof(text));
	if (sscanf(text, "%llu", &value) != 1)
		return 0;
	return value;
}

void machine_command(int argc, char *const *argv, char *ret, size_t n_bytes)
{
	size_t n = 0;

	ret[0] = '\0';
	for (int i = 0; i < argc && n < n_bytes; i++) {
		const int k = snprintf(ret + n, n_bytes - n, "%s%s",
				       i > 0 ? " " : "", argv[i]);

		n += k > 0 ? (size_t)k : 0;
	}
}

void machine_look(struct machine *machine, const char *command)
{
	const time_t now = time(NULL);
	struct utsname name;
	struct tm tm;

	*machine = (struct machine){ 0 };
	read_line("/proc/cpuinfo", "model name", machine->cpu,
		  sizeof(machine->cpu));
	read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", NULL,
		  machine->governor, sizeof(machine->governor));
	read_line("/proc/loadavg", NULL, machine->load, sizeof(machine->load));
	if (uname(&name) == 0)
		snprintf(machine->kernel, sizeof(machine->kernel),
			 "%.40s %.50s", name.sysname, name.release);
	machine->n_cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	machine->n_huge_pages = meminfo("HugePages_Total");
	machine->n_huge_free = meminfo("HugePages_Free");
	snprintf(machine->compiler, sizeof(machine->compiler), "%s",
		 __VERSION__);
	snprintf(machine->flags, sizeof(machine->flags), "%s", BENCH_FLAGS);
	snprintf(machine->millrace, sizeof(machine->millrace), "%s",
		 mr_version());
	snprintf(machine->dpdk, sizeof(machine->dpdk), "%s", dpdk_version());
	gmtime_r(&now, &tm);
	strftime(machine->date, sizeof(machine->date), "%Y-%m-%dT%H:%M:%SZ",
		 &tm);
	snprintf(machine->command, sizeof(machine->command), "%s", command);
}

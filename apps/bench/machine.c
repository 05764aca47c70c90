/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <millrace/api.h>

#include "machine.h"

#ifndef BENCH_FLAGS
#define BENCH_FLAGS "unknown"
#endif

#define CPUS "/sys/devices/system/cpu/"

/* The first line of a file, or of it the one that begins with key. */
static void read_line(const char *path, const char *key, char *ret, size_t n)
{
	char line[4096];
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

/* As read_line(), but "" where there is no such file. */
static void read_some(const char *path, char *ret, size_t n)
{
	if (access(path, R_OK) == 0)
		read_line(path, NULL, ret, n);
	else
		ret[0] = '\0';
}

/* The word in brackets of "always [madvise] never". */
static void read_choice(const char *path, char *ret, size_t n)
{
	char line[64];
	const char *from;

	read_some(path, line, sizeof(line));
	from = strchr(line, '[');
	if (from != NULL)
		snprintf(ret, n, "%.*s", (int)strcspn(from + 1, "]"), from + 1);
}

/* What may make a figure of this machine another one elsewhere. */
static void look_at_vulnerabilities(struct machine *machine)
{
	const char *folder = CPUS "vulnerabilities";
	struct dirent **names;
	const int n_names = scandir(folder, &names, NULL, alphasort);
	size_t n = 0;

	for (int i = 0; i < n_names; i++) {
		const size_t room = sizeof(machine->vulnerabilities) - n;
		char path[320], state[160];

		snprintf(path, sizeof(path), "%s/%s", folder, names[i]->d_name);
		if (names[i]->d_name[0] != '.')
			read_some(path, state, sizeof(state));
		if (names[i]->d_name[0] != '.' &&
		    strcmp(state, "Not affected") != 0 && room > 256)
			n += (size_t)snprintf(machine->vulnerabilities + n,
					      room, "%.64s: %s\n",
					      names[i]->d_name, state);
		free(names[i]);
	}
	if (n_names >= 0)
		free(names);
}

/* A hypervisor promises its guest no time, and a container has neighbours. */
static void look_at_guest(struct machine *machine)
{
	const bool is_container = access("/.dockerenv", F_OK) == 0 ||
				  access("/run/.containerenv", F_OK) == 0;
	char flags[4096], vendor[32], product[32];
	bool is_virtual;

	read_line("/proc/cpuinfo", "flags", flags, sizeof(flags));
	read_some("/sys/class/dmi/id/sys_vendor", vendor, sizeof(vendor));
	read_some("/sys/class/dmi/id/product_name", product, sizeof(product));
	is_virtual = strstr(flags, " hypervisor") != NULL;
	snprintf(machine->guest, sizeof(machine->guest), "%s%s%s%s%s%s%s",
		 is_virtual ? "virtual machine" : "",
		 is_virtual && vendor[0] != '\0' ? " " : "",
		 is_virtual ? vendor : "",
		 is_virtual && product[0] != '\0' ? " " : "",
		 is_virtual ? product : "",
		 is_virtual && is_container ? ", " : "",
		 is_container ? "container" : "");
}

static void look_at_cores(struct machine *machine)
{
	char text[64];
	uint32_t first, last;

	read_line("/proc/cpuinfo", "microcode", machine->microcode,
		  sizeof(machine->microcode));
	read_some(CPUS "isolated", machine->isolated,
		  sizeof(machine->isolated));
	read_some(CPUS "nohz_full", machine->nohz_full,
		  sizeof(machine->nohz_full));
	if (strcmp(machine->nohz_full, "(null)") == 0)
		machine->nohz_full[0] = '\0';
	read_some(CPUS "smt/active", text, sizeof(text));
	machine->has_smt = text[0] == '1';
	read_some("/sys/devices/system/node/has_memory", text, sizeof(text));
	for (const char *part = text; part[0] != '\0';) {
		const int n = sscanf(part, "%u-%u", &first, &last);

		if (n >= 1)
			machine->n_numa_nodes += n == 2 ? last - first + 1 : 1;
		part += strcspn(part, ",");
		part += part[0] == ',';
	}
}

/* What a shell takes as it is. */
static bool is_plain(const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
				    "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_-+=:,./%@^";

	return word[0] != '\0' && word[strspn(word, plain)] == '\0';
}

void machine_command(int argc, char *const *argv, char *ret, size_t n_bytes)
{
	size_t n = 0;

	ret[0] = '\0';
	for (int i = 0; i < argc && n < n_bytes; i++) {
		/* One with a quote in it is told from its neighbours, too. */
		const char *quote = is_plain(argv[i])             ? "" :
				    strchr(argv[i], '\'') == NULL ? "'" :
								    "\"";
		const int k = snprintf(ret + n, n_bytes - n, "%s%s%s%s",
				       i > 0 ? " " : "", quote, argv[i], quote);

		n += k > 0 ? (size_t)k : 0;
	}
}

/* Whether a list with ", " between has the word. */
static bool has_word(const char *list, const char *word)
{
	const size_t n = strlen(word);

	for (const char *at = list; at[0] != '\0'; at += at[0] == ',' ? 2 : 0) {
		const size_t length = strcspn(at, ",");

		if (length == n && strncmp(at, word, n) == 0)
			return true;
		at += length;
	}
	return false;
}

void machine_governor(const char *sys, const uint32_t *cores, uint32_t n,
		      char *ret, size_t n_bytes)
{
	ret[0] = '\0';
	for (uint32_t i = 0; i < n; i++) {
		const size_t at = strlen(ret);
		char path[256], word[32];

		snprintf(path, sizeof(path),
			 "%s/devices/system/cpu/cpu%u/cpufreq/scaling_governor",
			 sys, cores[i]);
		read_line(path, NULL, word, sizeof(word));
		if (!has_word(ret, word))
			snprintf(ret + at, n_bytes - at, "%s%s",
				 at > 0 ? ", " : "", word);
	}
}

/* Until it is known which ones work. */
static void look_at_governors(struct machine *machine)
{
	uint32_t cores[CPU_SETSIZE], n = 0;
	cpu_set_t set;

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (uint32_t c = 0; c < CPU_SETSIZE; c++)
		if (CPU_ISSET(c, &set))
			cores[n++] = c;
	machine_governor("/sys", cores, n, machine->governor,
			 sizeof(machine->governor));
}

void machine_look(struct machine *machine, const char *command)
{
	const time_t now = time(NULL);
	struct utsname name;
	struct tm tm;

	*machine = (struct machine){ 0 };
	read_line("/proc/cpuinfo", "model name", machine->cpu,
		  sizeof(machine->cpu));
	look_at_governors(machine);
	read_line("/proc/loadavg", NULL, machine->load, sizeof(machine->load));
	if (uname(&name) == 0)
		snprintf(machine->kernel, sizeof(machine->kernel),
			 "%.40s %.50s", name.sysname, name.release);
	read_some("/proc/cmdline", machine->kernel_words,
		  sizeof(machine->kernel_words));
	read_some("/sys/devices/system/clocksource/clocksource0/"
		  "current_clocksource",
		  machine->clock_source, sizeof(machine->clock_source));
	read_choice("/sys/kernel/mm/transparent_hugepage/enabled", machine->thp,
		    sizeof(machine->thp));
	look_at_cores(machine);
	look_at_guest(machine);
	look_at_vulnerabilities(machine);
	machine->n_cores = (uint32_t)sysconf(_SC_NPROCESSORS_ONLN);
	machine->n_huge_pages = meminfo("HugePages_Total");
	machine->n_huge_free = meminfo("HugePages_Free");
	snprintf(machine->compiler, sizeof(machine->compiler), "%s",
		 __VERSION__);
	snprintf(machine->flags, sizeof(machine->flags), "%s", BENCH_FLAGS);
	snprintf(machine->millrace, sizeof(machine->millrace), "%s",
		 mr_version());
	snprintf(machine->dpdk, sizeof(machine->dpdk), "none");
	gmtime_r(&now, &tm);
	strftime(machine->date, sizeof(machine->date), "%Y-%m-%dT%H:%M:%SZ",
		 &tm);
	snprintf(machine->command, sizeof(machine->command), "%s", command);
}

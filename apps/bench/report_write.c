/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of --out. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "report.h"

static int fail(struct mr_reason *why, const char *path)
{
	snprintf(why->text, sizeof(why->text), "--out: %.200s: %m", path);
	return -1;
}

int report_write(const struct results *results, const struct machine *machine,
		 uint32_t n_cores, const char *why_no_dpdk, const char *folder,
		 struct mr_reason *why)
{
	char path[512];
	FILE *file;
	bool is_good;

	if (mkdir(folder, 0777) < 0 && errno != EEXIST)
		return fail(why, folder);
	snprintf(path, sizeof(path), "%s/report.json", folder);
	file = fopen(path, "we");
	if (file == NULL)
		return fail(why, path);
	is_good = report_json(results, machine, n_cores, why_no_dpdk, file);
	if (fclose(file) != 0 || !is_good)
		return fail(why, path);
	return 0;
}

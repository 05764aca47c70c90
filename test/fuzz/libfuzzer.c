/* SPDX-License-Identifier: BSD-3-Clause */
/* libFuzzer takes seeds from a folder: MR_FUZZ_CORPUS, if it is set. */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);

static void write_seed(const char *folder, size_t i)
{
	char path[512];
	FILE *file;

	snprintf(path, sizeof(path), "%s/seed-%zu", folder, i);
	file = fopen(path, "wbe");
	if (file == NULL ||
	    fwrite(fuzz_seeds[i].bytes, 1, fuzz_seeds[i].n_bytes, file) !=
		    fuzz_seeds[i].n_bytes ||
	    fclose(file) != 0)
		err(1, "%s", path);
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	char *folder = getenv("MR_FUZZ_CORPUS");
	char **more;

	for (int i = 1; i < *argc; i++) {
		if ((*argv)[i][0] != '-') /* a file to run */
			return 0;
	}
	if (folder == NULL)
		return 0;
	for (size_t i = 0; fuzz_seeds[i].bytes != NULL; i++)
		write_seed(folder, i);
	more = calloc((size_t)*argc + 2, sizeof(*more));
	if (more == NULL)
		err(1, "no memory");
	memcpy(more, *argv, (size_t)*argc * sizeof(*more));
	more[(*argc)++] = folder;
	*argv = more;
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench: measure. One command per kind of measurement. */
#include <stdio.h>

#include "machine.h"
#include "mem.h"
#include "options.h"

int main(int argc, char **argv)
{
	struct mr_reason why = { .text = "" };
	struct options options;
	char command[512];

	machine_command(argc, argv, command, sizeof(command));
	switch (options_parse(argc, argv, &options, &why)) {
	case PARSE_DONE:
		return 0;
	case PARSE_WRONG:
		fprintf(stderr, "mr-bench: %s\n", why.text);
		return 2;
	case PARSE_RUN:
		break;
	}
	return mem_main(&options, command);
}

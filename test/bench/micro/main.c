/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-micro mem, flow, fwd: micro-benchmarks, for ./mr bench. */
#include "machine.h"
#include "mem.h"
#include "support/text.h"

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
		print_error("mr-micro: %s", why.text);
		return 2;
	case PARSE_RUN:
		break;
	}
	return mem_main(&options, command);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The traffic engine of mr-bench, which apps/bench/front starts. */
#include <stdint.h>
#include <string.h>

#include "engine/serve.h"
#include "net/relay.h"
#include "support/text.h"

/* main() is given the whole command line: argv[1] is the command. */
struct command {
	const char *name;
	int (*main)(int argc, char **argv);
};

static const struct command commands[] = {
	{ "reflect", reflect_main },
	{ "replay", replay_main },
	{ "serve", serve_main },
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	for (uint32_t i = 0; i < N_COMMANDS; i++)
		if (word != NULL && strcmp(word, commands[i].name) == 0)
			return commands[i].main(argc, argv);
	print_error("mr-bench-engine: not for people: run mr-bench");
	return 2;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-bench: measure. One command per kind of measurement. */
#include <stdio.h>
#include <string.h>

#include <millrace/millrace.h>

#include "net/commands.h"
#include "net/traffic.h"
#include "plan/plan_main.h"
#include "result/compare.h"
#include "result/report.h"
#include "search/commands.h"
#include "support/text.h"

/* main() is given the whole command line: argv[1] is the command. */
struct command {
	const char *name;
	const char *what;
	int (*main)(int argc, char **argv);
};

static const struct command commands[] = {
	{ "tx", "send frames", tx_main },
	{ "rx", "receive them, and tell which were lost", rx_main },
	{ "loop", "both: loss, order and latency between two ports",
	  loop_main },
	{ "reflect", "send back what is received", reflect_main },
	{ "replay", "send the frames of a capture, with its gaps",
	  replay_main },
	{ "throughput", "the highest rate that a device forwards",
	  throughput_main },
	{ "frameloss", "loss by rate", frameloss_main },
	{ "back2back", "the longest burst without loss", back2back_main },
	{ "latency", "latency at shares of the throughput", latency_main },
	{ "imix", "throughput with a mix of sizes", imix_main },
	{ "soak", "a long run: what drifts", soak_main },
	{ "nat", "connections of a NAT: rate, capacity (RFC 9693)", nat_main },
	{ "selftest", "what the tester itself can do", selftest_main },
	{ "plan", "a series of measurements from a file", plan_main },
	{ "compare", "results with others, with a verdict", compare_main },
	{ "report", "results as a page with charts", report_main },
};

enum { N_COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int print_help(void)
{
	printf("usage: mr-bench COMMAND [options] [...]\n"
	       "Measure ports and devices between them.\n"
	       "\nCommands; COMMAND --help tells more of each:\n");
	for (uint32_t i = 0; i < N_COMMANDS; i++)
		printf("  %-12s %s\n", commands[i].name, commands[i].what);
	printf("\n  -h, --help     print this\n"
	       "  -V, --version  print the version\n"
	       "\nExit status: 0; 1 on failure, or where a goal was not met; "
	       "2 if the command\nline is wrong.\n");
	return fflush(stdout) == 0 ? 0 : 1;
}

/* Not installed any more; said until the release after this one. */
static bool is_micro_benchmark(const char *word)
{
	return strcmp(word, "mem") == 0 || strcmp(word, "flow") == 0 ||
	       strcmp(word, "fwd") == 0;
}

static int complain(const char *word)
{
	char names[512];
	size_t at = 0;

	if (word != NULL && is_micro_benchmark(word)) {
		print_error("mr-bench: '%s' is './mr bench %s' now, in the "
			    "source tree",
			    word, word);
		return 2;
	}

	for (uint32_t i = 0; i < N_COMMANDS; i++)
		at += (size_t)snprintf(names + at, sizeof(names) - at, " %s",
				       commands[i].name);
	print_error("mr-bench: no command%s%s%s; there are:%s",
		    word != NULL ? " '" : "", word != NULL ? word : "",
		    word != NULL ? "'" : "", names);
	return 2;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : NULL;

	if (word == NULL)
		return complain(NULL);
	if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0)
		return print_help();
	if (strcmp(word, "--version") == 0 || strcmp(word, "-V") == 0) {
		printf("mr-bench %s\n", mr_version());
		return fflush(stdout) == 0 ? 0 : 1;
	}
	for (uint32_t i = 0; i < N_COMMANDS; i++)
		if (strcmp(word, commands[i].name) == 0)
			return commands[i].main(argc, argv);
	return complain(word);
}

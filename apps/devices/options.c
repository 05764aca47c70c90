/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of mr-devices. */
#include <string.h>

#include "options.h"

enum { OPTION_ROOT = OPTION_LONG, MAX_BDFS = 64, MAX_ROOT_BYTES = 128 };

static const struct option_row rows[] = {
	{ "all", 'a', NULL, "list: any device, not only NICs; unbind: all" },
	{ "json", 'j', NULL, "list, info: one JSON object on stdout" },
	{ "force", 'f', NULL, "bind: also a device that this machine uses" },
	{ "owner", 'o', "USER",
	  "bind: USER or USER:GROUP may open the devices" },
	{ "root", OPTION_ROOT, "DIR",
	  "look for /sys, /proc, /dev and /run below DIR" },
	{ "help", OPTION_HELP, NULL, "print this" },
	{ "version", OPTION_VERSION, NULL, "print the version" },
};

static const char usage[] =
	"usage: mr-devices [options] [list]\n"
	"       mr-devices [options] info BDF\n"
	"       mr-devices [options] bind BDF...\n"
	"       mr-devices [options] unbind BDF... | --all\n"
	"Show network devices, hand them to vfio-pci for the driver vfio:, "
	"and\n"
	"give them back to the kernel driver that they had.\n"
	"\n"
	"BDF is the address of a PCI function, as 0000:03:00.0 or 03:00.0.\n";

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *options, struct mr_reason *error)
{
	struct options *o = options;

	switch (row->id) {
	case 'a':
		o->is_all = true;
		return PARSE_RUN;
	case 'j':
		o->is_json = true;
		return PARSE_RUN;
	case 'f':
		o->is_forced = true;
		return PARSE_RUN;
	case 'o':
		o->has_owner = true;
		return owner_parse(arg, &o->owner, error) < 0 ? PARSE_WRONG :
								PARSE_RUN;
	default:
		if (strlen(arg) >= MAX_ROOT_BYTES)
			return parse_wrong(error,
					   "--root: more than %d characters",
					   MAX_ROOT_BYTES - 1);
		o->root = arg;
		return PARSE_RUN;
	}
}

static const struct option_table table = {
	.program = "mr-devices",
	.usage = usage,
	.rows = rows,
	.n_rows = sizeof(rows) / sizeof(rows[0]),
	.take = take,
};

/* Which options and how many devices a command has. */
static const struct rule {
	const char *word;
	bool takes_all, takes_json, takes_force;
	uint32_t n_least, n_most; /* devices */
} rules[] = {
	[COMMAND_LIST] = { "list", true, true, false, 0, 0 },
	[COMMAND_INFO] = { "info", false, true, false, 1, 1 },
	[COMMAND_BIND] = { "bind", false, false, true, 1, MAX_BDFS },
	[COMMAND_UNBIND] = { "unbind", true, false, false, 1, MAX_BDFS },
};

static enum parse_result check(const struct options *o, struct mr_reason *error)
{
	const struct rule *rule = &rules[o->command];
	const bool is_all = o->command == COMMAND_UNBIND && o->is_all;
	const char *wrong = NULL;

	if (o->is_all && !rule->takes_all)
		wrong = "--all";
	if (o->is_json && !rule->takes_json)
		wrong = "--json";
	if (o->is_forced && !rule->takes_force)
		wrong = "--force";
	if (o->has_owner && !rule->takes_force)
		wrong = "--owner";
	if (wrong != NULL)
		return parse_wrong(error, "%s has no option %s", rule->word,
				   wrong);
	if (is_all && o->n_bdfs > 0)
		return parse_wrong(error,
				   "unbind takes either addresses or --all");
	if (!is_all && o->n_bdfs < rule->n_least)
		return parse_wrong(error,
				   "%s: which device? Give its address, as "
				   "0000:03:00.0; 'mr-devices list' has them",
				   rule->word);
	if (o->n_bdfs > rule->n_most)
		return parse_wrong(error, "%s takes %u addresses at most",
				   rule->word, rule->n_most);
	return PARSE_RUN;
}

enum parse_result options_parse(int argc, char **argv, struct options *options,
				struct mr_reason *ret_error)
{
	const uint32_t n_rules = sizeof(rules) / sizeof(rules[0]);
	enum parse_result result;
	uint32_t i = 0;
	int first;

	*options = (struct options){ .root = "" };
	result = option_table_parse(&table, argc, argv, options, &first,
				    ret_error);
	if (result != PARSE_RUN)
		return result;
	if (first < argc) {
		while (i < n_rules && strcmp(argv[first], rules[i].word) != 0)
			i++;
		if (i == n_rules)
			return parse_wrong(ret_error,
					   "no command '%s'; there are: list "
					   "info bind unbind",
					   argv[first]);
		options->command = (enum command)i;
		options->bdfs = argv + first + 1;
		options->n_bdfs = (uint32_t)(argc - first - 1);
	}
	return check(options, ret_error);
}

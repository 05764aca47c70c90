/* SPDX-License-Identifier: BSD-3-Clause */
/* mr-devices: network devices, between the kernel and vfio-pci. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "devices.h"
#include "support/options.h"
#include "support/text.h"

enum { MAX_BDFS = 64, MAX_ROOT_BYTES = 128 };
enum { ID_ALL = OPTION_LONG, ID_FORCE, ID_OWNER, ID_ROOT };

struct options {
	const struct command *command;
	bool is_all, is_json, is_forced, has_owner;
	struct owner owner;
	char *const *bdfs;
	uint32_t n_bdfs;
};

/* Returns the exit status. */
typedef int command_fn(const struct options *options);

/* Which options and how many devices a command has. */
struct command {
	const char *word;
	command_fn *run;
	bool takes_all, takes_json, takes_force;
	uint32_t n_least, n_most;
};

static const struct option_row rows[] = {
	{ "all", ID_ALL, NULL,
	  "list: all devices, not only NICs; unbind: all" },
	{ "json", 'j', NULL, "list, info: print one JSON object" },
	{ "force", ID_FORCE, NULL,
	  "bind: even if this machine uses the device" },
	{ "owner", ID_OWNER, "USER",
	  "bind: USER or USER:GROUP may open the devices" },
	{ "root", ID_ROOT, "DIR",
	  "look for /sys, /proc, /dev and /run below DIR" },
	{ "help", OPTION_HELP, NULL, "print this help" },
	{ "version", OPTION_VERSION, NULL, "print the version" },
};

static const char usage[] =
	"usage: mr-devices [options] [list]\n"
	"       mr-devices [options] info BDF\n"
	"       mr-devices [options] bind BDF...\n"
	"       mr-devices [options] unbind BDF... | --all\n"
	"List network devices, bind them to vfio-pci for vfio: ports, and\n"
	"return them to their kernel driver.\n"
	"\n"
	"BDF is the address of a PCI function, 0000:03:00.0 or 03:00.0.\n";

static int complain(const char *text)
{
	print_error("mr-devices: %s", text);
	return 1;
}

/* Network devices, or with --all everything on the bus. */
static int list(const struct options *options)
{
	struct device *devices;
	struct names names;
	uint32_t n = 0;
	bool is_shown;

	if (machine_names(machine_path("/sys/bus/pci/devices"), &names) < 0)
		return complain("this machine has no PCI bus: no "
				"/sys/bus/pci/devices");
	devices = calloc((size_t)names.n + 1, sizeof(devices[0]));
	for (int i = 0; devices != NULL && i < names.n; i++) {
		struct mr_reason ignored; /* it went away in between */

		if (device_read(names.list[i]->d_name, &devices[n], &ignored) ==
			    0 &&
		    (options->is_all || devices[n].is_nic))
			n++;
		else
			device_free(&devices[n]);
	}
	is_shown = devices != NULL &&
		   show_devices(options->is_json ? SHOW_JSON : SHOW_LIST,
				devices, n);
	for (uint32_t i = 0; i < n; i++)
		device_free(&devices[i]);
	free(devices);
	names_free(&names);
	return is_shown ? 0 : complain("cannot write");
}

static int info(const struct options *options)
{
	struct mr_reason error;
	struct device device;
	bool is_shown;

	if (device_read(options->bdfs[0], &device, &error) < 0) {
		device_free(&device);
		return complain(error.text);
	}
	is_shown = show_devices(options->is_json ? SHOW_JSON : SHOW_INFO,
				&device, 1);
	device_free(&device);
	return is_shown ? 0 : complain("cannot write");
}

static int bind_them(const struct options *options)
{
	struct mr_reason error;

	if (bind_devices(options->bdfs, options->n_bdfs, options->is_forced,
			 options->has_owner ? &options->owner : NULL,
			 &error) < 0)
		return complain(error.text);
	return 0;
}

/* What can be given back is, whatever happens to the others. */
static int unbind(const struct options *options)
{
	uint32_t n = options->n_bdfs;
	struct names names = { 0 };
	struct mr_reason error;
	int status = 0;

	if (options->is_all) {
		if (notes_names(&names) < 0)
			return complain("cannot read /run/millrace/devices");
		n = (uint32_t)names.n;
		if (n == 0)
			printf("no device is bound by mr-devices\n");
	}
	for (uint32_t i = 0; i < n; i++)
		if (bind_give_back(options->is_all ? names.list[i]->d_name :
						     options->bdfs[i],
				   &error) < 0)
			status = complain(error.text);
	names_free(&names);
	return status;
}

static const struct command commands[] = {
	{ "list", list, true, true, false, 0, 0 },
	{ "info", info, false, true, false, 1, 1 },
	{ "bind", bind_them, false, false, true, 1, MAX_BDFS },
	{ "unbind", unbind, true, false, false, 1, MAX_BDFS },
};

static enum parse_result take(const struct option_row *row, const char *arg,
			      void *options, struct mr_reason *error)
{
	struct options *o = options;

	switch (row->id) {
	case ID_ALL:
		o->is_all = true;
		return PARSE_RUN;
	case 'j':
		o->is_json = true;
		return PARSE_RUN;
	case ID_FORCE:
		o->is_forced = true;
		return PARSE_RUN;
	case ID_OWNER:
		o->has_owner = true;
		return owner_parse(arg, &o->owner, error) < 0 ? PARSE_WRONG :
								PARSE_RUN;
	default:
		if (strlen(arg) >= MAX_ROOT_BYTES)
			return parse_wrong(error,
					   "--root: more than %d characters",
					   MAX_ROOT_BYTES - 1);
		machine.root = arg;
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

static enum parse_result check(const struct options *o, struct mr_reason *error)
{
	const struct command *command = o->command;
	const bool is_all = command->run == unbind && o->is_all;
	const char *wrong = NULL;

	if (o->is_all && !command->takes_all)
		wrong = "--all";
	if (o->is_json && !command->takes_json)
		wrong = "--json";
	if (o->is_forced && !command->takes_force)
		wrong = "--force";
	if (o->has_owner && !command->takes_force)
		wrong = "--owner";
	if (wrong != NULL)
		return parse_wrong(error, "%s has no option %s", command->word,
				   wrong);
	if (is_all && o->n_bdfs > 0)
		return parse_wrong(error,
				   "unbind takes either addresses or --all");
	if (!is_all && o->n_bdfs < command->n_least)
		return parse_wrong(error,
				   "%s: which device? Give its address, as "
				   "0000:03:00.0; 'mr-devices list' has them",
				   command->word);
	if (o->n_bdfs > command->n_most)
		return parse_wrong(error, "%s takes %u addresses at most",
				   command->word, command->n_most);
	return PARSE_RUN;
}

static enum parse_result parse(int argc, char **argv, struct options *options,
			       struct mr_reason *error)
{
	const uint32_t n = sizeof(commands) / sizeof(commands[0]);
	enum parse_result result;
	uint32_t i = 0;
	int first;

	result = option_table_parse(&table, argc, argv, options, &first, error);
	if (result != PARSE_RUN)
		return result;
	if (first < argc) {
		while (i < n && strcmp(argv[first], commands[i].word) != 0)
			i++;
		if (i == n)
			return parse_wrong(error,
					   "no command '%s'; there are: list "
					   "info bind unbind",
					   argv[first]);
		options->bdfs = argv + first + 1;
		options->n_bdfs = (uint32_t)(argc - first - 1);
	}
	options->command = &commands[i];
	return check(options, error);
}

/* Those that change something are alone while they do. */
static int run(const struct options *options)
{
	const bool changes = options->command->n_most == MAX_BDFS;
	const int fd = changes ? notes_lock() : -1;
	int status;

	if (changes && fd == -EWOULDBLOCK)
		return complain("another mr-devices is at work: wait for it");
	if (changes && fd < 0) {
		print_error("mr-devices: cannot keep notes in "
			    "%s/run/millrace/devices: %s%s",
			    machine.root, strerror(-fd),
			    fd == -EACCES ? ": run as root" : "");
		return 1;
	}
	status = options->command->run(options);
	if (changes)
		close(fd);
	return fflush(stdout) == 0 ? status : complain("cannot write");
}

int main(int argc, char **argv)
{
	struct mr_ctx_config config = { .size = sizeof(config) };
	struct options options = { 0 };
	struct mr_reason error;
	struct path sysfs;
	int status;

	machine.root = "";
	switch (parse(argc, argv, &options, &error)) {
	case PARSE_DONE:
		return fflush(stdout) == 0 ? 0 : complain("cannot write");
	case PARSE_WRONG:
		complain(error.text);
		return 2;
	default:
		break;
	}
	sysfs = machine_path("/sys");
	config.sysfs = sysfs.text;
	if (mr_ctx_create(&config, &machine.ctx, &error) < 0)
		return complain(error.text);
	status = run(&options);
	mr_ctx_destroy(machine.ctx);
	return status;
}
